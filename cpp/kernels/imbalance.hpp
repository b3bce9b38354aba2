// How far what pulls the entries of a factor up and what pulls them down are apart.
#pragma once

#include "../core/views.hpp"

namespace ssnmf {

struct Imbalance {
  double apart = 0;  // sum of |N - P| w
  double pull = 0;   // the larger one of the sums of F P and of F N
};

// w is F where N >= P, elsewhere no less than the mean of the column of F.  N may be one row for
// all.  Entries count where they are in `moves`.  Reads every entry twice.
template <class T>
Imbalance imbalance(const Rows<const T>& F, const Rows<const T>& P, const Rows<const T>& N,
                    const Support& moves, int threads);

}  // namespace ssnmf
