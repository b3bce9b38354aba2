// The model f . g of the entries of a row.
#pragma once

#include "../core/compiler.hpp"
#include "entry_rows.hpp"
#include "register_row.hpp"
#include "row_batch.hpp"

namespace ssnmf {

// Of one entry.  R is the rank where the compiler knows it, else 0, and any multiple of Width will
// do.
template <int R, int Width, class T, class Gather>
SSNMF_INLINE T entry_model(const Gather& gather, const T* f, Size entry) {
  if constexpr (R > 0) {
    using Row = RegisterRow<T, R>;
    return Row::dot(f, gather.template packets<typename Row::Packet, R>(entry));
  } else {
    RegisterRow<T, Width> sum;
    const auto row = gather.template packets<typename RegisterRow<T, Width>::Packet, 0>(entry);
    for (Size k = 0; k < gather.rank(); k += Width) {
      sum.add_products(f + k, [&](Size l) { return row(k + l); });
    }
    return sum.sum();
  }
}

// models[e] = f . g of entry first + e, for entries of one row, whose vector is f.
template <int R, int Width, class T, class Gather>
SSNMF_INLINE void entry_models(const Gather& gather, const T* f, Size first, Size count,
                               T* models) {
  Size e = 0;
  if constexpr (R > 0 && (Gather::in_place || RowBatch<T, R>::fits)) {
    constexpr int size = RowBatch<T, R>::size;
    for (; e + size <= count; e += size) {
      gather.template prefetch<R>(first + e, size);
      RowBatch<T, R>().dots(f, gather, first + e, size, models + e);
    }
  }
  for (; e < count; ++e) {
    gather.template prefetch<R>(first + e, 1);
    models[e] = entry_model<R, Width>(gather, f, first + e);
  }
}

// The same for a rank that the caller does not know.
template <class T>
using FindModels = void (*)(const ColumnRows<T>& gather, const T* f, Size first, Size count,
                            T* models);
template <class T>
FindModels<T> find_models(Size rank);

}  // namespace ssnmf
