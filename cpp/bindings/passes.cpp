#include "../kernels/passes.hpp"

#include <algorithm>

#include "../kernels/rank.hpp"
#include "arrays.hpp"
#include "registry.hpp"

namespace ssnmf {
namespace {

Operation operation_named(const std::string& name, double exponent) {
  if (name == "product") {
    return Operation::kProduct;
  }
  if (name == "ratio") {
    return Operation::kRatio;
  }
  if (name == "sampled") {
    return Operation::kSampled;
  }
  if (name == "power") {
    return {Operation::kPower, exponent};
  }
  throw bad("operation", "must be 'product', 'ratio', 'sampled' or 'power'");
}

// F, of the shape that the result has, or nothing for an operation without a model.
template <class T>
Rows<const T> model_factor(py::handle F, const Rows<T>& out) {
  if (F.is_none()) {
    return {nullptr, out.rows, out.columns};
  }
  const auto rows = const_rows<T>(F, "F");
  require_same_shape(rows, out, "F");
  return rows;
}

void run_sparse(Operation operation, py::handle indptr, py::handle indices, py::handle values,
                py::handle F, py::handle G, py::handle out, double scale, bool accumulate,
                Threads n_threads) {
  visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const CsrArgument<T> Z(indptr, indices, values);
    const auto g = const_rows<T>(G, "G");
    const Target<T> to{writable_rows<T>(out, "out"), static_cast<T>(scale), accumulate};
    require_equal(to.out.rows, Z->rows, "rows of out and of the sparse matrix");
    require_equal(to.out.columns, g.columns, "columns of out and of G");
    const auto f = model_factor(F, to.out);
    require_apart(
        {"out", out},
        {{"indptr", indptr}, {"indices", indices}, {"values", values}, {"F", F}, {"G", G}});
    const KernelCall call;
    sparse_pass<T>(operation, *Z, f, g, to, n_threads);
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

void run_scatter(Operation operation, py::handle indptr, py::handle indices, py::handle values,
                 py::handle F, py::handle G, py::handle bounds, py::handle out, double scale,
                 Threads n_threads) {
  visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const CsrArgument<T> Z(indptr, indices, values);
    const auto g = const_rows<T>(G, "G");
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
    if (g.columns != padded_rank(g.columns, static_cast<Size>(sizeof(T)))) {
      throw bad("G", "has a number of columns that is not a padded rank");
    }
    const KernelCall call;
    scatter_pass<T>(operation, *Z, f, g, ranges, static_cast<T>(scale), to, n_threads);
  });
}

// One binding for all operations: F is None for a product; the exponent is that of a power.
void bind_panels(const std::string& operation, double exponent, py::handle indptr,
                 py::handle indices, py::handle values, py::handle F, py::handle G,
                 py::handle bounds, py::handle out, double scale, bool accumulate,
                 Threads n_threads) {
  const Operation chosen = operation_named(operation, exponent);
  visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const CsrArgument<T> Z(indptr, indices, values);
    const auto g = const_rows<T>(G, "G");
    const Target<T> to{writable_rows<T>(out, "out"), static_cast<T>(scale), accumulate};
    require_equal(to.out.columns, g.columns, "columns of out and of G");
    if (to.out.rows < 1 || Z->rows % to.out.rows != 0) {
      throw bad("indptr", "must have panels of as many rows as out");
    }
    const auto f = model_factor(F, to.out);
    if (F.is_none() != (chosen.kind == Operation::kProduct)) {
      throw bad("F", "must be given but for a product");
    }
    require_apart({"out", out}, {{"indptr", indptr},
                                 {"indices", indices},
                                 {"values", values},
                                 {"F", F},
                                 {"G", G},
                                 {"bounds", bounds}});
    const auto ranges = column_ranges(bounds, to.out.rows);
    const KernelCall call;
    panel_pass<T>(chosen, *Z, f, g, ranges, to, n_threads);
  });
}

