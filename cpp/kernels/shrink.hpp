// The step that draws missing entries towards zero (Kassab 2021, Algorithm 2): z <- z (1 - c w), or
// its proximal form z <- z / (1 + c w), with w = (z^2 + eps)^(q/2 - 1).
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

namespace ssnmf {

constexpr Eigen::Index kShrunkAtOnce = 32;  // a whole number of registers of any level

template <class T>
struct Shrink {
  T step;         // c
  T eps;          // > 0
  T q;            // 0 ... 1
  bool proximal;  // else the explicit step, which overshoots once c w > 1
  T floor;        // smaller entries become this; -inf for none

  // Applies the step to some entries in place, by way of a buffer of whole registers: on a run that
  // starts or ends anywhere Eigen would take the odd entries one by one, with functions that round
  // differently from those of registers, and results would depend on addresses.
  void apply(T* entries, Eigen::Index size) const {
    Eigen::Index begin = 0;
    for (; begin + kShrunkAtOnce <= size; begin += kShrunkAtOnce) {
      Run z = Eigen::Map<const Run>(entries + begin);
      shrink(z);
      Eigen::Map<Run>(entries + begin) = z;
    }
    if (begin < size) {
      Run z = Run::Zero();
      std::copy(entries + begin, entries + size, z.data());
      shrink(z);
      std::copy(z.data(), z.data() + (size - begin), entries + begin);
    }
  }

 private:
  using Run = Eigen::Array<T, kShrunkAtOnce, 1>;

  // (Expressions without branches, which Eigen takes a register at a time.)
  void shrink(Run& z) const {
    if (step != T(0)) {
      if (q == T(1) && proximal) {
        const Run root = (z.square() + eps).sqrt();
        z = z * root / (root + step);
      } else if (q == T(1)) {
        z -= step * z / (z.square() + eps).sqrt();
      } else {
        const Run weight = ((T(0.5) * q - T(1)) * (z.square() + eps).log()).exp();
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
