// The module of one level.
#include "registry.hpp"

PYBIND11_MODULE(SSNMF_MODULE, module, pybind11::mod_gil_not_used()) {
  ssnmf::define_kernels(module, {SSNMF_LEVEL, SSNMF_COMPILER, SSNMF_FLAGS});
}
