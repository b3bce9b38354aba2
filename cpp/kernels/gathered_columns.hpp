// The rows of a factor that one row of a sparse matrix of weights names, scaled by the roots of the
// weights and turned: a column for each component, so that the same component of all entries lies
// side by side.
//
// With h_j = |w_j|^(1/2) g_j and z_j = h_j . f, the quadratic sum_j w_j (g_j . f)^2 is the sum of
// z_j^2 over the positive weights less that over the negative ones.  A column holds the positive
// ones first; each of the two parts is filled up to whole registers with zeros.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <vector>

#include "../core/compiler.hpp"
#include "../core/interrupt.hpp"
#include "rank.hpp"
#include "square.hpp"

namespace ssnmf {

constexpr int kComponents = 4;  // columns that are stored, multiplied and moved together

using Components = Eigen::Array<double, kComponents, 1>;
using ComponentTile = Eigen::Array<double, kComponents, kComponents>;

template <class T>
class GatheredColumns {
 public:
  // Entries [first, last) of the weights; z is computed where f is given.
  SSNMF_FLATTEN void gather(const Csr<T>& weights, Size first, Size last, const Rows<const T>& G,
                            const T* f) {
    end_if_interrupted((last - first) * G.columns);
    list(weights, first, last);
    columns_.resize(std::max(columns_.size(), groups_ * kLanes * G.columns));
    for (Size group = 0; group < groups_; ++group) {
      if (f == nullptr) {
        turn<false>(group, G, f);
      } else {
        turn<true>(group, G, f);
      }
    }
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
  static constexpr int kLanes = kRegisterLanes<T>;
  static constexpr int kAligned = kLanes == 1 ? 0 : kLanes * static_cast<int>(sizeof(T));
  using Lanes = Eigen::Array<T, kLanes, 1>;
  using Here = Eigen::Map<const Lanes, kAligned>;
  using There = Eigen::Map<Lanes, kAligned>;
  static constexpr Size kPrefetchedGroups = 2;

  // The entries in their order: those with positive weights, fill, those with negative, fill.
  void list(const Csr<T>& weights, Size first, Size last) {
    const Size most = (last - first + 2 * kLanes) / kLanes * kLanes + kLanes;
    if (z_.size() < most) {
      rows_.resize(static_cast<std::size_t>(most));
      roots_.resize(most);
      z_.resize(most);
    }
    bool signs = false;
    const Size count = append(weights, first, last, 0, T(1), signs);
    positive_ = count / kLanes;
    groups_ = signs ? append(weights, first, last, count, T(-1), signs) / kLanes : positive_;
    roots_.head(groups_ * kLanes) = roots_.head(groups_ * kLanes).sqrt();
  }

  // Lists the entries whose weights have a sign; `others` tells whether there are any of the other.
  Size append(const Csr<T>& weights, Size first, Size last, Size count, T sign, bool& others) {
    Index* rows = rows_.data() + count;
    T* roots = roots_.data() + count;
    using Values = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;
    Size listed = last - first;
    others = false;
    if (weights.values == nullptr || (sign * Values(weights.values + first, listed) > T(0)).all()) {
      std::copy_n(weights.indices + first, listed, rows);
      for (Size e = 0; e < listed; ++e) {
        roots[e] = sign * weights.value(first + e);
      }
    } else {
      listed = 0;
      for (Size e = first; e < last; ++e) {
        const T weight = sign * weights.value(e);
        rows[listed] = weights.indices[e];
        roots[listed] = weight;
        listed += weight > T(0) ? 1 : 0;
        others |= weight < T(0);
      }
    }
    for (; listed % kLanes != 0; ++listed) {
      rows[listed] = rows[listed - 1];
      roots[listed] = T(0);
    }
    return count + listed;
  }

  const T* source(Size group, int lane, const Rows<const T>& G) const {
    return G.row(static_cast<Size>(rows_[static_cast<std::size_t>(group * kLanes + lane)]));
  }

  // kComponents columns of a group lie together, then those of the next group.
  const T* block(Size b, Size group) const {
    return columns_.data() + (b * groups_ + group) * kComponents * kLanes;
  }

  template <bool WithZ>
  SSNMF_INLINE void turn(Size group, const Rows<const T>& G, const T* f) {
    const Size ahead = std::min(group + kPrefetchedGroups, groups_ - 1);
    const T* rows[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
      rows[lane] = source(group, lane, G);
      const T* next = source(ahead, lane, G);
      for (Size k = 0; k < G.columns; k += 64 / static_cast<Size>(sizeof(T))) {
        prefetch(next + k);
      }
    }
    const Lanes roots = Here(roots_.data() + group * kLanes);
    T* const begin = columns_.data() + group * kComponents * kLanes;
    const Size step = groups_ * kComponents * kLanes;
    Lanes z[kComponents];
    for (Lanes& part : z) {
      part.setZero();
    }
    const Size squares = G.columns / kLanes * kLanes;
    for (Size k = 0; k < squares; k += kLanes) {
      const auto place = [&](int lane) {
        return begin + (k + lane) / kComponents * step + (k + lane) % kComponents * kLanes;
      };
      turn_square<T>([&](int lane) { return rows[lane] + k; }, place);
      for (int lane = 0; lane < kLanes; ++lane) {
        T* out = place(lane);
        There(out) *= roots;
        if (WithZ) {
          z[lane % kComponents] += f[k + lane] * Here(out);
        }
      }
    }
    for (Size k = squares; k < G.columns; ++k) {  // eight columns are half a register of float
      T* out = begin + k / kComponents * step + k % kComponents * kLanes;
      for (int lane = 0; lane < kLanes; ++lane) {
        out[lane] = roots(lane) * rows[lane][k];
      }
      if (WithZ) {
        z[0] += f[k] * Here(out);
      }
    }
    if (WithZ) {
      There(z_.data() + group * kLanes) = (z[0] + z[1]) + (z[2] + z[3]);
    }
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
    const T* x = block(a, first);
    const T* y = block(b, first);
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
    Lanes sums[kComponents];
    for (Lanes& sum : sums) {
      sum.setZero();
    }
    const T* x = block(b, first);
    for (Size group = first; group < last; ++group, x += kComponents * kLanes) {
      add(x, Here(z_.data() + group * kLanes), sums);
    }
    return total(sums);
  }

  SSNMF_FLATTEN Components gradient_after(Size from, const Components& change, Size b, Size first,
                                          Size last) {
    const Eigen::Array<T, kComponents, 1> step = change.cast<T>();
    Lanes sums[kComponents];
    for (Lanes& sum : sums) {
      sum.setZero();
    }
    const T* x = block(b, first);
    const T* y = block(from, first);
    for (Size group = first; group < last; ++group) {
      Lanes z = Here(z_.data() + group * kLanes);
      z += (step(0) * Here(y) + step(1) * Here(y + kLanes)) +
           (step(2) * Here(y + 2 * kLanes) + step(3) * Here(y + 3 * kLanes));
      There(z_.data() + group * kLanes) = z;
      add(x, z, sums);
      x += kComponents * kLanes;
      y += kComponents * kLanes;
    }
    return total(sums);
  }

  SSNMF_INLINE static void add(const T* x, const Lanes& z, Lanes* sums) {
    for (int i = 0; i < kComponents; ++i) {
      sums[i] += Here(x + i * kLanes) * z;
    }
  }

  SSNMF_INLINE static Components total(const Lanes* sums) {
    Components result;
    for (int i = 0; i < kComponents; ++i) {
      result(i) = static_cast<double>(sums[i].sum());
    }
    return result;
  }

  std::vector<Index> rows_;
  Eigen::Array<T, Eigen::Dynamic, 1> roots_;
  Eigen::Array<T, Eigen::Dynamic, 1> columns_;
  Eigen::Array<T, Eigen::Dynamic, 1> z_;
  Size positive_ = 0;
  Size groups_ = 0;
};

}  // namespace ssnmf
