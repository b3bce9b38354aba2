// Long rows are summed in parts: a float sum of millions of entries would end where an entry is
// less than its rounding.
#include <Eigen/Core>
#include <algorithm>
#include <vector>

#include "entry_rows.hpp"
#include "operations.hpp"
#include "passes.hpp"

namespace ssnmf {
namespace {

// What a thread needs for one row after the other.
template <class T>
struct RowWorkspace {
  std::vector<T> sum;         // R, for large ranks
  std::vector<double> total;  // R, of the parts of a long row

  explicit RowWorkspace(Size rank)
      : sum(static_cast<std::size_t>(rank)), total(static_cast<std::size_t>(rank)) {}

  // Moves a part of a long row from its sum to the total.
  void begin_long_row() { std::fill(total.begin(), total.end(), 0.0); }
  void add_part(const T* part) {
    for (std::size_t k = 0; k < total.size(); ++k) {
      total[k] += static_cast<double>(part[k]);
    }
  }
  void store(const Target<T>& to, Size row) const {
    for (std::size_t k = 0; k < total.size(); ++k) {
      to.store(row, static_cast<Size>(k), static_cast<T>(total[k]));
    }
  }
};

// The sum over some entries of a row, for a rank that fits in registers.  (Inlined by force, and
// the functions around it flattened: in a large file GCC stops inlining parts of Eigen's
// expressions, at up to twice the time.)
template <class Op, int R, class T>
SSNMF_INLINE void add_entries(const Op& op, const Csr<T>& Z, const T* f, const Rows<const T>& G,
                              Size first, Size last, Eigen::Matrix<T, 1, R>& sum) {
  const Size entries = Z.entries();
  const Rows<const T> fixed{G.data, G.rows, R};
  for (Size entry = first; entry < last; ++entry) {
    prefetch_row(Z, entry, entries, fixed);
    const RowMap<T, R> g(fixed.row(static_cast<Size>(Z.indices[entry])));
    T model = T(0);
    if constexpr (Op::needs_model) {
      model = dot<R>(f, g.data());
    }
    sum += op.coefficient(Z.value(entry), model) * g;
  }
}

// One row of the result, in parts.  (Not inlined: beside it the sum of a short row would no longer
// stay in registers.)
template <class Op, int R, class T>
SSNMF_FLATTEN SSNMF_APART void long_fixed_row(const Op& op, const Csr<T>& Z, const T* f,
                                              const Rows<const T>& G, Size row, const Target<T>& to,
                                              RowWorkspace<T>& work) {
  const Size last = Z.indptr[row + 1];
  work.begin_long_row();
  for (Size begin = Z.indptr[row]; begin < last; begin += kEntriesPerSum) {
    Eigen::Matrix<T, 1, R> sum;
    sum.setZero();
    add_entries<Op, R>(op, Z, f, G, begin, std::min(begin + kEntriesPerSum, last), sum);
    Eigen::Map<Eigen::Matrix<T, 1, R>>(work.sum.data()) = sum;
    work.add_part(work.sum.data());
  }
  work.store(to, row);
}

// One row of the result, for a rank that fits in registers.
template <class Op, int R, class T>
SSNMF_FLATTEN void fixed_row(const Op& op, const Csr<T>& Z, const T* f, const Rows<const T>& G,
                             Size row, const Target<T>& to, RowWorkspace<T>& work) {
  const Size first = Z.indptr[row];
  const Size last = Z.indptr[row + 1];
  if (last - first > kEntriesPerSum) {
    long_fixed_row<Op, R>(op, Z, f, G, row, to, work);
    return;
  }
  Eigen::Matrix<T, 1, R> sum;
  sum.setZero();
  add_entries<Op, R>(op, Z, f, G, first, last, sum);
  Eigen::Map<Eigen::Matrix<T, 1, R>> out(to.out.row(row));
  if (to.accumulate) {
    out += to.scale * sum;
  } else {
    out = to.scale * sum;
  }
}

// sum[k..k+Width) += sum over the chunk of c_e g_e[k..k+Width), held in registers.
template <int Width, class T>
void add_columns(const T* coefficients, const Index* indices, Size count, const Rows<const T>& G,
                 Size k, T* sum) {
  Eigen::Matrix<T, 1, Width> part = RowMap<T, Width>(sum + k);
  for (Size e = 0; e < count; ++e) {
    part += coefficients[e] * RowMap<T, Width>(G.row(static_cast<Size>(indices[e])) + k);
  }
  Eigen::Map<Eigen::Matrix<T, 1, Width>>(sum + k) = part;
}

// One row of the result for a large rank: a whole accumulator would spill, so that a chunk's
// coefficients come first, and the sum follows by column blocks.
template <class Op, class T>
SSNMF_FLATTEN void blocked_row(const Op& op, const Csr<T>& Z, const T* f, const Rows<const T>& G,
                               Size row, const Target<T>& to, RowWorkspace<T>& work) {
  const Size rank = G.columns;
  std::vector<T>& sum = work.sum;
  std::fill(sum.begin(), sum.end(), T(0));
  Size summed = 0;
  T coefficients[kMostEntriesPerChunk];
  const Size bytes = rank * static_cast<Size>(sizeof(T));
  const Size chunk = std::clamp<Size>(kBytesPerChunk / bytes, 1, kMostEntriesPerChunk);
  const Size entries = Z.entries();
  const Size first = Z.indptr[row];
  const Size last = Z.indptr[row + 1];
  const bool long_row = last - first > kEntriesPerSum;
  if (long_row) {
    work.begin_long_row();
  }
  for (Size begin = first; begin < last; begin += chunk) {
    const Size count = std::min(chunk, last - begin);
    const Index* indices = Z.indices + begin;
    for (Size e = 0; e < count; ++e) {
      prefetch_row(Z, begin + e, entries, G);
      T model = T(0);
      if constexpr (Op::needs_model) {
        model = long_dot<kRankBlock>(f, G.row(static_cast<Size>(indices[e])), rank);
      }
      coefficients[e] = op.coefficient(Z.value(begin + e), model);
    }
    Size k = 0;
    for (; k + 2 * kRankBlock <= rank; k += 2 * kRankBlock) {
      add_columns<2 * kRankBlock>(coefficients, indices, count, G, k, sum.data());
    }
    for (; k < rank; k += kRankBlock) {
      add_columns<kRankBlock>(coefficients, indices, count, G, k, sum.data());
    }
    summed += count;
    if (long_row && summed >= kEntriesPerSum) {
      work.add_part(sum.data());
      std::fill(sum.begin(), sum.end(), T(0));
      summed = 0;
    }
  }
  if (long_row) {
    work.add_part(sum.data());
    work.store(to, row);
    return;
  }
  for (Size k = 0; k < rank; ++k) {
    to.store(row, k, sum[static_cast<std::size_t>(k)]);
  }
}

// Row i of the result.
template <class Op, class T>
using RowPass = void (*)(const Op& op, const Csr<T>& Z, const T* f, const Rows<const T>& G,
                         Size row, const Target<T>& to, RowWorkspace<T>& work);

template <class Op, class T>
RowPass<Op, T> choose_row_pass(Size rank) {
  RowPass<Op, T> chosen = nullptr;
  visit_rank<T>(rank, [&chosen](auto fixed) {
    constexpr int R = decltype(fixed)::value;
    if constexpr (R > 0) {
      chosen = &fixed_row<Op, R, T>;
    } else {
      chosen = &blocked_row<Op, T>;
    }
  });
  return chosen;
}

}  // namespace

template <class T>
void sparse_pass(Operation operation, const Csr<T>& Z, const Rows<const T>& F,
                 const Rows<const T>& G, const Target<T>& to, int threads) {
  const EqualWorkBlocks blocks(Z.indptr, Z.rows, kEntriesPerBlock);
  const int team = useful_threads((Z.entries() + Z.rows) * G.columns, threads);
  const auto workspace = [&] { return RowWorkspace<T>(G.columns); };
  visit_operation(operation, [&](const auto& op) {
    const auto row_pass = choose_row_pass<std::decay_t<decltype(op)>, T>(G.columns);
    parallel_for(blocks.count(), team, workspace, [&](RowWorkspace<T>& work, Size block) {
      const Range range = blocks[block];
      for (Size row = range.begin; row < range.end; ++row) {
        row_pass(op, Z, F.data == nullptr ? nullptr : F.row(row), G, row, to, work);
      }
    });
  });
}

#define SSNMF_INSTANTIATE(T)                                                   \
  template void sparse_pass<T>(Operation, const Csr<T>&, const Rows<const T>&, \
                               const Rows<const T>&, const Target<T>&, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
