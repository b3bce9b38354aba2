// Arithmetic without denormal numbers.
#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace ssnmf {

// While it lives, results of this thread that are denormal are 0, and such operands count as 0.
//
// Entries at the floor of the factors (numbers.hpp) times small ones are denormal, for which
// processors take many times as long: a quarter of a whole fit by float32, where a third of the
// entries is at the floor.  Nothing is lost: what they add to lies at the floor or above.
class WithoutDenormals {
 public:
#if defined(__SSE2__)
  WithoutDenormals() { _mm_setcsr(before_ | kFlushToZero | kDenormalsAreZero); }
  ~WithoutDenormals() { _mm_setcsr(before_); }
#else
  WithoutDenormals() {}
#endif
  WithoutDenormals(const WithoutDenormals&) = delete;
  WithoutDenormals& operator=(const WithoutDenormals&) = delete;

#if defined(__SSE2__)
 private:
  static constexpr unsigned kFlushToZero = 0x8000;
  static constexpr unsigned kDenormalsAreZero = 0x0040;

  const unsigned before_ = _mm_getcsr();
#endif
};

}  // namespace ssnmf
