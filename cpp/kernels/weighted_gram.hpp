// Gram matrices of the rows of a factor that one row of a sparse matrix of weights names.
#pragma once

#include <Eigen/Core>
#include <type_traits>

#include "gathered_columns.hpp"
#include "matrices.hpp"

namespace ssnmf {

// K += sum_j w_j g_j g_j^T over the entries [begin, end) of the weights, which may be negative.
// The sums are of type T; K is symmetric before.  Several threads share a very long row.
template <class T, class W>
void add_weighted_gram(const Csr<W>& weights, Size begin, Size end, const Rows<const T>& G,
                       GatheredColumns<T>& gathered, Eigen::MatrixXd& K, int threads);

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
