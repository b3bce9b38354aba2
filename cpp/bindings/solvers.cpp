#include "../kernels/coordinate_descent.hpp"
#include "../kernels/kl_descent.hpp"
#include "../kernels/kl_rows.hpp"
#include "../kernels/nnls.hpp"
#include "arrays.hpp"
#include "registry.hpp"

namespace ssnmf {
namespace {

template <class T>
Size run_nnls(const Rows<const T>& K, py::handle row_scale, const Csr<T>& weights, py::handle G,
              py::handle P, py::handle F, double tol, int max_sweeps, Threads n_threads) {
  const auto g = const_factor<T>(G, "G");
  const auto p = const_rows<T>(P, "P");
  const auto f = writable_rows<T>(F, "F");
  require_same_shape(p, f, "P");
  require_equal(g.columns, f.columns, "columns of G and of F");
  const T* scale = optional_vector<T>(row_scale, "row_scale", f.rows).data;
  require_apart({"F", F}, {{"row_scale", row_scale}, {"G", G}, {"P", P}});
  const KernelCall call;
  return nnls<T>(K, scale, weights, g, p, f, tol, max_sweeps, n_threads);
}

Size bind_nnls(py::handle K, py::handle row_scale, py::handle indptr, py::handle indices,
               py::handle weights, py::handle G, py::handle P, py::handle F, double tol,
               int max_sweeps, Threads n_threads) {
  return visit_float(F, "F", [&](auto type) {
    using T = decltype(type);
    const auto f = writable_rows<T>(F, "F");
    Rows<const T> k{};
    if (!K.is_none()) {
      k = const_rows<T>(K, "K");
      require_equal(k.rows, f.columns, "rows of K and columns of F");
      require_equal(k.columns, f.columns, "columns of K and of F");
    }
    require_apart({"F", F},
                  {{"K", K}, {"indptr", indptr}, {"indices", indices}, {"weights", weights}});
    if (indptr.is_none()) {
      return run_nnls<T>(k, row_scale, {}, G, P, F, tol, max_sweeps, n_threads);
    }
    const CsrArgument<T> w(indptr, indices, weights, "weights");
    require_equal(w->rows, f.rows, "rows of the weights and of F");
    return run_nnls<T>(k, row_scale, *w, G, P, F, tol, max_sweeps, n_threads);
  });
}

// The arguments of a Kullback-Leibler problem by rows, checked.
template <class T>
struct KlArguments {
  CsrArgument<T> X;
  Factor<const T> G;
  Rows<const T> N;
  Rows<T> F;

