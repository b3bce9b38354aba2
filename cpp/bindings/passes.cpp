#include "../kernels/passes.hpp"

#include <algorithm>

#include "../kernels/moments.hpp"
#include "arrays.hpp"
#include "operation_argument.hpp"
#include "registry.hpp"

namespace ssnmf {
namespace {

// F, of the shape that the result has, or nothing.
template <class T>
Rows<const T> model_factor(py::handle F, const Rows<T>& out) {
  if (F.is_none()) {
    return {nullptr, out.rows, out.columns};
  }
  const auto rows = const_rows<T>(F, "F");
  require_same_shape(rows, out, "F");
  return rows;
}

Span<const Size> column_ranges(py::handle bounds, Size columns) {
  const auto given = const_vector<Size>(bounds, "bounds");
  const Size* end = given.data + given.size;
  if (given.size < 2 || given.data[0] != 0 || end[-1] != columns ||
      !std::is_sorted(given.data, end)) {
    throw bad("bounds", "must rise from 0 to the number of rows of out");
  }
  return given;
}

void bind_scatter(py::handle exponent, py::handle indptr, py::handle indices, py::handle values,
                  py::handle F, py::handle G, py::handle bounds, py::handle out, double scale,
                  Threads n_threads) {
  const Operation operation = operation_of(exponent);
  F = factor_read(operation, F);
  visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const CsrArgument<T> Z(indptr, indices, values);
    const auto g = const_factor<T>(G, "G");
    const auto to = writable_rows<T>(out, "out");
    require_equal(g.rows, Z->rows, "rows of G and of the sparse matrix");
    require_equal(to.columns, g.columns, "columns of out and of G");
    const auto f = model_factor(F, to);
    require_apart({"out", out}, Z, {{"F", F}, {"G", G}, {"bounds", bounds}});
    const auto ranges = column_ranges(bounds, to.rows);
    const KernelCall call;
    scatter_pass<T>(operation, *Z, f, g, ranges, static_cast<T>(scale), to, n_threads);
  });
}

template <bool kByPanels>
void run_rows(py::handle exponent, py::handle indptr, py::handle indices, py::handle values,
              py::handle F, py::handle G, py::handle bounds, py::handle out, double scale,
              bool accumulate, Threads n_threads, py::handle asked) {
  const Operation operation = operation_of(exponent);
  F = factor_read(operation, F);
  visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const CsrArgument<T> Z(indptr, indices, values);
    const auto g = const_factor<T>(G, "G");
    const Target<T> to{writable_rows<T>(out, "out"), static_cast<T>(scale), accumulate};
    require_equal(to.out.columns, g.columns, "columns of out and of G");
    if (!kByPanels) {
      require_equal(to.out.rows, Z->rows, "rows of out and of the sparse matrix");
    } else if (to.out.rows < 1 || Z->rows % to.out.rows != 0) {
      throw bad("indptr", "must have panels of as many rows as out");
    }
    const auto f = model_factor(F, to.out);
    require_apart({"out", out}, Z, {{"F", F}, {"G", G}, {"bounds", bounds}, {"asked", asked}});
    const Support support = support_of(asked, "asked", to.out);
    if constexpr (kByPanels) {
      const auto ranges = column_ranges(bounds, to.out.rows);
      const KernelCall call;
      panel_pass<T>(operation, *Z, f, g, ranges, to, n_threads, support);
    } else {
      const KernelCall call;
      sparse_pass<T>(operation, *Z, f, g, to, n_threads, support);
    }
  });
}

void bind_sparse(py::handle exponent, py::handle indptr, py::handle indices, py::handle values,
                 py::handle F, py::handle G, py::handle out, double scale, bool accumulate,
                 Threads n_threads, py::handle asked) {
  run_rows<false>(exponent, indptr, indices, values, F, G, Py_None, out, scale, accumulate,
                  n_threads, asked);
}

void run_dense(const Operation& operation, py::handle Z, bool mask, py::handle F, py::handle G,
               py::handle out, double scale, bool accumulate, Threads n_threads) {
  F = factor_read(operation, F);
  visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const auto z = const_dense<T>(Z, "Z");
    const auto g = const_rows<T>(G, "G");
    const Target<T> to{writable_rows<T>(out, "out"), static_cast<T>(scale), accumulate};
    require_equal(to.out.rows, z.rows, "rows of out and of Z");
    require_equal(g.rows, z.columns, "rows of G and columns of Z");
    require_equal(to.out.columns, g.columns, "columns of out and of G");
    const auto f = model_factor(F, to.out);
    require_apart({"out", out}, {{"Z", Z}, {"F", F}, {"G", G}});
    const KernelCall call;
    dense_pass<T>(operation, z, mask, f, g, to, n_threads);
  });
}

void bind_dense(py::handle exponent, py::handle Z, bool mask, py::handle F, py::handle G,
                py::handle out, double scale, bool accumulate, Threads n_threads) {
  run_dense(operation_of(exponent), Z, mask, F, G, out, scale, accumulate, n_threads);
}

void bind_dense_residual(py::handle Z, py::handle F, py::handle G, py::handle out, double scale,
                         bool accumulate, Threads n_threads) {
  run_dense(Operation::kResidual, Z, false, F, G, out, scale, accumulate, n_threads);
}

