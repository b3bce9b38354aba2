// Gram matrices of the rows of a factor that one row of a sparse matrix of weights names.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <type_traits>
#include <vector>

#include "../core/interrupt.hpp"
#include "factor_ops.hpp"
#include "gathered_columns.hpp"
#include "long_rows.hpp"
#include "matrices.hpp"

namespace ssnmf {

// K += sum_j w_j g_j g_j^T over the entries [begin, end) of the weights, which may be negative.
// The sums are of type T; K is symmetric before.  Several threads share a very long row.
template <class T, class W>
void add_weighted_gram(const Csr<W>& weights, Size begin, Size end, const Rows<const T>& G,
                       GatheredColumns<T>& gathered, Eigen::MatrixXd& K, int threads) {
  constexpr Size kEntriesAtOnce = 512;
  if (threads > 0 && end - begin > kLongestRow) {
    const Size most = most_partials(G.columns * G.columns);
    const EvenBlocks pieces(end - begin, std::max(kEntriesPerBlock, (end - begin) / most + 1));
    std::vector<Eigen::MatrixXd> parts(static_cast<std::size_t>(pieces.count()));
    parallel_for(
        pieces.count(), threads, [] { return GatheredColumns<T>{}; },
        [&](GatheredColumns<T>& own, Size piece) {
          Eigen::MatrixXd& part = parts[static_cast<std::size_t>(piece)];
          part.setZero(G.columns, G.columns);
          const Range range = pieces[piece];
          add_weighted_gram(weights, begin + range.begin, begin + range.end, G, own, part, 0);
        });
    for (const Eigen::MatrixXd& part : parts) {
      K += part;
    }
    return;
  }
  const Size blocks = G.columns / kComponents;
  for (Size first = begin; first < end; first += kEntriesAtOnce) {
    const Size last = std::min(first + kEntriesAtOnce, end);
    end_if_interrupted((last - first) * G.columns * G.columns / 2);
    gathered.gather(weights, first, last, G, nullptr);
    for (Size a = 0; a < blocks; ++a) {
      for (Size b = 0; b <= a; ++b) {
        K.block<kComponents, kComponents>(a * kComponents, b * kComponents).array() +=
            gathered.products(a, b);
      }
    }
  }
  K.triangularView<Eigen::StrictlyUpper>() = K.transpose();
}

// A factor in double, copied where it is of another type.
template <class T>
class InDouble {
 public:
  explicit InDouble(const Rows<const T>& G) : rows_{nullptr, G.rows, G.columns} {
    if constexpr (std::is_same_v<T, double>) {
      rows_ = G;
    } else {
      copy_ = ConstMatrixMap<T>(G.data, G.rows, G.columns).template cast<double>();
      rows_.data = copy_.data();
    }
  }

  const Rows<const double>& rows() const { return rows_; }

 private:
  Matrix<double> copy_;
  Rows<const double> rows_;
};

}  // namespace ssnmf
