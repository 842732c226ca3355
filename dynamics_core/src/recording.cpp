// SPDX-License-Identifier: Apache-2.0
#include "recording.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "dynamics_core/config_error.hpp"
#include "dynamics_core/counted_families.hpp"
#include "dynamics_core/counting.hpp"
#include "dynamics_core/simplification.hpp"

namespace dynamics_core::generation {

namespace {

// --- Inertias with as many zeros as possible -----------------------------------------------------

template <class S>
[[nodiscard]] RigidInertia<S> negative(const RigidInertia<S>& A) {
  return {-A.m, -A.h, {-A.I.xx, -A.I.xy, -A.I.xz, -A.I.yy, -A.I.yz, -A.I.zz}};
}

/// The same robot for all that a joint feels, with inertias moved towards the base.
template <class S>
void move_inertias_to_parents(Tree<S>& tree) {
  const Body<S>* bodies = tree.bodies();
  const auto first_link = [&tree](int body) {
    const auto& links = tree.links();
    for (std::size_t i = 0; i < links.size(); ++i)
      if (links[i].body == body) return static_cast<int>(i);
    return -1;
  };
  const auto add = [&tree](int link, const RigidInertia<S>& part) {
    RigidInertia<S> sum = tree.links()[static_cast<std::size_t>(link)].own;
    sum += part;
    tree.set_link_inertia(link, sum);
  };
  for (int i = tree.nb() - 1; i >= 0; --i) {
    const Body<S>& body = bodies[i];
    const int from = first_link(i);
    const int to = body.parent < 0 ? -1 : first_link(body.parent);
    if (from < 0 || (body.parent >= 0 && to < 0)) continue;  // nothing there to hold it
    const RigidInertia<S> part = movable_part<S>(body.kind, body.inertia);
    if (body.parent >= 0) add(to, body.X.to_parent(part));
    add(from, negative(part));
  }
}

// --- What is recorded ----------------------------------------------------------------------------

/// The model without what is nothing but the round-off of angles and lengths in its source, such as
/// an offset of 1e-17 m: each would cost operations.
[[nodiscard]] Model without_round_off(Model model) {
  for (BodyData& body : model.bodies) {
    Transform<double>& X = body.X;
    for (double* x : {&X.ca, &X.sa, &X.a, &X.d, &X.cg, &X.sg, &X.e, &X.b})
      if (std::abs(*x) < 1e-15) *x = 0.0;
    for (double* x : {&X.ca, &X.sa, &X.cg, &X.sg})
      if (std::abs(std::abs(*x) - 1.0) < 1e-15) *x = std::copysign(1.0, *x);
  }
  return model;
}

template <class S>
[[nodiscard]] std::unique_ptr<Tree<S>> make_tree(const Model& model, bool move_inertias) {
  auto tree = std::make_unique<Tree<S>>(model);
  if (move_inertias) move_inertias_to_parents(*tree);
  return tree;
}

/// A robot, the arguments of a function, and room for its results.
template <class S>
struct Problem {
  Problem(const Model& model, bool move_inertias)
      : f(make_tree<S>(model, move_inertias)),
        q(model.nq),
        v(model.nv),
        u(model.nv),
        x(VectorX<S>::Zero(model.nv)),
        A(MatrixX<S>::Zero(model.nv, model.nv)),
        by_q(A),
        by_v(A),
        J(MatrixX<S>::Zero(6, model.nv)) {}

