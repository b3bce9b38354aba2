#include "gamma_posterior.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <vector>

#include "../core/compiler.hpp"
#include "../core/numbers.hpp"
#include "../core/parallel.hpp"
#include "factor_ops.hpp"
#include "matrices.hpp"
#include "rank.hpp"

namespace ssnmf {
namespace {

using GammaRun = Eigen::Array<double, kNarrowestRank, 1>;

constexpr double kLargestShift = 690.0;  // exp of minus it is no denormal number

template <class T>
GammaRun gamma_run(const T* data) {
  return Eigen::Map<const Eigen::Array<T, kNarrowestRank, 1>>(data).template cast<double>();
}

// a (a + 1) ... (a + 7), by way of t.
GammaRun rising_product(const GammaRun& t) { return t * (t + 6.0) * (t + 10.0) * (t + 12.0); }

// Above, what is added to a by the shift is lost in its rounding, and q(t) would overflow.
constexpr double kLargestShifted = 1e17;

// t = a (a + 7).
GammaRun paired(const GammaRun& a) {
  const GammaRun capped = a.min(kLargestShifted);
  return capped * (capped + 7.0);
}

// s(a).
GammaRun shift_of(const GammaRun& a, const GammaRun& t) {
  const GammaRun derivative = ((4.0 * t + 84.0) * t + 504.0) * t + 720.0;
  return (2.0 * a.min(kLargestShifted) + 7.0) * derivative / rising_product(t);
}

// exp(psi(a + 8)), by the series of exp(psi(y + 1/2)).
GammaRun exp_digamma_above(const GammaRun& a) {
  const GammaRun y = a + 7.5;
  const GammaRun u = y.square().inverse();
  GammaRun sum =
      u * (47655701498228027.0 / 578473294823424000.0) - 499769010050743.0 / 24103053950976000.0;
  sum = u * sum + 2709398569.0 / 367873228800.0;
  sum = u * sum - 5509121.0 / 1393459200.0;
  sum = u * sum + 10313.0 / 2903040.0;
  sum = u * sum - 37.0 / 5760.0;
  sum = u * sum + 1.0 / 24.0;
  return y + y * u * sum;
}

// a0 psi(a) + (1 - psi(a)) a + log Gamma(a), without the cancellation of a log a: with L = log w
// and w = a + 8, it is (a0 + 7.5) L - log q + (a - a0) (s + L - psi(w)) + the rest of Stirling's
// series.
GammaRun gamma_term(const GammaRun& a, double a0) {
  const GammaRun t = paired(a);
  const GammaRun w = a + 8.0;
  const GammaRun v = w.inverse();
  const GammaRun u = v.square();
  GammaRun below = u / 12.0 - 691.0 / 32760.0;
  below = u * below + 1.0 / 132.0;
  below = u * below - 1.0 / 240.0;
  below = u * below + 1.0 / 252.0;
  below = u * below - 1.0 / 120.0;
  below = 0.5 * v + u * (u * below + 1.0 / 12.0);
  GammaRun rest = u / 156.0 - 691.0 / 360360.0;
  rest = u * rest + 1.0 / 1188.0;
  rest = u * rest - 1.0 / 1680.0;
  rest = u * rest + 1.0 / 1260.0;
  rest = u * rest - 1.0 / 360.0;
  rest = v * (u * rest + 1.0 / 12.0);
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  const GammaRun logarithms = (a0 + 7.5) * w.log() - rising_product(t).log();
  const GammaRun shift = shift_of(a, t) * (a.min(kLargestShifted) / a);  // 8 / a for a large a
  return logarithms + (a - a0) * (shift + below) + rest + (kHalfLogTwoPi - 8.0);
}

// Columns of a factor, of which the first `rank` hold numbers and the rest is padding.
struct GammaColumns {
  std::vector<double> inverse;  // 1 / rate, groups x R; 0 in padding
  std::vector<double> real;     // R: 1, in padding 0

