#include "coordinate_descent.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <vector>

#include "../core/compiler.hpp"
#include "../core/numbers.hpp"
#include "../core/parallel.hpp"
#include "gemm.hpp"
#include "rank.hpp"
#include "row_problem.hpp"

namespace ssnmf {
namespace {

// Rows without weights of their own: a tile of rows at once, one in each lane.  Four registers of
// lanes hide the latency of a chain in which every entry waits for the one before.
template <class T>
class DescentTile {
 public:
  static constexpr int kLanes = 4 * kRegisterBytes / static_cast<int>(sizeof(T));
  using Lanes = Eigen::Array<T, kLanes, 1>;

  explicit DescentTile(const Grams<T>& grams)
      : grams_(grams),
        f_(static_cast<std::size_t>(grams.rank)),
        p_(static_cast<std::size_t>(grams.rank)),
        inverse_(static_cast<std::size_t>(grams.rank)),
        scales_(static_cast<std::size_t>(grams.count), Lanes::Ones()) {
    if (grams.scales == nullptr) {
      invert();
    }
  }

  void run(const Rows<const T>& P, const Rows<T>& F, const T* allowed, Range rows, int sweeps) {
    load(P, F, rows);
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      for (Size k = 0; k < grams_.rank; ++k) {
        step(k, allowed, rows);
      }
    }
    for (Size i = rows.begin; i < rows.end; ++i) {
      for (Size k = 0; k < grams_.rank; ++k) {
        F.row(i)[k] = f_[static_cast<std::size_t>(k)](i - rows.begin);
      }
    }
  }

 private:
  void load(const Rows<const T>& P, const Rows<T>& F, Range rows) {
    const Size count = rows.end - rows.begin;
    for (Size i = 0; i < count; ++i) {
      const T* f = F.row(rows.begin + i);
      const T* p = P.row(rows.begin + i);
      for (Size k = 0; k < grams_.rank; ++k) {
        f_[static_cast<std::size_t>(k)](i) = f[k];
        p_[static_cast<std::size_t>(k)](i) = p[k];
      }
    }
    if (count < kLanes) {
      for (std::size_t k = 0; k < f_.size(); ++k) {
        f_[k].tail(kLanes - count).setZero();
        p_[k].tail(kLanes - count).setZero();
      }
    }
    if (grams_.scales != nullptr) {
      for (Size t = 0; t < grams_.count; ++t) {
        for (Size i = 0; i < count; ++i) {
          scales_[static_cast<std::size_t>(t)](i) = grams_.scale(t, rows.begin + i);
        }
      }
      invert();
    }
  }

  // 1 / K_kk, or 0 where there is no curvature.
  void invert() {
    for (Size k = 0; k < grams_.rank; ++k) {
      Lanes curvature = Lanes::Zero();
      for (Size t = 0; t < grams_.count; ++t) {
        curvature += scales_[static_cast<std::size_t>(t)] * grams_.row(t, k)[k];
      }
      inverse_[static_cast<std::size_t>(k)] =
          (curvature > tiny<T>()).select(T(1) / curvature.max(tiny<T>()), T(0));
    }
  }

  // (K_t f)_k
  SSNMF_FLATTEN Lanes product(Size t, Size k) const {
    const T* gram = grams_.row(t, k);
    Lanes sum = Lanes::Zero();
    for (Size l = 0; l < grams_.rank; ++l) {
      sum += gram[l] * f_[static_cast<std::size_t>(l)];
    }
    return sum;
  }

  SSNMF_FLATTEN void step(Size k, const T* allowed, Range rows) {
    Lanes gradient = -p_[static_cast<std::size_t>(k)];
    for (Size t = 0; t < grams_.count; ++t) {
      gradient += scales_[static_cast<std::size_t>(t)] * product(t, k);
    }
    Lanes& f = f_[static_cast<std::size_t>(k)];
    f = (f - gradient * inverse_[static_cast<std::size_t>(k)]).max(T(0));
    if (allowed != nullptr) {
      for (Size i = rows.begin; i < rows.end; ++i) {
        f(i - rows.begin) *= allowed[i * grams_.rank + k];
      }
    }
  }

  Grams<T> grams_;
  std::vector<Lanes> f_;
  std::vector<Lanes> p_;
  std::vector<Lanes> inverse_;
  std::vector<Lanes> scales_;
};

// One row with weights of its own, in double.
class DescentRow {
 public:
  template <class T>
  void run(const Grams<T>& grams, const Csr<T>& weights, const Rows<const T>& G, Size row,
           const T* p, const T* allowed, int sweeps, T* f) {
    const Eigen::Index rank = static_cast<Eigen::Index>(grams.rank);
    K_.setZero(rank, rank);
    for (Size t = 0; t < grams.count; ++t) {
      K_ += static_cast<double>(grams.scale(t, row)) *
            ConstMatrixMap<T>(grams.row(t, 0), rank, rank).template cast<double>();
    }
    least_ = K_.diagonal().unaryExpr(&least_curvature<T>).cwiseMax(static_cast<double>(tiny<T>()));
    add_weighted_gram(weights, row, G, gathered_, weighted_, K_);
    using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;
    f_ = Eigen::Map<const Vector>(f, rank).template cast<double>();
    gradient_.noalias() = K_ * f_;
    gradient_ -= Eigen::Map<const Vector>(p, rank).template cast<double>();
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      for (Eigen::Index k = 0; k < rank; ++k) {
        if (K_(k, k) > least_(k)) {
          descend_entry(K_, k, allowed == nullptr ? 1.0 : allowed[row * grams.rank + k], f_,
                        gradient_);
        }
      }
    }
    for (Eigen::Index k = 0; k < rank; ++k) {
      f[k] = static_cast<T>(f_(k));
    }
  }

 private:
  Eigen::MatrixXd K_;
  Eigen::MatrixXd gathered_;
  Eigen::MatrixXd weighted_;
  Eigen::VectorXd least_;
  Eigen::VectorXd f_;
  Eigen::VectorXd gradient_;
};

}  // namespace

template <class T>
void coordinate_descent(const Grams<T>& grams, const Csr<T>& weights, const Rows<const T>& G,
                        const Rows<const T>& P, const Rows<T>& F, const T* allowed, int sweeps,
                        int threads) {
  if (weights.indptr != nullptr) {
    const EvenBlocks blocks(F.rows, kSolvedRowsPerBlock);
    parallel_for(
        blocks.count(), threads, [] { return DescentRow{}; },
        [&](DescentRow& problem, Size block) {
          const Range range = blocks[block];
          for (Size i = range.begin; i < range.end; ++i) {
            problem.run(grams, weights, G, i, P.row(i), allowed, sweeps, F.row(i));
          }
        });
    return;
  }
  constexpr Size lanes = DescentTile<T>::kLanes;
  constexpr Size tiles = 4;
  const EvenBlocks blocks(F.rows, lanes * tiles);
  const int team = useful_threads(F.rows * F.columns * F.columns * sweeps, threads);
  parallel_for(
      blocks.count(), team, [&] { return DescentTile<T>(grams); },
      [&](DescentTile<T>& tile, Size block) {
        const Range range = blocks[block];
        for (Size begin = range.begin; begin < range.end; begin += lanes) {
          tile.run(P, F, allowed, {begin, std::min(begin + lanes, range.end)}, sweeps);
        }
      });
}

#define SSNMF_INSTANTIATE(T)                                                                \
  template void coordinate_descent<T>(const Grams<T>&, const Csr<T>&, const Rows<const T>&, \
                                      const Rows<const T>&, const Rows<T>&, const T*, int, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
