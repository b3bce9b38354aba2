// The columns are cut into ranges, one thread works on each, and finds its part of every row by
// bisection.  What is added to a column is added in the order of the rows, wherever the cuts are.
#include <algorithm>

#include "entry_rows.hpp"
#include "operations.hpp"
#include "passes.hpp"

namespace ssnmf {
namespace {

// out_j += c g_i for any multiple of Width.
template <int Width, class T>
void add_multiple(T c, const T* g, Size rank, T* out) {
  for (Size k = 0; k < rank; k += Width) {
    Eigen::Map<Eigen::Matrix<T, 1, Width>>(out + k) += c * RowMap<T, Width>(g + k);
  }
}

// The entries of one row within [first, last).
template <class Op, int Width, class T>
SSNMF_FLATTEN void scatter_row(const Op& op, const Csr<T>& Z, Size first, Size last,
                               const Rows<const T>& F, const T* g, T scale, const Rows<T>& out) {
  for (Size entry = first; entry < last; ++entry) {
    const Size j = static_cast<Size>(Z.indices[entry]);
    prefetch_row(Z, entry, last, Rows<const T>{out.data, out.rows, out.columns});
    T model = T(0);
    if constexpr (Op::needs_model) {
      prefetch_row(Z, entry, last, F);
      model = long_dot<Width>(F.row(j), g, out.columns);
    }
    add_multiple<Width>(scale * op.coefficient(Z.value(entry), model), g, out.columns, out.row(j));
  }
}

}  // namespace

template <class T>
void scatter_pass(Operation operation, const Csr<T>& Z, const Rows<const T>& F,
                  const Rows<const T>& G, const Span<const Size>& bounds, T scale,
                  const Rows<T>& out, int threads) {
  const bool wide = out.columns % kRankBlock == 0;
  const int team = useful_threads((Z.entries() + Z.rows) * out.columns, threads);
  visit_operation(operation, [&](const auto& op) {
    using Op = std::decay_t<decltype(op)>;
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
          scatter_row<Op, kRankBlock>(op, Z, first, last, F, G.row(row), scale, out);
        } else {
          scatter_row<Op, kNarrowestRank>(op, Z, first, last, F, G.row(row), scale, out);
        }
      }
    });
  });
}

#define SSNMF_INSTANTIATE(T)                                                                      \
  template void scatter_pass<T>(Operation, const Csr<T>&, const Rows<const T>&,                   \
                                const Rows<const T>&, const Span<const Size>&, T, const Rows<T>&, \
                                int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
