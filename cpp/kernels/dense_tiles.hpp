// A dense matrix Z (p x q) piece by piece, with the models f . g of its entries.
//
// A piece is some lines of contiguous entries: of rows of Z, or of its columns where these are
// contiguous.  It stays in the L2 cache, and what is next reads it where it lies.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "../core/parallel.hpp"
#include "register_product.hpp"

namespace ssnmf {

// Rows of Z that share the panels of G, rows of a piece, and columns of a tile and of a piece.
struct TileSizes {
  Size block_rows;
  Size piece_rows;
  Size columns;
};

// By measurement: pieces of 36 to 160 KiB, long enough along the memory.
template <class T, Order order>
TileSizes tile_sizes(bool models) {
  if (order == Order::kRows) {
    return {96, 24, 256};
  }
  constexpr Size rows = 1280 / static_cast<Size>(sizeof(T));
  return models ? TileSizes{144, 144, 64} : TileSizes{rows, rows, 128};
}

inline Size size_of(const Range& range) { return range.end - range.begin; }

// How entries are read: `kZeros`: NaN as 0; `kOnes`: NaN as 0 and others as 1; `kAsTheyAre`; or not
// at all: `kInPlace`, for contiguous entries and without models.
enum class Reading { kZeros, kOnes, kAsTheyAre, kInPlace };

// The blocks of a matrix that threads work on: some rows, and a stretch of the columns.  Rows of a
// few blocks are cut into more stretches, whose sums are kept apart: at most `most`.
class MatrixBlocks {
 public:
  MatrixBlocks(const TileSizes& sizes, Size rows, Size columns, Size most)
      : rows_(rows, sizes.block_rows),
        columns_(columns, step(rows_.count(), columns, sizes.columns, most)) {}

  Size count() const { return rows_.count() * stretches(); }
  Size stretches() const { return std::max<Size>(columns_.count(), 1); }
  Range rows(Size block) const { return rows_[block / stretches()]; }
  Size stretch(Size block) const { return block % stretches(); }
  Range columns(Size block) const { return columns_[stretch(block)]; }

 private:
  static Size step(Size row_blocks, Size columns, Size tile, Size most) {
    constexpr Size kEnough = 256;  // blocks, for many threads
    constexpr Size kShortest = 256;
    const Size wanted = kEnough / std::max<Size>(row_blocks, 1);
    const Size stretches = std::max<Size>(1, std::min({wanted, columns / kShortest, most}));
    const Size tiles = (columns + tile - 1) / tile;
    return (tiles + stretches - 1) / stretches * tile;
  }

  EvenBlocks rows_;
  EvenBlocks columns_;
};

// Where entries of Z lie, `lines` of `stride` numbers, and their models.  Unless they are in place,
// lines are filled up to whole registers by zeros, whose models are zeros.
template <class T>
struct Piece {
  Range rows;
  const T* values;
  const T* models;
  Size lines;
  Size stride;

  Size size() const { return lines * stride; }
};

template <class T, Order order>
class DenseTiles {
  static constexpr bool kByRows = order == Order::kRows;

 public:
  // `rank`: the columns of F and G that count; F.data may be null where no models are needed.
  DenseTiles(const Dense<T>& Z, const Rows<const T>& F, const Rows<const T>& G, Size rank)
      : Z_(Z), F_(F), G_(G), rank_(rank), sizes_(tile_sizes<T, order>(F.data != nullptr)) {}

  // Calls begin(columns) for every tile of some rows, at most of a block, and columns, and
  // body(piece) for the pieces of it.
  template <class Begin, class Body>
  void visit(Range rows, Range columns, Reading reading, const Begin& begin, const Body& body) {
    if (!kByRows) {
      turn(F_, rows);
    }
    for (Size j = columns.begin; j < columns.end; j += sizes_.columns) {
      const Range tile{j, std::min(columns.end, j + sizes_.columns)};
      if (kByRows) {
        turn(G_, tile);
      }
      begin(tile);
      for (Size i = rows.begin; i < rows.end; i += sizes_.piece_rows) {
        const Range some{i, std::min(rows.end, i + sizes_.piece_rows)};
        end_if_interrupted(size_of(some) * size_of(tile) * rank_);
        const Range& lines = kByRows ? some : tile;
        if (reading == Reading::kInPlace) {
          body(Piece<T>{some, first(some, tile), nullptr, size_of(lines), outer()});
          continue;
        }
        const Size along = size_of(kByRows ? tile : some);
        const Size stride = Panels<T>::whole_registers(along);
        const auto places = static_cast<std::size_t>(size_of(lines) * stride);
        values_.resize(places);
        read(some, tile, reading, stride);
        if (F_.data != nullptr) {
          const Rows<const T>& factor = kByRows ? F_ : G_;
          models_.resize(places);
          turned_.product(factor.row(lines.begin), factor.columns, size_of(lines), models_.data(),
                          stride);
        }
        body(Piece<T>{some, values_.data(), models_.data(), size_of(lines), stride});
      }
    }
  }

  // The values of the last piece, to be changed.
  T* values() { return values_.data(); }

 private:
  Size outer() const { return kByRows ? Z_.row_stride : Z_.column_stride; }
  const T* first(Range rows, Range columns) const {
    return Z_.data + rows.begin * Z_.row_stride + columns.begin * Z_.column_stride;
  }

  void turn(const Rows<const T>& factor, Range rows) {
    if (F_.data != nullptr) {
      turned_.copy_transposed(factor.row(rows.begin), factor.columns, size_of(rows), rank_);
    }
  }

  void read(Range rows, Range columns, Reading reading, Size stride) {
    switch (reading) {
      case Reading::kZeros:
        return read(rows, columns, stride, [](T z) { return std::isnan(z) ? T(0) : z; });
      case Reading::kOnes:
        return read(rows, columns, stride, [](T z) { return std::isnan(z) ? T(0) : T(1); });
      case Reading::kAsTheyAre:
      case Reading::kInPlace:
        return read(rows, columns, stride, [](T z) { return z; });
    }
  }

  template <class Convert>
  void read(Range rows, Range columns, Size stride, const Convert& convert) {
    const T* base = first(rows, columns);
    const Size inner = kByRows ? Z_.column_stride : Z_.row_stride;
    const Size lines = size_of(kByRows ? rows : columns);
    const Size along = size_of(kByRows ? columns : rows);
    // What is read next: the same lines of the next piece.
    const Size left = kByRows ? Z_.rows - rows.begin : Z_.columns - columns.begin;
    const Size ahead = kByRows ? sizes_.piece_rows : sizes_.columns;
    for (Size i = 0; i < lines; ++i) {
      const T* from = base + i * outer();
      T* to = values_.data() + i * stride;
      if (inner == 1) {
        if (i + ahead < left) {
          constexpr Size line = 64 / static_cast<Size>(sizeof(T));
          for (Size j = 0; j < along; j += line) {
            prefetch(from + ahead * outer() + j);
          }
        }
        for (Size j = 0; j < along; ++j) {
          to[j] = convert(from[j]);
        }
      } else {
        for (Size j = 0; j < along; ++j) {
          to[j] = convert(from[j * inner]);
        }
      }
      std::fill(to + along, to + stride, T(0));
    }
  }

  const Dense<T> Z_;
  const Rows<const T> F_;
  const Rows<const T> G_;
  const Size rank_;
  const TileSizes sizes_;
  Buffer<T> values_;
  Buffer<T> models_;
  Panels<T> turned_;
};

}  // namespace ssnmf
