// Passes of matrix completion, over factors F (p x R) and G (q x R) of the model F G^T and a map
// phi of its entries (shrink.hpp):
//   residual_step      F + (Z - F G^T) G over the stored entries of Z           4R flops an entry
//   mapped_residuals   z_ij - phi(f_i . g_j) at the stored entries of Z         2R flops an entry
//   mapped_product     phi(F G^T) H                                    4R flops for each of p x q
// The last goes through tiles that stay in the L2 cache; nothing of size p x q is stored.
#pragma once

#include "rank.hpp"

namespace ssnmf {

// The map phi: a step that draws entries towards zero (Kassab 2021, Algorithm 2), z (1 - c w) or,
// in its proximal form, z / (1 + c w), with w = (z^2 + eps)^(q/2 - 1).
template <class T>
struct Shrinkage {
  T step;         // c
  T eps;          // > 0
  T q;            // 0 ... 1
  bool proximal;  // else the explicit step, which overshoots once c w > 1
  T floor;        // smaller entries become this; -inf for none
};

// residuals has one value for each stored entry of Z; out must not overlap F.
template <class T>
void residual_step(const Csr<T>& Z, const Rows<const T>& F, const Factor<const T>& G, T* residuals,
                   const Rows<T>& out, int threads);

// out has one value for each stored entry of Z.
template <class T>
void mapped_residuals(const Csr<T>& Z, const Rows<const T>& F, const Factor<const T>& G, T scale,
                      const Shrinkage<T>& shrinkage, T* out, int threads);

// out (p x C) += phi(F G^T) H, with H (q x C).
template <class T>
void add_mapped_product(const Rows<const T>& F, const Rows<const T>& G, const Rows<const T>& H,
                        const Shrinkage<T>& shrinkage, const Rows<T>& out, int threads);

}  // namespace ssnmf
