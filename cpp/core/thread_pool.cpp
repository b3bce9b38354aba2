// Why not OpenMP alone: the barrier of a parallel region waits for the whole team, and spins.
// Beside other load, where some of the team have no core, every region then lasts a time slice or
// longer.  Here nobody waits for a thread that has not begun, and whoever waits soon sleeps.
#include "thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "system_threads.hpp"

namespace ssnmf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostWorkers = 1023;
constexpr int kMostCalls = 32;   // at the same time; further ones have no helpers
constexpr int kWokenByEach = 2;  // of the caller and of each helper

// How long to look before sleeping.  A worker: the time that Python needs between two kernels; more
// would be taken from other load.  The caller: about the time of a block that is not yet done.
constexpr auto kPatienceOfWorker = std::chrono::microseconds(30);
constexpr auto kPatienceOfCaller = std::chrono::microseconds(50);

// How long the caller sleeps at most before it looks whether the user wants it to end.
constexpr int kLongestSleep = 50;  // milliseconds

// Whether the condition came true before patience ran out.
template <class Condition>
bool look_for(std::chrono::microseconds patience, const Condition& condition) {
  const auto end = Clock::now() + patience;
  do {
    for (int look = 0; look < 16; ++look) {
      if (condition()) {
        return true;
      }
      pause();
    }
  } while (Clock::now() < end);
  return false;
}

// A place for one call of run_with_helpers.  Places are never freed: a helper may look at any one
// at any time.
class alignas(64) Call {
 public:
  bool reserve() { return !reserved_.load() && !reserved_.exchange(true); }

  void open(const TaskRef& task, int helpers) {
    task_ = &task;
    state_.store(static_cast<std::uint32_t>(helpers) * kSeat);
  }

  // So many workers are to be woken, by those who are inside.
  void set_to_wake(int workers) { to_wake_.store(workers); }

  // How many of these the calling thread is to wake, which nobody else does then.
  int take_some_to_wake() {
    int left = to_wake_.load();
    int some;
    do {
      some = std::clamp(left, 0, kWokenByEach);
    } while (some > 0 && !to_wake_.compare_exchange_weak(left, left - some));
    return some;
  }

  // Nobody can begin any more; waits for those who have.  False where they stayed behind in the
  // parent of this process.
  bool close() {
    if (is_forked_child()) {
      return (state_.load() & kInside) == 0;
    }
    state_.fetch_and(kInside);
    to_wake_.store(0);
    if (!look_for(kPatienceOfCaller, [this] { return state_.load() == 0; })) {
      std::uint32_t state = state_.fetch_or(kAsleep) | kAsleep;
      while (state != kAsleep) {
        sleep_on(state_, state, kLongestSleep);
        (*task_)(TaskRef::kWaiting);
        if (is_forked_child()) {
          return false;
        }
        state = state_.load();
      }
    }
    reserved_.store(false);
    return true;
  }

  // Whether there was a seat.
  bool enter() {
    std::uint32_t state = state_.load();
    do {
      if ((state & kSeats) == 0) {
        return false;
      }
    } while (!state_.compare_exchange_weak(state, state - kSeat + 1));
    return true;
  }

  // Of those who have entered.
  void do_task_and_leave(int number) {
    (*task_)(number);
    if (state_.fetch_sub(1) == (kAsleep | 1)) {
      wake(state_, 1);  // Perhaps the place has a new owner by now, who will go on sleeping.
    }
  }

 private:
  // Of the state: helpers inside, helpers that may still enter, whether the caller sleeps.
  static constexpr std::uint32_t kInside = 0x7fff;
  static constexpr std::uint32_t kSeat = 0x8000;
  static constexpr std::uint32_t kSeats = 0x7fff8000;
  static constexpr std::uint32_t kAsleep = 0x80000000;

  std::atomic<bool> reserved_{false};
  Word state_{0};
  std::atomic<int> to_wake_{0};
  const TaskRef* task_ = nullptr;
};

// All of it is made when the program is loaded and never destroyed: workers outlive main().  What
// different threads write often stands on different cache lines.
struct Pool {
  Call calls[kMostCalls];
  alignas(64) Word opened{0};               // calls so far; workers sleep on it
  alignas(64) std::atomic<int> looking{0};  // workers that look for a call
  std::atomic<int> sleeping{0};             // workers that sleep or are about to
  alignas(64) std::atomic<int> wanted{0};   // helpers of all open calls
  std::atomic<int> workers{0};
};

Pool pool;
std::atomic<Team> team_in_use{nullptr};  // in place of the pool

// A tree of wakes: to wake a thread costs a microsecond or two, which the caller would pay for all.
// A late helper may see the number of a new owner of the place, and wakes some for that one.
void wake_some(Call& call) {
  const int some = call.take_some_to_wake();
  if (some > 0) {
    wake(pool.opened, some);
  }
}

bool help_any(int number) {
  for (Call& call : pool.calls) {
    if (call.enter()) {
      wake_some(call);
      call.do_task_and_leave(number);
      return true;
    }
  }
  return false;
}

void work() {
  static std::atomic<int> begun{0};
  const int number = ++begun;
  for (;;) {
    const std::uint32_t seen = pool.opened.load();
    if (help_any(number)) {
      continue;
    }
    pool.looking.fetch_add(1);
    const bool found = look_for(kPatienceOfWorker, [seen] { return pool.opened.load() != seen; });
    pool.looking.fetch_sub(1);
    if (!found) {
      pool.sleeping.fetch_add(1);
      sleep_on(pool.opened, seen);
      pool.sleeping.fetch_sub(1);
    }
  }
}

// Where the system has no more threads to give, there are fewer.
void start_workers(int target) {
  int count = pool.workers.load();
  while (count < target) {
    if (!pool.workers.compare_exchange_weak(count, count + 1)) {
      continue;
    }
    if (!start_thread(work)) {
      pool.workers.fetch_sub(1);
      return;
    }
    ++count;
  }
}

// One call has the threads that it asks for; several at once share the cores.
int useful_workers(int helpers, int wanted) {
  static const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::min(kMostWorkers, std::max(helpers, std::min(wanted, cores - 1)));
}

// A place for a call, or none.
Call* reserved_call() {
  Call* const end = std::end(pool.calls);
  Call* const found =
      std::find_if(std::begin(pool.calls), end, [](Call& call) { return call.reserve(); });
  return found == end ? nullptr : found;
}

}  // namespace

void run_with_helpers(const TaskRef& task, int helpers) {
  const bool alone = helpers < 1 || is_forked_child();
  const Team team = team_in_use.load();
  helpers = std::min(helpers, kMostWorkers);
  if (!alone && team != nullptr) {
    team(task, helpers + 1);
    return;
  }
  Call* const call = alone ? nullptr : reserved_call();
  if (call == nullptr) {
    task(0);
    return;
  }
  start_workers(useful_workers(helpers, pool.wanted.fetch_add(helpers) + helpers));
  call->open(task, helpers);
  pool.opened.fetch_add(1);
  const int missing = helpers - pool.looking.load();
  if (missing > 0 && pool.sleeping.load() > 0) {
    call->set_to_wake(missing);
    wake_some(*call);
  }
  task(0);
  if (!call->close()) {
    throw std::runtime_error(
        "This process was forked while a kernel ran on several threads; the kernel cannot end "
        "here.");
  }
  pool.wanted.fetch_sub(helpers);
}

void use_team(Team team) { team_in_use.store(team); }

const char* thread_back_end() { return team_in_use.load() != nullptr ? "openmp" : kPool; }

}  // namespace ssnmf
