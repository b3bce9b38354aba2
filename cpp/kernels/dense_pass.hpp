// Passes over a dense matrix Z (p x q, any strides) and the factors F (p x R) and G (q x R).
//
// Z is read by tiles that stay in the L2 cache; nothing of size p x q is written.  NaN entries are
// missing and count nothing; with `mask` the other entries are read as ones.  The operations are
// those of sparse_pass.hpp.  Cost: 2R (Product) or 4R flops for an entry.
#pragma once

#include <Eigen/Core>
#include <cmath>

#include "../core/parallel.hpp"
#include "sparse_pass.hpp"

namespace ssnmf {

constexpr Size kTileRows = 64;
constexpr Size kTileColumns = 256;

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
using MatrixMap = Eigen::Map<Matrix<T>>;

template <class T>
using ConstMatrixMap = Eigen::Map<const Matrix<T>>;

template <class T>
ConstMatrixMap<T> rows_of(const Rows<const T>& factor, Range range) {
  return {factor.row(range.begin), range.end - range.begin, factor.columns};
}

template <class T>
struct TileWorkspace {
  Matrix<T> values{kTileRows, kTileColumns};
  Matrix<T> model{kTileRows, kTileColumns};
  Matrix<T> sum;
};

// Copies a tile of Z row by row, or column by column where that is how it lies in memory.
template <class T, class Convert>
void read_tile(const Dense<T>& Z, Range rows, Range columns, const Convert& convert,
               Matrix<T>& tile) {
  const bool by_columns = std::abs(Z.row_stride) < std::abs(Z.column_stride);
  const T* base = Z.data + rows.begin * Z.row_stride + columns.begin * Z.column_stride;
  const Size height = rows.end - rows.begin;
  const Size width = columns.end - columns.begin;
  if (by_columns) {
    for (Size j = 0; j < width; ++j) {
      for (Size i = 0; i < height; ++i) {
        tile(i, j) = convert(base[i * Z.row_stride + j * Z.column_stride]);
      }
    }
    return;
  }
  for (Size i = 0; i < height; ++i) {
    for (Size j = 0; j < width; ++j) {
      tile(i, j) = convert(base[i * Z.row_stride + j * Z.column_stride]);
    }
  }
}

template <class Op, class T>
void dense_block(const Dense<T>& Z, bool mask, const Rows<const T>& F, const Rows<const T>& G,
                 Range rows, const Target<T>& to, TileWorkspace<T>& work) {
  const Size height = rows.end - rows.begin;
  work.sum.setZero(height, G.columns);
  const EvenBlocks tiles(Z.columns, kTileColumns);
  for (Size t = 0; t < tiles.count(); ++t) {
    const Range columns = tiles[t];
    if (mask) {
      read_tile(Z, rows, columns, [](T z) { return std::isnan(z) ? T(0) : T(1); }, work.values);
    } else {
      read_tile(Z, rows, columns, [](T z) { return std::isnan(z) ? T(0) : z; }, work.values);
    }
    auto values = work.values.topLeftCorner(height, columns.end - columns.begin);
    const auto g = rows_of(G, columns);
    if constexpr (Op::needs_model) {
      auto model = work.model.topLeftCorner(height, columns.end - columns.begin);
      model.noalias() = rows_of(F, rows) * g.transpose();
      values =
          values.binaryExpr(model, [](T value, T entry) { return Op::coefficient(value, entry); });
    }
    work.sum.noalias() += values * g;
  }
  MatrixMap<T> out(to.out.row(rows.begin), height, G.columns);
  if (to.accumulate) {
    out += to.scale * work.sum;
  } else {
    out = to.scale * work.sum;
  }
}

template <class Op, class T>
void dense_pass(const Dense<T>& Z, bool mask, const Rows<const T>& F, const Rows<const T>& G,
                const Target<T>& to, int threads) {
  const EvenBlocks blocks(Z.rows, kTileRows);
  const auto workspace = [] { return TileWorkspace<T>{}; };
  const int team = useful_threads(Z.rows * Z.columns * G.columns, threads);
  parallel_for(blocks.count(), team, workspace, [&](TileWorkspace<T>& work, Size block) {
    dense_block<Op>(Z, mask, F, G, blocks[block], to, work);
  });
}

// Sum of the loss over the entries that are not NaN.
template <class Loss, class T>
double dense_loss(const Dense<T>& Z, const Rows<const T>& F, const Rows<const T>& G, int threads) {
  const EvenBlocks blocks(Z.rows, kTileRows);
  const EvenBlocks tiles(Z.columns, kTileColumns);
  const auto workspace = [] { return TileWorkspace<T>{}; };
  const int team = useful_threads(Z.rows * Z.columns * G.columns, threads);
  return ordered_sum(blocks.count(), team, workspace, [&](TileWorkspace<T>& work, Size block) {
    const Range rows = blocks[block];
    const Size height = rows.end - rows.begin;
    double sum = 0.0;
    for (Size t = 0; t < tiles.count(); ++t) {
      const Range columns = tiles[t];
      const Size width = columns.end - columns.begin;
      read_tile(Z, rows, columns, [](T value) { return value; }, work.values);
      auto model = work.model.topLeftCorner(height, width);
      model.noalias() = rows_of(F, rows) * rows_of(G, columns).transpose();
      for (Size i = 0; i < height; ++i) {
        for (Size j = 0; j < width; ++j) {
          const T value = work.values(i, j);
          sum += std::isnan(value) ? 0.0 : Loss::of(value, work.model(i, j), T(1));
        }
      }
    }
    return sum;
  });
}

}  // namespace ssnmf
