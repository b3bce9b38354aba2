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
    const SparseModel<T> model(indptr, indices, values, F, G);
    const auto to = writable_rows<T>(out, "out");
    const auto stored = writable_vector<T>(residuals, "residuals");
    require_equal(stored.size, model.Z->entries(), "length of residuals and of indices");
    require_same_shape(model.F, to, "out");
    const Extent kept{"residuals", residuals};
    require_apart(kept, model.Z, {{"F", F}, {"G", G}});
    require_apart({"out", out}, model.Z, {{"F", F}, {"G", G}, kept});
    const KernelCall call;
    residual_step<T>(*model.Z, model.F, model.G, stored.data, to, n_threads);
  });
}

void bind_mapped_residuals(py::handle indptr, py::handle indices, py::handle values, py::handle F,
                           py::handle G, double scale, double step, double eps, double q,
                           bool proximal, double floor, py::handle out, Threads n_threads) {
  visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const SparseModel<T> model(indptr, indices, values, F, G);
    const auto shrinkage = shrinkage_of<T>(step, eps, q, proximal, floor);
    const auto to = writable_vector<T>(out, "out");
    require_equal(to.size, model.Z->entries(), "length of out and of indices");
    require_apart({"out", out}, model.Z, {{"F", F}, {"G", G}});
    const KernelCall call;
    mapped_residuals<T>(*model.Z, model.F, model.G, static_cast<T>(scale), shrinkage, to.data,
                        n_threads);
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
    const SparseModel<T, T> model(indptr, indices, values, F, G);
    const auto delta = ridge_of(ridge, model.G.columns);
    require_apart({"F", F}, model.Z, {{"G", G}, {"ridge", ridge}});
    const KernelCall call;
    ridge_rows<T>(*model.Z, model.G, delta, model.F, n_threads);
  });
}

void bind_conjugate_rows(py::handle indptr, py::handle indices, py::handle values, py::handle G,
                         py::handle gram, py::handle ridges, int steps, py::handle F,
                         Threads n_threads) {
  visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const SparseModel<T, T> model(indptr, indices, values, F, G);
    const auto common = const_rows<T>(gram, "gram");
    const auto own = const_vector<T>(ridges, "ridges");
    require_equal(common.rows, model.G.columns, "rows of gram and columns of G");
    require_equal(common.columns, model.G.columns, "columns of gram and of G");
    require_equal(own.size, model.F.rows, "length of ridges and rows of F");
    require_apart({"F", F}, model.Z, {{"G", G}, {"gram", gram}, {"ridges", ridges}});
    const KernelCall call;
    conjugate_rows<T>(*model.Z, model.G, common, own, steps, model.F, n_threads);
  });
}

void bind_structured_rows(py::handle indptr, py::handle indices, py::handle values, py::handle G,
                          py::handle ridge, double alpha, double eps, double q, py::handle X,
                          py::handle F, Threads n_threads) {
  visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const SparseModel<T, T> model(indptr, indices, values, F, G);
    const auto x = writable_rows<T>(X, "X");
    const auto delta = ridge_of(ridge, model.G.columns);
    require_equal(x.rows, model.Z->rows, "rows of X and of the sparse matrix");
    require_equal(x.columns, model.G.rows, "columns of X and rows of G");
    const Extent dense{"X", X};
    require_apart(dense, model.Z, {{"G", G}, {"ridge", ridge}});
    require_apart({"F", F}, model.Z, {{"G", G}, {"ridge", ridge}, dense});
    const KernelCall call;
    structured_rows<T>(*model.Z, model.G, delta, {alpha, eps, q}, x, model.F, n_threads);
  });
}

}  // namespace

void register_completion(py::module_& module) {
  define(module, "residual_step", &bind_residual_step,
         "indptr indices values F G residuals out n_threads",
         "F + (Z - F G^T) G over the stored entries, and the residuals.");
  define(module, "mapped_residuals", &bind_mapped_residuals,
         "indptr indices values F G scale step eps q proximal floor out n_threads",
         "z_ij - phi(scale f_i . g_j) at the stored entries.");
  define(module, "mapped_product", &bind_mapped_product,
         "F G H step eps q proximal floor out n_threads", "Adds phi(F G^T) H.");
  define(module, "ridge_rows", &bind_ridge_rows, "indptr indices values G ridge F n_threads",
         "Ridge regression of every row on G.");
  define(module, "conjugate_rows", &bind_conjugate_rows,
         "indptr indices values G gram ridges steps F n_threads",
         "Conjugate gradients on every row, with a common Gram matrix.");
  define(module, "structured_rows", &bind_structured_rows,
         "indptr indices values G ridge alpha eps q X F n_threads",
         "The same with weights that draw missing entries towards zero.");
}

}  // namespace ssnmf
