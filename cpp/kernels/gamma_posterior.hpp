// Gamma posteriors of the entries of a factor, for variational Bayes.
//
// Entry (i, k) has a gamma distribution of shape alpha and rate b, where b is one number for each
// component and group of rows.  Its expectation is E = alpha / b and that of its logarithm is
// Lg = psi(alpha) - log(b), kept as F = exp(Lg), for which all passes over the data are made.
//
// Digamma and log-gamma go through their asymptotic series at alpha + 8, eight entries at a time:
//   psi(a) = psi(a + 8) - s(a),  log Gamma(a) = log Gamma(a + 8) - log q(t),
// where q(t) = a (a + 1) ... (a + 7) = t (t + 6) (t + 10) (t + 12) in t = a (a + 7), so that the
// sum s(a) of the eight 1 / (a + k) is one fraction, (2 a + 7) q'(t) / q(t).
#pragma once

#include <cstdint>

#include "rank.hpp"

namespace ssnmf {

// Rates of the posteriors (groups x R), and the group of every row; nullptr: all rows in group 0.
struct GammaRates {
  Rows<const double> rates;
  const std::int32_t* groups = nullptr;

  Size group(Size row) const { return groups == nullptr ? 0 : static_cast<Size>(groups[row]); }
};

// alpha = prior_shape + F .* P;  E <- alpha / rate;  F <- exp(psi(alpha)) / rate, at least tiny.
// Padding becomes 0.  Returns the sum of all Lg if they are asked for, else 0.
template <class T>
double gamma_update(const Factor<T>& F, const Rows<const T>& P, double prior_shape,
                    const GammaRates& posterior, const Rows<T>& E, Size rank, bool logs,
                    int threads);

// Sum over the entries of (prior_shape - alpha) Lg - alpha log(rate) + alpha + log Gamma(alpha),
// with alpha = E .* rate: what the bound has of them, but for the terms of the prior's rate.
template <class T>
double gamma_bound(const Factor<const T>& E, double prior_shape, const GammaRates& posterior,
                   Size rank, int threads);

// Sums of the rows of every group into out (groups x R).
template <class T>
void group_sums(const Rows<const T>& E, const std::int32_t* groups, const Rows<double>& out,
                int threads);

}  // namespace ssnmf
