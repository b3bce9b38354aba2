// Rows of a factor that have few components: few that are positive, or few that may be.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <type_traits>

#include "../core/compiler.hpp"
#include "../core/views.hpp"
#include "rank.hpp"

namespace ssnmf {

// The number of a component: half as much to read as an Index.
using Component = std::uint16_t;

// So many components of a row at most are taken one by one; from there on whole registers are
// faster, which for a row of few registers they always are.
constexpr Size kMostFew = 12;
inline Size most_few(Size rank) {
  const bool pays = rank >= 3 * kNarrowestRank && rank <= std::numeric_limits<Component>::max();
  return pays ? std::min(rank / kNarrowestRank, kMostFew) : 0;
}

// For how many components at once loops are compiled.
inline constexpr int kFewWidths[] = {1, 2, 4, 8, static_cast<int>(kMostFew)};

// The number of the least of these widths that has room for so many.
inline std::size_t width_for(int count) {
  const auto found = std::lower_bound(std::begin(kFewWidths), std::end(kFewWidths), count);
  return static_cast<std::size_t>(found - std::begin(kFewWidths));
}

// Whether at most so many components are not zero; without a branch for each.
template <class T>
SSNMF_INLINE bool has_few(const T* row, Size rank, Size most) {
  std::conditional_t<sizeof(T) == sizeof(std::int32_t), std::int32_t, std::int64_t> count = 0;
  for (Size k = 0; k < rank; ++k) {
    count += row[k] != T(0) ? 1 : 0;
  }
  return count <= most;
}

// Writes the numbers of the components that are not zero to `places`; returns how many there are,
// or -1 for more than `most`.
template <class T>
SSNMF_INLINE int components_of(const T* row, Size rank, Size most, Component* places) {
  using Run = Eigen::Map<const Eigen::Array<T, kNarrowestRank, 1>>;
  int count = 0;
  for (Size first = 0; first < rank; first += kNarrowestRank) {
    const Size end = std::min<Size>(first + kNarrowestRank, rank);
    if (end - first == kNarrowestRank && Run(row + first).abs().sum() == T(0)) {
      continue;
    }
    for (Size k = first; k < end; ++k) {
      if (row[k] != T(0)) {
        if (count == most) {
          return -1;
        }
        places[count++] = static_cast<Component>(k);
      }
    }
  }
  return count;
}

// The same for the components that a row may have.
inline int components_of(const std::uint8_t* allowed, Size rank, Size most, Component* places) {
  int count = 0;
  for (Size byte = 0; byte < rank / 8; ++byte) {
    for (int bit = 0; allowed[byte] >> bit != 0; ++bit) {
      if ((allowed[byte] >> bit & 1) != 0) {
        if (count == most) {
          return -1;
        }
        places[count++] = static_cast<Component>(8 * byte + bit);
      }
    }
  }
  return count;
}

}  // namespace ssnmf
