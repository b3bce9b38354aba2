// Z is read by tiles that stay in the L2 cache.
#include <Eigen/Core>
#include <cmath>
#include <functional>
#include <type_traits>
#include <vector>

#include "../core/parallel.hpp"
#include "entry_losses.hpp"
#include "gemm.hpp"
#include "operations.hpp"
#include "passes.hpp"

namespace ssnmf {
namespace {

constexpr Size kTileRows = 64;
constexpr Size kTileColumns = 256;
constexpr Size kTilesPerSum = 16;  // more are summed in parts, in double; see sparse_pass.hpp

// Two tiles, of values and of models, and the rows of the result.
template <class T>
struct TileWorkspace {
  Buffer<T> values = Buffer<T>(kTileRows * kTileColumns);
  Buffer<T> model = Buffer<T>(kTileRows * kTileColumns);
  Matrix<T> sum;
  Matrix<double> total;

  // Moves the sum over some tiles to the total.
  void add_part() {
    total += sum.template cast<double>();
    sum.setZero();
  }
};

// A tile of Z and where it lies.  Where columns of Z are contiguous, tiles hold the transpose: both
// are read and written in the order of the memory.
template <class T>
struct Tile {
  Range rows;
  Range columns;
  bool transposed;

  Size height() const { return rows.end - rows.begin; }
  Size width() const { return columns.end - columns.begin; }
  Size size() const { return height() * width(); }

