// Passes over a sparse matrix Z (p x q, by rows) and the factors F (p x R) and G (q x R).
//
// For every stored entry z_ij an operation gives a coefficient c_ij, and row i of the result is
// sum_j c_ij g_j:
//   Product   c = z                  Z G                         (Frobenius P, Kullback-Leibler N)
//   Ratio     c = z / (f_i . g_j)    (Z ./ (F G^T)) G            (Kullback-Leibler P)
//   Sampled   c = z * (f_i . g_j)    (Z .* (F G^T)) G            (Frobenius N on a pattern)
// Cost: 2R flops (Product) or 4R flops for an entry; Z is read once and nothing of its size is
// written.  `out` must not overlap F or G.
//
// Long rows are summed in parts: a float sum of millions of entries would end where an entry is
// less than its rounding.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <vector>

#include "../core/parallel.hpp"
#include "operations.hpp"
#include "rank.hpp"

namespace ssnmf {

constexpr Size kEntriesPerBlock = 16384;
constexpr Size kMostEntriesPerChunk = 64;
constexpr Size kBytesPerChunk = 16384;  // dictionary rows of a chunk stay in the first cache
constexpr Size kPrefetchDistance = 16;
constexpr Size kEntriesPerSum = 256;  // more are summed in parts

template <class T, int R>
using RowMap = Eigen::Map<const Eigen::Matrix<T, 1, R>>;

// Asks for row j = Z.indices[entry + kPrefetchDistance] of G.  Its place is known well before its
// turn, but no hardware prefetcher can guess it.  (Inlined by force: GCC takes a function that only
// prefetches for one without effect and drops the call.)
template <class T, class Index>
[[gnu::always_inline]] inline void prefetch_row(const Csr<T, Index>& Z, Size entry, Size entries,
                                                const Rows<const T>& G) {
  constexpr Size line = 64 / static_cast<Size>(sizeof(T));
  const Size ahead = std::min(entry + kPrefetchDistance, entries - 1);
  const T* g = G.row(static_cast<Size>(Z.indices[ahead]));
  for (Size k = 0; k < G.columns; k += line) {
    __builtin_prefetch(g + k);
  }
}

// f . g for a rank known to the compiler.
template <int R, class T>
T dot(const T* f, const T* g) {
  return RowMap<T, R>(f).dot(RowMap<T, R>(g));
}

// f . g for any multiple of Width.
template <int Width, class T>
T long_dot(const T* f, const T* g, Size rank) {
  Eigen::Matrix<T, 1, Width> sum;
  sum.setZero();
  for (Size k = 0; k < rank; k += Width) {
    sum += RowMap<T, Width>(f + k).cwiseProduct(RowMap<T, Width>(g + k));
  }
  return sum.sum();
}

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
template <class Op, int R, class T, class Index>
[[gnu::always_inline]] inline void add_entries(const Csr<T, Index>& Z, const T* f,
                                               const Rows<const T>& G, Size first, Size last,
                                               Eigen::Matrix<T, 1, R>& sum) {
  const Size entries = Z.entries();
  const Rows<const T> fixed{G.data, G.rows, R};
  for (Size entry = first; entry < last; ++entry) {
    prefetch_row(Z, entry, entries, fixed);
    const RowMap<T, R> g(fixed.row(static_cast<Size>(Z.indices[entry])));
    T model = T(0);
    if constexpr (Op::needs_model) {
      model = dot<R>(f, g.data());
    }
    sum += Op::coefficient(Z.value(entry), model) * g;
  }
}

// One row of the result, in parts.  (Not inlined: beside it the sum of a short row would no longer
// stay in registers.)
template <class Op, int R, class T, class Index>
[[gnu::flatten, gnu::noinline]] void long_fixed_row(const Csr<T, Index>& Z, const T* f,
                                                    const Rows<const T>& G, Size row,
                                                    const Target<T>& to, RowWorkspace<T>& work) {
  const Size last = static_cast<Size>(Z.indptr[row + 1]);
  work.begin_long_row();
  for (Size begin = static_cast<Size>(Z.indptr[row]); begin < last; begin += kEntriesPerSum) {
    Eigen::Matrix<T, 1, R> sum;
    sum.setZero();
    add_entries<Op, R>(Z, f, G, begin, std::min(begin + kEntriesPerSum, last), sum);
    Eigen::Map<Eigen::Matrix<T, 1, R>>(work.sum.data()) = sum;
    work.add_part(work.sum.data());
  }
  work.store(to, row);
}

// One row of the result, for a rank that fits in registers.
template <class Op, int R, class T, class Index>
[[gnu::flatten]] void fixed_row(const Csr<T, Index>& Z, const T* f, const Rows<const T>& G,
                                Size row, const Target<T>& to, RowWorkspace<T>& work) {
  const Size first = static_cast<Size>(Z.indptr[row]);
  const Size last = static_cast<Size>(Z.indptr[row + 1]);
  if (last - first > kEntriesPerSum) {
    long_fixed_row<Op, R>(Z, f, G, row, to, work);
    return;
  }
  Eigen::Matrix<T, 1, R> sum;
  sum.setZero();
  add_entries<Op, R>(Z, f, G, first, last, sum);
  Eigen::Map<Eigen::Matrix<T, 1, R>> out(to.out.row(row));
  if (to.accumulate) {
    out += to.scale * sum;
  } else {
    out = to.scale * sum;
  }
}

// sum[k..k+Width) += sum over the chunk of c_e g_e[k..k+Width), held in registers.
template <int Width, class T, class Index>
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
template <class Op, class T, class Index>
[[gnu::flatten]] void blocked_row(const Csr<T, Index>& Z, const T* f, const Rows<const T>& G,
                                  Size row, const Target<T>& to, RowWorkspace<T>& work) {
  const Size rank = G.columns;
  std::vector<T>& sum = work.sum;
  std::fill(sum.begin(), sum.end(), T(0));
  Size summed = 0;
  T coefficients[kMostEntriesPerChunk];
  const Size bytes = rank * static_cast<Size>(sizeof(T));
  const Size chunk = std::clamp<Size>(kBytesPerChunk / bytes, 1, kMostEntriesPerChunk);
  const Size entries = Z.entries();
  const Size first = static_cast<Size>(Z.indptr[row]);
  const Size last = static_cast<Size>(Z.indptr[row + 1]);
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
      coefficients[e] = Op::coefficient(Z.value(begin + e), model);
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
template <class T, class Index>
using RowPass = void (*)(const Csr<T, Index>& Z, const T* f, const Rows<const T>& G, Size row,
                         const Target<T>& to, RowWorkspace<T>& work);

template <class Op, class T, class Index>
RowPass<T, Index> choose_row_pass(Size rank) {
  RowPass<T, Index> chosen = nullptr;
  visit_rank<T>(rank, [&chosen](auto fixed) {
    constexpr int R = decltype(fixed)::value;
    if constexpr (R > 0) {
      chosen = &fixed_row<Op, R, T, Index>;
    } else {
      chosen = &blocked_row<Op, T, Index>;
    }
  });
  return chosen;
}

template <class T, class Index>
void run_row_pass(RowPass<T, Index> row_pass, const Csr<T, Index>& Z, const Rows<const T>& F,
                  const Rows<const T>& G, const Target<T>& to, int threads) {
  const EqualWorkBlocks<Index> blocks(Z.indptr, Z.rows, kEntriesPerBlock);
  const int team = useful_threads((Z.entries() + Z.rows) * G.columns, threads);
  const auto workspace = [&] { return RowWorkspace<T>(G.columns); };
  parallel_for(blocks.count(), team, workspace, [&](RowWorkspace<T>& work, Size block) {
    const Range range = blocks[block];
    for (Size row = range.begin; row < range.end; ++row) {
      row_pass(Z, F.data == nullptr ? nullptr : F.row(row), G, row, to, work);
    }
  });
}

template <class Op, class T, class Index>
void sparse_pass(const Csr<T, Index>& Z, const Rows<const T>& F, const Rows<const T>& G,
                 const Target<T>& to, int threads) {
  run_row_pass(choose_row_pass<Op, T, Index>(G.columns), Z, F, G, to, threads);
}

// Sum of the loss over the stored entries; weights == nullptr stands for ones.
template <class Loss, class T, class Index>
double sparse_loss(const Csr<T, Index>& Z, const T* weights, const Rows<const T>& F,
                   const Rows<const T>& G, int threads) {
  const EqualWorkBlocks<Index> blocks(Z.indptr, Z.rows, kEntriesPerBlock);
  const int team = useful_threads((Z.entries() + Z.rows) * G.columns, threads);
  struct Workspace {
    T values[kLossRun];
    T models[kLossRun];
  };
  const auto workspace = [] { return Workspace{}; };
  return ordered_sum(blocks.count(), team, workspace, [&](Workspace& work, Size block) {
    const Range range = blocks[block];
    double part = 0.0;
    for (Size row = range.begin; row < range.end; ++row) {
      const Size last = static_cast<Size>(Z.indptr[row + 1]);
      for (Size begin = static_cast<Size>(Z.indptr[row]); begin < last; begin += kLossRun) {
        const Size count = std::min<Size>(kLossRun, last - begin);
        for (Size e = 0; e < count; ++e) {
          prefetch_row(Z, begin + e, Z.entries(), G);
          const T* g = G.row(static_cast<Size>(Z.indices[begin + e]));
          work.values[e] = Z.value(begin + e);
          work.models[e] = long_dot<kNarrowestRank>(F.row(row), g, G.columns);
        }
        part += Loss::of(work.values, work.models, weights == nullptr ? nullptr : weights + begin,
                         count);
      }
    }
    return part;
  });
}

}  // namespace ssnmf
