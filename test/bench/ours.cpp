// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <stdexcept>

#include "contestant.hpp"
#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/kinematics.hpp"

namespace bench {

namespace {

using namespace dynamics_core;

struct Here {
  Here(const Robot& from, std::optional<Method> method)
      : robot(from.model), n(from.n()), tip(from.tip), x(n), M(n, n), J(6, n) {
    robot.use(method);
  }
  Dynamics<double> robot;
  int n, tip;
  Eigen::VectorXd x;
  Eigen::MatrixXd M, J;
  [[nodiscard]] Eigen::Map<const Eigen::VectorXd> in(const double* u) const { return {u, n}; }
};

const double* checked(Status status, const double* result) {
  if (status != Status::ok) throw std::runtime_error(to_string(status));
  return result;
}

Contestant contestant(const Robot& robot, std::optional<Method> method) {
  const auto h = std::make_shared<Here>(robot, method);
  Contestant c;
  c.name = method ? to_string(*method) : "here";
  using In = const double*;
  c.compute[inverse_dynamics] = [h](In q, In v, In a) {
    return checked(h->robot.inverse_dynamics(h->in(q), h->in(v), h->in(a), h->x), h->x.data());
  };
  c.compute[bias] = [h](In q, In v, In) {
    return checked(h->robot.bias(h->in(q), h->in(v), h->x), h->x.data());
  };
  c.compute[gravity] = [h](In q, In, In) {
    return checked(h->robot.gravity(h->in(q), h->x), h->x.data());
  };
  c.compute[mass_matrix] = [h](In q, In, In) {
    return checked(h->robot.mass_matrix(h->in(q), h->M), h->M.data());
  };
  c.compute[forward_dynamics] = [h](In q, In v, In tau) {
    return checked(h->robot.forward_dynamics(h->in(q), h->in(v), h->in(tau), h->x), h->x.data());
  };
  c.compute[inverse_mass_matrix] = [h](In q, In, In) {
    return checked(h->robot.inverse_mass_matrix(h->in(q), h->M), h->M.data());
  };
  c.compute[jacobian] = [h](In q, In, In) {
    (void)h->robot.kinematics().update(h->in(q));
    return checked(h->robot.kinematics().jacobian(h->tip, h->J), h->J.data());
  };
  return c;
}

/// What a method provides; the rest it would take from the defaults.
std::vector<Quantity> provided(Method method) {
  switch (method) {
    case Method::newton_euler: return {inverse_dynamics, bias};
    case Method::denoc: return {inverse_dynamics, mass_matrix};
    case Method::gibbs_appell: return {inverse_dynamics, bias, mass_matrix, forward_dynamics};
    case Method::composite_body: return {mass_matrix};
    case Method::articulated_body: return {forward_dynamics};
    case Method::udut: return {forward_dynamics, inverse_mass_matrix};
    case Method::cholesky: return {forward_dynamics, inverse_mass_matrix};
  }
  return {};
}

}  // namespace

std::vector<Contestant> ours(const Robot& robot) {
  std::vector<Contestant> all = {contestant(robot, std::nullopt)};
  for (const Method method :
       {Method::newton_euler, Method::denoc, Method::gibbs_appell, Method::composite_body,
        Method::articulated_body, Method::udut, Method::cholesky}) {
    Contestant whole = contestant(robot, method);
    Contestant c;
    c.name = whole.name;
    for (const Quantity q : provided(method)) c.compute[q] = std::move(whole.compute[q]);
    all.push_back(std::move(c));
  }
  return all;
}

}  // namespace bench
