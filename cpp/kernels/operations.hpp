// The coefficient that an entry of the data and its model f . g have in a pass; see passes.hpp.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>

#include "../core/compiler.hpp"
#include "../core/numbers.hpp"
#include "../core/views.hpp"
#include "passes.hpp"
#include "simd.hpp"

namespace ssnmf {

// What an operation may say of itself, and what it is otherwise.
struct AnyOperation {
  static constexpr bool needs_model = true;    // whether a coefficient depends on the model
  static constexpr bool known_ranks = true;    // whether passes are compiled for every rank
  static constexpr bool by_registers = false;  // whether many together cost less (`coefficients`)
  static constexpr bool keeps = false;         // whether they are kept (`keep`)
};

struct Product : AnyOperation {
  static constexpr bool needs_model = false;
  template <class T>
  T coefficient(T value, T) const {
    return value;
  }
};

struct Ratio : AnyOperation {
  static constexpr bool by_registers = true;
  double least = 0.0;  // models below count as this

  Ratio() = default;
  explicit Ratio(double model) : least(model) {}

  template <class T>
  T coefficient(T value, T model) const {
    return safe_ratio(value, std::max(model, static_cast<T>(least)));
  }

  // The same for many entries, Width or a register at a time; values may be null for ones.
  template <int Width, class T>
  SSNMF_INLINE void coefficients(const T* values, const T* models, Size count, T* out) const {
    using namespace simd;
    using Packet = PacketFor<T, Width>;
    constexpr Size lanes = kLanesOf<Packet>;
    const Packet floor = pset1<Packet>(tiny<T>());
    const Packet low = pset1<Packet>(static_cast<T>(least));
    Size e = 0;
    for (; e + lanes <= count; e += lanes) {
      const Packet z = pmax(ploadu<Packet>(models + e), low);
      const Packet x = values == nullptr ? pset1<Packet>(T(1)) : ploadu<Packet>(values + e);
      pstoreu(out + e, pand(pcmp_lt(floor, z), pdiv(x, z)));
    }
    for (; e < count; ++e) {
      out[e] = coefficient(values == nullptr ? T(1) : values[e], models[e]);
    }
  }
};

struct Residual : AnyOperation {
  template <class T>
  T coefficient(T value, T model) const {
    return value - model;
  }
};

struct Sampled : AnyOperation {
  template <class T>
  T coefficient(T value, T model) const {
    return value * model;
  }
};

// Powers of a model are kept below this number, so that sums of them stay finite.
template <class T>
constexpr T kLargestPower = std::numeric_limits<T>::max() / T(1 << 20);

// A model that vanishes pulls at no positive factor entry: its powers count as 0.
struct Power : AnyOperation {
  // A power takes so long that a rank known to the compiler gains nothing.
  static constexpr bool known_ranks = false;
  static constexpr bool by_registers = true;
  double exponent;
  double least;

  Power(double e, double model) : exponent(e), least(model) {}

  template <class T>
  T coefficient(T value, T model) const {
    model = std::max(model, static_cast<T>(least));
    if (!(model > tiny<T>())) {
      return T(0);
    }
    const double most = std::log(static_cast<double>(kLargestPower<T>));
    const double power = std::min(exponent * std::log(static_cast<double>(model)), most);
    return value * static_cast<T>(std::exp(power));
  }

  template <int Width, class T>
  SSNMF_FLATTEN void coefficients(const T* values, const T* models, Size size, T* out) const {
    using Run = Eigen::Array<double, Eigen::Dynamic, 1, 0, 128, 1>;
    using Entries = Eigen::Array<T, Eigen::Dynamic, 1>;
    const double floor = static_cast<double>(tiny<T>());
    const double most = std::log(static_cast<double>(kLargestPower<T>));
    for (Size e = 0; e < size; e += 128) {
      const Size count = std::min<Size>(128, size - e);
      const Run z = Eigen::Map<const Entries>(models + e, count).template cast<double>().max(least);
      const Run power = (exponent * z.max(floor).log()).min(most).exp();
      const Run kept = (z > floor).select(power, 0.0);
      Eigen::Map<Entries> c(out + e, count);
      if (values == nullptr) {
        c = kept.template cast<T>();
      } else {
        c = kept.template cast<T>() * Eigen::Map<const Entries>(values + e, count);
      }
    }
  }
};

struct InverseSquare : AnyOperation {
  double least;

  explicit InverseSquare(double model) : least(model) {}

  template <class T>
  T coefficient(T value, T model) const {
    model = std::max(model, static_cast<T>(least));
    const T power = std::min(T(1) / (model * model), kLargestPower<T>);
    return model > tiny<T>() ? value * power : T(0);
  }
};

// out[e] = the coefficient of an entry, whose model is models[e]; values may be null for ones, and
// out may be one of both.  Width, or a register, at a time.
template <int Width, class Op, class T>
SSNMF_INLINE void coefficients_of(const Op& op, const T* values, const T* models, Size count,
                                  T* out) {
  if constexpr (Op::by_registers) {
    op.template coefficients<Width>(values, models, count, out);
  } else {
    for (Size e = 0; e < count; ++e) {
      out[e] = op.coefficient(values == nullptr ? T(1) : values[e], models[e]);
    }
  }
}

// The same for entries of a matrix from `first` on.
template <int Width, class Op, class T>
SSNMF_INLINE void coefficients_of(const Op& op, const Csr<T>& Z, Size first, Size count,
                                  const T* models, T* out) {
  coefficients_of<Width>(op, Z.values == nullptr ? nullptr : Z.values + first, models, count, out);
  if constexpr (Op::keeps) {
    for (Size e = 0; e < count; ++e) {
      op.keep(first + e, out[e]);
    }
  }
}

// Calls body with the operation as an object.
template <class Body>
auto visit_operation(Operation operation, const Body& body) {
  switch (operation.kind) {
    case Operation::kProduct:
      return body(Product{});
    case Operation::kRatio:
      return body(Ratio(operation.least));
    case Operation::kSampled:
      return body(Sampled{});
    case Operation::kPower:
      if (operation.exponent == -1.0) {
        return body(Ratio(operation.least));
      }
      if (operation.exponent == -2.0) {
        return body(InverseSquare(operation.least));
      }
      return body(Power(operation.exponent, operation.least));
    case Operation::kResidual:
      break;  // of dense data only, see find_coefficients
  }
  throw std::invalid_argument("unknown operation");
}

// The coefficients of many entries at once, as by `coefficients_of`, for an operation that the
// compiler does not know; nullptr where they are the values.
template <class T>
using FindCoefficients = std::function<void(const T* values, const T* models, Size count, T* out)>;
template <class T>
FindCoefficients<T> find_coefficients(Operation operation);

}  // namespace ssnmf
