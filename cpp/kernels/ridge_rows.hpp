// Rows of the weighted least-squares problems of IRLS (Kassab 2021, (2.6) and Algorithm 1), with
// orthonormal columns G (q x R) and a ridge for each of them:
//   ridge_rows        f_i = (diag(ridge) + sum_observed g_j g_j^T)^-1 sum_observed z_ij g_j
//   structured_rows   the same with (1 - w_ij) g_j g_j^T of every missing entry in the sum,
//                     w = 1 / (1 + alpha (x_ij^2 + eps)^(q/2 - 1)), then x_ij = w_ij f_i . g_j
// This form of the r x r system of Woodbury's formula has no cancellation: diag(1/d) minus the Gram
// matrix of the missing columns is diag(1/d - 1) plus that of the observed ones.
#pragma once

#include <cmath>

#include "rank.hpp"

namespace ssnmf {

// `ridge` has as many values as there are columns in use; the padding of F is set to 0.
template <class T>
void ridge_rows(const Csr<T>& Z, const Factor<const T>& G, const Span<const double>& ridge,
                const Rows<T>& F, int threads);

// X (p x q) holds the missing entries of the last iterate and takes those of the next; its observed
// entries are those of Z, and stay.
template <class T>
struct MissingWeights {
  double alpha;
  double eps;
  double q;

  // 1 - w of the formula above.
  double pull(T entry) const {
    const double z = static_cast<double>(entry);
    const double raised = alpha * std::pow(z * z + eps, 0.5 * q - 1.0);
    return 1.0 / (1.0 + 1.0 / raised);  // also where it is infinite
  }
};

template <class T>
void structured_rows(const Csr<T>& Z, const Factor<const T>& G, const Span<const double>& ridge,
                     const MissingWeights<T>& weights, const Rows<T>& X, const Rows<T>& F,
                     int threads);

// Steps of conjugate gradients from the rows of F towards the solutions f_i of
// (gram + ridge_i I + sum_stored g_j g_j^T) f = sum_stored z_ij g_j, in the precision of G
// (Takacs, Pilaszy and Tikk 2011); `gram` is symmetric, and `ridge` has a value for every row.
template <class T>
void conjugate_rows(const Csr<T>& Z, const Factor<const T>& G, const Rows<const T>& gram,
                    const Span<const T>& ridge, int steps, const Rows<T>& F, int threads);

}  // namespace ssnmf
