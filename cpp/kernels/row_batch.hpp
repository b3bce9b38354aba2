// Rows of several entries at once, kept in registers.
//
// A division, or a sum over the lanes of a register, takes as long as the products of a short row.
// Several entries share them: one register holds their dots, out of one transposition.
#pragma once

#include <Eigen/Core>

#include "../core/compiler.hpp"
#include "rank.hpp"

namespace ssnmf {

template <class T, int R>
class RowBatch {
  using Packet = typename Eigen::internal::find_best_packet<T, (R < 8 ? R : 8)>::type;
  static constexpr int kLanes = Eigen::internal::unpacket_traits<Packet>::size;
  static constexpr int kParts = R / kLanes;
  static constexpr int kSums = sums_side_by_side<T, R>();

 public:
  static constexpr int size = kLanes;
  // Longer rows do not stay in registers: to load them twice costs more than a division.
  static constexpr bool fits = kParts <= 2;

  // out[e] = f . row(e), where row gives a pointer; out is aligned.
  template <class Row>
  SSNMF_INLINE void dots(const T* f, const Row& row, T* out) {
    using namespace Eigen::internal;
    PacketBlock<Packet, size> sums;
    for (int e = 0; e < size; ++e) {
      const T* g = row(e);
      for (int k = 0; k < kParts; ++k) {
        rows_[e][k] = ploadu<Packet>(g + k * kLanes);
      }
      Packet sum = pmul(ploadu<Packet>(f), rows_[e][0]);
      for (int k = 1; k < kParts; ++k) {
        sum = pmadd(ploadu<Packet>(f + k * kLanes), rows_[e][k], sum);
      }
      sums.packet[e] = sum;
    }
    ptranspose(sums);
    for (int step = size / 2; step > 0; step /= 2) {
      for (int e = 0; e < step; ++e) {
        sums.packet[e] = padd(sums.packet[e], sums.packet[e + step]);
      }
    }
    pstore(out, sums.packet[0]);
  }

  // sum += sum_e c[e] row(e)
  SSNMF_INLINE void add_to(const T* c, T* sum) const {
    using namespace Eigen::internal;
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
  Packet rows_[size][kParts];
};

}  // namespace ssnmf
