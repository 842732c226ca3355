// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <stdexcept>

#include "contestant.hpp"
#include "dynamics_core/batch_dynamics.hpp"
#include "dynamics_core/dynamics.hpp"

namespace bench {

namespace {

using namespace dynamics_core;

struct Here {
  Here(const Robot& from, std::optional<Method> method)
      : robot(from.model),
        n(from.n()),
        tip(from.tip),
        x(n),
        M(n, n),
        J(6, n),
        derivatives(n, 3 * n) {
    robot.use(method);
  }
  Dynamics<double> robot;
  int n, tip;
  Eigen::VectorXd x;
  Eigen::MatrixXd M, J, derivatives;
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
    return checked(h->robot.jacobian(h->in(q), h->tip, h->J), h->J.data());
  };
  c.compute[inverse_dynamics_derivatives] = [h](In q, In v, In a) {
    Eigen::MatrixXd& D = h->derivatives;
    const int n = h->n;
    return checked(
        h->robot.inverse_dynamics_derivatives(h->in(q), h->in(v), h->in(a), D.leftCols(n),
                                              D.middleCols(n, n), D.rightCols(n)),
        D.data());
  };
  c.compute[forward_dynamics_derivatives] = [h](In q, In v, In tau) {
    Eigen::MatrixXd& D = h->derivatives;
    const int n = h->n;
    return checked(
        h->robot.forward_dynamics_derivatives(h->in(q), h->in(v), h->in(tau), D.leftCols(n),
                                              D.middleCols(n, n), D.rightCols(n)),
        D.data());
  };
  return c;
}

/// What a method provides; the rest it would take from the defaults.
std::vector<Quantity> provided(Method method) {
  switch (method) {
    case Method::newton_euler: return {inverse_dynamics, bias, gravity};
    case Method::denoc: return {inverse_dynamics, mass_matrix};
    case Method::gibbs_appell:
      return {inverse_dynamics, bias, gravity, mass_matrix, forward_dynamics, inverse_mass_matrix};
    case Method::composite_body: return {mass_matrix};
    case Method::articulated_body: return {forward_dynamics};
    case Method::udut: return {forward_dynamics, inverse_mass_matrix};
    case Method::cholesky: return {forward_dynamics, inverse_mass_matrix};
  }
  return {};
}

/// Many configurations in one call, as many at a time as a register holds.
Contestant batch(const Robot& robot) {
  struct All {
    explicit All(const Robot& from) : robot(from.model), n(from.n()), tip(from.tip) {}
    BatchDynamics robot;
    int n, tip;
    std::vector<double> out;
    [[nodiscard]] BatchIn in(const double* x) const { return by_configuration(x, n); }
    [[nodiscard]] BatchOut results(int states, int size) {
      out.resize(static_cast<std::size_t>(states) * static_cast<std::size_t>(size));
      return by_configuration(out.data(), size);
    }
  };
  const auto h = std::make_shared<All>(robot);
  Contestant c;
  c.name = "batch";
  c.by_rows = true;
  using In = const double*;
  c.compute_all[inverse_dynamics] = [h](In q, In v, In a, int k) {
    const BatchOut out = h->results(k, h->n);
    return checked(
        h->robot.inverse_dynamics(static_cast<std::size_t>(k), h->in(q), h->in(v), h->in(a), out),
        out.data);
  };
  c.compute_all[bias] = [h](In q, In v, In, int k) {
    const BatchOut out = h->results(k, h->n);
    return checked(h->robot.bias(static_cast<std::size_t>(k), h->in(q), h->in(v), out), out.data);
  };
  c.compute_all[gravity] = [h](In q, In, In, int k) {
    const BatchOut out = h->results(k, h->n);
    return checked(h->robot.gravity(static_cast<std::size_t>(k), h->in(q), out), out.data);
  };
  c.compute_all[mass_matrix] = [h](In q, In, In, int k) {
    const BatchOut out = h->results(k, h->n * h->n);
    return checked(h->robot.mass_matrix(static_cast<std::size_t>(k), h->in(q), out), out.data);
  };
  c.compute_all[forward_dynamics] = [h](In q, In v, In tau, int k) {
    const BatchOut out = h->results(k, h->n);
    return checked(
        h->robot.forward_dynamics(static_cast<std::size_t>(k), h->in(q), h->in(v), h->in(tau), out),
        out.data);
  };
  c.compute_all[inverse_mass_matrix] = [h](In q, In, In, int k) {
    const BatchOut out = h->results(k, h->n * h->n);
    return checked(h->robot.inverse_mass_matrix(static_cast<std::size_t>(k), h->in(q), out),
                   out.data);
  };
  c.compute_all[inverse_dynamics_derivatives] = [h](In q, In v, In a, int k) {
    const BatchOut out = h->results(k, 3 * h->n * h->n);
    return checked(h->robot.inverse_dynamics_derivatives(static_cast<std::size_t>(k), h->in(q),
                                                         h->in(v), h->in(a), out),
                   out.data);
  };
  c.compute_all[forward_dynamics_derivatives] = [h](In q, In v, In tau, int k) {
    const BatchOut out = h->results(k, 3 * h->n * h->n);
    return checked(h->robot.forward_dynamics_derivatives(static_cast<std::size_t>(k), h->in(q),
                                                         h->in(v), h->in(tau), out),
                   out.data);
  };
  return c;
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
  constexpr int small = 64;  // the results of all states have to find room
  if (robot.n() <= small) all.push_back(batch(robot));
  return all;
}

}  // namespace bench
