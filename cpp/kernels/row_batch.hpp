// Rows of several entries at once.
//
// A division, or a sum over the lanes of a register, takes as long as the products of a short row.
// Several entries share them: one register holds their dots, out of one transposition.
#pragma once

#include <Eigen/Core>

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

}  // namespace detail

template <class T, int R, int Entries = detail::batch_size<T, R>()>
class RowBatch {
  static constexpr bool kShort = R <= 2 * detail::kShortLanes<T>;
  using Packet = simd::PacketFor<T, (kShort ? 8 : R)>;
  static constexpr int kLanes = simd::kLanesOf<Packet>;
  static constexpr int kParts = R / kLanes;
  static constexpr int kSums = sums_side_by_side<T, R>();
  static_assert(Entries == kLanes || (Entries == 4 && kLanes > 4));

 public:
  static constexpr int size = Entries;
  // Whether the rows stay in registers from their dots to their sum: longer ones would be stored
  // and loaded again, which costs more than a division.  (Four rows of five registers take 20
  // of 32.)
  static constexpr bool fits = kShort || (kRegisterBytes == 64 && kParts <= 5);

  // out[e] = f . row of entry first + e
  template <class Gather>
  SSNMF_INLINE void dots(const T* f, const Gather& gather, Size first, T* out) {
    using namespace simd;
    Packet sums[size];
    for (int e = 0; e < size; ++e) {
      const auto row = gather.template packets<Packet, R>(first + e);
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
      PacketBlock<Given, size> square;
      for (int e = 0; e < size; ++e) {
        square.packet[e] = sums[e];
      }
      ptranspose(square);
      for (int step = size / 2; step > 0; step /= 2) {
        for (int e = 0; e < step; ++e) {
          square.packet[e] = padd(square.packet[e], square.packet[e + step]);
        }
      }
      pstoreu(out, square.packet[0]);
    }
  }

  Packet rows_[size][kParts];
};

}  // namespace ssnmf
