// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/batch.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "dynamics_core/friction.hpp"
#include "dynamics_core/kinematics.hpp"
#include "dynamics_core/regressor.hpp"
#include "dynamics_core/text.hpp"

namespace dynamics_core {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using text::quoted;

/// One result among many, where it goes.
using Out = Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

/// The whole robot's.
struct JointValues {
  VectorXd q, v, a, tau;
};

/// Where the values are given, puts those of one configuration in their places.
void scatter(const std::vector<double>& values, std::size_t configuration,
             const std::vector<int>& places, VectorXd& x) {
  if (values.empty()) return;
  const double* from = values.data() + configuration * places.size();
  for (const int place : places) x[place] = *from++;
}

[[nodiscard]] std::string explain(Status status) {
  if (status == Status::singular) {
    return "the mass matrix is singular, as a joint moves no inertia; give the links behind it "
           "mass or leave the joint out";
  }
  if (status == Status::not_finite)  // the values given are, as has been checked
    return "the result is not finite; the values given are too large";
  return to_string(status);
}

}  // namespace

/// A query on its way: its joints, a robot of its own, and the state that runs through its
/// configurations. To build a robot takes a few microseconds; in return no query waits for another
/// or finds its payloads.
class Batch::Job {
 public:
  Job(const Batch& batch, const BatchQuery& query)
      : joints(select_joints(batch.model_, query.joint_names)),
        robot(batch.model_),
        state{batch.latest_.q, VectorXd::Zero(robot.nv()), VectorXd::Zero(robot.nv()),
              VectorXd::Zero(robot.nv())},
        query_(query),
        limits_(batch.limits_) {
    if (joints.size() == 0) {
      throw RequestError("robot " + quoted(batch.model_.name) +
                         " has no joint of one degree of freedom; there is nothing to compute");
    }
    check_values("positions", query.positions, joints);
    check_values("velocities", query.velocities, joints);
    check_values("accelerations", query.accelerations, joints);
    check_values("efforts", query.efforts, joints);
    count_configurations();
    if (query.positions.empty()) take_latest(batch.latest_);
    add_wrenches(batch);
    add_payloads(batch);
  }

  [[nodiscard]] std::size_t n() const noexcept { return joints.size(); }

  /// Calls compute(out) in the state of each configuration; `out` has a configuration's rows and
  /// columns.
  template <class Compute>
  [[nodiscard]] BatchAnswer run(std::size_t rows, std::size_t columns, Compute compute) {
    const std::size_t size = rows * columns;
    if (configurations_ * size > limits_.max_values) {
      throw RequestError(std::to_string(configurations_) + " configurations of " +
                         std::to_string(size) + " values each are more than max_values, " +
                         std::to_string(limits_.max_values) + "; ask in several calls");
    }
    BatchAnswer answer{joints.names, configurations_, rows, columns, {}};
    answer.data.resize(configurations_ * size);
    for (std::size_t k = 0; k < configurations_; ++k) {
      scatter(query_.positions, k, joints.q, state.q);
      scatter(query_.velocities, k, joints.v, state.v);
      scatter(query_.accelerations, k, joints.v, state.a);
      scatter(query_.efforts, k, joints.v, state.tau);
      double* out = answer.data.data() + k * size;
      const Status status =
          compute(Out(out, static_cast<Index>(rows), static_cast<Index>(columns)));
      if (status != Status::ok) fail(k, explain(status));
    }
    return answer;
  }

  JointSelection joints;
  Dynamics<double> robot;
  JointValues state;

 private:
  [[noreturn]] static void fail(std::size_t configuration, const std::string& problem) {
    throw RequestError("configuration " + std::to_string(configuration) + ": " + problem);
  }

  /// All arrays that are given must agree; if none is, there is one configuration, the latest.
  void count_configurations() {
    const std::pair<const char*, const std::vector<double>&> arrays[] = {
        {"positions", query_.positions},
        {"velocities", query_.velocities},
        {"accelerations", query_.accelerations},
        {"efforts", query_.efforts}};
    const char* first = nullptr;
    for (const auto& [name, values] : arrays) {
      if (values.empty()) continue;
      const std::size_t k = values.size() / n();
      if (first != nullptr && k != configurations_) {
        throw RequestError(std::string(name) + " has " + std::to_string(k) +
                           " configurations, but " + first + " has " +
                           std::to_string(configurations_) + "; give as many of each or none");
      }
      first = name;
      configurations_ = k;
    }
    if (configurations_ > limits_.max_configurations) {
      throw RequestError(std::to_string(configurations_) +
                         " configurations are more than max_configurations, " +
                         std::to_string(limits_.max_configurations) + "; ask in several calls");
    }
  }

  void take_latest(const JointStates& latest) {
    if (const auto missing = latest.missing(joints); !missing.empty()) {
      throw RequestError("no positions are given and joint " + quoted(missing.front()) +
                         " has not been in any joint state yet; give positions or publish it");
    }
    if (!query_.velocities.empty()) return;
    for (const int place : joints.v) state.v[place] = latest.v[place];
  }

  void add_wrenches(const Batch& batch) {
    for (const LinkWrench& on : query_.wrenches) {
      const Status status = robot.add_external_force(batch.find_link(on.link), on.wrench);
      if (status != Status::ok) {
        throw RequestError("the wrench on link " + quoted(on.link) + " is " + to_string(status) +
                           "; give finite values");
      }
    }
  }

