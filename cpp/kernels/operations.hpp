// What a pass does with an entry of the data and its model f . g: a coefficient, or a loss.
#pragma once

#include <Eigen/Core>
#include <limits>

#include "../core/numbers.hpp"

namespace ssnmf {

struct Product {
  static constexpr bool needs_model = false;
  template <class T>
  static T coefficient(T value, T) {
    return value;
  }
};

struct Ratio {
  static constexpr bool needs_model = true;
  template <class T>
  static T coefficient(T value, T model) {
    return safe_ratio(value, model);
  }
};

struct Sampled {
  static constexpr bool needs_model = true;
  template <class T>
  static T coefficient(T value, T model) {
    return value * model;
  }
};

// Losses are summed over short runs of entries, so that logarithms are taken a register at a time.
constexpr Eigen::Index kLossRun = 128;

namespace detail {

using Run = Eigen::Array<double, Eigen::Dynamic, 1, 0, kLossRun, 1>;

template <class T>
Run run_of(const T* data, Eigen::Index size) {
  return Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>(data, size).template cast<double>();
}

}  // namespace detail

// Sum of x log(x/z) - x, with 0 log 0 = 0; a missing entry is to be read as 0.  At most kLossRun
// entries.  (No branch and no select, which Eigen would take entry by entry.)
struct KullbackLeiblerLoss {
  static constexpr bool missing_is_zero = true;
  template <class T>
  static double of(const T* values, const T* models, const T*, Eigen::Index size) {
    const detail::Run x = detail::run_of(values, size);
    const detail::Run z = detail::run_of(models, size).max(static_cast<double>(tiny<T>()));
    using Limits = std::numeric_limits<double>;
    return (x * (x / z).max(Limits::min()).min(Limits::max()).log() - x).sum();
  }
};

// What of that sum belongs to entries whose model vanishes.  Multiplicative updates keep it so:
// this part is constant.
struct UnreachedLoss {
  static constexpr bool missing_is_zero = true;
  template <class T>
  static double of(const T* values, const T* models, const T* weights, Eigen::Index size) {
    T unreached[kLossRun];
    T none[kLossRun] = {};
    for (Eigen::Index e = 0; e < size; ++e) {
      unreached[e] = models[e] > tiny<T>() ? T(0) : values[e];
    }
    return KullbackLeiblerLoss::of(unreached, none, weights, size);
  }
};

// Sum of w (x - z)^2; weights == nullptr stands for ones, NaN counts nothing.
struct FrobeniusLoss {
  static constexpr bool missing_is_zero = false;
  template <class T>
  static double of(const T* values, const T* models, const T* weights, Eigen::Index size) {
    const detail::Run x = detail::run_of(values, size);
    const detail::Run residual = x - detail::run_of(models, size);
    const detail::Run squares = (x == x).select(residual.square(), 0.0);
    return weights == nullptr ? squares.sum() : (detail::run_of(weights, size) * squares).sum();
  }
};

}  // namespace ssnmf
