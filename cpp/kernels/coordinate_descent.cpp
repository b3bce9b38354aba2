#include "coordinate_descent.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <vector>

#include "../core/parallel.hpp"
#include "descent_narrow.hpp"
#include "descent_row.hpp"
#include "descent_tile.hpp"
#include "factor_ops.hpp"
#include "row_problem.hpp"

namespace ssnmf {
namespace {

// Widths of the tiles of rows with few components; rows with more are in the last group.
constexpr int kWidths[] = {1, 2, 4, 8, static_cast<int>(kMostFew)};
constexpr std::size_t kGroups = std::size(kWidths) + 1;
using Groups = std::array<std::vector<Size>, kGroups>;

// The group of a row.
template <class T>
std::size_t group_of(const T* f, Size rank, const std::uint8_t* allowed, Size most) {
  Component places[kMostFew];
  Component positive[kMostFew];
  const int count = components_of(allowed, rank, most, places);
  const int held = count < 0 ? -1 : components_of(f, rank, most, positive);
  // A positive entry that may not move has its say in the others.
  if (held < 0 || !std::includes(places, places + count, positive, positive + held)) {
    return kGroups - 1;
  }
  const auto width = std::lower_bound(std::begin(kWidths), std::end(kWidths), count);
  return static_cast<std::size_t>(width - std::begin(kWidths));
}

// The numbers of the rows, by groups.
template <class T>
Groups rows_by_groups(const Rows<T>& F, const Support& allowed, int threads) {
  Groups groups;
  const Size most = most_few(F.columns);
  if (allowed.data == nullptr || most == 0) {
    groups.back().resize(static_cast<std::size_t>(F.rows));
    std::iota(groups.back().begin(), groups.back().end(), Size(0));
    return groups;
  }
  std::vector<std::uint8_t> chosen(static_cast<std::size_t>(F.rows));
  const EvenBlocks blocks(F.rows, kRowsPerBlock);
  parallel_for(blocks.count(), useful_threads(F.rows * F.columns, threads), [&](Size block) {
    const Range range = blocks[block];
    for (Size i = range.begin; i < range.end; ++i) {
      chosen[static_cast<std::size_t>(i)] =
          static_cast<std::uint8_t>(group_of(F.row(i), F.columns, allowed.row(i), most));
    }
  });
  for (Size i = 0; i < F.rows; ++i) {
    groups[chosen[static_cast<std::size_t>(i)]].push_back(i);
  }
  return groups;
}

// Sums run(tile, numbers of rows) over the rows of a group.
template <class T, class MakeTile, class Run>
double by_tiles(const std::vector<Size>& rows, Size work_of_a_row, int threads,
                const MakeTile& make_tile, const Run& run) {
  constexpr Size lanes = kTileLanes<T>;
  constexpr Size tiles = 4;
  const EvenBlocks blocks(static_cast<Size>(rows.size()), lanes * tiles);
  const int team = useful_threads(static_cast<Size>(rows.size()) * work_of_a_row, threads);
  return ordered_sum(blocks.count(), team, make_tile, [&](auto& tile, Size block) {
    const Range range = blocks[block];
    double sum = 0.0;
    for (Size begin = range.begin; begin < range.end; begin += lanes) {
      sum += run(tile, Span<const Size>{rows.data() + begin, std::min(lanes, range.end - begin)});
    }
    return sum;
  });
}

}  // namespace

template <class T>
double coordinate_descent(const Grams<T>& grams, const Csr<T>& weights, const Factor<const T>& G,
                          const Rows<const T>& P, const Rows<T>& F, const Support& allowed,
                          int sweeps, int face_steps, int threads) {
  if (weights.indptr != nullptr) {
    const EvenBlocks blocks(F.rows, kSolvedRowsPerBlock);
    parallel_for(
        blocks.count(), threads, [&] { return DescentRow<T>(grams); },
        [&](DescentRow<T>& problem, Size block) {
          const Range range = blocks[block];
          for (Size i = range.begin; i < range.end; ++i) {
            problem.run(weights, G, i, P.row(i), allowed.row(i), sweeps, F.row(i));
          }
        });
    return 0.0;
  }
  const Groups groups = rows_by_groups(F, allowed, threads);
  const auto run = [&](auto& tile, const Span<const Size>& rows) {
    return tile.run(P, F, allowed, rows, sweeps, face_steps);
  };
  double violation = 0.0;
  const Size products = sweeps + face_steps;
  for (std::size_t group = 0; group + 1 < kGroups; ++group) {
    const int width = kWidths[group];
    const auto make_tile = [&] { return NarrowTile<T>(grams, width); };
    violation += by_tiles<T>(groups[group], width * width * products, threads, make_tile, run);
  }
  const Size work = F.columns * F.columns * products;
  const auto make_tile = [&] { return DescentTile<T>(grams); };
  return violation + by_tiles<T>(groups.back(), work, threads, make_tile, run);
}

#define SSNMF_INSTANTIATE(T)                                                                       \
  template double coordinate_descent<T>(const Grams<T>&, const Csr<T>&, const Factor<const T>&,    \
                                        const Rows<const T>&, const Rows<T>&, const Support&, int, \
                                        int, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
