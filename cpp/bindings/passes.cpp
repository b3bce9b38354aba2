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

void bind_sparse(py::handle exponent, py::handle indptr, py::handle indices, py::handle values,
                 py::handle F, py::handle G, py::handle out, double scale, bool accumulate,
                 Threads n_threads, py::handle asked) {
  const Operation operation = operation_of(exponent);
  F = factor_read(operation, F);
  visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const CsrArgument<T> Z(indptr, indices, values);
    const auto g = const_factor<T>(G, "G");
    const Target<T> to{writable_rows<T>(out, "out"), static_cast<T>(scale), accumulate};
    require_equal(to.out.rows, Z->rows, "rows of out and of the sparse matrix");
    require_equal(to.out.columns, g.columns, "columns of out and of G");
    const auto f = model_factor(F, to.out);
    require_apart(
        {"out", out},
        {{"indptr", indptr}, {"indices", indices}, {"values", values}, {"F", F}, {"G", G}});
    require_apart({"out", out}, {{"asked", asked}});
    const Support support = support_of(asked, "asked", to.out);
    const KernelCall call;
    sparse_pass<T>(operation, *Z, f, g, to, n_threads, support);
  });
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
    require_apart({"out", out}, {{"indptr", indptr},
                                 {"indices", indices},
                                 {"values", values},
                                 {"F", F},
                                 {"G", G},
                                 {"bounds", bounds}});
    const auto ranges = column_ranges(bounds, to.rows);
    const KernelCall call;
    scatter_pass<T>(operation, *Z, f, g, ranges, static_cast<T>(scale), to, n_threads);
  });
}

void bind_panels(py::handle exponent, py::handle indptr, py::handle indices, py::handle values,
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
    if (to.out.rows < 1 || Z->rows % to.out.rows != 0) {
      throw bad("indptr", "must have panels of as many rows as out");
    }
    const auto f = model_factor(F, to.out);
    require_apart({"out", out}, {{"indptr", indptr},
                                 {"indices", indices},
                                 {"values", values},
                                 {"F", F},
                                 {"G", G},
                                 {"bounds", bounds},
                                 {"asked", asked}});
    const auto ranges = column_ranges(bounds, to.out.rows);
    const Support support = support_of(asked, "asked", to.out);
    const KernelCall call;
    panel_pass<T>(operation, *Z, f, g, ranges, to, n_threads, support);
  });
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
    const CsrArgument<T> Z(indptr, indices, values);
    const auto w = optional_vector<T>(weights, "weights", Z->entries());
    const auto f = const_rows<T>(F, "F");
    const auto g = const_factor<T>(G, "G");
    require_equal(f.rows, Z->rows, "rows of F and of the sparse matrix");
    require_equal(f.columns, g.columns, "columns of F and of G");
    const KernelCall call;
    return sparse_loss<T>(loss, *Z, w.data, f, g, n_threads);
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
  Moments found;
  visit_float(Z, "Z", [&](auto type) {
    using T = decltype(type);
    const auto z = const_dense<T>(Z, "Z");
    const KernelCall call;
    found = dense_moments<T>(z, n_threads);
  });
  return py::make_tuple(found.least, found.largest, found.missing, found.nonzero, found.sum,
                        found.squares);
}

// A loss whose entries have no weights of their own.
void define_loss(py::module_& module, const std::string& name, EntryLoss loss, const char* doc) {
  module.def(("sparse_" + name).c_str(),
             [loss](py::handle indptr, py::handle indices, py::handle values, py::handle F,
                    py::handle G, Threads n_threads) {
               return run_sparse_loss(loss, indptr, indices, values, py::none(), F, G, n_threads);
             },
             py::arg("indptr"), py::arg("indices"), py::arg("values").none(true), py::arg("F"),
             py::arg("G"), py::arg("n_threads"), doc);
  module.def(("dense_" + name).c_str(),
             [loss](py::handle Z, py::handle F, py::handle G, Threads n_threads) {
               return run_dense_loss(loss, Z, F, G, n_threads);
             },
             py::arg("Z"), py::arg("F"), py::arg("G"), py::arg("n_threads"), doc);
}

