// SPDX-License-Identifier: Apache-2.0
/// A plugin for the users of inverse_dynamics_solver. The user page is
/// dynamics_ros/doc/inverse_dynamics_solver.md.

// The headers are named .hpp since version 2.
#if __has_include(<inverse_dynamics_solver/inverse_dynamics_solver.hpp>)
#include <inverse_dynamics_solver/exceptions.hpp>
#include <inverse_dynamics_solver/inverse_dynamics_solver.hpp>
#else
#include <inverse_dynamics_solver/exceptions.h>
#include <inverse_dynamics_solver/inverse_dynamics_solver.h>
#endif

#include <memory>
#include <optional>
#include <pluginlib/class_list_macros.hpp>
#include <stdexcept>
#include <string>

#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/friction.hpp"
#include "dynamics_core/kinematics.hpp"
#include "dynamics_core/load.hpp"

namespace realtime_dynamics {

using dynamics_core::Model;
using dynamics_core::Status;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Parameters = rclcpp::node_interfaces::NodeParametersInterface::ConstSharedPtr;

namespace {

/// The value of a parameter, or nothing where it is not declared.
template <class T>
[[nodiscard]] std::optional<T> find(const Parameters& parameters, const std::string& name) {
  if (!parameters || !parameters->has_parameter(name)) return std::nullopt;
  rclcpp::Parameter parameter;
  if (!parameters->get_parameter(name, parameter)) return std::nullopt;  // declared, not set
  return parameter.get_value<T>();
}

void check(Status status, const char* what) {
  if (status != Status::ok)
    throw std::invalid_argument(std::string(what) + ": " + to_string(status));
}

}  // namespace

/// Not for several threads at once: one robot serves all calls.
class InverseDynamicsSolver : public inverse_dynamics_solver::InverseDynamicsSolver {
 public:
  void initialize(Parameters parameters, const std::string& param_namespace,
                  const std::string& robot_description) override {
    using inverse_dynamics_solver::InvalidParameterValueException;
    const std::string prefix = param_namespace.empty() ? "" : param_namespace + ".";
    const auto description_text = robot_description.empty()
                                      ? find<std::string>(parameters, "robot_description")
                                      : std::optional<std::string>(robot_description);
    if (!description_text)
      throw inverse_dynamics_solver::ParameterUninitializedException("robot_description");
    try {
      const auto description = dynamics_core::parse_urdf(*description_text, "robot_description");
      const std::string root = find<std::string>(parameters, prefix + "root").value_or("");
      dynamics_core::ModelOptions options;
      if (const auto tip = find<std::string>(parameters, prefix + "tip"))
        options.joints = chain_joints(description, root, *tip);
      model_ = build_model(description, options);
      dynamics_ = std::make_unique<dynamics_core::Dynamics<double>>(*model_);
      set_gravity(root, find<std::vector<double>>(parameters, prefix + "gravity"));
    } catch (const dynamics_core::ModelError& error) {
      throw InvalidParameterValueException(error.what());
    }
  }

  [[nodiscard]] MatrixXd getInertiaMatrix(const VectorXd& q) const override {
    auto& robot = dynamics();
    MatrixXd M(robot.nv(), robot.nv());
    check(robot.mass_matrix(q, M), "inertia matrix");
    return M;
  }

  [[nodiscard]] VectorXd getCoriolisVector(const VectorXd& q, const VectorXd& v) const override {
    auto& robot = dynamics();
    VectorXd bias(robot.nv());
    check(robot.bias(q, v, bias), "Coriolis vector");
    return bias - getGravityVector(q);
  }

  [[nodiscard]] VectorXd getGravityVector(const VectorXd& q) const override {
    auto& robot = dynamics();
    VectorXd g(robot.nv());
    check(robot.gravity(q, g), "gravity vector");
    return g;
  }

  [[nodiscard]] VectorXd getFrictionVector(const VectorXd& v) const override {
    VectorXd effort = VectorXd::Zero(dynamics().nv());
    check(dynamics_core::Friction<double>(*model_).add(v, effort), "friction vector");
    return effort;
  }

  [[nodiscard]] VectorXd getTorques(const VectorXd& q, const VectorXd& v,
                                    const VectorXd& a) const override {
    auto& robot = dynamics();
    VectorXd tau(robot.nv());
    check(robot.inverse_dynamics(q, v, a, tau), "torques");
    return tau;
  }

 private:
  [[nodiscard]] dynamics_core::Dynamics<double>& dynamics() const {
    if (!dynamics_) throw inverse_dynamics_solver::UninitializedException();
    return *dynamics_;
  }

  /// The parameter is in the frame of `root`, the model's gravity in that of its root link.
  void set_gravity(const std::string& root, const std::optional<std::vector<double>>& given) {
    if (!given) return;
    if (given->size() != 3)
      throw inverse_dynamics_solver::InvalidParameterValueException(
          "gravity: list of " + std::to_string(given->size()) + "; give three numbers in m/s²");
    auto X_WR = dynamics_core::Pose<double>::identity();
    if (!root.empty()) {
      check(dynamics_->kinematics().update(model_->neutral()), "root");
      check(dynamics_->kinematics().pose(model_->find_link(root), X_WR), "root");
    }
    check(dynamics_->set_gravity(X_WR.R * Eigen::Vector3d(given->data())), "gravity");
  }

  std::optional<Model> model_;
  std::unique_ptr<dynamics_core::Dynamics<double>> dynamics_;
};

}  // namespace realtime_dynamics

PLUGINLIB_EXPORT_CLASS(realtime_dynamics::InverseDynamicsSolver,
                       inverse_dynamics_solver::InverseDynamicsSolver)
