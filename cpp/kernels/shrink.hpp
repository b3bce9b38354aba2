// The step that draws missing entries towards zero (Kassab 2021, Algorithm 2): z <- z (1 - c w), or
// its proximal form z <- z / (1 + c w), with w = (z^2 + eps)^(q/2 - 1).
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

namespace ssnmf {

constexpr Eigen::Index kShrunkAtOnce = 128;  // a whole number of registers of any level

template <class T>
struct Shrink {
  T step;         // c
  T eps;          // > 0
  T q;            // 0 ... 1
  bool proximal;  // else the explicit step, which overshoots once c w > 1
  T floor;        // smaller entries become this; -inf for none

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
    if (step != T(0)) {
      if (q == T(1) && proximal) {
        const auto root = (z.square() + eps).sqrt();
        z = z * root / (root + step);
      } else if (q == T(1)) {
        z -= step * z / (z.square() + eps).sqrt();
      } else {
        const auto weight = ((T(0.5) * q - T(1)) * (z.square() + eps).log()).exp();
        if (proximal) {
          z = z / (T(1) + step * weight);
        } else {
          z -= step * z * weight;
        }
      }
    }
    z = z.max(floor);
  }
};

}  // namespace ssnmf
