#include "ridge_rows.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <numeric>
#include <vector>

#include "../core/parallel.hpp"
#include "entry_rows.hpp"
#include "weighted_gram.hpp"

namespace ssnmf {
namespace {

constexpr Size kRidgeRowsPerBlock = 16;

// The system of one row, in double but for the sums of weighted_gram.hpp.
template <class T>
class RidgeRow {
 public:
  RidgeRow(const Rows<const T>& G, const Span<const double>& ridge)
      : G_(G), ridge_(ridge.data, ridge.size), K_(G.columns, G.columns), b_(ridge.size) {}

  // Solves (diag(ridge) + sum_j w_j g_j g_j^T) f = b over entries [begin, end) of the weights, with
  // b = sum_j z_j g_j over row i of Z; 0 where b is.
  const Eigen::VectorXd& solve(const Csr<T>& weights, Size begin, Size end, const Csr<T>& Z,
                               Size i) {
    b_.setZero();
    for (Size e = Z.indptr[i]; e < Z.indptr[i + 1]; ++e) {
      const T* g = G_.row(static_cast<Size>(Z.indices[e]));
      b_ += static_cast<double>(Z.value(e)) *
            Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, 1>>(g, b_.size())
                .template cast<double>();
    }
    if (b_.isZero(0.0)) {
      return b_;
    }
    K_.setZero();
    add_weighted_gram(weights, begin, end, G_, gathered_, K_);
    H_ = K_.topLeftCorner(b_.size(), b_.size());  // without the padding
    H_.diagonal() += ridge_;
    solver_.compute(H_);
    b_ = solver_.solve(b_);
    return b_;
  }

 private:
  Rows<const T> G_;
  Eigen::Map<const Eigen::VectorXd> ridge_;
  GatheredColumns<T> gathered_;
  Eigen::MatrixXd K_;
  Eigen::MatrixXd H_;
  Eigen::VectorXd b_;
  Eigen::LDLT<Eigen::MatrixXd> solver_;
};

template <class T>
void store_row(const Eigen::VectorXd& solution, Size i, const Rows<T>& F) {
  for (Size k = 0; k < F.columns; ++k) {
    F.row(i)[k] = k < solution.size() ? static_cast<T>(solution(k)) : T(0);
  }
}

}  // namespace

template <class T>
void ridge_rows(const Csr<T>& Z, const Rows<const T>& G, const Span<const double>& ridge,
                const Rows<T>& F, int threads) {
  const EqualWorkBlocks blocks(Z.indptr, Z.rows, kEntriesPerBlock);
  const int team = useful_threads((Z.entries() + Z.rows) * ridge.size * ridge.size, threads);
  const auto workspace = [&] { return RidgeRow<T>(G, ridge); };
  const Csr<T> ones{Z.indptr, Z.indices, nullptr, Z.rows};
  parallel_for(blocks.count(), team, workspace, [&](RidgeRow<T>& row, Size block) {
    const Range range = blocks[block];
    for (Size i = range.begin; i < range.end; ++i) {
      store_row(row.solve(ones, Z.indptr[i], Z.indptr[i + 1], Z, i), i, F);
    }
  });
}

template <class T>
void structured_rows(const Csr<T>& Z, const Rows<const T>& G, const Span<const double>& ridge,
                     const MissingWeights<T>& weights, const Rows<T>& X, const Rows<T>& F,
                     int threads) {
  const EvenBlocks blocks(X.rows, kRidgeRowsPerBlock);
  struct Workspace {
    RidgeRow<T> row;
    std::vector<double> pull;  // negative for an observed entry
    std::vector<Index> columns;
    std::vector<T> listed;  // 1 for an observed entry, and the pulls of the others
  };
  const auto workspace = [&] {
    const auto size = static_cast<std::size_t>(X.columns);
    Workspace work{RidgeRow<T>(G, ridge), std::vector<double>(size), std::vector<Index>(size),
                   std::vector<T>(size)};
    std::iota(work.columns.begin(), work.columns.end(), Index(0));
    return work;
  };
  parallel_for(blocks.count(), threads, workspace, [&](Workspace& work, Size block) {
    const Range range = blocks[block];
    for (Size i = range.begin; i < range.end; ++i) {
      double* pull = work.pull.data();
      T* listed = work.listed.data();
      for (Size j = 0; j < X.columns; ++j) {
        pull[j] = weights.pull(X.row(i)[j]);
        listed[j] = static_cast<T>(pull[j]);
      }
      for (Size e = Z.indptr[i]; e < Z.indptr[i + 1]; ++e) {
        pull[Z.indices[e]] = -1.0;
        listed[Z.indices[e]] = T(1);
      }
      const Csr<T> all{nullptr, work.columns.data(), listed, 1};
      const Eigen::VectorXd& solution = work.row.solve(all, 0, X.columns, Z, i);
      store_row(solution, i, F);
      for (Size j = 0; j < X.columns; ++j) {
        if (pull[j] >= 0.0) {
          double model = 0.0;
          for (Size k = 0; k < solution.size(); ++k) {
            model += solution(k) * static_cast<double>(G.row(j)[k]);
          }
          X.row(i)[j] = static_cast<T>((1.0 - pull[j]) * model);
        }
      }
    }
  });
}

#define SSNMF_INSTANTIATE(T)                                                                       \
  template void ridge_rows<T>(const Csr<T>&, const Rows<const T>&, const Span<const double>&,      \
                              const Rows<T>&, int);                                                \
  template void structured_rows<T>(const Csr<T>&, const Rows<const T>&, const Span<const double>&, \
                                   const MissingWeights<T>&, const Rows<T>&, const Rows<T>&, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
