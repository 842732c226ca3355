// SPDX-License-Identifier: Apache-2.0
#include "support/linear_algebra.hpp"

#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/SVD>

namespace support {

using Eigen::MatrixXd;
using Eigen::VectorXd;

MatrixXd inverse(const MatrixXd& A) { return A.inverse(); }

VectorXd solve(const MatrixXd& A, const VectorXd& b) { return A.partialPivLu().solve(b); }

VectorXd eigenvalues(const MatrixXd& A) {
  return Eigen::SelfAdjointEigenSolver<MatrixXd>(A, Eigen::EigenvaluesOnly).eigenvalues();
}

VectorXd singular_values(const MatrixXd& A) {
  return Eigen::JacobiSVD<MatrixXd>(A).singularValues();
}

}  // namespace support
