#include "imbalance.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "../core/parallel.hpp"
#include "factor_ops.hpp"

namespace ssnmf {
namespace {

constexpr Size kLanes = 8;  // a sum for each: one sum alone would wait for every addition

using Lanes = std::array<double, kLanes>;

// |N - P| w, F P and F N, by lanes.
struct Sums {
  Lanes apart{};
  Lanes up{};
  Lanes down{};

  template <class T>
  void add(std::size_t lane, T f, T size, T p, T n, T counts) {
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
        add(static_cast<std::size_t>(lane), f[c], size[c], p[c], n[c], T(has(moves, c)));
      }
    }
    for (; k < columns; ++k) {
      add(0, f[k], size[k], p[k], n[k], T(has(moves, k)));
    }
  }

  void add(const Sums& other) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      apart[lane] += other.apart[lane];
      up[lane] += other.up[lane];
      down[lane] += other.down[lane];
    }
  }
};

double total(const Lanes& lanes) {
  double sum = 0;
  for (const double each : lanes) {
    sum += each;
  }
  return sum;
}

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
  std::vector<Sums> parts(static_cast<std::size_t>(blocks.count()));
  parallel_for(blocks.count(), useful_threads(F.rows * F.columns, threads), [&](Size block) {
    Sums sums;
    const Range rows = blocks[block];
    for (Size i = rows.begin; i < rows.end; ++i) {
      sums.add_row(F.row(i), sizes.data(), P.row(i), N.row(N.rows == 1 ? 0 : i), moves.row(i),
                   F.columns);
    }
    parts[static_cast<std::size_t>(block)] = sums;
  });
  Sums sums;
  for (const Sums& part : parts) {
    sums.add(part);
  }
  return {total(sums.apart), std::max(total(sums.up), total(sums.down))};
}

#define SSNMF_INSTANTIATE(T)                                                  \
  template Imbalance imbalance<T>(const Rows<const T>&, const Rows<const T>&, \
                                  const Rows<const T>&, const Support&, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
