// The multiplicative steps F <- F .* t.
//
// (P2, N2) are the pulls of the Frobenius terms, (P1, N1) those of the Kullback-Leibler terms.
//   mu: t = (2 P2 + P1) / (2 N2 + N1)                       Haddock et al. 2020, Algorithms 1-3
//   mm: 2 N2 t^2 + (N1 - 2 P2) t - P1 = 0, the root t > 0   minimizes the separable majorizer
// With one kind of loss both are the same.
//
// Over-relaxation by w in [0, 1] takes t + w (t - 1) min(t, 1) instead of t, up to 2 t - 1 above 1
// and t^2 below.  On the way from t to there the majorizer stays at or below its value at 1: for
// a u^2 + b u - c log u with its minimum at t,
//   t > 1: the third derivative is negative, so that it is flatter beyond t than before it;
//   t < 1: value(1) - value(t^2) = a (1 - t^2) (1 - t)^2 + c (1/t - t + 2 log t) >= 0.
// The objective falls all the same, and slow modes converge up to 1 + w times as fast.
#pragma once

#include <algorithm>

#include "../core/views.hpp"

namespace ssnmf {

template <class T>
struct Pulls {
  Rows<const T> up;
  Rows<const T> down;  // one row may hold for all

  bool present() const { return up.data != nullptr && down.data != nullptr; }
};

// The step that over-relaxation by w takes instead of t.
inline double over_relaxed(double t, double w) { return t + w * (t - 1.0) * std::min(t, 1.0); }

// Where nothing pulls down nothing pulls up either, and the entry stays.
template <class T>
void update(const Rows<T>& F, const Pulls<T>& squared, const Pulls<T>& divergence, bool majorize,
            double relaxation, int threads);

// F <- max(0, F + step (F - before)), before <- F.  `positive`: entries that fall are divided by
// 1 + step (before - F) / F instead, and none gets to zero.
template <class T>
void extrapolate(const Rows<T>& F, const Rows<T>& before, double step, bool positive, int threads);

}  // namespace ssnmf
