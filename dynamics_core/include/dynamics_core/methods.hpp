#pragma once

/// All families on one workspace, as free functions, and the choice among them by name: for those
/// who compare families. A user of the dynamics holds a Dynamics (dynamics.hpp).

#include "dynamics_core/families.hpp"

namespace dynamics_core {

/// A tree and every family at work on it. One per thread; all memory is taken in the constructor.
template <class S>
class Workspace : public Families<S> {
 public:
  explicit Workspace(const Model& model) : Families<S>(model) {}

  [[nodiscard]] int nb() const noexcept { return this->tree.nb(); }
  [[nodiscard]] int nq() const noexcept { return this->tree.nq(); }
  [[nodiscard]] int nv() const noexcept { return this->tree.nv(); }
  [[nodiscard]] bool has_mimic() const noexcept { return this->tree.has_mimic(); }
  [[nodiscard]] bool branched() const noexcept { return this->tree.branched(); }
  [[nodiscard]] StatusOf<S> set_gravity(const Vec3<S>& g) noexcept {
    return this->tree.set_gravity(g);
  }
  [[nodiscard]] Vec3<S> gravity() const noexcept { return this->tree.gravity(); }
  [[nodiscard]] Status set_payload(int link, const Payload<S>& payload) noexcept {
    return this->tree.set_payload(link, payload);
  }
  [[nodiscard]] Status add_external_force(int link, const Force<S>& F_L) noexcept {
    return this->tree.add_external_force(link, F_L);
  }
  void clear_external_forces() noexcept { this->tree.clear_external_forces(); }
};

namespace newton_euler {

template <class S>
[[nodiscard]] StatusOf<S> inverse_dynamics(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v, VectorIn<S> a, VectorOut<S> tau) noexcept {
  return ws.newton_euler.inverse_dynamics(q, v, a, tau);
}
template <class S>
[[nodiscard]] StatusOf<S> bias(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v, VectorOut<S> tau) noexcept {
  return ws.newton_euler.bias(q, v, tau);
}
template <class S>
[[nodiscard]] StatusOf<S> gravity(Workspace<S>& ws, VectorIn<S> q, VectorOut<S> tau) noexcept {
  return ws.newton_euler.gravity(q, tau);
}

}  // namespace newton_euler

namespace denoc {

template <class S>
[[nodiscard]] StatusOf<S> inverse_dynamics(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v, VectorIn<S> a, VectorOut<S> tau) noexcept {
  return ws.denoc.inverse_dynamics(q, v, a, tau);
}
template <class S>
[[nodiscard]] StatusOf<S> mass_matrix(Workspace<S>& ws, VectorIn<S> q, MatrixOut<S> M) noexcept {
  return ws.denoc.mass_matrix(q, M);
}
template <class S>
[[nodiscard]] StatusOf<S> coriolis(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v, MatrixOut<S> C) noexcept {
  return ws.denoc.coriolis(q, v, C);
}
template <class S>
[[nodiscard]] StatusOf<S> coriolis_christoffel(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v, MatrixOut<S> C) noexcept {
  return ws.denoc.coriolis_christoffel(q, v, C);
}

}  // namespace denoc

namespace gibbs_appell {

template <class S>
[[nodiscard]] StatusOf<S> inverse_dynamics(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v, VectorIn<S> a, VectorOut<S> tau) noexcept {
  return ws.gibbs_appell.inverse_dynamics(q, v, a, tau);
}
template <class S>
[[nodiscard]] StatusOf<S> bias(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v, VectorOut<S> tau) noexcept {
  return ws.gibbs_appell.bias(q, v, tau);
}
template <class S>
[[nodiscard]] StatusOf<S> mass_matrix(Workspace<S>& ws, VectorIn<S> q, MatrixOut<S> M) noexcept {
  return ws.gibbs_appell.mass_matrix(q, M);
}
template <class S>
[[nodiscard]] StatusOf<S> forward_dynamics(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau, VectorOut<S> a) noexcept {
  return ws.gibbs_appell.forward_dynamics(q, v, tau, a);
}
template <class S>
[[nodiscard]] StatusOf<S> refine(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau, VectorOut<S> a) noexcept {
  return ws.gibbs_appell.refine(q, v, tau, a);
}

}  // namespace gibbs_appell

namespace composite_body {

template <class S>
[[nodiscard]] StatusOf<S> mass_matrix(Workspace<S>& ws, VectorIn<S> q, MatrixOut<S> M) noexcept {
  return ws.composite_body.mass_matrix(q, M);
}

}  // namespace composite_body

namespace articulated_body {

template <class S>
[[nodiscard]] StatusOf<S> forward_dynamics(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau, VectorOut<S> a) noexcept {
  return ws.articulated_body.forward_dynamics(q, v, tau, a);
}

}  // namespace articulated_body

namespace udut {

template <class S>
[[nodiscard]] StatusOf<S> factorize(Workspace<S>& ws, VectorIn<S> q) noexcept {
  return ws.udut.factorize(q);
}
template <class S>
[[nodiscard]] StatusOf<S> factors(const Workspace<S>& ws, MatrixOut<S> U, VectorOut<S> D) noexcept {
  return ws.udut.factors(U, D);
}
template <class S>
[[nodiscard]] StatusOf<S> solve(Workspace<S>& ws, VectorIn<S> b, VectorOut<S> x) noexcept {
  return ws.udut.solve(b, x);
}
template <class S>
[[nodiscard]] StatusOf<S> forward_dynamics(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau, VectorOut<S> a) noexcept {
  return ws.udut.forward_dynamics(q, v, tau, a);
}
template <class S>
[[nodiscard]] StatusOf<S> inverse_mass_matrix(Workspace<S>& ws, VectorIn<S> q, MatrixOut<S> inverse) noexcept {
  return ws.udut.inverse_mass_matrix(q, inverse);
}

}  // namespace udut

namespace cholesky {

template <class S>
[[nodiscard]] StatusOf<S> forward_dynamics(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau, VectorOut<S> a) noexcept {
  return ws.cholesky.forward_dynamics(q, v, tau, a);
}
template <class S>
[[nodiscard]] StatusOf<S> inverse_mass_matrix(Workspace<S>& ws, VectorIn<S> q, MatrixOut<S> inverse) noexcept {
  return ws.cholesky.inverse_mass_matrix(q, inverse);
}

}  // namespace cholesky

namespace kinematics {

using dynamics_core::Energy;

template <class S>
[[nodiscard]] StatusOf<S> update(Workspace<S>& ws, VectorIn<S> q) noexcept {
  return ws.kinematics.update(q);
}
template <class S>
[[nodiscard]] StatusOf<S> update(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v) noexcept {
  return ws.kinematics.update(q, v);
}
template <class S>
[[nodiscard]] StatusOf<S> pose(const Workspace<S>& ws, int link, Pose<S>& X_WL) noexcept {
  return ws.kinematics.pose(link, X_WL);
}
template <class S>
[[nodiscard]] StatusOf<S> velocity(const Workspace<S>& ws, int link, Motion<S>& V_WL_W, const typename detail::Identity<Vec3<S>>::Type& offset = Vec3<S>::Zero()) noexcept {
  return ws.kinematics.velocity(link, V_WL_W, offset);
}
template <class S>
[[nodiscard]] StatusOf<S> bias_acceleration(const Workspace<S>& ws, int link, Motion<S>& A_WL_W, const typename detail::Identity<Vec3<S>>::Type& offset = Vec3<S>::Zero()) noexcept {
  return ws.kinematics.bias_acceleration(link, A_WL_W, offset);
}
template <class S>
[[nodiscard]] StatusOf<S> jacobian(const Workspace<S>& ws, int link, MatrixOut<S> J, const typename detail::Identity<Vec3<S>>::Type& offset = Vec3<S>::Zero()) noexcept {
  return ws.kinematics.jacobian(link, J, offset);
}
template <class S>
[[nodiscard]] StatusOf<S> jacobian_rate(const Workspace<S>& ws, int link, MatrixOut<S> Jd, const typename detail::Identity<Vec3<S>>::Type& offset = Vec3<S>::Zero()) noexcept {
  return ws.kinematics.jacobian_rate(link, Jd, offset);
}
template <class S>
[[nodiscard]] S total_mass(const Workspace<S>& ws) noexcept {
  return ws.kinematics.total_mass();
}
template <class S>
[[nodiscard]] StatusOf<S> centre_of_mass(const Workspace<S>& ws, Vec3<S>& p_WC) noexcept {
  return ws.kinematics.centre_of_mass(p_WC);
}
template <class S>
[[nodiscard]] StatusOf<S> centre_of_mass_velocity(const Workspace<S>& ws, Vec3<S>& v_WC) noexcept {
  return ws.kinematics.centre_of_mass_velocity(v_WC);
}
template <class S>
[[nodiscard]] StatusOf<S> centre_of_mass_jacobian(Workspace<S>& ws, MatrixOut<S> J) noexcept {
  return ws.kinematics.centre_of_mass_jacobian(J);
}
template <class S>
[[nodiscard]] Energy<S> energy(const Workspace<S>& ws) noexcept {
  return ws.kinematics.energy();
}
template <class S>
[[nodiscard]] StatusOf<S> configuration_rate(const Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v, VectorOut<S> q_rate) noexcept {
  return ws.kinematics.configuration_rate(q, v, q_rate);
}
template <class S>
[[nodiscard]] StatusOf<S> normalize(const Workspace<S>& ws, VectorOut<S> q) noexcept {
  return ws.kinematics.normalize(q);
}
template <class S>
[[nodiscard]] StatusOf<S> integrate(const Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v, const typename detail::Identity<S>::Type& dt, VectorOut<S> q_out) noexcept {
  return ws.kinematics.integrate(q, v, dt, q_out);
}

}  // namespace kinematics

namespace operational_space {

using dynamics_core::position_task;
using dynamics_core::Task;

template <class S>
[[nodiscard]] StatusOf<S> update(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v, const Task<S>& task) noexcept {
  return ws.operational_space.update(q, v, task);
}
template <class S>
[[nodiscard]] int rows(const Workspace<S>& ws) noexcept {
  return ws.operational_space.rows();
}
template <class S>
[[nodiscard]] auto inertia(const Workspace<S>& ws) noexcept {
  return ws.operational_space.inertia();
}
template <class S>
[[nodiscard]] auto velocity_force(const Workspace<S>& ws) noexcept {
  return ws.operational_space.velocity_force();
}
template <class S>
[[nodiscard]] auto gravity_force(const Workspace<S>& ws) noexcept {
  return ws.operational_space.gravity_force();
}
template <class S>
[[nodiscard]] auto jacobian(const Workspace<S>& ws) noexcept {
  return ws.operational_space.jacobian();
}
template <class S>
[[nodiscard]] auto consistent_inverse(const Workspace<S>& ws) noexcept {
  return ws.operational_space.consistent_inverse();
}
template <class S>
[[nodiscard]] StatusOf<S> null_space_projector(const Workspace<S>& ws, MatrixOut<S> N) noexcept {
  return ws.operational_space.null_space_projector(N);
}
template <class S>
[[nodiscard]] StatusOf<S> task_force(const Workspace<S>& ws, VectorIn<S> acceleration, VectorOut<S> force) noexcept {
  return ws.operational_space.task_force(acceleration, force);
}

}  // namespace operational_space

namespace regressor {

template <class S>
[[nodiscard]] int columns(const Workspace<S>& ws) noexcept {
  return ws.regressor.columns();
}
template <class S>
[[nodiscard]] StatusOf<S> parameters(const Workspace<S>& ws, VectorOut<S> pi) noexcept {
  return ws.regressor.parameters(pi);
}
template <class S>
[[nodiscard]] StatusOf<S> matrix(Workspace<S>& ws, VectorIn<S> q, VectorIn<S> v, VectorIn<S> a, MatrixOut<S> Y) noexcept {
  return ws.regressor.matrix(q, v, a, Y);
}

}  // namespace regressor

/// A function for each quantity.
template <class S>
struct Algorithms {
  using Ws = Workspace<S>;
  using In = VectorIn<S>;
  using Result = StatusOf<S>;
  Result (*inverse_dynamics)(Ws&, In, In, In, VectorOut<S>) noexcept;
  Result (*bias)(Ws&, In, In, VectorOut<S>) noexcept;
  Result (*gravity)(Ws&, In, VectorOut<S>) noexcept;
  Result (*mass_matrix)(Ws&, In, MatrixOut<S>) noexcept;
  Result (*coriolis)(Ws&, In, In, MatrixOut<S>) noexcept;
  Result (*forward_dynamics)(Ws&, In, In, In, VectorOut<S>) noexcept;
  Result (*inverse_mass_matrix)(Ws&, In, MatrixOut<S>) noexcept;
};

/// The best for a robot, as in Dynamics.
template <class S>
[[nodiscard]] Algorithms<S> default_algorithms(const Workspace<S>& ws) noexcept {
  const bool mimic = ws.has_mimic();
  return {gibbs_appell::inverse_dynamics<S>,
          gibbs_appell::bias<S>,
          newton_euler::gravity<S>,
          composite_body::mass_matrix<S>,
          denoc::coriolis<S>,
          mimic ? cholesky::forward_dynamics<S> : articulated_body::forward_dynamics<S>,
          mimic ? cholesky::inverse_mass_matrix<S> : udut::inverse_mass_matrix<S>};
}

/// What the family provides, and the default for the rest.
template <class S>
[[nodiscard]] Algorithms<S> algorithms(const Workspace<S>& ws, Method method) noexcept {
  Algorithms<S> chosen = default_algorithms<S>(ws);
  switch (method) {
    case Method::newton_euler:
      chosen.inverse_dynamics = newton_euler::inverse_dynamics<S>;
      chosen.bias = newton_euler::bias<S>;
      break;
    case Method::denoc:
      chosen.inverse_dynamics = denoc::inverse_dynamics<S>;
      chosen.mass_matrix = denoc::mass_matrix<S>;
      chosen.coriolis = denoc::coriolis<S>;
      break;
    case Method::gibbs_appell:
      chosen.inverse_dynamics = gibbs_appell::inverse_dynamics<S>;
      chosen.bias = gibbs_appell::bias<S>;
      chosen.mass_matrix = gibbs_appell::mass_matrix<S>;
      chosen.forward_dynamics = gibbs_appell::forward_dynamics<S>;
      break;
    case Method::composite_body: chosen.mass_matrix = composite_body::mass_matrix<S>; break;
    case Method::articulated_body:
      chosen.forward_dynamics = articulated_body::forward_dynamics<S>;
      break;
    case Method::udut:
      chosen.forward_dynamics = udut::forward_dynamics<S>;
      chosen.inverse_mass_matrix = udut::inverse_mass_matrix<S>;
      break;
    case Method::cholesky:
      chosen.forward_dynamics = cholesky::forward_dynamics<S>;
      chosen.inverse_mass_matrix = cholesky::inverse_mass_matrix<S>;
      break;
  }
  return chosen;
}

}  // namespace dynamics_core
