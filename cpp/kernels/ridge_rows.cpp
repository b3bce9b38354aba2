#include "ridge_rows.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "../core/parallel.hpp"
#include "register_product.hpp"
#include "row_problem.hpp"
#include "row_sum.hpp"
#include "weighted_gram.hpp"

namespace ssnmf {
namespace {

// The system of one row, in double.
template <class T>
class RidgeRow {
 public:
  RidgeRow(const Span<const double>& ridge, int threads)
      : threads_(threads), ridge_(Eigen::Map<const Eigen::VectorXd>(ridge.data, ridge.size)) {}

  // The solution for a row of Z, with a row of weights; 0 where it has no entries.  The solution is
  // written to f, filled up with zeros.
  template <class W>
  const Eigen::VectorXd& solve(const Csr<T>& Z, Size row, const Csr<W>& weights,
                               Size row_of_weights, const Rows<const double>& G, T* f) {
    const Size rank = ridge_.size();
    b_.setZero(rank);
    for (Size e = Z.indptr[row]; e < Z.indptr[row + 1]; ++e) {
      b_ += static_cast<double>(Z.value(e)) *
            Eigen::Map<const Eigen::VectorXd>(G.row(static_cast<Size>(Z.indices[e])), rank);
    }
    if (!b_.isZero(0.0)) {
      H_.setZero(G.columns, G.columns);
      H_.diagonal().head(rank) = ridge_;
      add_weighted_gram(weights, weights.indptr[row_of_weights], weights.indptr[row_of_weights + 1],
                        G, gathered_, H_, threads_);
      solver_.compute(H_.topLeftCorner(rank, rank));
      b_ = solver_.solve(b_);
    }
    Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, 1>> out(f, G.columns);
    out.setZero();
    out.head(rank) = b_.template cast<T>();
    return b_;
  }

