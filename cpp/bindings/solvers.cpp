#include <optional>

#include "../kernels/coordinate_descent.hpp"
#include "../kernels/kl_descent.hpp"
#include "../kernels/kl_rows.hpp"
#include "../kernels/nnls.hpp"
#include "arrays.hpp"
#include "registry.hpp"

namespace ssnmf {
namespace {

// Weights of the rows of a factor, or nothing for None.
template <class T>
class RowWeights {
 public:
  RowWeights(py::handle indptr, py::handle indices, py::handle weights, Size rows) {
    if (!indptr.is_none()) {
      given_.emplace(indptr, indices, weights, "weights");
      csr_ = **given_;
      require_equal(csr_.rows, rows, "rows of the weights and of F");
    }
  }

  const Csr<T>& operator*() const { return csr_; }

 private:
  std::optional<CsrArgument<T>> given_;
  Csr<T> csr_;
};

Size bind_nnls(py::handle K, py::handle row_scale, py::handle indptr, py::handle indices,
               py::handle weights, py::handle G, py::handle P, py::handle F, double tol,
               int max_sweeps, Threads n_threads) {
  return visit_float(F, "F", [&](auto type) {
    using T = decltype(type);
    const auto f = writable_rows<T>(F, "F");
    const auto g = const_factor<T>(G, "G");
    const auto p = const_rows<T>(P, "P");
    const RowWeights<T> w(indptr, indices, weights, f.rows);
    Rows<const T> k{};
    if (!K.is_none()) {
      k = const_rows<T>(K, "K");
      require_equal(k.rows, f.columns, "rows of K and columns of F");
      require_equal(k.columns, f.columns, "columns of K and of F");
    }
    require_same_shape(p, f, "P");
    require_equal(g.columns, f.columns, "columns of G and of F");
    const T* scale = optional_vector<T>(row_scale, "row_scale", f.rows).data;
    require_apart({"F", F}, {{"K", K}, {"row_scale", row_scale}, {"G", G}, {"P", P}});
    require_apart({"F", F}, {{"indptr", indptr}, {"indices", indices}, {"weights", weights}});
    const KernelCall call;
    return nnls<T>(k, scale, *w, g, p, f, tol, max_sweeps, n_threads);
  });
}

// The arguments of a Kullback-Leibler problem by rows, checked.
template <class T>
struct KlArguments : SparseModel<T, T> {
  Rows<const T> N;

  KlArguments(py::handle indptr, py::handle indices, py::handle values, py::handle g, py::handle n,
              py::handle f)
      : SparseModel<T, T>(indptr, indices, values, f, g), N(const_rows_or_one(n, "N", this->F)) {
    require_apart({"F", f}, this->Z, {{"G", g}, {"N", n}});
  }
};

Size bind_kl_rows(py::handle indptr, py::handle indices, py::handle values, py::handle G,
                  py::handle N, py::handle F, double tol, int max_sweeps, Threads n_threads) {
  return visit_float(F, "F", [&](auto type) {
    using T = decltype(type);
    const KlArguments<T> given(indptr, indices, values, G, N, F);
    const KernelCall call;
    return kl_rows<T>(*given.Z, given.G, given.N, given.F, tol, max_sweeps, n_threads);
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
    return kl_descent<T>(*given.Z, given.G, given.N, given.F, mask, sweeps, with_loss, n_threads);
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
    require_apart({"F", F}, {{"grams", grams}, {"scales", scales}, {"G", G}, {"P", P}});
    require_apart({"F", F}, {{"indptr", indptr}, {"indices", indices}, {"weights", weights}});
    require_apart({"F", F}, {{"allowed", allowed}});
    const RowWeights<T> w(indptr, indices, weights, f.rows);
    if (!indptr.is_none() && face_steps != 0) {
      throw py::value_error("face_steps must be 0 where rows have weights of their own");
    }
    const KernelCall call;
    return coordinate_descent<T>(k, *w, g, p, f, mask, sweeps, face_steps, n_threads, measured);
  });
}

}  // namespace

void register_solvers(py::module_& module) {
  define(module, "nnls", &bind_nnls,
         "K row_scale indptr indices weights G P F tol max_sweeps n_threads",
         "Nonnegative least squares by rows; returns rows unsolved.");
  define(module, "kl_rows", &bind_kl_rows, "indptr indices values G N F tol max_sweeps n_threads",
         "Kullback-Leibler regression by rows; returns rows unsolved.");
  define(module, "kl_descent", &bind_kl_descent,
         "indptr indices values G N F allowed sweeps with_loss n_threads",
         "Sweeps of Kullback-Leibler coordinate descent over the rows of F, in place; returns "
         "the loss without the sum of the model.");
  define(module, "coordinate_descent", &bind_coordinate_descent,
         "grams scales indptr indices weights G P F allowed sweeps face_steps n_threads",
         "Sweeps of coordinate descent over the rows of F, in place; returns the sum of the "
         "projected gradient over the first sweep if `measured`.",
         py::arg("measured") = false);
}

}  // namespace ssnmf
