#include <algorithm>

#include "entry_losses.hpp"
#include "entry_models.hpp"
#include "entry_rows.hpp"
#include "gathered_loss.hpp"
#include "passes.hpp"

namespace ssnmf {

template <class T>
double gathered_loss(const EntryLoss& loss, const Csr<T>& Z, const T* weights,
                     const Rows<const T>& F, const FindModels<T>& find, int threads) {
  const EqualWorkBlocks blocks(Z.indptr, Z.rows, kEntriesPerBlock);
  const int team = useful_threads((Z.entries() + Z.rows) * F.columns, threads);
  struct Workspace {
    alignas(kRegisterBytes) T values[kLossRun];
    alignas(kRegisterBytes) T models[kLossRun];
  };
  const auto workspace = [] { return Workspace{}; };
  return ordered_sum(blocks.count(), team, workspace, [&](Workspace& work, Size block) {
    const Range range = blocks[block];
    double part = 0.0;
    for (Size row = range.begin; row < range.end; ++row) {
      const Size last = Z.indptr[row + 1];
      for (Size begin = Z.indptr[row]; begin < last; begin += kLossRun) {
        const Size count = std::min(kLossRun, last - begin);
        for (Size e = 0; e < count; ++e) {
          work.values[e] = Z.value(begin + e);
        }
        find(F.row(row), begin, count, work.models);
        part += loss_of_run(loss, work.values, work.models,
                            weights == nullptr ? nullptr : weights + begin, count);
      }
    }
    return part;
  });
}

template <class T>
double sparse_loss(EntryLoss loss, const Csr<T>& Z, const T* weights, const Rows<const T>& F,
                   const Factor<const T>& G, int threads) {
  const ColumnRows<T> gather(Z, G);
  return gathered_loss<T>(loss, Z, weights, F, find_models<T>(gather), threads);
}

#define SSNMF_INSTANTIATE(T)                                                               \
  template double gathered_loss<T>(const EntryLoss&, const Csr<T>&, const T*,              \
                                   const Rows<const T>&, const FindModels<T>&, int);       \
  template double sparse_loss<T>(EntryLoss, const Csr<T>&, const T*, const Rows<const T>&, \
                                 const Factor<const T>&, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
