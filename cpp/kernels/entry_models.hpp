// The model f . g of the entries of a row.
#pragma once

#include <functional>
#include <type_traits>

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
using FindModels = std::function<void(const T* f, Size first, Size count, T* models)>;

namespace detail {

template <int R, class T, class Gather>
SSNMF_FLATTEN void models_of(const Gather& gather, const T* f, Size first, Size count, T* models) {
  // A copy of what is cheap to copy: the compiler knows that nothing changes it.
  const std::conditional_t<Gather::in_place, Gather, const Gather&> local = gather;
  entry_models<R, Gather::known_ranks ? kColumnBlock : kNarrowestRank>(local, f, first, count,
                                                                       models);
}

}  // namespace detail

template <class T, class Gather>
FindModels<T> find_models(const Gather& gather) {
  auto found = &detail::models_of<0, T, Gather>;
  if constexpr (Gather::known_ranks) {
    visit_rank<T>(gather.rank(), [&found](auto fixed) {
      found = &detail::models_of<decltype(fixed)::value, T, Gather>;
    });
  }
  return [&gather, found](const T* f, Size first, Size count, T* models) {
    found(gather, f, first, count, models);
  };
}

// Compiled once.
extern template FindModels<float> find_models<float>(const ColumnRows<float>&);
extern template FindModels<double> find_models<double>(const ColumnRows<double>&);

}  // namespace ssnmf
