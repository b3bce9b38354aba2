#include "update.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "../core/numbers.hpp"
#include "../core/parallel.hpp"
#include "factor_ops.hpp"

namespace ssnmf {
namespace {

constexpr int kRun = 32;                // entries at once
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

template <class T>
using Run = Eigen::Array<T, kRun, 1>;

template <class T>
Run<T> repeated(T number) {
  return Run<T>::Constant(number);
}

// x where `tested` is above a bound, and y elsewhere.  (The loop has nothing else in it, since
// compilers make branches of choices among products.)
template <class T, class Number>
Run<T> above(Number bound, const Run<Number>& tested, const Run<T>& x, const Run<T>& y) {
  Run<T> result;
  for (int e = 0; e < kRun; ++e) {
    result(e) = tested(e) > bound ? x(e) : y(e);
  }
  return result;
}

// `count` entries, and zeros after them.
template <class T>
Run<T> run_of(const T* entries, Size count) {
  if (count == kRun) {
    return Eigen::Map<const Run<T>>(entries);
  }
  Run<T> result = Run<T>::Zero();
  std::copy(entries, entries + count, result.data());
  return result;
}

// Applies t.  A positive entry with a positive t stays at or above the floor: it must neither
// become a denormal number nor be locked at zero by underflow.
template <class T, class Number>
void step_entries(const Run<Number>& t, T* entries, Size count) {
  const Run<T> f = run_of(entries, count);
  const Run<T> zeros = repeated(T(0));
  const Run<T> floors = above(T(0), f, repeated(tiny<T>()), zeros);
  const Run<T> moved = (f.template cast<Number>() * t).template cast<T>();
  const Run<T> kept = moved.max(above(Number(0), t, floors, zeros));
  std::copy(kept.data(), kept.data() + count, entries);
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

// make_steps(squared, divergence) gives the steps of a block's entries by these pulls:
// steps(first, count) those of `count` entries from `first` on.
template <class T, class MakeSteps>
void update_entries(const Rows<T>& F, const Pulls<T>& squared, const Pulls<T>& divergence,
                    double relaxation, int threads, const MakeSteps& make_steps) {
  const EvenBlocks blocks(F.rows, kRowsPerBlock);
  const int team = useful_threads(4 * F.rows * F.columns, threads);
  const BlockPulls<T> all_squared(squared, F);
  const BlockPulls<T> all_divergence(divergence, F);
  parallel_for(blocks.count(), team, [&](Size block) {
    const Range range = blocks[block];
    const auto steps = make_steps(all_squared.from(range.begin), all_divergence.from(range.begin));
    const Size entries = (range.end - range.begin) * F.columns;
    for (Size first = 0; first < entries; first += kRun) {
      T* f = F.row(range.begin) + first;
      const Size count = std::min<Size>(kRun, entries - first);
      using Steps = decltype(steps(first, count));
      const Steps t = steps(first, count);
      const auto weight = static_cast<typename Steps::Scalar>(relaxation);
      step_entries(Steps(over_relaxed(t, weight)), f, count);
    }
  });
}

// The step of the papers' rule, which is that of the majorizer where all terms have one kind of it.
template <bool Squared, bool Divergence, class T>
void ratio_update(const Rows<T>& F, const Pulls<T>& squared, const Pulls<T>& divergence,
                  double relaxation, int threads) {
  // What up adds to down keeps the ratio from overflow, and is below its rounding else: a shorter
  // step to the minimizer is a descent, too.
  const T bound = T(4) / std::numeric_limits<T>::max();
  const auto make_steps = [bound](const Pulls<T>& two, const Pulls<T>& one) {
    return [=](Size first, Size count) {
      Run<T> up = Run<T>::Zero();
      Run<T> down = Run<T>::Zero();
      if constexpr (Squared) {
        up += T(2) * run_of(two.up + first, count);
        down += T(2) * run_of(two.down + first, count).max(T(0));
      }
      if constexpr (Divergence) {
        up += run_of(one.up + first, count);
        down += run_of(one.down + first, count).max(T(0));
      }
      return above<T>(tiny<T>(), down, Run<T>(up / (down + bound * up)), repeated(T(1)));
    };
  };
  update_entries(F, squared, divergence, relaxation, threads, make_steps);
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
    const auto make_steps = [floor](const Pulls<T>& two, const Pulls<T>& one) {
      return [=](Size first, Size count) {
        Run<double> t = Run<double>::Ones();
        for (Size e = 0; e < count; ++e) {
          const double n2 = static_cast<double>(std::max(two.down[first + e], T(0)));
          const double n1 = static_cast<double>(std::max(one.down[first + e], T(0)));
          const double p2 = static_cast<double>(two.up[first + e]);
          const double p1 = static_cast<double>(one.up[first + e]);
          t(e) = 2.0 * n2 + n1 > floor ? mixed_step(p2, n2, p1, n1, floor) : 1.0;
        }
        return t;
      };
    };
    update_entries(F, squared, divergence, relaxation, threads, make_steps);
  }
}

template <class T>
void extrapolate(const Rows<T>& F, const Rows<T>& before, double step, bool positive, int threads) {
  const EvenBlocks blocks(F.rows, kRowsPerBlock);
  const int team = useful_threads(F.rows * F.columns, threads);
  const T factor = static_cast<T>(step);
  parallel_for(blocks.count(), team, [&](Size block) {
    const Range range = blocks[block];
    const Size end = range.end * F.columns;
    for (Size first = range.begin * F.columns; first < end; first += kRun) {
      const Size count = std::min<Size>(kRun, end - first);
      const Run<T> here = run_of(F.data + first, count);
      const Run<T> fall = factor * (run_of(before.data + first, count) - here);
      const Run<T> on = here - fall;
      const Run<T> lower = positive ? Run<T>(here * (here / (here + fall))) : Run<T>(on.max(T(0)));
      const Run<T> to = above(T(0), fall, lower, on);
      std::copy(to.data(), to.data() + count, F.data + first);
      std::copy(here.data(), here.data() + count, before.data + first);
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
