// Coordinate descent on many rows at once, and conjugate gradients on their positive entries.
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
#include "../core/views.hpp"
#include "coordinate_descent.hpp"
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

// Rows of which each has a lane; how their matrices K_i are kept is left to the kinds of tiles.
template <class T>
class Tile {
 public:
  static constexpr int kLanes = kTileLanes<T>;
  using Lanes = TileLanes<T>;
  using Columns = TileColumns<T>;

  virtual ~Tile() = default;

  // `rows` are the numbers of kLanes rows at most.  Returns the sum of the projected gradient, each
  // entry's before its first step.
  double run(const Rows<const T>& P, const Rows<T>& F, const Support& allowed,
             const Span<const Size>& rows, int sweeps, int face_steps, bool measured) {
    load(P, F, allowed, rows);
    if (measured) {
      violation_.setZero();
    }
    // Columns that no sweep visits have gradients, too.
    for (std::size_t k = gradient_.size(); measured && k < f_.size(); ++k) {
      violation_ += projected(f_[k], Lanes(-p_[k]));
    }
    for (int done = 0; done < sweeps; ++done) {
      if (done == sweeps - 1 && face_steps > 0) {
        descend_face(face_steps);
      }
      sweep(measured && done == 0);
    }
    store(F, rows);
    return measured ? violation_.template cast<double>().sum() : 0.0;
  }

 protected:
  // `columns` of the factor, of which sweeps move `moved`.
  Tile(std::size_t columns, std::size_t moved)
      : f_(columns),
        p_(columns),
        curvature_(columns),
        inverse_(columns),
        gradient_(moved),
        direction_(moved),
        product_(moved),
        free_(moved),
        rate_(moved) {}

  virtual void load(const Rows<const T>& P, const Rows<T>& F, const Support& allowed,
                    const Span<const Size>& rows) = 0;
  virtual void store(const Rows<T>& F, const Span<const Size>& rows) const = 0;
  // to = x K
  virtual void multiply(const Columns& x, Columns& to) const = 0;
  virtual void sweep(bool measured) = 0;

  template <bool Measured>
  SSNMF_INLINE void move(std::size_t k, const Lanes& gradient) {
    if constexpr (Measured) {
      violation_ += projected(f_[k], gradient);
    }
    f_[k] = (f_[k] - gradient * inverse_[k]).max(T(0));
  }

  Columns f_;
  Columns p_;
  Columns curvature_;  // diagonal of K
  Columns inverse_;    // its inverse, or 0 where an entry stays

 private:
  // Lowers f K f^T - 2 p f^T in the positive entries of f.  A step ends where an entry becomes
  // zero, and the next one starts without it: no step raises the value.
  SSNMF_FLATTEN void descend_face(int steps) {
    multiply(f_, gradient_);
    Lanes before = Lanes::Zero();
    for (std::size_t k = 0; k < gradient_.size(); ++k) {
      gradient_[k] -= p_[k];
      free_[k] = (f_[k] > T(0)).select(inverse_[k], T(0));
      direction_[k] = -gradient_[k] * free_[k];
      before -= gradient_[k] * direction_[k];
    }
    for (int step = 0; step < steps; ++step) {
      multiply(direction_, product_);
      const Lanes minimizer = length();
      if (!(minimizer > T(0)).any()) {
        return;
      }
      const Lanes moves = (minimizer > T(0)).select(Lanes::Ones(), T(0));
      const Lanes limit = to_the_border(minimizer);
      Lanes now = Lanes::Zero();
      for (std::size_t k = 0; k < gradient_.size(); ++k) {
        f_[k] = (f_[k] + limit * direction_[k]).max(T(0));
        gradient_[k] += limit * product_[k];
        now += gradient_[k] * gradient_[k] * free_[k];
      }
      const Lanes ratio = now / before;
      const Lanes turn =
          (limit < minimizer || !(ratio < std::numeric_limits<T>::max())).select(T(0), ratio);
      for (std::size_t k = 0; k < gradient_.size(); ++k) {
        direction_[k] = moves * (turn * direction_[k] - gradient_[k] * free_[k]);
      }
      before = now;
    }
  }

  // The length of the step to the minimum on the line; 0 where there is none to be seen.
  SSNMF_INLINE Lanes length() const {
    constexpr T rounding = 64 * std::numeric_limits<T>::epsilon();
    Lanes slope = Lanes::Zero();
    Lanes bend = Lanes::Zero();
    Lanes most = Lanes::Zero();
    for (std::size_t k = 0; k < gradient_.size(); ++k) {
      slope += direction_[k] * gradient_[k];
      bend += direction_[k] * product_[k];
      most += direction_[k] * direction_[k] * curvature_[k];
    }
    return (slope < T(0) && bend > rounding * most).select(-slope / bend, T(0));
  }

  // Shortens the steps that would leave the orthant; entries that end on its border stay there.
  SSNMF_INLINE Lanes to_the_border(const Lanes& minimizer) {
    Lanes lowest = Lanes::Zero();
    for (std::size_t k = 0; k < gradient_.size(); ++k) {
      lowest = lowest.min(f_[k] + minimizer * direction_[k]);
    }
    if (!(lowest < T(0)).any()) {
      return minimizer;
    }
    // Without choices by lane in the loops, which would be scalar: the share of an entry that a
    // step of length 1 takes away, and the largest of a row.
    Lanes largest = Lanes::Zero();
    for (std::size_t k = 0; k < gradient_.size(); ++k) {
      rate_[k] = ((-direction_[k]).max(T(0)) / f_[k].max(tiny<T>())).min(kFastest);
      largest = largest.max(rate_[k]);
    }
    const Lanes limit = minimizer.min(T(1) / largest);
    const Lanes goes_on = (limit < minimizer).select(T(0), Lanes::Ones());
    constexpr T above_rounding = 8 / std::numeric_limits<T>::epsilon();
    const Lanes scale = above_rounding * minimizer;
    for (std::size_t k = 0; k < gradient_.size(); ++k) {
      const Lanes stays = ((largest - rate_[k]) * scale).min(T(1)).max(goes_on);
      f_[k] *= stays;
      direction_[k] *= stays;
      free_[k] *= stays;
    }
    return limit;
  }

  static constexpr T kFastest = std::numeric_limits<T>::max() / 4;

  Lanes violation_;
  Columns gradient_;
  Columns direction_;
  Columns product_;
  Columns free_;  // inverse_ where an entry is positive
  Columns rate_;
};

}  // namespace ssnmf
