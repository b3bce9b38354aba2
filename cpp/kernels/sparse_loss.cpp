#include "entry_models.hpp"
#include "entry_rows.hpp"
#include "gathered_loss.hpp"
#include "passes.hpp"

namespace ssnmf {
namespace {

// The models of entries of one row; see gathered_loss.
template <int R, class T>
SSNMF_FLATTEN void models_of(const Csr<T>& Z, const T* f, const Rows<const T>& G, Size first,
                             Size count, T* models) {
  entry_models<R, kColumnBlock>(ColumnRows<T>(Z, G), f, first, count, models);
}

}  // namespace

template <class T>
double sparse_loss(EntryLoss loss, const Csr<T>& Z, const T* weights, const Rows<const T>& F,
                   const Factor<const T>& G, int threads) {
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
                                 const Factor<const T>&, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
