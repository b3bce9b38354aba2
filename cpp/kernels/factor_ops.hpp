// Operations on factors alone: G (q x R), F (p x R), all by rows.  weights.data == nullptr stands
// for ones.
#pragma once

#include <algorithm>

#include "../core/views.hpp"

namespace ssnmf {

constexpr Size kRowsPerBlock = 256;

// Blocks whose sums are kept apart, so that as many threads may work: of so many values each.
constexpr Size most_partials(Size values) {
  constexpr Size kValues = Size(1) << 20;
  constexpr Size kLeast = 16;
  constexpr Size kMost = 256;
  return std::clamp(kValues / std::max<Size>(values, 1), kLeast, kMost);
}

// F^T diag(weights) G into out (R x C).
template <class T>
void cross(const Rows<const T>& F, const Rows<const T>& G, const Span<const T>& weights,
           const Rows<T>& out, int threads);

// G^T diag(weights) G into out (R x R).
template <class T>
void gram(const Rows<const T>& G, const Span<const T>& weights, const Rows<T>& out, int threads) {
  cross<T>(G, G, weights, out, threads);
}

// G^T weights into out (R).
template <class T>
void column_sums(const Rows<const T>& G, const Span<const T>& weights, T* out, int threads);

// diag(row_scale) F K, with K of R x C.
template <class T>
void multiply(const Rows<const T>& F, const Rows<const T>& K, const Span<const T>& row_scale,
              const Target<T>& to, int threads);

// row_scale vector^T: every row a multiple of one vector (R).
template <class T>
void add_row(const T* vector, const Span<const T>& row_scale, const Target<T>& to, int threads);

// Sum of F .* P.
template <class T>
double inner(const Rows<const T>& F, const Rows<const T>& P, int threads);

}  // namespace ssnmf
