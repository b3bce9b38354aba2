#include "update.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "../core/numbers.hpp"
#include "../core/parallel.hpp"
#include "factor_ops.hpp"

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

// Applies t.  A positive entry with a positive t stays at or above the floor: it must neither
// become a denormal number nor be locked at zero by underflow.
template <class T, class Number>
T stepped(T entry, Number step) {
  const T moved = static_cast<T>(static_cast<Number>(entry) * step);
  return moved < tiny<T>() && entry > T(0) && step > Number(0) ? tiny<T>() : moved;
}

// The pulls of a block of rows after the other.  One row that pulls all rows down is repeated for a
// block, so that the loop over entries is the same.
template <class T>
class BlockPulls {
 public:
  BlockPulls(const Pulls<T>& pulls, const Rows<T>& F) : pulls_(pulls), columns_(F.columns) {
    if (pulls.present() && pulls.same_down) {
      const Size rows = std::min(F.rows, kRowsPerBlock);
      for (Size i = 0; i < rows; ++i) {
        repeated_.insert(repeated_.end(), pulls.down, pulls.down + columns_);
      }
    }
  }

  // Those from a row on, by entries.
  Pulls<T> from(Size row) const {
    if (!pulls_.present()) {
      return {};
    }
    const Size entry = row * columns_;
    return {pulls_.up + entry, pulls_.same_down ? repeated_.data() : pulls_.down + entry};
  }

 private:
  Pulls<T> pulls_;
  Size columns_;
  std::vector<T> repeated_;
};

// make_step(squared, divergence) gives the step of an entry by these pulls of a block.
template <class T, class MakeStep>
void update_entries(const Rows<T>& F, const Pulls<T>& squared, const Pulls<T>& divergence,
                    double relaxation, int threads, const MakeStep& make_step) {
  const EvenBlocks blocks(F.rows, kRowsPerBlock);
  const int team = useful_threads(4 * F.rows * F.columns, threads);
  const BlockPulls<T> all_squared(squared, F);
  const BlockPulls<T> all_divergence(divergence, F);
  parallel_for(blocks.count(), team, [&](Size block) {
    const Range range = blocks[block];
    const auto step = make_step(all_squared.from(range.begin), all_divergence.from(range.begin));
    T* f = F.row(range.begin);
    const Size count = (range.end - range.begin) * F.columns;
    for (Size e = 0; e < count; ++e) {
      const auto t = step(e);
      f[e] = stepped(f[e], over_relaxed(t, static_cast<decltype(step(e))>(relaxation)));
    }
  });
}

// The step of the papers' rule, which is that of the majorizer where all terms have one kind of it.
// (Known to the compiler which pulls there are, the loop has no branches, at a tenth of the time.)
template <bool Squared, bool Divergence, class T>
void ratio_update(const Rows<T>& F, const Pulls<T>& squared, const Pulls<T>& divergence,
                  double relaxation, int threads) {
  // What up adds to down keeps the ratio from overflow, and is below its rounding else: a shorter
  // step to the minimizer is a descent, too.
  const T bound = T(4) / std::numeric_limits<T>::max();
  const auto make_step = [bound](const Pulls<T>& two, const Pulls<T>& one) {
    return [=](Size e) {
      T up = T(0);
      T down = T(0);
      if constexpr (Squared) {
        up += T(2) * two.up[e];
        down += T(2) * std::max(two.down[e], T(0));
      }
      if constexpr (Divergence) {
        up += one.up[e];
        down += std::max(one.down[e], T(0));
      }
      const T ratio = up / (down + bound * up);
      return down > tiny<T>() ? ratio : T(1);
    };
  };
  update_entries(F, squared, divergence, relaxation, threads, make_step);
}

}  // namespace

template <class T>
void update(const Rows<T>& F, const Pulls<T>& squared, const Pulls<T>& divergence, bool majorize,
            double relaxation, int threads) {
  if (!squared.present()) {
    ratio_update<false, true>(F, squared, divergence, relaxation, threads);
  } else if (!divergence.present()) {
    ratio_update<true, false>(F, squared, divergence, relaxation, threads);
  } else if (!majorize) {
    ratio_update<true, true>(F, squared, divergence, relaxation, threads);
  } else {
    const double floor = static_cast<double>(tiny<T>());
    const auto make_step = [floor](const Pulls<T>& two, const Pulls<T>& one) {
      return [=](Size e) {
        const double n2 = static_cast<double>(std::max(two.down[e], T(0)));
        const double n1 = static_cast<double>(std::max(one.down[e], T(0)));
        const double p2 = static_cast<double>(two.up[e]);
        const double p1 = static_cast<double>(one.up[e]);
        return 2.0 * n2 + n1 > floor ? mixed_step(p2, n2, p1, n1, floor) : 1.0;
      };
    };
    update_entries(F, squared, divergence, relaxation, threads, make_step);
  }
}

template <class T>
void extrapolate(const Rows<T>& F, const Rows<T>& before, double step, bool positive, int threads) {
  const EvenBlocks blocks(F.rows, kRowsPerBlock);
  const int team = useful_threads(F.rows * F.columns, threads);
  const T factor = static_cast<T>(step);
  parallel_for(blocks.count(), team, [&](Size block) {
    const Range range = blocks[block];
    for (Size e = range.begin * F.columns; e < range.end * F.columns; ++e) {
      const T here = F.data[e];
      const T fall = factor * (before.data[e] - here);
      const T lower = positive ? here * (here / (here + fall)) : std::max(T(0), here - fall);
      F.data[e] = fall > T(0) ? lower : here - fall;
      before.data[e] = here;
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
