// SPDX-License-Identifier: Apache-2.0
#include "motion.hpp"

#include <algorithm>
#include <cmath>

#include "common.hpp"
#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/friction.hpp"
#include "dynamics_core/trajectory.hpp"

namespace dynamics_core::tools {

namespace {

using Eigen::Index;
using VectorXd = VectorX<double>;

constexpr double largest_turn = 0.7;         // rad to either side of the middle
constexpr double largest_slide = 0.2;        // m
constexpr double usual_turning_speed = 2.0;  // rad/s where the robot does not say
constexpr double usual_sliding_speed = 0.5;  // m/s
constexpr double shortest_travel = 0.5;      // s
constexpr double share_of_effort = 0.8;      // of the limits, so that control has some left

[[nodiscard]] bool slides(const JointInfo& joint) { return joint.type == JointType::prismatic; }

/// A fifth of the range to either side of its middle.
[[nodiscard]] std::pair<double, double> ends(const JointInfo& joint) {
  const double most = slides(joint) ? largest_slide : largest_turn;
  const Limits& limits = joint.limits;
  const bool bounded = joint.type != JointType::continuous && std::isfinite(limits.lower) &&
                       std::isfinite(limits.upper) && limits.upper > limits.lower;
  if (!bounded) return {-most, most};
  const double middle = 0.5 * (limits.lower + limits.upper);
  const double reach = std::min(most, 0.2 * (limits.upper - limits.lower));
  return {middle - reach, middle + reach};
}

[[nodiscard]] VectorXd configuration(const Model& model, const std::string& text,
                                     const char* option, bool goal) {
  VectorXd q(model.nq);
  for (const JointInfo& joint : model.joints)
    q[joint.q] = goal ? ends(joint).second : ends(joint).first;
  if (text.empty()) return q;
  const std::vector<double> x = parse_numbers(text, option);
  if (static_cast<int>(x.size()) != model.nq)
    throw UsageError(std::string(option) + " has " + std::to_string(x.size()) +
                     " numbers instead of " + std::to_string(model.nq));
  return Eigen::Map<const VectorXd>(x.data(), model.nq);
}

/// One way, at this share of the velocity limits.
[[nodiscard]] double travel_time(const Model& model, const VectorXd& way, double speed,
                                 double peak_speed) {
  double longest = shortest_travel;
  for (const JointInfo& joint : model.joints) {
    double limit = joint.limits.velocity;
    if (!std::isfinite(limit) || limit <= 0.0)
      limit = slides(joint) ? usual_sliding_speed : usual_turning_speed;
    longest = std::max(longest, peak_speed * std::abs(way[joint.v]) / (speed * limit));
  }
  return longest;
}

/// Does the motion leave the drives some reserve?
[[nodiscard]] bool affordable(const Model& model, const Dynamics<double>& robot,
                              const PlannedMotion& motion) {
  const VectorXd peak = peak_efforts(model, robot, motion);
  return std::all_of(model.joints.begin(), model.joints.end(), [&](const JointInfo& joint) {
    return joint.limits.effort <= 0.0 || peak[joint.v] <= share_of_effort * joint.limits.effort;
  });
}

/// The way `there` for `travel` seconds, a pause, the same way back, a pause.
[[nodiscard]] Path back_and_forth(const Path& there, double travel, double pause) {
  return [=](double t, Desired& at) {
    const double phase = std::fmod(std::max(t, 0.0), 2.0 * (travel + pause));
    if (phase <= travel + pause) return there(std::min(phase, travel), at);
    const Status s = there(std::max(2.0 * travel + pause - phase, 0.0), at);
    at.v = -at.v;
    return s;
  };
}

[[nodiscard]] PlannedMotion between(const Model& model, const VectorXd& from, const VectorXd& to,
                                    double travel, const MotionOptions& options) {
  Path there;
  if (options.trajectory == "cycloid") {
    there = cycloid(model, from, to, travel);
  } else {
    there = [spline = trajectory::Spline<double>::quintic(from, to, travel)](
                double t, Desired& at) { return spline.evaluate(t, at.q, at.v, at.a); };
  }
  PlannedMotion motion;
  motion.path = back_and_forth(there, travel, options.pause);
  motion.duration = options.repeat * 2.0 * (travel + options.pause);
  motion.name = options.trajectory + ", there and back";
  return motion;
}

[[nodiscard]] PlannedMotion from_file(const Model& model, const MotionOptions& options) {
  const std::string& file = options.trajectory;
  if (!options.from.empty() || !options.to.empty() || options.travel > 0.0)
    throw UsageError("--from, --to and --travel do not go with a file of waypoints");
  PlannedMotion motion;
  motion.path = path_from_file(model, file);
  const VectorXd times = trajectory::read_waypoints(read_text_file(file), file).times;
  motion.duration = times[times.size() - 1];
  if (!(motion.duration > 0.0))
    throw ModelError(file, "last line", "its time is not above zero", "start the times at zero");
  motion.name = "waypoints of " + file;
  return motion;
}

}  // namespace

PlannedMotion plan_motion(const Model& model, const Dynamics<double>& robot,
                          const MotionOptions& options) {
  if (options.trajectory != "cycloid" && options.trajectory != "quintic")
    return from_file(model, options);
  const VectorXd from = configuration(model, options.from, "--from", false);
  const VectorXd to = configuration(model, options.to, "--to", true);
  if (options.travel > 0.0) return between(model, from, to, options.travel, options);
  const double peak_speed = options.trajectory == "cycloid" ? 2.0 : 1.875;  // of a way of 1 in 1 s
  double travel = travel_time(model, to - from, options.speed, peak_speed);
  PlannedMotion motion = between(model, from, to, travel, options);
  constexpr int trials = 8;  // beyond that it is the weight, and time does not help
  for (int i = 0; i < trials && !affordable(model, robot, motion); ++i) {
    travel *= 1.25;
    motion = between(model, from, to, travel, options);
  }
  return motion;
}

VectorXd peak_efforts(const Model& model, const Dynamics<double>& robot,
                      const PlannedMotion& motion) {
  Dynamics<double> own = robot;
  const Friction<double> friction(model);
  VectorXd tau = VectorXd::Zero(model.nv);
  VectorXd peak = tau;
  Desired at{tau, tau, tau};
  constexpr int samples = 400;
  for (int i = 0; i <= samples; ++i) {
    if (motion.path(motion.duration * i / samples, at) != Status::ok) break;
    if (own.inverse_dynamics(at.q, at.v, at.a, tau) != Status::ok) break;
    if (friction.add(at.v, tau) != Status::ok) break;
    peak = peak.cwiseMax(tau.cwiseAbs());
  }
  return peak;
}

}  // namespace dynamics_core::tools
