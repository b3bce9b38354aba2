// What a fit asks of a dense matrix before it begins, found in one pass.
#pragma once

#include <algorithm>
#include <limits>

#include "../core/views.hpp"

namespace ssnmf {

struct Moments {
  double least = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();
  Size missing = 0;  // how many are NaN; of the others, only `nonzero` counts these too
  Size nonzero = 0;
  double sum = 0.0;
  double squares = 0.0;

  void operator+=(const Moments& other) {
    least = std::min(least, other.least);
    largest = std::max(largest, other.largest);
    missing += other.missing;
    nonzero += other.nonzero;
    sum += other.sum;
    squares += other.squares;
  }
};

template <class T>
Moments dense_moments(const Dense<T>& Z, int threads);

}  // namespace ssnmf