  void add_payloads(const Batch& batch) {
    std::unordered_set<int> loaded;
    for (const LinkPayload& on : query_.payloads) {
      const int link = batch.find_link(on.link);
      const std::string& name = batch.model_.links[static_cast<std::size_t>(link)].name;
      if (!loaded.insert(link).second)
        throw RequestError("link " + quoted(name) + " carries two payloads; give their sum");
      try {
        (void)checked_payload(batch.model_, name, on.payload);
      } catch (const ConfigError& error) {
        throw RequestError("payload on link " + quoted(name) + ": " + error.what());
      }
      if (const Status status = robot.set_payload(link, on.payload); status != Status::ok)
        throw RequestError("payload on link " + quoted(name) + ": " + to_string(status));
    }
  }

  const BatchQuery& query_;
  BatchLimits limits_;
  std::size_t configurations_ = 1;
};

int Batch::find_link(const std::string& name) const {
  if (name.empty()) return tip_link(model_);
  const int link = model_.find_link(name);
  if (link >= 0) return link;
  throw RequestError("link " + quoted(name) + " is not a link of robot " + quoted(model_.name) +
                     "; its tip is " +
                     quoted(model_.links[static_cast<std::size_t>(tip_link(model_))].name));
}

BatchAnswer Batch::mass_matrix(const BatchQuery& query) const {
  Job job(*this, query);
  MatrixXd M(model_.nv, model_.nv);
  return job.run(job.n(), job.n(), [&](Out out) {
    const Status status = job.robot.mass_matrix(job.state.q, M);
    out = M(job.joints.v, job.joints.v);
    return status;
  });
}

BatchAnswer Batch::gravity(const BatchQuery& query) const {
  Job job(*this, query);
  VectorXd tau(model_.nv);
  return job.run(job.n(), 1, [&](Out out) {
    const Status status = job.robot.gravity(job.state.q, tau);
    out = tau(job.joints.v);
    return status;
  });
}

BatchAnswer Batch::coriolis(const BatchQuery& query, CoriolisFactor factor) const {
  Job job(*this, query);
  MatrixXd C(model_.nv, model_.nv);
  return job.run(job.n(), job.n(), [&](Out out) {
    const Status status = factor == CoriolisFactor::christoffel
                              ? job.robot.coriolis_christoffel(job.state.q, job.state.v, C)
                              : job.robot.coriolis(job.state.q, job.state.v, C);
    out = C(job.joints.v, job.joints.v);
    return status;
  });
}

BatchAnswer Batch::inverse_dynamics(const BatchQuery& query) const {
  Job job(*this, query);
  const Friction<double> friction(model_);
  VectorXd tau(model_.nv);
  return job.run(job.n(), 1, [&](Out out) {
    const JointValues& s = job.state;
    Status status = job.robot.inverse_dynamics(s.q, s.v, s.a, tau);
    if (status == Status::ok && query.friction) status = friction.add(s.v, tau);
    out = tau(job.joints.v);
    return status;
  });
}

BatchAnswer Batch::forward_dynamics(const BatchQuery& query) const {
  Job job(*this, query);
  const Friction<double> friction(model_);
  std::vector<int> held;
  for (int i = 0; i < model_.nv; ++i)
    if (std::find(job.joints.v.begin(), job.joints.v.end(), i) == job.joints.v.end())
      held.push_back(i);
  VectorXd tau(model_.nv);
  VectorXd x(model_.nv);
  return job.run(job.n(), 1, [&](Out out) {
    const JointValues& s = job.state;
    tau = s.tau;
    Status status = query.friction ? friction.subtract(s.v, tau) : Status::ok;
    if (status == Status::ok) status = job.robot.forward_dynamics(s.q, s.v, tau, held, x);
    out = x(job.joints.v);
    return status;
  });
}

BatchAnswer Batch::jacobian(const BatchQuery& query, const std::string& link, JacobianAxes axes,
                            const Eigen::Vector3d& offset) const {
  if (!offset.allFinite())
    throw RequestError("the point on the link is not finite; give finite values");
  const int index = find_link(link);
  Job job(*this, query);
  MatrixXd J(6, model_.nv);
  Pose<double> X_WL = Pose<double>::identity();
  return job.run(6, job.n(), [&](Out out) {
    Status status = job.robot.kinematics().update(job.state.q);
    if (status == Status::ok) status = job.robot.kinematics().jacobian(index, J, offset);
    if (status == Status::ok) status = job.robot.kinematics().pose(index, X_WL);
    if (axes == JacobianAxes::link) {
      J.topRows<3>() = X_WL.R.transpose() * J.topRows<3>();
      J.bottomRows<3>() = X_WL.R.transpose() * J.bottomRows<3>();
    }
    out.topRows<3>() = J.bottomRows<3>()(Eigen::all, job.joints.v);
    out.bottomRows<3>() = J.topRows<3>()(Eigen::all, job.joints.v);
    return status;
  });
}

BatchAnswer Batch::regressor(const BatchQuery& query) const {
  Job job(*this, query);
  const int columns = job.robot.regressor().columns();
  MatrixXd Y(model_.nv, columns);
  return job.run(job.n(), static_cast<std::size_t>(columns), [&](Out out) {
    const JointValues& s = job.state;
    const Status status = job.robot.regressor().matrix(s.q, s.v, s.a, Y);
    out = Y(job.joints.v, Eigen::all);
    return status;
  });
}

std::vector<double> Batch::parameters() const {
  const Dynamics<double> robot(model_);
  VectorXd pi(robot.regressor().columns());
  if (const Status status = robot.regressor().parameters(pi); status != Status::ok)
    throw RequestError(to_string(status));
  return {pi.data(), pi.data() + pi.size()};
}

}  // namespace dynamics_core
