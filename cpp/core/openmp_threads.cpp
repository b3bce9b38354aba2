// The team of a parallel region, as run_with_helpers() may use it in place of the pool.
//
// For programs that bind or watch threads by OpenMP, and as a yardstick for the pool.  The region
// ends when all of the team have come, so that it waits for threads that other load keeps away.
#include "thread_pool.hpp"

namespace ssnmf {

void run_in_team(const TaskRef& task, int threads) {
#pragma omp parallel num_threads(threads)
  task();
}

}  // namespace ssnmf
