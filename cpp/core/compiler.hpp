// What the language has no words for, by the compiler.
#pragma once

// Under sanitizers, for which inlined code takes minutes to compile, calls stay calls.
#if defined(SSNMF_FAST_SANITIZED)
#define SSNMF_INLINE inline
#define SSNMF_FLATTEN
#define SSNMF_APART
#elif defined(__GNUC__) || defined(__clang__)
// Inlined by force.
#define SSNMF_INLINE [[gnu::always_inline]] inline
// Everything that the function calls is inlined into it.
#define SSNMF_FLATTEN [[gnu::flatten]]
#define SSNMF_APART [[gnu::noinline]]
#elif defined(_MSC_VER)
#include <intrin.h>
#define SSNMF_INLINE __forceinline
#define SSNMF_FLATTEN
#define SSNMF_APART __declspec(noinline)
#else
#define SSNMF_INLINE inline
#define SSNMF_FLATTEN
#define SSNMF_APART
#endif

namespace ssnmf {

// Asks for a line of the cache before its turn.
SSNMF_INLINE void prefetch(const void* address) {
#if defined(__GNUC__) || defined(__clang__)
  __builtin_prefetch(address);
#elif defined(_MSC_VER) && (defined(_M_X64) || defined(_M_IX86))
  _mm_prefetch(static_cast<const char*>(address), _MM_HINT_T0);
#else
  (void)address;
#endif
}

}  // namespace ssnmf
