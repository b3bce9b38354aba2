// What the threads of the pool need of the operating system.  No Eigen, no Python.
#pragma once

#include <atomic>
#include <cstdint>

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#endif

namespace ssnmf {

// What threads sleep on, and by what.
using Word = std::atomic<std::uint32_t>;
extern const char* const kPool;

// Sleeps until woken, unless the word has changed already, and no longer than the milliseconds if
// there are any; may return without a reason.
void sleep_on(Word& word, std::uint32_t value, int milliseconds = 0);

// Wakes threads that sleep on the word: at least as many as given, where there are as many.
void wake(Word& word, int count);

// Starts a thread that nobody waits for.  False where the system has no more to give.
bool start_thread(void (*run)());

// Whether this process is the child of a fork: other threads will do nothing more.
bool is_forked_child();

// Tells the processor that this thread only looks.
inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#elif defined(_MSC_VER) && defined(_M_X64)
  _mm_pause();
#endif
}

}  // namespace ssnmf
