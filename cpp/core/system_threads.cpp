#include "system_threads.hpp"

#include <cstddef>

#if defined(__linux__) && !defined(SSNMF_FAST_PORTABLE_THREADS)
#define SSNMF_FUTEX
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#endif

#if defined(_WIN32)
#include <system_error>
#include <thread>
#else
#include <pthread.h>
#include <signal.h>

#include <initializer_list>
#endif

namespace ssnmf {

#if defined(SSNMF_FUTEX)

namespace {

// Of linux/futex.h, which not every system has beside its C library.
constexpr int kWaitPrivate = 0 | 128;
constexpr int kWakePrivate = 1 | 128;

}  // namespace

const char* const kPool = "pool (futex)";

void sleep_on(Word& word, std::uint32_t value, int milliseconds) {
  const long time[] = {milliseconds / 1000, milliseconds % 1000 * 1000000L};  // as this call has it
  const long* const most = milliseconds > 0 ? time : nullptr;
  syscall(SYS_futex, &word, kWaitPrivate, value, most, nullptr, 0);
}

void wake(Word& word, int count) {
  syscall(SYS_futex, &word, kWakePrivate, count, nullptr, nullptr, 0);
}

#else

namespace {

// Where threads sleep.  Words share a few of these: whoever sleeps on another word wakes too.
struct Dormitory {
  std::mutex door;
  std::condition_variable bell;
};

Dormitory& dormitory_of(const Word& word) {
  constexpr std::size_t kDormitories = 16;
  // Never destroyed: the threads outlive main().
  static Dormitory* const all = new Dormitory[kDormitories];
  return all[std::hash<const void*>{}(&word) / 64 % kDormitories];
}

}  // namespace

const char* const kPool = "pool (mutex)";

void sleep_on(Word& word, std::uint32_t value, int milliseconds) {
  Dormitory& here = dormitory_of(word);
  std::unique_lock<std::mutex> inside(here.door);
  // Whoever wakes has changed the word before coming to the door.
  if (word.load() != value) {
    return;
  }
  if (milliseconds > 0) {
    here.bell.wait_for(inside, std::chrono::milliseconds(milliseconds));
  } else {
    here.bell.wait(inside);
  }
}

void wake(Word& word, int) {
  Dormitory& here = dormitory_of(word);
  {
    const std::lock_guard<std::mutex> inside(here.door);
  }
  here.bell.notify_all();
}

#endif

#if defined(_WIN32)

bool start_thread(void (*run)()) {
  try {
    std::thread(run).detach();
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

bool is_forked_child() { return false; }

#else

namespace {

constexpr std::size_t kStack = 1 << 20;

std::atomic<bool> forked{false};

// The threads stay behind in the parent.
const int fork_handler = pthread_atfork(nullptr, nullptr, [] { forked.store(true); });

// Signals are for the threads of the program, but for those that are about the thread itself: its
// own errors, of which faulthandler tells, and the clock of a profiler.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF}) {
      sigdelset(&blocked, own);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

// The same stack everywhere: the default is 8 MiB with glibc, 512 KiB on macOS, 128 KiB with musl.
class ThreadAttributes {
 public:
  ThreadAttributes() {
    pthread_attr_init(&attributes_);
    pthread_attr_setdetachstate(&attributes_, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes_, kStack);
  }
  ~ThreadAttributes() { pthread_attr_destroy(&attributes_); }
  ThreadAttributes(const ThreadAttributes&) = delete;
  ThreadAttributes& operator=(const ThreadAttributes&) = delete;

  const pthread_attr_t* get() const { return &attributes_; }

 private:
  pthread_attr_t attributes_;
};

}  // namespace

bool start_thread(void (*run)()) {
  const BlockedSignals blocked;
  const ThreadAttributes attributes;
  pthread_t thread;
  // POSIX lets a pointer to a function through as one to an object.
  const auto start = [](void* function) -> void* {
    reinterpret_cast<void (*)()>(function)();
    return nullptr;
  };
  return pthread_create(&thread, attributes.get(), start, reinterpret_cast<void*>(run)) == 0;
}

bool is_forked_child() { return forked.load(); }

#endif

}  // namespace ssnmf
