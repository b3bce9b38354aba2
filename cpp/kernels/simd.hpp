// Vector registers: the only file that knows Eigen's own functions for them, which it may rename.
#pragma once

#include <Eigen/Core>

#include "../core/compiler.hpp"

// A register type loses its alignment as an argument of a template, where it has no effect.
#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

namespace ssnmf::simd {

using Eigen::internal::padd;
using Eigen::internal::pand;
using Eigen::internal::pcmp_eq;
using Eigen::internal::pcmp_lt;
using Eigen::internal::pdiv;
using Eigen::internal::pload;
using Eigen::internal::ploadu;
using Eigen::internal::plset;
using Eigen::internal::pmadd;
using Eigen::internal::pmax;
using Eigen::internal::pmin;
using Eigen::internal::pmul;
using Eigen::internal::predux;
using Eigen::internal::pselect;
using Eigen::internal::pset1;
using Eigen::internal::pstore;
using Eigen::internal::pstoreu;
using Eigen::internal::psub;
using Eigen::internal::ptranspose;
using Eigen::internal::pzero;

using Eigen::internal::PacketBlock;

// A register of the level; and the widest whose lanes divide Size numbers.
template <class T>
using Packet = typename Eigen::internal::packet_traits<T>::type;
template <class T, int Size>
using PacketFor = typename Eigen::internal::find_best_packet<T, Size>::type;

template <class P>
constexpr int kLanesOf = Eigen::internal::unpacket_traits<P>::size;
template <class P>
using Half = typename Eigen::internal::unpacket_traits<P>::half;

// The sum of the two halves of a register.
template <class P>
SSNMF_INLINE Half<P> add_halves(const P& packet) {
#if EIGEN_MAJOR_VERSION > 5 || (EIGEN_MAJOR_VERSION == 5 && EIGEN_MINOR_VERSION > 0)
  return Eigen::internal::predux_half(packet);
#else
  return Eigen::internal::predux_half_dowto4(packet);
#endif
}

}  // namespace ssnmf::simd

#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic pop
#endif
