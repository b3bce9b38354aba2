// How a long kernel is ended from outside, or by one of its own threads that has failed.  No
// Python.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <vector>

#include "denormals.hpp"
#include "views.hpp"

namespace ssnmf {

// Leaves a kernel that was asked to end.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

// Who knows whether the kernel that a thread has called shall end; asked on that thread, in the
// arithmetic mode of the caller.
class InterruptSource {
 public:
  virtual bool interrupted() = 0;

 protected:
  ~InterruptSource() = default;
};

namespace detail {

using InterruptClock = std::chrono::steady_clock;

// To ask may mean to wait for a lock; a user notices no delay of this length.
constexpr auto kTimeBetweenQuestions = std::chrono::milliseconds(100);
// Multiplications, or the like: some ten microseconds.
constexpr Size kWorkBetweenLooks = 65536;

// What a loop was, for a simulation of others: its blocks, which one thread has done; threads at
// most; when the first began and when each ended.
struct RecordedLoop {
  Size blocks;
  Size places;
  Size threads;
  std::vector<double> times;

  void note() {
    times.push_back(
        std::chrono::duration<double>(InterruptClock::now().time_since_epoch()).count());
  }
};

// What a thread has to look at: the source of the kernel that it has called, whether the loop in
// which it works has failed.
struct Attention {
  InterruptSource* source = nullptr;
  const std::atomic<bool>* failed = nullptr;
  ArithmeticMode arithmetic = 0;  // of the code that has called the kernel
  InterruptClock::time_point due;
  Size work = 0;
  std::vector<RecordedLoop>* recorded = nullptr;  // the outermost loops of this thread
};

Attention& attention();

void look(Attention& here);

}  // namespace detail

// While it lives, the loops of this thread ask the source every tenth of a second.
class InterruptScope {
 public:
  explicit InterruptScope(InterruptSource& source);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

 private:
  detail::Attention before_;
};

// While it lives, this thread works in a loop that has failed once `failed` is set.
class LoopScope {
 public:
  explicit LoopScope(const std::atomic<bool>& failed)
      : here_(detail::attention()), before_(here_.failed) {
    here_.failed = &failed;
  }
  ~LoopScope() { here_.failed = before_; }
  LoopScope(const LoopScope&) = delete;
  LoopScope& operator=(const LoopScope&) = delete;

  // Throws Interrupted where the loop shall end.
  void look() const { detail::look(here_); }

 private:
  detail::Attention& here_;
  const std::atomic<bool>* const before_;
};

// Throws Interrupted where the loop that this thread works in shall end.  For loops within a block
// that may take long, with the multiplications since the last call; costs next to nothing.
inline void end_if_interrupted(Size work) {
  detail::Attention& here = detail::attention();
  here.work += work;
  if (here.work >= detail::kWorkBetweenLooks) {
    detail::look(here);
  }
}

// The same for loops that wait: looks at once.
inline void end_if_interrupted() { detail::look(detail::attention()); }

}  // namespace ssnmf
