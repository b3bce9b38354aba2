#include "entry_rows.hpp"
#include "gathered_loss.hpp"
#include "passes.hpp"
#include "row_batch.hpp"

namespace ssnmf {
namespace {

// models[e] = f . g of entry first + e
template <int R, class T>
SSNMF_FLATTEN void models_of(const Csr<T>& Z, const T* f, const Rows<const T>& G, Size first,
                             Size count, T* models) {
  const ColumnRows<T> gather(Z, G);
  Size e = 0;
  if constexpr (R > 0) {
    constexpr int size = RowBatch<T, R>::size;
    for (; e + size <= count; e += size) {
      for (int i = 0; i < size; ++i) {
        gather.template prefetch<R>(first + e + i);
      }
      const auto row = [&](int i) { return gather.template row<R, R>(first + e + i).data(); };
      RowBatch<T, R>().dots(f, row, models + e);
    }
  }
  for (; e < count; ++e) {
    gather.template prefetch<R>(first + e);
    const T* g = gather.template row<R, kNarrowestRank>(first + e).data();
    if constexpr (R > 0) {
      models[e] = dot<R>(f, g);
    } else {
      models[e] = long_dot<kColumnBlock>(f, g, G.columns);
    }
  }
}

}  // namespace

template <class T>
double sparse_loss(EntryLoss loss, const Csr<T>& Z, const T* weights, const Rows<const T>& F,
                   const Rows<const T>& G, int threads) {
  void (*find_models)(const Csr<T>&, const T*, const Rows<const T>&, Size, Size, T*) = nullptr;
  visit_rank<T>(G.columns,
                [&find_models](auto rank) { find_models = &models_of<decltype(rank)::value, T>; });
  return gathered_loss(
      loss, Z, weights, F,
      [&](const T* f, Size first, Size count, T* models) {
        find_models(Z, f, G, first, count, models);
      },
      threads);
}

#define SSNMF_INSTANTIATE(T)                                                               \
  template double sparse_loss<T>(EntryLoss, const Csr<T>&, const T*, const Rows<const T>&, \
                                 const Rows<const T>&, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
