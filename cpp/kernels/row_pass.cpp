#include "row_pass.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "../core/parallel.hpp"
#include "../core/system_threads.hpp"

namespace ssnmf {
namespace {

// What a thread needs for one row after the other.
template <class T>
class RowWorkspace {
 public:
  explicit RowWorkspace(Size rank)
      : room_(static_cast<std::size_t>(rank)), part_(room_.size()), total_(room_.size()) {}

  // Long rows are summed in parts: a float sum of millions of entries would end where an entry is
  // less than its rounding.
  void store(const RowSum<T>& sum, const T* f, Range entries, const Target<T>& to, Size row) {
    if (entries.end - entries.begin <= kEntriesPerSum) {
      sum.store(f, entries, to, row, room_.data());
      return;
    }
    begin();
    const Target<T> part{{part_.data(), 1, sum.rank()}};
    const Size step = sum.entries_per_part();
    for (Size first = entries.begin; first < entries.end; first += step) {
      sum.store(f, {first, std::min(first + step, entries.end)}, part, 0, room_.data());
      add(part_.data());
    }
    to.store_row(row, total(), sum.rank());
  }

  // The total of several rows.
  void begin() { std::fill(total_.begin(), total_.end(), 0.0); }
  void add(const T* part) {
    for (std::size_t k = 0; k < total_.size(); ++k) {
      total_[k] += static_cast<double>(part[k]);
    }
  }
  const double* total() const { return total_.data(); }

 private:
  std::vector<T> room_;
  std::vector<T> part_;
  std::vector<double> total_;
};

// One row of the result: its pieces are rows of a matrix of their own, summed in their order.
template <class T>
void store_in_pieces(const RowSum<T>& sum, const T* f, Range entries, const Target<T>& to, Size row,
                     int team) {
  const Size rank = sum.rank();
  const EvenBlocks pieces(entries.end - entries.begin, kEntriesPerBlock);
  std::vector<T> sums(static_cast<std::size_t>(pieces.count() * rank));
  const Target<T> parts{{sums.data(), pieces.count(), rank}};
  const auto workspace = [rank] { return RowWorkspace<T>(rank); };
  parallel_for(pieces.count(), team, workspace, [&](RowWorkspace<T>& work, Size piece) {
    const Range range = pieces[piece];
    work.store(sum, f, {entries.begin + range.begin, entries.begin + range.end}, parts, piece);
  });
  RowWorkspace<T> whole(rank);
  whole.begin();
  for (Size piece = 0; piece < pieces.count(); ++piece) {
    whole.add(parts.out.row(piece));
  }
  to.store_row(row, whole.total(), rank);
}

// Ranges of rows that are worked on panel by panel.  A range waits until its earlier panel is done:
// its panels are taken in order, so that some thread is at it already.
class PanelOrder {
 public:
  explicit PanelOrder(Size ranges) : done_(static_cast<std::size_t>(ranges)) {}

  void wait(Size range, Size panel) const {
    while (done_[static_cast<std::size_t>(range)].load(std::memory_order_acquire) < panel) {
      end_if_interrupted();
      if (is_forked_child()) {
        throw Interrupted();  // What is waited for stayed behind in the parent.
      }
      std::this_thread::yield();
    }
  }
  void finish(Size range, Size panel) {
    done_[static_cast<std::size_t>(range)].store(panel + 1, std::memory_order_release);
  }

 private:
  std::vector<std::atomic<Size>> done_;
};

}  // namespace

template <class T>
void pass_rows(const RowSum<T>& sum, const Csr<T>& Z, const Rows<const T>& F, const Target<T>& to,
               int threads, const BeforeRow<T>& before) {
  const EqualWorkBlocks blocks(Z.indptr, Z.rows, kEntriesPerBlock);
  const int team = useful_threads((Z.entries() + Z.rows) * sum.rank(), threads);
  const auto workspace = [&] { return RowWorkspace<T>(sum.rank()); };
  const auto done = [&](Size row) { return before != nullptr && before(Z, row, to); };
  parallel_for(blocks.count(), team, workspace, [&](RowWorkspace<T>& work, Size block) {
    const Range range = blocks[block];
    for (Size row = range.begin; row < range.end; ++row) {
      if (!is_longest(Z.indptr, row) && !done(row)) {
        work.store(sum, row_or_null(F, row), entries_of(Z, row), to, row);
      }
    }
  });
  for (const Size row : longest_rows(Z.indptr, Z.rows, team)) {
    if (!done(row)) {
      store_in_pieces(sum, row_or_null(F, row), entries_of(Z, row), to, row, team);
    }
  }
}

template <class T>
void pass_panels(const RowSum<T>& sum, const Csr<T>& Z, const Rows<const T>& F,
                 const Span<const Size>& bounds, const Target<T>& to, int threads,
                 const BeforeRow<T>& before) {
  const Size ranges = bounds.size - 1;
  const Size panels = to.out.rows == 0 ? 0 : Z.rows / to.out.rows;
  const int team = useful_threads((Z.entries() + Z.rows) * sum.rank(), threads);
  if (panels == 0 && !to.accumulate) {
    std::fill(to.out.data, to.out.data + to.out.rows * to.out.columns, T(0));
  }
  const auto workspace = [&] { return RowWorkspace<T>(sum.rank()); };
  PanelOrder order(ranges);
  const BlockCount blocks(panels * ranges, panels);
  parallel_for(blocks, team, workspace, [&](RowWorkspace<T>& work, Size block) {
    const Size panel = block / ranges;
    const Size range = block % ranges;
    const Csr<T> part{Z.indptr + panel * to.out.rows, Z.indices, Z.values, to.out.rows};
    const Target<T> target{to.out, to.scale, to.accumulate || panel > 0};
    order.wait(range, panel);
    for (Size row = bounds.data[range]; row < bounds.data[range + 1]; ++row) {
      const Range entries = entries_of(part, row);
      const bool empty = panel > 0 && entries.begin == entries.end;
      if (!empty && (before == nullptr || !before(part, row, target))) {
        work.store(sum, row_or_null(F, row), entries, target, row);
      }
    }
    order.finish(range, panel);
  });
}

#define SSNMF_INSTANTIATE(T)                                                          \
  template void pass_rows<T>(const RowSum<T>&, const Csr<T>&, const Rows<const T>&,   \
                             const Target<T>&, int, const BeforeRow<T>&);             \
  template void pass_panels<T>(const RowSum<T>&, const Csr<T>&, const Rows<const T>&, \
                               const Span<const Size>&, const Target<T>&, int,        \
                               const BeforeRow<T>&);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
