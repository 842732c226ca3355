#pragma once

/// What the benchmarks measure: every quantity by every method, on one robot in one state.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "dynamics_core/methods.hpp"
#include "dynamics_core/load.hpp"

namespace bench {

class Quantities {
 public:
  using Call = std::function<dynamics_core::Status()>;

  explicit Quantities(const std::string& robot)
      : model_(dynamics_core::load_model(robot)), ws_(model_) {
    namespace dc = dynamics_core;
    const int n = model_.nv;
    q_ = model_.neutral();
    q_.array() += 0.3;
    v_ = Eigen::VectorXd::LinSpaced(n, -1.0, 1.0);
    a_ = Eigen::VectorXd::LinSpaced(n, 2.0, -1.0);
    out_.resize(n);
    M_.resize(n, n);
    add("inverse dynamics", "newton_euler",
        [this] { return dc::newton_euler::inverse_dynamics(ws_, q_, v_, a_, out_); });
    add("inverse dynamics", "denoc",
        [this] { return dc::denoc::inverse_dynamics(ws_, q_, v_, a_, out_); });
    add("inverse dynamics", "gibbs_appell",
        [this] { return dc::gibbs_appell::inverse_dynamics(ws_, q_, v_, a_, out_); });
    add("bias", "newton_euler", [this] { return dc::newton_euler::bias(ws_, q_, v_, out_); });
    add("bias", "gibbs_appell", [this] { return dc::gibbs_appell::bias(ws_, q_, v_, out_); });
    add("gravity", "newton_euler", [this] { return dc::newton_euler::gravity(ws_, q_, out_); });
    add("mass matrix", "composite_body",
        [this] { return dc::composite_body::mass_matrix(ws_, q_, M_); });
    add("mass matrix", "denoc", [this] { return dc::denoc::mass_matrix(ws_, q_, M_); });
    add("mass matrix", "gibbs_appell",
        [this] { return dc::gibbs_appell::mass_matrix(ws_, q_, M_); });
    add("forward dynamics", "articulated_body",
        [this] { return dc::articulated_body::forward_dynamics(ws_, q_, v_, a_, out_); });
    add("forward dynamics", "udut",
        [this] { return dc::udut::forward_dynamics(ws_, q_, v_, a_, out_); });
    add("forward dynamics", "gibbs_appell",
        [this] { return dc::gibbs_appell::forward_dynamics(ws_, q_, v_, a_, out_); });
    add("forward dynamics", "cholesky",
        [this] { return dc::cholesky::forward_dynamics(ws_, q_, v_, a_, out_); });
  }
  Quantities(const Quantities&) = delete;
  Quantities& operator=(const Quantities&) = delete;

  [[nodiscard]] const std::vector<std::pair<std::string, Call>>& all() const { return all_; }

 private:
  void add(const std::string& quantity, const std::string& method, Call call) {
    all_.emplace_back(quantity + ", " + method, std::move(call));
  }

  dynamics_core::Model model_;
  dynamics_core::Workspace<double> ws_;
  Eigen::VectorXd q_, v_, a_, out_;
  Eigen::MatrixXd M_;
  std::vector<std::pair<std::string, Call>> all_;
};

}  // namespace bench
