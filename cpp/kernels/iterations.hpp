// Iterations of the fit of a matrix by the product of two factors, S A^T, in one call.
//
// They are those of the loop in Python (_solver/loop.py), which says what each step is for: the
// same kernels in the same order, so that all bits are the same.
#pragma once

#include <array>
#include <functional>
#include <optional>

#include "passes.hpp"

namespace ssnmf {

// Both factors are updated in the same way; see Plan in _solver/plan.py.
struct FactorUpdate {
  enum Kind { kDescent, kFillIn, kMultiply, kMultiplyByRatios };  // ratios: Kullback-Leibler
  Kind kind;
  double relaxation;
  int sweeps;
  int steps_of_S;  // of conjugate gradients
  int steps_of_A;
};

template <class T>
struct MatrixFit {
  // A pass over the data for A, or for S.  F is null where no model is needed.
  std::function<void(bool for_A, Operation, const Rows<const T>& F, const Factor<const T>& G,
                     const Rows<T>& out)>
      pass;
  std::function<double()> loss;  // the squared error, summed over the entries; may be nothing
  double squares;                // of the data
  double cancels;  // a smaller share of them is a difference of large sums that lost its digits

  Rows<T> S;  // padded, and so is A
  Rows<T> A;
  Rows<T> P;         // as long as the longer factor; afterwards that of the last update of S
  Rows<T> N;         // as long
  Rows<T> before_S;  // before the last extrapolation; nothing without momentum
  Rows<T> before_A;
};

// Of squared errors: the objective, the step, the step before, the largest step, and whether the
// last iteration lowered the objective (1) or was undone (0).
using Momentum = std::optional<std::array<double, 5>>;

template <class T>
Momentum iterations(const MatrixFit<T>& fit, const FactorUpdate& update, Momentum momentum,
                    int count, int threads);

}  // namespace ssnmf
