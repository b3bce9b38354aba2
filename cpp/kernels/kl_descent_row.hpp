// Coordinate descent on a row for the Kullback-Leibler loss.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <limits>

#include "../core/compiler.hpp"
#include "../core/interrupt.hpp"
#include "../core/numbers.hpp"
#include "entry_losses.hpp"
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
// g = n - p: the damped Newton step of self-concordant functions.  There 1 + t U > 0: the model of
// no entry vanishes.
template <class T>
class KlDescentRow {
  using Turned = TurnedRows<T>;
  static constexpr int kLanes = Turned::kLanes;
  using Lanes = typename Turned::Lanes;
  using Here = typename Turned::Here;
  using There = typename Turned::There;

 public:
  double run(const Csr<T>& X, Size row, const Rows<const T>& G, const T* n, const T* allowed,
             int sweeps, bool with_loss, T* f) {
    list(X, X.indptr[row], X.indptr[row + 1]);
    const Size groups = turned_.groups();
    if (groups == 0) {
      for (Size k = 0; k < G.columns; ++k) {
        f[k] = n[k] > tiny<T>() ? T(0) : f[k];
      }
      return 0.0;
    }
    end_if_interrupted(groups * kLanes * G.columns * (1 + sweeps));
    const Size fitting = kBytesAtOnce / (groups * kLanes * static_cast<Size>(sizeof(T)));
    const Size width =
        std::min(G.columns, std::max<Size>(fitting / kWidthStep * kWidthStep, kWidthStep));
    for (Size first = 0; first < G.columns; first += width) {
      turned_.turn(G, first, std::min(width, G.columns - first), nullptr, f, z_.data());
    }
    invert();
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      for (Size first = 0; first < G.columns; first += width) {
        const Size part = std::min(width, G.columns - first);
        if (part < G.columns) {
          turned_.turn(G, first, part, nullptr, nullptr, nullptr);
        }
        descend(part, n + first, allowed == nullptr ? nullptr : allowed + first, f + first);
      }
    }
    return with_loss ? loss() : 0.0;
  }

 private:
  static constexpr Size kBytesAtOnce = 1 << 20;  // about the second cache
  static constexpr Size kWidthStep = 16;         // components

  struct Sums {
    double pull = 0.0;
    double curvature = 0.0;
    Lanes largest = Lanes::Zero();
  };

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

  const T* column(Size k) const {
    return turned_.block(k / kComponents, 0) + k % kComponents * kLanes;
  }
  static constexpr Size kStride = kComponents * kLanes;

  // 1 / z, or 0 for an entry that no component reaches: it has no say.  (Eigen would take a select
  // entry by entry.)
  SSNMF_INLINE static Lanes inverse(const Lanes& z) {
    using namespace Eigen::internal;
    using Packet = typename packet_traits<T>::type;
    const Packet model = pload<Packet>(z.data());
    const Packet reached = pcmp_lt(pset1<Packet>(tiny<T>()), model);
    Lanes result;
    pstore(result.data(), pand(reached, pdiv(pset1<Packet>(T(1)), model)));
    return result;
  }

  SSNMF_FLATTEN void invert() {
    for (Size i = 0; i < turned_.groups() * kLanes; i += kLanes) {
      There(w_.data() + i) = inverse(Here(z_.data() + i));
    }
  }

  // Components at zero are looked at kComponents at once: most stay there.
  void descend(Size width, const T* n, const T* allowed, T* f) {
    Size moved = 0;
    T change = T(0);
    for (Size first = 0; first < width; first += kComponents) {
      const auto moves = [&](Size k) {
        return n[k] > tiny<T>() && (allowed == nullptr || allowed[k] > T(0));
      };
      bool any = false;
      for (Size k = first; k < first + kComponents; ++k) {
        any = any || moves(k);
      }
      if (!any) {
        continue;
      }
      const Components pulls = change == T(0) ? pulls_of(first) : pulls_after(moved, change, first);
      change = T(0);
      for (int c = 0; c < kComponents; ++c) {
        const Size k = first + c;
        if (!moves(k) || !(f[k] > T(0) || pulls(c) > static_cast<double>(n[k]))) {
          continue;
        }
        const T before = f[k];
        f[k] = moved_to(before, n[k], change == T(0) ? look(k) : look_after(moved, change, k));
        change = f[k] - before;
        moved = k;
      }
    }
    if (change != T(0)) {
      add(moved, change);
    }
  }

  static T moved_to(T f, T down, const Sums& sums) {
    const double n = static_cast<double>(down);
    const double p = sums.pull;
    const double c = sums.curvature;
    double step = 0.0;
    if (p > n) {
      step = (p - n) / c * (p / n);
    } else if (f > T(0)) {
      const double largest = static_cast<double>(sums.largest.maxCoeff());
      step = (p - n) / (c + largest * (n - p));
    }
    const double result = std::max(0.0, static_cast<double>(f) + step);
    return result < static_cast<double>(std::numeric_limits<T>::max()) ? static_cast<T>(result) : f;
  }

  SSNMF_FLATTEN Components pulls_of(Size first) const {
    const T* g = column(first);
    Lanes sums[kComponents];
    for (Lanes& sum : sums) {
      sum.setZero();
    }
    for (Size i = 0; i < turned_.groups() * kLanes; i += kLanes, g += kStride) {
      add_pulls(g, Here(x_.data() + i) * Here(w_.data() + i), sums);
    }
    return total(sums);
  }

  // The same after a change of component `from`.
  SSNMF_FLATTEN Components pulls_after(Size from, T change, Size first) {
    const T* g = column(first);
    const T* h = column(from);
    Lanes sums[kComponents];
    for (Lanes& sum : sums) {
      sum.setZero();
    }
    for (Size i = 0; i < turned_.groups() * kLanes; i += kLanes, g += kStride, h += kStride) {
      add_pulls(g, Here(x_.data() + i) * renewed(i, change, h), sums);
    }
    return total(sums);
  }

  SSNMF_INLINE static void add_pulls(const T* g, const Lanes& ratio, Lanes* sums) {
    for (int c = 0; c < kComponents; ++c) {
      sums[c] += Here(g + c * kLanes) * ratio;
    }
  }

  SSNMF_INLINE static Components total(const Lanes* sums) {
    Components result;
    for (int c = 0; c < kComponents; ++c) {
      result(c) = static_cast<double>(sums[c].sum());
    }
    return result;
  }

  // 1 / z of a group of entries after a change.
  SSNMF_INLINE Lanes renewed(Size i, T change, const T* h) {
    const Lanes z = Here(z_.data() + i) + change * Here(h);
    const Lanes w = inverse(z);
    There(z_.data() + i) = z;
    There(w_.data() + i) = w;
    return w;
  }

  SSNMF_FLATTEN Sums look(Size k) const {
    const T* g = column(k);
    Lanes pull_sum = Lanes::Zero();
    Lanes curvature = Lanes::Zero();
    Lanes largest = Lanes::Zero();
    for (Size i = 0; i < turned_.groups() * kLanes; i += kLanes, g += kStride) {
      const Lanes u = Here(g) * Here(w_.data() + i);
      const Lanes v = u * Here(x_.data() + i);
      pull_sum += v;
      curvature += v * u;
      largest = largest.max(u);
    }
    return {static_cast<double>(pull_sum.sum()), static_cast<double>(curvature.sum()), largest};
  }

  // The same after a change of component `from`.
  SSNMF_FLATTEN Sums look_after(Size from, T change, Size k) {
    const T* g = column(k);
    const T* h = column(from);
    Lanes pull_sum = Lanes::Zero();
    Lanes curvature = Lanes::Zero();
    Lanes largest = Lanes::Zero();
    for (Size i = 0; i < turned_.groups() * kLanes; i += kLanes, g += kStride, h += kStride) {
      const Lanes u = Here(g) * renewed(i, change, h);
      const Lanes v = u * Here(x_.data() + i);
      pull_sum += v;
      curvature += v * u;
      largest = largest.max(u);
    }
    return {static_cast<double>(pull_sum.sum()), static_cast<double>(curvature.sum()), largest};
  }

  SSNMF_FLATTEN void add(Size from, T change) {
    const T* h = column(from);
    for (Size i = 0; i < turned_.groups() * kLanes; i += kLanes, h += kStride) {
      renewed(i, change, h);
    }
  }

  double loss() const {
    double sum = 0.0;
    const Size entries = turned_.groups() * kLanes;
    for (Size i = 0; i < entries; i += kLossRun) {
      sum += KullbackLeiblerLoss{}.of(x_.data() + i, z_.data() + i, static_cast<const T*>(nullptr),
                                      std::min<Size>(kLossRun, entries - i));
    }
    return sum;
  }

  Turned turned_;
  Eigen::Array<T, Eigen::Dynamic, 1> x_;
  Eigen::Array<T, Eigen::Dynamic, 1> z_;
  Eigen::Array<T, Eigen::Dynamic, 1> w_;
};

}  // namespace ssnmf
