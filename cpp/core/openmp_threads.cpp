// In place of thread_pool.cpp where SSNMF_FAST_OPENMP is on: the team of a parallel region.
//
// For programs that bind or watch threads by OpenMP, and as a yardstick for the pool.  The region
// ends when all of the team have come, so that it waits for threads that other load keeps away.
#include "system_threads.hpp"
#include "thread_pool.hpp"

namespace ssnmf {

void run_with_helpers(const TaskRef& task, int helpers) {
  if (helpers < 1 || is_forked_child()) {
    task();
    return;
  }
#pragma omp parallel num_threads(helpers + 1)
  task();
}

const char* thread_back_end() { return "OpenMP"; }

}  // namespace ssnmf
