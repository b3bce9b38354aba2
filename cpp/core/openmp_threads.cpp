// The team of a parallel region, as run_with_helpers() may use it in place of the pool.
//
// For programs that bind or watch threads by OpenMP, and as a yardstick for the pool.  The region
// ends when all of the team have come, so that it waits for threads that other load keeps away.
#include <omp.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "system_threads.hpp"
#include "thread_pool.hpp"

namespace ssnmf {

void run_in_team(const TaskRef& task, int threads) {
  std::atomic<int> ended{0};  // helpers
#pragma omp parallel num_threads(threads)
  {
    const int self = omp_get_thread_num();
    task(self);
    // The barrier would not look whether the user wants it to end.
    for (int look = 0; self == 0 && ended.load() < omp_get_num_threads() - 1; ++look) {
      constexpr int patience = 10000;
      if (look < patience) {
        pause();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        task(TaskRef::kWaiting);
      }
    }
    ++ended;
  }
}

}  // namespace ssnmf
