#include "../kernels/completion_pass.hpp"
#include "../kernels/ridge_rows.hpp"
#include "arrays.hpp"
#include "registry.hpp"

namespace ssnmf {
namespace {

template <class T>
Shrinkage<T> shrinkage_of(double step, double eps, double q, bool proximal, double floor) {
  if (!(step >= 0.0) || !(eps > 0.0) || !(q >= 0.0 && q <= 1.0)) {
    throw bad("step, eps or q", "is out of range");
  }
  return {static_cast<T>(step), static_cast<T>(eps), static_cast<T>(q), proximal,
          static_cast<T>(floor)};
}

void bind_residual_step(py::handle indptr, py::handle indices, py::handle values, py::handle F,
                        py::handle G, py::handle residuals, py::handle out, Threads n_threads) {
  visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const CsrArgument<T> Z(indptr, indices, values);
    const auto f = const_rows<T>(F, "F");
    const auto g = const_factor<T>(G, "G");
    const auto to = writable_rows<T>(out, "out");
    const auto stored = writable_vector<T>(residuals, "residuals");
    require_equal(stored.size, Z->entries(), "length of residuals and of indices");
    require_equal(f.rows, Z->rows, "rows of F and of the sparse matrix");
    require_equal(f.columns, g.columns, "columns of F and of G");
    require_same_shape(f, to, "out");
    const Extent sum{"out", out};
    const std::initializer_list<Extent> given{
        {"indptr", indptr}, {"indices", indices}, {"values", values}, {"F", F}, {"G", G}};
    require_apart({"residuals", residuals}, given);
    require_apart(sum, given);
    require_apart(sum, {{"residuals", residuals}});
    const KernelCall call;
    residual_step<T>(*Z, f, g, stored.data, to, n_threads);
  });
}

void bind_mapped_residuals(py::handle indptr, py::handle indices, py::handle values, py::handle F,
                           py::handle G, double scale, double step, double eps, double q,
                           bool proximal, double floor, py::handle out, Threads n_threads) {
  visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const CsrArgument<T> Z(indptr, indices, values);
    const auto f = const_rows<T>(F, "F");
    const auto g = const_factor<T>(G, "G");
    const auto shrinkage = shrinkage_of<T>(step, eps, q, proximal, floor);
    require_equal(f.rows, Z->rows, "rows of F and of the sparse matrix");
    require_equal(f.columns, g.columns, "columns of F and of G");
    const auto to = writable_vector<T>(out, "out");
    require_equal(to.size, Z->entries(), "length of out and of indices");
    require_apart(
        {"out", out},
        {{"indptr", indptr}, {"indices", indices}, {"values", values}, {"F", F}, {"G", G}});
    const KernelCall call;
    mapped_residuals<T>(*Z, f, g, static_cast<T>(scale), shrinkage, to.data, n_threads);
  });
}

void bind_mapped_product(py::handle F, py::handle G, py::handle H, double step, double eps,
                         double q, bool proximal, double floor, py::handle out, Threads n_threads) {
  visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const auto f = const_rows<T>(F, "F");
    const auto g = const_rows<T>(G, "G");
    const auto h = const_rows<T>(H, "H");
    const auto to = writable_rows<T>(out, "out");
    const auto shrinkage = shrinkage_of<T>(step, eps, q, proximal, floor);
    require_equal(f.columns, g.columns, "columns of F and of G");
    require_equal(h.rows, g.rows, "rows of H and of G");
    require_equal(to.rows, f.rows, "rows of out and of F");
    require_equal(to.columns, h.columns, "columns of out and of H");
    require_apart({"out", out}, {{"F", F}, {"G", G}, {"H", H}});
    const KernelCall call;
    add_mapped_product<T>(f, g, h, shrinkage, to, n_threads);
  });
}

Span<const double> ridge_of(py::handle ridge, Size columns) {
  const auto given = const_vector<double>(ridge, "ridge");
  if (given.size > columns) {
    throw bad("ridge", "has more values than G has columns");
  }
  return given;
}

