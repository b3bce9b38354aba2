// In place of thread_pool.cpp where SSNMF_FAST_OPENMP is on: the team of a parallel region.
//
// For programs that bind or watch threads by OpenMP, and as a yardstick for the pool.  The region
// ends when all of the team have come, so that it waits for threads that other load keeps away.
#include <omp.h>

#include "system_threads.hpp"
#include "thread_pool.hpp"

namespace ssnmf {

void run_with_helpers(const TaskRef& task, int helpers) {
  if (helpers < 1 || is_forked_child()) {
    task(0);
    return;
  }
  Word ended{0};  // helpers
#pragma omp parallel num_threads(helpers + 1)
  {
    const int self = omp_get_thread_num();
    const auto others = static_cast<std::uint32_t>(omp_get_num_threads() - 1);
    task(self);
    if (self > 0 && ended.fetch_add(1) + 1 == others) {
      wake(ended, 1);
    }
    // The barrier would not look whether the user wants it to end.
    constexpr int patience = 10000;
    for (int look = 0; self == 0 && ended.load() < others; ++look) {
      if (look < patience) {
        pause();
        continue;
      }
      const std::uint32_t seen = ended.load();
      if (seen < others) {
        sleep_on(ended, seen, 50);
      }
      task(TaskRef::kWaiting);
    }
  }
}

const char* thread_back_end() { return "OpenMP"; }

}  // namespace ssnmf
