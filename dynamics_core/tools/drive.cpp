// SPDX-License-Identifier: Apache-2.0
#include "drive.hpp"

#include <algorithm>
#include <memory>

#include "common.hpp"
#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/friction.hpp"
#include "dynamics_core/trajectory.hpp"

namespace dynamics_core::tools {

namespace {

using Eigen::Index;
using MatrixXd = MatrixX<double>;
using VectorXd = VectorX<double>;
using trajectory::Waypoints;

void require_plain_coordinates(const Model& model, const std::string& file) {
  for (const JointInfo& joint : model.joints)
    if (joint.nq != joint.nv)
      throw ModelError(file, "joint '" + joint.name + "'", "floats and cannot follow a path",
                       "drive it by a torque file");
}

/// The place in v of each column, by the file's heading or else by the model's order.
[[nodiscard]] std::vector<int> places(const Model& model, const Waypoints& table,
                                      const std::string& file) {
  const auto n = static_cast<std::size_t>(table.positions.cols());
  if (n != static_cast<std::size_t>(model.nv))
    throw ModelError(file, "heading", std::to_string(n) + " columns besides the time",
                     "the robot has " + std::to_string(model.nv) + " degrees of freedom");
  const std::vector<std::string> names = coordinate_names(model).v;
  std::vector<int> order;
  for (std::size_t i = 0; i < n; ++i) {
    if (table.joints.empty()) {
      order.push_back(static_cast<int>(i));
      continue;
    }
    // "tau.elbow", as this program writes it, or just "elbow"
    const std::string& heading = table.joints[i];
    const auto it = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
      return heading == name || heading == "tau." + name || heading == "q." + name;
    });
    const int place = static_cast<int>(it - names.begin());
    if (it == names.end())
      throw ModelError(file, "heading '" + heading + "'", "is no joint of the robot",
                       "`dynamics info` lists the joints");
    if (std::find(order.begin(), order.end(), place) != order.end())
      throw ModelError(file, "heading '" + heading + "'", "stands there twice", "remove one");
    order.push_back(place);
  }
  return order;
}

/// The file's table, its columns in the order of the model.
[[nodiscard]] Waypoints read_table(const Model& model, const std::string& file) {
  Waypoints table = trajectory::read_waypoints(read_text_file(file), file);
  const std::vector<int> order = places(model, table, file);
  MatrixXd sorted(table.positions.rows(), table.positions.cols());
  for (std::size_t i = 0; i < order.size(); ++i)
    sorted.col(order[i]) = table.positions.col(static_cast<Index>(i));
  table.positions = sorted;
  return table;
}

[[nodiscard]] VectorXd interpolated(const Waypoints& table, double t) {
  const double* first = table.times.data();
  const double* last = first + table.times.size();
  const Index next = std::upper_bound(first, last, t) - first;
  if (next == 0) return table.positions.row(0);
  if (next == table.times.size()) return table.positions.row(next - 1);
  const double x = (t - table.times[next - 1]) / (table.times[next] - table.times[next - 1]);
  return (1.0 - x) * table.positions.row(next - 1) + x * table.positions.row(next);
}

template <class Curve>
[[nodiscard]] Path follow(Curve curve) {
  return [curve = std::move(curve)](double t, Desired& at) {
    return curve.evaluate(t, at.q, at.v, at.a);
  };
}

}  // namespace

EffortSource free_fall() {
  return [](double, Eigen::Ref<VectorXd> tau) {
    tau.setZero();
    return Status::ok;
  };
}

EffortSource efforts_from_file(const Model& model, const std::string& file) {
  return [table = read_table(model, file)](double t, Eigen::Ref<VectorXd> tau) {
    tau = interpolated(table, t);
    return Status::ok;
  };
}

Path cycloid(const Model& model, const VectorXd& start, const VectorXd& goal, double duration) {
  require_plain_coordinates(model, "--goal");
  return follow(trajectory::Cycloid<double>(start, goal, duration));
}

Path path_from_file(const Model& model, const std::string& file) {
  require_plain_coordinates(model, file);
  const Waypoints table = read_table(model, file);
  return follow(trajectory::Spline<double>::through(
      table.times, table.positions, trajectory::Degree::quintic, trajectory::Ends::clamped));
}

EffortSource inverse_dynamics_along(const Path& path, const Model& model,
                                    const Dynamics<double>& robot, bool friction) {
  const auto own = std::make_shared<Dynamics<double>>(robot);
  const VectorXd zero = VectorXd::Zero(model.nv);
  const auto at = std::make_shared<Desired>(Desired{zero, zero, zero});
  return [=, rub = Friction<double>(model)](double t, Eigen::Ref<VectorXd> tau) {
    if (const Status s = path(t, *at); s != Status::ok) return s;
    const Status s = own->inverse_dynamics(at->q, at->v, at->a, tau);
    return s == Status::ok && friction ? rub.add(at->v, tau) : s;
  };
}

}  // namespace dynamics_core::tools
