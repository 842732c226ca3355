// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "dynamics_core/description.hpp"
#include "dynamics_core/text.hpp"

namespace dynamics_core {

namespace {

using text::quoted;

void require_link(const RobotDescription& description, const std::string& name) {
  for (const LinkDescription& link : description.links)
    if (link.name == name) return;
  throw ModelError(description.source, "link " + quoted(name), "the robot has no such link",
                   "name one of its links");
}

[[nodiscard]] const JointDescription* joint_above(const RobotDescription& description,
                                                  const std::string& link) {
  for (const JointDescription& joint : description.joints)
    if (joint.child == link) return &joint;
  return nullptr;
}

}  // namespace

std::vector<std::string> chain_joints(const RobotDescription& description, const std::string& root,
                                      const std::string& tip) {
  if (!root.empty()) require_link(description, root);
  require_link(description, tip);
  std::vector<std::string> names;
  std::string link = tip;
  for (std::size_t steps = 0; link != root; ++steps) {
    const JointDescription* joint = joint_above(description, link);
    if (joint == nullptr && root.empty()) break;
    if (joint == nullptr || steps > description.joints.size())
      throw ModelError(description.source, "link " + quoted(tip),
                       "is not moved by the joints below " + quoted(root),
                       "name a tip that hangs on the root");
    if (joint->type != JointType::fixed && !joint->mimic) names.push_back(joint->name);
    link = joint->parent;
  }
  std::reverse(names.begin(), names.end());
  return names;
}

}  // namespace dynamics_core