void bind_ridge_rows(py::handle indptr, py::handle indices, py::handle values, py::handle G,
                     py::handle ridge, py::handle F, Threads n_threads) {
  visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const CsrArgument<T> Z(indptr, indices, values);
    const auto g = const_factor<T>(G, "G");
    const auto f = writable_rows<T>(F, "F");
    const auto delta = ridge_of(ridge, g.columns);
    require_equal(f.rows, Z->rows, "rows of F and of the sparse matrix");
    require_equal(f.columns, g.columns, "columns of F and of G");
    require_apart(
        {"F", F},
        {{"indptr", indptr}, {"indices", indices}, {"values", values}, {"G", G}, {"ridge", ridge}});
    const KernelCall call;
    ridge_rows<T>(*Z, g, delta, f, n_threads);
  });
}

void bind_conjugate_rows(py::handle indptr, py::handle indices, py::handle values, py::handle G,
                         py::handle gram, py::handle ridges, int steps, py::handle F,
                         Threads n_threads) {
  visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const CsrArgument<T> Z(indptr, indices, values);
    const auto g = const_factor<T>(G, "G");
    const auto common = const_rows<T>(gram, "gram");
    const auto own = const_vector<T>(ridges, "ridges");
    const auto f = writable_rows<T>(F, "F");
    require_equal(f.rows, Z->rows, "rows of F and of the sparse matrix");
    require_equal(f.columns, g.columns, "columns of F and of G");
    require_equal(common.rows, g.columns, "rows of gram and columns of G");
    require_equal(common.columns, g.columns, "columns of gram and of G");
    require_equal(own.size, f.rows, "length of ridges and rows of F");
    require_apart({"F", F}, {{"indptr", indptr},
                             {"indices", indices},
                             {"values", values},
                             {"G", G},
                             {"gram", gram},
                             {"ridges", ridges}});
    const KernelCall call;
    conjugate_rows<T>(*Z, g, common, own, steps, f, n_threads);
  });
}

void bind_structured_rows(py::handle indptr, py::handle indices, py::handle values, py::handle G,
                          py::handle ridge, double alpha, double eps, double q, py::handle X,
                          py::handle F, Threads n_threads) {
  visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const CsrArgument<T> Z(indptr, indices, values);
    const auto g = const_factor<T>(G, "G");
    const auto x = writable_rows<T>(X, "X");
    const auto f = writable_rows<T>(F, "F");
    const auto delta = ridge_of(ridge, g.columns);
    require_equal(x.rows, Z->rows, "rows of X and of the sparse matrix");
    require_equal(x.columns, g.rows, "columns of X and rows of G");
    require_equal(f.rows, Z->rows, "rows of F and of the sparse matrix");
    require_equal(f.columns, g.columns, "columns of F and of G");
    const Extent dense{"X", X};
    const std::initializer_list<Extent> given{
        {"indptr", indptr}, {"indices", indices}, {"values", values}, {"G", G}, {"ridge", ridge}};
    require_apart(dense, given);
    require_apart({"F", F}, given);
    require_apart({"F", F}, {dense});
    const KernelCall call;
    structured_rows<T>(*Z, g, delta, {alpha, eps, q}, x, f, n_threads);
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
  module.def("conjugate_rows", &bind_conjugate_rows, py::arg("indptr"), py::arg("indices"),
             py::arg("values").none(true), py::arg("G"), py::arg("gram"), py::arg("ridges"),
             py::arg("steps"), py::arg("F"), py::arg("n_threads"),
             "Conjugate gradients on every row, with a common Gram matrix.");
  module.def("structured_rows", &bind_structured_rows, py::arg("indptr"), py::arg("indices"),
             py::arg("values").none(true), py::arg("G"), py::arg("ridge"), py::arg("alpha"),
             py::arg("eps"), py::arg("q"), py::arg("X"), py::arg("F"), py::arg("n_threads"),
             "The same with weights that draw missing entries towards zero.");
}

}  // namespace ssnmf
