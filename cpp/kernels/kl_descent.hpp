// Cyclic coordinate descent on the rows of a factor for the Kullback-Leibler loss (Hsieh and
// Dhillon 2011), a few sweeps over the components of
//   h_i(f) = n_i . f - sum_j x_ij log(f . g_j),   f >= 0.
//
// No step raises h_i; see KlDescentRow.
#pragma once

#include "rank.hpp"

namespace ssnmf {

// Returns sum x log(x / z) - x over the entries, z = F G^T as it is afterwards.  N has a row for
// each row of F, or one for all; entries stay where they are not in `allowed`.  Some 10
// multiplications and a division for every entry and component that is not zero, 2 for one that is.
template <class T>
double kl_descent(const Csr<T>& X, const Factor<const T>& G, const Rows<const T>& N,
                  const Rows<T>& F, const Support& allowed, int sweeps, bool with_loss,
                  int threads);

}  // namespace ssnmf
