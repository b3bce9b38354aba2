// Passes over a sparse tensor of N modes, unfolded by one of them.
//
// Z has a row for every index of that mode, the entries of which name a row in each of the N - 1
// other factors; their product, element by element, stands in place of g_j in passes.hpp.  It is
// made on the way: nothing of the size of a Khatri-Rao product is ever stored.
// Z.indices: those of the first other mode for all entries, then those of the second, and so on.
#pragma once

#include <vector>

#include "passes.hpp"

namespace ssnmf {

template <class T>
using FactorList = std::vector<Factor<const T>>;

// As sparse_pass, for the exponents 0, 1 and -1.
template <class T>
void tensor_pass(Operation operation, const Csr<T>& Z, const Rows<const T>& F,
                 const FactorList<T>& others, const Target<T>& to, int threads);

// As sparse_loss, for the Kullback-Leibler and the Frobenius loss.
template <class T>
double tensor_loss(EntryLoss loss, const Csr<T>& Z, const T* weights, const Rows<const T>& F,
                   const FactorList<T>& others, int threads);

}  // namespace ssnmf
