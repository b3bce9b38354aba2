// The step that draws missing entries towards zero (Kassab 2021, Algorithm 2): z <- z (1 - c w), or
// its proximal form z <- z / (1 + c w), with w = (z^2 + eps)^(q/2 - 1).
#pragma once

#include <Eigen/Core>
#include <cmath>

namespace ssnmf {

template <class T>
struct Shrink {
  T step;         // c
  T eps;          // > 0
  T q;            // 0 ... 1
  bool proximal;  // else the explicit step, which overshoots once c w > 1
  T floor;        // smaller entries become this; -inf for none

  // Applies the step to a run of entries in place.  (Expressions without branches, which Eigen
  // takes a register at a time.)
  void apply(T* entries, Eigen::Index size) const {
    using Run = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
    Run z(entries, size);
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
