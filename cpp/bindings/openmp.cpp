// The module of the threads of OpenMP, so that those who use the pool do not load OpenMP's library.
#include <pybind11/pybind11.h>

#include "threads.hpp"

PYBIND11_MODULE(_openmp, module, pybind11::mod_gil_not_used()) {
  module.doc() = "Threads of OpenMP for the kernels.";
  module.attr("team") =
      pybind11::capsule(reinterpret_cast<void*>(&ssnmf::run_in_team), ssnmf::kTeam);
}
