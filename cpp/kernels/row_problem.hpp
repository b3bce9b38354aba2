// What the solvers of single rows of a factor share.  Rows are solved in double.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <limits>

#include "../core/parallel.hpp"

namespace ssnmf {

constexpr Size kSolvedRowsPerBlock = 16;
constexpr double kCancelled = 4.0;  // epsilons

// The least curvature that is no mere rounding error: K_i,kk may be a difference, of a part common
// to all rows, of type T, and of what the row's negative weights take from it.
template <class T>
double least_curvature(double common) {
  return kCancelled * static_cast<double>(std::numeric_limits<T>::epsilon()) *
         std::max(common, 0.0);
}

// One step of coordinate descent, s_k <- max(0, s_k - g_k / K_kk), and the gradient after it.
inline void descend_entry(const Eigen::MatrixXd& K, Eigen::Index k, Eigen::VectorXd& s,
                          Eigen::VectorXd& gradient) {
  const double moved = std::max(0.0, s(k) - gradient(k) / K(k, k));
  const double change = moved - s(k);
  if (change != 0.0) {
    s(k) = moved;
    gradient.noalias() += change * K.col(k);
  }
}

}  // namespace ssnmf
