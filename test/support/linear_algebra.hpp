// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Dense linear algebra that tests ask of Eigen, compiled once.

#include <Eigen/Core>

namespace support {

/// A⁻¹
Eigen::MatrixXd inverse(const Eigen::MatrixXd& A);
/// A⁻¹ b
Eigen::VectorXd solve(const Eigen::MatrixXd& A, const Eigen::VectorXd& b);
/// Of a symmetric matrix, in ascending order.
Eigen::VectorXd eigenvalues(const Eigen::MatrixXd& A);
/// In descending order.
Eigen::VectorXd singular_values(const Eigen::MatrixXd& A);

}  // namespace support
