// Rows of the result of a pass of which few components are asked for.
#pragma once

#include <algorithm>

#include "entry_rows.hpp"
#include "few_components.hpp"
#include "operations.hpp"

namespace ssnmf {

// One row of the result, `count` components of it, no more than Width.
template <int Width, class Op, class T>
SSNMF_FLATTEN void narrow_row(const Op& op, const Csr<T>& Z, const T* f, const Rows<const T>& G,
                              Size row, const Component* given, int count, const Target<T>& to) {
  Size places[Width];
  T own[Width];
  double total[Width];
  for (int a = 0; a < Width; ++a) {
    places[a] = given[a < count ? a : 0];
    own[a] = Op::needs_model && a < count ? f[places[a]] : T(0);
    total[a] = 0.0;
  }
  const Size last = Z.indptr[row + 1];
  for (Size begin = Z.indptr[row]; begin < last; begin += kEntriesPerSum) {
    const Size end = std::min(begin + kEntriesPerSum, last);
    T sum[Width] = {};
    for (Size entry = begin; entry < end; ++entry) {
      const T* g = G.row(static_cast<Size>(Z.indices[entry]));
      T here[Width];
      T model = T(0);
      for (int a = 0; a < Width; ++a) {
        here[a] = g[places[a]];
        model += own[a] * here[a];
      }
      const T coefficient = op.coefficient(Z.value(entry), model);
      for (int a = 0; a < Width; ++a) {
        sum[a] += coefficient * here[a];
      }
    }
    for (int a = 0; a < Width; ++a) {
      total[a] += static_cast<double>(sum[a]);
    }
  }
  for (int a = 0; a < count; ++a) {
    to.store(row, static_cast<Size>(places[a]), static_cast<T>(total[a]));
  }
}

// Which rows of a pass over rows of G are narrow: those with few components in `asked`.
template <class T>
class NarrowRows {
 public:
  NarrowRows(const Rows<const T>& G, const Support& asked)
      : G_(G), asked_(asked), most_(most_few(G.columns)) {}

  // Whether the row is one of them, and is done.  f is 0 in the other components.
  template <class Op>
  bool run(const Op& op, const Csr<T>& Z, const T* f, Size row, const Target<T>& to) const {
    if (asked_.data == nullptr) {
      return false;
    }
    Component places[kMostFew];
    const int count = components_of(asked_.row(row), G_.columns, most_, places);
    if (count < 0) {
      return false;
    }
    if (!to.accumulate) {
      std::fill_n(to.out.row(row), to.out.columns, T(0));
    }
    if (count == 0) {
      return true;
    }
    const auto with = [&](auto width) {
      narrow_row<decltype(width)::value>(op, Z, f, G_, row, places, count, to);
    };
    if (count == 1) {
      with(FixedRank<1>{});
    } else if (count == 2) {
      with(FixedRank<2>{});
    } else if (count <= 4) {
      with(FixedRank<4>{});
    } else if (count <= 8) {
      with(FixedRank<8>{});
    } else {
      with(FixedRank<static_cast<int>(kMostFew)>{});
    }
    return true;
  }

 private:
  Rows<const T> G_;
  Support asked_;
  Size most_;
};

}  // namespace ssnmf
