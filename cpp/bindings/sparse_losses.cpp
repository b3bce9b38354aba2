#include "../kernels/sparse_pass.hpp"
#include "arrays.hpp"
#include "registry.hpp"

namespace ssnmf {
namespace {

template <class Loss>
double run(py::handle indptr, py::handle indices, py::handle values, py::handle weights,
           py::handle F, py::handle G, Threads n_threads) {
  return visit_sparse(G, "G", indptr, [&](auto type, auto index) {
    using T = decltype(type);
    using Index = decltype(index);
    const auto Z = const_csr<T, Index>(indptr, indices, values);
    const auto w = optional_vector<T>(weights, "weights", Z.entries());
    const auto f = const_rows<T>(F, "F");
    const auto g = const_rows<T>(G, "G");
    require_equal(f.rows, Z.rows, "rows of F and of the sparse matrix");
    require_equal(f.columns, g.columns, "columns of F and of G");
    const KernelCall call;
    return sparse_loss<Loss>(Z, w.data, f, g, n_threads);
  });
}

}  // namespace

void register_sparse_losses(py::module_& module) {
  module.def(
      "sparse_kl_loss",
      [](py::handle indptr, py::handle indices, py::handle values, py::handle F, py::handle G,
         Threads n_threads) {
        return run<KullbackLeiblerLoss>(indptr, indices, values, py::none(), F, G, n_threads);
      },
      py::arg("indptr"), py::arg("indices"), py::arg("values").none(true), py::arg("F"),
      py::arg("G"), py::arg("n_threads"), "Sum over the stored entries of x log(x/z) - x.");
  module.def(
      "sparse_kl_unreached",
      [](const py::array& indptr, const py::array& indices, const py::object& values,
         const py::array& F, const py::array& G, Threads n_threads) {
        return run<UnreachedLoss>(indptr, indices, values, py::none(), F, G, n_threads);
      },
      py::arg("indptr"), py::arg("indices"), py::arg("values").none(true), py::arg("F"),
      py::arg("G"), py::arg("n_threads"), "What of sparse_kl_loss belongs to entries with z = 0.");
  module.def("sparse_frobenius_loss", &run<FrobeniusLoss>, py::arg("indptr"), py::arg("indices"),
             py::arg("values").none(true), py::arg("weights").none(true), py::arg("F"),
             py::arg("G"), py::arg("n_threads"), "Sum over the stored entries of w (x - z)^2.");
}

}  // namespace ssnmf
