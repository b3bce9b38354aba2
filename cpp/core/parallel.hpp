// Fixed blocks of work and the loop over them.
//
// The partition depends on the data alone, every block is done by one thread, and sums over blocks
// are taken in block order: results have the same bits for any number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
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

// Blocks that threads take one after the other, until none is left or one has failed.
class BlockQueue {
 public:
  explicit BlockQueue(Size blocks) : blocks_(blocks) {}

  // Whether there was a block to take.
  bool take(Size& block) {
    block = next_.fetch_add(1, std::memory_order_relaxed);
    return block < blocks_;
  }

  // Keeps the first exception, to be called where it was caught; no further block is begun.
  void fail() {
    if (!failed_.exchange(true)) {
      failure_ = std::current_exception();
    }
    next_.store(blocks_, std::memory_order_relaxed);
  }

  const std::atomic<bool>& failed() const { return failed_; }

  void rethrow_failure() const {
    if (failure_) {
      std::rethrow_exception(failure_);
    }
  }

 private:
  alignas(64) std::atomic<Size> next_{0};
  const Size blocks_;
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
};

// Calls body(workspace, block) for every block; each thread that takes one makes a workspace first.
// The first exception is rethrown on the caller's thread; Interrupted, where it was asked to end.
template <class MakeWorkspace, class Body>
void parallel_for(Size blocks, int threads, const MakeWorkspace& make_workspace, const Body& body) {
  BlockQueue queue(blocks);
  const auto work = [&] {
    Size block;
    if (!queue.take(block)) {
      return;
    }
    const LoopScope loop(queue.failed());
    const WithoutDenormals without;  // on every thread, so that bits do not depend on their number
    try {
      auto workspace = make_workspace();
      do {
        body(workspace, block);
        loop.look();
      } while (queue.take(block));
    } catch (...) {
      queue.fail();
    }
  };
  const Size most = std::min<Size>(threads, blocks);
  run_with_helpers(TaskRef(work), static_cast<int>(std::max<Size>(most, 1)) - 1);
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
double ordered_sum(Size blocks, int threads, const MakeWorkspace& make_workspace,
                   const Body& body) {
  std::vector<double> parts(static_cast<std::size_t>(blocks), 0.0);
  parallel_for(blocks, threads, make_workspace, [&](auto& workspace, Size block) {
    parts[static_cast<std::size_t>(block)] = body(workspace, block);
  });
  double sum = 0.0;
  for (const double part : parts) {
    sum += part;
  }
  return sum;
}

}  // namespace ssnmf
