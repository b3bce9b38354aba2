// Which instruction-set levels this processor and its operating system support.
//
// Compiled for the baseline, without Eigen, so that importing it is always safe.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace {

#if defined(__x86_64__)

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(unsigned leaf) {
  Registers r;
  __get_cpuid_count(leaf, 0, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

bool has(unsigned bits, std::initializer_list<unsigned> wanted) {
  for (const unsigned bit : wanted) {
    if ((bits >> bit & 1U) == 0) {
      return false;
    }
  }
  return true;
}

// What the operating system saves on a context switch: CPUID alone does not tell.
unsigned enabled_state() {
  if (!has(cpuid(1).ecx, {27})) {  // OSXSAVE
    return 0;
  }
  unsigned low = 0;
  unsigned high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// x86-64-v3: FMA, MOVBE, F16C, AVX; LZCNT; BMI1, AVX2, BMI2; XMM and YMM state.
bool has_v3(unsigned state) {
  return (state & 0x6U) == 0x6U && has(cpuid(1).ecx, {12, 22, 28, 29}) &&
         has(cpuid(0x80000001U).ecx, {5}) && has(cpuid(7).ebx, {3, 5, 8});
}

// x86-64-v4: AVX-512 F, DQ, CD, BW, VL; opmask and ZMM state.
bool has_v4(unsigned state) {
  return has_v3(state) && (state & 0xE6U) == 0xE6U && has(cpuid(7).ebx, {16, 17, 28, 30, 31});
}

#endif

std::vector<std::string> levels() {
  std::vector<std::string> usable{"base"};
#if defined(__x86_64__)
  const unsigned state = enabled_state();
  if (has_v3(state)) {
    usable.emplace_back("v3");
  }
  if (has_v4(state)) {
    usable.emplace_back("v4");
  }
#endif
  return usable;
}

std::vector<std::string> built_levels() { return {SSNMF_BUILT_LEVELS}; }

}  // namespace

PYBIND11_MODULE(_cpu, module, pybind11::mod_gil_not_used()) {
  module.doc() = "Instruction-set levels of this processor.";
  module.def("levels", &levels, "Levels that the processor and the operating system support.");
  module.def("built_levels", &built_levels, "Levels that this installation was built for.");
}
