// A row, or a sum of rows, in vector registers.
//
// Eigen's expressions would do the same, but are compiled anew for every rank, at a third of the
// time that the passes take to compile.
#pragma once

#include <utility>

#include "../core/compiler.hpp"
#include "../core/views.hpp"
#include "simd.hpp"

namespace ssnmf {

// Reads registers of a row that lies in memory.
template <class Packet, class T>
SSNMF_INLINE auto registers_of(const T* row) {
  return [row](Size k) { return simd::ploadu<Packet>(row + k); };
}

// R numbers.  What is called `row` in its functions gives the register from column k on.
template <class T, int R>
class RegisterRow {
 public:
  using Packet = simd::PacketFor<T, R>;

  SSNMF_INLINE RegisterRow() {
    each([&](int i) { parts_[i] = simd::pset1<Packet>(T(0)); });
  }
  template <class Row>
  SSNMF_INLINE explicit RegisterRow(const Row& row) {
    each([&](int i) { parts_[i] = row(i * kLanes); });
  }

  T* data() { return reinterpret_cast<T*>(parts_); }
  Packet operator()(Size k) const { return parts_[k / kLanes]; }

  // += c row
  template <class Row>
  SSNMF_INLINE void add(T c, const Row& row) {
    const Packet factor = simd::pset1<Packet>(c);
    each([&](int i) { parts_[i] = simd::pmadd(factor, row(i * kLanes), parts_[i]); });
  }
  // += f times row, number by number
  template <class Row>
  SSNMF_INLINE void add_products(const T* f, const Row& row) {
    each([&](int i) {
      parts_[i] = simd::pmadd(simd::ploadu<Packet>(f + i * kLanes), row(i * kLanes), parts_[i]);
    });
  }
  SSNMF_INLINE void add(const RegisterRow& other) {
    each([&](int i) { parts_[i] = simd::padd(parts_[i], other.parts_[i]); });
  }

  SSNMF_INLINE T sum() const {
    return simd::predux(total<0, kParts>([this](int i) { return parts_[i]; }));
  }
  template <class Row>
  SSNMF_INLINE static T dot(const T* f, const Row& row) {
    return simd::predux(total<0, kParts>(
        [&](int i) { return simd::pmul(simd::ploadu<Packet>(f + i * kLanes), row(i * kLanes)); }));
  }

  SSNMF_INLINE void store(T* out) const {
    each([&](int i) { simd::pstoreu(out + i * kLanes, parts_[i]); });
  }
  // out = scale times this, or += that
  SSNMF_INLINE void store(T scale, bool accumulate, T* out) const {
    if (accumulate) {
      add_to(out, scale, *this);
      return;
    }
    const Packet factor = simd::pset1<Packet>(scale);
    each([&](int i) { simd::pstoreu(out + i * kLanes, simd::pmul(factor, parts_[i])); });
  }
  // out += c row
  template <class Row>
  SSNMF_INLINE static void add_to(T* out, T c, const Row& row) {
    const Packet factor = simd::pset1<Packet>(c);
    each([&](int i) {
      T* const to = out + i * kLanes;
      simd::pstoreu(to, simd::pmadd(factor, row(i * kLanes), simd::ploadu<Packet>(to)));
    });
  }

 private:
  static constexpr int kLanes = simd::kLanesOf<Packet>;
  static constexpr int kParts = R / kLanes;

  // Calls body(0), body(1), ...: loops would be unrolled late, with worse addresses.
  template <class Body>
  SSNMF_INLINE static void each(const Body& body) {
    each(body, std::make_integer_sequence<int, kParts>());
  }
  template <class Body, int... I>
  SSNMF_INLINE static void each(const Body& body, std::integer_sequence<int, I...>) {
    (body(I), ...);
  }

  // Sums of halves: no product waits for all the others.
  template <int First, int Count, class Part>
  SSNMF_INLINE static Packet total(const Part& part) {
    if constexpr (Count == 1) {
      return part(First);
    } else {
      return simd::padd(total<First, Count / 2>(part),
                        total<First + Count / 2, Count - Count / 2>(part));
    }
  }

  Packet parts_[kParts];
};

}  // namespace ssnmf
