// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/joint_selection.hpp"

#include <cmath>
#include <unordered_set>

#include "dynamics_core/text.hpp"

namespace dynamics_core {

namespace {

using text::quoted;
using text::to_text;

/// Why a name is not that of a joint with one degree of freedom, and what to do about it.
[[nodiscard]] std::string refusal(const Model& model, const std::string& name) {
  const std::string start = "joint " + quoted(name);
  for (const MimicInfo& mimic : model.mimics)
    if (mimic.name == name) return start + " mimics another; name " + quoted(mimic.joint);
  if (const int joint = model.find_joint(name); joint >= 0) {
    return start + " is " + to_string(model.joints[static_cast<std::size_t>(joint)].type) +
           " and stays at its neutral position; leave it out";
  }
  const std::string known = text::joined(select_joints(model).names);
  return start + " is not a moving joint of robot " + quoted(model.name) + "; its joints are " +
         (known.empty() ? "none" : known);
}

void append(const JointInfo& joint, JointSelection& selection) {
  selection.names.push_back(joint.name);
  selection.q.push_back(joint.q);
  selection.v.push_back(joint.v);
}

}  // namespace

JointSelection select_joints(const Model& model, const std::vector<std::string>& names) {
  JointSelection selection;
  if (names.empty()) {
    for (const JointInfo& joint : model.joints)
      if (joint.nv == 1) append(joint, selection);
    return selection;
  }
  std::unordered_set<std::string> named;
  for (const std::string& name : names) {
    const int found = model.find_joint(name);
    if (found < 0 || model.joints[static_cast<std::size_t>(found)].nv != 1)
      throw RequestError(refusal(model, name));
    if (!named.insert(name).second)
      throw RequestError("joint " + quoted(name) + " is named twice; name it once");
    append(model.joints[static_cast<std::size_t>(found)], selection);
  }
  return selection;
}

int tip_link(const Model& model) noexcept {
  const int last = static_cast<int>(model.joints.size()) - 1;
  for (std::size_t i = model.links.size(); i-- > 0;) {
    if (model.links[i].body < 0) continue;
    const BodyData& body = model.bodies[static_cast<std::size_t>(model.links[i].body)];
    if (body.joint == last && !body.mimic) return static_cast<int>(i);
  }
  return 0;
}

void check_values(const std::string& name, const std::vector<double>& values,
                  const JointSelection& joints) {
  const std::size_t n = joints.size();
  if (values.size() % n != 0) {
    throw RequestError(name + " has " + std::to_string(values.size()) +
                       " values, which is no multiple of the number of joints; give " +
                       std::to_string(n) + " for each configuration");
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    throw RequestError(name + "[" + std::to_string(i) + "] (configuration " +
                       std::to_string(i / n) + ", joint " + quoted(joints.names[i % n]) + ") is " +
                       to_text(values[i]) + "; give finite values");
  }
}

JointStates::JointStates(const Model& model)
    : q(model.neutral()),
      v(VectorX<double>::Zero(model.nv)),
      heard(static_cast<std::size_t>(model.nq), false) {}

std::vector<std::string> JointStates::missing(const JointSelection& joints) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < joints.size(); ++i)
    if (!heard[static_cast<std::size_t>(joints.q[i])]) names.push_back(joints.names[i]);
  return names;
}

JointStateKeeper::JointStateKeeper(const Model& model)
    : joints_(select_joints(model)), states_(model) {
  for (std::size_t i = 0; i < joints_.size(); ++i) index_.emplace(joints_.names[i], i);
}

std::string JointStateKeeper::update(const std::vector<std::string>& names,
                                     const std::vector<double>& positions,
                                     const std::vector<double>& velocities) {
  const auto misfit = [&names](const std::vector<double>& values) {
    return !values.empty() && values.size() != names.size();
  };
  if (misfit(positions) || misfit(velocities)) {
    return "a message with " + std::to_string(names.size()) + " names, " +
           std::to_string(positions.size()) + " positions and " +
           std::to_string(velocities.size()) + " velocities; each array must be as long as the " +
           "names or empty";
  }
  std::string ignored;
  const auto ignore = [&](std::size_t i, const char* what, double value) {
    ignored += (ignored.empty() ? "" : ", ") + std::string(what) + " " + to_text(value) +
               " of joint " + quoted(names[i]);
  };
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto found = index_.find(names[i]);
    if (found == index_.end()) continue;
    const int at_q = joints_.q[found->second];
    const int at_v = joints_.v[found->second];
    if (!positions.empty() && !std::isfinite(positions[i])) {
      ignore(i, "position", positions[i]);
      continue;
    }
    if (!positions.empty()) {
      states_.q[at_q] = positions[i];
      states_.heard[static_cast<std::size_t>(at_q)] = true;
    }
    const double velocity = velocities.empty() || std::isnan(velocities[i]) ? 0.0 : velocities[i];
    if (std::isfinite(velocity)) {
      states_.v[at_v] = velocity;
    } else {
      ignore(i, "velocity", velocity);
    }
  }
  return ignored;
}

}  // namespace dynamics_core
