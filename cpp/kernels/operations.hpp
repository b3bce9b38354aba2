// The coefficient that an entry of the data and its model f . g have in a pass; see passes.hpp.
#pragma once

#include <stdexcept>

#include "../core/numbers.hpp"
#include "passes.hpp"

namespace ssnmf {

struct Product {
  static constexpr bool needs_model = false;
  template <class T>
  T coefficient(T value, T) const {
    return value;
  }
};

struct Ratio {
  static constexpr bool needs_model = true;
  template <class T>
  T coefficient(T value, T model) const {
    return safe_ratio(value, model);
  }
};

struct Sampled {
  static constexpr bool needs_model = true;
  template <class T>
  T coefficient(T value, T model) const {
    return value * model;
  }
};

// Calls body with the operation as an object.
template <class Body>
auto visit_operation(Operation operation, const Body& body) {
  switch (operation) {
    case Operation::kProduct:
      return body(Product{});
    case Operation::kRatio:
      return body(Ratio{});
    case Operation::kSampled:
      return body(Sampled{});
  }
  throw std::invalid_argument("unknown operation");
}

}  // namespace ssnmf
