#include "iterations.hpp"

#include <algorithm>

#include "coordinate_descent.hpp"
#include "factor_ops.hpp"
#include "matrices.hpp"
#include "update.hpp"

namespace ssnmf {
namespace {

// As in _solver/loop.py.
constexpr double kGrowth = 1.05;
constexpr double kLargestGrowth = 1.01;
constexpr double kShrink = 1.5;

template <class T>
Rows<const T> read(const Rows<T>& rows) {
  return {rows.data, rows.rows, rows.columns};
}

template <class T>
class Loop {
 public:
  Loop(const MatrixFit<T>& fit, const FactorUpdate& how, int threads)
      : fit_(fit), how_(how), threads_(threads), gram_(R(), R()), own_(R(), R()) {}

  void alternate() {
    update(true);
    update(false);
  }

  void extrapolate(std::array<double, 5>& momentum) {
    auto& [lowest, step, step_before, largest, on] = momentum;
    const Rows<T> accepted{fit_.N.data, fit_.A.rows, R()};
    copy(fit_.A, accepted);
    const double here = on != 0.0 ? step : 0.0;
    ssnmf::extrapolate<T>(fit_.S, fit_.before_S, here, false, threads_);
    update(true);
    ssnmf::extrapolate<T>(fit_.A, fit_.before_A, here, false, threads_);
    const double onward = std::min(largest, kGrowth * step);
    update(false);
    const double value = objective();
    if (value > lowest) {
      copy(accepted, fit_.A);
      copy(fit_.before_S, fit_.S);
      momentum = {lowest, step / kShrink, step_before, step_before, 0.0};
    } else {
      momentum = {value, onward, step, std::min(1.0, kLargestGrowth * largest), 1.0};
    }
  }

 private:
  Size R() const { return fit_.S.columns; }
  Rows<const T> gram_of(const Rows<T>& F, Matrix<T>& out) const {
    const Rows<T> K{out.data(), R(), R()};
    gram<T>(read(F), {}, K, threads_);
    return read(K);
  }
  static void copy(const Rows<T>& from, const Rows<T>& to) {
    std::copy_n(from.data, from.rows * from.columns, to.data);
  }

  void update(bool for_A) {
    const Rows<T>& F = for_A ? fit_.A : fit_.S;
    const Rows<T>& other = for_A ? fit_.S : fit_.A;
    const Factor<const T> G(read(other), "factor");
    const Rows<T> P{fit_.P.data, F.rows, R()};
    const Rows<T> N{fit_.N.data, F.rows, R()};
    const auto pass = [&](Operation operation, const T* model) {
      fit_.pass(for_A, operation, {model, F.rows, R()}, G, P);
    };
    if (how_.kind == FactorUpdate::kMultiplyByRatios) {
      pass(Operation::kRatio, F.data);
      column_sums<T>(G, {}, N.data, threads_);
      ssnmf::update<T>(F, {}, {read(P), {N.data, 1, R()}}, false, how_.relaxation, threads_);
      return;
    }
    const bool fills = how_.kind == FactorUpdate::kFillIn;
    pass(fills ? Operation::kResidual : Operation::kProduct, fills ? F.data : nullptr);
    const Rows<const T> K = gram_of(other, gram_);
    if (how_.kind == FactorUpdate::kMultiply) {
      multiply<T>(read(F), K, {}, {N}, threads_);
      ssnmf::update<T>(F, {read(P), read(N)}, {}, false, how_.relaxation, threads_);
      return;
    }
    if (fills) {
      multiply<T>(read(F), K, {}, {P, T(1), true}, threads_);
    }
    coordinate_descent<T>({K.data, nullptr, 1, R(), F.rows}, {}, {}, read(P), F, {}, how_.sweeps,
                          for_A ? how_.steps_of_A : how_.steps_of_S, threads_);
  }

  // After the update of S, by its P and the Gram matrix of A.
  double objective() {
    if (how_.kind == FactorUpdate::kFillIn) {
      return fit_.loss();
    }
    const double below = inner<T>({gram_.data(), R(), R()}, gram_of(fit_.S, own_), 1);
    const double above = inner<T>(read(fit_.S), {fit_.P.data, fit_.S.rows, R()}, threads_);
    const double value = std::max(fit_.squares - 2.0 * above + below, 0.0);
    const bool sums = fit_.loss != nullptr && value <= fit_.cancels * fit_.squares;
    return sums ? fit_.loss() : value;
  }

  const MatrixFit<T>& fit_;
  const FactorUpdate how_;
  const int threads_;
  Matrix<T> gram_;
  Matrix<T> own_;
};

}  // namespace

template <class T>
Momentum iterations(const MatrixFit<T>& fit, const FactorUpdate& update, Momentum momentum,
                    int count, int threads) {
  Loop<T> loop(fit, update, threads);
  for (int iteration = 0; iteration < count; ++iteration) {
    end_if_interrupted();
    if (momentum) {
      loop.extrapolate(*momentum);
    } else {
      loop.alternate();
    }
  }
  return momentum;
}

#define SSNMF_INSTANTIATE(T) \
  template Momentum iterations<T>(const MatrixFit<T>&, const FactorUpdate&, Momentum, int, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
