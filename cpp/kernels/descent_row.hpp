// Coordinate descent on a row with weights of its own.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <limits>
#include <vector>

#include "../core/numbers.hpp"
#include "coordinate_descent.hpp"
#include "gathered_columns.hpp"
#include "row_problem.hpp"
#include "weighted_gram.hpp"

namespace ssnmf {

// One row with weights of its own.  The sums over its entries are of type T, the rest is in double.
//
// A few sweeps multiply each entry with a few times R values, where the matrix K_i takes R^2 / 2.
// But they read the gathered rows of G again and again, and the matrix is faster where these leave
// the cache: the more components there are the later, so that the number of entries decides.
template <class T>
class DescentRow {
 public:
  DescentRow(const Grams<T>& grams, int threads)
      : threads_(threads), grams_(grams), rank_(static_cast<Eigen::Index>(grams.rank)) {
    if (grams.scales == nullptr) {
      add_grams(0);
    }
  }

  void run(const Csr<T>& weights, const Rows<const T>& G, Size row, const T* p,
           const std::uint8_t* allowed, int sweeps, T* f) {
    if (grams_.scales != nullptr) {
      add_grams(row);
    }
    using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;
    f_ = Eigen::Map<const Vector>(f, rank_).template cast<double>();
    pull_ = Eigen::Map<const Vector>(p, rank_).template cast<double>();
    gradient_ = -pull_;
    if (grams_.count > 0) {
      gradient_.noalias() += common_ * f_;
    }
    const Size begin = weights.indptr[row];
    const Size end = weights.indptr[row + 1];
    const Size column = (end - begin) * static_cast<Size>(sizeof(T));
    if (grams_.rank > kRankOfASweep * sweeps && column <= kMostBytesOfAColumn) {
      gathered_.gather(weights, begin, end, G, f);
      descend_by_entries(allowed, sweeps);
    } else {
      K_.setZero(rank_, rank_);
      add_weighted_gram(weights, begin, end, G, gathered_, K_, threads_);
      descend_by_matrix(allowed, sweeps);
    }
    for (Eigen::Index k = 0; k < rank_; ++k) {
      f[k] = static_cast<T>(f_(k));
    }
  }

 private:
  static constexpr Size kRankOfASweep = 8;
  static constexpr Size kMostBytesOfAColumn = 1 << 16;
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  void add_grams(Size row) {
    common_.setZero(rank_, rank_);
    for (Size t = 0; t < grams_.count; ++t) {
      common_ += static_cast<double>(grams_.scale(t, row)) *
                 ConstMatrixMap<T>(grams_.row(t, 0), rank_, rank_).template cast<double>();
    }
    least_ =
        common_.diagonal().unaryExpr(&least_curvature<T>).cwiseMax(static_cast<double>(tiny<T>()));
  }

  // The entries' part of the gradient comes from z_j = f . g_j, which every step changes.  Some
  // components are moved at once: what one does to the gradient of the next is known beforehand.
  void descend_by_entries(const std::uint8_t* allowed, int sweeps) {
    const Size blocks = grams_.rank / kComponents;
    tiles_.resize(static_cast<std::size_t>(blocks));
    for (Size block = 0; block < blocks; ++block) {
      tiles_[static_cast<std::size_t>(block)] = gathered_.squares(block);
    }
    Components change = Components::Zero();
    Size changed = 0;
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      for (Size block = 0; block < blocks; ++block) {
        Components pull = (change == 0.0).all() ? gathered_.gradient(block)
                                                : gathered_.gradient_after(changed, change, block);
        const ComponentTile& tile = tiles_[static_cast<std::size_t>(block)];
        for (int c = 0; c < kComponents; ++c) {
          const Eigen::Index k = block * kComponents + c;
          change(c) = step(k, tile(c, c) + common_(k, k), pull(c) + gradient_(k), allowed);
          if (change(c) != 0.0) {
            pull += change(c) * tile.col(c);
            add_common(k, change(c));
          }
        }
        changed = block;
      }
    }
  }

  void descend_by_matrix(const std::uint8_t* allowed, int sweeps) {
    gradient_.noalias() += K_ * f_;
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      for (Eigen::Index k = 0; k < rank_; ++k) {
        const double change = step(k, K_(k, k) + common_(k, k), gradient_(k), allowed);
        if (change != 0.0) {
          gradient_ += change * K_.col(k);
          add_common(k, change);
        }
      }
    }
  }

  // Moves f_k to its minimizer and returns by how much.  Without curvature that is 0 where f_k is
  // pulled down, and else anywhere.
  double step(Eigen::Index k, double curvature, double gradient, const std::uint8_t* allowed) {
    const bool curved = curvature > least_(k);
    if (!(curved || pull_(k) < 0.0) || !(curvature < kInfinity)) {
      return 0.0;
    }
    if (!has(allowed, k)) {
      return 0.0;
    }
    const double moved = curved ? std::max(0.0, f_(k) - gradient / curvature) : 0.0;
    const double change = moved - f_(k);
    f_(k) = moved;
    return change;
  }

  void add_common(Eigen::Index k, double change) {
    if (grams_.count > 0) {
      gradient_ += change * common_.col(k);
    }
  }

  int threads_;
  Grams<T> grams_;
  Eigen::Index rank_;
  GatheredColumns<T> gathered_;
  std::vector<ComponentTile> tiles_;
  Eigen::MatrixXd common_;
  Eigen::VectorXd least_;
  Eigen::MatrixXd K_;
  Eigen::VectorXd f_;
  Eigen::VectorXd pull_;
  Eigen::VectorXd gradient_;
};

}  // namespace ssnmf
