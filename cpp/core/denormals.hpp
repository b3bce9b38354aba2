// The arithmetic mode of a thread; arithmetic without denormal numbers.
#pragma once

#include <cstdint>

#if defined(__SSE2__) || defined(_M_X64)
#define SSNMF_MXCSR
#include <xmmintrin.h>
#elif defined(__aarch64__)
#define SSNMF_FPCR
#endif

namespace ssnmf {

// How this thread rounds, and what it does with denormal numbers.
using ArithmeticMode = std::uint64_t;

inline ArithmeticMode arithmetic_mode() {
#if defined(SSNMF_MXCSR)
  return _mm_getcsr();
#elif defined(SSNMF_FPCR)
  ArithmeticMode mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
#else
  return 0;
#endif
}

inline void set_arithmetic_mode(ArithmeticMode mode) {
#if defined(SSNMF_MXCSR)
  _mm_setcsr(static_cast<unsigned>(mode));
#elif defined(SSNMF_FPCR)
  __asm__ volatile("msr fpcr, %0" : : "r"(mode));
#else
  (void)mode;
#endif
}

// While it lives, this thread computes in the given mode.
class ArithmeticScope {
 public:
  explicit ArithmeticScope(ArithmeticMode mode) { set_arithmetic_mode(mode); }
  ~ArithmeticScope() { set_arithmetic_mode(before_); }
  ArithmeticScope(const ArithmeticScope&) = delete;
  ArithmeticScope& operator=(const ArithmeticScope&) = delete;

 private:
  const ArithmeticMode before_ = arithmetic_mode();
};

// The mode that rounds as the given one, but in which results that are denormal are 0, and such
// operands count as 0.
//
// Entries at the floor of the factors (numbers.hpp) times small ones are denormal, for which
// processors take many times as long: a quarter of a whole fit by float32, where a third of the
// entries is at the floor.  Nothing is lost: what they add to lies at the floor or above.
inline ArithmeticMode without_denormals(ArithmeticMode mode) {
#if defined(SSNMF_FPCR)
  return mode | ArithmeticMode(1) << 24;
#else
  return mode | 0x8000 | 0x0040;  // results, operands
#endif
}

}  // namespace ssnmf
