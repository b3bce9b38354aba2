// What the solvers of single rows of a factor share.  Rows are solved in double.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <limits>

#include "../core/parallel.hpp"

namespace ssnmf {

constexpr Size kSolvedRowsPerBlock = 16;
constexpr Size kGatheredEntries = 256;
constexpr double kCancelled = 4.0;  // epsilons

// The least curvature that is no mere rounding error: K_i,kk may be a difference, of a part common
// to all rows, of type T, and of what the row's negative weights take from it.
template <class T>
double least_curvature(double common) {
  return kCancelled * static_cast<double>(std::numeric_limits<T>::epsilon()) *
         std::max(common, 0.0);
}

// One step of coordinate descent, s_k <- max(0, s_k - g_k / K_kk), and the gradient after it;
// `allowed` is 0 where the entry must be 0, else 1.
inline void descend_entry(const Eigen::MatrixXd& K, Eigen::Index k, double allowed,
                          Eigen::VectorXd& s, Eigen::VectorXd& gradient) {
  const double moved = allowed * std::max(0.0, s(k) - gradient(k) / K(k, k));
  const double change = moved - s(k);
  if (change != 0.0) {
    s(k) = moved;
    gradient.noalias() += change * K.col(k);
  }
}

// K += sum_j w_j g_j g_j^T over one row of the weights, which may be negative.
template <class T>
void add_weighted_gram(const Csr<T>& weights, Size row, const Rows<const T>& G,
                       Eigen::MatrixXd& gathered, Eigen::MatrixXd& weighted, Eigen::MatrixXd& K) {
  const Size begin = weights.indptr[row];
  const Size end = weights.indptr[row + 1];
  for (Size first = begin; first < end; first += kGatheredEntries) {
    const Size count = std::min(kGatheredEntries, end - first);
    end_if_interrupted(count * G.columns * G.columns);
    gathered.resize(G.columns, count);
    weighted.resize(G.columns, count);
    for (Size e = 0; e < count; ++e) {
      const T* g = G.row(static_cast<Size>(weights.indices[first + e]));
      const double weight = static_cast<double>(weights.value(first + e));
      for (Size k = 0; k < G.columns; ++k) {
        gathered(k, e) = static_cast<double>(g[k]);
        weighted(k, e) = weight * static_cast<double>(g[k]);
      }
    }
    K.noalias() += weighted * gathered.transpose();
  }
}

}  // namespace ssnmf
