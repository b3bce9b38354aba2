// Passes over a dense matrix Z (p x q, any strides) and the factors F (p x R) and G (q x R).
//
// Z is read by tiles that stay in the L2 cache; nothing of size p x q is written.  NaN entries are
// missing and count nothing; with `mask` the other entries are read as ones.  The operations are
// those of sparse_pass.hpp.  Cost: 2R (Product) or 4R flops for an entry.
#pragma once

#include <Eigen/Core>
#include <cmath>

#include "../core/parallel.hpp"
#include "gemm.hpp"
#include "operations.hpp"

namespace ssnmf {

constexpr Size kTileRows = 64;
constexpr Size kTileColumns = 256;

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

// What a pass does with a tile of values, given the model f . g of every entry.
template <class T>
using TileOperation = void (*)(Matrix<T>& values, const Matrix<T>& model, Size rows, Size columns);

template <class Op, class T>
void apply(Matrix<T>& values, const Matrix<T>& model, Size rows, Size columns) {
  for (Size i = 0; i < rows; ++i) {
    for (Size j = 0; j < columns; ++j) {
      values(i, j) = Op::coefficient(values(i, j), model(i, j));
    }
  }
}

// One block of rows; operation == nullptr stands for the product with the values as they are.
template <class T>
void dense_block(const Dense<T>& Z, bool mask, TileOperation<T> operation, const Rows<const T>& F,
                 const Rows<const T>& G, Range rows, const Target<T>& to, TileWorkspace<T>& work) {
  const Size height = rows.end - rows.begin;
  work.sum.setZero(height, G.columns);
  const EvenBlocks tiles(Z.columns, kTileColumns);
  for (Size t = 0; t < tiles.count(); ++t) {
    const Range columns = tiles[t];
    const Size width = columns.end - columns.begin;
    if (mask) {
      read_tile(Z, rows, columns, [](T z) { return std::isnan(z) ? T(0) : T(1); }, work.values);
    } else {
      read_tile(Z, rows, columns, [](T z) { return std::isnan(z) ? T(0) : z; }, work.values);
    }
    if (operation != nullptr) {
      product_with_transposed(rows_of(F, rows), rows_of(G, columns),
                              corner(work.model, height, width));
      operation(work.values, work.model, height, width);
    }
    add_product(as_const(corner(work.values, height, width)), rows_of(G, columns),
                corner(work.sum, height, G.columns));
  }
  for (Size i = 0; i < height; ++i) {
    for (Size k = 0; k < G.columns; ++k) {
      to.store(rows.begin + i, k, work.sum(i, k));
    }
  }
}

template <class Op, class T>
void dense_pass(const Dense<T>& Z, bool mask, const Rows<const T>& F, const Rows<const T>& G,
                const Target<T>& to, int threads) {
  const TileOperation<T> operation = Op::needs_model ? &apply<Op, T> : nullptr;
  const EvenBlocks blocks(Z.rows, kTileRows);
  const auto workspace = [] { return TileWorkspace<T>{}; };
  const int team = useful_threads(Z.rows * Z.columns * G.columns, threads);
  parallel_for(blocks.count(), team, workspace, [&](TileWorkspace<T>& work, Size block) {
    dense_block(Z, mask, operation, F, G, blocks[block], to, work);
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
      product_with_transposed(rows_of(F, rows), rows_of(G, columns),
                              corner(work.model, height, width));
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
