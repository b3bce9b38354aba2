// What the threads of the pool share with the process: signals, stacks, the arithmetic mode, forks.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <limits>
#include <string>
#include <thread>

#include "checks.hpp"

namespace {

using namespace ssnmf;

#if defined(__SSE2__)
double half_of_least() {
  const volatile double least = std::numeric_limits<double>::min();
  return least * 0.5;
}
#endif

void test_denormals_are_zero_in_loops_alone() {
#if defined(__SSE2__)
  std::atomic<bool> zero{true};
  std::atomic<int> inside{0};
  parallel_for(3, 3, [&](Size) {
    ++inside;
    comes_true([&] { return inside == 3; });
    zero = zero && half_of_least() == 0.0;
  });
  check(zero, "no denormal number in a loop");
  check(half_of_least() > 0.0, "denormal numbers outside of loops");
#endif
}

// Whichever thread of the pool comes, and whoever has started it.
void test_threads_round_as_the_caller() {
  for (const int mode : {FE_UPWARD, FE_TONEAREST}) {
    std::fesetround(mode);
    std::atomic<int> inside{0};
    std::atomic<bool> same{true};
    const auto third = [] {
      const volatile double one = 1.0;
      return one / 3.0;
    };
    const double callers = third();
    parallel_for(3, 3, [&](Size) {
      ++inside;
      comes_true([&] { return inside == 3; });
      same = same && third() == callers;
    });
    check(same, "the rounding mode of the caller");
  }
}

// Runs a question in a loop of two threads, on the calling thread, once both are inside.
template <class Question>
class Asked final : public InterruptSource {
 public:
  explicit Asked(const Question& question) : question_(question) {}

  bool interrupted() override {
    question_();
    asked_ = true;
    return false;
  }

  // Whether all blocks were done.
  bool run() {
    const InterruptScope scope(*this);
    std::atomic<int> inside{0};
    std::atomic<int> done{0};
    const auto caller = std::this_thread::get_id();
    parallel_for(2, 2, [&](Size) {
      ++inside;
      comes_true([&] { return inside == 2; });
      const bool asks = std::this_thread::get_id() == caller;
      comes_true([&] {
        if (asks) {
          end_if_interrupted(detail::kWorkBetweenLooks);
        }
        return asked_.load();
      });
      ++done;
    });
    return done == 2;
  }

 private:
  const Question& question_;
  std::atomic<bool> asked_{false};
};

template <class Question>
bool run_asked(const Question& question) {
  return Asked<Question>(question).run();
}

void test_questions_are_asked_in_the_mode_of_the_caller() {
#if defined(__SSE2__)
  bool denormal = false;
  check(run_asked([&] { denormal = half_of_least() > 0.0; }), "a loop with a question");
  check(denormal, "denormal numbers in a question");
#endif
}

bool blocks(int number) {
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  return sigismember(&blocked, number) == 1;
}

std::size_t stack_size() {
#if defined(__APPLE__)
  return pthread_get_stacksize_np(pthread_self());
#else
  pthread_attr_t attributes;
  std::size_t size = 0;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstacksize(&attributes, &size);
  pthread_attr_destroy(&attributes);
  return size;
#endif
}

void test_workers() {
  const auto caller = std::this_thread::get_id();
  std::atomic<int> inside{0};
  std::atomic<bool> right{true};
  std::atomic<bool> room{true};
  parallel_for(3, 3, [&](Size) {
    ++inside;
    comes_true([&] { return inside == 3; });
    if (std::this_thread::get_id() == caller) {
      return;
    }
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGPROF}) {
      right = right && !blocks(own);
    }
    for (const int of_the_program : {SIGINT, SIGTERM, SIGALRM, SIGCHLD}) {
      right = right && blocks(of_the_program);
    }
    room = room && stack_size() >= (1 << 20);
  });
  check(inside == 3 && right, "signals of workers");
  check(room, "stacks of workers");
}

int exit_status(pid_t child) {
  int status = 1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void test_forked_child() {
  check(all_done_once(100, 4), "before a fork");
  const pid_t child = fork();
  if (child == 0) {
    const auto self = std::this_thread::get_id();
    bool alone = true;
    parallel_for(100, 4, [&](Size) { alone = alone && std::this_thread::get_id() == self; });
    _exit(alone && all_done_once(100, 4) ? 0 : 1);
  }
  check(exit_status(child) == 0, "a forked child");
  check(all_done_once(100, 4), "after a fork");
}

// A handler of a signal may fork: the child has lost the helpers and the blocks that they had
// begun.
void test_fork_within_a_loop() {
  pid_t child = -1;
  bool done = false;
  const std::string message = message_of([&] { done = run_asked([&] { child = fork(); }); });
  if (child == 0) {
    const bool lost = message.find("forked") != std::string::npos;
    _exit(lost && all_done_once(100, 4) ? 0 : 1);
  }
  check(done && message.empty(), "the parent goes on");
  check(exit_status(child) == 0, "the child says what it has lost");
  check(all_done_once(100, 4), "after a fork within a loop");
}

}  // namespace

int main() {
  test_denormals_are_zero_in_loops_alone();
  test_threads_round_as_the_caller();
  test_questions_are_asked_in_the_mode_of_the_caller();
  test_forked_child();
  if (!with_openmp) {  // the differences that thread_pool.hpp names
    test_workers();
    test_fork_within_a_loop();
  }
  return report();
}
