// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What BatchDynamics asks of the code for one instruction set. No memory taken on one side is given
/// back on the other but through this interface, and nothing that crosses it depends on the flags
/// that either is compiled with.

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "dynamics_core/batch_dynamics.hpp"

namespace dynamics_core {

enum class BatchQuantity {
  inverse_dynamics,
  forward_dynamics,
  forward_dynamics_held,
  bias,
  velocity_effort,
  gravity,
  mass_matrix,
  inverse_mass_matrix,
  coriolis,
  coriolis_christoffel,
  jacobian,
  inverse_dynamics_derivatives,
  forward_dynamics_derivatives,
};

/// One call; what the quantity does not ask for is left as it is. Sizes have been checked.
struct BatchTask {
  BatchQuantity quantity;
  BatchIn q, v, u;  ///< u: accelerations, or efforts of the forward dynamics
  BatchOut out;
  Status* statuses = nullptr;
  const std::vector<int>* held = nullptr;
  int link = 0;
  Vec3<double> offset = Vec3<double>::Zero();
  JacobianAxes axes = JacobianAxes::world;
};

/// The first configuration that is not ok; if all are, the end of the range and `ok`.
struct BatchOutcome {
  std::size_t configuration;
  Status status;
};

/// For one thread.
class BatchKernel {
 public:
  BatchKernel() = default;
  BatchKernel(const BatchKernel&) = delete;
  BatchKernel& operator=(const BatchKernel&) = delete;
  virtual ~BatchKernel() = default;

  [[nodiscard]] virtual int width() const noexcept = 0;
  /// The configurations from `first` up to `last`. Where their blocks begin does not matter.
  [[nodiscard]] virtual BatchOutcome run(const BatchTask& task, std::size_t first,
                                         std::size_t last) noexcept = 0;

  virtual void use(std::optional<Method> method) noexcept = 0;
  [[nodiscard]] virtual Status set_gravity(const Vec3<double>& g) noexcept = 0;
  [[nodiscard]] virtual Status set_payload(int link, const Payload<double>& payload) noexcept = 0;
  [[nodiscard]] virtual Status set_rotor_inertia(int dof, double inertia) noexcept = 0;
  [[nodiscard]] virtual Status add_external_force(int link, const Force<double>& F) noexcept = 0;
  virtual void clear_external_forces() noexcept = 0;
};

[[nodiscard]] std::unique_ptr<BatchKernel> make_batch_kernel(const Model& model);

}  // namespace dynamics_core