// (Z .* (F G^T)^exponent) G in every form of Z.
void define_passes(py::module_& module) {
  module.def("sparse_pass", &bind_sparse, py::arg("exponent"), py::arg("indptr"),
             py::arg("indices"), py::arg("values").none(true), py::arg("F").none(true),
             py::arg("G"), py::arg("out"), py::arg("scale"), py::arg("accumulate"),
             py::arg("n_threads"), py::arg("asked") = py::none(),
             "(Z .* (F G^T)^exponent) G over the stored entries.");
  module.def("panel_pass", &bind_panels, py::arg("exponent"), py::arg("indptr"), py::arg("indices"),
             py::arg("values").none(true), py::arg("F").none(true), py::arg("G"), py::arg("bounds"),
             py::arg("out"), py::arg("scale"), py::arg("accumulate"), py::arg("n_threads"),
             py::arg("asked") = py::none(),
             "A sparse pass over a matrix that is cut into panels of its columns.");
  module.def("scatter_pass", &bind_scatter, py::arg("exponent"), py::arg("indptr"),
             py::arg("indices"), py::arg("values").none(true), py::arg("F").none(true),
             py::arg("G"), py::arg("bounds"), py::arg("out"), py::arg("scale"),
             py::arg("n_threads"), "Adds scale * (Z .* (G F^T)^exponent)^T G.");
  module.def("dense_pass", &bind_dense, py::arg("exponent"), py::arg("Z"), py::arg("mask"),
             py::arg("F").none(true), py::arg("G"), py::arg("out"), py::arg("scale"),
             py::arg("accumulate"), py::arg("n_threads"), "(Z .* (F G^T)^exponent) G.");
  module.def("dense_residual_pass", &bind_dense_residual, py::arg("Z"), py::arg("F"), py::arg("G"),
             py::arg("out"), py::arg("scale"), py::arg("accumulate"), py::arg("n_threads"),
             "(Z - F G^T) G over the entries of Z that are not NaN.");
  module.def("dense_moments", &bind_moments, py::arg("Z"), py::arg("n_threads"),
             "Least and largest entry, numbers of NaN and of nonzero entries, sum and squares.");
}

// The losses whose entries may have weights, or a parameter.
void define_weighted_losses(py::module_& module) {
  module.def(
      "sparse_frobenius_loss",
      [](py::handle indptr, py::handle indices, py::handle values, py::handle weights, py::handle F,
         py::handle G, Threads n_threads) {
        return run_sparse_loss(EntryLoss::kFrobenius, indptr, indices, values, weights, F, G,
                               n_threads);
      },
      py::arg("indptr"), py::arg("indices"), py::arg("values").none(true),
      py::arg("weights").none(true), py::arg("F"), py::arg("G"), py::arg("n_threads"),
      "Sum over the stored entries of w (x - z)^2.");
  module.def(
      "dense_frobenius_loss",
      [](py::handle Z, py::handle F, py::handle G, Threads n_threads) {
        return run_dense_loss(EntryLoss::kFrobenius, Z, F, G, n_threads);
      },
      py::arg("Z"), py::arg("F"), py::arg("G"), py::arg("n_threads"),
      "Sum over the entries of (x - z)^2.");
  module.def(
      "sparse_beta_loss",
      [](py::handle indptr, py::handle indices, py::handle values, py::handle beta, bool rest,
         py::handle F, py::handle G, Threads n_threads, py::handle weights) {
        return run_sparse_loss(loss_of(beta, rest), indptr, indices, values, weights, F, G,
                               n_threads);
      },
      py::arg("indptr"), py::arg("indices"), py::arg("values").none(true), py::arg("beta"),
      py::arg("rest"), py::arg("F"), py::arg("G"), py::arg("n_threads"),
      py::arg("weights") = py::none(),
      "Sum over the stored entries of w d(x, z), less z^beta / beta with `rest`.");
  module.def(
      "dense_beta_loss",
      [](py::handle Z, py::handle beta, bool rest, py::handle F, py::handle G, Threads n_threads) {
        return run_dense_loss(loss_of(beta, rest), Z, F, G, n_threads);
      },
      py::arg("Z"), py::arg("beta"), py::arg("rest"), py::arg("F"), py::arg("G"),
      py::arg("n_threads"), "Sum over the entries of d(x, z), less z^beta / beta with `rest`.");
}

}  // namespace

void register_passes(py::module_& module) {
  define_passes(module);
  define_weighted_losses(module);
  define_loss(module, "kl_loss", EntryLoss::kKullbackLeibler,
              "Sum over the entries, if sparse the stored ones, of x log(x/z) - x.");
  define_loss(module, "kl_unreached", EntryLoss::kUnreached,
              "What of kl_loss belongs to entries with z = 0.");
}

}  // namespace ssnmf
