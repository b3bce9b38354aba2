// The sum of a loss over stored entries, over whatever gives their models.
#pragma once

#include <functional>

#include "passes.hpp"

namespace ssnmf {

// Gives the models of entries from `first` on, which are in one row, whose vector is f.
template <class T>
using ModelsOfRow = std::function<void(const T* f, Size first, Size count, T* models)>;

template <class T>
double gathered_loss(const EntryLoss& loss, const Csr<T>& Z, const T* weights,
                     const Rows<const T>& F, const ModelsOfRow<T>& models_of, int threads);

}  // namespace ssnmf
