#include "../kernels/sparse_pass.hpp"

#include "arrays.hpp"
#include "registry.hpp"

namespace ssnmf {
namespace {

template <class Op>
void run(py::handle indptr, py::handle indices, py::handle values, py::handle F, py::handle G,
         py::handle out, double scale, bool accumulate, Threads n_threads) {
  visit_sparse(G, "G", indptr, [&](auto type, auto index) {
    using T = decltype(type);
    using Index = decltype(index);
    const auto Z = const_csr<T, Index>(indptr, indices, values);
    const auto g = const_rows<T>(G, "G");
    const Target<T> to{writable_rows<T>(out, "out"), static_cast<T>(scale), accumulate};
    require_equal(to.out.rows, Z.rows, "rows of out and of the sparse matrix");
    require_equal(to.out.columns, g.columns, "columns of out and of G");
    Rows<const T> f{};
    if (!F.is_none()) {
      f = const_rows<T>(F, "F");
      require_same_shape(f, to.out, "F");
    }
    require_apart(
        {"out", out},
        {{"indptr", indptr}, {"indices", indices}, {"values", values}, {"F", F}, {"G", G}});
    const KernelCall call;
    sparse_pass<Op>(Z, f, g, to, n_threads);
  });
}

template <class Op>
void define_with_model(py::module_& module, const char* name, const char* doc) {
  module.def(
      name,
      [](py::handle indptr, py::handle indices, py::handle values, py::handle F, py::handle G,
         py::handle out, double scale, bool accumulate, Threads n_threads) {
        run<Op>(indptr, indices, values, F, G, out, scale, accumulate, n_threads);
      },
      py::arg("indptr"), py::arg("indices"), py::arg("values").none(true), py::arg("F"),
      py::arg("G"), py::arg("out"), py::arg("scale"), py::arg("accumulate"), py::arg("n_threads"),
      doc);
}

}  // namespace

void register_sparse_passes(py::module_& module) {
  module.def(
      "sparse_product",
      [](py::handle indptr, py::handle indices, py::handle values, py::handle G, py::handle out,
         double scale, bool accumulate, Threads n_threads) {
        run<Product>(indptr, indices, values, py::none(), G, out, scale, accumulate, n_threads);
      },
      py::arg("indptr"), py::arg("indices"), py::arg("values").none(true), py::arg("G"),
      py::arg("out"), py::arg("scale"), py::arg("accumulate"), py::arg("n_threads"), "Z G.");
  define_with_model<Ratio>(module, "sparse_ratio", "(Z ./ (F G^T)) G over the stored entries.");
  define_with_model<Sampled>(module, "sparse_sampled", "(Z .* (F G^T)) G over the stored entries.");
}

}  // namespace ssnmf
