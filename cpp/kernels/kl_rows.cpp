#include "kl_rows.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "../core/parallel.hpp"
#include "cholesky.hpp"
#include "long_rows.hpp"
#include "row_problem.hpp"
#include "update.hpp"

namespace ssnmf {
namespace {

constexpr int kMultiplicativeSteps = 10;
constexpr double kRelaxation = 0.9;  // see update.hpp: still never raises the objective
constexpr int kMostHalvings = 40;
constexpr double kLeastRidge = 1e-12;

// Several threads share the entries of a very long row, piece by piece.
class KlRow {
 public:
  explicit KlRow(int threads) : threads_(threads) {}

  // Gathers the row: its positive entries x, their dictionary rows g, the components in use.
  template <class T>
  void gather(const Csr<T>& X, Size row, const Rows<const T>& G, const T* pull_down,
              const T* start) {
    entries_.clear();
    std::vector<double>& reach = scratch_;
    reach.assign(static_cast<std::size_t>(G.columns), 0.0);
    const Size end = X.indptr[row + 1];
    for (Size e = X.indptr[row]; e < end; ++e) {
      if (X.value(e) > T(0) && reaches(G.row(static_cast<Size>(X.indices[e])), pull_down, reach)) {
        entries_.push_back(e);
      }
    }
    used_.clear();
    for (Size k = 0; k < G.columns; ++k) {
      if (reach[static_cast<std::size_t>(k)] > 0.0 && pull_down[k] > T(0)) {
        used_.push_back(k);
      }
    }
    copy(X, G, pull_down, start);
  }

  // Returns whether the optimality conditions hold to tol; see residual().
  bool solve(double tol, int max_steps) {
    if (used_.empty()) {
      return true;
    }
    find_model(s_, z_);
    ridge_ = kLeastRidge;
    for (int step = 0; step < max_steps; ++step) {
      end_if_interrupted(g_.size() * g_.cols());
      find_pull();
      drop_vanishing(tol);
      if (residual() <= tol) {
        return true;
      }
      if (step < kMultiplicativeSteps || !newton_step()) {
        for (Eigen::Index a = 0; a < s_.size(); ++a) {
          s_(a) *= over_relaxed(pull_(a) / n_(a), kRelaxation);
        }
        find_model(s_, z_);
      }
    }
    return false;
  }

  template <class T>
  void scatter(T* f, Size rank) const {
    std::fill(f, f + rank, T(0));
    for (std::size_t a = 0; a < used_.size(); ++a) {
      f[used_[a]] = static_cast<T>(s_(static_cast<Eigen::Index>(a)));
    }
  }

 private:
  // Whether some component explains the entry; an entry that none explains has no say.
  template <class T>
  static bool reaches(const T* g, const T* pull_down, std::vector<double>& reach) {
    bool any = false;
    for (std::size_t k = 0; k < reach.size(); ++k) {
      if (g[k] > T(0) && pull_down[k] > T(0)) {
        reach[k] += static_cast<double>(g[k]);
        any = true;
      }
    }
    return any;
  }

  template <class T>
  void copy(const Csr<T>& X, const Rows<const T>& G, const T* pull_down, const T* start) {
    const Eigen::Index count = static_cast<Eigen::Index>(entries_.size());
    const Eigen::Index size = static_cast<Eigen::Index>(used_.size());
    x_.resize(count);
    g_.resize(count, size);
    n_.resize(size);
    s_.resize(size);
    for (Eigen::Index a = 0; a < size; ++a) {
      n_(a) = static_cast<double>(pull_down[used_[static_cast<std::size_t>(a)]]);
      s_(a) = static_cast<double>(start[used_[static_cast<std::size_t>(a)]]);
    }
    for (Eigen::Index e = 0; e < count; ++e) {
      const Size entry = entries_[static_cast<std::size_t>(e)];
      const T* g = G.row(static_cast<Size>(X.indices[entry]));
      x_(e) = static_cast<double>(X.value(entry));
      for (Eigen::Index a = 0; a < size; ++a) {
        g_(e, a) = static_cast<double>(g[used_[static_cast<std::size_t>(a)]]);
      }
    }
    if (size > 0) {
      // At the solution n . s = sum x; a start inside of the orthant can reach every face.
      const double level = x_.sum() / n_.sum();
      s_ = s_.cwiseMax(1e-3 * level);
    }
  }

  // Largest of |min(share, 1 - pull / n)| over the components, where share = s n / sum(x) is what
  // a component explains of the row.
  double residual() const {
    const double total = x_.sum();
    double worst = 0.0;
    for (Eigen::Index a = 0; a < s_.size(); ++a) {
      const double slope = 1.0 - pull_(a) / n_(a);
      worst = std::max(worst, std::abs(std::min(s_(a) * n_(a) / total, slope)));
    }
    return worst;
  }

  // Entries on their way to zero get there, where no data entry depends on them alone.
  void drop_vanishing(double tol) {
    const double total = x_.sum();
    bool changed = false;
    for (Eigen::Index a = 0; a < s_.size(); ++a) {
      if (s_(a) > 0.0 && pull_(a) < (1.0 - tol) * n_(a) &&
          s_(a) * n_(a) < std::max(tol, 1e-9) * total) {
        const double share = (s_(a) * g_.col(a).array() / z_.array()).maxCoeff();
        if (share < 1e-3) {
          s_(a) = 0.0;
          changed = true;
        }
      }
    }
    if (changed) {
      find_model(s_, z_);
      find_pull();
    }
  }