double run_sparse_loss(EntryLoss loss, py::handle indptr, py::handle indices, py::handle values,
                       py::handle weights, py::handle F, py::handle G, Threads n_threads) {
  return visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const SparseModel<T> model(indptr, indices, values, F, G);
    const auto w = optional_vector<T>(weights, "weights", model.Z->entries());
    const KernelCall call;
    return sparse_loss<T>(loss, *model.Z, w.data, model.F, model.G, n_threads);
  });
}

double run_dense_loss(EntryLoss loss, py::handle Z, py::handle F, py::handle G, Threads n_threads) {
  return visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const auto z = const_dense<T>(Z, "Z");
    const auto f = const_rows<T>(F, "F");
    const auto g = const_rows<T>(G, "G");
    require_equal(f.rows, z.rows, "rows of F and of Z");
    require_equal(g.rows, z.columns, "rows of G and columns of Z");
    require_equal(f.columns, g.columns, "columns of F and of G");
    const KernelCall call;
    return dense_loss<T>(loss, z, f, g, n_threads);
  });
}

py::tuple bind_moments(py::handle Z, Threads n_threads) {
  const Moments found = visit_float(Z, "Z", [&](auto type) {
    using T = decltype(type);
    const auto z = const_dense<T>(Z, "Z");
    const KernelCall call;
    return dense_moments<T>(z, n_threads);
  });
  return py::make_tuple(found.least, found.largest, found.missing, found.nonzero, found.sum,
                        found.squares);
}

template <EntryLoss::Kind kind>
double bind_sparse_loss(py::handle indptr, py::handle indices, py::handle values, py::handle F,
                        py::handle G, Threads n_threads) {
  return run_sparse_loss(kind, indptr, indices, values, Py_None, F, G, n_threads);
}

double bind_weighted_loss(py::handle indptr, py::handle indices, py::handle values,
                          py::handle weights, py::handle F, py::handle G, Threads n_threads) {
  return run_sparse_loss(EntryLoss::kFrobenius, indptr, indices, values, weights, F, G, n_threads);
}

double bind_sparse_beta_loss(py::handle indptr, py::handle indices, py::handle values,
                             py::handle beta, bool rest, py::handle F, py::handle G,
                             Threads n_threads, py::handle weights) {
  return run_sparse_loss(loss_of(beta, rest), indptr, indices, values, weights, F, G, n_threads);
}

template <EntryLoss::Kind kind>
double bind_dense_loss(py::handle Z, py::handle F, py::handle G, Threads n_threads) {
  return run_dense_loss(kind, Z, F, G, n_threads);
}

double bind_dense_beta_loss(py::handle Z, py::handle beta, bool rest, py::handle F, py::handle G,
                            Threads n_threads) {
  return run_dense_loss(loss_of(beta, rest), Z, F, G, n_threads);
}

// The losses without weights or a parameter.
template <EntryLoss::Kind kind>
void define_losses(py::module_& module, const std::string& name, const char* doc) {
  define(module, ("sparse_" + name).c_str(), &bind_sparse_loss<kind>,
         "indptr indices values F G n_threads", doc);
  define(module, ("dense_" + name).c_str(), &bind_dense_loss<kind>, "Z F G n_threads", doc);
}

}  // namespace

void register_passes(py::module_& module) {
  define(module, "sparse_pass", &bind_sparse,
         "exponent indptr indices values F G out scale accumulate n_threads",
         "(Z .* (F G^T)^exponent) G over the stored entries.", py::arg("asked") = py::none());
  define(module, "panel_pass", &run_rows<true>,
         "exponent indptr indices values F G bounds out scale accumulate n_threads",
         "A sparse pass over a matrix that is cut into panels of its columns.",
         py::arg("asked") = py::none());
  define(module, "scatter_pass", &bind_scatter,
         "exponent indptr indices values F G bounds out scale n_threads",
         "Adds scale * (Z .* (G F^T)^exponent)^T G.");
  define(module, "dense_pass", &bind_dense, "exponent Z mask F G out scale accumulate n_threads",
         "(Z .* (F G^T)^exponent) G.");
  define(module, "dense_residual_pass", &bind_dense_residual,
         "Z F G out scale accumulate n_threads",
         "(Z - F G^T) G over the entries of Z that are not NaN.");
  define(module, "dense_moments", &bind_moments, "Z n_threads",
         "Least and largest entry, numbers of NaN and of nonzero entries, sum and squares.");
  define_losses<EntryLoss::kKullbackLeibler>(
      module, "kl_loss", "Sum over the entries, if sparse the stored ones, of x log(x/z) - x.");
  define_losses<EntryLoss::kUnreached>(module, "kl_unreached",
                                       "What of kl_loss belongs to entries with z = 0.");
  define(module, "sparse_frobenius_loss", &bind_weighted_loss,
         "indptr indices values weights F G n_threads",
         "Sum over the stored entries of w (x - z)^2.");
  define(module, "dense_frobenius_loss", &bind_dense_loss<EntryLoss::kFrobenius>, "Z F G n_threads",
         "Sum over the entries of (x - z)^2.");
  define(module, "sparse_beta_loss", &bind_sparse_beta_loss,
         "indptr indices values beta rest F G n_threads",
         "Sum over the stored entries of w d(x, z), less z^beta / beta with `rest`.",
         py::arg("weights") = py::none());
  define(module, "dense_beta_loss", &bind_dense_beta_loss, "Z beta rest F G n_threads",
         "Sum over the entries of d(x, z), less z^beta / beta with `rest`.");
}

}  // namespace ssnmf
