// How the map phi of completion_pass.hpp is applied to runs of entries.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "completion_pass.hpp"

namespace ssnmf {

constexpr Eigen::Index kShrunkAtOnce = 128;  // a whole number of registers of any level

template <class T>
class Shrink {
 public:
  explicit Shrink(const Shrinkage<T>& map) : map_(map) {}

  // The least number of entries in whole registers of any level.
  static constexpr Eigen::Index whole_registers(Eigen::Index size) {
    constexpr Eigen::Index entries = 64 / static_cast<Eigen::Index>(sizeof(T));
    return (size + entries - 1) / entries * entries;
  }

  // Applies the step in place to entries that begin at a whole register and fill some of them.
  void apply_aligned(T* entries, Eigen::Index size) const {
    shrink(Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>, Eigen::Aligned64>(entries, size));
  }

  // The same for entries anywhere, by way of a buffer of whole registers: on a run that starts or
  // ends anywhere Eigen would take the odd entries one by one, with functions that round
  // differently from those of registers, and results would depend on addresses.
  void apply(T* entries, Eigen::Index size) const {
    alignas(64) T run[kShrunkAtOnce] = {};
    for (Eigen::Index begin = 0; begin < size; begin += kShrunkAtOnce) {
      const Eigen::Index count = std::min(kShrunkAtOnce, size - begin);
      std::copy(entries + begin, entries + begin + count, run);
      apply_aligned(run, kShrunkAtOnce);
      std::copy(run, run + count, entries + begin);
    }
  }

 private:
  // (Expressions without branches, which Eigen takes a register at a time.)
  template <class Run>
  void shrink(Run z) const {
    if (map_.step != T(0)) {
      if (map_.q == T(1) && map_.proximal) {
        const auto root = (z.square() + map_.eps).sqrt();
        z = z * root / (root + map_.step);
      } else if (map_.q == T(1)) {
        z -= map_.step * z / (z.square() + map_.eps).sqrt();
      } else {
        const auto weight = ((T(0.5) * map_.q - T(1)) * (z.square() + map_.eps).log()).exp();
        if (map_.proximal) {
          z = z / (T(1) + map_.step * weight);
        } else {
          z -= map_.step * z * weight;
        }
      }
    }
    z = z.max(map_.floor);
  }

  const Shrinkage<T> map_;
};

}  // namespace ssnmf
