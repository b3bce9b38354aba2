#include "moments.hpp"

#include <algorithm>
#include <cmath>

#include "../core/parallel.hpp"
#include "square.hpp"

namespace ssnmf {
namespace {

constexpr Size kRun = 4096;  // entries that are summed by themselves, so that rounding stays small
constexpr Size kEntriesPerBlock = 65536;

// Sums side by side, few enough for the registers.
template <class T>
constexpr int kPlaces = std::max(8, kRegisterLanes<T>);

template <class T>
void add_entry(T value, Moments& sum) {
  const bool known = value == value;
  const double x = known ? static_cast<double>(value) : 0.0;
  sum += {known ? x : sum.least, known ? x : sum.largest, !known, value != T(0), x, x * x};
}

// The moments of neighbors, a multiple of kPlaces, if none of them is NaN; else the sum of squares
// is NaN.
template <class T>
Moments moments_of_known(const T* values, Size size) {
  using namespace simd;
  constexpr int lanes = kRegisterLanes<T>;
  constexpr int count = kPlaces<T> / lanes;
  Packet<T> lowest[count], largest[count], zeros[count];  // lowest: the negative of the least
  std::fill_n(lowest, count, pset1<Packet<T>>(-values[0]));
  std::fill_n(largest, count, pset1<Packet<T>>(values[0]));
  std::fill_n(zeros, count, pset1<Packet<T>>(T(0)));
  const Packet<T> zero = pset1<Packet<T>>(T(0)), one = pset1<Packet<T>>(T(1));
  double sum[kPlaces<T>] = {}, squares[kPlaces<T>] = {};
  for (Size e = 0; e < size; e += kPlaces<T>) {
    for (int k = 0; k < count; ++k) {
      const Packet<T> value = ploadu<Packet<T>>(values + e + k * lanes);
      lowest[k] = pmax(lowest[k], psub(zero, value));
      largest[k] = pmax(largest[k], value);
      zeros[k] = padd(zeros[k], pand(pcmp_eq(value, zero), one));
    }
    for (int k = 0; k < kPlaces<T>; ++k) {
      const double value = static_cast<double>(values[e + k]);
      sum[k] += value;
      squares[k] += value * value;
    }
  }
  Moments found;
  for (int k = 0; k < kPlaces<T>; ++k) {
    const auto lane = [&](const Packet<T>* all) {
      T numbers[lanes];
      pstoreu(numbers, all[k / lanes]);
      return numbers[k % lanes];
    };
    found += {0.0 - static_cast<double>(lane(lowest)),
              static_cast<double>(lane(largest)),
              0,
              -static_cast<Size>(lane(zeros)),
              sum[k],
              squares[k]};
  }
  found.nonzero += size;
  return found;
}

}  // namespace

template <class T>
Moments dense_moments(const Dense<T>& Z, int threads) {
  Dense<T> lines = Z;
  if (std::abs(Z.row_stride) < std::abs(Z.column_stride)) {
    lines = {Z.data, Z.columns, Z.rows, Z.column_stride, Z.row_stride};
  }
  const Size all = lines.rows * lines.columns;
  if (lines.column_stride == 1 && lines.row_stride == lines.columns) {  // one line, cut evenly
    lines = {Z.data, (all + kRun - 1) / kRun, kRun, kRun, 1};
  }
  const EvenBlocks blocks(lines.rows, kEntriesPerBlock / std::max<Size>(lines.columns, 1));
  const ArithmeticMode callers = arithmetic_mode();
  return ordered_sum(blocks.count(), useful_threads(all, threads), [&](Size block) {
    const ArithmeticScope with_denormals(callers);  // a negative number is one, however small
    Moments part;
    for (Size i = blocks[block].begin; i < blocks[block].end; ++i) {
      const Size length = std::min(lines.columns, all - i * lines.columns);
      for (Size j = 0; j < length; j += kRun) {
        const T* from = lines.data + i * lines.row_stride + j * lines.column_stride;
        const Size size = std::min(kRun, length - j);
        Size done = lines.column_stride == 1 ? size / kPlaces<T> * kPlaces<T> : 0;
        Moments run;
        if (done > 0) {
          run = moments_of_known(from, done);
          if (std::isnan(run.squares)) {
            run = Moments{};
            done = 0;
          }
        }
        for (; done < size; ++done) {
          add_entry(from[done * lines.column_stride], run);
        }
        part += run;
      }
    }
    return part;
  });
}

template Moments dense_moments<float>(const Dense<float>&, int);
template Moments dense_moments<double>(const Dense<double>&, int);

}  // namespace ssnmf
