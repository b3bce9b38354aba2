#include "csr.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "../core/parallel.hpp"

namespace ssnmf {
namespace {

constexpr Size kInspectedPerBlock = 65536;
constexpr Size kColumnsPerRange = 1024;

// Rows that are not sorted are searched for duplicates: every column remembers the last row it was
// seen in.
template <class Given>
class RowInspector {
 public:
  int inspect(const Given* begin, const Given* end, Size columns) {
    // Without a branch, so that the compiler takes several entries at once.
    const Size count = static_cast<Size>(end - begin);
    int outside = 0;
    int descents = 0;
    for (Size e = 0; e < count; ++e) {
      outside |= static_cast<int>(begin[e] < 0) | static_cast<int>(begin[e] >= columns);
    }
    for (Size e = 1; e < count; ++e) {
      descents |= static_cast<int>(begin[e] <= begin[e - 1]);
    }
    if (outside != 0) {
      return kUnsound;
    }
    return descents == 0 ? kSorted : mark(begin, end, columns);
  }

 private:
  int mark(const Given* begin, const Given* end, Size columns) {
    last_row_.resize(static_cast<std::size_t>(columns), 0);
    ++row_;
    int repeats = 0;
    for (const Given* column = begin; column != end; ++column) {
      Given& last = last_row_[static_cast<std::size_t>(*column)];
      repeats |= static_cast<int>(last == row_);
      last = row_;
    }
    return repeats == 0 ? kUnsorted : kDuplicates;
  }

  Given row_ = 0;  // counts the rows that were not sorted
  std::vector<Given> last_row_;
};

// Counts the entries of the columns in some rows.
template <class T>
void count_columns(const Csr<T>& Z, const Range& rows, Size columns, std::vector<Size>& counts) {
  counts.assign(static_cast<std::size_t>(columns), 0);
  for (Size e = Z.indptr[rows.begin]; e < Z.indptr[rows.end]; ++e) {
    ++counts[static_cast<std::size_t>(Z.indices[e])];
  }
}

// Writes the entries of some rows to the next places of their columns.
template <class T>
void place_entries(const Csr<T>& Z, const Range& rows, std::vector<Size>& next, Index* indices,
                   T* values) {
  for (Size i = rows.begin; i < rows.end; ++i) {
    end_if_interrupted(1 + Z.indptr[i + 1] - Z.indptr[i]);
    for (Size e = Z.indptr[i]; e < Z.indptr[i + 1]; ++e) {
      const Size to = next[static_cast<std::size_t>(Z.indices[e])]++;
      indices[to] = static_cast<Index>(i);
      values[to] = Z.values[e];
    }
  }
}

}  // namespace

template <class Given>
int inspect_csr(const Size* indptr, const Given* indices, Size rows, Size columns, Size entries,
                int threads) {
  for (Size i = 0; i < rows; ++i) {
    if (indptr[i + 1] < indptr[i] || indptr[i + 1] > entries) {
      return kUnsound;
    }
  }
  const EqualWorkBlocks blocks(indptr, rows, kInspectedPerBlock);
  std::vector<int> worst(static_cast<std::size_t>(blocks.count()), kSorted);
  parallel_for(
      blocks.count(), useful_threads(entries, threads), [] { return RowInspector<Given>{}; },
      [&](RowInspector<Given>& inspector, Size block) {
        int& state = worst[static_cast<std::size_t>(block)];
        const Range range = blocks[block];
        for (Size i = range.begin; i < range.end; ++i) {
          state = std::max(
              state, inspector.inspect(indices + indptr[i], indices + indptr[i + 1], columns));
        }
      });
  return worst.empty() ? kSorted : *std::max_element(worst.begin(), worst.end());
}

// Each part, a range of rows, is counted and then placed, so that the entries of a column keep the
// order of the rows.  The counts of all parts take no more memory than row numbers of the entries
// would: wide matrices with few entries have fewer parts.
template <class T>
void transpose(const Csr<T>& Z, Size columns, Size* indptr, Index* indices, T* values,
               int threads) {
  const Size most_parts = std::max<Size>(1, Z.entries() / std::max<Size>(columns, 1));
  const Size parts = std::clamp<Size>(useful_threads(Z.entries(), threads), 1, most_parts);
  const EqualWorkBlocks blocks(Z.indptr, Z.rows, (Z.entries() + Z.rows) / parts + 1);
  std::vector<std::vector<Size>> places(static_cast<std::size_t>(blocks.count()));
  parallel_for(blocks.count(), threads, [&](Size block) {
    count_columns(Z, blocks[block], columns, places[static_cast<std::size_t>(block)]);
  });
  const EvenBlocks ranges(columns, kColumnsPerRange);
  const int team = useful_threads(columns * blocks.count(), threads);
  std::vector<Size> starts(static_cast<std::size_t>(ranges.count() + 1), 0);
  parallel_for(ranges.count(), team, [&](Size range) {
    for (const std::vector<Size>& counts : places) {
      const auto here = counts.begin() + ranges[range].begin;
      Size& entries = starts[static_cast<std::size_t>(range + 1)];
      entries = std::accumulate(here, counts.begin() + ranges[range].end, entries);
    }
  });
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  parallel_for(ranges.count(), team, [&](Size range) {
    Size place = starts[static_cast<std::size_t>(range)];
    for (Size c = ranges[range].begin; c < ranges[range].end; ++c) {
      indptr[c] = place;
      for (std::vector<Size>& counts : places) {
        place += std::exchange(counts[static_cast<std::size_t>(c)], place);
      }
    }
  });
  indptr[columns] = starts.back();
  parallel_for(blocks.count(), threads, [&](Size block) {
    place_entries(Z, blocks[block], places[static_cast<std::size_t>(block)], indices, values);
  });
}

template <class T>
void transpose_panels(const Csr<T>& Z, Size columns, Size panel_rows, Size* indptr, Index* indices,
                      T* values, int threads) {
  const EvenBlocks panels(Z.rows, panel_rows);
  const auto make_places = [] { return std::vector<Size>(); };
  const int team = useful_threads(Z.entries(), threads);
  parallel_for(panels.count(), team, make_places, [&](std::vector<Size>& next, Size panel) {
    const Range rows = panels[panel];
    count_columns(Z, rows, columns, next);
    Size place = Z.indptr[rows.begin];
    for (Size c = 0; c < columns; ++c) {
      indptr[panel * columns + c] = place;
      place += std::exchange(next[static_cast<std::size_t>(c)], place);
    }
    place_entries(Z, rows, next, indices, values);
  });
  indptr[panels.count() * columns] = Z.entries();
}

template int inspect_csr<std::int32_t>(const Size*, const std::int32_t*, Size, Size, Size, int);
template int inspect_csr<std::int64_t>(const Size*, const std::int64_t*, Size, Size, Size, int);
template void transpose<float>(const Csr<float>&, Size, Size*, Index*, float*, int);
template void transpose<double>(const Csr<double>&, Size, Size*, Index*, double*, int);
template void transpose_panels<float>(const Csr<float>&, Size, Size, Size*, Index*, float*, int);
template void transpose_panels<double>(const Csr<double>&, Size, Size, Size*, Index*, double*, int);

}  // namespace ssnmf
