// Fixed blocks of work and the loop over them.
//
// The partition depends on the data alone, every block is done by one thread, and sums over blocks
// are taken in block order: results have the same bits for any number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <type_traits>
#include <utility>
#include <vector>

#include "denormals.hpp"
#include "interrupt.hpp"
#include "thread_pool.hpp"
#include "views.hpp"

namespace ssnmf {

struct Range {
  Size begin;
  Size end;
};

// Rows cut into blocks of equal size.
class EvenBlocks {
 public:
  EvenBlocks(Size rows, Size rows_per_block)
      : rows_(rows), step_(std::max<Size>(rows_per_block, 1)) {}

  Size count() const { return (rows_ + step_ - 1) / step_; }
  Range operator[](Size block) const {
    return {block * step_, std::min(rows_, (block + 1) * step_)};
  }

 private:
  Size rows_;
  Size step_;
};

// Rows of a sparse matrix cut into blocks of about equal work (entries, and one for each row).
class EqualWorkBlocks {
 public:
  EqualWorkBlocks(const Size* indptr, Size rows, Size work_per_block)
      : indptr_(indptr), rows_(rows), step_(work_per_block) {}

  Size count() const { return (work_before(rows_) + step_ - 1) / step_; }
  Range operator[](Size block) const {
    return {first_row(block * step_), first_row((block + 1) * step_)};
  }

 private:
  Size work_before(Size row) const { return indptr_[row] + row; }

