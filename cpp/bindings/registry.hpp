// One function for each family of kernels, and what a module says of its own level.
#pragma once

#include <pybind11/pybind11.h>

namespace ssnmf {

void register_csr(pybind11::module_& module);
void register_fingerprint(pybind11::module_& module);
void register_passes(pybind11::module_& module);
void register_factors(pybind11::module_& module);
void register_solvers(pybind11::module_& module);
void register_completion(pybind11::module_& module);
void register_tall_qr(pybind11::module_& module);
void register_gamma(pybind11::module_& module);
void register_tensors(pybind11::module_& module);

// How the kernels of a module were compiled.
struct Build {
  const char* level;
  const char* compiler;
  const char* flags;
};

// Fills a module with all kernels.  Compiled once, for every processor; what it calls is that of
// the level with which it is linked.
void define_kernels(pybind11::module_& module, const Build& build);

}  // namespace ssnmf
