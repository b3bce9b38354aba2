// The module that tells which levels can be used.
//
// Compiled for the baseline, without Eigen, so that importing it is always safe.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "../core/levels.hpp"

namespace {

std::vector<std::string> built_levels() { return {SSNMF_BUILT_LEVELS}; }

}  // namespace

PYBIND11_MODULE(_cpu, module, pybind11::mod_gil_not_used()) {
  module.doc() = "Instruction-set levels of this processor.";
  module.def("levels", &ssnmf::levels,
             "Levels that the processor and the operating system support.");
  module.def("built_levels", &built_levels, "Levels that this installation was built for.");
}
