// Rows of the result of a pass of which few components are asked for.
#pragma once

#include <algorithm>
#include <iterator>

#include "entry_rows.hpp"
#include "few_components.hpp"
#include "operations.hpp"

namespace ssnmf {

// Which rows of a pass over rows of G are narrow: those with few components in `asked`.
template <class T>
class NarrowRows {
 public:
  template <class Op>
  NarrowRows(const Op& op, const Csr<T>& Z, const Rows<const T>& G, const Support& asked)
      : op_(&op),
        Z_(Z),
        G_(G),
        asked_(asked),
        most_(most_few(G.columns)),
        adds_{&add<1, Op>, &add<2, Op>, &add<4, Op>, &add<8, Op>, &add<kWidest, Op>} {}

  // Whether the row is one of them, and is done.  f is 0 in the other components.
  bool run(Range entries, const T* f, Size row, const Target<T>& to) const {
    Component given[kMostFew];
    const int count = components_of(asked_.row(row), G_.columns, most_, given);
    if (count < 0) {
      return false;
    }
    if (!to.accumulate) {
      std::fill_n(to.out.row(row), to.out.columns, T(0));
    }
    if (count == 0) {
      return true;
    }
    Size places[kWidest];
    T own[kWidest];
    for (int a = 0; a < kWidest; ++a) {
      places[a] = given[a < count ? a : 0];
      own[a] = f != nullptr && a < count ? f[places[a]] : T(0);
    }
    const Add add_part = adds_[width_for(count)];
    double total[kWidest] = {};
    for (Size begin = entries.begin; begin < entries.end; begin += kEntriesPerSum) {
      add_part(*this, {begin, std::min(begin + kEntriesPerSum, entries.end)}, places, own, total);
    }
    T* out = to.out.row(row);
    for (int a = 0; a < count; ++a) {
      out[places[a]] += to.scale * static_cast<T>(total[a]);
    }
    return true;
  }

 private:
  static constexpr int kWidest = static_cast<int>(kMostFew);

  // Adds the sum over some entries, of the components at `places`, to the total.
  using Add = void (*)(const NarrowRows& self, Range entries, const Size* places, const T* own,
                       double* total);

  template <int Width, class Op>
  SSNMF_FLATTEN static void add(const NarrowRows& self, Range entries, const Size* places,
                                const T* own, double* total) {
    const Op& op = *static_cast<const Op*>(self.op_);
    Size at[Width];
    T f[Width];
    std::copy_n(places, Width, at);
    std::copy_n(own, Width, f);
    T sum[Width] = {};
    for (Size entry = entries.begin; entry < entries.end; ++entry) {
      const T* g = self.G_.row(static_cast<Size>(self.Z_.indices[entry]));
      T here[Width];
      T model = T(0);
      for (int a = 0; a < Width; ++a) {
        here[a] = g[at[a]];
        model += f[a] * here[a];
      }
      const T coefficient = op.coefficient(self.Z_.value(entry), model);
      for (int a = 0; a < Width; ++a) {
        sum[a] += coefficient * here[a];
      }
    }
    for (int a = 0; a < Width; ++a) {
      total[a] += static_cast<double>(sum[a]);
    }
  }

  const void* op_;
  Csr<T> Z_;
  Rows<const T> G_;
  Support asked_;
  Size most_;
  Add adds_[std::size(kFewWidths)];
};

}  // namespace ssnmf
