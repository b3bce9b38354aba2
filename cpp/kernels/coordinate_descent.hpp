// Cyclic coordinate descent on the rows of a factor ("hierarchical alternating least squares",
// Cichocki and Phan 2009):
//   f_ik <- max(0, f_ik - (K_i f_i - p_i)_k / K_i,kk),   k = 1..R, a few sweeps,
//   K_i = sum_t a_ti K_t + sum_j w_ij g_j g_j^T.
//
// Every step is the exact minimizer in its entry, so that no sweep raises the objective.  Entries
// without curvature stay as they are, and so do those that are not allowed to move.  Before the
// last sweep come `face_steps` steps of conjugate gradients on the positive entries of each row
// (descent_tile.hpp).
#pragma once

#include "rank.hpp"

namespace ssnmf {

// Gram matrices common to all rows, `count` of R x R; scales: count x p values, or none for ones.
template <class T>
struct Grams {
  const T* data = nullptr;
  const T* scales = nullptr;
  Size count = 0;
  Size rank = 0;
  Size rows = 0;

  const T* row(Size t, Size k) const { return data + (t * rank + k) * rank; }
  T scale(Size t, Size i) const { return scales == nullptr ? T(1) : scales[t * rows + i]; }
};

// weights.indptr == nullptr: no row has weights of its own; else face_steps must be 0.  Entries
// stay where they are not in `allowed`; rows with few that are take as much less time.
// Returns 0, or if `measured` the sum of |projected gradient| over the first sweep, each entry's
// just before its step, of rows without weights: the stopping rule of scikit-learn.
template <class T>
double coordinate_descent(const Grams<T>& grams, const Csr<T>& weights, const Factor<const T>& G,
                          const Rows<const T>& P, const Rows<T>& F, const Support& allowed,
                          int sweeps, int face_steps, int threads, bool measured = false);

}  // namespace ssnmf
