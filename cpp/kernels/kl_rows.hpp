// Kullback-Leibler regression by rows:
//   s_i = argmin_{s >= 0} n_i . s - sum_j x_ij log(s . g_j).
//
// Over-relaxed multiplicative steps (update.hpp) from the start, which clear most components away;
// then projected Newton steps with backtracking (Bertsekas 1982): entries held at zero by their
// gradient are left out of the Newton system, and a step that does not lower the objective enough
// is replaced by a multiplicative one, which always does.  Everything in double; only the
// components that occur in the row take part.
#pragma once

#include "../core/views.hpp"

namespace ssnmf {

// Solves every row of F, from where F starts; returns the number of rows left unsolved.
// N has a row for each row of F, or one for all.
template <class T>
Size kl_rows(const Csr<T>& X, const Rows<const T>& G, const Rows<const T>& N, const Rows<T>& F,
             double tol, int max_steps, int threads);

}  // namespace ssnmf
