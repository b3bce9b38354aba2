#include "completion_pass.hpp"

#include <Eigen/Core>
#include <algorithm>

#include "../core/compiler.hpp"
#include "../core/parallel.hpp"
#include "entry_rows.hpp"
#include "gemm.hpp"
#include "shrink.hpp"

namespace ssnmf {
namespace {

constexpr Size kMappedRows = 96;
constexpr Size kMappedColumns = 256;

// One row of residual_step: residuals and their product with G in one visit of the rows of G.
template <int R, class T>
SSNMF_FLATTEN void residual_row(const Csr<T>& Z, const T* f, const Rows<const T>& G, Size row,
                                T* residuals, T* out) {
  const Size first = Z.indptr[row];
  const Size last = Z.indptr[row + 1];
  const Rows<const T> fixed{G.data, G.rows, R};
  Eigen::Map<Eigen::Matrix<T, 1, R>> target(out);
  target = RowMap<T, R>(f);
  for (Size begin = first; begin < last; begin += kEntriesPerSum) {
    const Size end = std::min(begin + kEntriesPerSum, last);
    Eigen::Matrix<T, 1, R> sum = target;
    if (begin > first) {
      sum.setZero();
    }
    for (Size entry = begin; entry < end; ++entry) {
      prefetch_row(Z, entry, Z.entries(), fixed);
      const RowMap<T, R> g(fixed.row(static_cast<Size>(Z.indices[entry])));
      const T residual = Z.value(entry) - dot<R>(f, g.data());
      residuals[entry] = residual;
      sum += residual * g;
    }
    if (begin > first) {
      target += sum;
    } else {
      target = sum;
    }
  }
}

// The same for a rank that does not fit in the registers.
template <class T>
SSNMF_FLATTEN void wide_residual_row(const Csr<T>& Z, const T* f, const Rows<const T>& G, Size row,
                                     T* residuals, T* out) {
  const Size last = Z.indptr[row + 1];
  std::copy(f, f + G.columns, out);
  for (Size entry = Z.indptr[row]; entry < last; ++entry) {
    prefetch_row(Z, entry, Z.entries(), G);
    const T* g = G.row(static_cast<Size>(Z.indices[entry]));
    residuals[entry] = Z.value(entry) - long_dot<kColumnBlock>(f, g, G.columns);
    for (Size k = 0; k < G.columns; k += kColumnBlock) {
      Eigen::Map<Eigen::Matrix<T, 1, kColumnBlock>>(out + k) +=
          residuals[entry] * RowMap<T, kColumnBlock>(g + k);
    }
  }
}

}  // namespace

template <class T>
void residual_step(const Csr<T>& Z, const Rows<const T>& F, const Rows<const T>& G, T* residuals,
                   const Rows<T>& out, int threads) {
  const EqualWorkBlocks blocks(Z.indptr, Z.rows, kEntriesPerBlock);
  const int team = useful_threads((Z.entries() + Z.rows) * G.columns, threads);
  visit_rank<T>(G.columns, [&](auto fixed) {
    constexpr int R = decltype(fixed)::value;
    parallel_for(blocks.count(), team, [&](Size block) {
      const Range range = blocks[block];
      for (Size row = range.begin; row < range.end; ++row) {
        if constexpr (R > 0) {
          residual_row<R>(Z, F.row(row), G, row, residuals, out.row(row));
        } else {
          wide_residual_row(Z, F.row(row), G, row, residuals, out.row(row));
        }
      }
    });
  });
}

namespace {

// scale f . g at the stored entries of some rows.
template <int R, class T>
SSNMF_FLATTEN void model_rows(const Csr<T>& Z, const Rows<const T>& F, const Rows<const T>& G,
                              Range rows, T scale, T* out) {
  for (Size row = rows.begin; row < rows.end; ++row) {
    const Size last = Z.indptr[row + 1];
    for (Size entry = Z.indptr[row]; entry < last; ++entry) {
      prefetch_row(Z, entry, Z.entries(), G);
      const T* g = G.row(static_cast<Size>(Z.indices[entry]));
      if constexpr (R > 0) {
        out[entry] = scale * dot<R>(F.row(row), g);
      } else {
        out[entry] = scale * long_dot<kColumnBlock>(F.row(row), g, G.columns);
      }
    }
  }
}

}  // namespace

template <class T>
void mapped_residuals(const Csr<T>& Z, const Rows<const T>& F, const Rows<const T>& G, T scale,
                      const Shrinkage<T>& shrinkage, T* out, int threads) {
  const Shrink<T> shrink{shrinkage};
  const EqualWorkBlocks blocks(Z.indptr, Z.rows, kEntriesPerBlock);
  const int team = useful_threads((Z.entries() + Z.rows) * G.columns, threads);
  visit_rank<T>(G.columns, [&](auto fixed) {
    constexpr int R = decltype(fixed)::value;
    parallel_for(blocks.count(), team, [&](Size block) {
      const Range range = blocks[block];
      const Size first = Z.indptr[range.begin];
      const Size last = Z.indptr[range.end];
      model_rows<R>(Z, F, G, range, scale, out);
      shrink.apply(out + first, last - first);
      for (Size entry = first; entry < last; ++entry) {
        out[entry] = Z.value(entry) - out[entry];
      }
    });
  });
}

template <class T>
void add_mapped_product(const Rows<const T>& F, const Rows<const T>& G, const Rows<const T>& H,
                        const Shrinkage<T>& shrinkage, const Rows<T>& out, int threads) {
  const Shrink<T> shrink{shrinkage};
  const EvenBlocks blocks(F.rows, kMappedRows);
  const EvenBlocks tiles(G.rows, kMappedColumns);
  const auto workspace = [] { return Buffer<T>(kMappedRows * kMappedColumns); };
  const int team = useful_threads(F.rows * G.rows * (F.columns + H.columns), threads);
  parallel_for(blocks.count(), team, workspace, [&](Buffer<T>& entries, Size block) {
    const Range rows = blocks[block];
    const Size height = rows.end - rows.begin;
    const Block<T> sum{out.row(rows.begin), height, out.columns, out.columns};
    for (Size t = 0; t < tiles.count(); ++t) {
      const Range columns = tiles[t];
      const Size width = columns.end - columns.begin;
      const Block<T> tile{entries.data(), height, width, width};
      end_if_interrupted(height * width * F.columns);
      product_with_transposed(rows_of(F, rows), rows_of(G, columns), tile);
      // (What follows in the last register is of an earlier tile, or zero; the buffer has room.)
      shrink.apply_aligned(entries.data(), Shrink<T>::whole_registers(height * width));
      add_product(as_const(tile), rows_of(H, columns), sum);
    }
  });
}

#define SSNMF_INSTANTIATE(T)                                                                      \
  template void residual_step<T>(const Csr<T>&, const Rows<const T>&, const Rows<const T>&, T*,   \
                                 const Rows<T>&, int);                                            \
  template void mapped_residuals<T>(const Csr<T>&, const Rows<const T>&, const Rows<const T>&, T, \
                                    const Shrinkage<T>&, T*, int);                                \
  template void add_mapped_product<T>(const Rows<const T>&, const Rows<const T>&,                 \
                                      const Rows<const T>&, const Shrinkage<T>&, const Rows<T>&,  \
                                      int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
