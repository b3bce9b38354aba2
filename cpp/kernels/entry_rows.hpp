// The stored entries of a row, and the rows of a factor that they name.
#pragma once

#include <algorithm>

#include "../core/compiler.hpp"
#include "../core/parallel.hpp"
#include "rank.hpp"
#include "register_row.hpp"

namespace ssnmf {

constexpr Size kEntriesPerBlock = 4096;  // some 10 microseconds: enough blocks for many threads
constexpr Size kMostEntriesPerChunk = 64;
constexpr Size kBytesPerChunk = 16384;  // dictionary rows of a chunk stay in the first cache
constexpr Size kPrefetchDistance = 16;
// Of processors with AVX-512 and of others; half of it may be another process's.
constexpr Size kSecondCache = kRegisterBytes == 64 ? 1 << 20 : 1 << 18;
constexpr Size kEntriesPerSum = 256;  // more are summed in parts

template <class T>
Range entries_of(const Csr<T>& Z, Size row) {
  return {Z.indptr[row], Z.indptr[row + 1]};
}

// Asks for row j of G.  (Inlined by force: GCC takes a function that only prefetches for one
// without effect and drops the call.)
template <class T>
SSNMF_INLINE void prefetch_row(const Rows<T>& G, Size j) {
  constexpr Size line = 64 / static_cast<Size>(sizeof(T));
  for (Size k = 0; k < G.columns; k += line) {
    prefetch(G.row(j) + k);
  }
}

// How a pass comes to the row of G that an entry of Z names: here the row of its column.  A pass
// over entries that name rows of several factors has another class with the same functions.
template <class T>
class ColumnRows {
 public:
  static constexpr bool in_place = true;     // a row lies in memory
  static constexpr bool known_ranks = true;  // whether passes are compiled for every rank

  ColumnRows(const Csr<T>& Z, const Rows<const T>& G)
      : Z_(Z),
        G_(G),
        entries_(Z.entries()),
        far_(G.rows * G.columns * static_cast<Size>(sizeof(T)) > kSecondCache) {}

  Size rank() const { return G_.columns; }

  // What gives the registers of a row; see RegisterRow.  R is the rank where the compiler knows
  // it, else 0.
  template <class Packet, int R>
  SSNMF_INLINE auto packets(Size entry) const {
    return registers_of<Packet>(G_.data + static_cast<Size>(Z_.indices[entry]) * width<R>());
  }

  // Asks for the rows of entries that come kPrefetchDistance later: no hardware prefetcher can
  // guess their places.  If nothing waits for dots, rows in the second cache come soon enough.
  template <int R, bool Dots = true>
  SSNMF_INLINE void prefetch(Size first, Size count) const {
    const Size ahead = first + kPrefetchDistance;
    if ((Dots || far_) && ahead + count <= entries_) {
      for (Size e = 0; e < count; ++e) {
        prefetch_row(Rows<const T>{G_.data, G_.rows, width<R>()},
                     static_cast<Size>(Z_.indices[ahead + e]));
      }
    }
  }

 private:
  template <int R>
  Size width() const {
    return R > 0 ? R : G_.columns;
  }

  Csr<T> Z_;
  Rows<const T> G_;
  Size entries_;
  bool far_;  // whether the second cache may not hold them
};

}  // namespace ssnmf
