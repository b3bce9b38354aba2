// The stored entries of a row, and the rows of a factor that they name.
#pragma once

#include <Eigen/Core>
#include <algorithm>

#include "../core/compiler.hpp"
#include "../core/parallel.hpp"
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
template <class T>
SSNMF_INLINE void prefetch_row(const Csr<T>& Z, Size entry, Size entries, const Rows<const T>& G) {
  constexpr Size line = 64 / static_cast<Size>(sizeof(T));
  const Size ahead = std::min(entry + kPrefetchDistance, entries - 1);
  const T* g = G.row(static_cast<Size>(Z.indices[ahead]));
  for (Size k = 0; k < G.columns; k += line) {
    prefetch(g + k);
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

}  // namespace ssnmf
