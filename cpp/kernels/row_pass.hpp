// A pass row by row, over whatever gives the rows that its entries name.
//
// Long rows are summed in parts: a float sum of millions of entries would end where an entry is
// less than its rounding.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <vector>

#include "entry_models.hpp"
#include "entry_rows.hpp"
#include "long_rows.hpp"
#include "operations.hpp"
#include "passes.hpp"
#include "row_batch.hpp"
#include "square.hpp"

namespace ssnmf {

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

template <class Op, int R, class T, class Gather>
SSNMF_INLINE void add_entry(const Op& op, const Csr<T>& Z, const T* f, const Gather& gather,
                            Size entry, Eigen::Matrix<T, 1, R>& sum) {
  gather.template prefetch<R>(entry);
  const auto& g = gather.template row<R, R>(entry);
  T model = T(0);
  if constexpr (Op::needs_model) {
    model = RowMap<T, R>(f).dot(g);
  }
  const T coefficient = op.coefficient(Z.value(entry), model);
  if constexpr (Op::keeps) {
    op.keep(entry, coefficient);
  }
  sum += coefficient * g;
}

// The sum over some entries of a row, for a rank that fits in registers.  (Inlined by force, and
// the functions around it flattened: in a large file GCC stops inlining parts of Eigen's
// expressions, at up to twice the time.)
template <class Op, int R, class T, class Gather>
SSNMF_INLINE void add_entries(const Op& op, const Csr<T>& Z, const T* f, const Gather& gather,
                              Size first, Size last, Eigen::Matrix<T, 1, R>& sum) {
  Size entry = first;
  if constexpr (Op::by_registers && RowBatch<T, R>::fits) {
    constexpr int size = RowBatch<T, R>::size;
    for (; entry + size <= last; entry += size) {
      for (int e = 0; e < size; ++e) {
        gather.template prefetch<R>(entry + e);
      }
      T models[size];
      T coefficients[size];
      RowBatch<T, R> batch;
      batch.dots(f, gather, entry, models);
      coefficients_of<size>(op, Z, entry, size, models, coefficients);
      batch.add_to(coefficients, sum.data());
    }
  }
  constexpr int kSums = sums_side_by_side<T, R>();
  if constexpr (kSums > 1 && Gather::in_place) {
    Eigen::Matrix<T, 1, R> sums[kSums - 1];
    for (auto& other : sums) {
      other.setZero();
    }
    for (; entry + kSums <= last; entry += kSums) {
      add_entry<Op, R>(op, Z, f, gather, entry, sum);
      for (int e = 1; e < kSums; ++e) {
        add_entry<Op, R>(op, Z, f, gather, entry + e, sums[e - 1]);
      }
    }
    for (const auto& other : sums) {
      sum += other;
    }
  }
  for (; entry < last; ++entry) {
    add_entry<Op, R>(op, Z, f, gather, entry, sum);
  }
}

// One row of the result, in parts.  (Not inlined: beside it the sum of a short row would no longer
// stay in registers.)
template <class Op, int R, class T, class Gather>
SSNMF_FLATTEN SSNMF_APART void long_fixed_row(const Op& op, const Csr<T>& Z, const T* f,
                                              const Gather& gather, Size row, const Target<T>& to,
                                              RowWorkspace<T>& work) {
  const Size last = Z.indptr[row + 1];
  work.begin_long_row();
  for (Size begin = Z.indptr[row]; begin < last; begin += kEntriesPerSum) {
    Eigen::Matrix<T, 1, R> sum;
    sum.setZero();
    add_entries<Op, R>(op, Z, f, gather, begin, std::min(begin + kEntriesPerSum, last), sum);
    Eigen::Map<Eigen::Matrix<T, 1, R>>(work.sum.data()) = sum;
    work.add_part(work.sum.data());
  }
  work.store(to, row);
}

// One row of the result, for a rank that fits in registers.
template <class Op, int R, class T, class Gather>
SSNMF_FLATTEN void fixed_row(const Op& op, const Csr<T>& Z, const T* f, const Gather& gather,
                             Size row, const Target<T>& to, RowWorkspace<T>& work) {
  const Size first = Z.indptr[row];
  const Size last = Z.indptr[row + 1];
  if (last - first > kEntriesPerSum) {
    long_fixed_row<Op, R>(op, Z, f, gather, row, to, work);
    return;
  }
  Eigen::Matrix<T, 1, R> sum;
  sum.setZero();
  add_entries<Op, R>(op, Z, f, gather, first, last, sum);
  Eigen::Map<Eigen::Matrix<T, 1, R>> out(to.out.row(row));
  if (to.accumulate) {
    out += to.scale * sum;
  } else {
    out = to.scale * sum;
  }
}

// sum[k..k+Width) += sum over the chunk of c_e g_e[k..k+Width), held in registers.
template <int Width, class T, class Gather>
void add_columns(const T* coefficients, const Gather& gather, Size first, Size count, Size k,
                 T* sum) {
  Eigen::Matrix<T, 1, Width> part = RowMap<T, Width>(sum + k);
  for (Size e = 0; e < count; ++e) {
    part += coefficients[e] * gather.template row<0, Width>(first + e, k);
  }
  Eigen::Map<Eigen::Matrix<T, 1, Width>>(sum + k) = part;
}

// One row of the result for a large rank: a whole accumulator would spill, so that a chunk's
// coefficients come first, and the sum follows by column blocks.
template <class Op, int Block, class T, class Gather>
SSNMF_FLATTEN void blocked_row(const Op& op, const Csr<T>& Z, const T* f, const Gather& gather,
                               Size row, const Target<T>& to, RowWorkspace<T>& work) {
  const Size rank = gather.rank();
  std::vector<T>& sum = work.sum;
  std::fill(sum.begin(), sum.end(), T(0));
  Size summed = 0;
  T models[kMostEntriesPerChunk];
  T coefficients[kMostEntriesPerChunk];
  const Size bytes = rank * static_cast<Size>(sizeof(T));
  const Size chunk = std::clamp<Size>(kBytesPerChunk / bytes, 1, kMostEntriesPerChunk);
  const Size first = Z.indptr[row];
  const Size last = Z.indptr[row + 1];
  const bool long_row = last - first > kEntriesPerSum;
  if (long_row) {
    work.begin_long_row();
  }
  for (Size begin = first; begin < last; begin += chunk) {
    const Size count = std::min(chunk, last - begin);
    if constexpr (Op::needs_model) {
      entry_models<0, Block>(gather, f, begin, count, models);
    } else {
      for (Size e = 0; e < count; ++e) {
        gather.template prefetch<0>(begin + e);
        models[e] = T(0);
      }
    }
    coefficients_of<kRegisterLanes<T>>(op, Z, begin, count, models, coefficients);
    Size k = 0;
    for (; k + 2 * Block <= rank; k += 2 * Block) {
      add_columns<2 * Block>(coefficients, gather, begin, count, k, sum.data());
    }
    for (; k < rank; k += Block) {
      add_columns<Block>(coefficients, gather, begin, count, k, sum.data());
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

template <class T>
const T* row_or_null(const Rows<const T>& F, Size row) {
  return F.data == nullptr ? nullptr : F.row(row);
}

// Row i of the result.
template <class Op, class T, class Gather>
using RowPass = void (*)(const Op& op, const Csr<T>& Z, const T* f, const Gather& gather, Size row,
                         const Target<T>& to, RowWorkspace<T>& work);

template <class Op, class T, class Gather>
RowPass<Op, T, Gather> choose_row_pass(Size rank) {
  if constexpr (!Gather::known_ranks || !Op::known_ranks) {
    return &blocked_row<Op, kNarrowestRank, T, Gather>;
  }
  RowPass<Op, T, Gather> chosen = nullptr;
  visit_rank<T>(rank, [&chosen](auto fixed) {
    constexpr int R = decltype(fixed)::value;
    if constexpr (R > 0) {
      chosen = &fixed_row<Op, R, T, Gather>;
    } else {
      chosen = &blocked_row<Op, kColumnBlock, T, Gather>;
    }
  });
  return chosen;
}

// One row of the result: its pieces are rows of a matrix of their own, summed in their order.
template <class Op, class T, class Gather>
void row_in_pieces(const Op& op, RowPass<Op, T, Gather> row_pass, const Csr<T>& Z, const T* f,
                   const Gather& gather, Size row, const Target<T>& to, int team) {
  const Size rank = gather.rank();
  const Size first = Z.indptr[row];
  const EvenBlocks pieces(Z.indptr[row + 1] - first, kEntriesPerBlock);
  std::vector<Size> bounds{first};
  for (Size piece = 0; piece < pieces.count(); ++piece) {
    bounds.push_back(first + pieces[piece].end);
  }
  Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> sums(pieces.count(), rank);
  const Csr<T> cut{bounds.data(), Z.indices, Z.values, pieces.count()};
  const Target<T> parts{{sums.data(), pieces.count(), rank}, T(1), false};
  const auto workspace = [rank] { return RowWorkspace<T>(rank); };
  parallel_for(pieces.count(), team, workspace, [&](RowWorkspace<T>& work, Size piece) {
    row_pass(op, cut, f, gather, piece, parts, work);
  });
  RowWorkspace<T> whole(rank);
  whole.begin_long_row();
  for (Size piece = 0; piece < pieces.count(); ++piece) {
    whole.add_part(parts.out.row(piece));
  }
  whole.store(to, row);
}

// The pass of an operation over all rows but those that apart(row) says it has done.
template <class Op, class T, class Gather, class Apart>
void gathered_pass(const Op& op, RowPass<Op, T, Gather> row_pass, const Csr<T>& Z,
                   const Rows<const T>& F, const Gather& gather, const Target<T>& to, int threads,
                   const Apart& apart) {
  const Size rank = gather.rank();
  const EqualWorkBlocks blocks(Z.indptr, Z.rows, kEntriesPerBlock);
  const int team = useful_threads((Z.entries() + Z.rows) * rank, threads);
  const auto workspace = [rank] { return RowWorkspace<T>(rank); };
  parallel_for(blocks.count(), team, workspace, [&](RowWorkspace<T>& work, Size block) {
    const Range range = blocks[block];
    for (Size row = range.begin; row < range.end; ++row) {
      if (Z.indptr[row + 1] - Z.indptr[row] <= kLongestRow && !apart(row)) {
        row_pass(op, Z, row_or_null(F, row), gather, row, to, work);
      }
    }
  });
  for (const Size row : longest_rows(Z.indptr, Z.rows, team)) {
    row_in_pieces(op, row_pass, Z, row_or_null(F, row), gather, row, to, team);
  }
}

template <class Op, class T, class Gather>
void gathered_pass(const Op& op, const Csr<T>& Z, const Rows<const T>& F, const Gather& gather,
                   const Target<T>& to, int threads) {
  const auto row_pass = choose_row_pass<Op, T, Gather>(gather.rank());
  gathered_pass(op, row_pass, Z, F, gather, to, threads, [](Size) { return false; });
}

}  // namespace ssnmf
