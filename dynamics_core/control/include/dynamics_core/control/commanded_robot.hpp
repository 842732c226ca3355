// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The robot as the joints commanded see it: vectors have one element for each of them, in the
/// order of Config::joints. The other joints stand still where they are.

#include <string>
#include <vector>

#include "dynamics_core/control/config.hpp"
#include "dynamics_core/control/signals.hpp"
#include "dynamics_core/dynamics.hpp"

namespace dynamics_core::control {

/// All memory is taken in the constructor; every other member function is real-time safe.
class CommandedRobot {
 public:
  /// `config` is what resolve() returns.
  CommandedRobot(const Model& model, const Config& config);

  /// Of the joints commanded.
  [[nodiscard]] Eigen::Index size() const noexcept {
    return static_cast<Eigen::Index>(v_index_.size());
  }
  [[nodiscard]] Dynamics<double>& dynamics() noexcept { return dynamics_; }

  /// The model's other joints of one degree of freedom.
  [[nodiscard]] const std::vector<std::string>& other_joints() const noexcept { return others_; }
  /// Where they are, rad or m; what is not finite stays as it was.
  void set_others(const View& positions) noexcept;
  /// How they move, for inverse_dynamics() and velocity_effort() from now on. Without it they stand
  /// still.
  void set_other_motion(const VectorX<double>& v, const VectorX<double>& a) noexcept;
  /// The last configuration put together, nq.
  [[nodiscard]] const VectorX<double>& model_position() const noexcept { return model_q_; }
  [[nodiscard]] const VectorX<double>& model_velocity() const noexcept { return model_v_; }
  [[nodiscard]] const VectorX<double>& model_acceleration() const noexcept { return model_a_; }
  /// Of the joints commanded: their places in v.
  [[nodiscard]] const std::vector<Eigen::Index>& dofs() const noexcept { return v_index_; }

  /// g(q)
  [[nodiscard]] Status gravity(const VectorX<double>& q, VectorX<double>& tau) noexcept;
  /// M(q) a + C(q, v) v + g(q)
  [[nodiscard]] Status inverse_dynamics(const VectorX<double>& q, const VectorX<double>& v,
                                        const VectorX<double>& a, VectorX<double>& tau) noexcept;
  /// C(q, v) v
  [[nodiscard]] Status velocity_effort(const VectorX<double>& q, const VectorX<double>& v,
                                       VectorX<double>& tau) noexcept;
  /// tau += friction(v)
  void add_friction(const VectorX<double>& v, VectorX<double>& tau) const noexcept;

 private:
  void put_position(const VectorX<double>& q) noexcept;
  void put(const VectorX<double>& x, VectorX<double>& model_x) const noexcept;
  void get(VectorX<double>& tau) const noexcept;

  Dynamics<double> dynamics_;
  Friction<double> friction_;                    ///< of the joints commanded
  std::vector<Eigen::Index> q_index_, v_index_;  ///< of the joints commanded, in the model
  std::vector<std::string> others_;
  std::vector<Eigen::Index> other_index_;          ///< into the model's q
  std::vector<Eigen::Index> other_dof_;            ///< into the model's v
  VectorX<double> model_q_;                        ///< nq
  VectorX<double> model_v_, model_a_, model_tau_;  ///< nv
};

}  // namespace dynamics_core::control
