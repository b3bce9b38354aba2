// The loop over blocks and the threads behind it; also for ThreadSanitizer.
#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "checks.hpp"

namespace {

using namespace ssnmf;

void test_every_block_is_done_once() {
  for (const int threads : {-1, 0, 1, 2, 3, 8, 100}) {
    for (const Size blocks : {0, 1, 2, 7, 1000}) {
      check(all_done_once(blocks, threads), "every block once");
    }
  }
}

void test_helpers_help_and_are_woken() {
  for (int round = 0; round < 20; ++round) {
    nap();  // Long enough for them to fall asleep.
    std::atomic<int> inside{0};
    std::atomic<bool> met{true};
    parallel_for(3, 3, [&](Size) {
      ++inside;
      met = comes_true([&] { return inside == 3; }) && met;
    });
    check(met, "three threads at once");
  }
}

// Each of the woken wakes others: all come, however many.
void test_many_helpers_wake_each_other() {
  for (const int threads : {4, 6, 9, 24}) {
    nap(milliseconds(5));
    std::atomic<int> inside{0};
    std::atomic<bool> met{true};
    parallel_for(threads, threads, [&](Size) {
      ++inside;
      met = comes_true([&] { return inside == threads; }) && met;
    });
    check(met, "all threads at once");
  }
}

void test_sums_do_not_depend_on_threads() {
  const auto sum = [](int threads) {
    return ordered_sum(
        1000, threads, [] { return NoWorkspace{}; },
        [](NoWorkspace&, Size block) { return 1.0 / (1.0 + 3.0 * static_cast<double>(block)); });
  };
  for (const int threads : {2, 3, 8}) {
    check(sum(threads) == sum(1), "same bits");
  }
}

void test_failures_reach_the_caller() {
  for (const int threads : {1, 2, 8}) {
    const Size blocks = 1000000;  // At least a quarter of an hour of naps.
    std::atomic<Size> begun{0};
    std::atomic<bool> thrown{false};
    const std::string message = message_of([&] {
      parallel_for(blocks, threads, [&](Size block) {
        ++begun;
        if (block == 5) {
          thrown = true;
          throw std::runtime_error("block 5");
        }
        if (block > 5) {
          comes_true([&] { return thrown.load(); });
          nap();
        }
      });
    });
    check(message == "block 5", "an exception of a body");
    check(begun < blocks, "no further blocks after a failure");
  }
  std::atomic<int> done{0};
  const std::string message = message_of([&] {
    parallel_for(
        100, 4, []() -> NoWorkspace { throw std::runtime_error("workspace"); },
        [&](NoWorkspace&, Size) { ++done; });
  });
  check(message == "workspace" && done == 0, "an exception of make_workspace");
  check(all_done_once(100, 4), "work after a failure");
}

// Helpers that cannot begin, while the caller is at work.
void test_failures_of_helpers_reach_the_caller() {
  const Size blocks = 1000000;
  const auto caller = std::this_thread::get_id();
  std::atomic<Size> begun{0};
  std::atomic<bool> thrown{false};
  const auto make_workspace = [&] {
    if (std::this_thread::get_id() != caller) {
      thrown = true;
      throw std::runtime_error("helper");
    }
    return NoWorkspace{};
  };
  const std::string message = message_of([&] {
    parallel_for(blocks, 4, make_workspace, [&](NoWorkspace&, Size) {
      ++begun;
      comes_true([&] { return thrown.load(); });
      nap();
    });
  });
  check(message == "helper", "an exception of a helper's workspace");
  check(begun < blocks, "no further blocks after a helper's failure");
}

// A block that goes on until its loop has failed.
void work_until_failure() {
  for (int look = 0; look < 60000; ++look) {
    end_if_interrupted(detail::kWorkBetweenLooks);
    nap();
  }
  check(false, "a block ends when its loop has failed");
}

void test_failures_end_long_blocks() {
  for (const int thrower : {0, 1}) {
    std::atomic<int> inside{0};
    const std::string message = message_of([&] {
      parallel_for(2, 2, [&](Size block) {
        ++inside;
        comes_true([&] { return inside == 2; });
        if (block == thrower) {
          throw std::runtime_error("long");
        }
        work_until_failure();
      });
    });
    check(message == "long", "the failure, not what follows from it");
  }
}

// Says that the kernel shall end when asked for the second time.
class Impatient final : public InterruptSource {
 public:
  bool interrupted() override {
    check(std::this_thread::get_id() == caller_, "asked on the calling thread");
    check(all_done_once(10, 2), "a kernel within a question");
    return ++questions_ >= 2;
  }
  int questions() const { return questions_; }

