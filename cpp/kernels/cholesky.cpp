#include "cholesky.hpp"

#include <Eigen/Cholesky>

namespace ssnmf {

bool solve_positive_definite(Eigen::MatrixXd& A, Eigen::VectorXd& b) {
  const Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>> factor(A);
  if (factor.info() != Eigen::Success) {
    return false;
  }
  factor.solveInPlace(b);
  return true;
}

}  // namespace ssnmf
