// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Random robots and states for property tests. Everything follows from one seed, which a failing
/// test prints.

#include <Eigen/Core>
#include <random>
#include <string>

#include "dynamics_core/model.hpp"

namespace support {

struct RandomOptions {
  int joints = 6;
  double branching = 0.0;  ///< chance that a joint hangs on any earlier link, not on the last one
  double prismatic = 0.0;  ///< chance of a sliding joint
  double fixed = 0.0;      ///< chance of a fixed joint
  double planar = 0.0;     ///< chance of a planar joint
  double floating = 0.0;   ///< chance of a floating joint
  double mimic = 0.0;      ///< chance that a moving joint mimics an earlier one
  bool rotors = false;     ///< rotor inertias and gears
  bool aligned = false;    ///< axes parallel or perpendicular, as in most industrial arms
  double helical = 0.0;    ///< chance of a screw
};

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}

  double uniform(double low, double high);
  bool chance(double p) { return uniform(0.0, 1.0) < p; }
  int integer(int low, int high);
  Eigen::Vector3d vector(double size);
  Eigen::VectorXd vector_x(int n, double size);
  Eigen::Vector3d direction();
  Eigen::Matrix3d rotation();
  /// A physical body: the inertia of a box with its own axes.
  dynamics_core::Inertial inertial();
  dynamics_core::RobotDescription robot(const RandomOptions& options);
  /// A state of the model: unit quaternions where they belong.
  Eigen::VectorXd configuration(const dynamics_core::Model& model);

 private:
  dynamics_core::JointType type(const RandomOptions& options);
  dynamics_core::JointDescription joint(int index, const RandomOptions& options);

  std::mt19937 engine_;
};

}  // namespace support
