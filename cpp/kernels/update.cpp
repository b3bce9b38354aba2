#include "update.hpp"

#include <algorithm>
#include <cmath>

#include "../core/numbers.hpp"
#include "../core/parallel.hpp"
#include "factor_ops.hpp"

namespace ssnmf {
namespace {

constexpr double kSafeSquare = 1e-280;  // below, squares may have lost digits to underflow

// Positive root of the majoriser's derivative.  Computed in double: the squares would overflow
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

// Applies t.  A positive entry with a positive t stays at or above the floor: it must neither
// become a denormal number nor be locked at zero by underflow.
template <class T>
T stepped(T entry, double step) {
  const T moved = static_cast<T>(static_cast<double>(entry) * step);
  return moved < tiny<T>() && entry > T(0) && step > 0.0 ? tiny<T>() : moved;
}

template <class T, class Step>
void update_entries(const Rows<T>& F, double relaxation, int threads, const Step& step) {
  const EvenBlocks blocks(F.rows, kRowsPerBlock);
  const int team = useful_threads(4 * F.rows * F.columns, threads);
  parallel_for(blocks.count(), team, [&](Size block) {
    const Range range = blocks[block];
    for (Size e = range.begin * F.columns; e < range.end * F.columns; ++e) {
      F.data[e] = stepped(F.data[e], over_relaxed(step(e), relaxation));
    }
  });
}

}  // namespace

template <class T>
void update(const Rows<T>& F, const Pulls<T>& squared, const Pulls<T>& divergence, bool majorise,
            double relaxation, int threads) {
  const double floor = static_cast<double>(tiny<T>());
  const auto at = [](const T* pull, Size e) {
    return pull == nullptr ? 0.0 : static_cast<double>(pull[e]);
  };
  if (squared.present() && divergence.present() && majorise) {
    update_entries(F, relaxation, threads, [&](Size e) {
      const double n2 = std::max(at(squared.down, e), 0.0);
      const double n1 = std::max(at(divergence.down, e), 0.0);
      const bool moves = 2.0 * n2 + n1 > floor;
      return moves ? mixed_step(at(squared.up, e), n2, at(divergence.up, e), n1, floor) : 1.0;
    });
    return;
  }
  update_entries(F, relaxation, threads, [&](Size e) {
    const double up = 2.0 * at(squared.up, e) + at(divergence.up, e);
    const double down =
        2.0 * std::max(at(squared.down, e), 0.0) + std::max(at(divergence.down, e), 0.0);
    return down > floor ? up / down : 1.0;
  });
}

template <class T>
void extrapolate(const Rows<T>& F, const Rows<T>& before, double step, int threads) {
  const EvenBlocks blocks(F.rows, kRowsPerBlock);
  const int team = useful_threads(F.rows * F.columns, threads);
  const T factor = static_cast<T>(step);
  parallel_for(blocks.count(), team, [&](Size block) {
    const Range range = blocks[block];
    for (Size e = range.begin * F.columns; e < range.end * F.columns; ++e) {
      const T here = F.data[e];
      F.data[e] = std::max(T(0), here + factor * (here - before.data[e]));
      before.data[e] = here;
    }
  });
}

#define SSNMF_INSTANTIATE(T)                                                                    \
  template void update<T>(const Rows<T>&, const Pulls<T>&, const Pulls<T>&, bool, double, int); \
  template void extrapolate<T>(const Rows<T>&, const Rows<T>&, double, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
