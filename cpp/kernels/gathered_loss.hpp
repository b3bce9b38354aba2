// The sum of a loss over stored entries, over whatever gives their models.
#pragma once

#include "entry_models.hpp"
#include "passes.hpp"

namespace ssnmf {

template <class T>
double gathered_loss(const EntryLoss& loss, const Csr<T>& Z, const T* weights,
                     const Rows<const T>& F, const FindModels<T>& find, int threads);

}  // namespace ssnmf
