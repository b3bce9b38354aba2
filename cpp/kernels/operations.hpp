// The coefficient that an entry of the data and its model f . g have in a pass; see passes.hpp.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "../core/compiler.hpp"
#include "../core/numbers.hpp"
#include "passes.hpp"

namespace ssnmf {

// Where several coefficients together cost less than one by one (`coefficients`): nowhere, for rows
// that stay in registers meanwhile, or for chunks of any length.
enum class Together { kNever, kShortRows, kChunks };

// needs_model: whether a coefficient depends on the model.
struct Product {
  static constexpr bool needs_model = false;
  static constexpr Together together = Together::kNever;
  template <class T>
  T coefficient(T value, T) const {
    return value;
  }
};

struct Ratio {
  static constexpr bool needs_model = true;
  static constexpr Together together = Together::kShortRows;
  template <class T>
  T coefficient(T value, T model) const {
    return safe_ratio(value, model);
  }

  // out[e] = coefficient(values[e], models[e]), e = 0..N - 1; models and out are aligned.
  template <int N, class T>
  SSNMF_INLINE void coefficients(const T* values, const T* models, T* out) const {
    using Packet = typename Eigen::internal::find_best_packet<T, N>::type;
    constexpr int lanes = Eigen::internal::unpacket_traits<Packet>::size;
    const Packet floor = Eigen::internal::pset1<Packet>(tiny<T>());
    for (int e = 0; e < N; e += lanes) {
      const Packet z = Eigen::internal::pload<Packet>(models + e);
      const Packet x = Eigen::internal::ploadu<Packet>(values + e);
      const Packet ratio = Eigen::internal::pdiv(x, z);
      const Packet counts = Eigen::internal::pcmp_lt(floor, z);
      Eigen::internal::pstore(out + e, Eigen::internal::pand(counts, ratio));
    }
  }
};

struct Sampled {
  static constexpr bool needs_model = true;
  static constexpr Together together = Together::kNever;
  template <class T>
  T coefficient(T value, T model) const {
    return value * model;
  }
};

// Powers of a model are kept below this number, so that sums of them stay finite.
template <class T>
constexpr T kLargestPower = std::numeric_limits<T>::max() / T(1 << 20);

// A model that vanishes pulls at no positive factor entry: its powers count as 0.
struct Power {
  static constexpr bool needs_model = true;
  static constexpr Together together = Together::kChunks;
  double exponent;

  template <class T>
  T coefficient(T value, T model) const {
    if (!(model > tiny<T>())) {
      return T(0);
    }
    const double most = std::log(static_cast<double>(kLargestPower<T>));
    const double power = std::min(exponent * std::log(static_cast<double>(model)), most);
    return value * static_cast<T>(std::exp(power));
  }

  // The same for many entries, a register at a time.
  template <class T>
  void coefficients(T* values, const T* models, Eigen::Index size) const {
    using Run = Eigen::Array<double, Eigen::Dynamic, 1, 0, 128, 1>;
    using Entries = Eigen::Array<T, Eigen::Dynamic, 1>;
    const double floor = static_cast<double>(tiny<T>());
    const double most = std::log(static_cast<double>(kLargestPower<T>));
    for (Eigen::Index e = 0; e < size; e += 128) {
      const Eigen::Index count = std::min<Eigen::Index>(128, size - e);
      Eigen::Map<Entries> v(values + e, count);
      const Run z = Eigen::Map<const Entries>(models + e, count).template cast<double>();
      const Run power = (exponent * z.max(floor).log()).min(most).exp();
      const Run kept = (z > floor).select(power, 0.0);
      v *= kept.template cast<T>();
    }
  }
};

struct InverseSquare {
  static constexpr bool needs_model = true;
  static constexpr Together together = Together::kNever;
  template <class T>
  T coefficient(T value, T model) const {
    const T power = std::min(T(1) / (model * model), kLargestPower<T>);
    return model > tiny<T>() ? value * power : T(0);
  }
};

// Calls body with the operation as an object.
template <class Body>
auto visit_operation(Operation operation, const Body& body) {
  switch (operation.kind) {
    case Operation::kProduct:
      return body(Product{});
    case Operation::kRatio:
      return body(Ratio{});
    case Operation::kSampled:
      return body(Sampled{});
    case Operation::kPower:
      if (operation.exponent == -1.0) {
        return body(Ratio{});
      }
      if (operation.exponent == -2.0) {
        return body(InverseSquare{});
      }
      return body(Power{operation.exponent});
  }
  throw std::invalid_argument("unknown operation");
}

}  // namespace ssnmf
