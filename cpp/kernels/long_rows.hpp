// Rows of so many entries that one thread alone would be long at them.
#pragma once

#include <mutex>
#include <vector>

#include "../core/parallel.hpp"
#include "entry_rows.hpp"

namespace ssnmf {

// Rows of more entries are cut into pieces, which several threads may work on.
constexpr Size kLongestRow = 16 * kEntriesPerBlock;

inline bool is_longest(const Size* indptr, Size row) {
  return indptr[row + 1] - indptr[row] > kLongestRow;
}

// The numbers of these rows, in any order.
inline std::vector<Size> longest_rows(const Size* indptr, Size rows, int threads) {
  std::vector<Size> found;
  if (indptr[rows] <= kLongestRow) {
    return found;
  }
  std::mutex door;
  const EvenBlocks blocks(rows, kLongestRow);
  parallel_for(blocks.count(), threads, [&](Size block) {
    for (Size row = blocks[block].begin; row < blocks[block].end; ++row) {
      if (is_longest(indptr, row)) {
        const std::lock_guard<std::mutex> inside(door);
        found.push_back(row);
      }
    }
  });
  return found;
}

}  // namespace ssnmf
