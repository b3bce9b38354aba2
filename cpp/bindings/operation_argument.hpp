// The operation of a pass, from the exponent of the model that a caller gives, or from a pair of it
// and of the number that a smaller model counts as; likewise the beta of a loss.
#pragma once

#include <cmath>
#include <utility>

#include "../kernels/passes.hpp"
#include "arrays.hpp"

namespace ssnmf {

inline std::pair<double, double> with_least(py::handle argument, const char* name) {
  const auto [number, least] = py::isinstance<py::tuple>(argument)
                                   ? argument.cast<std::pair<double, double>>()
                                   : std::pair(argument.cast<double>(), 0.0);
  if (!std::isfinite(number) || !std::isfinite(least)) {
    throw bad(name, "must be a finite number");
  }
  return {number, least};
}

// The beta-divergence, of one beta or of a pair; with z^beta / beta left out, that of beta = 1 is
// the Kullback-Leibler loss.
inline EntryLoss loss_of(py::handle argument, bool rest) {
  const auto [beta, least] = with_least(argument, "beta");
  const bool is_kl = beta == 1.0 && rest && least > 0.0;
  return {is_kl ? EntryLoss::kKullbackLeibler : EntryLoss::kBeta, beta, rest, least};
}

inline Operation operation_of(py::handle argument) {
  const auto [exponent, least] = with_least(argument, "exponent");
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