  Block<T> in(Buffer<T>& buffer) const {
    return transposed ? Block<T>{buffer.data(), width(), height(), height()}
                      : Block<T>{buffer.data(), height(), width(), width()};
  }
};

template <class T>
bool by_columns(const Dense<T>& Z) {
  return std::abs(Z.row_stride) < std::abs(Z.column_stride);
}

template <class T, class Convert>
void read_tile(const Dense<T>& Z, const Tile<T>& tile, const Convert& convert, Buffer<T>& values) {
  const T* base = Z.data + tile.rows.begin * Z.row_stride + tile.columns.begin * Z.column_stride;
  const Block<T> block = tile.in(values);
  const Size outer = tile.transposed ? Z.column_stride : Z.row_stride;
  const Size inner = tile.transposed ? Z.row_stride : Z.column_stride;
  for (Size i = 0; i < block.rows; ++i) {
    const T* from = base + i * outer;
    T* to = block.data + i * block.stride;
    if (inner == 1) {
      for (Size j = 0; j < block.columns; ++j) {
        to[j] = convert(from[j]);
      }
    } else {
      for (Size j = 0; j < block.columns; ++j) {
        to[j] = convert(from[j * inner]);
      }
    }
  }
}

// The models f . g of a tile.
template <class T>
void model_tile(const Tile<T>& tile, const Rows<const T>& F, const Rows<const T>& G,
                Buffer<T>& model) {
  const Block<const T> f = rows_of(F, tile.rows);
  const Block<const T> g = rows_of(G, tile.columns);
  if (tile.transposed) {
    product_with_transposed(g, f, tile.in(model));
  } else {
    product_with_transposed(f, g, tile.in(model));
  }
}

// Turns the values of a tile into coefficients, given the models.
template <class Op, class T>
void apply(const Op& op, T* values, const T* model, Size size) {
  if constexpr (std::is_same_v<Op, Power>) {
    op.coefficients(values, model, size);
  } else {
    for (Size e = 0; e < size; ++e) {
      values[e] = op.coefficient(values[e], model[e]);
    }
  }
}

// What turns a tile of coefficients out of values; nullptr: nothing is to be done.
template <class T>
using TileOperation = std::function<void(T* values, const T* model, Size size)>;

// One block of rows.
template <class T>
void dense_block(const Dense<T>& Z, bool mask, const TileOperation<T>& operation,
                 const Rows<const T>& F, const Rows<const T>& G, Range rows, const Target<T>& to,
                 TileWorkspace<T>& work) {
  const Size height = rows.end - rows.begin;
  work.sum.setZero(height, G.columns);
  const EvenBlocks tiles(Z.columns, kTileColumns);
  const bool wide = tiles.count() > kTilesPerSum;
  if (wide) {
    work.total.setZero(height, G.columns);
  }
  for (Size t = 0; t < tiles.count(); ++t) {
    const Tile<T> tile{rows, tiles[t], by_columns(Z)};
    if (mask) {
      read_tile(Z, tile, [](T z) { return std::isnan(z) ? T(0) : T(1); }, work.values);
    } else {
      read_tile(Z, tile, [](T z) { return std::isnan(z) ? T(0) : z; }, work.values);
    }
    end_if_interrupted(tile.size() * G.columns);
    if (operation != nullptr) {
      model_tile(tile, F, G, work.model);
      operation(work.values.data(), work.model.data(), tile.size());
    }
    const Block<const T> values = as_const(tile.in(work.values));
    const Block<T> sum = corner(work.sum, height, G.columns);
    if (tile.transposed) {
      add_transposed_product(values, rows_of(G, tile.columns), sum);
    } else {
      add_product(values, rows_of(G, tile.columns), sum);
    }
    if (wide && t % kTilesPerSum == kTilesPerSum - 1) {
      work.add_part();
    }
  }
  if (wide) {
    work.add_part();
    work.sum = work.total.template cast<T>();
  }
  for (Size i = 0; i < height; ++i) {
    for (Size k = 0; k < G.columns; ++k) {
      to.store(rows.begin + i, k, work.sum(i, k));
    }
  }
}

template <class T>
TileOperation<T> tile_operation(Operation operation) {
  return visit_operation(operation, [](const auto& op) -> TileOperation<T> {
    if constexpr (!std::decay_t<decltype(op)>::needs_model) {
      return nullptr;
    } else {
      return [op](T* values, const T* model, Size size) { apply(op, values, model, size); };
    }
  });
}

}  // namespace

template <class T>
void dense_pass(Operation operation, const Dense<T>& Z, bool mask, const Rows<const T>& F,
                const Rows<const T>& G, const Target<T>& to, int threads) {
  const TileOperation<T> on_tile = tile_operation<T>(operation);
  const EvenBlocks blocks(Z.rows, kTileRows);
  const auto workspace = [] { return TileWorkspace<T>{}; };
  const int team = useful_threads(Z.rows * Z.columns * G.columns, threads);
  parallel_for(blocks.count(), team, workspace, [&](TileWorkspace<T>& work, Size block) {
    dense_block(Z, mask, on_tile, F, G, blocks[block], to, work);
  });
}

template <class T>
double dense_loss(EntryLoss loss, const Dense<T>& Z, const Rows<const T>& F, const Rows<const T>& G,
                  int threads) {
  const EvenBlocks blocks(Z.rows, kTileRows);
  const EvenBlocks tiles(Z.columns, kTileColumns);
  const auto workspace = [] { return TileWorkspace<T>{}; };
  const int team = useful_threads(Z.rows * Z.columns * G.columns, threads);
  return visit_loss(loss, [&](const auto& chosen) {
    const bool missing_is_zero = std::decay_t<decltype(chosen)>::missing_is_zero;
    return ordered_sum(blocks.count(), team, workspace, [&](TileWorkspace<T>& work, Size block) {
      double sum = 0.0;
      for (Size t = 0; t < tiles.count(); ++t) {
        const Tile<T> tile{blocks[block], tiles[t], by_columns(Z)};
        read_tile(
            Z, tile, [=](T z) { return missing_is_zero && std::isnan(z) ? T(0) : z; }, work.values);
        end_if_interrupted(tile.size() * G.columns);
        model_tile(tile, F, G, work.model);
        for (Size e = 0; e < tile.size(); e += kLossRun) {
          const Size count = std::min<Size>(kLossRun, tile.size() - e);
          sum += chosen.of(work.values.data() + e, work.model.data() + e,
                           static_cast<const T*>(nullptr), count);
        }
      }
      return sum;
    });
  });
}

#define SSNMF_INSTANTIATE(T)                                                          \
  template void dense_pass<T>(Operation, const Dense<T>&, bool, const Rows<const T>&, \
                              const Rows<const T>&, const Target<T>&, int);           \
  template double dense_loss<T>(EntryLoss, const Dense<T>&, const Rows<const T>&,     \
                                const Rows<const T>&, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