  KlArguments(py::handle indptr, py::handle indices, py::handle values, py::handle g, py::handle n,
              py::handle f)
      : X(indptr, indices, values),
        G(const_factor<T>(g, "G")),
        N(const_rows<T>(n, "N")),
        F(writable_rows<T>(f, "F")) {
    require_equal(F.rows, X->rows, "rows of F and of the sparse matrix");
    require_equal(G.columns, F.columns, "columns of G and of F");
    require_equal(N.columns, F.columns, "columns of N and of F");
    if (N.rows != 1 && N.rows != F.rows) {
      throw bad("N",
                "has " + std::to_string(N.rows) + " rows; expected 1 or " + std::to_string(F.rows));
    }
    require_apart(
        {"F", f},
        {{"indptr", indptr}, {"indices", indices}, {"values", values}, {"G", g}, {"N", n}});
  }
};

Size bind_kl_rows(py::handle indptr, py::handle indices, py::handle values, py::handle G,
                  py::handle N, py::handle F, double tol, int max_sweeps, Threads n_threads) {
  return visit_float(F, "F", [&](auto type) {
    using T = decltype(type);
    const KlArguments<T> given(indptr, indices, values, G, N, F);
    const KernelCall call;
    return kl_rows<T>(*given.X, given.G, given.N, given.F, tol, max_sweeps, n_threads);
  });
}

double bind_kl_descent(py::handle indptr, py::handle indices, py::handle values, py::handle G,
                       py::handle N, py::handle F, py::handle allowed, int sweeps, bool with_loss,
                       Threads n_threads) {
  return visit_float(F, "F", [&](auto type) {
    using T = decltype(type);
    const KlArguments<T> given(indptr, indices, values, G, N, F);
    const Support mask = support_of(allowed, "allowed", given.F);
    require_apart({"F", F}, {{"allowed", allowed}});
    const KernelCall call;
    return kl_descent<T>(*given.X, given.G, given.N, given.F, mask, sweeps, with_loss, n_threads);
  });
}

// Gram matrices (t x R x R) with their row scales (t x p) or None.
template <class T>
Grams<T> const_grams(py::handle grams, py::handle scales, const Rows<T>& F) {
  const py::array array = array_of(grams, "grams");
  Grams<T> result{const_data<T>(array, "grams"), nullptr, 0, F.columns, F.rows};
  require_contiguous(array, "grams", 3);
  require_equal(array.shape(1), F.columns, "rows of the Gram matrices and columns of F");
  require_equal(array.shape(2), F.columns, "columns of the Gram matrices and of F");
  result.count = array.shape(0);
  if (!scales.is_none()) {
    const auto given = const_rows<T>(scales, "scales");
    require_equal(given.rows, result.count, "rows of scales and number of Gram matrices");
    require_equal(given.columns, F.rows, "columns of scales and rows of F");
    result.scales = given.data;
  }
  return result;
}

double bind_coordinate_descent(py::handle grams, py::handle scales, py::handle indptr,
                               py::handle indices, py::handle weights, py::handle G, py::handle P,
                               py::handle F, py::handle allowed, int sweeps, int face_steps,
                               Threads n_threads, bool measured) {
  return visit_float(F, "F", [&](auto type) {
    using T = decltype(type);
    const auto f = writable_rows<T>(F, "F");
    const auto p = const_rows<T>(P, "P");
    const auto g = const_factor<T>(G, "G");
    const auto k = const_grams<T>(grams, scales, f);
    require_same_shape(p, f, "P");
    require_equal(g.columns, f.columns, "columns of G and of F");
    const Support mask = support_of(allowed, "allowed", f);
    require_apart({"F", F}, {{"grams", grams},
                             {"scales", scales},
                             {"indptr", indptr},
                             {"indices", indices},
                             {"weights", weights},
                             {"G", G},
                             {"P", P},
                             {"allowed", allowed}});
    if (indptr.is_none()) {
      const KernelCall call;
      return coordinate_descent<T>(k, {}, g, p, f, mask, sweeps, face_steps, n_threads, measured);
    }
    const CsrArgument<T> w(indptr, indices, weights, "weights");
    require_equal(w->rows, f.rows, "rows of the weights and of F");
    if (face_steps != 0) {
      throw py::value_error("face_steps must be 0 where rows have weights of their own");
    }
    const KernelCall call;
    return coordinate_descent<T>(k, *w, g, p, f, mask, sweeps, face_steps, n_threads);
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
  module.def("kl_descent", &bind_kl_descent, py::arg("indptr"), py::arg("indices"),
             py::arg("values").none(true), py::arg("G"), py::arg("N"), py::arg("F"),
             py::arg("allowed").none(true), py::arg("sweeps"), py::arg("with_loss"),
             py::arg("n_threads"),
             "Sweeps of Kullback-Leibler coordinate descent over the rows of F, in place; returns "
             "the loss without the sum of the model.");
  module.def("coordinate_descent", &bind_coordinate_descent, py::arg("grams"),
             py::arg("scales").none(true), py::arg("indptr").none(true),
             py::arg("indices").none(true), py::arg("weights").none(true), py::arg("G"),
             py::arg("P"), py::arg("F"), py::arg("allowed").none(true), py::arg("sweeps"),
             py::arg("face_steps"), py::arg("n_threads"), py::arg("measured") = false,
             "Sweeps of coordinate descent over the rows of F, in place; returns the sum of the "
             "projected gradient over the first sweep if `measured`.");
}

}  // namespace ssnmf
