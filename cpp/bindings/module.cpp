#include <omp.h>

#include <Eigen/Core>
#include <string>

#include "../core/numbers.hpp"
#include "../kernels/gemm.hpp"
#include "../kernels/rank.hpp"
#include "arrays.hpp"
#include "registry.hpp"

namespace ssnmf {
namespace {

double bind_tiny(const py::object& dtype) {
  return py::dtype::from_args(dtype).itemsize() == 4 ? static_cast<double>(tiny<float>())
                                                     : tiny<double>();
}

py::dict build_info() {
  py::dict info;
  info["level"] = SSNMF_LEVEL;
  info["compiler"] = SSNMF_COMPILER;
  info["flags"] = SSNMF_FLAGS;
  info["eigen"] = std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) +
                  "." + std::to_string(EIGEN_MINOR_VERSION);
  info["openmp"] = std::to_string(_OPENMP);
  return info;
}

}  // namespace
}  // namespace ssnmf

PYBIND11_MODULE(SSNMF_MODULE, module, pybind11::mod_gil_not_used()) {
  namespace py = pybind11;
  py::register_local_exception_translator(&ssnmf::raise_interrupted);
  module.doc() =
      "Kernels for one instruction-set level; see ssnmf_fast._reference for what each does.";
  module.attr("LEVEL") = SSNMF_LEVEL;
  ssnmf::fix_block_sizes();
  module.def("tiny", &ssnmf::bind_tiny, py::arg("dtype"),
             "Floor of divisors and positive entries.");
  module.def("padded_rank", &ssnmf::padded_rank, py::arg("rank"), py::arg("itemsize"),
             "Number of columns in which factors of this rank are stored.");
  // OpenMP runs nothing here; it is what users, joblib and threadpoolctl set limits on.
  module.def("max_threads", &omp_get_max_threads, "Number of threads OpenMP would start.");
  module.def("build_info", &ssnmf::build_info, "How this module was built.");
  ssnmf::register_csr(module);
  ssnmf::register_sparse_passes(module);
  ssnmf::register_scatter_passes(module);
  ssnmf::register_sparse_losses(module);
  ssnmf::register_dense(module);
  ssnmf::register_factors(module);
  ssnmf::register_solvers(module);
  ssnmf::register_completion(module);
  ssnmf::register_tall_qr(module);
  ssnmf::register_gamma(module);
}