 private:
  const std::thread::id caller_ = std::this_thread::get_id();
  int questions_ = 0;
};

void test_interruption() {
  for (const int threads : {1, 3}) {
    for (const bool long_blocks : {false, true}) {
      Impatient source;
      const std::string message = message_of([&] {
        const InterruptScope scope(source);
        parallel_for(long_blocks ? threads : 1000000, threads, [&](Size) {
          if (long_blocks) {
            work_until_failure();
          } else {
            nap();
          }
        });
      });
      check(message == "interrupted", "an interruption");
      check(source.questions() == 2, "asked until the answer was yes");
    }
  }
  Impatient source;
  {
    const InterruptScope scope(source);
    check(all_done_once(1000, 3), "short loops go on");
  }
  parallel_for(300, 2, [&](Size) { nap(); });
  check(source.questions() == 0, "not asked by short kernels, or afterwards");
}

void test_first_failure_is_kept() {
  BlockQueue queue(10);
  for (const char* what : {"first", "second"}) {
    try {
      throw std::runtime_error(what);
    } catch (...) {
      queue.fail();
    }
  }
  Size range = 0;
  Size block = 0;
  check(!queue.take(range, block), "a failed queue is empty");
  check(message_of([&] { queue.rethrow_failure(); }) == "first", "the first failure");
}

// In long blocks of a helper, while the caller has nothing more to do but to wait.
void test_interruption_while_waiting() {
  const auto caller = std::this_thread::get_id();
  for (const bool nested : {false, true}) {
    Impatient source;
    std::atomic<int> inside{0};
    const auto loop = [&] {
      parallel_for(2, 2, [&](Size) {
        ++inside;
        comes_true([&] { return inside == 2; });
        if (std::this_thread::get_id() != caller) {
          work_until_failure();
        }
      });
    };
    const auto begin = std::chrono::steady_clock::now();
    const std::string message = message_of([&] {
      const InterruptScope scope(source);
      nested ? parallel_for(1, 2, [&](Size) { loop(); }) : loop();
    });
    check(message == "interrupted" && source.questions() == 2, "an interruption of a wait");
    check(std::chrono::steady_clock::now() - begin < milliseconds(2000), "asked in time");
  }
}

// Every thread begins at its own blocks; of some stages, a place has one after the other.
void test_ranges_of_threads() {
  constexpr Size places = 10;
  constexpr Size stages = 3;
  BlockQueue queue({places * stages, stages}, 3);
  std::vector<int> stage_of(places, 0);
  const Size begin[] = {0, 3, 6};
  Size range[] = {0, 4, 2};  // the second thread's number is higher than there are ranges
  Size block = 0;
  for (int thread = 0; thread < 3; ++thread) {
    check(queue.take(range[thread], block) && block == begin[thread], "a range of its own");
    ++stage_of[static_cast<std::size_t>(block)];
  }
  Size taken = 3;
  for (; queue.take(range[1], block); ++taken) {
    check(stage_of[static_cast<std::size_t>(block % places)]++ == block / places,
          "stages in order");
  }
  check(taken == places * stages, "all blocks by whoever goes on");
}

void test_nested() {
  std::atomic<Size> sum{0};
  parallel_for(20, 3,
               [&](Size outer) { parallel_for(30, 3, [&](Size inner) { sum += outer * inner; }); });
  check(sum == 190 * 435, "nested loops");
}

void at_once(int callers, const std::function<void(int)>& call) {
  std::vector<std::thread> threads;
  for (int caller = 0; caller < callers; ++caller) {
    threads.emplace_back(call, caller);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

void test_many_callers() {
  at_once(8, [](int caller) {
    for (int round = 0; round < 200; ++round) {
      check(all_done_once(1 + (round * 7 + caller) % 40, 1 + (round + caller) % 5), "many callers");
      if (round % 20 == caller) {
        nap();
      }
    }
  });
  // More at the same time than there are places for.
  std::atomic<int> inside{0};
  at_once(50, [&](int) {
    bool met = false;
    parallel_for(2, 2, [&](Size block) {
      if (block == 0) {
        ++inside;
        met = comes_true([&] { return inside == 50; });
      }
    });
    check(met, "fifty callers inside");
  });
}

}  // namespace

int main() {
  test_every_block_is_done_once();
  test_helpers_help_and_are_woken();
  test_many_helpers_wake_each_other();
  test_sums_do_not_depend_on_threads();
  test_failures_reach_the_caller();
  test_failures_of_helpers_reach_the_caller();
  test_failures_end_long_blocks();
  test_interruption();
  test_interruption_while_waiting();
  test_ranges_of_threads();
  test_first_failure_is_kept();
  test_nested();
  test_many_callers();
  return report();
}
