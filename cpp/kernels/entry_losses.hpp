// What an entry of the data and its model f . g add to a sum; see passes.hpp.
#pragma once

#include "passes.hpp"

namespace ssnmf {

// Losses are summed over short runs of entries, so that logarithms are taken a register at a time.
constexpr Size kLossRun = 128;

// The sum over at most kLossRun entries; weights == nullptr stands for ones.
template <class T>
double loss_of_run(const EntryLoss& loss, const T* values, const T* models, const T* weights,
                   Size size);

// Whether a missing entry is to be read as 0; else it is NaN, which counts nothing.
inline bool missing_is_zero(const EntryLoss& loss) {
  return loss.kind == EntryLoss::kKullbackLeibler || loss.kind == EntryLoss::kUnreached;
}

}  // namespace ssnmf
