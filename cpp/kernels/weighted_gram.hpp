// The Gram matrix of the rows of a factor that one row of weights names.
#pragma once

#include <Eigen/Core>
#include <algorithm>

#include "../core/interrupt.hpp"
#include "gathered_columns.hpp"

namespace ssnmf {

// K += sum_j w_j g_j g_j^T over the entries [begin, end) of the weights, which may be negative.
// Sums of a part of the entries are of type T, the rest is in double.  K is symmetric.
template <class T>
void add_weighted_gram(const Csr<T>& weights, Size begin, Size end, const Rows<const T>& G,
                       GatheredColumns<T>& gathered, Eigen::MatrixXd& K) {
  constexpr Size kEntriesAtOnce = 512;
  const Size blocks = G.columns / kComponents;
  for (Size first = begin; first < end; first += kEntriesAtOnce) {
    const Size last = std::min(first + kEntriesAtOnce, end);
    end_if_interrupted((last - first) * G.columns * G.columns / 2);
    gathered.gather(weights, first, last, G, nullptr);
    for (Size a = 0; a < blocks; ++a) {
      for (Size b = 0; b <= a; ++b) {
        K.template block<kComponents, kComponents>(a * kComponents, b * kComponents).array() +=
            gathered.products(a, b);
      }
    }
  }
  K.template triangularView<Eigen::StrictlyUpper>() = K.transpose();
}

}  // namespace ssnmf
