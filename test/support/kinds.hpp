// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The kinds of random robots that a method must treat, as parameters of a test, and a drawn one
/// with a state.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "support/random_model.hpp"

namespace support {

struct Kind {
  const char* name;
  RandomOptions options;
  bool floating_base = false;
};

/// How googletest writes a kind; it would write its bytes otherwise, addresses among them.
inline void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

inline std::vector<Kind> kinds() {
  std::vector<Kind> out;
  const auto add = [&out](const char* name, bool floating_base, auto set) {
    Kind kind{name, {}, floating_base};
    set(kind.options);
    out.push_back(kind);
  };
  add("chain", false, [](auto&) {});
  add("tree", false, [](auto& o) { o.branching = 0.5; });
  add("aligned", false, [](auto& o) { o.aligned = true, o.branching = 0.3; });
  add("prismatic", false, [](auto& o) { o.prismatic = 0.5, o.branching = 0.3; });
  add("helical", false, [](auto& o) { o.helical = 0.5, o.prismatic = 0.2, o.branching = 0.3; });
  add("rotors", false, [](auto& o) { o.rotors = true, o.mimic = 0.4; });
  add("mimic", false, [](auto& o) { o.mimic = 0.5, o.prismatic = 0.3, o.branching = 0.3; });
  add("planar", false, [](auto& o) { o.planar = 0.4, o.branching = 0.3; });
  add("floating", false, [](auto& o) { o.floating = 0.4, o.branching = 0.3; });
  add("floating_base", true, [](auto& o) { o.prismatic = 0.2, o.branching = 0.3; });
  add("everything", true, [](auto& o) { o = {10, 0.4, 0.3, 0.2, 0.2, 0.2, 0.3, true, false}; });
  return out;
}

/// A random robot of a kind in a random state, gravity in any direction.
struct Sample {
  Sample(const Kind& kind, unsigned seed) : random(seed) {
    RandomOptions options = kind.options;
    options.joints = random.integer(1, 14);
    robot = random.robot(options);
    if (options.joints > 0 && robot.joints[0].type == dynamics_core::JointType::fixed)
      robot.joints[0].type = dynamics_core::JointType::revolute;  // something must move
    dynamics_core::ModelOptions how;
    how.floating_base = kind.floating_base;
    how.gravity = random.vector(10.0);
    model = dynamics_core::build_model(robot, how);
    q = random.configuration(model);
    v = random.vector_x(model.nv, 2.0);
    a = random.vector_x(model.nv, 3.0);
  }

  Random random;
  dynamics_core::RobotDescription robot;
  dynamics_core::Model model;
  Eigen::VectorXd q, v, a;
};

/// Sixty joints of every kind: large enough for temporaries to outgrow the stack.
inline Sample large_robot() {
  Kind kind = kinds().back();
  Sample s(kind, 1);
  kind.options.joints = 60;
  kind.options.mimic = 0.1;
  s.robot = s.random.robot(kind.options);
  dynamics_core::ModelOptions how;
  how.floating_base = true;
  s.model = dynamics_core::build_model(s.robot, how);
  s.q = s.random.configuration(s.model);
  s.v = s.random.vector_x(s.model.nv, 1.0);
  s.a = s.random.vector_x(s.model.nv, 1.0);
  return s;
}

/// The largest difference, relative to the largest element of b or to one.
inline double difference(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  return (a - b).cwiseAbs().maxCoeff() / std::max(1.0, b.cwiseAbs().maxCoeff());
}

}  // namespace support
