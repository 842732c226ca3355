// SPDX-License-Identifier: Apache-2.0
#include "robot.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "dynamics_core/load.hpp"
#include "support/random_model.hpp"

namespace bench {

namespace {

using namespace dynamics_core;

/// Adds a part to a joint's body: masses add up, the inertia is moved to the common centre.
void add_part(const Inertial& part, const Pose<double>& X, Joint& joint) {
  const double mass = joint.mass + part.mass;
  const Eigen::Vector3d at = X * part.com;
  const Eigen::Vector3d com =
      mass > 0.0 ? Eigen::Vector3d((joint.mass * joint.com + part.mass * at) / mass) : joint.com;
  const auto about = [&](double m, const Eigen::Vector3d& from) {
    const Eigen::Vector3d d = from - com;
    return Eigen::Matrix3d(m * (d.squaredNorm() * Eigen::Matrix3d::Identity() - d * d.transpose()));
  };
  joint.inertia +=
      about(joint.mass, joint.com) + about(part.mass, at) + X.R * part.inertia * X.R.transpose();
  joint.mass = mass;
  joint.com = com;
}

/// Walks a description in the order of Model::joints and joins what is fixed.
class Builder {
 public:
  Builder(const RobotDescription& from, Robot& to) : from_(from), to_(to) {
    for (const LinkDescription& link : from.links)
      if (link.inertial) inertials_[link.name] = *link.inertial;
    visit(root(), -1, Pose<double>::identity());
  }

 private:
  [[nodiscard]] std::string root() const {
    for (const LinkDescription& link : from_.links)
      if (std::none_of(from_.joints.begin(), from_.joints.end(),
                       [&](const JointDescription& j) { return j.child == link.name; }))
        return link.name;
    throw std::runtime_error("no root link");
  }

  void visit(const std::string& link, int joint, const Pose<double>& X) {
    const auto inertial = inertials_.find(link);
    if (joint >= 0 && inertial != inertials_.end())
      add_part(inertial->second, X, to_.joints[static_cast<std::size_t>(joint)]);
    remember_tip(link, joint, X);
    for (const JointDescription& j : from_.joints) {
      if (j.parent != link) continue;
      const Pose<double> X_J = X * j.origin;
      switch (j.type) {
        case JointType::fixed: visit(j.child, joint, X_J); break;
        case JointType::revolute:
        case JointType::continuous:
        case JointType::prismatic:
          to_.joints.push_back({joint, j.type == JointType::prismatic, X_J.R, X_J.p,
                                j.axis.normalized(), 0.0, Eigen::Vector3d::Zero(),
                                Eigen::Matrix3d::Zero()});
          depth_.push_back(joint < 0 ? 1 : depth_[static_cast<std::size_t>(joint)] + 1);
          visit(j.child, to_.n() - 1, Pose<double>::identity());
          break;
        default: throw std::runtime_error(j.name + ": not every library has such a joint");
      }
    }
  }

  /// The tip is the link at the end of the longest way.
  void remember_tip(const std::string& link, int joint, const Pose<double>& X) {
    if (joint < 0 || depth_[static_cast<std::size_t>(joint)] < longest_) return;
    longest_ = depth_[static_cast<std::size_t>(joint)];
    to_.tip = to_.model.find_link(link);
    to_.tip_joint = joint;
    to_.tip_in_joint = X.p;
  }

  const RobotDescription& from_;
  Robot& to_;
  std::map<std::string, Inertial> inertials_;
  std::vector<int> depth_;
  int longest_ = 0;
};

RobotDescription grown(int n, bool tree) {
  support::Random random(1);
  RobotDescription robot = random.robot([n] {
    support::RandomOptions options;
    options.joints = n;
    return options;
  }());
  for (int i = 0; i < n && tree; ++i)
    robot.joints[static_cast<std::size_t>(i)].parent = "link_" + std::to_string((i + 1) / 2);
  return robot;
}

}  // namespace

Robot load_robot(const std::string& name) {
  const bool chain = name.rfind("chain:", 0) == 0;
  const bool tree = name.rfind("tree:", 0) == 0;
  RobotDescription description =
      chain || tree ? grown(std::stoi(name.substr(name.find(':') + 1)), tree) : parse_file(name);
  for (JointDescription& joint : description.joints) joint.mimic.reset();
  Robot robot;
  robot.name = name;
  robot.model = build_model(description);
  Builder(description, robot);
  return robot;
}

}  // namespace bench
