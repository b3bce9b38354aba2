#include "coordinate_descent.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "../core/parallel.hpp"
#include "descent_common.hpp"
#include "descent_narrow.hpp"
#include "descent_row.hpp"
#include "descent_tile.hpp"
#include "factor_ops.hpp"
#include "row_problem.hpp"

namespace ssnmf {
namespace {

// Rows with few components are grouped by the widths of their tiles; the last group has the others.
constexpr std::size_t kGroups = std::size(kFewWidths) + 1;
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
  return width_for(count);
}

// The numbers of the rows, by groups; nothing where all are in the last one.
template <class T>
Groups rows_by_groups(const Rows<T>& F, const Support& allowed, int threads) {
  Groups groups;
  const Size most = most_few(F.columns);
  if (allowed.data == nullptr || most == 0) {
    return groups;
  }
  std::vector<std::uint8_t> chosen(static_cast<std::size_t>(F.rows));
  const EvenBlocks blocks(F.rows, kRowsPerBlock);
  const int team = useful_threads(F.rows * F.columns, threads);
  // Rows of each group in a block, then where the block's first one has its place.
  std::vector<std::array<Size, kGroups>> places(static_cast<std::size_t>(blocks.count()));
  parallel_for(blocks.count(), team, [&](Size block) {
    for (Size i = blocks[block].begin; i < blocks[block].end; ++i) {
      const std::size_t group = group_of(F.row(i), F.columns, allowed.row(i), most);
      chosen[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(group);
      ++places[static_cast<std::size_t>(block)][group];
    }
  });
  for (std::size_t group = 0; group < kGroups; ++group) {
    Size rows = 0;
    for (auto& place : places) {
      rows += std::exchange(place[group], rows);
    }
    groups[group].resize(static_cast<std::size_t>(rows));
  }
  parallel_for(blocks.count(), team, [&](Size block) {
    for (Size i = blocks[block].begin; i < blocks[block].end; ++i) {
      const std::size_t group = chosen[static_cast<std::size_t>(i)];
      const Size place = places[static_cast<std::size_t>(block)][group]++;
      groups[group][static_cast<std::size_t>(place)] = i;
    }
  });
  return groups;
}

template <class T>
using MakeTile = std::function<std::unique_ptr<Tile<T>>()>;

// Sums run(tile, numbers of rows) over the rows of a group, or over the first `count` of all.
template <class T, class Run>
double by_tiles(const Size* numbers, Size count, Size work_of_a_row, int threads,
                const MakeTile<T>& make_tile, const Run& run) {
  constexpr Size lanes = kTileLanes<T>;
  constexpr Size enough = 256;  // blocks
  const EvenBlocks blocks(count, lanes * std::clamp<Size>(count / (lanes * enough), 1, 4));
  const int team = useful_threads(count * work_of_a_row, threads);
  return ordered_sum(blocks.count(), team, make_tile, [&](auto& tile, Size block) {
    const Range range = blocks[block];
    double sum = 0.0;
    Size here[lanes];
    for (Size begin = range.begin; begin < range.end; begin += lanes) {
      const Size size = std::min(lanes, range.end - begin);
      if (numbers == nullptr) {
        std::iota(here, here + size, begin);
      }
      sum += run(*tile, Span<const Size>{numbers == nullptr ? here : numbers + begin, size});
    }
    return sum;
  });
}

}  // namespace

template <class T>
double coordinate_descent(const Grams<T>& grams, const Csr<T>& weights, const Factor<const T>& G,
                          const Rows<const T>& P, const Rows<T>& F, const Support& allowed,
                          int sweeps, int face_steps, int threads, bool measured) {
  if (weights.indptr != nullptr) {
    const EvenBlocks blocks(F.rows, kSolvedRowsPerBlock);
    parallel_for(
        blocks.count(), threads, [&] { return DescentRow<T>(grams, threads); },
        [&](DescentRow<T>& problem, Size block) {
          const Range range = blocks[block];
          for (Size i = range.begin; i < range.end; ++i) {
            problem.run(weights, G, i, P.row(i), allowed.row(i), sweeps, F.row(i));
          }
        });
    return 0.0;
  }
  const Groups groups = rows_by_groups(F, allowed, threads);
  const auto run = [&](Tile<T>& tile, const Span<const Size>& rows) {
    return tile.run(P, F, allowed, rows, sweeps, face_steps, measured);
  };
  double violation = 0.0;
  const Size products = sweeps + face_steps;
  for (std::size_t group = 0; group + 1 < kGroups; ++group) {
    const int width = kFewWidths[group];
    const auto make_tile = [&] { return std::make_unique<NarrowTile<T>>(grams, width); };
    const auto& rows = groups[group];
    violation += by_tiles<T>(rows.data(), static_cast<Size>(rows.size()), width * width * products,
                             threads, make_tile, run);
  }
  const Size work = F.columns * F.columns * products;
  const bool grouped =
      std::any_of(groups.begin(), groups.end(), [](auto& g) { return !g.empty(); });
  const Size count = grouped ? static_cast<Size>(groups.back().size()) : F.rows;
  const Size* numbers = grouped ? groups.back().data() : nullptr;
  const auto make_tile = [&] { return std::make_unique<CommonTile<T>>(grams); };
  return violation + by_tiles<T>(numbers, count, work, threads, make_tile, run);
}

#define SSNMF_INSTANTIATE(T)                                                                       \
  template double coordinate_descent<T>(const Grams<T>&, const Csr<T>&, const Factor<const T>&,    \
                                        const Rows<const T>&, const Rows<T>&, const Support&, int, \
                                        int, int, bool);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
