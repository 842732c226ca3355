// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Joints by name: which of a robot's joints somebody speaks of, and what has been heard of them.
/// Off the real-time path.
///
/// Only joints of one degree of freedom go by name. Planar and floating joints, a floating base
/// among them, stay at their neutral position and at rest; mimic joints follow theirs.

#include <Eigen/Core>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "dynamics_core/model.hpp"

namespace dynamics_core {

/// A request that cannot be answered. The text names the element, the value and the remedy.
class RequestError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// Some of a model's joints, in the order in which they were named.
struct JointSelection {
  std::vector<std::string> names;
  std::vector<int> q;  ///< places in q
  std::vector<int> v;  ///< places in v, a and τ

  [[nodiscard]] std::size_t size() const noexcept { return names.size(); }
};

/// No names stand for all joints of one degree of freedom, in the model's order. Throws
/// RequestError for a name that is repeated or does not belong to such a joint.
[[nodiscard]] JointSelection select_joints(const Model& model,
                                           const std::vector<std::string>& names = {});

/// The link that is meant where none is named: the last one that the last joint moves, which on an
/// arm is the tool. The root link where nothing moves.
[[nodiscard]] int tip_link(const Model& model) noexcept;

/// Throws RequestError unless the values are finite and as many as the joints, or a multiple: one
/// value of each joint for each configuration. `name` is that of the array in messages.
void check_values(const std::string& name, const std::vector<double>& values,
                  const JointSelection& joints);

/// A robot's state as far as it has been heard of; neutral and at rest where it has not.
struct JointStates {
  explicit JointStates(const Model& model);

  VectorX<double> q;
  VectorX<double> v;
  std::vector<bool> heard;  ///< by place in q

  /// Those of the joints whose position has not been heard yet.
  [[nodiscard]] std::vector<std::string> missing(const JointSelection& joints) const;
};

/// Puts a robot's state together from messages that tell of some joints at a time.
class JointStateKeeper {
 public:
  explicit JointStateKeeper(const Model& model);

  /// Takes over what a message says of the robot's joints. Names may come in any order; those that
  /// are not the robot's are passed over. Velocities may be left out, altogether or as NaN, and
  /// count as zero. A joint whose position is not finite is passed over. Returns what had to be
  /// ignored, empty where nothing was.
  std::string update(const std::vector<std::string>& names, const std::vector<double>& positions,
                     const std::vector<double>& velocities);

  [[nodiscard]] const JointStates& states() const noexcept { return states_; }

 private:
  JointSelection joints_;
  std::unordered_map<std::string, std::size_t> index_;  ///< into joints_
  JointStates states_;
};

}  // namespace dynamics_core
