// The columns are cut into ranges, one thread works on each, and finds its part of every row by
// bisection.  What is added to a column is added in the order of the rows, wherever the cuts are.
#include <algorithm>

#include "entry_rows.hpp"
#include "operations.hpp"
#include "passes.hpp"
#include "row_batch.hpp"

namespace ssnmf {
namespace {

// The part of one row within some columns.
template <class T>
struct Part {
  const Csr<T>& Z;
  Size first;  // of its entries
  Size last;
  const Rows<const T>& F;
  const T* g;
  T scale;
  const Rows<T>& out;

  const T* f(Size entry) const { return F.row(static_cast<Size>(Z.indices[entry])); }
};

// The row of G stays in registers, or in the first cache.
template <class Op, int R, class T>
SSNMF_FLATTEN void scatter_row(const Op& op, const Part<T>& part) {
  const Csr<T>& Z = part.Z;
  const auto ahead = [&part, &Z](Size entry) {
    prefetch_row(Z, entry, part.last, Rows<const T>{part.out.data, part.out.rows, R});
    if constexpr (Op::needs_model) {
      prefetch_row(Z, entry, part.last, Rows<const T>{part.F.data, part.F.rows, R});
    }
  };
  const auto add = [&part, &Z](Size entry, T coefficient) {
    T* out = part.out.data + static_cast<Size>(Z.indices[entry]) * R;
    Eigen::Map<Eigen::Matrix<T, 1, R>>{out} += part.scale * coefficient * RowMap<T, R>(part.g);
  };
  if constexpr (!in_batches<Op>(RowBatch<T, R>::fits)) {
    for (Size entry = part.first; entry < part.last; ++entry) {
      ahead(entry);
      T model = T(0);
      if constexpr (Op::needs_model) {
        model = dot<R>(part.f(entry), part.g);
      }
      add(entry, op.coefficient(Z.value(entry), model));
    }
  } else {
    // The last batch is computed as if it were full: where a row is cut depends on the number of
    // threads, and an entry must have the same bits in any batch.
    constexpr int size = RowBatch<T, R>::size;
    for (Size entry = part.first; entry < part.last; entry += size) {
      const Size count = std::min<Size>(size, part.last - entry);
      alignas(kRegisterBytes) T models[size];
      alignas(kRegisterBytes) T coefficients[size];
      for (Size e = 0; e < count; ++e) {
        ahead(entry + e);
      }
      const T* values = Z.values_or_ones(entry);
      alignas(kRegisterBytes) T few[size] = {};
      if (count < size) {
        values = std::copy(values, values + count, few) - count;
      }
      const auto row = [&](Size e) { return part.f(std::min(entry + e, part.last - 1)); };
      RowBatch<T, R>().dots(part.g, row, models);
      op.template coefficients<size>(values, models, coefficients);
      for (Size e = 0; e < count; ++e) {
        add(entry + e, coefficients[e]);
      }
    }
  }
}

// The same for a large rank, in column blocks.
template <class Op, class T>
SSNMF_FLATTEN void scatter_long_row(const Op& op, const Part<T>& part) {
  const Csr<T>& Z = part.Z;
  const Size rank = part.out.columns;
  for (Size entry = part.first; entry < part.last; ++entry) {
    prefetch_row(Z, entry, part.last, Rows<const T>{part.out.data, part.out.rows, rank});
    T model = T(0);
    if constexpr (Op::needs_model) {
      prefetch_row(Z, entry, part.last, part.F);
      model = long_dot<kRankBlock>(part.f(entry), part.g, rank);
    }
    const T coefficient = part.scale * op.coefficient(Z.value(entry), model);
    T* out = part.out.row(static_cast<Size>(Z.indices[entry]));
    for (Size k = 0; k < rank; k += kRankBlock) {
      using Block = Eigen::Matrix<T, 1, kRankBlock>;
      Eigen::Map<Block>(out + k) += coefficient * RowMap<T, kRankBlock>(part.g + k);
    }
  }
}

template <class Op, class T>
using ScatterRow = void (*)(const Op& op, const Part<T>& part);

template <class Op, class T>
ScatterRow<Op, T> choose_scatter_row(Size rank) {
  ScatterRow<Op, T> chosen = nullptr;
  visit_rank<T>(rank, [&chosen](auto fixed) {
    constexpr int R = decltype(fixed)::value;
    if constexpr (R > 0) {
      chosen = &scatter_row<Op, R, T>;
    } else {
      chosen = &scatter_long_row<Op, T>;
    }
  });
  return chosen;
}

}  // namespace

template <class T>
void scatter_pass(Operation operation, const Csr<T>& Z, const Rows<const T>& F,
                  const Rows<const T>& G, const Span<const Size>& bounds, T scale,
                  const Rows<T>& out, int threads) {
  const int team = useful_threads((Z.entries() + Z.rows) * out.columns, threads);
  visit_operation(operation, [&](const auto& op) {
    const auto scatter = choose_scatter_row<std::decay_t<decltype(op)>, T>(out.columns);
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
        scatter(op, Part<T>{Z, first, last, F, G.row(row), scale, out});
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
