// Nonnegative least squares by rows on the Gram matrix:
//   s_i = argmin_{s >= 0} s K_i s^T - 2 p_i s^T,   K_i = a_i K + sum_j w_ij g_j g_j^T.
//
// Cyclic coordinate descent, which settles most rows in a few sweeps, and every few sweeps the
// exact minimizer on the face of the positive entries (Lawson and Hanson 1974), so that
// ill-conditioned problems end as well.  Everything in double.
//
// Rows are solved in units in which the diagonal of K_i is between 1 and 4: components may be of
// any scale, and one residual stands for all of them.  The units are powers of two, which round
// nothing: other powers in the components give the same solution, bit by bit.
#pragma once

#include "rank.hpp"

namespace ssnmf {

// Solves every row of F, from where F starts; returns the number of rows left unsolved.
// K.data == nullptr stands for zeros, row_scale == nullptr for ones, weights.indptr == nullptr for
// no weights.
template <class T>
Size nnls(const Rows<const T>& K, const T* row_scale, const Csr<T>& weights,
          const Factor<const T>& G, const Rows<const T>& P, const Rows<T>& F, double tol,
          int max_sweeps, int threads);

}  // namespace ssnmf
