#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "../core/numbers.hpp"
#include "../core/thread_pool.hpp"
#include "../kernels/block_sizes.hpp"
#include "../kernels/rank.hpp"
#include "build.hpp"
#include "kernel_call.hpp"
#include "registry.hpp"
#include "threads.hpp"

namespace ssnmf {
namespace {

namespace py = pybind11;

double bind_tiny(const py::object& dtype) {
  return py::dtype::from_args(dtype).itemsize() == 4 ? static_cast<double>(tiny<float>())
                                                     : tiny<double>();
}

void bind_use_team(const py::object& team) {
  void* const pointer = team.is_none() ? nullptr : PyCapsule_GetPointer(team.ptr(), kTeam);
  if (pointer == nullptr && !team.is_none()) {
    throw py::error_already_set();
  }
  use_team(reinterpret_cast<Team>(pointer));
}

py::dict build_info() {
  py::dict info;
  info["level"] = kBuild.level;
  info["compiler"] = kBuild.compiler;
  info["flags"] = kBuild.flags;
  info["eigen"] = eigen_version();
  info["threads"] = thread_back_end();
  return info;
}

// What call() returns, and its loops: blocks, places, threads at most, times.
py::tuple record_loops(const py::function& call) {
  std::vector<detail::RecordedLoop> loops;
  detail::attention().recorded = &loops;
  struct End {
    ~End() { detail::attention().recorded = nullptr; }
  } const end;
  const py::object result = call();
  py::list found;
  for (const auto& loop : loops) {
    found.append(py::make_tuple(loop.blocks, loop.places, loop.threads, py::cast(loop.times)));
  }
  return py::make_tuple(result, found);
}

}  // namespace
}  // namespace ssnmf

// Compiled once, for every processor, under a name that module.cpp calls by that of its level; what
// it calls is that of the level with which it is linked.
PYBIND11_MODULE(_kernels, module, pybind11::mod_gil_not_used()) {
  using namespace ssnmf;
  py::register_local_exception_translator(&translate_exception);
  module.doc() =
      "Kernels for one instruction-set level; see ssnmf_fast._backend.reference for what each "
      "does.";
  module.attr("LEVEL") = kBuild.level;
  fix_block_sizes();
  define(module, "tiny", &bind_tiny, "dtype", "Floor of divisors and positive entries.");
  define(module, "padded_rank", &padded_rank, "rank itemsize",
         "Number of columns in which factors of this rank are stored.");
  module.def("build_info", &build_info, "How this module was built.");
  define(module, "use_team", &bind_use_team, "team",
         "Run loops on the threads of another module, or of the pool (None).");
  define(module, "_record_loops", &record_loops, "call",
         "Call a function, with loops on this thread alone; what it returns, and the loops.");
  register_csr(module);
  register_fingerprint(module);
  register_passes(module);
  register_factors(module);
  register_solvers(module);
  register_iterations(module);
  register_completion(module);
  register_tall_qr(module);
  register_gamma(module);
  register_tensors(module);
}
