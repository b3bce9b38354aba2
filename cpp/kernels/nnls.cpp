#include "nnls.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <vector>

#include "../core/parallel.hpp"
#include "cholesky.hpp"
#include "row_problem.hpp"
#include "weighted_gram.hpp"

namespace ssnmf {
namespace {

constexpr int kSweepsBetweenFaces = 4;
constexpr double kLargestRidge = 1e-9;

class NnlsRow {
 public:
  // The problem of the next row.  `least` has the curvature up to which a component counts as one
  // that occurs in no observed feature: its entry becomes 0.
  void set_matrix(const Eigen::MatrixXd& K, const Eigen::VectorXd& least) {
    const Eigen::Index rank = K.rows();
    unit_.resize(rank);
    usable_.clear();
    for (Eigen::Index k = 0; k < rank; ++k) {
      const bool curved = K(k, k) > least(k);
      if (curved) {
        usable_.push_back(k);
      }
      unit_(k) = curved ? std::ldexp(1.0, -(std::ilogb(K(k, k)) >> 1)) : 0.0;
    }
    K_.noalias() = unit_.asDiagonal() * K * unit_.asDiagonal();
  }

  // From s to the solution, for the matrix that was set last.  Returns whether the Karush-Kuhn-
  // Tucker residual is within tol * max(p), in the units of the row.
  bool solve(const Eigen::VectorXd& p, Eigen::VectorXd& s, double tol, int max_sweeps) {
    p_ = p.cwiseProduct(unit_);
    s_.setZero(s.size());
    for (const Eigen::Index k : usable_) {
      s_(k) = s(k) / unit_(k);
    }
    const bool solved = solve_scaled(tol, max_sweeps);
    s = s_.cwiseProduct(unit_);
    return solved;
  }

 private:
  bool solve_scaled(double tol, int max_sweeps) {
    const double largest = p_.size() == 0 ? 0.0 : p_.maxCoeff();
    if (!(largest > 0.0)) {
      s_.setZero();
      return true;
    }
    set_gradient();
    for (int sweep = 0; sweep < max_sweeps; ++sweep) {
      end_if_interrupted(gradient_.size() * gradient_.size());
      if (residual() <= tol * largest) {
        set_gradient();  // the running gradient has collected rounding errors
        if (residual() <= tol * largest) {
          return true;
        }
      }
      if (sweep % kSweepsBetweenFaces == kSweepsBetweenFaces - 1) {
        minimize_on_face();
      }
      descend();
    }
    set_gradient();
    return residual() <= tol * largest;
  }

  void set_gradient() {
    gradient_.noalias() = K_ * s_;
    gradient_ -= p_;
  }

  double residual() const {
    double worst = 0.0;
    for (const Eigen::Index k : usable_) {
      const double g = gradient_(k);
      worst = std::max(worst, s_(k) > 0.0 ? std::abs(g) : -g);
    }
    return worst;
  }

  void descend() {
    for (const Eigen::Index k : usable_) {
      descend_entry(K_, k, s_, gradient_);
    }
  }

  // Goes to the minimizer on the positive entries; where that leaves the orthant, to its border,
  // and again on the smaller face.  Every move lowers the objective.
  void minimize_on_face() {
    face_.clear();
    for (const Eigen::Index k : usable_) {
      if (s_(k) > 0.0) {
        face_.push_back(k);
      }
    }
    while (!face_.empty() && solve_face()) {
      double step = 1.0;
      for (std::size_t a = 0; a < face_.size(); ++a) {
        const double here = s_(face_[a]);
        const double there = solution_(static_cast<Eigen::Index>(a));
        if (there <= 0.0) {
          step = std::min(step, here / (here - there));
        }
      }
      std::size_t kept = 0;
      for (std::size_t a = 0; a < face_.size(); ++a) {
        double& entry = s_(face_[a]);
        const double there = solution_(static_cast<Eigen::Index>(a));
        entry += step * (there - entry);
        if (there <= 0.0 && entry <= 1e-14 * s_.maxCoeff()) {
          entry = 0.0;
        } else {
          face_[kept++] = face_[a];
        }
      }
      if (kept == face_.size()) {
        break;
      }
      face_.resize(kept);
    }
    set_gradient();
  }