  GammaColumns(const Rows<const double>& rates, Size rank)
      : inverse(static_cast<std::size_t>(rates.rows * rates.columns), 0.0),
        real(static_cast<std::size_t>(rates.columns), 0.0) {
    std::fill_n(real.begin(), rank, 1.0);
    for (Size group = 0; group < rates.rows; ++group) {
      for (Size k = 0; k < rank; ++k) {
        inverse[static_cast<std::size_t>(group * rates.columns + k)] = 1.0 / rates.row(group)[k];
      }
    }
  }
};

// One row; the sum of its Lg, if they are asked for, else 0.
template <bool Logs, class T>
SSNMF_FLATTEN double update_gamma_row(T* f, const T* p, double prior_shape, const double* inverse,
                                      const double* real, T* expectation, Size columns) {
  using Out = Eigen::Map<Eigen::Array<T, kNarrowestRank, 1>>;
  constexpr double floor = static_cast<double>(tiny<T>());
  GammaRun logs = GammaRun::Zero();
  for (Size k = 0; k < columns; k += kNarrowestRank) {
    const GammaRun scale = gamma_run(inverse + k);
    const GammaRun holds = gamma_run(real + k);
    const GammaRun a = prior_shape + gamma_run(f + k) * gamma_run(p + k);
    const GammaRun shift = shift_of(a, paired(a));
    const GammaRun above = exp_digamma_above(a) * scale;
    if constexpr (Logs) {
      logs += holds * ((above + (1.0 - holds)).log() - shift);
    }
    Out(expectation + k) = (a * scale).template cast<T>();
    const GammaRun exponential = above * (-shift.min(kLargestShift)).exp();
    Out(f + k) = exponential.max(floor * holds).template cast<T>();
  }
  return Logs ? logs.sum() : 0.0;
}

template <class T>
SSNMF_FLATTEN double gamma_bound_row(const T* expectation, double prior_shape, const double* rates,
                                     const double* log_rates, const double* real, Size columns) {
  GammaRun sum = GammaRun::Zero();
  for (Size k = 0; k < columns; k += kNarrowestRank) {
    const GammaRun holds = gamma_run(real + k);
    const GammaRun a = gamma_run(expectation + k) * gamma_run(rates + k) + (1.0 - holds);
    sum += holds * (gamma_term(a, prior_shape) - prior_shape * gamma_run(log_rates + k));
  }
  return sum.sum();
}

}  // namespace

template <class T>
double gamma_update(const Factor<T>& F, const Rows<const T>& P, double prior_shape,
                    const GammaRates& posterior, const Rows<T>& E, Size rank, bool logs,
                    int threads) {
  const GammaColumns columns(posterior.rates, rank);
  const EvenBlocks blocks(F.rows, kRowsPerBlock);
  const int team = useful_threads(16 * F.rows * F.columns, threads);
  const auto row = logs ? &update_gamma_row<true, T> : &update_gamma_row<false, T>;
  return sum_over_rows(
      blocks, team, [] { return NoWorkspace{}; },
      [&](NoWorkspace&, Size i) {
        const double* inverse = columns.inverse.data() + posterior.group(i) * F.columns;
        return row(F.row(i), P.row(i), prior_shape, inverse, columns.real.data(), E.row(i),
                   F.columns);
      });
}

template <class T>
double gamma_bound(const Factor<const T>& E, double prior_shape, const GammaRates& posterior,
                   Size rank, int threads) {
  const GammaColumns columns(posterior.rates, rank);
  std::vector<double> log_rates(columns.inverse.size());
  std::transform(columns.inverse.begin(), columns.inverse.end(), log_rates.begin(),
                 [](double inverse) { return inverse > 0.0 ? -std::log(inverse) : 0.0; });
  const EvenBlocks blocks(E.rows, kRowsPerBlock);
  const int team = useful_threads(16 * E.rows * E.columns, threads);
  return sum_over_rows(
      blocks, team, [] { return NoWorkspace{}; },
      [&](NoWorkspace&, Size i) {
        const Size group = posterior.group(i);
        return gamma_bound_row(E.row(i), prior_shape, posterior.rates.row(group),
                               log_rates.data() + group * E.columns, columns.real.data(),
                               E.columns);
      });
}

template <class T>
void group_sums(const Rows<const T>& E, const std::int32_t* groups, const Rows<double>& out,
                int threads) {
  const Size most = most_partials(out.rows * out.columns);
  const Size step = std::max(kRowsPerBlock, (E.rows + most - 1) / most);
  const EvenBlocks blocks(E.rows, step);
  const int team = useful_threads(E.rows * E.columns, threads);
  std::vector<Matrix<double>> partials(static_cast<std::size_t>(blocks.count()));
  parallel_for(blocks.count(), team, [&](Size block) {
    Matrix<double>& partial = partials[static_cast<std::size_t>(block)];
    partial.setZero(out.rows, out.columns);
    const Range range = blocks[block];
    for (Size i = range.begin; i < range.end; ++i) {
      double* sum = partial.data() + (groups == nullptr ? 0 : groups[i]) * out.columns;
      const T* e = E.row(i);
      for (Size k = 0; k < E.columns; ++k) {
        sum[k] += static_cast<double>(e[k]);
      }
    }
  });
  MatrixMap<double>(out.data, out.rows, out.columns) =
      sum_of(partials, out.rows, out.columns, threads);
}

#define SSNMF_INSTANTIATE(T)                                                                    \
  template double gamma_update<T>(const Factor<T>&, const Rows<const T>&, double,               \
                                  const GammaRates&, const Rows<T>&, Size, bool, int);          \
  template double gamma_bound<T>(const Factor<const T>&, double, const GammaRates&, Size, int); \
  template void group_sums<T>(const Rows<const T>&, const std::int32_t*, const Rows<double>&, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
