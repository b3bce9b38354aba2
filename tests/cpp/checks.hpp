// What the tests of the loop and of its threads share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/parallel.hpp"

namespace ssnmf {

using std::chrono::milliseconds;

#if defined(SSNMF_FAST_TEST_OPENMP)
inline const bool with_openmp = (use_team(&run_in_team), true);
#else
inline const bool with_openmp = false;
#endif

inline std::atomic<int> failures{0};

inline void check(bool condition, const char* what) {
  if (!condition) {
    std::printf("FAILED: %s\n", what);
    ++failures;
  }
}

inline void nap(milliseconds time = milliseconds(1)) { std::this_thread::sleep_for(time); }

// Waits, a minute at most: a condition that never comes true shall fail, not hang.
inline bool comes_true(const std::function<bool()>& condition) {
  for (int look = 0; look < 60000 && !condition(); ++look) {
    nap();
  }
  return condition();
}

// Whether every block was done, once.
inline bool all_done_once(Size blocks, int threads) {
  std::vector<int> done(static_cast<std::size_t>(blocks), 0);
  parallel_for(blocks, threads, [&](Size block) { ++done[static_cast<std::size_t>(block)]; });
  bool right = true;
  for (const int count : done) {
    right = right && count == 1;
  }
  return right;
}

template <class Run>
std::string message_of(const Run& run) {
  try {
    run();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

inline int report() {
  std::printf(failures == 0 ? "all passed\n" : "%d failures\n", failures.load());
  return failures == 0 ? 0 : 1;
}

}  // namespace ssnmf
