#include "ridge_rows.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <cmath>
#include <vector>

#include "../core/parallel.hpp"
#include "gemm.hpp"

namespace ssnmf {
namespace {

constexpr Size kRidgeRowsPerBlock = 16;
constexpr Size kRidgeColumns = 256;  // gathered before they enter the Gram matrix

// The system of one row: gathers weighted columns, then solves.  Everything in double.
template <class T>
class RidgeRow {
 public:
  explicit RidgeRow(Size rank)
      : rank_(rank), gathered_(kRidgeColumns, rank), H_(rank, rank), b_(rank) {}

  void start(const double* ridge) {
    H_.setZero();
    b_.setZero();
    count_ = 0;
    H_.diagonal() = Eigen::Map<const Eigen::VectorXd>(ridge, rank_);
  }

  // Adds weight g g^T to the matrix, weight value g to the right-hand side.
  void add(const T* g, double weight, double value) {
    if (count_ == kRidgeColumns) {
      flush();
    }
    const auto column = Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, 1>>(g, rank_);
    if (value != 0.0) {
      b_ += (weight * value) * column.template cast<double>();
    }
    gathered_.row(count_++) = std::sqrt(weight) * column.template cast<double>().transpose();
  }

  // The solution; 0 where nothing was added.
  const Eigen::VectorXd& solve() {
    flush();
    if (b_.isZero(0.0)) {
      return b_;
    }
    solver_.compute(H_);
    b_ = solver_.solve(b_);
    return b_;
  }

 private:
  void flush() {
    if (count_ > 0) {
      end_if_interrupted(count_ * rank_ * rank_);
      const Block<const double> rows{gathered_.data(), count_, rank_, rank_};
      add_transposed_product(rows, rows, {H_.data(), rank_, rank_, rank_});
      count_ = 0;
    }
  }

  Size rank_;
  Matrix<double> gathered_;
  Eigen::MatrixXd H_;
  Eigen::VectorXd b_;
  Eigen::LDLT<Eigen::MatrixXd> solver_;
  Size count_ = 0;
};

}  // namespace

template <class T>
void ridge_rows(const Csr<T>& Z, const Rows<const T>& G, const Span<const double>& ridge,
                const Rows<T>& F, int threads) {
  const Size rank = ridge.size;
  const EqualWorkBlocks blocks(Z.indptr, Z.rows, 4096);
  const int team = useful_threads((Z.entries() + Z.rows) * rank * rank, threads);
  const auto workspace = [&] { return RidgeRow<T>(rank); };
  parallel_for(blocks.count(), team, workspace, [&](RidgeRow<T>& row, Size block) {
    const Range range = blocks[block];
    for (Size i = range.begin; i < range.end; ++i) {
      row.start(ridge.data);
      for (Size e = Z.indptr[i]; e < Z.indptr[i + 1]; ++e) {
        row.add(G.row(static_cast<Size>(Z.indices[e])), 1.0, static_cast<double>(Z.value(e)));
      }
      const Eigen::VectorXd& solution = row.solve();
      for (Size k = 0; k < F.columns; ++k) {
        F.row(i)[k] = k < rank ? static_cast<T>(solution(k)) : T(0);
      }
    }
  });
}

template <class T>
void structured_rows(const Csr<T>& Z, const Rows<const T>& G, const Span<const double>& ridge,
                     const MissingWeights<T>& weights, const Rows<T>& X, const Rows<T>& F,
                     int threads) {
  const Size rank = ridge.size;
  const EvenBlocks blocks(X.rows, kRidgeRowsPerBlock);
  struct Workspace {
    RidgeRow<T> row;
    std::vector<double> pull;  // negative for an observed entry
  };
  const auto workspace = [&] {
    return Workspace{RidgeRow<T>(rank), std::vector<double>(static_cast<std::size_t>(X.columns))};
  };
  parallel_for(blocks.count(), threads, workspace, [&](Workspace& work, Size block) {
    const Range range = blocks[block];
    for (Size i = range.begin; i < range.end; ++i) {
      double* pull = work.pull.data();
      for (Size j = 0; j < X.columns; ++j) {
        pull[j] = weights.pull(X.row(i)[j]);
      }
      work.row.start(ridge.data);
      for (Size e = Z.indptr[i]; e < Z.indptr[i + 1]; ++e) {
        const Size j = static_cast<Size>(Z.indices[e]);
        work.row.add(G.row(j), 1.0, static_cast<double>(Z.value(e)));
        pull[j] = -1.0;
      }
      for (Size j = 0; j < X.columns; ++j) {
        if (pull[j] >= 0.0) {
          work.row.add(G.row(j), pull[j], 0.0);
        }
      }
      const Eigen::VectorXd& solution = work.row.solve();
      for (Size k = 0; k < F.columns; ++k) {
        F.row(i)[k] = k < rank ? static_cast<T>(solution(k)) : T(0);
      }
      for (Size j = 0; j < X.columns; ++j) {
        if (pull[j] >= 0.0) {
          double model = 0.0;
          for (Size k = 0; k < rank; ++k) {
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
