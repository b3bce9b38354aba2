#include "entry_losses.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <limits>
#include <stdexcept>

#include "../core/numbers.hpp"

namespace ssnmf {
namespace {

using Run = Eigen::Array<double, Eigen::Dynamic, 1, 0, static_cast<int>(kLossRun), 1>;

template <class T>
Run run_of(const T* data, Size size) {
  return Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>(data, size).template cast<double>();
}

// Sum of x log(x/z) - x, with 0 log 0 = 0; a missing entry is to be read as 0.  At most kLossRun
// entries.  (No branch and no select, which Eigen would take entry by entry.)
struct KullbackLeiblerLoss {
  double least = 0.0;

  template <class T>
  double of(const T* values, const T* models, const T*, Size size) const {
    Run x = run_of(values, size);
    if (least > 0.0) {
      x = (x > least).select(x, 0.0);
    }
    const Run z = run_of(models, size).max(std::max(static_cast<double>(tiny<T>()), least));
    using Limits = std::numeric_limits<double>;
    return (x * (x / z).max(Limits::min()).min(Limits::max()).log() - x).sum();
  }
};

// What of that sum belongs to entries whose model vanishes.  Multiplicative updates keep it so:
// this part is constant.
struct UnreachedLoss {
  template <class T>
  double of(const T* values, const T* models, const T* weights, Size size) const {
    T unreached[kLossRun];
    T none[kLossRun] = {};
    for (Size e = 0; e < size; ++e) {
      unreached[e] = models[e] > tiny<T>() ? T(0) : values[e];
    }
    return KullbackLeiblerLoss{}.of(unreached, none, weights, size);
  }
};

// Sum of w (x - z)^2; weights == nullptr stands for ones, NaN counts nothing.
struct FrobeniusLoss {
  template <class T>
  double of(const T* values, const T* models, const T* weights, Size size) const {
    const Run x = run_of(values, size);
    // The larger number of NaN and 0 is 0: again no select.
    const Run squares =
        (x - run_of(models, size)).square().template max<Eigen::PropagateNumbers>(0.0);
    return weights == nullptr ? squares.sum() : (run_of(weights, size) * squares).sum();
  }
};

// Sum of w d(x, z) or w (d(x, z) - z^beta / beta).  With L = log(x/z),
//   d = z^beta (expm1(beta L) / beta - expm1(L)) / (beta - 1)
//     = (z^beta + x z^(beta - 1) (expm1((beta - 1) L) / (beta - 1) - 1)) / beta;
// the first has no cancellation near beta = 0, the second none near 1.  For beta < 1, the loss of
// x > 0 is infinite at z = 0.  NaN counts nothing.
struct BetaLoss {
  double beta;
  bool rest;
  double least;

  template <class T>
  double of(const T* values, const T* models, const T* weights, Size size) const {
    const double floor = static_cast<double>(tiny<T>());
    const Run x = run_of(values, size);
    const Run given = run_of(models, size);
    const Run z = given.max(std::max(floor, least));
    const Run log_z = z.log();
    const Run power = (beta * log_z).exp();
    const Run counts = (x > least).select(Run::Ones(size), 0.0);
    const Run ratio = (counts > 0.0).select(x, z) / z;
    const Run logs = ratio.min(std::numeric_limits<double>::max()).log();
    Run loss(size);
    if (beta <= 0.5) {
      const Run first = beta == 0.0 ? logs : Run((beta * logs).expm1() / beta);
      loss = power * (first - logs.expm1()) / (beta - 1.0);
      if (beta > 0.0) {
        loss -= power / beta;
      }
    } else {
      const double b = beta - 1.0;
      const Run second = b == 0.0 ? logs : Run((b * logs).expm1() / b);
      loss = x * (b * log_z).exp() * (second - 1.0) / beta;
    }
    if (beta < 1.0 && least == 0.0) {
      loss = (given > 0.0).select(loss, std::numeric_limits<double>::infinity());
    }
    loss = (counts > 0.0).select(loss, 0.0);
    if (!rest && beta > 0.0) {
      const Run of_z = least > floor ? Run((beta * given.max(floor).log()).exp()) : power;
      loss += (given > floor).select(of_z / beta, 0.0);
    }
    if (!rest) {
      loss = (x == x).select(loss, 0.0);
    }
    if (weights == nullptr) {
      return loss.sum();
    }
    const Run w = run_of(weights, size);
    return (w > 0.0).select(w * loss, 0.0).sum();
  }
};

}  // namespace

template <class T>
double loss_of_run(const EntryLoss& loss, const T* values, const T* models, const T* weights,
                   Size size) {
  switch (loss.kind) {
    case EntryLoss::kKullbackLeibler:
      return KullbackLeiblerLoss{loss.least}.of(values, models, weights, size);
    case EntryLoss::kUnreached:
      return UnreachedLoss{}.of(values, models, weights, size);
    case EntryLoss::kFrobenius:
      return FrobeniusLoss{}.of(values, models, weights, size);
    case EntryLoss::kBeta:
      return BetaLoss{loss.beta, loss.rest, loss.least}.of(values, models, weights, size);
  }
  throw std::invalid_argument("unknown loss");
}

template double loss_of_run<float>(const EntryLoss&, const float*, const float*, const float*,
                                   Size);
template double loss_of_run<double>(const EntryLoss&, const double*, const double*, const double*,
                                    Size);

}  // namespace ssnmf
