#include "../kernels/sparse_pass.hpp"

#include "arrays.hpp"
#include "registry.hpp"

namespace ssnmf {
namespace {

template <class Op>
void run(const py::array& indptr, const py::array& indices, const py::object& values,
         const py::array* F, const py::array& G, py::array& out, double scale, bool accumulate,
         int n_threads) {
  visit_sparse(G, "G", indptr, [&](auto type, auto index) {
    using T = decltype(type);
    using Index = decltype(index);
    const auto Z = const_csr<T, Index>(indptr, indices, values);
    const auto g = const_rows<T>(G, "G");
    const Target<T> to{writable_rows<T>(out, "out"), static_cast<T>(scale), accumulate};
    require_equal(to.out.rows, Z.rows, "rows of out and of the sparse matrix");
    require_equal(to.out.columns, g.columns, "columns of out and of G");
    Rows<const T> f{};
    if (F != nullptr) {
      f = const_rows<T>(*F, "F");
      require_same_shape(f, to.out, "F");
    }
    const py::gil_scoped_release release;
    sparse_pass<Op>(Z, f, g, to, n_threads);
  });
}

template <class Op>
void define_with_model(py::module_& module, const char* name, const char* doc) {
  module.def(
      name,
      [](const py::array& indptr, const py::array& indices, const py::object& values,
         const py::array& F, const py::array& G, py::array out, double scale, bool accumulate,
         int n_threads) {
        run<Op>(indptr, indices, values, &F, G, out, scale, accumulate, n_threads);
      },
      py::arg("indptr"), py::arg("indices"), py::arg("values").none(true), py::arg("F"),
      py::arg("G"), py::arg("out"), py::arg("scale"), py::arg("accumulate"), py::arg("n_threads"),
      doc);
}

}  // namespace

void register_sparse_passes(py::module_& module) {
  module.def(
      "sparse_product",
      [](const py::array& indptr, const py::array& indices, const py::object& values,
         const py::array& G, py::array out, double scale, bool accumulate, int n_threads) {
        run<Product>(indptr, indices, values, nullptr, G, out, scale, accumulate, n_threads);
      },
      py::arg("indptr"), py::arg("indices"), py::arg("values").none(true), py::arg("G"),
      py::arg("out"), py::arg("scale"), py::arg("accumulate"), py::arg("n_threads"), "Z G.");
  define_with_model<Ratio>(module, "sparse_ratio", "(Z ./ (F G^T)) G over the stored entries.");
  define_with_model<Sampled>(module, "sparse_sampled", "(Z .* (F G^T)) G over the stored entries.");
}

}  // namespace ssnmf
