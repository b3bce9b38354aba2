#include "entry_losses.hpp"

#include <Eigen/Core>
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

// Values x with their models, of which those up to `floor` vanish, and weights or nothing.
struct Entries {
  Run x;
  Run model;
  Run weights;
  double floor;

  double weighted_sum(const Run& terms) const {
    return weights.size() == 0 ? terms.sum() : (weights * terms).sum();
  }
};

// Sum of x log(x/z) - x, with 0 log 0 = 0.  (No branch and no select, which Eigen would take entry
// by entry.)
double kullback_leibler(const Entries& e) {
  const Run z = e.model.max(e.floor);
  using Limits = std::numeric_limits<double>;
  return (e.x * (e.x / z).max(Limits::min()).min(Limits::max()).log() - e.x).sum();
}

// What of that sum belongs to entries whose model vanishes.  Multiplicative updates keep it so:
// this part is constant.
double unreached(Entries e) {
  for (Size i = 0; i < e.x.size(); ++i) {
    e.x(i) = e.model(i) > e.floor ? 0.0 : e.x(i);
  }
  e.model.setZero();
  return kullback_leibler(e);
}

// Sum of w (x - z)^2.
double frobenius(const Entries& e) {
  const Run residual = e.x - e.model;
  return e.weighted_sum((e.x == e.x).select(residual.square(), 0.0));
}

// Sum of w d(x, z) or w (d(x, z) - z^beta / beta).  With L = log(x/z),
//   d = z^beta (expm1(beta L) / beta - expm1(L)) / (beta - 1)
//     = (z^beta + x z^(beta - 1) (expm1((beta - 1) L) / (beta - 1) - 1)) / beta;
// the first has no cancellation near beta = 0, the second none near 1.  Entries x > 0 with z = 0,
// whose loss is infinite for beta < 1, are left out there.
double beta_divergence(const Entries& e, double beta, bool rest) {
  const Run& x = e.x;
  const Size size = x.size();
  const Run z = e.model.max(e.floor);
  const Run log_z = z.log();
  const Run reached = (e.model > e.floor).select(Run::Ones(size), 0.0);
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
  return e.weighted_sum(loss);
}

double sum_of(const EntryLoss& loss, const Entries& entries) {
  switch (loss.kind) {
    case EntryLoss::kKullbackLeibler:
      return kullback_leibler(entries);
    case EntryLoss::kUnreached:
      return unreached(entries);
    case EntryLoss::kFrobenius:
      return frobenius(entries);
    case EntryLoss::kBeta:
      return beta_divergence(entries, loss.beta, loss.rest);
  }
  throw std::invalid_argument("unknown loss");
}

}  // namespace

template <class T>
double loss_of_run(const EntryLoss& loss, const T* values, const T* models, const T* weights,
                   Size size) {
  Entries entries{run_of(values, size), run_of(models, size), Run(), tiny<T>()};
  if (weights != nullptr) {
    entries.weights = run_of(weights, size);
  }
  return sum_of(loss, entries);
}

template double loss_of_run<float>(const EntryLoss&, const float*, const float*, const float*,
                                   Size);
template double loss_of_run<double>(const EntryLoss&, const double*, const double*, const double*,
                                    Size);

}  // namespace ssnmf
