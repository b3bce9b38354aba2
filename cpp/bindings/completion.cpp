#include "../kernels/completion_pass.hpp"
#include "../kernels/ridge_rows.hpp"
#include "arrays.hpp"
#include "registry.hpp"

namespace ssnmf {
namespace {

template <class T>
Shrink<T> shrink_of(double step, double eps, double q, bool proximal, double floor) {
  if (!(step >= 0.0) || !(eps > 0.0) || !(q >= 0.0 && q <= 1.0)) {
    throw bad("step, eps or q", "is out of range");
  }
  return {static_cast<T>(step), static_cast<T>(eps), static_cast<T>(q), proximal,
          static_cast<T>(floor)};
}

void bind_residual_step(const py::array& indptr, const py::array& indices, const py::object& values,
                        const py::array& F, const py::array& G, py::array residuals, py::array out,
                        int n_threads) {
  visit_sparse(G, "G", indptr, [&](auto type, auto index) {
    using T = decltype(type);
    using Index = decltype(index);
    const auto Z = const_csr<T, Index>(indptr, indices, values);
    const auto f = const_rows<T>(F, "F");
    const auto g = const_rows<T>(G, "G");
    const auto to = writable_rows<T>(out, "out");
    T* stored = writable_data<T>(residuals, "residuals");
    require_contiguous(residuals, "residuals", 1);
    require_equal(residuals.shape(0), indices.shape(0), "length of residuals and of indices");
    require_equal(f.rows, Z.rows, "rows of F and of the sparse matrix");
    require_equal(f.columns, g.columns, "columns of F and of G");
    require_same_shape(f, to, "out");
    const py::gil_scoped_release release;
    residual_step<T, Index>(Z, f, g, stored, to, n_threads);
  });
}

void bind_mapped_residuals(const py::array& indptr, const py::array& indices,
                           const py::object& values, const py::array& F, const py::array& G,
                           double scale, double step, double eps, double q, bool proximal,
                           double floor, py::array out, int n_threads) {
  visit_sparse(G, "G", indptr, [&](auto type, auto index) {
    using T = decltype(type);
    using Index = decltype(index);
    const auto Z = const_csr<T, Index>(indptr, indices, values);
    const auto f = const_rows<T>(F, "F");
    const auto g = const_rows<T>(G, "G");
    const auto shrink = shrink_of<T>(step, eps, q, proximal, floor);
    require_equal(f.rows, Z.rows, "rows of F and of the sparse matrix");
    require_equal(f.columns, g.columns, "columns of F and of G");
    T* to = writable_data<T>(out, "out");
    require_contiguous(out, "out", 1);
    require_equal(out.shape(0), indices.shape(0), "length of out and of indices");
    const py::gil_scoped_release release;
    mapped_residuals<T, Index>(Z, f, g, static_cast<T>(scale), shrink, to, n_threads);
  });
}

void bind_mapped_product(const py::array& F, const py::array& G, const py::array& H, double step,
                         double eps, double q, bool proximal, double floor, py::array out,
                         int n_threads) {
  visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const auto f = const_rows<T>(F, "F");
    const auto g = const_rows<T>(G, "G");
    const auto h = const_rows<T>(H, "H");
    const auto to = writable_rows<T>(out, "out");
    const auto shrink = shrink_of<T>(step, eps, q, proximal, floor);
    require_equal(f.columns, g.columns, "columns of F and of G");
    require_equal(h.rows, g.rows, "rows of H and of G");
    require_equal(to.rows, f.rows, "rows of out and of F");
    require_equal(to.columns, h.columns, "columns of out and of H");
    const py::gil_scoped_release release;
    add_mapped_product<T>(f, g, h, shrink, to, n_threads);
  });
}

Span<const double> ridge_of(const py::array& ridge, Size columns) {
  const double* data = const_data<double>(ridge, "ridge");
  require_contiguous(ridge, "ridge", 1);
  if (ridge.shape(0) > columns) {
    throw bad("ridge", "has more values than G has columns");
  }
  return {data, ridge.shape(0)};
}

