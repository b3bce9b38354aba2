// Fixed blocks of work and the loop over them.
//
// The partition depends on the data alone, every block is done by one thread, and sums over blocks
// are taken in block order: results have the same bits for any number of threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <vector>

#include "views.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

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
template <class Index>
class EqualWorkBlocks {
 public:
  EqualWorkBlocks(const Index* indptr, Size rows, Size work_per_block)
      : indptr_(indptr), rows_(rows), step_(work_per_block) {}

  Size count() const { return (work_before(rows_) + step_ - 1) / step_; }
  Range operator[](Size block) const {
    return {first_row(block * step_), first_row((block + 1) * step_)};
  }

 private:
  Size work_before(Size row) const { return static_cast<Size>(indptr_[row]) + row; }

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

  const Index* indptr_;
  Size rows_;
  Size step_;
};

// Calls body(workspace, block) for every block; each thread makes one workspace.  The first
// exception of a worker is rethrown on the caller's thread.
template <class MakeWorkspace, class Body>
void parallel_for(Size blocks, int threads, const MakeWorkspace& make_workspace, const Body& body) {
  std::exception_ptr failure = nullptr;
  const int team =
      static_cast<int>(std::min<Size>(std::max(threads, 1), std::max<Size>(blocks, 1)));
#pragma omp parallel num_threads(team) if (team > 1)
  {
    try {
      auto workspace = make_workspace();
#pragma omp for schedule(dynamic) nowait
      for (Size block = 0; block < blocks; ++block) {
        try {
          body(workspace, block);
        } catch (...) {
#pragma omp critical(ssnmf_failure)
          failure = std::current_exception();
        }
      }
    } catch (...) {
#pragma omp critical(ssnmf_failure)
      failure = std::current_exception();
    }
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
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

inline int max_threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

}  // namespace ssnmf
