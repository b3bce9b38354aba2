#include "../kernels/iterations.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "arrays.hpp"
#include "registry.hpp"

namespace ssnmf {
namespace {

// Kind, relaxation, sweeps, and steps of conjugate gradients for S and for A.
using UpdateArgument = std::tuple<std::string, double, int, int, int>;

FactorUpdate update_of(const UpdateArgument& given, bool sparse) {
  static const char* const kinds[] = {"descent", "fill-in", "multiply", "ratios"};  // as the enum
  const auto& [kind, relaxation, sweeps, steps_of_S, steps_of_A] = given;
  const auto found = std::find(std::begin(kinds), std::end(kinds), kind);
  if (found == std::end(kinds) || (sparse && kind == "fill-in")) {
    throw bad("update", "must be 'descent', 'multiply', 'ratios', or for an array 'fill-in'");
  }
  const auto place = static_cast<FactorUpdate::Kind>(found - kinds);
  return {place, relaxation, sweeps, steps_of_S, steps_of_A};
}

// S, A, P, N and the factors before, which lie apart from each other and from the data.
template <class T>
MatrixFit<T> fit_of(const py::list& memory, Size n, Size m, bool momentum,
                    const std::vector<Extent>& data, const std::pair<double, double>& objective) {
  const Size longest = std::max(n, m);
  const Size lengths[] = {n, m, longest, longest, n, m};
  const std::size_t count = momentum ? 6 : 4;
  require_equal(static_cast<Size>(memory.size()), static_cast<Size>(count), "arrays of memory");
  std::vector<Extent> others = data;
  Rows<T> rows[6];
  for (std::size_t k = 0; k < count; ++k) {
    rows[k] = writable_factor<T>(memory[k], "memory");
    require_equal(rows[k].rows, lengths[k], "rows of memory and of the data");
    require_equal(rows[k].columns, rows[0].columns, "columns of memory");
    const Extent written("memory", memory[k]);
    for (const Extent& other : others) {
      require_apart(written, {other});
    }
    others.push_back(written);
  }
  const auto [squares, cancels] = objective;
  return {{}, {}, squares, cancels, rows[0], rows[1], rows[2], rows[3], rows[4], rows[5]};
}

Momentum bind_dense_iterations(py::handle Z, const py::list& memory, const Momentum& momentum,
                               const UpdateArgument& update,
                               const std::pair<double, double>& objective, int count,
                               Threads n_threads) {
  const FactorUpdate how = update_of(update, false);
  return visit_float(Z, "Z", [&](auto type) {
    using T = decltype(type);
    const auto z = const_dense<T>(Z, "Z");
    const Dense<T> turned{z.data, z.columns, z.rows, z.column_stride, z.row_stride};
    auto fit = fit_of<T>(memory, z.rows, z.columns, momentum.has_value(), {{"Z", Z}}, objective);
    fit.pass = [&](bool for_A, Operation operation, const Rows<const T>& F,
                   const Factor<const T>& G, const Rows<T>& out) {
      dense_pass<T>(operation, for_A ? turned : z, false, F, G, {out}, n_threads);
    };
    fit.loss = [&] {
      const Rows<const T> S{fit.S.data, fit.S.rows, fit.S.columns};
      const Rows<const T> A{fit.A.data, fit.A.rows, fit.A.columns};
      return dense_loss<T>(EntryLoss::kFrobenius, z, S, A, n_threads);
    };
    const KernelCall call;
    return iterations<T>(fit, how, momentum, count, n_threads);
  });
}

Momentum bind_sparse_iterations(py::handle indptr, py::handle indices, py::handle values,
                                const std::array<py::object, 3>& turned, const py::list& memory,
                                const Momentum& momentum, const UpdateArgument& update,
                                const std::pair<double, double>& objective, int count,
                                Threads n_threads) {
  const FactorUpdate how = update_of(update, true);
  return visit_float(values, "values", [&](auto type) {
    using T = decltype(type);
    const CsrArgument<T> z(indptr, indices, values);
    const CsrArgument<T> by_columns(turned[0], turned[1], turned[2]);
    std::vector<Extent> data{{"indptr", indptr}, {"indices", indices}, {"values", values}};
    for (const py::object& part : turned) {
      data.emplace_back("turned", part);
    }
    auto fit = fit_of<T>(memory, z->rows, by_columns->rows, momentum.has_value(), data, objective);
    fit.pass = [&](bool for_A, Operation operation, const Rows<const T>& F,
                   const Factor<const T>& G, const Rows<T>& out) {
      sparse_pass<T>(operation, for_A ? *by_columns : *z, F, G, {out}, n_threads);
    };
    const KernelCall call;
    return iterations<T>(fit, how, momentum, count, n_threads);
  });
}

}  // namespace

void register_iterations(py::module_& module) {
  define(module, "dense_iterations", &bind_dense_iterations,
         "Z memory momentum update objective count n_threads",
         "Iterations of the fit of an array by S A^T, in place; returns their momentum.");
  define(module, "sparse_iterations", &bind_sparse_iterations,
         "indptr indices values turned memory momentum update objective count n_threads",
         "The same for a sparse matrix and its transpose.");
}

}  // namespace ssnmf