void bind_ridge_rows(const py::array& indptr, const py::array& indices, const py::object& values,
                     const py::array& G, const py::array& ridge, py::array F, int n_threads) {
  visit_sparse(G, "G", indptr, [&](auto type, auto index) {
    using T = decltype(type);
    using Index = decltype(index);
    const auto Z = const_csr<T, Index>(indptr, indices, values);
    const auto g = const_rows<T>(G, "G");
    const auto f = writable_rows<T>(F, "F");
    const auto delta = ridge_of(ridge, g.columns);
    require_equal(f.rows, Z.rows, "rows of F and of the sparse matrix");
    require_equal(f.columns, g.columns, "columns of F and of G");
    const py::gil_scoped_release release;
    ridge_rows<T, Index>(Z, g, delta, f, n_threads);
  });
}

void bind_structured_rows(const py::array& indptr, const py::array& indices,
                          const py::object& values, const py::array& G, const py::array& ridge,
                          double alpha, double eps, double q, py::array X, py::array F,
                          int n_threads) {
  visit_sparse(G, "G", indptr, [&](auto type, auto index) {
    using T = decltype(type);
    using Index = decltype(index);
    const auto Z = const_csr<T, Index>(indptr, indices, values);
    const auto g = const_rows<T>(G, "G");
    const auto x = writable_rows<T>(X, "X");
    const auto f = writable_rows<T>(F, "F");
    const auto delta = ridge_of(ridge, g.columns);
    require_equal(x.rows, Z.rows, "rows of X and of the sparse matrix");
    require_equal(x.columns, g.rows, "columns of X and rows of G");
    require_equal(f.rows, Z.rows, "rows of F and of the sparse matrix");
    require_equal(f.columns, g.columns, "columns of F and of G");
    const py::gil_scoped_release release;
    structured_rows<T, Index>(Z, g, delta, {alpha, eps, q}, x, f, n_threads);
  });
}

}  // namespace

void register_completion(py::module_& module) {
  module.def("residual_step", &bind_residual_step, py::arg("indptr"), py::arg("indices"),
             py::arg("values").none(true), py::arg("F"), py::arg("G"), py::arg("residuals"),
             py::arg("out"), py::arg("n_threads"),
             "F + (Z - F G^T) G over the stored entries, and the residuals.");
  module.def("mapped_residuals", &bind_mapped_residuals, py::arg("indptr"), py::arg("indices"),
             py::arg("values").none(true), py::arg("F"), py::arg("G"), py::arg("scale"),
             py::arg("step"), py::arg("eps"), py::arg("q"), py::arg("proximal"), py::arg("floor"),
             py::arg("out"), py::arg("n_threads"),
             "z_ij - phi(scale f_i . g_j) at the stored entries.");
  module.def("mapped_product", &bind_mapped_product, py::arg("F"), py::arg("G"), py::arg("H"),
             py::arg("step"), py::arg("eps"), py::arg("q"), py::arg("proximal"), py::arg("floor"),
             py::arg("out"), py::arg("n_threads"), "Adds phi(F G^T) H.");
  module.def("ridge_rows", &bind_ridge_rows, py::arg("indptr"), py::arg("indices"),
             py::arg("values").none(true), py::arg("G"), py::arg("ridge"), py::arg("F"),
             py::arg("n_threads"), "Ridge regression of every row on G.");
  module.def("structured_rows", &bind_structured_rows, py::arg("indptr"), py::arg("indices"),
             py::arg("values").none(true), py::arg("G"), py::arg("ridge"), py::arg("alpha"),
             py::arg("eps"), py::arg("q"), py::arg("X"), py::arg("F"), py::arg("n_threads"),
             "The same with weights that draw missing entries towards zero.");
}

}  // namespace ssnmf
