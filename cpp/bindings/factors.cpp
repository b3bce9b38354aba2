#include "../kernels/factor_ops.hpp"
#include "../kernels/imbalance.hpp"
#include "../kernels/update.hpp"
#include "arrays.hpp"
#include "registry.hpp"

namespace ssnmf {
namespace {

void bind_gram(py::handle G, py::handle weights, py::handle out, Threads n_threads) {
  visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const auto g = const_rows<T>(G, "G");
    const auto w = optional_vector<T>(weights, "weights", g.rows);
    const auto to = writable_rows<T>(out, "out");
    require_equal(to.rows, g.columns, "rows of out and columns of G");
    require_equal(to.columns, g.columns, "columns of out and of G");
    require_apart({"out", out}, {{"G", G}, {"weights", weights}});
    const KernelCall call;
    gram<T>(g, w, to, n_threads);
  });
}

void bind_cross(py::handle F, py::handle G, py::handle out, Threads n_threads) {
  visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const auto f = const_rows<T>(F, "F");
    const auto g = const_rows<T>(G, "G");
    const auto to = writable_rows<T>(out, "out");
    require_equal(f.rows, g.rows, "rows of F and of G");
    require_equal(to.rows, f.columns, "rows of out and columns of F");
    require_equal(to.columns, g.columns, "columns of out and of G");
    require_apart({"out", out}, {{"F", F}, {"G", G}});
    const KernelCall call;
    cross<T>(f, g, {}, to, n_threads);
  });
}

void bind_column_sums(py::handle G, py::handle weights, py::handle out, Threads n_threads) {
  visit_float(G, "G", [&](auto type) {
    using T = decltype(type);
    const auto g = const_rows<T>(G, "G");
    const auto w = optional_vector<T>(weights, "weights", g.rows);
    const auto to = writable_vector<T>(out, "out");
    require_equal(to.size, g.columns, "length of out and columns of G");
    require_apart({"out", out}, {{"G", G}, {"weights", weights}});
    const KernelCall call;
    column_sums<T>(g, w, to.data, n_threads);
  });
}

void bind_multiply(py::handle F, py::handle K, py::handle row_scale, py::handle out, double scale,
                   bool accumulate, Threads n_threads) {
  visit_float(F, "F", [&](auto type) {
    using T = decltype(type);
    const auto f = const_rows<T>(F, "F");
    const auto k = const_rows<T>(K, "K");
    const auto a = optional_vector<T>(row_scale, "row_scale", f.rows);
    const Target<T> to{writable_rows<T>(out, "out"), static_cast<T>(scale), accumulate};
    require_equal(k.rows, f.columns, "rows of K and columns of F");
    require_equal(k.columns, to.out.columns, "columns of K and of out");
    require_equal(f.rows, to.out.rows, "rows of F and of out");
    require_apart({"out", out}, {{"F", F}, {"K", K}, {"row_scale", row_scale}});
    const KernelCall call;
    multiply<T>(f, k, a, to, n_threads);
  });
}

void bind_add_row(py::handle vector, py::handle row_scale, py::handle out, double scale,
                  bool accumulate, Threads n_threads) {
  visit_float(out, "out", [&](auto type) {
    using T = decltype(type);
    const Target<T> to{writable_rows<T>(out, "out"), static_cast<T>(scale), accumulate};
    const auto v = const_vector<T>(vector, "vector");
    require_equal(v.size, to.out.columns, "length of vector and columns of out");
    const auto a = optional_vector<T>(row_scale, "row_scale", to.out.rows);
    require_apart({"out", out}, {{"vector", vector}, {"row_scale", row_scale}});
    const KernelCall call;
    add_row<T>(v.data, a, to, n_threads);
  });
}

double bind_inner(py::handle F, py::handle P, Threads n_threads) {
  return visit_float(F, "F", [&](auto type) {
    using T = decltype(type);
    const auto f = const_rows<T>(F, "F");
    const auto p = const_rows<T>(P, "P");
    require_same_shape(f, p, "P");
    const KernelCall call;
    return inner<T>(f, p, n_threads);
  });
}

