// What a pass does with an entry of the data and its model f . g: a coefficient, or a loss.
#pragma once

#include <algorithm>
#include <cmath>

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

// x log(x/z) - x, with 0 log 0 = 0.
struct KullbackLeiblerLoss {
  template <class T>
  static double of(T value, T model, T) {
    if (!(value > T(0))) {
      return 0.0;
    }
    const double x = static_cast<double>(value);
    const double z = std::max(static_cast<double>(model), static_cast<double>(tiny<T>()));
    return x * std::log(x / z) - x;
  }
};

// w (x - z)^2.
struct FrobeniusLoss {
  template <class T>
  static double of(T value, T model, T weight) {
    const double residual = static_cast<double>(value) - static_cast<double>(model);
    return static_cast<double>(weight) * residual * residual;
  }
};

}  // namespace ssnmf
