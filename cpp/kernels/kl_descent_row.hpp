// Coordinate descent on a row for the Kullback-Leibler loss.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "../core/compiler.hpp"
#include "../core/interrupt.hpp"
#include "../core/numbers.hpp"
#include "entry_losses.hpp"
#include "long_rows.hpp"
#include "turned_rows.hpp"

namespace ssnmf {

// With u_j = g_jk / z_j, p = sum_j x_j u_j and c = sum_j x_j u_j^2, h(f + t e_k) has the derivative
//   n_k - p(t),   p(t) = sum_j x_j u_j / (1 + t u_j),
// which rises with t.  A step ends before the root, and h falls all the way there:
//
// Upwards (p > n): 1 / p(t) is a weighted harmonic mean of lines, hence concave, and below its
// tangent at 0: p(t) >= p / (1 + t c / p).  That bound is n at t = (p - n) / c * (p / n), which is
// the Newton step and more.
//
// Downwards (p < n): 1 / (1 + t u) is convex in u, so that on 0 <= u <= U = max_j u_j it is below
// the chord: p(t) <= p - c / U + (c / U) / (1 + t U).  That bound is n at t = -g / (c + U g),
// g = n - p: the damped Newton step of self-concordant functions.  There 1 + t U > 0, and a step
// that would leave less than a quarter is cut: the model of no entry vanishes.
//
// z is summed up step by step.  Its rounding error is that of the largest value it had, so that it
// is computed anew before it may have fallen too far below.
//
// Several threads go through the entries of a very long row, piece by piece, at every step.
template <class T>
class KlDescentRow {
  using Turned = TurnedRows<T>;
  static constexpr int kLanes = Turned::kLanes;
  using Lanes = typename Turned::Lanes;
  using Here = typename Turned::Here;
  using There = typename Turned::There;

 public:
  explicit KlDescentRow(int threads) : threads_(threads) {}

  double run(const Csr<T>& X, Size row, const Rows<const T>& G, const T* n,
             const std::uint8_t* allowed, int sweeps, bool with_loss, T* f) {
    list(X, X.indptr[row], X.indptr[row + 1]);
    const Size groups = turned_.groups();
    if (groups == 0) {
      for (Size k = 0; k < G.columns; ++k) {
        f[k] = moves(n, allowed, k) ? T(0) : f[k];
      }
      return 0.0;
    }
    columns_ = used_columns(G.columns, n, allowed, f);
    end_if_interrupted(groups * kLanes * columns_ * (1 + sweeps));
    const Size fitting = kBytesAtOnce / (groups * kLanes * static_cast<Size>(sizeof(T)));
    width_ = std::min(columns_, std::max<Size>(fitting / kWidthStep * kWidthStep, kWidthStep));
    turned_.make_columns(width_);
    find_model(G, f);
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      const bool with_zeros = sweep % 2 == 0;
      if (with_zeros) {
        choose(G, n, allowed, f);
      }
      descend(G, n, with_zeros, f);
    }
    return with_loss ? summed([&](Range pieces) { return loss(pieces); }) : 0.0;
  }

 private:
  static constexpr Size kBytesAtOnce = 1 << 20;  // about the second cache
  static constexpr Size kWidthStep = 16;         // components
  static constexpr double kMostOfAStep = 0.75;   // of the way to where a model vanishes

  struct Sums {
    double pull = 0.0;
    double curvature = 0.0;
    Lanes largest = Lanes::Zero();

    Sums& operator+=(const Sums& other) {
      pull += other.pull;
      curvature += other.curvature;
      largest = largest.max(other.largest);
      return *this;
    }
  };

  // The pieces of the row: ranges of groups.
  EvenBlocks pieces() const {
    const Size groups = turned_.groups();
    return {groups, groups * kLanes > kLongestRow ? kEntriesPerBlock / kLanes : groups};
  }

  int team() const { return useful_threads(4 * turned_.groups() * kLanes, threads_); }

  // Calls body(groups of a piece).
  template <class Body>
  void for_pieces(const Body& body) const {
    const EvenBlocks cut = pieces();
    if (cut.count() == 1) {
      body(cut[0]);
      return;
    }
    parallel_for(cut.count(), team(), [&](Size piece) { body(cut[piece]); });
  }

  // The sum over the pieces of part(its groups), in their order.
  template <class Part>
  auto summed(const Part& part) const {
    const EvenBlocks cut = pieces();
    if (cut.count() == 1) {
      return part(cut[0]);
    }
    return ordered_sum(cut.count(), team(), [&](Size piece) { return part(cut[piece]); });
  }