void run_dense(Operation operation, py::handle Z, bool mask, py::handle F, py::handle G,
               py::handle out, double scale, bool accumulate, Threads n_threads) {
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

double run_sparse_loss(EntryLoss loss, py::handle indptr, py::handle indices, py::handle values,
                       py::handle weights, py::handle F, py::handle G, Threads n_threads) {
  return visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const CsrArgument<T> Z(indptr, indices, values);
    const auto w = optional_vector<T>(weights, "weights", Z->entries());
    const auto f = const_rows<T>(F, "F");
    const auto g = const_rows<T>(G, "G");
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

// The passes of an operation with a model.
void define_with_model(py::module_& module, const std::string& name, Operation operation,
                       const char* doc, const char* scatter_doc) {
  module.def(
      ("sparse_" + name).c_str(),
      [operation](py::handle indptr, py::handle indices, py::handle values, py::handle F,
                  py::handle G, py::handle out, double scale, bool accumulate, Threads n_threads) {
        run_sparse(operation, indptr, indices, values, F, G, out, scale, accumulate, n_threads);
      },
      py::arg("indptr"), py::arg("indices"), py::arg("values").none(true), py::arg("F"),
      py::arg("G"), py::arg("out"), py::arg("scale"), py::arg("accumulate"), py::arg("n_threads"),
      doc);
  module.def(("scatter_" + name).c_str(),
             [operation](py::handle indptr, py::handle indices, py::handle values, py::handle F,
                         py::handle G, py::handle bounds, py::handle out, double scale,
                         Threads n_threads) {
               run_scatter(operation, indptr, indices, values, F, G, bounds, out, scale, n_threads);
             },
             py::arg("indptr"), py::arg("indices"), py::arg("values").none(true), py::arg("F"),
             py::arg("G"), py::arg("bounds"), py::arg("out"), py::arg("scale"),
             py::arg("n_threads"), scatter_doc);
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

void register_sparse(py::module_& module) {
  module.def(
      "sparse_product",
      [](py::handle indptr, py::handle indices, py::handle values, py::handle G, py::handle out,
         double scale, bool accumulate, Threads n_threads) {
        run_sparse(Operation::kProduct, indptr, indices, values, py::none(), G, out, scale,
                   accumulate, n_threads);
      },
      py::arg("indptr"), py::arg("indices"), py::arg("values").none(true), py::arg("G"),
      py::arg("out"), py::arg("scale"), py::arg("accumulate"), py::arg("n_threads"), "Z G.");
  module.def(
      "scatter_product",
      [](py::handle indptr, py::handle indices, py::handle values, py::handle G, py::handle bounds,
         py::handle out, double scale, Threads n_threads) {
        run_scatter(Operation::kProduct, indptr, indices, values, py::none(), G, bounds, out, scale,
                    n_threads);
      },
      py::arg("indptr"), py::arg("indices"), py::arg("values").none(true), py::arg("G"),
      py::arg("bounds"), py::arg("out"), py::arg("scale"), py::arg("n_threads"),
      "Adds scale * Z^T G.");
  define_with_model(module, "ratio", Operation::kRatio, "(Z ./ (F G^T)) G over the stored entries.",
                    "Adds scale * (Z ./ (G F^T))^T G.");
  define_with_model(module, "sampled", Operation::kSampled,
                    "(Z .* (F G^T)) G over the stored entries.",
                    "Adds scale * (Z .* (G F^T))^T G.");
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
}

void register_dense(py::module_& module) {
  module.def(
      "dense_product",
      [](py::handle Z, bool mask, py::handle G, py::handle out, double scale, bool accumulate,
         Threads n_threads) {
        run_dense(Operation::kProduct, Z, mask, py::none(), G, out, scale, accumulate, n_threads);
      },
      py::arg("Z"), py::arg("mask"), py::arg("G"), py::arg("out"), py::arg("scale"),
      py::arg("accumulate"), py::arg("n_threads"), "Z G.");
  module.def(
      "dense_ratio",
      [](py::handle Z, py::handle F, py::handle G, py::handle out, double scale, bool accumulate,
         Threads n_threads) {
        run_dense(Operation::kRatio, Z, false, F, G, out, scale, accumulate, n_threads);
      },
      py::arg("Z"), py::arg("F"), py::arg("G"), py::arg("out"), py::arg("scale"),
      py::arg("accumulate"), py::arg("n_threads"), "(Z ./ (F G^T)) G.");
  module.def(
      "dense_sampled",
      [](py::handle Z, bool mask, py::handle F, py::handle G, py::handle out, double scale,
         bool accumulate, Threads n_threads) {
        run_dense(Operation::kSampled, Z, mask, F, G, out, scale, accumulate, n_threads);
      },
      py::arg("Z"), py::arg("mask"), py::arg("F"), py::arg("G"), py::arg("out"), py::arg("scale"),
      py::arg("accumulate"), py::arg("n_threads"), "(Z .* (F G^T)) G.");
  module.def(
      "dense_frobenius_loss",
      [](py::handle Z, py::handle F, py::handle G, Threads n_threads) {
        return run_dense_loss(EntryLoss::kFrobenius, Z, F, G, n_threads);
      },
      py::arg("Z"), py::arg("F"), py::arg("G"), py::arg("n_threads"),
      "Sum over the entries of (x - z)^2.");
}

// The passes and the loss of the beta-divergences.
void register_beta(py::module_& module) {
  module.def(
      "sparse_power",
      [](py::handle indptr, py::handle indices, py::handle values, double exponent, py::handle F,
         py::handle G, py::handle out, double scale, bool accumulate, Threads n_threads) {
        run_sparse({Operation::kPower, exponent}, indptr, indices, values, F, G, out, scale,
                   accumulate, n_threads);
      },
      py::arg("indptr"), py::arg("indices"), py::arg("values").none(true), py::arg("exponent"),
      py::arg("F"), py::arg("G"), py::arg("out"), py::arg("scale"), py::arg("accumulate"),
      py::arg("n_threads"), "(Z .* (F G^T)^exponent) G over the stored entries.");
  module.def(
      "scatter_power",
      [](py::handle indptr, py::handle indices, py::handle values, double exponent, py::handle F,
         py::handle G, py::handle bounds, py::handle out, double scale, Threads n_threads) {
        run_scatter({Operation::kPower, exponent}, indptr, indices, values, F, G, bounds, out,
                    scale, n_threads);
      },
      py::arg("indptr"), py::arg("indices"), py::arg("values").none(true), py::arg("exponent"),
      py::arg("F"), py::arg("G"), py::arg("bounds"), py::arg("out"), py::arg("scale"),
      py::arg("n_threads"), "Adds scale * (Z .* (G F^T)^exponent)^T G.");
  module.def(
      "dense_power",
      [](py::handle Z, bool mask, double exponent, py::handle F, py::handle G, py::handle out,
         double scale, bool accumulate, Threads n_threads) {
        run_dense({Operation::kPower, exponent}, Z, mask, F, G, out, scale, accumulate, n_threads);
      },
      py::arg("Z"), py::arg("mask"), py::arg("exponent"), py::arg("F"), py::arg("G"),
      py::arg("out"), py::arg("scale"), py::arg("accumulate"), py::arg("n_threads"),
      "(Z .* (F G^T)^exponent) G.");
  module.def(
      "sparse_beta_loss",
      [](py::handle indptr, py::handle indices, py::handle values, double beta, bool rest,
         py::handle F, py::handle G, Threads n_threads, py::handle weights) {
        return run_sparse_loss({EntryLoss::kBeta, beta, rest}, indptr, indices, values, weights, F,
                               G, n_threads);
      },
      py::arg("indptr"), py::arg("indices"), py::arg("values").none(true), py::arg("beta"),
      py::arg("rest"), py::arg("F"), py::arg("G"), py::arg("n_threads"),
      py::arg("weights") = py::none(),
      "Sum over the stored entries of w d(x, z), less z^beta / beta with `rest`.");
  module.def(
      "dense_beta_loss",
      [](py::handle Z, double beta, bool rest, py::handle F, py::handle G, Threads n_threads) {
        return run_dense_loss({EntryLoss::kBeta, beta, rest}, Z, F, G, n_threads);
      },
      py::arg("Z"), py::arg("beta"), py::arg("rest"), py::arg("F"), py::arg("G"),
      py::arg("n_threads"), "Sum over the entries of d(x, z), less z^beta / beta with `rest`.");
}

}  // namespace

void register_passes(py::module_& module) {
  register_sparse(module);
  register_dense(module);
  register_beta(module);
  module.def("panel_pass", &bind_panels, py::arg("operation"), py::arg("exponent"),
             py::arg("indptr"), py::arg("indices"), py::arg("values").none(true),
             py::arg("F").none(true), py::arg("G"), py::arg("bounds"), py::arg("out"),
             py::arg("scale"), py::arg("accumulate"), py::arg("n_threads"),
             "A sparse pass over a matrix that is cut into panels of its columns.");
  define_loss(module, "kl_loss", EntryLoss::kKullbackLeibler,
              "Sum over the entries, if sparse the stored ones, of x log(x/z) - x.");
  define_loss(module, "kl_unreached", EntryLoss::kUnreached,
              "What of kl_loss belongs to entries with z = 0.");
}

}  // namespace ssnmf
