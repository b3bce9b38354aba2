// Plain views of arrays that somebody else owns.  No Eigen, no Python.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ssnmf {

// Sizes and products of sizes are 64-bit everywhere.
using Size = std::int64_t;
// Column indices of sparse matrices are half as long: they are as much to read as float32 values.
using Index = std::int32_t;

// Row-major matrix with contiguous rows: a factor, a pull, a Gram matrix.
template <class T>
struct Rows {
  T* data = nullptr;
  Size rows = 0;
  Size columns = 0;

  T* row(Size i) const { return data + i * columns; }
};

// Row i, or the only row, which stands for all.
template <class T>
T* row_or_only(const Rows<T>& rows, Size i) {
  return rows.row(rows.rows == 1 ? 0 : i);
}

// Vector, or nothing (data == nullptr) where a default stands for it.
template <class T>
struct Span {
  T* data = nullptr;
  Size size = 0;
};

// Sparse matrix by rows; values == nullptr stands for ones.
template <class T>
struct Csr {
  const Size* indptr = nullptr;
  const Index* indices = nullptr;
  const T* values = nullptr;
  Size rows = 0;

  Size entries() const { return indptr[rows]; }
  T value(Size entry) const { return values == nullptr ? T(1) : values[entry]; }
};

// Dense matrix with any strides, counted in elements.
template <class T>
struct Dense {
  const T* data = nullptr;
  Size rows = 0;
  Size columns = 0;
  Size row_stride = 0;
  Size column_stride = 0;
};

// Which entries of a factor may be positive, or all of them (data == nullptr): component k of a row
// is bit k % 8 of its byte k / 8.
struct Support {
  const std::uint8_t* data = nullptr;
  Size bytes_per_row = 0;

  const std::uint8_t* row(Size i) const {
    return data == nullptr ? nullptr : data + i * bytes_per_row;
  }
};

// Whether a row of a support has component k.
inline bool has(const std::uint8_t* row, Size k) {
  return row == nullptr || (row[k / 8] >> k % 8 & 1) != 0;
}

// Where a pass leaves its result: out = scale * result, or out += scale * result.
template <class T>
struct Target {
  Rows<T> out;
  T scale = T(1);
  bool accumulate = false;

  // The result of a row: a times the values, and zeros after them.
  template <class V>
  void store_row(Size row, const V* values, Size count, T a = T(1)) const {
    // Copies: members would be read again after every number that is written.
    const T factor = a * scale;
    const bool adds = accumulate;
    T* const place = out.row(row);
    for (Size k = 0; k < count; ++k) {
      const T value = factor * static_cast<T>(values[k]);
      place[k] = adds ? place[k] + value : value;
    }
    if (!adds) {
      std::fill(place + count, place + out.columns, T(0));
    }
  }
};

}  // namespace ssnmf
