// SPDX-License-Identifier: Apache-2.0
// Each service: the request in, one call of the core, the answer out.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dynamics_core/batch.hpp"
#include "dynamics_core/regressor.hpp"
#include "dynamics_server_robot.hpp"
#include "realtime_dynamics/srv/compute_forward_dynamics.hpp"
#include "realtime_dynamics/srv/compute_inverse_dynamics.hpp"
#include "realtime_dynamics/srv/get_coriolis.hpp"
#include "realtime_dynamics/srv/get_forward_dynamics_derivatives.hpp"
#include "realtime_dynamics/srv/get_gravity.hpp"
#include "realtime_dynamics/srv/get_inverse_dynamics_derivatives.hpp"
#include "realtime_dynamics/srv/get_jacobian.hpp"
#include "realtime_dynamics/srv/get_mass_matrix.hpp"
#include "realtime_dynamics/srv/get_regressor.hpp"

namespace realtime_dynamics {

using dynamics_core::Batch;
using dynamics_core::BatchAnswer;
using dynamics_core::BatchDerivatives;
using dynamics_core::BatchQuery;
using dynamics_core::CoriolisFactor;
using dynamics_core::JacobianAxes;
using dynamics_core::RequestError;

namespace {

constexpr std::size_t waiting_calls = 100;  // of each service

// A request is read once; its arrays move into the query.

template <class Request>
[[nodiscard]] BatchQuery positions_of(Request& request) {
  BatchQuery query;
  query.joint_names = std::move(request.joint_names);
  query.positions = std::move(request.positions);
  return query;
}

template <class Request>
[[nodiscard]] BatchQuery motion_of(Request& request) {
  BatchQuery query = positions_of(request);
  query.velocities = std::move(request.velocities);
  return query;
}

template <class Request>
void read_surroundings(const Request& request, BatchQuery& query) {
  for (const msg::LinkWrench& on : request.wrenches) {
    const auto& force = on.wrench.force;
    const auto& torque = on.wrench.torque;
    query.wrenches.push_back(
        {on.link, {{torque.x, torque.y, torque.z}, {force.x, force.y, force.z}}});
  }
  for (const msg::LinkPayload& on : request.payloads) {
    const auto& i = on.inertia;
    query.payloads.push_back(
        {on.link, {i.m, {i.com.x, i.com.y, i.com.z}, {i.ixx, i.ixy, i.ixz, i.iyy, i.iyz, i.izz}}});
  }
}

template <class Response>
[[nodiscard]] std::vector<double> write_vectors(BatchAnswer&& answer, Response& response) {
  response.joint_names = std::move(answer.joint_names);
  response.configurations = static_cast<std::uint32_t>(answer.configurations);
  return std::move(answer.data);
}

template <class Response>
[[nodiscard]] std::vector<double> write_matrices(BatchAnswer&& answer, Response& response) {
  response.rows = static_cast<std::uint32_t>(answer.rows);
  response.columns = static_cast<std::uint32_t>(answer.columns);
  return write_vectors(std::move(answer), response);
}

[[nodiscard]] JacobianAxes axes_of(const srv::GetJacobian::Request& request) {
  switch (request.axes) {
    case srv::GetJacobian::Request::WORLD: return JacobianAxes::world;
    case srv::GetJacobian::Request::LINK: return JacobianAxes::link;
    default:
      throw RequestError("axes is " + std::to_string(request.axes) +
                         "; give WORLD (0) or LINK (1)");
  }
}

}  // namespace

/// answer(model, batch, request, response) fills the response or throws.
template <class Service, class Answer>
void DynamicsServer::offer(const std::string& name, Answer answer) {
  const auto callback = [this, answer](const std::shared_ptr<typename Service::Request> request,
                                       std::shared_ptr<typename Service::Response> response) {
    try {
      const std::shared_ptr<Robot> robot = require_robot();
      const dynamics_core::JointStates latest = robot->states();
      const Batch batch(robot->workspaces, latest,
                        {static_cast<std::size_t>(params_.max_configurations),
                         static_cast<std::size_t>(params_.max_values)});
      answer(robot->model, batch, *request, *response);
      response->success = true;
    } catch (const std::exception& error) {
      *response = typename Service::Response();
      response->message = error.what();
    }
  };
  // The usual ten waiting calls would lose those of the eleventh client.
  services_.push_back(create_service<Service>(
      "~/" + name, callback, rclcpp::ServicesQoS().keep_last(waiting_calls), service_group_));
}

void DynamicsServer::offer_services() {
  using Model = dynamics_core::Model;
  offer<srv::GetMassMatrix>(
      "get_mass_matrix", [](const Model&, const Batch& batch, auto& request, auto& response) {
        response.mass_matrices = write_matrices(batch.mass_matrix(positions_of(request)), response);
      });
  offer<srv::GetGravity>(
      "get_gravity", [](const Model&, const Batch& batch, auto& request, auto& response) {
        response.efforts = write_vectors(batch.gravity(positions_of(request)), response);
      });
  offer<srv::GetCoriolis>(
      "get_coriolis", [](const Model&, const Batch& batch, auto& request, auto& response) {
        const auto factor =
            request.christoffel ? CoriolisFactor::christoffel : CoriolisFactor::recursive;
        response.coriolis_matrices =
            write_matrices(batch.coriolis(motion_of(request), factor), response);
      });
  offer<srv::ComputeInverseDynamics>(
      "compute_inverse_dynamics",
      [](const Model&, const Batch& batch, auto& request, auto& response) {
        BatchQuery query = motion_of(request);
        query.accelerations = std::move(request.accelerations);
        query.friction = request.include_friction;
        read_surroundings(request, query);
        response.efforts = write_vectors(batch.inverse_dynamics(query), response);
      });
  offer<srv::ComputeForwardDynamics>(
      "compute_forward_dynamics",
      [](const Model&, const Batch& batch, auto& request, auto& response) {
        BatchQuery query = motion_of(request);
        query.efforts = std::move(request.efforts);
        query.friction = request.include_friction;
        read_surroundings(request, query);
        response.accelerations = write_vectors(batch.forward_dynamics(query), response);
      });
  offer<srv::GetInverseDynamicsDerivatives>(
      "get_inverse_dynamics_derivatives",
      [](const Model&, const Batch& batch, auto& request, auto& response) {
        BatchQuery query = motion_of(request);
        query.accelerations = std::move(request.accelerations);
        read_surroundings(request, query);
        BatchDerivatives answer = batch.inverse_dynamics_derivatives(query);
        response.by_positions = write_matrices(std::move(answer.by_positions), response);
        response.by_velocities = std::move(answer.by_velocities.data);
        response.by_accelerations = std::move(answer.by_input.data);
      });
  offer<srv::GetForwardDynamicsDerivatives>(
      "get_forward_dynamics_derivatives",
      [](const Model&, const Batch& batch, auto& request, auto& response) {
        BatchQuery query = motion_of(request);
        query.efforts = std::move(request.efforts);
        read_surroundings(request, query);
        BatchDerivatives answer = batch.forward_dynamics_derivatives(query);
        response.by_positions = write_matrices(std::move(answer.by_positions), response);
        response.by_velocities = std::move(answer.by_velocities.data);
        response.by_efforts = std::move(answer.by_input.data);
      });
  offer<srv::GetJacobian>(
      "get_jacobian", [](const Model& model, const Batch& batch, auto& request, auto& response) {
        const auto& p = request.point;
        response.jacobians = write_matrices(
            batch.jacobian(positions_of(request), request.link, axes_of(request), {p.x, p.y, p.z}),
            response);
        response.link = model.links[static_cast<std::size_t>(batch.find_link(request.link))].name;
      });
  offer<srv::GetRegressor>(
      "get_regressor", [](const Model& model, const Batch& batch, auto& request, auto& response) {
        BatchQuery query = motion_of(request);
        query.accelerations = std::move(request.accelerations);
        response.regressors = write_matrices(batch.regressor(query), response);
        response.parameter_names = dynamics_core::parameter_names(model);
        response.parameters = batch.parameters();
      });
}

}  // namespace realtime_dynamics
