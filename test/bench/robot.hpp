// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The robots that the libraries are compared on.
///
/// Every library gets the same tree of joints, each with one coordinate: links that do not move
/// against each other are one body, and joints that mimic others move by themselves, as not every
/// library knows mimic joints. Nothing here depends on how Eigen aligns, as the libraries are each
/// compiled with their own options.

#include <Eigen/Core>
#include <string>
#include <vector>

#include "dynamics_core/model.hpp"

namespace bench {

/// A joint and the body that it moves, in the frame of the joint at zero.
struct Joint {
  int parent;                   ///< index of a joint before this one; −1: the world
  bool slides;                  ///< else it turns
  Eigen::Matrix3d rotation;     ///< of the joint in the parent joint's frame
  Eigen::Vector3d translation;  ///< likewise
  Eigen::Vector3d axis;
  double mass;
  Eigen::Vector3d com;
  Eigen::Matrix3d inertia;  ///< about the centre of mass
};

struct Robot {
  std::string name;
  dynamics_core::Model model;
  std::vector<Joint> joints;     ///< in the order of the coordinates
  int tip;                       ///< the link (of model.links) whose Jacobian is asked for,
  int tip_joint;                 ///< the joint that moves it,
  Eigen::Vector3d tip_in_joint;  ///< and where it is in that joint's frame
  [[nodiscard]] int n() const noexcept { return static_cast<int>(joints.size()); }
};

/// A file (URDF or Denavit–Hartenberg), or `chain:N` or `tree:N`: N revolute joints one after the
/// other, or as a binary tree, with random axes, offsets and inertias.
[[nodiscard]] Robot load_robot(const std::string& name);

}  // namespace bench
