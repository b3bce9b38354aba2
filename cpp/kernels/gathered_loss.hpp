// The sum of a loss over stored entries, over whatever gives their models.
#pragma once

#include <algorithm>

#include "entry_losses.hpp"
#include "entry_rows.hpp"
#include "passes.hpp"

namespace ssnmf {

// find_models(f, first, count, models) gives the models of entries from `first` on, which are in
// one row, that of f.
template <class T, class FindModels>
double gathered_loss(EntryLoss loss, const Csr<T>& Z, const T* weights, const Rows<const T>& F,
                     const FindModels& find_models, int threads) {
  const EqualWorkBlocks blocks(Z.indptr, Z.rows, kEntriesPerBlock);
  const int team = useful_threads((Z.entries() + Z.rows) * F.columns, threads);
  struct Workspace {
    alignas(kRegisterBytes) T values[kLossRun];
    alignas(kRegisterBytes) T models[kLossRun];
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
            work.values[e] = Z.value(begin + e);
          }
          find_models(F.row(row), begin, count, work.models);
          part += chosen.of(work.values, work.models,
                            weights == nullptr ? nullptr : weights + begin, count);
        }
      }
      return part;
    });
  });
}

}  // namespace ssnmf
