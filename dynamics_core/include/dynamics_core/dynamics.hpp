// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The dynamics of a robot: the one object that a user holds.
///
///     const Model model = load_urdf("robot.urdf");  // throws ModelError
///     Dynamics<double> robot(model);                // all memory is taken here
///     if (robot.inverse_dynamics(q, v, a, tau) != Status::ok) { ... }
///
/// q has nq entries, v, a and τ have nv, in the order of Model::joints; rad, m, rad/s, N·m and so
/// on. Units are SI, world means the root link's frame, spatial vectors have the angular part first.
///
/// | attribute              | constructor | all other member functions                     |
/// |------------------------|-------------|------------------------------------------------|
/// | allocates              | yes         | no                                             |
/// | throws                 | bad_alloc ¹ | no                                             |
/// | locks, waits, logs     | no          | no                                             |
/// | thread-safe            | –           | no: one object per thread, any number of them  |
/// | time                   | –           | bounded by the model's size, whatever the input |
///
/// ¹ and ConfigError where DYNAMICS_ISA is wrong (instruction_set.hpp).
///
/// status.hpp says what Status::ok promises. double and float are compiled into the library; for
/// another scalar type (scalar.hpp) include families.hpp as well.

#include <memory>
#include <optional>
#include <vector>

#include "dynamics_core/method.hpp"
#include "dynamics_core/model.hpp"
#include "dynamics_core/payload.hpp"
#include "dynamics_core/scalar.hpp"
#include "dynamics_core/spatial.hpp"
#include "dynamics_core/status.hpp"

namespace dynamics_core {

template <class S>
struct Families;
template <class S>
class Tree;
template <class S>
class Kinematics;
template <class S>
class OperationalSpace;
template <class S>
class Regressor;

template <class S>
class Dynamics {
 public:
  /// With the families of algorithms that suit the robot best.
  explicit Dynamics(const Model& model);
  /// What the named family provides, and the best for the rest.
  Dynamics(const Model& model, Method method);
  /// A robot of its own, with the same families, payloads, gravity and external forces.
  Dynamics(const Dynamics& other);
  Dynamics& operator=(const Dynamics&) = delete;
  Dynamics(Dynamics&&) noexcept;
  Dynamics& operator=(Dynamics&&) noexcept;
  ~Dynamics();

  [[nodiscard]] int nq() const noexcept;
  [[nodiscard]] int nv() const noexcept;
  /// Changes the family; none: the best for the robot.
  void use(std::optional<Method> method) noexcept;