  // The positive entries, filled up to whole groups by some that weigh nothing.
  void list(const Csr<T>& X, Size first, Size last) {
    const Size most = (last - first + kLanes - 1) / kLanes * kLanes;
    turned_.make_room(most);
    if (x_.size() < most) {
      x_.resize(most);
      z_.resize(most);
      w_.resize(most);
    }
    Index* rows = turned_.rows();
    Size count = last - first;
    using Values = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;
    if (X.values != nullptr && (Values(X.values + first, count) > T(0)).all()) {
      std::copy_n(X.values + first, count, x_.data());
      std::copy_n(X.indices + first, count, rows);
    } else {
      count = 0;
      for (Size e = first; e < last; ++e) {
        const T value = X.value(e);
        rows[count] = X.indices[e];
        x_(count) = value;
        count += value > T(0) ? 1 : 0;
      }
    }
    for (; count % kLanes != 0; ++count) {
      rows[count] = rows[count - 1];
      x_(count) = T(0);
    }
    turned_.set_groups(count / kLanes);
  }

  const T* column(Size k, Range groups) const {
    return turned_.block(k / kComponents, groups.begin) + k % kComponents * kLanes;
  }
  static constexpr Size kStride = kComponents * kLanes;

  // 1 / z, or 0 for an entry that no component reaches: it has no say.  (Eigen would take a select
  // entry by entry.)
  SSNMF_INLINE static Lanes inverse(const Lanes& z) {
    using namespace simd;
    const Packet<T> model = pload<Packet<T>>(z.data());
    const Packet<T> reached = pcmp_lt(pset1<Packet<T>>(tiny<T>()), model);
    Lanes result;
    pstore(result.data(), pand(reached, pdiv(pset1<Packet<T>>(T(1)), model)));
    return result;
  }

  static bool moves(const T* n, const std::uint8_t* allowed, Size k) {
    return n[k] > tiny<T>() && has(allowed, k);
  }

  // z and 1 / z of the entries.
  SSNMF_APART void find_model(const Rows<const T>& G, const T* f) {
    for_pieces([&](Range groups) {
      for (Size first = 0; first < columns_; first += width_) {
        const Size width = std::min(width_, columns_ - first);
        turned_.turn(G, first, width, nullptr, f, z_.data(), groups);
      }
      for (Size i = groups.begin * kLanes; i < groups.end * kLanes; i += kLanes) {
        There(w_.data() + i) = inverse(Here(z_.data() + i));
      }
    });
    left_ = 1.0;
  }

  // Only some of the columns of a very long row are there at a time.
  void turn_again(const Rows<const T>& G, Size first) {
    if (width_ < columns_) {
      const Size width = std::min(width_, columns_ - first);
      for_pieces(
          [&](Range groups) { turned_.turn(G, first, width, nullptr, nullptr, nullptr, groups); });
    }
  }

  // Columns up to the last that matters, whole registers of them.
  static Size used_columns(Size columns, const T* n, const std::uint8_t* allowed, const T* f) {
    Size used = columns;
    while (used > 1 && !(f[used - 1] > T(0)) && !moves(n, allowed, used - 1)) {
      --used;
    }
    constexpr Size step = std::max(kLanes, kComponents);
    return std::min(columns, (used + step - 1) / step * step);
  }

  // Lists the components for the next sweeps: those that are positive, and zeros where the data
  // pull.  Most zeros stay.
  void choose(const Rows<const T>& G, const T* n, const std::uint8_t* allowed, const T* f) {
    chosen_.clear();
    for (Size first = 0; first < columns_; first += width_) {
      turn_again(G, first);
      for (Size block = first; block < std::min(first + width_, columns_); block += kComponents) {
        bool zeros = false;
        for (Size k = block; k < block + kComponents; ++k) {
          zeros = zeros || (moves(n, allowed, k) && !(f[k] > T(0)));
        }
        const Components pulls =
            zeros ? summed([&](Range groups) { return pulls_of(block - first, groups); })
                  : Components(Components::Zero());
        for (Size k = block; k < block + kComponents; ++k) {
          const bool pulled = f[k] > T(0) || pulls(k - block) > static_cast<double>(n[k]);
          if (pulled && moves(n, allowed, k)) {
            chosen_.push_back(k);
          }
        }
      }
    }
  }

