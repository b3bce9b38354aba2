#include "coordinate_descent.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <limits>
#include <vector>

#include "../core/compiler.hpp"
#include "../core/numbers.hpp"
#include "../core/parallel.hpp"
#include "gathered_columns.hpp"
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

// One row with weights of its own.  The sums over its entries are of type T, the rest is in double.
//
// A few sweeps need some products for each entry and component: less than the matrix K_i, unless
// there are few components.  They read the gathered rows of G again and again, which pays as long
// as these stay in a cache.
template <class T>
class DescentRow {
 public:
  explicit DescentRow(const Grams<T>& grams)
      : grams_(grams), rank_(static_cast<Eigen::Index>(grams.rank)) {
    if (grams.scales == nullptr) {
      add_grams(0);
    }
  }

  void run(const Csr<T>& weights, const Rows<const T>& G, Size row, const T* p, const T* allowed,
           int sweeps, T* f) {
    if (grams_.scales != nullptr) {
      add_grams(row);
    }
    using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;
    f_ = Eigen::Map<const Vector>(f, rank_).template cast<double>();
    gradient_ = -Eigen::Map<const Vector>(p, rank_).template cast<double>();
    if (grams_.count > 0) {
      gradient_.noalias() += common_ * f_;
    }
    const T* mask = allowed == nullptr ? nullptr : allowed + row * grams_.rank;
    const Size begin = weights.indptr[row];
    const Size end = weights.indptr[row + 1];
    const Size bytes = (end - begin) * grams_.rank * static_cast<Size>(sizeof(T));
    if (grams_.rank > kRankOfASweep * sweeps && bytes <= kMostGatheredBytes) {
      gathered_.gather(weights, begin, end, G, f);
      descend_by_entries(mask, sweeps);
    } else {
      add_weighted_gram(weights, begin, end, G);
      descend_by_matrix(mask, sweeps);
    }
    for (Eigen::Index k = 0; k < rank_; ++k) {
      f[k] = static_cast<T>(f_(k));
    }
  }

 private:
  static constexpr Size kRankOfASweep = 8;
  static constexpr Size kMostGatheredBytes = 3 << 20;
  static constexpr Size kEntriesAtOnce = 512;
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
  void descend_by_entries(const T* allowed, int sweeps) {
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

  void descend_by_matrix(const T* allowed, int sweeps) {
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

  // Moves f_k to its minimiser and returns by how much.
  double step(Eigen::Index k, double curvature, double gradient, const T* allowed) {
    if (!(curvature > least_(k) && curvature < kInfinity)) {
      return 0.0;
    }
    const double mask = allowed == nullptr ? 1.0 : static_cast<double>(allowed[k]);
    const double moved = mask * std::max(0.0, f_(k) - gradient / curvature);
    const double change = moved - f_(k);
    f_(k) = moved;
    return change;
  }

  void add_common(Eigen::Index k, double change) {
    if (grams_.count > 0) {
      gradient_ += change * common_.col(k);
    }
  }

  // K_ = sum_j w_j g_j g_j^T.
  void add_weighted_gram(const Csr<T>& weights, Size begin, Size end, const Rows<const T>& G) {
    K_.setZero(rank_, rank_);
    const Size blocks = grams_.rank / kComponents;
    for (Size first = begin; first < end; first += kEntriesAtOnce) {
      const Size last = std::min(first + kEntriesAtOnce, end);
      end_if_interrupted((last - first) * G.columns * G.columns / 2);
      gathered_.gather(weights, first, last, G, nullptr);
      for (Size a = 0; a < blocks; ++a) {
        for (Size b = 0; b <= a; ++b) {
          K_.template block<kComponents, kComponents>(a * kComponents, b * kComponents).array() +=
              gathered_.products(a, b);
        }
      }
    }
    K_.template triangularView<Eigen::StrictlyUpper>() = K_.transpose();
  }

  Grams<T> grams_;
  Eigen::Index rank_;
  GatheredColumns<T> gathered_;
  std::vector<ComponentTile> tiles_;
  Eigen::MatrixXd common_;
  Eigen::VectorXd least_;
  Eigen::MatrixXd K_;
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
        blocks.count(), threads, [&] { return DescentRow<T>(grams); },
        [&](DescentRow<T>& problem, Size block) {
          const Range range = blocks[block];
          for (Size i = range.begin; i < range.end; ++i) {
            problem.run(weights, G, i, P.row(i), allowed, sweeps, F.row(i));
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
