// Systems of equations with a positive definite matrix, compiled once: Eigen's factorization is a
// costly template.
#pragma once

#include <Eigen/Core>

namespace ssnmf {

// b <- A^-1 b; overwrites A.  Returns false, and leaves b, where A is not positive definite.
bool solve_positive_definite(Eigen::MatrixXd& A, Eigen::VectorXd& b);

}  // namespace ssnmf