  // --- motion and effort -------------------------------------------------------------------------
  /// τ = M(q) a + C(q, v) v + g(q) − Σ Jᵀ f_ext
  [[nodiscard]] StatusOf<S> inverse_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> a,
                                             VectorOut<S> tau) noexcept;
  /// a = M⁻¹(τ + Σ Jᵀ f_ext − C v − g). Status::singular where M cannot be inverted.
  [[nodiscard]] StatusOf<S> forward_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau,
                                             VectorOut<S> a) noexcept;
  /// The same with some coordinates (indices into v) held: a is zero there, whatever τ is.
  [[nodiscard]] StatusOf<S> forward_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau,
                                             const std::vector<int>& held, VectorOut<S> a) noexcept;
  /// C(q, v) v + g(q), without external forces
  [[nodiscard]] StatusOf<S> bias(VectorIn<S> q, VectorIn<S> v, VectorOut<S> tau) noexcept;
  /// C(q, v) v
  [[nodiscard]] StatusOf<S> velocity_effort(VectorIn<S> q, VectorIn<S> v,
                                            VectorOut<S> tau) noexcept;
  /// g(q)
  [[nodiscard]] StatusOf<S> gravity(VectorIn<S> q, VectorOut<S> tau) noexcept;

  // --- matrices, nv × nv -------------------------------------------------------------------------
  /// M(q), both triangles
  [[nodiscard]] StatusOf<S> mass_matrix(VectorIn<S> q, MatrixOut<S> M) noexcept;
  /// M⁻¹(q), both triangles
  [[nodiscard]] StatusOf<S> inverse_mass_matrix(VectorIn<S> q, MatrixOut<S> inverse) noexcept;
  /// C(q, v), with dM/dt − 2C skew-symmetric
  [[nodiscard]] StatusOf<S> coriolis(VectorIn<S> q, VectorIn<S> v, MatrixOut<S> C) noexcept;
  /// C(q, v) of Christoffel's symbols, for which moreover C(q, v) u = C(q, u) v
  [[nodiscard]] StatusOf<S> coriolis_christoffel(VectorIn<S> q, VectorIn<S> v,
                                                 MatrixOut<S> C) noexcept;

  // --- links -------------------------------------------------------------------------------------
  /// J(q), 6 × nv, of the point `offset` (m) of a link (index into Model::links), in the link's axes:
  /// J v is the point's [ω; v] in world axes. Visits only the joints on the way to the link.
  [[nodiscard]] StatusOf<S> jacobian(VectorIn<S> q, int link, MatrixOut<S> J,
                                     const Vec3<S>& offset = Vec3<S>::Zero()) noexcept;

  // --- derivatives, nv × nv; by q along the coordinates of v: derivatives.hpp --------------------
  /// ∂τ/∂q, ∂τ/∂v and ∂τ/∂a = M of the inverse dynamics
  [[nodiscard]] StatusOf<S> inverse_dynamics_derivatives(VectorIn<S> q, VectorIn<S> v,
                                                         VectorIn<S> a, MatrixOut<S> dtau_dq,
                                                         MatrixOut<S> dtau_dv,
                                                         MatrixOut<S> M) noexcept;
  /// ∂a/∂q, ∂a/∂v and ∂a/∂τ = M⁻¹ of the forward dynamics
  [[nodiscard]] StatusOf<S> forward_dynamics_derivatives(VectorIn<S> q, VectorIn<S> v,
                                                         VectorIn<S> tau, MatrixOut<S> da_dq,
                                                         MatrixOut<S> da_dv,
                                                         MatrixOut<S> da_dtau) noexcept;

  // --- what stays until it is changed ------------------------------------------------------------
  /// Gravity in the world frame, m/s².
  [[nodiscard]] StatusOf<S> set_gravity(const Vec3<S>& g) noexcept;
  [[nodiscard]] Vec3<S> gravity() const noexcept;
  /// Puts a payload on a link (index into Model::links), in place of the one it carries.
  [[nodiscard]] Status set_payload(int link, const Payload<S>& payload) noexcept;
  /// The inertia beside M's diagonal that a coordinate's joint has from its rotor: rotor
  /// inertia × gear ratio².
  [[nodiscard]] Status set_rotor_inertia(int dof, const S& inertia) noexcept;
  [[nodiscard]] S rotor_inertia(int dof) const noexcept;
  /// Adds a force [n; f] on a link, about the link's origin in the link's axes, N·m and N, for the
  /// inverse and forward dynamics that follow, until clear_external_forces().
  [[nodiscard]] Status add_external_force(int link, const Force<S>& F_L) noexcept;
  void clear_external_forces() noexcept;

  // --- further questions; each has its own header ------------------------------------------------
  /// Poses, velocities, Jacobians, centre of mass, energy, integration of q: kinematics.hpp
  [[nodiscard]] Kinematics<S>& kinematics() noexcept;
  [[nodiscard]] const Kinematics<S>& kinematics() const noexcept;
  /// The dynamics that a task sees: operational_space.hpp
  [[nodiscard]] OperationalSpace<S>& operational_space() noexcept;
  [[nodiscard]] const OperationalSpace<S>& operational_space() const noexcept;
  /// τ as a linear function of the inertial parameters: regressor.hpp
  [[nodiscard]] Regressor<S>& regressor() noexcept;
  [[nodiscard]] const Regressor<S>& regressor() const noexcept;
  /// Every family by itself, for those who compare them: families.hpp
  [[nodiscard]] Families<S>& families() noexcept;
  /// What closed loops (loops.hpp) and further families are built on: tree.hpp
  [[nodiscard]] Tree<S>& tree() noexcept;
  [[nodiscard]] const Tree<S>& tree() const noexcept;

  /// The functions that answer, by quantity: families.hpp
  struct Choice;
  using Choose = Choice(const Tree<S>& tree, std::optional<Method> method) noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

extern template class Dynamics<double>;
extern template class Dynamics<float>;

}  // namespace dynamics_core
