// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/quaternion.hpp"

#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <cmath>
#include <vector>

namespace {

using Eigen::Matrix3d;
using Eigen::Vector3d;

std::vector<Vector3d> directions() {
  std::vector<Vector3d> axes{Vector3d::UnitX(),  Vector3d::UnitY(),  Vector3d::UnitZ(),
                             -Vector3d::UnitX(), -Vector3d::UnitY(), -Vector3d::UnitZ()};
  for (const double angle : {1e-160, 1e-12, 1e-8, 1e-5, 0.1, 1.0, 2.0, 3.0})
    for (const double side : {-1.0, 1.0})
      axes.push_back(
          Vector3d(std::sin(angle) * 0.6, std::sin(angle) * 0.8, side * std::cos(angle)));
  return axes;
}

TEST(RotationOfZ, TurnsZOntoTheAxisAndNothingElse) {
  for (const Vector3d& axis : directions()) {
    SCOPED_TRACE(axis.transpose());
    const Matrix3d R = dynamics_core::rotation_of_z_onto(axis);
    EXPECT_LT((R * R.transpose() - Matrix3d::Identity()).cwiseAbs().maxCoeff(), 1e-15);
    EXPECT_GT(R.determinant(), 0.0);
    EXPECT_LT((R.col(2) - axis).cwiseAbs().maxCoeff(), 1e-15);
    const Vector3d fixed = Vector3d::UnitZ().cross(axis);  // what the shortest turn leaves alone
    EXPECT_LT((R * fixed - fixed).cwiseAbs().maxCoeff(), 1e-15);
  }
}

}  // namespace