  // First row that has at least `work` before it.
  Size first_row(Size work) const {
    Size low = 0;
    Size high = rows_;
    while (low < high) {
      const Size middle = low + (high - low) / 2;
      if (work_before(middle) < work) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  const Size* indptr_;
  Size rows_;
  Size step_;
};

// A number of blocks.  They may be several stages of the same places: those of a place are taken in
// their order.
struct BlockCount {
  Size blocks;
  Size stages;

  BlockCount(Size all, Size of_a_place = 1) : blocks(all), stages(std::max<Size>(of_a_place, 1)) {}
  Size places() const { return blocks / stages; }
};

// Blocks that threads take until none is left or one has failed.  Each has a range of its own, the
// same at every call, so that what it reads and writes stays near; then it takes from the others.
class BlockQueue {
 public:
  explicit BlockQueue(BlockCount count, Size threads = 1, detail::RecordedLoop* record = nullptr)
      : record_(record),
        stages_(count.stages),
        places_(count.places()),
        ranges_(std::clamp<Size>(threads, 1, kMost)) {
    for (Size r = 0; r < ranges_; ++r) {
      const Size begin = places_ * r / ranges_;
      own_[r].begin = begin;
      own_[r].places = places_ * (r + 1) / ranges_ - begin;
      own_[r].taken.store(0, std::memory_order_relaxed);
    }
  }

  // Whether there was a block to take, from the range or a later one, which is the next then.
  bool take(Size& range, Size& block) {
    if (record_ != nullptr) {
      record_->note();
    }
    range %= ranges_;
    for (Size look = 0; look < ranges_ && !failed(); ++look) {
      Own& own = own_[range];
      const Size all = own.places * stages_;
      if (own.taken.load(std::memory_order_relaxed) < all) {
        const Size next = own.taken.fetch_add(1, std::memory_order_relaxed);
        if (next < all) {
          block = next / own.places * places_ + own.begin + next % own.places;
          return true;
        }
      }
      range = (range + 1) % ranges_;
    }
    return false;
  }

  // Keeps the first exception, to be called where it was caught; no further block is begun.
  void fail() {
    if (!failed_.exchange(true)) {
      failure_ = std::current_exception();
    }
  }

  const std::atomic<bool>& failed() const { return failed_; }

  void rethrow_failure() const {
    if (failure_) {
      std::rethrow_exception(failure_);
    }
  }

 private:
  static constexpr Size kMost = 64;  // ranges; further threads share them

  struct alignas(64) Own {
    std::atomic<Size> taken;
    Size begin;
    Size places;
  };

  detail::RecordedLoop* const record_;
  const Size stages_;
  const Size places_;
  const Size ranges_;
  Own own_[kMost];
  alignas(64) std::atomic<bool> failed_{false};  // all look at it
  std::exception_ptr failure_;
};

// Calls body(workspace, block) for every block; each thread that takes one makes a workspace first.
// The first exception is rethrown on the caller's thread; Interrupted, where it was asked to end.
template <class MakeWorkspace, class Body>
void parallel_for(BlockCount count, int threads, const MakeWorkspace& make_workspace,
                  const Body& body) {
  Size most = std::max<Size>(std::min<Size>(threads, count.places()), 1);
  auto* const recorded = std::exchange(detail::attention().recorded, nullptr);
  detail::RecordedLoop* record = nullptr;
  if (recorded != nullptr) {
    recorded->push_back({count.blocks, count.places(), most, {}});
    record = &recorded->back();
    most = 1;
  }
  BlockQueue queue(count, most, record);
  const ArithmeticMode callers = arithmetic_mode();
  const auto work = [&](int thread) {
    try {
      if (thread == TaskRef::kWaiting) {
        if (!queue.failed()) {
          end_if_interrupted();
        }
        return;
      }
      Size range = thread;
      Size block;
      if (!queue.take(range, block)) {
        return;
      }
      const LoopScope loop(queue.failed());
      const ArithmeticScope flushing(
          without_denormals(callers));  // on every thread: bits do not depend on which
      auto workspace = make_workspace();
      do {
        body(workspace, block);
        loop.look();
      } while (queue.take(range, block));
    } catch (...) {
      queue.fail();
    }
  };
  run_with_helpers(TaskRef(work), static_cast<int>(most) - 1);
  detail::attention().recorded = recorded;
  queue.rethrow_failure();
}

// Threads worth starting for an amount of work, in multiplications or the like: waking a team takes
// some microseconds, and much longer on a busy machine.
inline int useful_threads(Size work, int threads) {
  constexpr Size kWorkPerThread = 131072;
  return static_cast<int>(std::min<Size>(threads, 1 + work / kWorkPerThread));
}

struct NoWorkspace {};

template <class Body>
void parallel_for(Size blocks, int threads, const Body& body) {
  parallel_for(
      blocks, threads, [] { return NoWorkspace{}; },
      [&body](NoWorkspace&, Size block) { body(block); });
}

// Sum over the blocks of body(workspace, block), taken in block order.
template <class MakeWorkspace, class Body>
auto ordered_sum(Size blocks, int threads, const MakeWorkspace& make_workspace, const Body& body) {
  using Workspace = decltype(make_workspace());
  using Sum = std::invoke_result_t<const Body&, Workspace&, Size>;
  std::vector<Sum> parts(static_cast<std::size_t>(blocks));
  parallel_for(blocks, threads, make_workspace, [&](auto& workspace, Size block) {
    parts[static_cast<std::size_t>(block)] = body(workspace, block);
  });
  if (parts.empty()) {
    return Sum{};
  }
  for (std::size_t block = 1; block < parts.size(); ++block) {
    parts[0] += parts[block];
  }
  return parts[0];
}

template <class Body>
auto ordered_sum(Size blocks, int threads, const Body& body) {
  return ordered_sum(
      blocks, threads, [] { return NoWorkspace{}; },
      [&body](NoWorkspace&, Size block) { return body(block); });
}

// Sum over the rows of body(workspace, row), by blocks of rows.
template <class Blocks, class MakeWorkspace, class Body>
double sum_over_rows(const Blocks& blocks, int threads, const MakeWorkspace& make_workspace,
                     const Body& body) {
  return ordered_sum(blocks.count(), threads, make_workspace, [&](auto& workspace, Size block) {
    const Range range = blocks[block];
    double sum = 0.0;
    for (Size i = range.begin; i < range.end; ++i) {
      sum += body(workspace, i);
    }
    return sum;
  });
}

}  // namespace ssnmf
