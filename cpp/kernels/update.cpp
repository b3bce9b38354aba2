#include "update.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../core/numbers.hpp"
#include "../core/parallel.hpp"
#include "factor_ops.hpp"
#include "square.hpp"

namespace ssnmf {
namespace {

constexpr double kSafeSquare = 1e-280;  // below, squares may have lost digits to underflow

// Positive root of the majorizer's derivative.  Computed in double: the squares would overflow
// float.  Where n2 vanishes so does p2, and the equation is linear.
double mixed_step(double p2, double n2, double p1, double n1, double floor) {
  if (n2 <= floor) {
    return (2.0 * p2 + p1) / (2.0 * n2 + n1);
  }
  const double b = 2.0 * p2 - n1;
  const double square = b * b + 8.0 * n2 * p1;
  const double q = square > kSafeSquare
                       ? std::sqrt(square)
                       : std::hypot(b, std::sqrt(8.0) * std::sqrt(n2) * std::sqrt(p1));
  if (b > 0.0) {
    return (b + q) / (4.0 * n2);
  }
  return q - b > 0.0 ? 2.0 * p1 / (q - b) : 0.0;
}

using simd::Packet;

// A register of the next entries, of which there are `left`, and of zeros after them.
template <class T>
SSNMF_INLINE Packet<T> next_of(const T* entries, Size left) {
  constexpr Size lanes = kRegisterLanes<T>;
  if (left >= lanes) {
    return simd::ploadu<Packet<T>>(entries);
  }
  T filled[lanes] = {};
  std::copy_n(entries, left, filled);
  return simd::ploadu<Packet<T>>(filled);
}

template <class T>
SSNMF_INLINE void store_next(const Packet<T>& lanes, Size left, T* entries) {
  if (left >= kRegisterLanes<T>) {
    simd::pstoreu(entries, lanes);
    return;
  }
  T all[kRegisterLanes<T>];
  simd::pstoreu(all, lanes);
  std::copy_n(all, left, entries);
}

// Calls step(i) for every row of F; `work` is that of an entry.
template <class T, class Step>
void for_rows(const Rows<T>& F, Size work, int threads, const Step& step) {
  const EvenBlocks blocks(F.rows, kRowsPerBlock);
  const int team = useful_threads(work * F.rows * F.columns, threads);
  parallel_for(blocks.count(), team, [&](Size block) {
    for (Size i = blocks[block].begin; i < blocks[block].end; ++i) {
      step(i);
    }
  });
}

// The step of the papers' rule, which is that of the majorizer where all terms have one kind of it.
// A positive entry with a positive step stays at or above the floor: it must neither become a
// denormal number nor be locked at zero by underflow.
template <bool Squared, bool Divergence, class T>
void ratio_update(const Rows<T>& F, const Pulls<T>& squared, const Pulls<T>& divergence,
                  double relaxation, int threads) {
  using namespace simd;
  const Packet<T> zero = pset1<Packet<T>>(T(0));
  const Packet<T> one = pset1<Packet<T>>(T(1));
  const Packet<T> floor = pset1<Packet<T>>(tiny<T>());
  const Packet<T> weight = pset1<Packet<T>>(static_cast<T>(relaxation));
  // What up adds to down keeps the ratio from overflow, and is below its rounding else: a shorter
  // step to the minimizer is a descent, too.
  const Packet<T> bound = pset1<Packet<T>>(T(4) / std::numeric_limits<T>::max());
  for_rows(F, 4, threads, [&](Size i) {
    for (Size k = 0; k < F.columns; k += kRegisterLanes<T>) {
      const Size left = F.columns - k;
      Packet<T> up = zero;
      Packet<T> down = zero;
      if constexpr (Squared) {
        up = next_of(squared.up.row(i) + k, left);
        up = padd(up, up);
        down = pmax(next_of(row_or_only(squared.down, i) + k, left), zero);
        down = padd(down, down);
      }
      if constexpr (Divergence) {
        up = padd(up, next_of(divergence.up.row(i) + k, left));
        down = padd(down, pmax(next_of(row_or_only(divergence.down, i) + k, left), zero));
      }
      const Packet<T> ratio = pdiv(up, pmadd(bound, up, down));
      const Packet<T> t = pselect(pcmp_lt(floor, down), ratio, one);
      const Packet<T> further = pmul(pmul(weight, psub(t, one)), pmin(t, one));
      const Packet<T> step = padd(t, further);
      const Packet<T> f = next_of(F.row(i) + k, left);
      const Packet<T> stays = pand(pcmp_lt(zero, f), pcmp_lt(zero, step));
      store_next(pmax(pmul(f, step), pand(stays, floor)), left, F.row(i) + k);
    }
  });
}

}  // namespace

template <class T>
void update(const Rows<T>& F, const Pulls<T>& squared, const Pulls<T>& divergence, bool majorize,
            double relaxation, int threads) {
  if (!squared.present()) {
    return ratio_update<false, true>(F, squared, divergence, relaxation, threads);
  }
  if (!divergence.present()) {
    return ratio_update<true, false>(F, squared, divergence, relaxation, threads);
  }
  if (!majorize) {
    return ratio_update<true, true>(F, squared, divergence, relaxation, threads);
  }
  for_rows(F, 4, threads, [&](Size i) {
    const double floor = static_cast<double>(tiny<T>());
    for (Size k = 0; k < F.columns; ++k) {
      const double n2 = static_cast<double>(std::max(row_or_only(squared.down, i)[k], T(0)));
      const double n1 = static_cast<double>(std::max(row_or_only(divergence.down, i)[k], T(0)));
      const double p2 = static_cast<double>(squared.up.row(i)[k]);
      const double p1 = static_cast<double>(divergence.up.row(i)[k]);
      const double t = 2.0 * n2 + n1 > floor ? mixed_step(p2, n2, p1, n1, floor) : 1.0;
      const double step = over_relaxed(t, relaxation);
      T& f = F.row(i)[k];
      const T least = f > T(0) && step > 0.0 ? tiny<T>() : T(0);
      f = std::max(static_cast<T>(static_cast<double>(f) * step), least);
    }
  });
}

template <class T>
void extrapolate(const Rows<T>& F, const Rows<T>& before, double step, bool positive, int threads) {
  using namespace simd;
  const Packet<T> zero = pset1<Packet<T>>(T(0));
  const Packet<T> factor = pset1<Packet<T>>(static_cast<T>(step));
  for_rows(F, 1, threads, [&](Size i) {
    for (Size k = 0; k < F.columns; k += kRegisterLanes<T>) {
      const Size left = F.columns - k;
      const Packet<T> here = next_of(F.row(i) + k, left);
      const Packet<T> fall = pmul(factor, psub(next_of(before.row(i) + k, left), here));
      const Packet<T> on = psub(here, fall);
      const Packet<T> lower = positive ? pmul(here, pdiv(here, padd(here, fall))) : pmax(on, zero);
      store_next(pselect(pcmp_lt(zero, fall), lower, on), left, F.row(i) + k);
      store_next(here, left, before.row(i) + k);
    }
  });
}

#define SSNMF_INSTANTIATE(T)                                                                    \
  template void update<T>(const Rows<T>&, const Pulls<T>&, const Pulls<T>&, bool, double, int); \
  template void extrapolate<T>(const Rows<T>&, const Rows<T>&, double, bool, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