  void descend(const Rows<const T>& G, const T* n, bool with_zeros, T* f) {
    static const double least = std::sqrt(static_cast<double>(std::numeric_limits<T>::epsilon()));
    auto next = chosen_.begin();
    for (Size begin = 0; begin < columns_; begin += width_) {
      turn_again(G, begin);
      Size moved = 0;
      T change = T(0);
      for (; next != chosen_.end() && *next < begin + width_; ++next) {
        const Size k = *next;
        if (!with_zeros && !(f[k] > T(0))) {
          continue;
        }
        const T before = f[k];
        const Size here = k - begin;
        const Sums sums = summed([&](Range groups) {
          return change == T(0) ? look<false>(moved, change, here, groups)
                                : look<true>(moved, change, here, groups);
        });
        f[k] = moved_to(before, n[k], sums);
        change = f[k] - before;
        moved = here;
        if (left_ < least) {
          find_model(G, f);
          turn_again(G, begin);
          change = T(0);
        }
      }
      if (change != T(0)) {
        for_pieces([&](Range groups) { add(moved, change, groups); });
      }
    }
  }

  T moved_to(T from, T down, const Sums& sums) {
    const double f = static_cast<double>(from);
    const double n = static_cast<double>(down);
    const double p = sums.pull;
    const double c = sums.curvature;
    if (p > n) {
      const double result = f + (p - n) / c * (p / n);
      const bool finite = result < static_cast<double>(std::numeric_limits<T>::max());
      return finite ? static_cast<T>(result) : from;
    }
    const double largest = static_cast<double>(sums.largest.maxCoeff());
    if (!(largest > 0.0)) {
      return T(0);
    }
    const double fall = std::min((n - p) / (c + largest * (n - p)), kMostOfAStep / largest);
    left_ *= 1.0 - std::min(fall, f) * largest;
    return static_cast<T>(std::max(0.0, f - fall));
  }

  SSNMF_FLATTEN Components pulls_of(Size first, Range groups) const {
    const T* g = column(first, groups);
    ComponentSums<T> sums;
    for (Size i = groups.begin * kLanes; i < groups.end * kLanes; i += kLanes, g += kStride) {
      sums.add(g, Here(x_.data() + i) * Here(w_.data() + i));
    }
    return sums.total();
  }

  // 1 / z of a group of entries after a change.
  SSNMF_INLINE Lanes renewed(Size i, T change, const T* h) {
    const Lanes z = Here(z_.data() + i) + change * Here(h);
    const Lanes w = inverse(z);
    There(z_.data() + i) = z;
    There(w_.data() + i) = w;
    return w;
  }

  // What a step of component k needs, after a change of component `from` if there is one.
  template <bool Changed>
  SSNMF_FLATTEN Sums look(Size from, T change, Size k, Range groups) {
    const T* g = column(k, groups);
    const T* h = column(from, groups);
    const Size last = groups.end * kLanes;
    Lanes pull_sum = Lanes::Zero();
    Lanes curvature = Lanes::Zero();
    Lanes largest = Lanes::Zero();
    for (Size i = groups.begin * kLanes; i < last; i += kLanes, g += kStride, h += kStride) {
      const Lanes w = Changed ? renewed(i, change, h) : Lanes(Here(w_.data() + i));
      const Lanes u = Here(g) * w;
      const Lanes v = u * Here(x_.data() + i);
      pull_sum += v;
      curvature += v * u;
      largest = largest.max(u);
    }
    return {static_cast<double>(pull_sum.sum()), static_cast<double>(curvature.sum()), largest};
  }

  SSNMF_FLATTEN void add(Size from, T change, Range groups) {
    const T* h = column(from, groups);
    for (Size i = groups.begin * kLanes; i < groups.end * kLanes; i += kLanes, h += kStride) {
      renewed(i, change, h);
    }
  }

  double loss(Range groups) const {
    double sum = 0.0;
    const Size entries = groups.end * kLanes;
    for (Size i = groups.begin * kLanes; i < entries; i += kLossRun) {
      sum += loss_of_run<T>(EntryLoss::kKullbackLeibler, x_.data() + i, z_.data() + i, nullptr,
                            std::min(kLossRun, entries - i));
    }
    return sum;
  }

  int threads_;
  Turned turned_;
  std::vector<Size> chosen_;  // components
  Size columns_ = 0;
  Size width_ = 0;
  double left_ = 1.0;  // of every model since it was found, at least
  Eigen::Array<T, Eigen::Dynamic, 1> x_;
  Eigen::Array<T, Eigen::Dynamic, 1> z_;
  Eigen::Array<T, Eigen::Dynamic, 1> w_;
};

}  // namespace ssnmf
