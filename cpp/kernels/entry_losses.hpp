// What an entry of the data and its model f . g add to a sum; see passes.hpp.
#pragma once

#include <Eigen/Core>
#include <limits>
#include <stdexcept>

#include "../core/numbers.hpp"
#include "passes.hpp"

namespace ssnmf {

// Losses are summed over short runs of entries, so that logarithms are taken a register at a time.
constexpr Eigen::Index kLossRun = 128;

namespace detail {

using Run = Eigen::Array<double, Eigen::Dynamic, 1, 0, kLossRun, 1>;

template <class T>
Run run_of(const T* data, Eigen::Index size) {
  return Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>(data, size).template cast<double>();
}

}  // namespace detail

// Sum of x log(x/z) - x, with 0 log 0 = 0; a missing entry is to be read as 0.  At most kLossRun
// entries.  (No branch and no select, which Eigen would take entry by entry.)
struct KullbackLeiblerLoss {
  static constexpr bool missing_is_zero = true;
  template <class T>
  double of(const T* values, const T* models, const T*, Eigen::Index size) const {
    const detail::Run x = detail::run_of(values, size);
    const detail::Run z = detail::run_of(models, size).max(static_cast<double>(tiny<T>()));
    using Limits = std::numeric_limits<double>;
    return (x * (x / z).max(Limits::min()).min(Limits::max()).log() - x).sum();
  }
};

// What of that sum belongs to entries whose model vanishes.  Multiplicative updates keep it so:
// this part is constant.
struct UnreachedLoss {
  static constexpr bool missing_is_zero = true;
  template <class T>
  double of(const T* values, const T* models, const T* weights, Eigen::Index size) const {
    T unreached[kLossRun];
    T none[kLossRun] = {};
    for (Eigen::Index e = 0; e < size; ++e) {
      unreached[e] = models[e] > tiny<T>() ? T(0) : values[e];
    }
    return KullbackLeiblerLoss{}.of(unreached, none, weights, size);
  }
};

// Sum of w (x - z)^2; weights == nullptr stands for ones, NaN counts nothing.
struct FrobeniusLoss {
  static constexpr bool missing_is_zero = false;
  template <class T>
  double of(const T* values, const T* models, const T* weights, Eigen::Index size) const {
    const detail::Run x = detail::run_of(values, size);
    const detail::Run residual = x - detail::run_of(models, size);
    const detail::Run squares = (x == x).select(residual.square(), 0.0);
    return weights == nullptr ? squares.sum() : (detail::run_of(weights, size) * squares).sum();
  }
};

// Sum of w d(x, z) or w (d(x, z) - z^beta / beta).  With L = log(x/z),
//   d = z^beta (expm1(beta L) / beta - expm1(L)) / (beta - 1)
//     = (z^beta + x z^(beta - 1) (expm1((beta - 1) L) / (beta - 1) - 1)) / beta;
// the first has no cancellation near beta = 0, the second none near 1.  Entries x > 0 with z = 0,
// whose loss is infinite for beta < 1, are left out there.  NaN counts nothing.
struct BetaLoss {
  static constexpr bool missing_is_zero = false;
  double beta;
  bool rest;

  template <class T>
  double of(const T* values, const T* models, const T* weights, Eigen::Index size) const {
    using detail::Run;
    const double floor = static_cast<double>(tiny<T>());
    const Run x = detail::run_of(values, size);
    const Run given = detail::run_of(models, size);
    const Run z = given.max(floor);
    const Run log_z = z.log();
    const Run reached = (given > floor).select(Run::Ones(size), 0.0);
    const Run power = (beta * log_z).exp();
    const Run of_z = beta > 0.0 ? Run(reached * power / beta) : Run(Run::Zero(size));
    const Run counts = (x > 0.0).select(beta > 1.0 ? Run(Run::Ones(size)) : reached, 0.0);
    const Run ratio = (counts > 0.0).select(x, z) / z;
    const Run logs = ratio.min(std::numeric_limits<double>::max()).log();
    Run loss(size);
    if (beta <= 0.5) {
      const Run first = beta == 0.0 ? logs : Run((beta * logs).expm1() / beta);
      loss = power * (first - logs.expm1()) / (beta - 1.0) - of_z;
    } else {
      const double b = beta - 1.0;
      const Run second = b == 0.0 ? logs : Run((b * logs).expm1() / b);
      loss = x * (b * log_z).exp() * (second - 1.0) / beta;
    }
    loss = (counts > 0.0).select(loss, 0.0);
    if (!rest) {
      loss = (x == x).select(loss + of_z, 0.0);
    }
    return weights == nullptr ? loss.sum() : (detail::run_of(weights, size) * loss).sum();
  }
};

// Calls body with the loss as an object.
template <class Body>
auto visit_loss(EntryLoss loss, const Body& body) {
  switch (loss.kind) {
    case EntryLoss::kKullbackLeibler:
      return body(KullbackLeiblerLoss{});
    case EntryLoss::kUnreached:
      return body(UnreachedLoss{});
    case EntryLoss::kFrobenius:
      return body(FrobeniusLoss{});
    case EntryLoss::kBeta:
      return body(BetaLoss{loss.beta, loss.rest});
  }
  throw std::invalid_argument("unknown loss");
}

}  // namespace ssnmf
