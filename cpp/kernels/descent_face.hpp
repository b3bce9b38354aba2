// Conjugate gradients on the entries of a row that are positive, for many rows at once.
//
// Coordinate descent finds soon which entries are zero, and is slow to the minimum over the others
// where components are alike.  Conjugate gradients take as many products as a sweep for a step, and
// some steps do what hundreds of sweeps would.
#pragma once

#include <Eigen/Core>
#include <limits>
#include <vector>

#include "../core/compiler.hpp"
#include "../core/numbers.hpp"
#include "rank.hpp"

namespace ssnmf {

// A row in each lane.  Four registers of lanes hide the latency of a chain of steps.
template <class T>
constexpr int kTileLanes = 4 * kRegisterBytes / static_cast<int>(sizeof(T));
template <class T>
using TileLanes = Eigen::Array<T, kTileLanes<T>, 1>;
// A column of a factor or of its like in each element.
template <class T>
using TileColumns = std::vector<TileLanes<T>>;

// |gradient| where an entry can still fall, or must rise.
template <class Lanes>
SSNMF_INLINE Lanes projected(const Lanes& f, const Lanes& gradient) {
  using T = typename Lanes::Scalar;
  return (f > T(0)).select(gradient, gradient.min(T(0))).abs();
}

template <class T>
class DescentFace {
 public:
  using Lanes = TileLanes<T>;
  using Columns = TileColumns<T>;

  explicit DescentFace(std::size_t columns)
      : gradient_(columns),
        direction_(columns),
        product_(columns),
        inverse_(columns),
        rate_(columns) {}

  // Lowers f K f^T - 2 p f^T in the positive entries of f; `multiply(x, out)` gives x K,
  // `curvature` its diagonal, `inverse` the inverse of that or 0.  A step ends where an entry
  // becomes zero, and the next one sets out anew without it: no step raises the value.
  template <class Multiply>
  SSNMF_FLATTEN void run(const Multiply& multiply, const Columns& p, const Columns& curvature,
                         const Columns& inverse, int steps, Columns& f) {
    if (steps == 0) {
      return;
    }
    multiply(f, gradient_);
    Lanes before = Lanes::Zero();
    for (std::size_t k = 0; k < gradient_.size(); ++k) {
      gradient_[k] -= p[k];
      inverse_[k] = (f[k] > T(0)).select(inverse[k], T(0));
      direction_[k] = -gradient_[k] * inverse_[k];
      before -= gradient_[k] * direction_[k];
    }
    for (int step = 0; step < steps; ++step) {
      multiply(direction_, product_);
      const Lanes minimizer = length(curvature);
      if (!(minimizer > T(0)).any()) {
        return;
      }
      const Lanes moves = (minimizer > T(0)).select(Lanes::Ones(), T(0));
      const Lanes limit = to_the_border(minimizer, f);
      Lanes now = Lanes::Zero();
      for (std::size_t k = 0; k < gradient_.size(); ++k) {
        f[k] = (f[k] + limit * direction_[k]).max(T(0));
        gradient_[k] += limit * product_[k];
        now += gradient_[k] * gradient_[k] * inverse_[k];
      }
      const Lanes ratio = now / before;
      const Lanes turn =
          (limit < minimizer || !(ratio < std::numeric_limits<T>::max())).select(T(0), ratio);
      for (std::size_t k = 0; k < gradient_.size(); ++k) {
        direction_[k] = moves * (turn * direction_[k] - gradient_[k] * inverse_[k]);
      }
      before = now;
    }
  }

 private:
  // The length of the step to the minimum on the line; 0 where there is none to be seen.
  SSNMF_INLINE Lanes length(const Columns& curvature) const {
    constexpr T rounding = 64 * std::numeric_limits<T>::epsilon();
    Lanes slope = Lanes::Zero();
    Lanes bend = Lanes::Zero();
    Lanes most = Lanes::Zero();
    for (std::size_t k = 0; k < gradient_.size(); ++k) {
      slope += direction_[k] * gradient_[k];
      bend += direction_[k] * product_[k];
      most += direction_[k] * direction_[k] * curvature[k];
    }
    return (slope < T(0) && bend > rounding * most).select(-slope / bend, T(0));
  }

  // Shortens the steps that would leave the orthant; entries that end on its border stay there.
  SSNMF_INLINE Lanes to_the_border(const Lanes& minimizer, Columns& f) {
    Lanes lowest = Lanes::Zero();
    for (std::size_t k = 0; k < gradient_.size(); ++k) {
      lowest = lowest.min(f[k] + minimizer * direction_[k]);
    }
    if (!(lowest < T(0)).any()) {
      return minimizer;
    }
    // Without choices by lane in the loops, which would be scalar: the share of an entry that a
    // step of length 1 takes away, and the largest of a row.
    Lanes largest = Lanes::Zero();
    for (std::size_t k = 0; k < gradient_.size(); ++k) {
      rate_[k] = ((-direction_[k]).max(T(0)) / f[k].max(tiny<T>())).min(kFastest);
      largest = largest.max(rate_[k]);
    }
    const Lanes limit = minimizer.min(T(1) / largest);
    const Lanes goes_on = (limit < minimizer).select(T(0), Lanes::Ones());
    constexpr T above_rounding = 8 / std::numeric_limits<T>::epsilon();
    const Lanes scale = above_rounding * minimizer;
    for (std::size_t k = 0; k < gradient_.size(); ++k) {
      const Lanes stays = ((largest - rate_[k]) * scale).min(T(1)).max(goes_on);
      f[k] *= stays;
      direction_[k] *= stays;
      inverse_[k] *= stays;
    }
    return limit;
  }

  static constexpr T kFastest = std::numeric_limits<T>::max() / 4;

  Columns gradient_;
  Columns direction_;
  Columns product_;
  Columns inverse_;
  Columns rate_;
};

}  // namespace ssnmf
