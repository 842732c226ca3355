// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The dynamics of a robot in many configurations at once, on numbers that somebody else keeps:
///
///     BatchDynamics robot(model);                            // all memory is taken here
///     std::vector<double> q(nq * k), v(nv * k), a(nv * k), tau(nv * k);
///     Status status = robot.inverse_dynamics(
///         k, by_coordinate(q.data(), nq, k), by_coordinate(v.data(), nv, k),
///         by_coordinate(a.data(), nv, k), by_coordinate(tau.data(), nv, k));
///
/// It runs the text of Dynamics<double> on as many configurations as a register of the processor
/// holds. (batch.hpp has a face with names and lists on top of this one, for services and scripts.)
///
/// # Results
///
/// The result of a configuration depends on its own values alone: not on its place in the batch, on
/// the size of the batch, on what the others hold, or on the number of threads, to the last bit. It
/// agrees with Dynamics<double> to round-off, and between processors to round-off.
///
/// Each function returns `ok`, or the status of the first configuration that is not ok; `statuses`,
/// where given, receives that of every one (unless sizes are wrong: then nothing is computed). The
/// results of a configuration that failed are NaN, and the others are as without it.
///
/// # Contract
///
/// | attribute              | constructor | all other member functions                      |
/// |------------------------|-------------|-------------------------------------------------|
/// | allocates              | yes         | no                                              |
/// | throws                 | yes         | no                                              |
/// | locks, waits           | no          | only for the threads, if there are any          |
/// | thread-safe            | –           | no: one object for each caller, any number      |
/// | time                   | –           | bounded by the number and the size of the model |

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "dynamics_core/method.hpp"
#include "dynamics_core/model.hpp"
#include "dynamics_core/payload.hpp"
#include "dynamics_core/spatial.hpp"
#include "dynamics_core/status.hpp"

namespace dynamics_core {

// --- Where the numbers are -----------------------------------------------------------------------

/// A quantity of many configurations: element e of configuration k is
/// data[e · between_elements + k · between_configurations]. A matrix has its elements by rows.
template <class T>
struct BatchView {
  T* data = nullptr;
  int size = 0;  ///< elements of a configuration
  std::ptrdiff_t between_elements = 0;
  std::ptrdiff_t between_configurations = 0;
};
using BatchIn = BatchView<const double>;
using BatchOut = BatchView<double>;

/// A structure of arrays, element e of configuration k at data[e · stride + k]: the fastest.
template <class T>
[[nodiscard]] BatchView<T> by_coordinate(T* data, int size, std::ptrdiff_t stride) noexcept {
  return {data, size, stride, 1};
}
/// An array of structures, element e of configuration k at data[k · size + e]: rows of a NumPy
/// array, columns of an Eigen matrix, the arrays of the services' messages.
template <class T>
[[nodiscard]] BatchView<T> by_configuration(T* data, int size) noexcept {
  return {data, size, 1, size};
}
/// The same `size` values in every configuration.
[[nodiscard]] inline BatchIn in_every_configuration(const double* data, int size) noexcept {
  return {data, size, 1, 0};
}

// --- What is computed ----------------------------------------------------------------------------

enum class JacobianAxes { world, link };

class BatchDynamics {
 public:
  /// `threads`: how many share large batches with the caller's; they sleep between the calls. With
  /// none, nothing locks. Throws std::system_error if there cannot be so many.
  explicit BatchDynamics(const Model& model, int threads = 0);
  BatchDynamics(BatchDynamics&&) noexcept;
  BatchDynamics& operator=(BatchDynamics&&) noexcept;
  ~BatchDynamics();

  [[nodiscard]] int nq() const noexcept;
  [[nodiscard]] int nv() const noexcept;
  [[nodiscard]] int threads() const noexcept;
  /// How many configurations are computed at a time.
  [[nodiscard]] int width() const noexcept;
  /// Changes the family of algorithms; none: the best for the robot.
  void use(std::optional<Method> method) noexcept;

  // q has nq elements; v, a and τ have nv; M, M⁻¹ and C have nv · nv, and a Jacobian 6 · nv, by rows.
  // What they are: dynamics.hpp.

  [[nodiscard]] Status inverse_dynamics(std::size_t count, BatchIn q, BatchIn v, BatchIn a,
                                        BatchOut tau, Status* statuses = nullptr) noexcept;
  [[nodiscard]] Status forward_dynamics(std::size_t count, BatchIn q, BatchIn v, BatchIn tau,
                                        BatchOut a, Status* statuses = nullptr) noexcept;
  /// With some coordinates (indices into v) held.
  [[nodiscard]] Status forward_dynamics(std::size_t count, BatchIn q, BatchIn v, BatchIn tau,
                                        const std::vector<int>& held, BatchOut a,
                                        Status* statuses = nullptr) noexcept;
  [[nodiscard]] Status bias(std::size_t count, BatchIn q, BatchIn v, BatchOut tau,
                            Status* statuses = nullptr) noexcept;
  [[nodiscard]] Status velocity_effort(std::size_t count, BatchIn q, BatchIn v, BatchOut tau,
                                       Status* statuses = nullptr) noexcept;
  [[nodiscard]] Status gravity(std::size_t count, BatchIn q, BatchOut tau,
                               Status* statuses = nullptr) noexcept;
  [[nodiscard]] Status mass_matrix(std::size_t count, BatchIn q, BatchOut M,
                                   Status* statuses = nullptr) noexcept;
  [[nodiscard]] Status inverse_mass_matrix(std::size_t count, BatchIn q, BatchOut inverse,
                                           Status* statuses = nullptr) noexcept;
  [[nodiscard]] Status coriolis(std::size_t count, BatchIn q, BatchIn v, BatchOut C,
                                Status* statuses = nullptr) noexcept;
  [[nodiscard]] Status coriolis_christoffel(std::size_t count, BatchIn q, BatchIn v, BatchOut C,
                                            Status* statuses = nullptr) noexcept;
  /// ∂τ/∂q, ∂τ/∂v and ∂τ/∂a = M, one after the other: 3 · nv · nv elements.
  [[nodiscard]] Status inverse_dynamics_derivatives(std::size_t count, BatchIn q, BatchIn v,
                                                    BatchIn a, BatchOut derivatives,
                                                    Status* statuses = nullptr) noexcept;
  /// ∂a/∂q, ∂a/∂v and ∂a/∂τ = M⁻¹, likewise.
  [[nodiscard]] Status forward_dynamics_derivatives(std::size_t count, BatchIn q, BatchIn v,
                                                    BatchIn tau, BatchOut derivatives,
                                                    Status* statuses = nullptr) noexcept;
  /// Of the point at `offset` in the link's frame, angular rows first.
  [[nodiscard]] Status jacobian(std::size_t count, BatchIn q, int link, BatchOut J,
                                const Vec3<double>& offset = Vec3<double>::Zero(),
                                JacobianAxes axes = JacobianAxes::world,
                                Status* statuses = nullptr) noexcept;

  // --- what stays until it is changed, in all configurations: as in dynamics.hpp -----------------
  [[nodiscard]] Status set_gravity(const Vec3<double>& g) noexcept;
  [[nodiscard]] Status set_payload(int link, const Payload<double>& payload) noexcept;
  [[nodiscard]] Status set_rotor_inertia(int dof, double inertia) noexcept;
  [[nodiscard]] Status add_external_force(int link, const Force<double>& F_L) noexcept;
  void clear_external_forces() noexcept;

 private:
  class Workers;
  std::unique_ptr<Workers> workers_;
};

}  // namespace dynamics_core