  bool solve_face() {
    const Eigen::Index size = static_cast<Eigen::Index>(face_.size());
    part_.resize(size, size);
    solution_.resize(size);
    for (Eigen::Index a = 0; a < size; ++a) {
      for (Eigen::Index b = 0; b < size; ++b) {
        part_(a, b) = K_(face_[static_cast<std::size_t>(a)], face_[static_cast<std::size_t>(b)]);
      }
      solution_(a) = p_(face_[static_cast<std::size_t>(a)]);
    }
    // Components that repeat each other make the system singular: the least ridge that lets it be
    // solved leaves a gradient far below any tolerance, and coordinate descent ends the rest.
    const double largest = part_.diagonal().maxCoeff();
    for (double ridge = 0.0; ridge < kLargestRidge; ridge = ridge == 0.0 ? 1e-14 : 10.0 * ridge) {
      system_ = part_;
      system_.diagonal().array() += ridge * largest;
      if (solve_positive_definite(system_, solution_)) {
        return solution_.allFinite();
      }
    }
    return false;
  }

  Eigen::MatrixXd K_;
  Eigen::VectorXd p_;
  Eigen::VectorXd s_;
  Eigen::VectorXd unit_;
  Eigen::VectorXd gradient_;
  Eigen::MatrixXd part_;
  Eigen::VectorXd solution_;
  Eigen::MatrixXd system_;
  std::vector<Eigen::Index> usable_;
  std::vector<Eigen::Index> face_;
};

}  // namespace

template <class T>
Size nnls(const Rows<const T>& K, const T* row_scale, const Csr<T>& weights,
          const Factor<const T>& G, const Rows<const T>& P, const Rows<T>& F, double tol,
          int max_sweeps, int threads) {
  struct Workspace {
    NnlsRow problem;
    Eigen::MatrixXd K;
    Eigen::VectorXd p;
    Eigen::VectorXd s;
    Eigen::VectorXd least;
    GatheredColumns<double> gathered;
  };
  const Size rank = F.columns;
  Eigen::MatrixXd common = Eigen::MatrixXd::Zero(rank, rank);
  if (K.data != nullptr) {
    common = ConstMatrixMap<T>(K.data, rank, rank).template cast<double>();
  }
  const auto make_workspace = [&] {
    Workspace work;
    work.least.setZero(rank);
    work.problem.set_matrix(common, work.least);
    return work;
  };
  const InDouble<T> far(weights.indptr == nullptr ? Factor<const T>() : G);
  const EvenBlocks blocks(F.rows, kSolvedRowsPerBlock);
  const auto unsolved = [&](Workspace& work, Size i) {
    if (row_scale != nullptr || weights.indptr != nullptr) {
      work.K = (row_scale == nullptr ? 1.0 : static_cast<double>(row_scale[i])) * common;
      if (weights.indptr != nullptr) {
        work.least = work.K.diagonal().unaryExpr(&least_curvature<T>);
        add_weighted_gram(weights, weights.indptr[i], weights.indptr[i + 1], far.rows(),
                          work.gathered, work.K, threads);
      }
      work.problem.set_matrix(work.K, work.least);
    }
    using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;
    work.p = Eigen::Map<const Vector>(P.row(i), rank).template cast<double>();
    Eigen::Map<Vector> f(F.row(i), rank);
    work.s = f.template cast<double>();
    const bool solved = work.problem.solve(work.p, work.s, tol, max_sweeps);
    f = work.s.template cast<T>();
    return solved ? 0.0 : 1.0;
  };
  return static_cast<Size>(sum_over_rows(blocks, threads, make_workspace, unsolved));
}

#define SSNMF_INSTANTIATE(T)                                                                   \
  template Size nnls<T>(const Rows<const T>&, const T*, const Csr<T>&, const Factor<const T>&, \
                        const Rows<const T>&, const Rows<T>&, double, int, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
