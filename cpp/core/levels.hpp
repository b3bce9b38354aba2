// Which instruction-set levels this processor and its operating system support.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#if defined(__x86_64__) || defined(_M_X64)
#define SSNMF_X86_64
#if defined(__GNUC__) || defined(__clang__)
#include <cpuid.h>
#else
#include <intrin.h>
#endif
#endif

namespace ssnmf {

namespace detail {

#if defined(SSNMF_X86_64)

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

#if defined(__GNUC__) || defined(__clang__)

inline Registers cpuid(unsigned leaf) {
  Registers r;
  __get_cpuid_count(leaf, 0, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

inline unsigned extended_control() {
  unsigned low = 0;
  unsigned high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

#else

inline Registers cpuid(unsigned leaf) {
  int highest[4];
  __cpuid(highest, static_cast<int>(leaf & 0x80000000U));
  if (static_cast<unsigned>(highest[0]) < leaf) {
    return {};
  }
  int r[4];
  __cpuidex(r, static_cast<int>(leaf), 0);
  return {static_cast<unsigned>(r[0]), static_cast<unsigned>(r[1]), static_cast<unsigned>(r[2]),
          static_cast<unsigned>(r[3])};
}

inline unsigned extended_control() { return static_cast<unsigned>(_xgetbv(0)); }

#endif

inline bool has(unsigned bits, std::initializer_list<unsigned> wanted) {
  for (const unsigned bit : wanted) {
    if ((bits >> bit & 1U) == 0) {
      return false;
    }
  }
  return true;
}

// What the operating system saves on a context switch: CPUID alone does not tell.
inline unsigned enabled_state() {
  return has(cpuid(1).ecx, {27}) ? extended_control() : 0;  // OSXSAVE
}

// x86-64-v3: FMA, MOVBE, F16C, AVX; LZCNT; BMI1, AVX2, BMI2; XMM and YMM state.
inline bool has_v3(unsigned state) {
  return (state & 0x6U) == 0x6U && has(cpuid(1).ecx, {12, 22, 28, 29}) &&
         has(cpuid(0x80000001U).ecx, {5}) && has(cpuid(7).ebx, {3, 5, 8});
}

// x86-64-v4: AVX-512 F, DQ, CD, BW, VL; opmask and ZMM state.
inline bool has_v4(unsigned state) {
  return has_v3(state) && (state & 0xE6U) == 0xE6U && has(cpuid(7).ebx, {16, 17, 28, 30, 31});
}

#endif

}  // namespace detail

// From the lowest to the highest.
inline std::vector<std::string> levels() {
  std::vector<std::string> usable{"base"};
#if defined(SSNMF_X86_64)
  const unsigned state = detail::enabled_state();
  if (detail::has_v3(state)) {
    usable.emplace_back("v3");
  }
  if (detail::has_v4(state)) {
    usable.emplace_back("v4");
  }
#endif
  return usable;
}

}  // namespace ssnmf
