#include "../kernels/coordinate_descent.hpp"
#include "../kernels/kl_rows.hpp"
#include "../kernels/nnls.hpp"
#include "../kernels/rank.hpp"
#include "arrays.hpp"
#include "registry.hpp"

namespace ssnmf {
namespace {

template <class T, class Index>
Size run_nnls(const Rows<const T>& K, const py::object& row_scale, const Csr<T, Index>& weights,
              const py::array& G, const py::array& P, py::array& F, double tol, int max_sweeps,
              int n_threads) {
  const auto g = const_rows<T>(G, "G");
  const auto p = const_rows<T>(P, "P");
  const auto f = writable_rows<T>(F, "F");
  require_same_shape(p, f, "P");
  require_equal(g.columns, f.columns, "columns of G and of F");
  const T* scale = optional_vector<T>(row_scale, "row_scale", f.rows).data;
  const py::gil_scoped_release release;
  return nnls<T, Index>(K, scale, weights, g, p, f, tol, max_sweeps, n_threads);
}

Size bind_nnls(const py::object& K, const py::object& row_scale, const py::object& indptr,
               const py::object& indices, const py::object& weights, const py::array& G,
               const py::array& P, py::array F, double tol, int max_sweeps, int n_threads) {
  return visit_float(F, "F", [&](auto type) {
    using T = decltype(type);
    Rows<const T> k{};
    if (!K.is_none()) {
      k = const_rows<T>(py::cast<py::array>(K), "K");
      require_equal(k.rows, F.shape(1), "rows of K and columns of F");
      require_equal(k.columns, F.shape(1), "columns of K and of F");
    }
    if (indptr.is_none()) {
      return run_nnls<T, std::int32_t>(k, row_scale, {}, G, P, F, tol, max_sweeps, n_threads);
    }
    const py::array pointers = py::cast<py::array>(indptr);
    return visit_index(pointers, [&](auto index) {
      using Index = decltype(index);
      const auto w = const_csr<T, Index>(pointers, py::cast<py::array>(indices), weights);
      require_equal(w.rows, F.shape(0), "rows of the weights and of F");
      return run_nnls<T, Index>(k, row_scale, w, G, P, F, tol, max_sweeps, n_threads);
    });
  });
}

Size bind_kl_rows(const py::array& indptr, const py::array& indices, const py::object& values,
                  const py::array& G, const py::array& N, py::array F, double tol, int max_sweeps,
                  int n_threads) {
  return visit_sparse(F, "F", indptr, [&](auto type, auto index) {
    using T = decltype(type);
    using Index = decltype(index);
    const auto X = const_csr<T, Index>(indptr, indices, values);
    const auto g = const_rows<T>(G, "G");
    const auto n = const_rows<T>(N, "N");
    const auto f = writable_rows<T>(F, "F");
    require_equal(f.rows, X.rows, "rows of F and of the sparse matrix");
    require_equal(g.columns, f.columns, "columns of G and of F");
    require_equal(n.columns, f.columns, "columns of N and of F");
    require_equal(n.rows > 1 ? n.rows : f.rows, f.rows, "rows of N and of F");
    const py::gil_scoped_release release;
    return kl_rows<T, Index>(X, g, n, f, tol, max_sweeps, n_threads);
  });
}

// Gram matrices (t x R x R) with their row scales (t x p) or None.
template <class T>
Grams<T> const_grams(const py::array& grams, const py::object& scales, const Rows<T>& F) {
  require_contiguous(grams, "grams", 3);
  require_equal(grams.shape(1), F.columns, "rows of the Gram matrices and columns of F");
  require_equal(grams.shape(2), F.columns, "columns of the Gram matrices and of F");
  Grams<T> result{const_data<T>(grams, "grams"), nullptr, grams.shape(0), F.columns, F.rows};
  if (!scales.is_none()) {
    const auto given = const_rows<T>(py::cast<py::array>(scales), "scales");
    require_equal(given.rows, result.count, "rows of scales and number of Gram matrices");
    require_equal(given.columns, F.rows, "columns of scales and rows of F");
    result.scales = given.data;
  }
  return result;
}

void bind_coordinate_descent(const py::array& grams, const py::object& scales,
                             const py::object& indptr, const py::object& indices,
                             const py::object& weights, const py::array& G, const py::array& P,
                             py::array F, const py::object& allowed, int sweeps, int n_threads) {
  visit_float(F, "F", [&](auto type) {
    using T = decltype(type);
    const auto f = writable_rows<T>(F, "F");
    const auto p = const_rows<T>(P, "P");
    const auto g = const_rows<T>(G, "G");
    const auto k = const_grams<T>(grams, scales, f);
    require_same_shape(p, f, "P");
    require_equal(g.columns, f.columns, "columns of G and of F");
    require_equal(padded_rank(f.columns, sizeof(T)), f.columns, "padded rank and columns of F");
    const T* mask = nullptr;
    if (!allowed.is_none()) {
      const auto given = const_rows<T>(py::cast<py::array>(allowed), "allowed");
      require_same_shape(given, f, "allowed");
      mask = given.data;
    }
    if (indptr.is_none()) {
      const py::gil_scoped_release release;
      coordinate_descent<T, std::int32_t>(k, {}, g, p, f, mask, sweeps, n_threads);
      return;
    }
    const py::array pointers = py::cast<py::array>(indptr);
    visit_index(pointers, [&](auto index) {
      using Index = decltype(index);
      const auto w = const_csr<T, Index>(pointers, py::cast<py::array>(indices), weights);
      require_equal(w.rows, f.rows, "rows of the weights and of F");
      const py::gil_scoped_release release;
      coordinate_descent<T, Index>(k, w, g, p, f, mask, sweeps, n_threads);
    });
  });
}

}  // namespace

void register_solvers(py::module_& module) {
  module.def("nnls", &bind_nnls, py::arg("K").none(true), py::arg("row_scale").none(true),
             py::arg("indptr").none(true), py::arg("indices").none(true),
             py::arg("weights").none(true), py::arg("G"), py::arg("P"), py::arg("F"),
             py::arg("tol"), py::arg("max_sweeps"), py::arg("n_threads"),
             "Nonnegative least squares by rows; returns rows unsolved.");
  module.def("kl_rows", &bind_kl_rows, py::arg("indptr"), py::arg("indices"),
             py::arg("values").none(true), py::arg("G"), py::arg("N"), py::arg("F"), py::arg("tol"),
             py::arg("max_sweeps"), py::arg("n_threads"),
             "Kullback-Leibler regression by rows; returns rows unsolved.");
  module.def("coordinate_descent", &bind_coordinate_descent, py::arg("grams"),
             py::arg("scales").none(true), py::arg("indptr").none(true),
             py::arg("indices").none(true), py::arg("weights").none(true), py::arg("G"),
             py::arg("P"), py::arg("F"), py::arg("allowed").none(true), py::arg("sweeps"),
             py::arg("n_threads"), "Sweeps of coordinate descent over the rows of F, in place.");
}

}  // namespace ssnmf
