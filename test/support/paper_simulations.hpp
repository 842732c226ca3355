// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The simulations of the papers, as experiments that tests check and a program prints as tables.

#include <Eigen/LU>
#include <cmath>
#include <stdexcept>
#include <string>

#include "dynamics_core/load.hpp"
#include "dynamics_core/simulation/integrators.hpp"
#include "dynamics_core/trajectory.hpp"

namespace support {

using dynamics_core::Dynamics;
using dynamics_core::Method;
using dynamics_core::Model;
using dynamics_core::Status;
using dynamics_core::simulation::Options;
using dynamics_core::simulation::Result;
using dynamics_core::simulation::State;
using Eigen::VectorXd;

inline void require(Status status) {
  if (status != Status::ok) throw std::runtime_error(to_string(status));
}

inline Model paper_robot(const std::string& name) {
  return dynamics_core::load_model(std::string(RD_SOURCE_DIR) + "/config/robots/" + name + ".yaml");
}

// --- Saha 1999 and 2001 --------------------------------------------------------------------------

/// A robot and the cycloid (Saha 2001, Eq. 18) it has to follow in ten seconds.
struct Experiment {
  Experiment(Model robot, const VectorXd& from, const VectorXd& to)
      : model(std::move(robot)), path(from, to, duration), start(from) {}

  [[nodiscard]] VectorXd desired(double t) const {
    VectorXd q(start.size()), v(start.size()), a(start.size());
    require(path.evaluate(t, q, v, a));
    return q;
  }
  /// The efforts that the path takes, by Newton and Euler.
  void efforts(Dynamics<double>& dynamics, double t, Eigen::Ref<VectorXd> tau) const {
    VectorXd q(start.size()), v(start.size()), a(start.size());
    require(path.evaluate(t, q, v, a));
    require(dynamics.families().newton_euler.inverse_dynamics(q, v, a, tau));
  }
  [[nodiscard]] State at_rest() const { return {0.0, start, VectorXd::Zero(model.nv)}; }

  static constexpr double duration = 10.0;
  Model model;
  dynamics_core::trajectory::Cycloid<double> path;
  VectorXd start;
};

inline Experiment planar_experiment() {
  return Experiment(paper_robot("planar3r"), VectorXd::Zero(3), VectorXd::Constant(3, M_PI));
}

/// θ₂ from 90° and the others from 0 to 60°, the slide to 0.1 m (Saha 1999, §6.2; 2001, §4).
inline Experiment stanford_experiment(int year = 2001) {
  VectorXd start = VectorXd::Zero(6);
  start[1] = M_PI / 2;
  VectorXd goal = VectorXd::Constant(6, M_PI / 3);
  goal[2] = 0.1;
  return Experiment(paper_robot("stanford_saha" + std::to_string(year)), start, goal);
}

/// The two readings of the PUMA's Table II(ii): its moments of inertia as they are printed, some of
/// them negative, and with those minus signs taken for errors of the print.
enum class PumaMoments { as_printed, positive };

inline std::string puma_name(PumaMoments moments) {
  return moments == PumaMoments::as_printed ? "puma_saha2001" : "puma_saha2001_positive";
}

/// All joints from 0 to π (Saha 2001, §4).
inline Experiment puma_experiment(PumaMoments moments) {
  return Experiment(paper_robot(puma_name(moments)), VectorXd::Zero(6),
                    VectorXd::Constant(6, M_PI));
}

/// When a quantity first passes a threshold; linear between samples.
class Crossing {
 public:
  explicit Crossing(double threshold) : threshold_(threshold) {}
  void sample(double t, double x) {
    if (std::isnan(time_) && started_ && (x_ < threshold_) != (x < threshold_))
      time_ = t_ + (t - t_) * (threshold_ - x_) / (x - x_);
    started_ = true;
    t_ = t;
    x_ = x;
  }
  [[nodiscard]] bool happened() const { return !std::isnan(time_); }
  [[nodiscard]] double time() const { return time_; }  ///< NaN: never

 private:
  double threshold_;
  double time_ = std::nan("");
  double t_ = 0.0, x_ = 0.0;
  bool started_ = false;
};

struct Forced {
  Result result;
  double leaves_hundredth;  ///< s, when a joint is 0.01 rad or m off the path; NaN: never
  double leaves_tenth;      ///< s, the same for 0.1
  double worst;             ///< largest error that was seen
};

/// The efforts of the path, as a function of time alone, drive the robot from the path's start:
/// open loop, so that every error grows as the motion is unstable.
inline Forced forced_simulation(const Experiment& experiment, Options options,
                                Method method = Method::udut) {
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

/// The Stanford arm in free fall. `coriolis` scales the forces from products of the slide's
/// velocity with other velocities: one is mechanics, less asks what a program without them shows.
struct FreeFall {
  Result result;
  double joint2_zero;  ///< s, NaN: never
  double slide_there;  ///< m
};

inline FreeFall stanford_free_fall(const Experiment& experiment, const Options& options,
                                   double coriolis = 1.0, Method method = Method::udut) {
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

/// The PUMA in free fall.
struct PumaFall {
  Result result;
  double turns_back;  ///< s, the last sample before joint 2 turns the other way; NaN: never
  double farthest;    ///< rad, joint 2 there
  double energy;      ///< J, the largest change of the total energy that was seen
};

inline PumaFall puma_free_fall(const Experiment& experiment, const Options& options,
                               Method method = Method::udut) {
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

// --- Mata et al. 2002, §5.2 ----------------------------------------------------------------------

/// A tool that moves on a straight line at constant speed without turning, and the joints' motion
/// by inverse kinematics.
class StraightLine {
 public:
  StraightLine(const Model& model, int link) : dynamics_(model), link_(link), J_(6, 6) {
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

  static constexpr double duration = 5.0;  ///< s

  [[nodiscard]] Eigen::Vector3d point(double t) const { return from_ + (t / duration) * way(); }
  [[nodiscard]] const Eigen::Matrix3d& attitude() const { return attitude_; }

  /// Newton's method from the last solution, or from the guess.
  void evaluate(double t, VectorXd& q, VectorXd& v, VectorXd& a) {
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

 private:
  [[nodiscard]] Eigen::Vector3d way() const { return to_ - from_; }

  Dynamics<double> dynamics_;
  int link_;
  Eigen::MatrixXd J_;
  Eigen::Matrix3d attitude_;
  VectorXd guess_;
  Eigen::Vector3d from_{0.50, 0.00, 0.05};
  Eigen::Vector3d to_{0.62, 0.30, 0.11};
};

/// The PUMA 560 without its motors, as in the paper's equations.
inline Model puma560_links() {
  dynamics_core::ModelOptions options;
  for (int i = 1; i <= 6; ++i) options.rotor_inertia["joint" + std::to_string(i)] = 0.0;
  return dynamics_core::load_model(std::string(RD_SOURCE_DIR) + "/config/robots/puma560.yaml",
                                   options);
}

struct LineSimulation {
  Result result;
  VectorXd q_error, v_error, a_error;  ///< averages over the samples, by joint
};

/// Inverse kinematics → inverse dynamics → forward dynamics → integration, sampled every 0.1 s.
inline LineSimulation line_simulation(const Model& model, Options options, Method method) {
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
