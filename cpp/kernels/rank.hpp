// Ranks known to the compiler.
//
// A run-time rank in the inner loop costs 3 to 5 times.  Factors are stored with the rank padded by
// columns of zeros, up to 64 to one of a few widths for which the passes are compiled, above that
// to a multiple of 32.  The passes are compiled for every width that fits in the registers of the
// level, and go through wider ones in column blocks.  Of x86-64 without AVX, which few have today,
// only the narrowest is compiled: every width takes time to compile.
#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>

#include "../core/views.hpp"

namespace ssnmf {

constexpr int kNarrowestRank = 8;
constexpr int kLargestNarrowRank = 64;
constexpr int kRankBlock = 32;
// Bytes of a vector register of the level.
#if defined(__AVX512F__)
constexpr int kRegisterBytes = 64;
#elif defined(__AVX__)
constexpr int kRegisterBytes = 32;
#else
constexpr int kRegisterBytes = 16;
#endif
// Up to here a row and its sum fit in the registers, or nearly.
#if (defined(__SSE2__) || defined(_M_X64)) && !defined(__AVX__)
constexpr int kLargestFixedRank = kNarrowestRank;
#else
constexpr int kLargestFixedRank = kRegisterBytes == 64 ? 128 : 64;
#endif
// Width of the column blocks of wider rows, which divides their ranks.
constexpr int kColumnBlock = kLargestFixedRank < kLargestNarrowRank ? kNarrowestRank : kRankBlock;

// Step of the padded ranks up to 64: one AVX-512 register of either type, halved for small ranks.
template <class T>
constexpr int rank_step() {
  return sizeof(T) == 4 ? 16 : 8;
}

// The padded rank that follows R.
template <class T>
constexpr int next_rank(int R) {
  if (R >= kLargestNarrowRank) {
    return R + kRankBlock;
  }
  return R < rank_step<T>() ? rank_step<T>() : R + rank_step<T>();
}

// Sums to add up rows of R numbers with, of which a product has not to wait for the one before: it
// takes the time of four, so that rows of one register would come four times as slowly.
template <class T, int R>
constexpr int sums_side_by_side() {
  constexpr int registers = R * static_cast<int>(sizeof(T)) / kRegisterBytes;
  return registers <= 1 ? 4 : registers <= 2 ? 2 : 1;
}

inline Size padded_rank(Size rank, Size itemsize) {
  if (rank <= kNarrowestRank) {
    return kNarrowestRank;
  }
  const Size narrow = itemsize == 4 ? 16 : 8;
  const Size step = rank <= kLargestNarrowRank ? narrow : kRankBlock;
  return (rank + step - 1) / step * step;
}

// The rows of a factor, whose rank is padded.  What relies on that takes no other rows.
template <class T>
struct Factor : Rows<T> {
  Factor() = default;  // nothing
  Factor(const Rows<T>& given, const std::string& name) : Rows<T>(given) {
    const Size padded = padded_rank(given.columns, static_cast<Size>(sizeof(T)));
    if (given.columns != padded) {
      throw std::invalid_argument(
          name + " has " + std::to_string(given.columns) +
          " columns, which is not a padded rank: " + std::to_string(padded) + " would be the next");
    }
  }
};

template <int R>
using FixedRank = std::integral_constant<int, R>;

namespace detail {

// Code for the sanitizers takes long to compile: tests of it do with a few ranks, one for each way.
#ifdef SSNMF_FAST_SANITIZED
constexpr bool kAllRanks = false;
#else
constexpr bool kAllRanks = true;
#endif

template <class T>
constexpr bool compiled(int R) {
  return kAllRanks || R == 8 || R == (sizeof(T) == 4 ? 32 : 24) || R == 64 || R == 96;
}

template <class T, int R, class Body>
void visit_from(Size rank, const Body& body) {
  if constexpr (compiled<T>(R)) {
    if (rank == R) {
      body(FixedRank<R>{});
      return;
    }
  }
  if constexpr (R < kLargestFixedRank) {
    visit_from<T, next_rank<T>(R)>(rank, body);
  } else if (!kAllRanks && rank <= kLargestFixedRank) {
    throw std::invalid_argument("rank " + std::to_string(rank) + " is not compiled here");
  } else {
    body(FixedRank<0>{});
  }
}

}  // namespace detail

// Calls body(FixedRank<R>) with the rank of a factor, or with FixedRank<0> where it is above
// kLargestFixedRank.
template <class T, class Body>
void visit_rank(Size rank, const Body& body) {
  detail::visit_from<T, kNarrowestRank>(rank, body);
}

}  // namespace ssnmf
