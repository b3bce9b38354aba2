#include "../kernels/gamma_posterior.hpp"

#include <algorithm>
#include <cmath>

#include "arrays.hpp"
#include "registry.hpp"

namespace ssnmf {
namespace {

// The group of every row of a factor, below `count`, or nullptr for None.
const std::int32_t* const_groups(py::handle groups, Size rows, Size count) {
  const auto given = optional_vector<std::int32_t>(groups, "groups", rows);
  for (Size i = 0; i < given.size; ++i) {
    if (given.data[i] < 0 || given.data[i] >= count) {
      throw bad("groups", "must be at least 0 and below " + std::to_string(count));
    }
  }
  return given.data;
}

GammaRates const_rates(py::handle rates, py::handle groups, Size rows, Size columns, Size rank) {
  const auto r = const_rows<double>(rates, "rates");
  require_equal(r.columns, columns, "columns of rates and of E");
  if (rank < 0 || rank > columns || r.rows < 1) {
    throw bad("rank", "must be at most the columns of E; rates need a row");
  }
  for (Size group = 0; group < r.rows; ++group) {
    if (!std::all_of(r.row(group), r.row(group) + rank, [](double rate) { return rate > 0.0; })) {
      throw bad("rates", "must be positive");
    }
  }
  return {r, const_groups(groups, rows, r.rows)};
}

void require_shape_parameter(double prior_shape) {
  if (!(prior_shape >= 0.0 && std::isfinite(prior_shape))) {
    throw bad("prior_shape", "must be finite and at least 0");
  }
}

double bind_gamma_update(py::handle F, py::handle P, double prior_shape, py::handle rates,
                         py::handle groups, py::handle E, Size rank, bool logs, Threads n_threads) {
  require_shape_parameter(prior_shape);
  return visit_float(F, "F", [&](auto type) {
    using T = decltype(type);
    const auto f = writable_factor<T>(F, "F");
    const auto p = const_rows<T>(P, "P");
    const auto e = writable_rows<T>(E, "E");
    require_same_shape(p, f, "P");
    require_same_shape(e, f, "E");
    const GammaRates posterior = const_rates(rates, groups, f.rows, f.columns, rank);
    const Extent mean{"E", E};
    require_apart({"F", F}, {{"P", P}, mean, {"rates", rates}, {"groups", groups}});
    require_apart(mean, {{"P", P}, {"rates", rates}, {"groups", groups}});
    const KernelCall call;
    return gamma_update<T>(f, p, prior_shape, posterior, e, rank, logs, n_threads);
  });
}

double bind_gamma_bound(py::handle E, double prior_shape, py::handle rates, py::handle groups,
                        Size rank, Threads n_threads) {
  require_shape_parameter(prior_shape);
  return visit_float(E, "E", [&](auto type) {
    using T = decltype(type);
    const auto e = const_factor<T>(E, "E");
    const GammaRates posterior = const_rates(rates, groups, e.rows, e.columns, rank);
    const KernelCall call;
    return gamma_bound<T>(e, prior_shape, posterior, rank, n_threads);
  });
}

void bind_group_sums(py::handle E, py::handle groups, py::handle out, Threads n_threads) {
  visit_float(E, "E", [&](auto type) {
    using T = decltype(type);
    const auto e = const_rows<T>(E, "E");
    const auto sums = writable_rows<double>(out, "out");
    require_equal(sums.columns, e.columns, "columns of out and of E");
    if (sums.rows < 1) {
      throw bad("out", "needs a row for each group");
    }
    const std::int32_t* of_rows = const_groups(groups, e.rows, sums.rows);
    require_apart({"out", out}, {{"E", E}, {"groups", groups}});
    const KernelCall call;
    group_sums<T>(e, of_rows, sums, n_threads);
  });
}

}  // namespace

void register_gamma(py::module_& module) {
  define(module, "gamma_update", &bind_gamma_update,
         "F P prior_shape rates groups E rank logs n_threads",
         "Gamma posteriors of a factor, in place; returns the sum of their log-expectations.");
  define(module, "gamma_bound", &bind_gamma_bound, "E prior_shape rates groups rank n_threads",
         "What gamma posteriors add to the variational bound.");
  define(module, "group_sums", &bind_group_sums, "E groups out n_threads",
         "Sums of the rows of every group.");
}

}  // namespace ssnmf
