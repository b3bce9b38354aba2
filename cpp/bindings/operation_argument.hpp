// The operation of a pass, from the exponent of the model that a caller gives, or from a pair of it
// and of the number that a smaller model counts as.
#pragma once

#include <cmath>
#include <tuple>
#include <utility>

#include "../kernels/passes.hpp"
#include "arrays.hpp"

namespace ssnmf {

inline Operation operation_of(py::handle argument) {
  double least = 0.0;
  double exponent;
  if (py::isinstance<py::tuple>(argument)) {
    std::tie(exponent, least) = argument.cast<std::pair<double, double>>();
  } else {
    exponent = argument.cast<double>();
  }
  if (!std::isfinite(exponent) || !std::isfinite(least)) {
    throw bad("exponent", "must be a finite number");
  }
  if (exponent == 0.0) {
    return Operation::kProduct;
  }
  if (exponent == 1.0) {
    return Operation::kSampled;
  }
  return {exponent == -1.0 ? Operation::kRatio : Operation::kPower, exponent, least};
}

// F where the operation reads it: a product has no model.
inline py::handle factor_read(const Operation& operation, py::handle F) {
  if (operation.kind == Operation::kProduct) {
    return Py_None;
  }
  if (F.is_none()) {
    throw bad("F", "must be given unless the exponent is 0");
  }
  return F;
}

}  // namespace ssnmf
