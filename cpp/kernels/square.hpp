// Squares of a register's width, turned in registers.
#pragma once

#include <Eigen/Core>

#include "../core/compiler.hpp"

// A register type loses its alignment as an argument of a template, where it has no effect.
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

namespace ssnmf {

namespace detail {

template <class T>
using Packet = typename Eigen::internal::packet_traits<T>::type;

}  // namespace detail

// Values in a vector register of the level.
template <class T>
constexpr int kRegisterLanes = Eigen::internal::unpacket_traits<detail::Packet<T>>::size;

// Writes column j of a square to to(j); from(i) is where its row i lies.
template <class T, class From, class To>
SSNMF_INLINE void turn_square(const From& from, const To& to) {
  Eigen::internal::PacketBlock<detail::Packet<T>, kRegisterLanes<T>> square;
  for (int i = 0; i < kRegisterLanes<T>; ++i) {
    square.packet[i] = Eigen::internal::ploadu<detail::Packet<T>>(from(i));
  }
  Eigen::internal::ptranspose(square);
  for (int j = 0; j < kRegisterLanes<T>; ++j) {
    Eigen::internal::pstoreu(to(j), square.packet[j]);
  }
}

}  // namespace ssnmf

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
