// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The planar arm with three revolute joints (Saha 1999, §6.1) and its equations of motion in
/// closed form.
///
/// With the links' absolute angles φ = T θ (T: a lower triangle of ones) the kinetic energy is
/// ½ Σ A_jk cos(φ_j − φ_k) φ̇_j φ̇_k, where A_jj = I_j + m_j l_j² + a_j² Σ_{k>j} m_k and, for
/// j < k, A_jk = a_j (m_k l_k + a_k Σ_{i>k} m_i); l_j is the way from the joint to the mass centre.
/// Lagrange gives for the absolute angles the efforts
///   Σ_k A_jk (cos(φ_j − φ_k) φ̈_k + sin(φ_j − φ_k) φ̇_k²) + g cos φ_j (m_j l_j + a_j Σ_{k>j} m_k),
/// the only Christoffel symbols being those with φ̇_k², and for the joints τ = Tᵀ of them.

#include <cmath>
#include <string>

#include "dynamics_core/model.hpp"

namespace support {

struct PlanarArm {
  double length[3] = {0.3, 0.25, 0.22};
  double centre[3] = {0.15, 0.11, 0.13};
  double mass[3] = {0.5, 0.4, 0.3};
  double inertia[3] = {0.00375, 0.0021, 0.0013};  ///< about the mass centre
  double g = 9.81;                                ///< along −y

  [[nodiscard]] dynamics_core::Model model() const {
    using namespace dynamics_core;
    RobotDescription robot;
    robot.name = "planar";
    robot.gravity = {0.0, -g, 0.0};
    robot.links.push_back({"base", std::nullopt});
    for (int i = 0; i < 3; ++i) {
      Inertial body;
      body.mass = mass[i];
      body.com = {centre[i], 0.0, 0.0};
      body.inertia = Eigen::Vector3d(0.1 * inertia[i], 0.95 * inertia[i], inertia[i]).asDiagonal();
      const std::string name = "link" + std::to_string(i + 1);
      robot.links.push_back({name, body});
      JointDescription joint;
      joint.name = "joint" + std::to_string(i + 1);
      joint.type = JointType::continuous;
      joint.parent = i == 0 ? "base" : "link" + std::to_string(i);
      joint.child = name;
      joint.axis = Eigen::Vector3d::UnitZ();
      if (i > 0) joint.origin.p = {length[i - 1], 0.0, 0.0};
      robot.joints.push_back(joint);
    }
    return build_model(robot);
  }

  Eigen::Matrix3d M, C;
  Eigen::Vector3d gravity;

  /// Sets M, C (of Christoffel's symbols) and gravity.
  void evaluate(const Eigen::Vector3d& q, const Eigen::Vector3d& v) {
    Eigen::Matrix3d T;
    T << 1, 0, 0, 1, 1, 0, 1, 1, 1;
    const Eigen::Vector3d phi = T * q;
    const Eigen::Vector3d rate = T * v;
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 3; ++k) {
        M(j, k) = coefficient(j, k) * std::cos(phi[j] - phi[k]);
        C(j, k) = coefficient(j, k) * std::sin(phi[j] - phi[k]) * rate[k];
      }
      gravity[j] = g * std::cos(phi[j]) * (mass[j] * centre[j] + length[j] * mass_beyond(j));
    }
    M = (T.transpose() * M * T).eval();
    C = (T.transpose() * C * T).eval();
    gravity = (T.transpose() * gravity).eval();
  }

 private:
  [[nodiscard]] double mass_beyond(int j) const {
    double sum = 0.0;
    for (int k = j + 1; k < 3; ++k) sum += mass[k];
    return sum;
  }
  [[nodiscard]] double coefficient(int j, int k) const {
    if (j > k) return coefficient(k, j);
    if (j == k)
      return inertia[j] + mass[j] * centre[j] * centre[j] + length[j] * length[j] * mass_beyond(j);
    return length[j] * (mass[k] * centre[k] + length[k] * mass_beyond(k));
  }
};

}  // namespace support
