// The module of the threads of OpenMP, so that those who use the pool do not load OpenMP's library.
#include "../core/thread_pool.hpp"
#include "small_module.hpp"

namespace {

int fill(PyObject* module) {
  void* const team = reinterpret_cast<void*>(&ssnmf::run_in_team);
  return ssnmf::add_attribute(module, "team", PyCapsule_New(team, ssnmf::kTeam, nullptr));
}

}  // namespace

PyMODINIT_FUNC PyInit__openmp() {
  return ssnmf::start_module<&fill>("_openmp", "Threads of OpenMP for the kernels.");
}
