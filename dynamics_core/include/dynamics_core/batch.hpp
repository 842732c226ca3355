// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Dynamics of many configurations in one call, for callers that send names and plain arrays. Every
/// number is checked before the first is used. Off the real-time path: results are allocated, and
/// what cannot be answered is a RequestError.
///
/// Arrays hold k configurations of n joints one after the other, k·n values. Results do likewise,
/// matrices by rows.

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "dynamics_core/batch_dynamics.hpp"
#include "dynamics_core/joint_selection.hpp"
#include "dynamics_core/model.hpp"

namespace dynamics_core {

/// A force and a moment that act on a link, about its origin in its axes.
struct LinkWrench {
  std::string link;
  Force<double> wrench = Force<double>::zero();  ///< N·m, N
};

/// A payload: what a link carries besides its own mass.
struct LinkPayload {
  std::string link;
  Payload<double> payload{0.0, Vec3<double>::Zero(), Symmetric3<double>::zero()};
};

/// What is asked for. The joints that are not named stay at their latest position and do not move.
struct BatchQuery {
  std::vector<std::string> joint_names;  ///< none: all of one degree of freedom
  std::vector<double> positions;         ///< none: the latest ones in all configurations
  std::vector<double> velocities;     ///< none: zero, but the latest ones if there are no positions
  std::vector<double> accelerations;  ///< none: zero
  std::vector<double> efforts;        ///< none: zero
  std::vector<LinkWrench> wrenches;   ///< in all configurations
  std::vector<LinkPayload> payloads;  ///< in all configurations
  bool friction = false;              ///< count the joints' friction in
};

/// How much may be asked for at once.
struct BatchLimits {
  std::size_t max_configurations = 10'000;
  std::size_t max_values = 10'000'000;  ///< in an answer
};

struct BatchAnswer {
  std::vector<std::string> joint_names;  ///< the order of rows and columns
  std::size_t configurations = 0;        ///< k
  std::size_t rows = 0;
  std::size_t columns = 0;   ///< one for vectors
  std::vector<double> data;  ///< k × rows × columns
};

/// n × n each, of the same configurations. The last is by what the dynamics were given besides: by
/// the accelerations M, by the efforts M⁻¹.
struct BatchDerivatives {
  BatchAnswer by_positions, by_velocities, by_input;
};

enum class CoriolisFactor {
  recursive,    ///< the cheapest that makes Ṁ − 2C skew-symmetric
  christoffel,  ///< of Christoffel's symbols, by which moreover C(q, v) u = C(q, u) v
};

/// What queries about one robot compute with, kept from one to the next: to build it takes longer
/// than to answer a small one. As many as are at work at a time, so that no query waits for another.
class BatchWorkspaces {
 public:
  /// The model has to outlive this. `threads`: of each, as in BatchDynamics.
  explicit BatchWorkspaces(const Model& model, int threads = 0)
      : model_(model), threads_(threads) {}

  [[nodiscard]] const Model& model() const noexcept { return model_; }

  /// One for a query; nobody else has it meanwhile, and what is put on it comes off at the end.
  class Loan {
   public:
    explicit Loan(BatchWorkspaces& from);
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan();

    [[nodiscard]] BatchDynamics& robot() noexcept { return *robot_; }
    [[nodiscard]] Status set_payload(int link, const Payload<double>& payload);

   private:
    BatchWorkspaces& from_;
    std::unique_ptr<BatchDynamics> robot_;
    std::vector<int> loaded_;  ///< links
  };

 private:
  const Model& model_;
  int threads_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<BatchDynamics>> free_;  ///< under mutex_
};

/// Answers queries about one robot in its latest state. Both must outlive it.
class Batch {
 public:
  Batch(const Model& model, const JointStates& latest, const BatchLimits& limits = {})
      : Batch(std::make_shared<BatchWorkspaces>(model), latest, limits) {}
  /// With workspaces that others share, from any thread.
  Batch(std::shared_ptr<BatchWorkspaces> workspaces, const JointStates& latest,
        const BatchLimits& limits = {})
      : workspaces_(std::move(workspaces)),
        model_(workspaces_->model()),
        latest_(latest),
        limits_(limits) {}

  /// M(q), n × n
  [[nodiscard]] BatchAnswer mass_matrix(const BatchQuery& query) const;
  /// g(q), n
  [[nodiscard]] BatchAnswer gravity(const BatchQuery& query) const;
  /// C(q, v), n × n
  [[nodiscard]] BatchAnswer coriolis(const BatchQuery& query, CoriolisFactor factor) const;
  /// τ(q, v, a), n
  [[nodiscard]] BatchAnswer inverse_dynamics(const BatchQuery& query) const;
  /// q̈(q, v, τ) with all other joints held, n
  [[nodiscard]] BatchAnswer forward_dynamics(const BatchQuery& query) const;
  /// Of τ(q, v, a), without friction
  [[nodiscard]] BatchDerivatives inverse_dynamics_derivatives(const BatchQuery& query) const;
  /// Of q̈(q, v, τ) with all other joints held, without friction
  [[nodiscard]] BatchDerivatives forward_dynamics_derivatives(const BatchQuery& query) const;
  /// J(q), 6 × n, linear rows first: the velocity of the point at `offset` in the link's frame and
  /// the link's angular velocity. An empty name stands for tip_link.
  [[nodiscard]] BatchAnswer jacobian(const BatchQuery& query, const std::string& link,
                                     JacobianAxes axes = JacobianAxes::world,
                                     const Eigen::Vector3d& offset = {0.0, 0.0, 0.0}) const;
  /// Y(q, v, a), n × p, columns as in parameter_names
  [[nodiscard]] BatchAnswer regressor(const BatchQuery& query) const;
  /// π of the robot, p
  [[nodiscard]] std::vector<double> parameters() const;

  /// The index of a link in the model, tip_link for an empty name. Throws RequestError.
  [[nodiscard]] int find_link(const std::string& name) const;

 private:
  class Job;
  struct States;

  std::shared_ptr<BatchWorkspaces> workspaces_;
  const Model& model_;
  const JointStates& latest_;
  BatchLimits limits_;
};

}  // namespace dynamics_core