  double objective(const Eigen::VectorXd& s, const Eigen::VectorXd& z) const {
    if (!(z.minCoeff() > 0.0)) {
      return std::numeric_limits<double>::infinity();
    }
    return n_.dot(s) - (x_.array() * z.array().log()).sum();
  }

  bool newton_step() {
    free_.clear();
    for (Eigen::Index a = 0; a < s_.size(); ++a) {
      if (s_(a) > 0.0 || pull_(a) > n_(a)) {
        free_.push_back(a);
      }
    }
    if (!solve_newton()) {
      return false;
    }
    const double before = objective(s_, z_);
    const double slack = 1e-14 * (std::abs(before) + x_.sum());
    double step = 1.0;
    for (int halving = 0; halving < kMostHalvings; ++halving, step *= 0.5) {
      trial_ = s_;
      double expected = 0.0;
      for (std::size_t f = 0; f < free_.size(); ++f) {
        const Eigen::Index a = free_[f];
        trial_(a) = std::max(0.0, s_(a) + step * direction_(static_cast<Eigen::Index>(f)));
        expected += (n_(a) - pull_(a)) * (trial_(a) - s_(a));
      }
      find_model(trial_, trial_z_);
      if (expected <= 0.0 && objective(trial_, trial_z_) <= before + 1e-4 * expected + slack) {
        s_.swap(trial_);
        z_.swap(trial_z_);
        ridge_ = halving > 2 ? 100.0 * ridge_ : std::max(0.1 * ridge_, kLeastRidge);
        return true;
      }
    }
    ridge_ *= 100.0;
    return false;
  }

  // Newton direction on the free entries: H = sum x g g^T / z^2, with a ridge that grows while the
  // steps are poor (components that repeat each other make H singular).
  bool solve_newton() {
    const Eigen::Index size = static_cast<Eigen::Index>(free_.size());
    scaled_.resize(g_.rows(), size);
    direction_.resize(size);
    for (Eigen::Index f = 0; f < size; ++f) {
      const Eigen::Index a = free_[static_cast<std::size_t>(f)];
      direction_(f) = pull_(a) - n_(a);
    }
    hessian_ = summed<Eigen::MatrixXd>([&](Size begin, Size count) -> Eigen::MatrixXd {
      auto scaled = scaled_.middleRows(begin, count);
      const Eigen::ArrayXd roots =
          x_.segment(begin, count).array().sqrt() / z_.segment(begin, count).array();
      for (Eigen::Index f = 0; f < size; ++f) {
        const auto g = g_.col(free_[static_cast<std::size_t>(f)]);
        scaled.col(f) = g.segment(begin, count).array() * roots;
      }
      return scaled.transpose() * scaled;
    });
    hessian_.diagonal().array() *= 1.0 + std::min(ridge_, 1.0);
    if (!solve_positive_definite(hessian_, direction_)) {
      ridge_ *= 100.0;
      return false;
    }
    return direction_.allFinite();
  }

  // The sum of part(first entry, entries) over the pieces of the row, in their order.
  template <class Sum, class Part>
  Sum summed(const Part& part) const {
    const Size rows = g_.rows();
    const EvenBlocks pieces(rows,
                            rows > kLongestRow ? std::max(kEntriesPerBlock, rows / 64) : rows);
    if (pieces.count() == 1) {
      return part(0, rows);
    }
    return ordered_sum(pieces.count(), useful_threads(g_.size(), threads_), [&](Size piece) -> Sum {
      return part(pieces[piece].begin, pieces[piece].end - pieces[piece].begin);
    });
  }

  void find_model(const Eigen::VectorXd& s, Eigen::VectorXd& z) const {
    z.resize(g_.rows());
    summed<double>([&](Size begin, Size count) {
      z.segment(begin, count).noalias() = g_.middleRows(begin, count) * s;
      return 0.0;
    });
  }

  void find_pull() {
    pull_ = summed<Eigen::VectorXd>([&](Size begin, Size count) -> Eigen::VectorXd {
      const auto ratios = x_.segment(begin, count).cwiseQuotient(z_.segment(begin, count));
      return g_.middleRows(begin, count).transpose() * ratios;
    });
  }

  int threads_;
  double ridge_ = 0.0;
  std::vector<Size> entries_;
  std::vector<Size> used_;
  std::vector<Eigen::Index> free_;
  std::vector<double> scratch_;
  Eigen::VectorXd x_, n_, s_, z_, pull_, trial_, trial_z_, direction_;
  Eigen::MatrixXd g_, scaled_, hessian_;
};

}  // namespace

template <class T>
Size kl_rows(const Csr<T>& X, const Rows<const T>& G, const Rows<const T>& N, const Rows<T>& F,
             double tol, int max_steps, int threads) {
  const EvenBlocks blocks(F.rows, kSolvedRowsPerBlock);
  const auto make_workspace = [threads] { return KlRow(threads); };
  const auto unsolved = [&](KlRow& problem, Size i) {
    problem.gather(X, i, G, row_or_only(N, i), F.row(i));
    const bool solved = problem.solve(tol, max_steps);
    problem.scatter(F.row(i), F.columns);
    return solved ? 0.0 : 1.0;
  };
  return static_cast<Size>(sum_over_rows(blocks, threads, make_workspace, unsolved));
}

#define SSNMF_INSTANTIATE(T)                                                          \
  template Size kl_rows<T>(const Csr<T>&, const Rows<const T>&, const Rows<const T>&, \
                           const Rows<T>&, double, int, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
