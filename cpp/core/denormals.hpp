// The arithmetic mode of a thread; arithmetic without denormal numbers.
#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace ssnmf {

// How this thread rounds, and what it does with denormal numbers.
using ArithmeticMode = unsigned;

inline ArithmeticMode arithmetic_mode() {
#if defined(__SSE2__)
  return _mm_getcsr();
#else
  return 0;
#endif
}

// While it lives, this thread computes in the given mode.
class ArithmeticScope {
 public:
#if defined(__SSE2__)
  explicit ArithmeticScope(ArithmeticMode mode) { _mm_setcsr(mode); }
  ~ArithmeticScope() { _mm_setcsr(before_); }
#else
  explicit ArithmeticScope(ArithmeticMode) {}
#endif
  ArithmeticScope(const ArithmeticScope&) = delete;
  ArithmeticScope& operator=(const ArithmeticScope&) = delete;

#if defined(__SSE2__)
 private:
  const ArithmeticMode before_ = arithmetic_mode();
#endif
};

// While it lives, results of this thread that are denormal are 0, and such operands count as 0.
//
// Entries at the floor of the factors (numbers.hpp) times small ones are denormal, for which
// processors take many times as long: a quarter of a whole fit by float32, where a third of the
// entries is at the floor.  Nothing is lost: what they add to lies at the floor or above.
class WithoutDenormals {
 private:
  static constexpr ArithmeticMode kFlushToZero = 0x8000;
  static constexpr ArithmeticMode kDenormalsAreZero = 0x0040;

  const ArithmeticScope scope_{arithmetic_mode() | kFlushToZero | kDenormalsAreZero};
};

}  // namespace ssnmf
