#include "imbalance.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <vector>

#include "../core/parallel.hpp"
#include "factor_ops.hpp"

namespace ssnmf {
namespace {

constexpr Size kLanes = 8;  // a sum for each: one sum alone would wait for every addition

using Lanes = Eigen::Array<double, kLanes, 1>;

// |N - P| w, F P and F N, by lanes.
struct Sums {
  Lanes apart = Lanes::Zero();
  Lanes up = Lanes::Zero();
  Lanes down = Lanes::Zero();

  template <class T>
  void add(Size lane, T f, T size, T p, T n, T counts) {
    const double gap = static_cast<double>(n) - static_cast<double>(p);
    const double weight = counts * (gap < 0 ? std::max(f, size) : f);
    const double f_counts = counts * f;
    apart[lane] += std::abs(gap) * weight;
    up[lane] += f_counts * static_cast<double>(p);
    down[lane] += f_counts * static_cast<double>(n);
  }

  template <class T>
  void add_row(const T* f, const T* size, const T* p, const T* n, const std::uint8_t* moves,
               Size columns) {
    Size k = 0;
    for (; k + kLanes <= columns; k += kLanes) {
      for (Size lane = 0; lane < kLanes; ++lane) {
        const Size c = k + lane;
        add(lane, f[c], size[c], p[c], n[c], T(has(moves, c)));
      }
    }
    for (; k < columns; ++k) {
      add(0, f[k], size[k], p[k], n[k], T(has(moves, k)));
    }
  }

  void operator+=(const Sums& other) {
    apart += other.apart;
    up += other.up;
    down += other.down;
  }
};

}  // namespace

template <class T>
Imbalance imbalance(const Rows<const T>& F, const Rows<const T>& P, const Rows<const T>& N,
                    const Support& moves, int threads) {
  std::vector<T> sizes(static_cast<std::size_t>(F.columns));
  column_sums<T>(F, {}, sizes.data(), threads);
  for (T& size : sizes) {
    size /= static_cast<T>(std::max<Size>(F.rows, 1));
  }
  const EvenBlocks blocks(F.rows, kRowsPerBlock);
  const int team = useful_threads(F.rows * F.columns, threads);
  const Sums sums = ordered_sum(blocks.count(), team, [&](Size block) {
    Sums part;
    const Range rows = blocks[block];
    for (Size i = rows.begin; i < rows.end; ++i) {
      part.add_row(F.row(i), sizes.data(), P.row(i), row_or_only(N, i), moves.row(i), F.columns);
    }
    return part;
  });
  return {sums.apart.sum(), std::max(sums.up.sum(), sums.down.sum())};
}

#define SSNMF_INSTANTIATE(T)                                                  \
  template Imbalance imbalance<T>(const Rows<const T>&, const Rows<const T>&, \
                                  const Rows<const T>&, const Support&, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
