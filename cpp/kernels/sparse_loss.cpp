#include "entry_losses.hpp"
#include "entry_rows.hpp"
#include "passes.hpp"

namespace ssnmf {

template <class T>
double sparse_loss(EntryLoss loss, const Csr<T>& Z, const T* weights, const Rows<const T>& F,
                   const Rows<const T>& G, int threads) {
  const EqualWorkBlocks blocks(Z.indptr, Z.rows, kEntriesPerBlock);
  const int team = useful_threads((Z.entries() + Z.rows) * G.columns, threads);
  struct Workspace {
    T values[kLossRun];
    T models[kLossRun];
  };
  const auto workspace = [] { return Workspace{}; };
  return visit_loss(loss, [&](const auto& chosen) {
    return ordered_sum(blocks.count(), team, workspace, [&](Workspace& work, Size block) {
      const Range range = blocks[block];
      double part = 0.0;
      for (Size row = range.begin; row < range.end; ++row) {
        const Size last = Z.indptr[row + 1];
        for (Size begin = Z.indptr[row]; begin < last; begin += kLossRun) {
          const Size count = std::min<Size>(kLossRun, last - begin);
          for (Size e = 0; e < count; ++e) {
            prefetch_row(Z, begin + e, Z.entries(), G);
            const T* g = G.row(static_cast<Size>(Z.indices[begin + e]));
            work.values[e] = Z.value(begin + e);
            work.models[e] = long_dot<kNarrowestRank>(F.row(row), g, G.columns);
          }
          part += chosen.of(work.values, work.models,
                            weights == nullptr ? nullptr : weights + begin, count);
        }
      }
      return part;
    });
  });
}

#define SSNMF_INSTANTIATE(T)                                                               \
  template double sparse_loss<T>(EntryLoss, const Csr<T>&, const T*, const Rows<const T>&, \
                                 const Rows<const T>&, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
