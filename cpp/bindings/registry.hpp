// One function for each family of kernels.
#pragma once

#include <pybind11/pybind11.h>

namespace ssnmf {

void register_csr(pybind11::module_& module);
void register_fingerprint(pybind11::module_& module);
void register_passes(pybind11::module_& module);
void register_factors(pybind11::module_& module);
void register_solvers(pybind11::module_& module);
void register_iterations(pybind11::module_& module);
void register_completion(pybind11::module_& module);
void register_tall_qr(pybind11::module_& module);
void register_gamma(pybind11::module_& module);
void register_tensors(pybind11::module_& module);

}  // namespace ssnmf
