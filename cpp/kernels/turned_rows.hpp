// The rows of a factor that one row of a sparse matrix names, turned: a column for each component,
// so that the same component of all entries lies side by side.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <vector>

#include "../core/compiler.hpp"
#include "../core/parallel.hpp"
#include "rank.hpp"
#include "square.hpp"

namespace ssnmf {

constexpr int kComponents = 4;  // columns that are stored together

using Components = Eigen::Array<double, kComponents, 1>;

// Entries come in groups of as many as a register holds.
template <class T>
class TurnedRows {
 public:
  static constexpr int kLanes = kRegisterLanes<T>;
  static constexpr int kAligned = kLanes == 1 ? 0 : kLanes * static_cast<int>(sizeof(T));
  using Lanes = Eigen::Array<T, kLanes, 1>;
  using Here = Eigen::Map<const Lanes, kAligned>;
  using There = Eigen::Map<Lanes, kAligned>;

  // Room for the list of entries, whole groups of them.
  void make_room(Size entries) {
    if (static_cast<Size>(rows_.size()) < entries) {
      rows_.resize(static_cast<std::size_t>(entries));
    }
  }

  // The row that each entry names.
  Index* rows() { return rows_.data(); }

  Size groups() const { return groups_; }
  void set_groups(Size groups) { groups_ = groups; }

  // Turns `width` columns of G from `first` on.  Scales, one for each entry, multiply them; z gets
  // what they add to the products with f.  Either may be none.
  void turn(const Rows<const T>& G, Size first, Size width, const T* scales, const T* f, T* z) {
    make_columns(width);
    turn(G, first, width, scales, f, z, {0, groups_});
  }

  // Room for so many columns of the entries.
  void make_columns(Size width) {
    columns_.resize(std::max<Size>(columns_.size(), groups_ * kLanes * width));
  }

  // The same for some of the groups, where there is room.
  SSNMF_FLATTEN void turn(const Rows<const T>& G, Size first, Size width, const T* scales,
                          const T* f, T* z, Range groups) {
    for (Size group = groups.begin; group < groups.end; ++group) {
      if (scales == nullptr) {
        f == nullptr ? turn<false, false>(group, G, first, width, scales, f, z)
                     : turn<false, true>(group, G, first, width, scales, f, z);
      } else {
        f == nullptr ? turn<true, false>(group, G, first, width, scales, f, z)
                     : turn<true, true>(group, G, first, width, scales, f, z);
      }
    }
  }

  // kComponents columns of a group lie together, then those of the next group.
  const T* block(Size b, Size group) const {
    return columns_.data() + (b * groups_ + group) * kBlock;
  }

 private:
  using Packet = simd::Packet<T>;
  static constexpr Size kPrefetchedGroups = 2;
  static constexpr Size kBlock = kComponents * kLanes;

  const T* source(Size group, int lane, const Rows<const T>& G) const {
    return G.row(static_cast<Size>(rows_[static_cast<std::size_t>(group * kLanes + lane)]));
  }

  template <bool Scaled, bool WithZ>
  SSNMF_INLINE void turn(Size group, const Rows<const T>& G, Size first, Size width,
                         const T* scales, const T* f, T* z) {
    const Size ahead = std::min(group + kPrefetchedGroups, groups_ - 1);
    const T* rows[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
      rows[lane] = source(group, lane, G) + first;
      const T* next = source(ahead, lane, G) + first;
      for (Size k = 0; k < width; k += 64 / static_cast<Size>(sizeof(T))) {
        prefetch(next + k);
      }
    }
    using namespace simd;
    Packet scale = pset1<Packet>(T(1));
    if (Scaled) {
      scale = pload<Packet>(scales + group * kLanes);
    }
    const Size step = groups_ * kBlock;
    const auto place_of = [&](Size k) {
      return columns_.data() + group * kBlock + k / kComponents * step + k % kComponents * kLanes;
    };
    Packet sums[kComponents];
    for (Packet& sum : sums) {
      sum = pzero(sum);
    }
    const Size squares = width / kLanes * kLanes;
    Size k = 0;
    for (; k < squares; k += kLanes) {
      const auto square = turned_square<T>([&](int lane) { return rows[lane] + k; });
      T* out = place_of(k);
      for (int c = 0; c < kLanes; ++c) {
        const Packet column = Scaled ? pmul(scale, square.packet[c]) : square.packet[c];
        pstore(out + c / kComponents * step + c % kComponents * kLanes, column);
        if (WithZ) {
          Packet& sum = sums[c % kComponents];
          sum = pmadd(pset1<Packet>(f[first + k + c]), column, sum);
        }
      }
    }
    for (; k < width; ++k) {  // eight columns are half a register of float
      T* place = place_of(k);
      for (int lane = 0; lane < kLanes; ++lane) {
        place[lane] = rows[lane][k];
      }
      const Packet column = pmul(scale, pload<Packet>(place));
      pstore(place, column);
      if (WithZ) {
        sums[0] = pmadd(pset1<Packet>(f[first + k]), column, sums[0]);
      }
    }
    if (WithZ) {
      const Packet added = padd(padd(sums[0], sums[1]), padd(sums[2], sums[3]));
      T* const place = z + group * kLanes;
      pstore(place, first == 0 ? added : padd(pload<Packet>(place), added));
    }
  }

  std::vector<Index> rows_;
  Eigen::Array<T, Eigen::Dynamic, 1> columns_;
  Size groups_ = 0;
};

// Sums over groups of entries, for each of the columns that are stored together.
template <class T>
class ComponentSums {
  using Turned = TurnedRows<T>;
  using Lanes = typename Turned::Lanes;

 public:
  SSNMF_INLINE ComponentSums() {
    for (Lanes& sum : sums_) {
      sum.setZero();
    }
  }

  // += the columns of a group times a factor for each entry
  SSNMF_INLINE void add(const T* columns, const Lanes& factors) {
    for (int c = 0; c < kComponents; ++c) {
      sums_[c] += typename Turned::Here(columns + c * Turned::kLanes) * factors;
    }
  }

  SSNMF_INLINE Components total() const {
    Components result;
    for (int c = 0; c < kComponents; ++c) {
      result(c) = static_cast<double>(sums_[c].sum());
    }
    return result;
  }

 private:
  Lanes sums_[kComponents];
};

}  // namespace ssnmf
