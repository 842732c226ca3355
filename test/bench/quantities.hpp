// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the benchmarks measure: every quantity by every method, on one robot in one state.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/load.hpp"

namespace bench {

class Quantities {
 public:
  using Call = std::function<dynamics_core::Status()>;

  explicit Quantities(const std::string& robot) : model_(dynamics_core::load_model(robot)) {
    using dynamics_core::Method;
    const int n = model_.nv;
    q_ = model_.neutral();
    q_.array() += 0.3;
    v_ = Eigen::VectorXd::LinSpaced(n, -1.0, 1.0);
    a_ = Eigen::VectorXd::LinSpaced(n, 2.0, -1.0);
    out_.resize(n);
    M_.resize(n, n);
    add("inverse dynamics", Method::newton_euler,
        [this](auto& robot) { return robot.inverse_dynamics(q_, v_, a_, out_); });
    add("inverse dynamics", Method::denoc,
        [this](auto& robot) { return robot.inverse_dynamics(q_, v_, a_, out_); });
    add("inverse dynamics", Method::gibbs_appell,
        [this](auto& robot) { return robot.inverse_dynamics(q_, v_, a_, out_); });
    add("bias", Method::newton_euler, [this](auto& robot) { return robot.bias(q_, v_, out_); });
    add("bias", Method::gibbs_appell, [this](auto& robot) { return robot.bias(q_, v_, out_); });
    add("gravity", Method::newton_euler, [this](auto& robot) { return robot.gravity(q_, out_); });
    add("mass matrix", Method::composite_body,
        [this](auto& robot) { return robot.mass_matrix(q_, M_); });
    add("mass matrix", Method::denoc, [this](auto& robot) { return robot.mass_matrix(q_, M_); });
    add("mass matrix", Method::gibbs_appell,
        [this](auto& robot) { return robot.mass_matrix(q_, M_); });
    add("forward dynamics", Method::articulated_body,
        [this](auto& robot) { return robot.forward_dynamics(q_, v_, a_, out_); });
    add("forward dynamics", Method::udut,
        [this](auto& robot) { return robot.forward_dynamics(q_, v_, a_, out_); });
    add("forward dynamics", Method::gibbs_appell,
        [this](auto& robot) { return robot.forward_dynamics(q_, v_, a_, out_); });
    add("forward dynamics", Method::cholesky,
        [this](auto& robot) { return robot.forward_dynamics(q_, v_, a_, out_); });
  }
  Quantities(const Quantities&) = delete;
  Quantities& operator=(const Quantities&) = delete;

  [[nodiscard]] const std::vector<std::pair<std::string, Call>>& all() const { return all_; }

 private:
  template <class Function>
  void add(const std::string& quantity, dynamics_core::Method method, Function compute) {
    const auto robot = std::make_shared<dynamics_core::Dynamics<double>>(model_, method);
    all_.emplace_back(quantity + ", " + to_string(method),
                      [robot, compute] { return compute(*robot); });
  }

  dynamics_core::Model model_;
  Eigen::VectorXd q_, v_, a_, out_;
  Eigen::MatrixXd M_;
  std::vector<std::pair<std::string, Call>> all_;
};

}  // namespace bench
