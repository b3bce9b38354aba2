// The rows of a factor that one row of a sparse matrix of weights names, turned (turned_rows.hpp)
// and scaled by the roots of the weights.
//
// With h_j = |w_j|^(1/2) g_j and z_j = h_j . f, the quadratic sum_j w_j (g_j . f)^2 is the sum of
// z_j^2 over the positive weights less that over the negative ones.  A column holds the positive
// ones first; each of the two parts is filled up to whole registers with zeros.
#pragma once

#include <Eigen/Core>
#include <algorithm>

#include "../core/compiler.hpp"
#include "../core/interrupt.hpp"
#include "turned_rows.hpp"

namespace ssnmf {

using ComponentTile = Eigen::Array<double, kComponents, kComponents>;

template <class T>
class GatheredColumns {
 public:
  // Entries [first, last) of the weights; z is computed where f is given.
  template <class W>
  SSNMF_FLATTEN void gather(const Csr<W>& weights, Size first, Size last, const Rows<const T>& G,
                            const T* f) {
    end_if_interrupted((last - first) * G.columns);
    list(weights, first, last);
    turned_.turn(G, 0, G.columns, roots_.data(), f, z_.data());
  }

  // (sum_j w_j g_jk g_jl) for the components k of block `a` and l of block `b`.
  ComponentTile products(Size a, Size b) const {
    return products<false>(a, b, 0, positive_) - products<false>(a, b, positive_, groups_);
  }

  // The same for one block and itself.
  ComponentTile squares(Size b) const {
    return products<true>(b, b, 0, positive_) - products<true>(b, b, positive_, groups_);
  }

  // (sum_j w_j g_jk z_j) for the components of a block.
  Components gradient(Size block) const {
    return gradient(block, 0, positive_) - gradient(block, positive_, groups_);
  }

  // The gradient of a block after the components of block `from` have changed.
  Components gradient_after(Size from, const Components& change, Size block) {
    return gradient_after(from, change, block, 0, positive_) -
           gradient_after(from, change, block, positive_, groups_);
  }

 private:
  using Turned = TurnedRows<T>;
  static constexpr int kLanes = Turned::kLanes;
  using Lanes = typename Turned::Lanes;
  using Here = typename Turned::Here;
  using There = typename Turned::There;

  // The entries in their order: those with positive weights, fill, those with negative, fill.
  template <class W>
  void list(const Csr<W>& weights, Size first, Size last) {
    const Size most = (last - first + 2 * kLanes) / kLanes * kLanes + kLanes;
    turned_.make_room(most);
    if (z_.size() < most) {
      roots_.resize(most);
      z_.resize(most);
    }
    bool signs = false;
    const Size count = append(weights, first, last, 0, W(1), signs);
    positive_ = count / kLanes;
    groups_ = signs ? append(weights, first, last, count, W(-1), signs) / kLanes : positive_;
    turned_.set_groups(groups_);
    roots_.head(groups_ * kLanes) = roots_.head(groups_ * kLanes).sqrt();
  }

  // Lists the entries whose weights have a sign; `others` tells whether there are any of the other.
  template <class W>
  Size append(const Csr<W>& weights, Size first, Size last, Size count, W sign, bool& others) {
    Index* rows = turned_.rows() + count;
    T* roots = roots_.data() + count;
    using Values = Eigen::Map<const Eigen::Array<W, Eigen::Dynamic, 1>>;
    Size listed = last - first;
    others = false;
    if (weights.values == nullptr || (sign * Values(weights.values + first, listed) > W(0)).all()) {
      std::copy_n(weights.indices + first, listed, rows);
      for (Size e = 0; e < listed; ++e) {
        roots[e] = static_cast<T>(sign * weights.value(first + e));
      }
    } else {
      listed = 0;
      for (Size e = first; e < last; ++e) {
        const W weight = sign * weights.value(e);
        rows[listed] = weights.indices[e];
        roots[listed] = static_cast<T>(weight);
        listed += weight > W(0) ? 1 : 0;
        others |= weight < W(0);
      }
    }
    for (; listed % kLanes != 0; ++listed) {
      rows[listed] = rows[listed - 1];
      roots[listed] = T(0);
    }
    return count + listed;
  }

  template <bool Symmetric>
  SSNMF_FLATTEN ComponentTile products(Size a, Size b, Size first, Size last) const {
    ComponentTile result = ComponentTile::Zero();
    if (first == last) {
      return result;
    }
    Lanes sums[kComponents][kComponents];
    for (auto& row : sums) {
      for (Lanes& sum : row) {
        sum.setZero();
      }
    }
    const T* x = turned_.block(a, first);
    const T* y = turned_.block(b, first);
    for (Size group = first; group < last; ++group) {
      for (int i = 0; i < kComponents; ++i) {
        const Lanes left = Here(x + i * kLanes);
        for (int j = 0; j < (Symmetric ? i + 1 : kComponents); ++j) {
          sums[i][j] += left * Here(y + j * kLanes);
        }
      }
      x += kComponents * kLanes;
      y += kComponents * kLanes;
    }
    for (int i = 0; i < kComponents; ++i) {
      for (int j = 0; j < kComponents; ++j) {
        result(i, j) = static_cast<double>((Symmetric && j > i ? sums[j][i] : sums[i][j]).sum());
      }
    }
    return result;
  }

  SSNMF_FLATTEN Components gradient(Size b, Size first, Size last) const {
    ComponentSums<T> sums;
    const T* x = turned_.block(b, first);
    for (Size group = first; group < last; ++group, x += kComponents * kLanes) {
      sums.add(x, Here(z_.data() + group * kLanes));
    }
    return sums.total();
  }

  SSNMF_FLATTEN Components gradient_after(Size from, const Components& change, Size b, Size first,
                                          Size last) {
    const Eigen::Array<T, kComponents, 1> step = change.cast<T>();
    ComponentSums<T> sums;
    const T* x = turned_.block(b, first);
    const T* y = turned_.block(from, first);
    for (Size group = first; group < last; ++group) {
      Lanes z = Here(z_.data() + group * kLanes);
      z += (step(0) * Here(y) + step(1) * Here(y + kLanes)) +
           (step(2) * Here(y + 2 * kLanes) + step(3) * Here(y + 3 * kLanes));
      There(z_.data() + group * kLanes) = z;
      sums.add(x, z);
      x += kComponents * kLanes;
      y += kComponents * kLanes;
    }
    return sums.total();
  }

  Turned turned_;
  Eigen::Array<T, Eigen::Dynamic, 1> roots_;
  Eigen::Array<T, Eigen::Dynamic, 1> z_;
  Size positive_ = 0;
  Size groups_ = 0;
};

}  // namespace ssnmf
