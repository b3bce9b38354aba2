// Squares of a register's width, turned in registers.
#pragma once

#include <Eigen/Core>

#include "../core/compiler.hpp"
#include "simd.hpp"

// A register type loses its alignment as an argument of a template, where it has no effect.
#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

namespace ssnmf {

namespace detail {

template <class T>
using Square = simd::PacketBlock<simd::Packet<T>, simd::kLanesOf<simd::Packet<T>>>;

template <class T>
SSNMF_INLINE void turn(Square<T>& square) {
  simd::ptranspose(square);
}

#if defined(__AVX512F__)
// Eigen takes these apart into halves, in twice as many instructions.

// Quarters of four registers, turned; the first two by their first lanes.
#define SSNMF_TURN_QUARTERS(shuffle, a, b, c, d, out0, out1, out2, out3) \
  {                                                                      \
    const auto even = shuffle(a, b, 0x88), odd = shuffle(a, b, 0xdd);    \
    const auto more = shuffle(c, d, 0x88), rest = shuffle(c, d, 0xdd);   \
    out0 = shuffle(even, more, 0x88);                                    \
    out1 = shuffle(odd, rest, 0x88);                                     \
    out2 = shuffle(even, more, 0xdd);                                    \
    out3 = shuffle(odd, rest, 0xdd);                                     \
  }

template <>
SSNMF_INLINE void turn<double>(Square<double>& square) {
  __m512d* r = square.packet;
  __m512d pairs[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm512_unpacklo_pd(r[i], r[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_pd(r[i], r[i + 1]);
  }
  for (int c = 0; c < 2; ++c) {
    SSNMF_TURN_QUARTERS(_mm512_shuffle_f64x2, pairs[c], pairs[c + 2], pairs[c + 4], pairs[c + 6],
                        r[c], r[c + 2], r[c + 4], r[c + 6])
  }
}

template <>
SSNMF_INLINE void turn<float>(Square<float>& square) {
  __m512* r = square.packet;
  __m512 fours[16];
  for (int i = 0; i < 16; i += 4) {
    const __m512d a = _mm512_castps_pd(_mm512_unpacklo_ps(r[i], r[i + 1]));
    const __m512d b = _mm512_castps_pd(_mm512_unpackhi_ps(r[i], r[i + 1]));
    const __m512d c = _mm512_castps_pd(_mm512_unpacklo_ps(r[i + 2], r[i + 3]));
    const __m512d d = _mm512_castps_pd(_mm512_unpackhi_ps(r[i + 2], r[i + 3]));
    fours[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
    fours[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
    fours[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
    fours[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
  }
  for (int c = 0; c < 4; ++c) {
    SSNMF_TURN_QUARTERS(_mm512_shuffle_f32x4, fours[c], fours[c + 4], fours[c + 8], fours[c + 12],
                        r[c], r[c + 4], r[c + 8], r[c + 12])
  }
}
#undef SSNMF_TURN_QUARTERS
#endif

}  // namespace detail

// Values in a vector register of the level.
template <class T>
constexpr int kRegisterLanes = simd::kLanesOf<simd::Packet<T>>;

// The columns of a square; from(i) is where its row i lies.
template <class T, class From>
SSNMF_INLINE detail::Square<T> turned_square(const From& from) {
  detail::Square<T> square;
  for (int i = 0; i < kRegisterLanes<T>; ++i) {
    square.packet[i] = simd::ploadu<simd::Packet<T>>(from(i));
  }
  detail::turn<T>(square);
  return square;
}

// Writes column j of a square to to(j).
template <class T, class From, class To>
SSNMF_INLINE void turn_square(const From& from, const To& to) {
  const detail::Square<T> square = turned_square<T>(from);
  for (int j = 0; j < kRegisterLanes<T>; ++j) {
    simd::pstoreu(to(j), square.packet[j]);
  }
}

}  // namespace ssnmf

#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic pop
#endif
