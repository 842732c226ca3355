// SPDX-License-Identifier: Apache-2.0
#include "support/paper_simulations.hpp"

#include <Eigen/Geometry>
#include <Eigen/LU>
#include <stdexcept>

#include "dynamics_core/families.hpp"
#include "dynamics_core/load.hpp"

namespace support {

void require(Status status) {
  if (status != Status::ok) throw std::runtime_error(to_string(status));
}

Model paper_robot(const std::string& name) {
  return dynamics_core::load_model(std::string(RD_SOURCE_DIR) + "/config/robots/" + name + ".yaml");
}

VectorXd Experiment::desired(double t) const {
  VectorXd q(start.size()), v(start.size()), a(start.size());
  require(path.evaluate(t, q, v, a));
  return q;
}

void Experiment::efforts(Dynamics<double>& dynamics, double t, Eigen::Ref<VectorXd> tau) const {
  VectorXd q(start.size()), v(start.size()), a(start.size());
  require(path.evaluate(t, q, v, a));
  require(dynamics.families().newton_euler.inverse_dynamics(q, v, a, tau));
}

Experiment planar_experiment() {
  return Experiment(paper_robot("planar3r"), VectorXd::Zero(3), VectorXd::Constant(3, M_PI));
}

Experiment stanford_experiment(int year) {
  VectorXd start = VectorXd::Zero(6);
  start[1] = M_PI / 2;
  VectorXd goal = VectorXd::Constant(6, M_PI / 3);
  goal[2] = 0.1;
  return Experiment(paper_robot("stanford_saha" + std::to_string(year)), start, goal);
}

std::string puma_name(PumaMoments moments) {
  return moments == PumaMoments::as_printed ? "puma_saha2001" : "puma_saha2001_positive";
}

Experiment puma_experiment(PumaMoments moments) {
  return Experiment(paper_robot(puma_name(moments)), VectorXd::Zero(6),
                    VectorXd::Constant(6, M_PI));
}

Forced forced_simulation(const Experiment& experiment, Options options, Method method) {
  Dynamics<double> dynamics(experiment.model);
  Dynamics<double> planner(experiment.model);
  const auto effort = [&](double t, const auto&, const auto&, Eigen::Ref<VectorXd> tau) {
    experiment.efforts(planner, t, tau);
  };
  dynamics.use(method);
  dynamics_core::simulation::Plant plant(dynamics, effort);
  options.duration = Experiment::duration;
  Crossing hundredth(std::log(0.01));  // errors grow as exponentials
  Crossing tenth(std::log(0.1));
  double worst = 0.0;
  Forced out;
  out.result = simulate(dynamics, plant, experiment.at_rest(), options, [&](const State& s) {
    const double error = (s.q - experiment.desired(s.t)).cwiseAbs().maxCoeff();
    worst = std::max(worst, error);
    hundredth.sample(s.t, std::log(error + 1e-300));
    tenth.sample(s.t, std::log(error + 1e-300));
    return !tenth.happened();
  });
  out.leaves_hundredth = hundredth.time();
  out.leaves_tenth = tenth.time();
  out.worst = worst;
  return out;
}

FreeFall stanford_free_fall(const Experiment& experiment, const Options& options, double coriolis,
                            Method method) {
  using namespace dynamics_core;
  Dynamics<double> dynamics(experiment.model);
  VectorXd all(6), rest(6), slide(6), gravity(6);
  const auto missing = [&](double, const auto& q, const auto& v, Eigen::Ref<VectorXd> tau) {
    VectorXd part = v;
    require(dynamics.families().newton_euler.bias(q, part, all));
    part[2] = 0.0;
    require(dynamics.families().newton_euler.bias(q, part, rest));
    part = v - part;
    require(dynamics.families().newton_euler.bias(q, part, slide));
    require(dynamics.families().newton_euler.gravity(q, gravity));
    tau = (1.0 - coriolis) * ((all - gravity) - (rest - gravity) - (slide - gravity));
  };
  dynamics.use(method);
  simulation::Plant plant(dynamics, missing);
  Crossing zero(0.0);
  FreeFall out;
  out.slide_there = std::nan("");
  out.result = simulate(dynamics, plant, experiment.at_rest(), options, [&](const State& s) {
    const bool before = zero.happened();
    zero.sample(s.t, s.q[1]);
    if (!before && zero.happened()) out.slide_there = s.q[2];
    return true;
  });
  out.joint2_zero = zero.time();
  return out;
}

PumaFall puma_free_fall(const Experiment& experiment, const Options& options, Method method) {
  using namespace dynamics_core;
  Dynamics<double> dynamics(experiment.model);
  Dynamics<double> observer(experiment.model);
  const auto energy = [&observer](const State& s) {
    require(observer.kinematics().update(s.q, s.v));
    const auto E = observer.kinematics().energy();
    return E.kinetic + E.potential;
  };
  const double before = energy(experiment.at_rest());
  dynamics.use(method);
  simulation::Plant plant(dynamics, simulation::NoEffort{});
  PumaFall out;
  out.turns_back = std::nan("");
  out.farthest = out.energy = 0.0;
  State last = experiment.at_rest();
  out.result = simulate(dynamics, plant, experiment.at_rest(), options, [&](const State& s) {
    out.energy = std::max(out.energy, std::abs(energy(s) - before));
    if (std::isnan(out.turns_back) && s.q[1] < last.q[1]) out.turns_back = last.t;
    if (std::isnan(out.turns_back)) out.farthest = s.q[1];
    last = s;
    return true;
  });
  return out;
}

StraightLine::StraightLine(const Model& model, int link) : dynamics_(model), link_(link), J_(6, 6) {
  using Eigen::AngleAxisd;
  using Eigen::Vector3d;
  attitude_ = (AngleAxisd(0.0, Vector3d::UnitZ()) * AngleAxisd(M_PI / 2, Vector3d::UnitY()) *
               AngleAxisd(M_PI, Vector3d::UnitZ()))
                  .toRotationMatrix();
  // Shoulder left, elbow up, wrist up: one of eight postures, chosen here.
  guess_.resize(6);
  guess_ << 17.0, 62.0, -200.0, 23.0, 50.0, 165.0;
  guess_ *= M_PI / 180.0;
}

void StraightLine::evaluate(double t, VectorXd& q, VectorXd& v, VectorXd& a) {
  using namespace dynamics_core;
  q = guess_;
  Pose<double> X;
  for (int i = 0;; ++i) {
    require(dynamics_.kinematics().update(q));
    require(dynamics_.kinematics().pose(link_, X));
    require(dynamics_.kinematics().jacobian(link_, J_));
    const Eigen::AngleAxisd turn(Eigen::Matrix3d(attitude_ * X.R.transpose()));
    VectorXd error(6);
    error << turn.angle() * turn.axis(), point(t) - X.p;
    if (error.norm() < 1e-13) break;
    if (i == 50) throw std::runtime_error("the inverse kinematics does not converge");
    q += J_.partialPivLu().solve(error);
  }
  const Eigen::PartialPivLU<Eigen::MatrixXd> solver(J_);
  VectorXd rate = VectorXd::Zero(6);
  rate.tail<3>() = way() / duration;
  v = solver.solve(rate);
  require(dynamics_.kinematics().update(q, v));
  Motion<double> bias;
  require(dynamics_.kinematics().bias_acceleration(link_, bias));
  VectorXd b(6);
  b << bias.w, bias.v;
  a = solver.solve(-b);
}

Model puma560_links() {
  dynamics_core::ModelOptions options;
  for (int i = 1; i <= 6; ++i) options.rotor_inertia["joint" + std::to_string(i)] = 0.0;
  return dynamics_core::load_model(std::string(RD_SOURCE_DIR) + "/config/robots/puma560.yaml",
                                   options);
}

LineSimulation line_simulation(const Model& model, Options options, Method method) {
  using namespace dynamics_core;
  StraightLine line(model, model.find_link("link6"));
  Dynamics<double> dynamics(model);
  Dynamics<double> planner(model);
  VectorXd q(6), v(6), a(6), tau(6), a_simulated(6);
  const auto effort = [&](double t, const auto&, const auto&, Eigen::Ref<VectorXd> out) {
    line.evaluate(t, q, v, a);
    require(planner.families().newton_euler.inverse_dynamics(q, v, a, out));
  };
  dynamics.use(method);
  simulation::Plant plant(dynamics, effort);
  options.duration = StraightLine::duration;
  options.interval = 0.1;
  line.evaluate(0.0, q, v, a);
  LineSimulation out;
  out.q_error = out.v_error = out.a_error = VectorXd::Zero(6);
  int samples = 0;
  Dynamics<double> observer(model);
  out.result = simulate(dynamics, plant, State{0.0, q, v}, options, [&](const State& s) {
    line.evaluate(s.t, q, v, a);
    require(planner.families().newton_euler.inverse_dynamics(q, v, a, tau));
    observer.use(method);
    require(observer.forward_dynamics(s.q, s.v, tau, a_simulated));
    out.q_error += (s.q - q).cwiseAbs();
    out.v_error += (s.v - v).cwiseAbs();
    out.a_error += (a_simulated - a).cwiseAbs();
    ++samples;
    return true;
  });
  out.q_error /= samples;
  out.v_error /= samples;
  out.a_error /= samples;
  return out;
}

}  // namespace support
