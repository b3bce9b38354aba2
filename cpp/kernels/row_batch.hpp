// Rows of several entries at once.
//
// A division, or a sum over the lanes of a register, takes as long as the products of a short row.
// Several entries share them: one register holds their dots.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <type_traits>

#include "../core/compiler.hpp"
#include "../core/views.hpp"
#include "rank.hpp"
#include "simd.hpp"

namespace ssnmf {

namespace detail {

template <class T>
constexpr int kShortLanes = simd::kLanesOf<simd::PacketFor<T, 8>>;

// Short rows, of at most two registers, come as many at once as a register has lanes.  Of longer
// ones more than four would not stay in the registers.
template <class T, int R>
constexpr int batch_size() {
  return R <= 2 * kShortLanes<T> || kShortLanes<T> < 4 ? kShortLanes<T> : 4;
}

// Sums of lanes side by side, those of x first.  Count: the number of registers that x and y have
// become of.
#if defined(__AVX__)
template <int>
SSNMF_INLINE __m128 merged(__m128 x, __m128 y) {
  return _mm_add_ps(_mm_shuffle_ps(x, y, 0x88), _mm_shuffle_ps(x, y, 0xdd));
}
template <int Count>
SSNMF_INLINE __m256 merged(__m256 x, __m256 y) {
  if constexpr (Count < 8) {
    return _mm256_add_ps(_mm256_shuffle_ps(x, y, 0x88), _mm256_shuffle_ps(x, y, 0xdd));
  } else {
    return _mm256_add_ps(_mm256_permute2f128_ps(x, y, 0x20), _mm256_permute2f128_ps(x, y, 0x31));
  }
}
template <int Count>
SSNMF_INLINE __m256d merged(__m256d x, __m256d y) {
  if constexpr (Count < 4) {
    return _mm256_add_pd(_mm256_unpacklo_pd(x, y), _mm256_unpackhi_pd(x, y));
  } else {
    return _mm256_add_pd(_mm256_permute2f128_pd(x, y, 0x20), _mm256_permute2f128_pd(x, y, 0x31));
  }
}
#endif
#if defined(__AVX512F__)
template <int Count>
SSNMF_INLINE __m512d merged(__m512d x, __m512d y) {
  if constexpr (Count < 4) {
    return _mm512_add_pd(_mm512_unpacklo_pd(x, y), _mm512_unpackhi_pd(x, y));
  } else {
    return _mm512_add_pd(_mm512_shuffle_f64x2(x, y, 0x88), _mm512_shuffle_f64x2(x, y, 0xdd));
  }
}
#endif

// The sums over the lanes of as many registers as one has lanes.
template <int Count, class Packet>
SSNMF_INLINE Packet totals(const Packet* sums) {
#if defined(__AVX__)
  if constexpr (Count == 1) {
    return sums[0];
  } else {
    return merged<Count>(totals<Count / 2>(sums), totals<Count / 2>(sums + Count / 2));
  }
#else
  simd::PacketBlock<Packet, Count> square;
  std::copy_n(sums, Count, square.packet);
  simd::ptranspose(square);
  for (int step = Count / 2; step > 0; step /= 2) {
    for (int e = 0; e < step; ++e) {
      square.packet[e] = simd::padd(square.packet[e], square.packet[e + step]);
    }
  }
  return square.packet[0];
#endif
}

}  // namespace detail

template <class T, int R, int Entries = detail::batch_size<T, R>()>
class RowBatch {
 public:
  static constexpr bool is_short = R <= 2 * detail::kShortLanes<T>;

 private:
  using Packet = simd::PacketFor<T, (is_short ? 8 : R)>;
  static constexpr int kLanes = simd::kLanesOf<Packet>;
  static constexpr int kParts = R / kLanes;
  static constexpr int kSums = sums_side_by_side<T, R>();
  static_assert(Entries == kLanes || (Entries == 4 && kLanes > 4));

 public:
  static constexpr int size = Entries;
  // Whether the rows stay in registers from their dots to their sum: longer ones would be stored
  // and loaded again, which costs more than a division.  (Four rows of five registers take 20
  // of 32.)
  static constexpr bool fits = is_short || (kRegisterBytes == 64 && kParts <= 5);

  // out[e] = f . row of entry first + e, of which the last of `count` stands for those that follow.
  template <class Gather>
  SSNMF_INLINE void dots(const T* f, const Gather& gather, Size first, Size count, T* out) {
    using namespace simd;
    Packet sums[size];
    for (int e = 0; e < size; ++e) {
      const auto row = gather.template packets<Packet, R>(first + std::min<Size>(e, count - 1));
      for (int k = 0; k < kParts; ++k) {
        rows_[e][k] = row(k * kLanes);
      }
      sums[e] = pmul(ploadu<Packet>(f), rows_[e][0]);
      for (int k = 1; k < kParts; ++k) {
        sums[e] = pmadd(ploadu<Packet>(f + k * kLanes), rows_[e][k], sums[e]);
      }
    }
    store_totals(sums, out);
  }

  // sum += sum_e c[e] row(e)
  SSNMF_INLINE void add_to(const T* c, T* sum) const {
    using namespace simd;
    for (int k = 0; k < kParts; ++k) {
      // Sums side by side: each product would wait for the one before.
      Packet totals[kSums];
      totals[0] = pmadd(pset1<Packet>(c[0]), rows_[0][k], ploadu<Packet>(sum + k * kLanes));
      for (int e = 1; e < kSums; ++e) {
        totals[e] = pmul(pset1<Packet>(c[e]), rows_[e][k]);
      }
      for (int e = kSums; e < size; ++e) {
        totals[e % kSums] = pmadd(pset1<Packet>(c[e]), rows_[e][k], totals[e % kSums]);
      }
      for (int e = 1; e < kSums; ++e) {
        totals[0] = padd(totals[0], totals[e]);
      }
      pstoreu(sum + k * kLanes, totals[0]);
    }
  }

 private:
  // out[e] = the sum over the lanes of sums[e]
  template <class Sums>
  SSNMF_INLINE static void store_totals(const Sums& sums, T* out) {
    using namespace simd;
    using Given = std::decay_t<decltype(sums[0])>;
    if constexpr (kLanesOf<Given> > size) {
      Half<Given> halves[size];
      for (int e = 0; e < size; ++e) {
        halves[e] = add_halves(sums[e]);
      }
      store_totals(halves, out);
    } else {
      pstoreu(out, detail::totals<size>(sums));
    }
  }

  Packet rows_[size][kParts];
};

}  // namespace ssnmf
