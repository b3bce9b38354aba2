#include "tall_qr.hpp"

#include <Eigen/Core>
#include <Eigen/QR>
#include <algorithm>

#include "../core/parallel.hpp"
#include "register_product.hpp"

namespace ssnmf {
namespace {

constexpr Size kQrRows = 1024;

using Columns = Eigen::MatrixXd;

// Splits `block` (n x c, n >= c) into an orthonormal Q, in its place, and R (c x c).
Columns small_qr(Columns& block) {
  const Eigen::HouseholderQR<Columns> qr(block);
  const Columns R = qr.matrixQR().topRows(block.cols()).triangularView<Eigen::Upper>();
  block.setIdentity();
  block.applyOnTheLeft(qr.householderQ());
  return R;
}

}  // namespace

template <class T>
void tall_qr(const Rows<T>& A, Size columns, const Rows<T>& R, int threads) {
  using Strided = Eigen::Map<Matrix<T>, 0, Eigen::OuterStride<>>;
  const Size count = std::max<Size>(1, A.rows / std::max(kQrRows, 4 * columns));
  const auto rows = [&](Size b) {
    const Size begin = A.rows * b / count;
    return Strided(A.row(begin), A.rows * (b + 1) / count - begin, columns,
                   Eigen::OuterStride<>(A.columns));
  };
  const int team = useful_threads(A.rows * columns * columns, threads);
  Matrix<double> stacked(count * columns, columns);
  parallel_for(count, team, [&](Size b) {
    Columns block = rows(b).template cast<double>();
    stacked.middleRows(b * columns, columns) = small_qr(block);
    rows(b) = block.template cast<T>();
  });
  MatrixMap<T> r(R.data, columns, columns);
  if (count == 1) {
    r = stacked.cast<T>();
    return;
  }
  // The factors of the blocks, stacked, are a quarter as tall at the most.
  Matrix<double> last(columns, columns);
  tall_qr(Rows<double>{stacked.data(), stacked.rows(), columns}, columns,
          Rows<double>{last.data(), columns, columns}, threads);
  r = last.template cast<T>();
  const Matrix<T> rotation = stacked.template cast<T>();
  struct Workspace {
    Panels<T> panels;
    Matrix<T> rotated;
  };
  parallel_for(
      count, team, [] { return Workspace{}; },
      [&](Workspace& work, Size b) {
        Strided block = rows(b);
        work.panels.copy(rotation.row(b * columns).data(), columns, columns, columns);
        work.rotated.resize(block.rows(), work.panels.width());
        work.panels.product(block.data(), A.columns, block.rows(), work.rotated.data(),
                            work.rotated.cols());
        block = work.rotated.leftCols(columns);
      });
}

#define SSNMF_INSTANTIATE(T) template void tall_qr<T>(const Rows<T>&, Size, const Rows<T>&, int);
SSNMF_INSTANTIATE(float)
SSNMF_INSTANTIATE(double)
#undef SSNMF_INSTANTIATE

}  // namespace ssnmf
