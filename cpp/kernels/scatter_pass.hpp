// Passes over a sparse matrix Z (p x q, by rows) for the factor of its columns, without a
// transposed copy of Z:
//   out_j += scale * sum_i c_ij g_i,   F and out: q x R,   G: p x R,   c_ij as in sparse_pass.hpp.
//
// The columns are cut into ranges, one thread works on each, and finds its part of every row (the
// rows are sorted) by bisection.  What is added to a column is added in the order of the rows,
// wherever the cuts are: the same bits for any number of ranges and threads.
#pragma once

#include <algorithm>

#include "sparse_pass.hpp"

namespace ssnmf {

// out_j += c g_i for any multiple of Width.
template <int Width, class T>
void add_multiple(T c, const T* g, Size rank, T* out) {
  for (Size k = 0; k < rank; k += Width) {
    Eigen::Map<Eigen::Matrix<T, 1, Width>>(out + k) += c * RowMap<T, Width>(g + k);
  }
}

// The entries of one row within [first, last).
template <class Op, int Width, class T, class Index>
[[gnu::flatten]] void scatter_row(const Csr<T, Index>& Z, Size first, Size last,
                                  const Rows<const T>& F, const T* g, T scale, const Rows<T>& out) {
  for (Size entry = first; entry < last; ++entry) {
    const Size j = static_cast<Size>(Z.indices[entry]);
    prefetch_row(Z, entry, last, Rows<const T>{out.data, out.rows, out.columns});
    T model = T(0);
    if constexpr (Op::needs_model) {
      prefetch_row(Z, entry, last, F);
      model = long_dot<Width>(F.row(j), g, out.columns);
    }
    add_multiple<Width>(scale * Op::coefficient(Z.value(entry), model), g, out.columns, out.row(j));
  }
}

// bounds.data: the first column of each range, and the number of columns; F.data may be null for an
// operation that needs no model.
template <class Op, class T, class Index>
void scatter_pass(const Csr<T, Index>& Z, const Rows<const T>& F, const Rows<const T>& G,
                  const Span<const std::int64_t>& bounds, T scale, const Rows<T>& out,
                  int threads) {
  const bool wide = out.columns % kRankBlock == 0;
  const int team = useful_threads((Z.entries() + Z.rows) * out.columns, threads);
  parallel_for(bounds.size - 1, team, [&](Size range) {
    const Index low = static_cast<Index>(bounds.data[range]);
    const Index high = static_cast<Index>(bounds.data[range + 1]);
    for (Size row = 0; row < Z.rows; ++row) {
      const Index* begin = Z.indices + Z.indptr[row];
      const Index* end = Z.indices + Z.indptr[row + 1];
      const Index* from = low == 0 ? begin : std::lower_bound(begin, end, low);
      const Index* to = high == out.rows ? end : std::lower_bound(from, end, high);
      const Size first = static_cast<Size>(from - Z.indices);
      const Size last = static_cast<Size>(to - Z.indices);
      end_if_interrupted((1 + last - first) * out.columns);
      if (wide) {
        scatter_row<Op, kRankBlock>(Z, first, last, F, G.row(row), scale, out);
      } else {
        scatter_row<Op, kNarrowestRank>(Z, first, last, F, G.row(row), scale, out);
      }
    }
  });
}

}  // namespace ssnmf