  Families<S> f;
  VectorX<S> q, v, u;
  int link = 0;
  VectorX<S> x;  ///< results
  MatrixX<S> A, by_q, by_v, J;
};

template <class S>
using Run = Status (*)(Problem<S>&);

/// A family's way to a result.
struct Way {
  const char* method;
  bool divides_by_masses;  ///< and so needs each body's own
  Run<Counted> record;
  Run<double> compute;
};
template <class F>
[[nodiscard]] Way way(const char* method, F f) {
  return {method, false, static_cast<Run<Counted>>(f), static_cast<Run<double>>(f)};
}
/// Of DeNOC, which takes moments about the mass centres.
template <class F>
[[nodiscard]] Way central_way(const char* method, F f) {
  return {method, true, static_cast<Run<Counted>>(f), static_cast<Run<double>>(f)};
}

enum class Result {
  effort,
  acceleration,
  mass,
  inverse,
  coriolis,
  jacobian,
  effort_by_position,
  effort_by_velocity,
  acceleration_by_position,
  acceleration_by_velocity
};
/// Which of q, v, a or τ the function takes.
enum class State { q, qv, qva, qvtau };

struct Function {
  const char* name;
  const char* formula;
  State state;
  bool gravity;  ///< depends on it
  bool inertia;  ///< depends on the links' inertias
  std::vector<Result> results;
  std::vector<Way> ways;
};

/// a = M⁻¹(τ − bias) of a mass matrix and a bias.
template <class S, class MassMatrix, class Bias>
[[nodiscard]] Status solve_for_acceleration(Problem<S>& p, MassMatrix mass_matrix, Bias bias) {
  MassMatrixFactors<S> factors(p.f.tree);
  VectorX<S> b = VectorX<S>::Zero(p.v.size());
  Status status = merged(mass_matrix(factors.matrix()), bias(b));
  if (!failed(status)) status = factors.factorize();
  if (failed(status)) return status;
  p.x = p.u - b;
  factors.solve(p.x.data());
  return status;
}

/// M⁻¹ of a mass matrix.
template <class S, class MassMatrix>
[[nodiscard]] Status invert(Problem<S>& p, MassMatrix mass_matrix) {
  MassMatrixFactors<S> factors(p.f.tree);
  Status status = mass_matrix(factors.matrix());
  if (!failed(status)) status = factors.factorize();
  if (failed(status)) return status;
  p.A.setIdentity();
  for (int k = 0; k < p.f.tree.nv(); ++k) factors.solve(p.A.col(k).data());
  return status;
}

const std::vector<Function>& functions() {
  static const std::vector<Function> all = {
      {"inverse_dynamics",
       "tau = M(q) a + C(q, v) v + g(q)",
       State::qva,
       true,
       true,
       {Result::effort},
       {way("Gibbs-Appell",
            [](auto& p) { return p.f.gibbs_appell.inverse_dynamics(p.q, p.v, p.u, p.x); }),
        way("Newton-Euler",
            [](auto& p) { return p.f.newton_euler.inverse_dynamics(p.q, p.v, p.u, p.x); }),
        central_way("DeNOC",
                    [](auto& p) { return p.f.denoc.inverse_dynamics(p.q, p.v, p.u, p.x); })}},
      {"gravity",
       "tau = g(q)",
       State::q,
       true,
       true,
       {Result::effort},
       {way("first moments", [](auto& p) { return p.f.newton_euler.gravity(p.q, p.x); })}},
      {"bias",
       "tau = C(q, v) v + g(q)",
       State::qv,
       true,
       true,
       {Result::effort},
       {way("Gibbs-Appell", [](auto& p) { return p.f.gibbs_appell.bias(p.q, p.v, p.x); }),
        way("Newton-Euler", [](auto& p) { return p.f.newton_euler.bias(p.q, p.v, p.x); })}},
      {"mass_matrix",
       "M(q)",
       State::q,
       false,
       true,
       {Result::mass},
       {way("composite bodies", [](auto& p) { return p.f.composite_body.mass_matrix(p.q, p.A); }),
        way("Gibbs-Appell", [](auto& p) { return p.f.gibbs_appell.mass_matrix(p.q, p.A); }),
        central_way("DeNOC", [](auto& p) { return p.f.denoc.mass_matrix(p.q, p.A); })}},
      {"forward_dynamics",
       "a = M(q)^-1 (tau - C(q, v) v - g(q))",
       State::qvtau,
       true,
       true,
       {Result::acceleration},
       {way("articulated bodies",
            [](auto& p) { return p.f.articulated_body.forward_dynamics(p.q, p.v, p.u, p.x); }),
        way("UDUT and Gibbs-Appell's bias",
            [](auto& p) {
              Status status = merged(p.f.gibbs_appell.bias(p.q, p.v, p.x), p.f.udut.factorize(p.q));
              if (failed(status)) return status;
              p.x = p.u - p.x;
              return p.f.udut.solve(p.x, p.x);
            }),
        way("Gibbs-Appell",
            [](auto& p) { return p.f.gibbs_appell.forward_dynamics(p.q, p.v, p.u, p.x); }),
        way("composite bodies, Gibbs-Appell's bias and Cholesky",
            [](auto& p) {
              return solve_for_acceleration(
                  p, [&](auto& M) { return p.f.composite_body.mass_matrix(p.q, M); },
                  [&](auto& b) { return p.f.gibbs_appell.bias(p.q, p.v, b); });
            })}},
      {"inverse_mass_matrix",
       "M(q)^-1",
       State::q,
       false,
       true,
       {Result::inverse},
       {way("UDUT", [](auto& p) { return p.f.udut.inverse_mass_matrix(p.q, p.A); }),
        way("composite bodies and Cholesky",
            [](auto& p) { return p.f.cholesky.inverse_mass_matrix(p.q, p.A); }),
        way("Gibbs-Appell and Cholesky",
            [](auto& p) {
              return invert(p, [&](auto& M) { return p.f.gibbs_appell.mass_matrix(p.q, M); });
            })}},
      {"coriolis",
       "C(q, v), with dM/dt - 2 C skew-symmetric",
       State::qv,
       false,
       true,
       {Result::coriolis},
       {central_way("DeNOC", [](auto& p) { return p.f.denoc.coriolis(p.q, p.v, p.A); })}},
      {"jacobian",
       "J(q), [angular; linear] velocity of the link's origin in world axes = J v",
       State::q,
       false,
       false,
       {Result::jacobian},
       {way("kinematics",
            [](auto& p) {
              const Status status = p.f.kinematics.update(p.q);
              return failed(status) ? status : p.f.kinematics.jacobian(p.link, p.J);
            })}},
      {"inverse_dynamics_derivatives",
       "of tau = M(q) a + C(q, v) v + g(q) by q, v and a",
       State::qva,
       true,
       true,
       {Result::effort_by_position, Result::effort_by_velocity, Result::mass},
       {way("derivatives",
            [](auto& p) {
              return p.f.derivatives.inverse_dynamics(p.q, p.v, p.u, p.by_q, p.by_v, p.A);
            })}},
      {"forward_dynamics_derivatives",
       "of a = M(q)^-1 (tau - C(q, v) v - g(q)) by q, v and tau",
       State::qvtau,
       true,
       true,
       {Result::acceleration_by_position, Result::acceleration_by_velocity, Result::inverse},
       {way("derivatives",
            [](auto& p) {
              return p.f.derivatives.forward_dynamics(p.q, p.v, p.u, p.by_q, p.by_v, p.A);
            })}},
  };
  return all;
}

[[nodiscard]] const Function& find(const std::string& name) {
  for (const Function& function : functions())
    if (name == function.name) return function;
  throw std::invalid_argument("there is no function " + name);
}

// --- Arguments -----------------------------------------------------------------------------------

[[nodiscard]] std::vector<Array> inputs_of(const Function& function, const Model& model,
                                           const Request& request) {
  std::vector<Array> out = {{"q", "positions", model.nq}};
  if (function.state != State::q) out.push_back({"v", "velocities", model.nv});
  if (function.state == State::qva) out.push_back({"a", "accelerations", model.nv});
  if (function.state == State::qvtau) out.push_back({"tau", "efforts", model.nv});
  if (function.gravity && request.gravity)
    out.push_back({"gravity", "gravity in the root link's axes, m/s^2", 3, 1, false, true});
  if (!function.inertia) return out;
  for (std::size_t i = 0; i < request.payload_links.size(); ++i) {
    const auto link = static_cast<std::size_t>(request.payload_links[i]);
    const std::string number = request.payload_links.size() > 1 ? std::to_string(i + 1) : "";
    out.push_back({"payload" + number,
                   "load on " + model.links[link].name +
                       ": mass, centre of mass x y z, inertia about it xx xy xz yy yz zz, in "
                       "the link's axes",
                   10, 1, false, true});
  }
  return out;
}

[[nodiscard]] Array output_of(Result result, const Model& model) {
  const int n = model.nv;
  switch (result) {
    case Result::effort: return {"tau", "efforts", n};
    case Result::acceleration: return {"a", "accelerations", n};
    case Result::mass: return {"M", "mass matrix", n, n, true};
    case Result::inverse: return {"Minv", "its inverse", n, n, true};
    case Result::coriolis: return {"C", "convective matrix", n, n};
    case Result::jacobian: return {"J", "Jacobian", 6, n};
    case Result::effort_by_position: return {"dtau_dq", "derivatives by q", n, n};
    case Result::effort_by_velocity: return {"dtau_dv", "derivatives by v", n, n};
    case Result::acceleration_by_position: return {"da_dq", "derivatives by q", n, n};
    case Result::acceleration_by_velocity: return {"da_dv", "derivatives by v", n, n};
  }
  RD_UNREACHABLE();
}

/// Angles, rates and loads that nothing is special about, another at each call.
class Values {
 public:
  [[nodiscard]] double next() {
    seed_ += 0.6180339887498949;
    seed_ -= std::floor(seed_);
    return 2.0 * seed_ - 1.0;
  }
  [[nodiscard]] std::vector<double> next(int size, double scale) {
    std::vector<double> out(static_cast<std::size_t>(size));
    for (double& x : out) x = scale * next();
    return out;
  }
  /// Of a payload that a body can be.
  [[nodiscard]] std::vector<double> next_payload() {
    return {1.5 + next(), 0.1 * next(), 0.1 * next(), 0.1 * next(), 0.02,
            0.001,        0.002,        0.03,         -0.001,       0.025};
  }
  [[nodiscard]] std::vector<double> next(const std::vector<Array>& arrays) {
    std::vector<double> out;
    for (const Array& array : arrays) {
      const bool payload = array.of_robot && array.size() == 10;
      const double scale = array.name == "q" ? 1.5 : array.name == "gravity" ? 9.0 : 2.0;
      const auto part = payload ? next_payload() : next(array.size(), scale);
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }

 private:
  double seed_ = 0.37;
};

/// Puts the inputs, in the order of inputs_of, where the families find them.
template <class S>
void put(const Function& function, const Request& request, const std::vector<S>& inputs,
         Problem<S>& p) {
  auto next = inputs.begin();
  for (S& x : p.q) x = *next++;
  if (function.state != State::q)
    for (S& x : p.v) x = *next++;
  if (function.state == State::qva || function.state == State::qvtau)
    for (S& x : p.u) x = *next++;
  p.link = request.link;
  Status status = Status::ok;
  if (function.gravity && request.gravity) {
    const Vec3<S> g(next[0], next[1], next[2]);
    next += 3;
    status = p.f.tree.set_gravity(g);
  }
  if (function.inertia) {
    for (const int link : request.payload_links) {
      const Payload<S> load = {next[0],
                               {next[1], next[2], next[3]},
                               {next[4], next[5], next[6], next[7], next[8], next[9]}};
      next += 10;
      status = merged(status, p.f.tree.set_payload(link, load));
    }
  }
  if (failed(status)) throw std::logic_error(to_string(status));
}

/// Where a result is; a vector is a matrix of one column.
template <class S>
[[nodiscard]] Eigen::Ref<const MatrixX<S>> matrix_of(Result result, const Problem<S>& p) {
  switch (result) {
    case Result::effort:
    case Result::acceleration: return p.x;
    case Result::mass:
    case Result::inverse:
    case Result::coriolis: return p.A;
    case Result::jacobian: return p.J;
    case Result::effort_by_position:
    case Result::acceleration_by_position: return p.by_q;
    case Result::effort_by_velocity:
    case Result::acceleration_by_velocity: return p.by_v;
  }
  RD_UNREACHABLE();
}

/// The elements of the results, of symmetric ones the lower triangle or, for another way to the
/// same numbers, the upper one.
template <class S>
[[nodiscard]] std::vector<S> results_of(const Function& function, const Model& model,
                                        const Problem<S>& p, bool upper) {
  std::vector<S> out;
  for (const Result result : function.results) {
    const Array array = output_of(result, model);
    const auto matrix = matrix_of(result, p);
    for (int i = 0; i < array.rows; ++i)
      for (int j = 0; j < (array.symmetric ? i + 1 : array.columns); ++j)
        out.push_back(upper && array.symmetric ? matrix(j, i) : matrix(i, j));
  }
  return out;
}

// --- Choice --------------------------------------------------------------------------------------

struct Candidate {
  const Way* way;
  OperationGraph graph;
};

/// All ways that can treat the robot.
[[nodiscard]] std::vector<Candidate> candidates(const Function& function, const Model& model,
                                                const Request& request) {
  std::vector<Candidate> out;
  const Model clean = without_round_off(model);
  for (const Way& way : function.ways) {
    for (const bool move_inertias : {true, false}) {
      if (move_inertias && (!function.inertia || way.divides_by_masses)) continue;
      Counted::forget();
      Problem<Counted> problem(clean, move_inertias);
      Values values;
      std::vector<Counted> inputs;
      for (const double x : values.next(inputs_of(function, model, request)))
        inputs.push_back(Counted::variable(x));
      put(function, request, inputs, problem);
      if (failed(way.record(problem))) continue;
      for (const bool upper : {false, true})
        out.push_back(
            {&way, simplified(Counted::graph(results_of(function, model, problem, upper)))});
    }
  }
  return out;
}

/// The largest difference between the graph's results and the library's on the robot as it is, in
/// some states, relative to the largest result there. Results that are nothing but round-off are
/// not compared in relation to each other.
[[nodiscard]] double difference(const Function& function, const Model& model,
                                const Request& request, const Candidate& candidate) {
  constexpr double least_scale = 1e-6;
  double worst = 0.0;
  Problem<double> problem(model, false);
  Values values;
  for (int state = 0; state < 10; ++state) {
    const std::vector<double> inputs = values.next(inputs_of(function, model, request));
    put(function, request, inputs, problem);
    if (failed(candidate.way->compute(problem))) continue;
    const std::vector<double> expected = results_of(function, model, problem, false);
    const std::vector<double> actual = candidate.graph.evaluate(inputs);
    double scale = least_scale;
    for (const double x : expected) scale = std::max(scale, std::abs(x));
    for (std::size_t i = 0; i < actual.size(); ++i)
      worst = std::max(worst, std::abs(actual[i] - expected[i]) / scale);
  }
  return worst;
}

}  // namespace

std::vector<std::string> function_names() {
  std::vector<std::string> out;
  for (const Function& function : functions()) out.emplace_back(function.name);
  return out;
}

Recording record(const std::string& name, const Model& model, const Request& request) {
  const Function& function = find(name);
  const std::vector<Candidate> all = candidates(function, model, request);
  if (all.empty())
    throw ConfigError("functions", name, "this robot cannot have it, its mass matrix is singular");
  const auto best =
      std::min_element(all.begin(), all.end(), [](const Candidate& x, const Candidate& y) {
        return cost(count(x.graph)) < cost(count(y.graph));
      });
  Recording out{function.name,
                function.formula,
                best->way->method,
                inputs_of(function, model, request),
                {},
                best->graph,
                difference(function, model, request, *best)};
  for (const Result result : function.results) out.outputs.push_back(output_of(result, model));
  // Forward dynamics amplify round-off by the condition of M; a wrong graph is off by far more.
  if (!(out.difference < 1e-5))
    throw std::logic_error(name + ": the recorded computation does not reproduce the library's");
  return out;
}

}  // namespace dynamics_core::generation
