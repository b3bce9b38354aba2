// Numerical floors shared by the kernels.
#pragma once

#include <limits>

namespace ssnmf {

// Floor of divisors and of positive factor entries: 1e-292 (double), 1e-31 (float).
template <class T>
constexpr T tiny() {
  return std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon();
}

// x / z, and 0 where z vanishes.  Where z = f . g is 0, f_k g_k = 0 for every k, so the entry pulls
// at no positive factor entry: 0 is its exact contribution to F .* P.
template <class T>
T safe_ratio(T x, T z) {
  return z > tiny<T>() ? x / z : T(0);
}

}  // namespace ssnmf