py::tuple bind_imbalance(py::handle F, py::handle P, py::handle N, py::handle moves,
                         Threads n_threads) {
  const Imbalance found = visit_float(F, "F", [&](auto type) {
    using T = decltype(type);
    const auto f = const_rows<T>(F, "F");
    const auto p = const_rows<T>(P, "P");
    require_same_shape(p, f, "P");
    const auto n = const_rows_or_one(N, "N", f);
    const Support support = support_of(moves, "moves", f);
    const KernelCall call;
    return imbalance<T>(f, p, n, support, n_threads);
  });
  return py::make_tuple(found.apart, found.pull);
}

// A pair, or nothing for None.  What pulls down may be one row for all.
template <class T>
Pulls<T> optional_pulls(py::handle up, const char* up_name, py::handle down, const char* down_name,
                        const Rows<T>& F) {
  Pulls<T> pulls;
  if (!up.is_none()) {
    pulls.up = const_rows<T>(up, up_name);
    require_same_shape(pulls.up, F, up_name);
  }
  if (!down.is_none()) {
    pulls.down = const_rows_or_one(down, down_name, F);
  }
  return pulls;
}

void bind_update(py::handle F, py::handle P2, py::handle N2, py::handle P1, py::handle N1,
                 const std::string& rule, double relaxation, Threads n_threads) {
  if (rule != "mu" && rule != "mm") {
    throw bad("rule", "must be 'mu' or 'mm'");
  }
  if (!(relaxation >= 0.0 && relaxation <= 1.0)) {
    throw bad("relaxation", "must be between 0 and 1");
  }
  visit_float(F, "F", [&](auto type) {
    using T = decltype(type);
    const auto f = writable_rows<T>(F, "F");
    const auto squared = optional_pulls(P2, "P2", N2, "N2", f);
    const auto divergence = optional_pulls(P1, "P1", N1, "N1", f);
    require_apart({"F", F}, {{"P2", P2}, {"N2", N2}, {"P1", P1}, {"N1", N1}});
    const KernelCall call;
    update(f, squared, divergence, rule == "mm", relaxation, n_threads);
  });
}

void bind_extrapolate(py::handle F, py::handle before, double step, bool positive,
                      Threads n_threads) {
  visit_float(F, "F", [&](auto type) {
    using T = decltype(type);
    const auto f = writable_rows<T>(F, "F");
    const auto b = writable_rows<T>(before, "before");
    require_same_shape(b, f, "before");
    require_apart({"F", F}, {{"before", before}});
    const KernelCall call;
    extrapolate(f, b, step, positive, n_threads);
  });
}

}  // namespace

void register_factors(py::module_& module) {
  define(module, "gram", &bind_gram, "G weights out n_threads", "G^T diag(weights) G.");
  define(module, "cross", &bind_cross, "F G out n_threads", "F^T G.");
  define(module, "column_sums", &bind_column_sums, "G weights out n_threads", "G^T weights.");
  define(module, "multiply", &bind_multiply, "F K row_scale out scale accumulate n_threads",
         "diag(row_scale) F K.");
  define(module, "add_row", &bind_add_row, "vector row_scale out scale accumulate n_threads",
         "row_scale vector^T.");
  define(module, "inner", &bind_inner, "F P n_threads", "Sum of F .* P.");
  define(module, "imbalance", &bind_imbalance, "F P N moves n_threads",
         "How far P and N are apart at F, and the larger one of their sums there.");
  define(module, "update", &bind_update, "F P2 N2 P1 N1 rule relaxation n_threads",
         "F <- F .* t, in place.");
  define(module, "extrapolate", &bind_extrapolate, "F before step positive n_threads",
         "F <- max(0, F + step (F - before)), before <- F.");
}

}  // namespace ssnmf
