#include "completion_pass.hpp"

#include <Eigen/Core>
#include <algorithm>

#include "../core/compiler.hpp"
#include "../core/parallel.hpp"
#include "entry_models.hpp"
#include "entry_rows.hpp"
#include "operations.hpp"
#include "register_product.hpp"
#include "row_pass.hpp"
#include "shrink.hpp"

namespace ssnmf {
namespace {

constexpr Size kMappedRows = 96;
constexpr Size kMappedColumns = 256;

// The residuals of the entries, which are kept, as coefficients of a pass.
template <class T>
struct KeptResidual : Residual {
  static constexpr bool keeps = true;
  T* residuals;

  explicit KeptResidual(T* kept) : residuals(kept) {}

  void keep(Size entry, T coefficient) const { residuals[entry] = coefficient; }
};

}  // namespace

template <class T>
void residual_step(const Csr<T>& Z, const Rows<const T>& F, const Factor<const T>& G, T* residuals,
                   const Rows<T>& out, int threads) {
  const KeptResidual<T> op(residuals);
  const ColumnRows<T> gather(Z, G);
  const auto copy = [&](const Csr<T>&, Size row, const Target<T>& to) {
    std::copy_n(F.row(row), F.columns, to.out.row(row));
    return false;
  };
  pass_rows<T>(GatheredSum<KeptResidual<T>, T, ColumnRows<T>>(op, Z, gather), Z, F,
               {out, T(1), true}, threads, copy);
}

template <class T>
void mapped_residuals(const Csr<T>& Z, const Rows<const T>& F, const Factor<const T>& G, T scale,
                      const Shrinkage<T>& shrinkage, T* out, int threads) {
  const Shrink<T> shrink{shrinkage};
  const ColumnRows<T> gather(Z, G);
  const EqualWorkBlocks blocks(Z.indptr, Z.rows, kEntriesPerBlock);
  const int team = useful_threads((Z.entries() + Z.rows) * G.columns, threads);
  const FindModels<T> find = find_models<T>(gather);
  parallel_for(blocks.count(), team, [&](Size block) {
    const Range range = blocks[block];
    const Size first = Z.indptr[range.begin];
    const Size last = Z.indptr[range.end];
    for (Size row = range.begin; row < range.end; ++row) {
      const Range entries = entries_of(Z, row);
      find(F.row(row), entries.begin, entries.end - entries.begin, out + entries.begin);
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
  struct Workspace {
    Panels<T> turned, panels;
    Buffer<T> tile, sum;
  };
  const Size stride = Panels<T>::whole_registers(out.columns);
  const auto workspace = [&] {
    return Workspace{{},
                     {},
                     Buffer<T>(kMappedRows * kMappedColumns),
                     Buffer<T>(std::size_t(kMappedRows * stride))};
  };
  const int team = useful_threads(F.rows * G.rows * (F.columns + H.columns), threads);
  parallel_for(blocks.count(), team, workspace, [&](Workspace& work, Size block) {
    const Range rows = blocks[block];
    const Size height = rows.end - rows.begin;
    std::fill_n(work.sum.data(), height * stride, T(0));
    for (Size t = 0; t < tiles.count(); ++t) {
      const Range columns = tiles[t];
      const Size width = columns.end - columns.begin;
      end_if_interrupted(height * width * F.columns);
      work.turned.copy_transposed(G.row(columns.begin), G.columns, width, G.columns);
      const Size filled = work.turned.width();  // by columns that meet no row of H
      work.turned.product(F.row(rows.begin), F.columns, height, work.tile.data(), filled);
      // (What follows in the last register is of an earlier tile, or zero; the buffer has room.)
      shrink.apply_aligned(work.tile.data(), Shrink<T>::whole_registers(height * filled));
      work.panels.copy(H.row(columns.begin), H.columns, width, H.columns);
      work.panels.add_product(work.tile.data(), filled, height, work.sum.data(), stride);
    }
    for (Size i = 0; i < height; ++i) {
      for (Size k = 0; k < out.columns; ++k) {
        out.row(rows.begin + i)[k] += work.sum[static_cast<std::size_t>(i * stride + k)];
      }
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
