#include "completion_pass.hpp"

#include <Eigen/Core>
#include <algorithm>

#include "../core/compiler.hpp"
#include "../core/parallel.hpp"
#include "entry_models.hpp"
#include "entry_rows.hpp"
#include "gemm.hpp"
#include "operations.hpp"
#include "row_pass.hpp"
#include "shrink.hpp"

namespace ssnmf {
namespace {

constexpr Size kMappedRows = 96;
constexpr Size kMappedColumns = 256;

// The residuals of the entries, which are kept, as coefficients of a pass.
template <class T>
struct Residual : AnyOperation {
  static constexpr bool keeps = true;
  T* residuals;

  explicit Residual(T* kept) : residuals(kept) {}

  T coefficient(T value, T model) const { return value - model; }
  void keep(Size entry, T coefficient) const { residuals[entry] = coefficient; }
};

}  // namespace

template <class T>
void residual_step(const Csr<T>& Z, const Rows<const T>& F, const Factor<const T>& G, T* residuals,
                   const Rows<T>& out, int threads) {
  const Residual<T> op(residuals);
  const ColumnRows<T> gather(Z, G);
  const auto copy = [&](const Csr<T>&, Size row, const Target<T>& to) {
    std::copy_n(F.row(row), F.columns, to.out.row(row));
    return false;
  };
  pass_rows<T>(GatheredSum<Residual<T>, T, ColumnRows<T>>(op, Z, gather), Z, F, {out, T(1), true},
               threads, copy);
}

template <class T>
void mapped_residuals(const Csr<T>& Z, const Rows<const T>& F, const Factor<const T>& G, T scale,
                      const Shrinkage<T>& shrinkage, T* out, int threads) {
  const Shrink<T> shrink{shrinkage};
  const ColumnRows<T> gather(Z, G);
  const EqualWorkBlocks blocks(Z.indptr, Z.rows, kEntriesPerBlock);
  const int team = useful_threads((Z.entries() + Z.rows) * G.columns, threads);
  const FindModels<T> find = find_models<T>(G.columns);
  parallel_for(blocks.count(), team, [&](Size block) {
    const Range range = blocks[block];
    const Size first = Z.indptr[range.begin];
    const Size last = Z.indptr[range.end];
    for (Size row = range.begin; row < range.end; ++row) {
      const Range entries = entries_of(Z, row);
      find(gather, F.row(row), entries.begin, entries.end - entries.begin, out + entries.begin);
    }
    for (Size entry = first; entry < last; ++entry) {
      out[entry] *= scale;
    }
    shrink.apply(out + first, last - first);
    for (Size entry = first; entry < last; ++entry) {
      out[entry] = Z.value(entry) - out[entry];
    }
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
  template void residual_step<T>(const Csr<T>&, const Rows<const T>&, const Factor<const T>&, T*, \
                                 const Rows<T>&, int);                                            \
  template void mapped_residuals<T>(const Csr<T>&, const Rows<const T>&, const Factor<const T>&,  \
                                    T, const Shrinkage<T>&, T*, int);                             \
  template void add_mapped_product<T>(const Rows<const T>&, const Rows<const T>&,                 \
                                      const Rows<const T>&, const Shrinkage<T>&, const Rows<T>&,  \
                                      int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
