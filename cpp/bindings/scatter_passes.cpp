#include "../kernels/scatter_pass.hpp"

#include <algorithm>
#include <cstdint>

#include "arrays.hpp"
#include "registry.hpp"

namespace ssnmf {
namespace {

Span<const std::int64_t> column_ranges(py::handle bounds, Size columns) {
  const auto given = const_vector<std::int64_t>(bounds, "bounds");
  const std::int64_t* end = given.data + given.size;
  if (given.size < 2 || given.data[0] != 0 || end[-1] != columns ||
      !std::is_sorted(given.data, end)) {
    throw bad("bounds", "must rise from 0 to the number of columns");
  }
  return given;
}

template <class Op>
void run(py::handle indptr, py::handle indices, py::handle values, py::handle F, py::handle G,
         py::handle bounds, py::handle out, double scale, Threads n_threads) {
  visit_sparse(G, "G", indptr, [&](auto type, auto index) {
    using T = decltype(type);
    using Index = decltype(index);
    const auto Z = const_csr<T, Index>(indptr, indices, values);
    const auto g = const_rows<T>(G, "G");
    const auto to = writable_rows<T>(out, "out");
    require_equal(g.rows, Z.rows, "rows of G and of the sparse matrix");
    require_equal(to.columns, g.columns, "columns of out and of G");
    Rows<const T> f{nullptr, to.rows, to.columns};
    if (!F.is_none()) {
      f = const_rows<T>(F, "F");
      require_same_shape(f, to, "F");
    }
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
    scatter_pass<Op>(Z, f, g, ranges, static_cast<T>(scale), to, n_threads);
  });
}

template <class Op>
void define_with_model(py::module_& module, const char* name, const char* doc) {
  module.def(
      name,
      [](py::handle indptr, py::handle indices, py::handle values, py::handle F, py::handle G,
         py::handle bounds, py::handle out, double scale, Threads n_threads) {
        run<Op>(indptr, indices, values, F, G, bounds, out, scale, n_threads);
      },
      py::arg("indptr"), py::arg("indices"), py::arg("values").none(true), py::arg("F"),
      py::arg("G"), py::arg("bounds"), py::arg("out"), py::arg("scale"), py::arg("n_threads"), doc);
}

}  // namespace

void register_scatter_passes(py::module_& module) {
  module.def(
      "scatter_product",
      [](py::handle indptr, py::handle indices, py::handle values, py::handle G, py::handle bounds,
         py::handle out, double scale, Threads n_threads) {
        run<Product>(indptr, indices, values, py::none(), G, bounds, out, scale, n_threads);
      },
      py::arg("indptr"), py::arg("indices"), py::arg("values").none(true), py::arg("G"),
      py::arg("bounds"), py::arg("out"), py::arg("scale"), py::arg("n_threads"),
      "Adds scale * Z^T G.");
  define_with_model<Ratio>(module, "scatter_ratio", "Adds scale * (Z ./ (G F^T))^T G.");
  define_with_model<Sampled>(module, "scatter_sampled", "Adds scale * (Z .* (G F^T))^T G.");
}

}  // namespace ssnmf