 private:
  int threads_;
  Eigen::VectorXd ridge_;
  GatheredColumns<double> gathered_;
  Eigen::MatrixXd H_;
  Eigen::VectorXd b_;
  Eigen::LDLT<Eigen::MatrixXd> solver_;
};

}  // namespace

template <class T>
void ridge_rows(const Csr<T>& Z, const Factor<const T>& G, const Span<const double>& ridge,
                const Rows<T>& F, int threads) {
  const EqualWorkBlocks blocks(Z.indptr, Z.rows, 4096);
  const int team = useful_threads((Z.entries() + Z.rows) * ridge.size * ridge.size, threads);
  const InDouble<T> far(G);
  Csr<T> ones = Z;
  ones.values = nullptr;
  const auto workspace = [&] { return RidgeRow<T>(ridge, threads); };
  parallel_for(blocks.count(), team, workspace, [&](RidgeRow<T>& problem, Size block) {
    const Range range = blocks[block];
    for (Size i = range.begin; i < range.end; ++i) {
      problem.solve(Z, i, ones, i, far.rows(), F.row(i));
    }
  });
}

template <class T>
void structured_rows(const Csr<T>& Z, const Factor<const T>& G, const Span<const double>& ridge,
                     const MissingWeights<T>& weights, const Rows<T>& X, const Rows<T>& F,
                     int threads) {
  const EvenBlocks blocks(X.rows, kSolvedRowsPerBlock);
  const InDouble<T> far(G);
  std::vector<Index> columns(static_cast<std::size_t>(X.columns));
  std::iota(columns.begin(), columns.end(), Index(0));
  const Size bounds[] = {0, X.columns};
  struct Workspace {
    RidgeRow<T> problem;
    Eigen::ArrayXd pull;  // 1 for an observed entry
    Eigen::Array<bool, Eigen::Dynamic, 1> missing;
  };
  const auto workspace = [&] {
    return Workspace{RidgeRow<T>(ridge, threads), Eigen::ArrayXd(X.columns), {}};
  };
  parallel_for(blocks.count(), threads, workspace, [&](Workspace& work, Size block) {
    const Range range = blocks[block];
    for (Size i = range.begin; i < range.end; ++i) {
      work.missing.setConstant(X.columns, true);
      for (Size j = 0; j < X.columns; ++j) {
        work.pull(j) = weights.pull(X.row(i)[j]);
      }
      for (Size e = Z.indptr[i]; e < Z.indptr[i + 1]; ++e) {
        work.pull(static_cast<Size>(Z.indices[e])) = 1.0;
        work.missing(static_cast<Size>(Z.indices[e])) = false;
      }
      const Csr<double> all{bounds, columns.data(), work.pull.data(), 1};
      const Eigen::VectorXd& solution = work.problem.solve(Z, i, all, 0, far.rows(), F.row(i));
      for (Size j = 0; j < X.columns; ++j) {
        if (!work.missing(j)) {
          continue;
        }
        const double model =
            solution.dot(Eigen::Map<const Eigen::VectorXd>(far.rows().row(j), solution.size()));
        X.row(i)[j] = static_cast<T>((1.0 - work.pull(j)) * model);
      }
    }
  });
}

template <class T>
void conjugate_rows(const Csr<T>& Z, const Factor<const T>& G, const Rows<const T>& gram,
                    const Span<const T>& ridge, int steps, const Rows<T>& F, int threads) {
  const EvenBlocks blocks(F.rows, kSolvedRowsPerBlock);
  const Size work = (Z.entries() + F.rows * F.columns) * F.columns * (steps + 1);
  Panels<T> common;
  common.copy(gram.data, gram.columns, gram.rows, gram.columns);
  Csr<T> ones = Z;
  ones.values = nullptr;
  const ColumnRows<T> gather(Z, G);
  const GatheredSum<Residual, T, ColumnRows<T>> pull({}, Z, gather);
  const GatheredSum<Sampled, T, ColumnRows<T>> product({}, ones, gather);
  struct Workspace {
    Matrix<T> residual, direction, image, room;
  };
  // image = (gram + ridge) times rows, plus or minus the sums over the entries.
  const auto apply = [&](const auto& rows, const Range& range, const RowSum<T>& sum, T sign,
                         Workspace& w) {
    common.product(rows.data(), F.columns, rows.rows(), w.image.data(), w.image.cols());
    const Target<T> image{{w.image.data(), rows.rows(), w.image.cols()}, sign, true};
    for (Size i = range.begin; i < range.end; ++i) {
      const Size row = i - range.begin;
      w.image.row(row).head(F.columns) += ridge.data[i] * rows.row(row);
      const Range entries = entries_of(Z, i);
      for (Size first = entries.begin; first < entries.end; first += sum.entries_per_part()) {
        const Size last = std::min(first + sum.entries_per_part(), entries.end);
        sum.store(rows.row(row).data(), {first, last}, image, row, w.room.data());
      }
    }
  };
  const int team = useful_threads(work, threads);
  parallel_for(
      blocks.count(), team, [] { return Workspace{}; },
      [&](Workspace& w, Size block) {
        const Range range = blocks[block];
        MatrixMap<T> rows(F.row(range.begin), range.end - range.begin, F.columns);
        w.image.resize(rows.rows(), common.width());
        w.room.resize(1, F.columns);
        apply(rows, range, pull, T(-1), w);
        w.residual = -w.image.leftCols(F.columns);
        w.direction = w.residual;
        for (int step = 0; step < steps; ++step) {
          apply(w.direction, range, product, T(1), w);
          for (Size i = 0; i < rows.rows(); ++i) {
            const T before = w.residual.row(i).squaredNorm();
            const T curvature = w.direction.row(i).dot(w.image.row(i).head(F.columns));
            if (!(before > std::numeric_limits<T>::min()) || !(curvature > T(0))) {
              continue;
            }
            const T length = before / curvature;
            rows.row(i) += length * w.direction.row(i);
            w.residual.row(i) -= length * w.image.row(i).head(F.columns);
            const T after = w.residual.row(i).squaredNorm();
            w.direction.row(i) = w.residual.row(i) + (after / before) * w.direction.row(i);
          }
        }
      });
}

#define SSNMF_INSTANTIATE(T)                                                                    \
  template void ridge_rows<T>(const Csr<T>&, const Factor<const T>&, const Span<const double>&, \
                              const Rows<T>&, int);                                             \
  template void structured_rows<T>(const Csr<T>&, const Factor<const T>&,                       \
                                   const Span<const double>&, const MissingWeights<T>&,         \
                                   const Rows<T>&, const Rows<T>&, int);                        \
  template void conjugate_rows<T>(const Csr<T>&, const Factor<const T>&, const Rows<const T>&,  \
                                  const Span<const T>&, int, const Rows<T>&, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
