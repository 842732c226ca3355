// SPDX-License-Identifier: Apache-2.0
/// The momentum observer against closed forms, against simulations with known forces, and what it
/// decides.

#include "dynamics_core/control/momentum_observer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/SVD>
#include <cmath>
#include <functional>

#include "dynamics_core/joint_selection.hpp"
#include "dynamics_core/kinematics.hpp"
#include "dynamics_core/load.hpp"
#include "dynamics_core/simulation/simulated_robot.hpp"
#include "support/closed_loop.hpp"
#include "support/planar_arm.hpp"
#include "support/random_model.hpp"

namespace {

using namespace dynamics_core;
using namespace dynamics_core::control;
using Eigen::MatrixXd;
using Eigen::Vector3d;
using Eigen::VectorXd;
using testing::HasSubstr;

constexpr double dt = 1e-3;

/// A sample of a robot with one joint.
Status feed(MomentumObserver& observer, double q, std::optional<double> v, double tau,
            double step) {
  const std::vector<double> position = {q}, velocity = {v.value_or(0.0)}, effort = {tau};
  return observer.update({position, v ? View(velocity) : View(), effort}, step);
}

/// A wheel about a horizontal axis through its centre.
Model wheel(double inertia, double viscous = 0.0, double coulomb = 0.0) {
  RobotDescription robot;
  robot.name = "wheel";
  robot.links.push_back({"base", std::nullopt});
  Inertial body;
  body.mass = 1.0;
  body.inertia = Vector3d(inertia, inertia, inertia).asDiagonal();
  robot.links.push_back({"rim", body});
  JointDescription joint;
  joint.name = "axle";
  joint.type = JointType::continuous;
  joint.parent = "base";
  joint.child = "rim";
  joint.axis = Vector3d::UnitX();
  joint.damping = viscous;
  joint.friction = coulomb;
  robot.joints.push_back(joint);
  return build_model(robot);
}

// --- Closed forms --------------------------------------------------------------------------------

/// A constant torque speeds a wheel up linearly; a filter of first order shows 1 − exp(−K t) of it,
/// whatever the sampling times, and the angle may jump by a turn.
TEST(MomentumObserver, ShowsAConstantTorqueOnAWheelAsItsFilterDoesToRoundOff) {
  ObserverConfig config;
  config.cutoff = 7.0;
  MomentumObserver observer(wheel(0.3), config);
  support::Random random(5);
  double t = 0.0;
  for (int k = 0; k < 500; ++k) {
    const double step = k == 0 ? dt : random.uniform(1e-4, 2e-2);
    if (k > 0) t += step;
    const double v = 2.0 / 0.3 * t;
    const double q = 1.0 / 0.3 * t * t;
    ASSERT_EQ(feed(observer, std::remainder(q, 2.0 * M_PI), v, 0.0, step), Status::ok);
    EXPECT_NEAR(observer.external_effort()[0], 2.0 * -std::expm1(-2.0 * M_PI * 7.0 * t), 1e-11);
  }
}

/// Friction of known parameters is not mistaken for a torque: at a constant speed the drive gives
/// c + b v and the environment the rest.
TEST(MomentumObserver, KnowsTheFrictionOfTheModel) {
  MomentumObserver observer(wheel(0.3, 0.5, 0.8), {});
  for (int k = 0; k < 1000; ++k)
    ASSERT_EQ(feed(observer, 2.0 * k * dt, 2.0, 0.5 * 2.0 + 0.8 - 0.3, dt), Status::ok);
  EXPECT_NEAR(observer.external_effort()[0], 0.3, 1e-6);
}

/// Three joints with the equations of motion in closed form and with a motion in closed form: what
/// is left is the discretisation, of order two.
TEST(MomentumObserver, IsOfSecondOrderOnAPlanarArm) {
  const auto external = [](double t) {
    return Vector3d(1.0 + std::sin(9.0 * t), 0.5 * std::cos(7.0 * t), -0.3 * std::sin(5.0 * t));
  };
  support::PlanarArm arm;
  const auto effort = [&](double t) {  // of the drives
    const Vector3d w(3.0, 4.0, 5.0);
    const Vector3d q = (w * t).array().sin();
    const Vector3d v = w.array() * (w * t).array().cos();
    const Vector3d a = -w.array().square() * (w * t).array().sin();
    arm.evaluate(q, v);
    return Vector3d(arm.M * a + arm.C * v + arm.gravity - external(t));
  };
  const auto worst = [&](double h) {
    ObserverConfig config;
    config.cutoff = 5.0;
    MomentumObserver observer(arm.model(), config);
    const double K = 2.0 * M_PI * config.cutoff;
    Vector3d exact = Vector3d::Zero();
    double error = 0.0;
    for (int k = 0; k * h < 2.0; ++k) {
      const double t = k * h;
      const Vector3d w(3.0, 4.0, 5.0);
      const VectorXd q = (w * t).array().sin();
      const VectorXd v = w.array() * (w * t).array().cos();
      VectorXd tau = effort(t);
      if (k > 0) {  // Simpson's rule over the period, and the filter in small steps
        tau = (effort(t - h) + 4.0 * effort(t - 0.5 * h) + effort(t)) / 6.0;
        for (int i = 0; i < 20; ++i) {
          const double s = t - h + (i + 0.5) * h / 20.0;
          exact += -std::expm1(-K * h / 20.0) * (external(s) - exact);
        }
      }
      EXPECT_EQ(observer.update({q, v, tau}, h), Status::ok);
      error = std::max(error, (observer.external_effort() - exact).cwiseAbs().maxCoeff());
    }
    return error;
  };
  const double coarse = worst(4e-3);
  const double fine = worst(2e-3);
  std::printf("planar arm: %.1e N·m off at 4 ms, %.1e at 2 ms\n", coarse, fine);
  EXPECT_LT(coarse, 0.02);
  EXPECT_NEAR(coarse / fine, 4.0, 0.4);
}

// --- Robots of every kind ------------------------------------------------------------------------

/// A robot that moves under efforts and a force on a link, by the core's forward dynamics and
/// Runge-Kutta's method: joint by joint, the effort of that force by the transposed Jacobian. The
/// observer's Δv/h and the robot's acceleration have nothing in common.
void expect_to_feel(const Model& model, unsigned seed, const ObserverConfig& config = {}) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  support::Random random(seed);
  MomentumObserver observer(model, config);
  support::SimulatedRobot robot(model);
  robot.q = 0.3 * random.vector_x(model.nq, 1.0);
  const int link = random.integer(1, static_cast<int>(model.links.size()) - 1);
  const Vector3d n = random.vector(5.0);
  const Vector3d f = random.vector(20.0);
  VectorXd effort = VectorXd::Zero(model.nv);
  MatrixXd J(6, model.nv);
  VectorXd exact = VectorXd::Zero(model.nv);
  VectorXd last = exact;
  double worst = 0.0;
  double largest = 0.0;
  for (int k = 0; k < 400; ++k) {
    if (k > 0) {
      ASSERT_EQ(robot.dynamics.gravity(robot.q, effort), Status::ok);
      effort -= 2.0 * robot.v;  // calm
      robot.dynamics.clear_external_forces();
      ASSERT_EQ(robot.dynamics.add_external_force(link, {n, f}), Status::ok);
      robot.move(effort, dt);
      robot.dynamics.clear_external_forces();
    }
    ASSERT_EQ(observer.update({robot.q, robot.v, effort}, dt), Status::ok);
    Kinematics<double>& at = robot.dynamics.kinematics();
    Pose<double> X;
    ASSERT_EQ(at.update(robot.q), Status::ok);
    ASSERT_EQ(at.pose(link, X), Status::ok);
    ASSERT_EQ(at.jacobian(link, J), Status::ok);
    Eigen::Matrix<double, 6, 1> wrench;
    wrench << X.R * n, X.R * f;
    const VectorXd now = J.transpose() * wrench;
    if (k > 0)
      exact += -std::expm1(-2.0 * M_PI * config.cutoff * dt) * (0.5 * (last + now) - exact);
    last = now;
    worst = std::max(worst, (observer.external_effort() - exact).cwiseAbs().maxCoeff());
    largest = std::max(largest, now.cwiseAbs().maxCoeff());
  }
  EXPECT_LT(worst, 1e-3 * (1.0 + largest));
}

TEST(MomentumObserver, FeelsAForceOnAnyRobot) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    support::Random random(seed);
    support::RandomOptions options;
    options.joints = 7;
    options.rotors = true;
    options.prismatic = 0.2;
    options.branching = 0.3;
    options.helical = 0.1;
    options.fixed = 0.1;
    options.mimic = seed % 2 == 0 ? 0.25 : 0.0;
    expect_to_feel(build_model(random.robot(options)), seed);
  }
}

/// Any part of the joints in any order, with the others in motion: what all would show.
TEST(MomentumObserver, APartOfTheJointsFeelsWhatItFeelsAmongAll) {
  const Model model = build_model(support::random_arm(8, 6, true));
  ObserverConfig part;
  part.joints = {"joint_5", "joint_2", "joint_3"};
  MomentumObserver all(model, {});
  MomentumObserver some(model, part);
  ASSERT_THAT(some.other_joints(), testing::ElementsAre("joint_1", "joint_4", "joint_6"));
  const std::vector<int> mine = {4, 1, 2};
  const std::vector<int> rest = {0, 3, 5};
  support::Random random(8);
  const VectorXd amplitude = random.vector_x(6, 1.0);
  const VectorXd effort = random.vector_x(6, 10.0);
  for (int k = 0; k < 300; ++k) {
    const VectorXd q = amplitude * std::sin(5.0 * k * dt);
    const VectorXd v = amplitude * 5.0 * std::cos(5.0 * k * dt);
    const VectorXd q_part = q(mine), v_part = v(mine), tau_part = effort(mine);
    const VectorXd q_rest = q(rest), v_rest = v(rest);
    ASSERT_EQ(all.update({q, v, effort}, dt), Status::ok);
    ASSERT_EQ(some.update({q_part, v_part, tau_part, q_rest, v_rest}, dt), Status::ok);
    const VectorXd expected = all.external_effort()(mine);
    ASSERT_LT((some.external_effort() - expected).norm(), 1e-12);
  }
  EXPECT_GT(all.external_effort().norm(), 1.0);
}

TEST(MomentumObserver, EffortsWithoutGravityAreUnderstood) {
  const Model model = build_model(support::random_arm(4));
  ObserverConfig config;
  MomentumObserver total(model, config);
  config.effort = EffortKind::without_gravity;
  MomentumObserver without(model, config);
  Dynamics<double> robot(model);
  support::Random random(4);
  const VectorXd amplitude = random.vector_x(7, 1.0);
  VectorXd g(7), gravity(7), last(7);
  for (int k = 0; k < 200; ++k) {
    const VectorXd q = amplitude * std::sin(3.0 * k * dt);
    const VectorXd v = amplitude * 3.0 * std::cos(3.0 * k * dt);
    const VectorXd tau = VectorXd::Constant(7, 5.0);
    const VectorXd middle = k == 0 ? q : VectorXd(0.5 * (q + last));
    ASSERT_EQ(robot.gravity(middle, g), Status::ok);
    last = q;
    const VectorXd reported = tau - g;
    ASSERT_EQ(total.update({q, v, tau}, dt), Status::ok);
    ASSERT_EQ(without.update({q, v, reported}, dt), Status::ok);
    ASSERT_LT((total.external_effort() - without.external_effort()).norm(), 1e-11);
  }
  EXPECT_GT(g.norm(), 1.0);
}

TEST(MomentumObserver, KnowsPayloadsAndGravity) {
  const Model model = build_model(support::random_arm(6));
  const Payload<double> load{2.0, {0.1, 0.0, 0.2}, {0.01, 0.0, 0.0, 0.01, 0.0, 0.01}};
  const Vector3d tilted(1.0, 2.0, -9.0);
  Dynamics<double> robot(model);
  MomentumObserver observer(model, {});
  const int link = model.find_link("link_7");
  ASSERT_EQ(robot.set_payload(link, load), Status::ok);
  ASSERT_EQ(observer.set_payload(link, load), Status::ok);
  ASSERT_EQ(robot.set_gravity(tilted), Status::ok);
  ASSERT_EQ(observer.set_gravity(tilted), Status::ok);
  EXPECT_EQ(observer.set_gravity({NAN, 0.0, 0.0}), Status::not_finite);
  const VectorXd q = VectorXd::Constant(7, 0.4);
  const VectorXd v = VectorXd::Zero(7);
  VectorXd tau(7);
  ASSERT_EQ(robot.gravity(q, tau), Status::ok);
  ASSERT_GT(tau.norm(), 1.0);
  for (int k = 0; k < 3; ++k) ASSERT_EQ(observer.update({q, v, tau}, dt), Status::ok);
  EXPECT_LT(observer.external_effort().norm(), 1e-12);

  // It is put down within half a second: what the robot bears runs from the one to the other.
  Dynamics<double> empty(model);
  ASSERT_EQ(empty.set_gravity(tilted), Status::ok);
  VectorXd less(7);
  ASSERT_EQ(empty.gravity(q, less), Status::ok);
  const Payload<double> none{0.0, Vector3d::Zero(), Symmetric3<double>::zero()};
  ASSERT_EQ(observer.set_payload(link, none, 0.5), Status::ok);
  for (int k = 0; k < 600; ++k) {
    const double x = std::min(1.0, (k + 0.5) * dt / 0.5);  // as Ramp has it
    const VectorXd borne = tau + x * x * (3.0 - 2.0 * x) * (less - tau);
    ASSERT_EQ(observer.update({q, v, borne}, dt), Status::ok);
    ASSERT_LT(observer.external_effort().norm(), 0.01 * (less - tau).norm());
  }
}

/// Where no velocity is measured it is estimated, and nothing is felt before the estimate is there.
TEST(MomentumObserver, EstimatesVelocitiesThatAreNotMeasured) {
  ObserverConfig config;
  config.velocity_cutoff = 100.0;
  MomentumObserver observer(wheel(0.3), config);
  for (int k = 0; k < 500; ++k) {
    const double t = k * dt;
    ASSERT_EQ(feed(observer, 5.0 * t + 0.5 * 2.0 / 0.3 * t * t, std::nullopt, 0.0, dt), Status::ok);
    EXPECT_LT(observer.external_effort()[0], 2.01);
  }
  EXPECT_NEAR(observer.external_effort()[0], 2.0, 0.01);
}

// --- Forces in simulation ------------------------------------------------------------------------

/// What the issue of a collision detector is: an arm that works, with friction, and is pushed.
class Pushed : public testing::TestWithParam<unsigned> {
 protected:
  [[nodiscard]] static Model arm() {
    RobotDescription description = support::random_arm(GetParam(), 6);
    support::Random random(GetParam() + 100);
    for (JointDescription& joint : description.joints) {
      joint.damping = random.uniform(0.2, 1.0);
      joint.friction = random.uniform(0.2, 1.0);
      joint.rotor_inertia = 0.2;
    }
    return build_model(description);
  }

  /// Of a hundred poses the one in which the joints tell most of a wrench at the link.
  [[nodiscard]] static VectorXd well_conditioned(const Model& model, int link) {
    Dynamics<double> robot(model);
    support::Random random(GetParam() + 400);
    VectorXd best;
    double most = -1.0;
    for (int k = 0; k < 100; ++k) {
      const VectorXd q = random.configuration(model);
      MatrixXd J(6, model.nv);
      EXPECT_EQ(robot.jacobian(q, link, J), Status::ok);
      J.topRows<3>() *= 0.5;
      const double least = J.jacobiSvd().singularValues()[5];
      if (least <= most) continue;
      most = least;
      best = q;
    }
    return best;
  }

  struct Result {
    double onset = -1.0;  ///< s after the force began
    double effort = 0.0;  ///< mean error of τ_ext by its size
    double force = 0.0;   ///< mean error of the force by its size
    bool false_alarm = false;
    bool over = false;  ///< ended after the force had
    int link = -1;
  };

  /// Two seconds of motion, from 1 s on for 0.5 s with the force f (world axes) at the link.
  [[nodiscard]] static Result push(const Model& model, int link, const Vector3d& f,
                                   const Vector3d& offset = Vector3d::Zero()) {
    ObserverConfig config;
    config.frame = model.links[static_cast<std::size_t>(link)].name;
    config.thresholds = {{0.5, 0.1, 0.01}};
    MomentumObserver observer(model, config);
    simulation::SimulatedRobot robot(model, {});
    Config law;
    law.mode = Mode::computed_torque;
    law.gains = {{400.0, 40.0}};
    Controller controller(model, law);
    Dynamics<double> known(model);
    const VectorXd zero = VectorXd::Zero(model.nv);
    const VectorXd start = well_conditioned(model, link);
    EXPECT_EQ(robot.start(start, zero), Status::ok);
    controller.activate({robot.position(), robot.velocity()});
    Result result;
    MatrixXd J(6, model.nv);
    VectorXd q_d(model.nv), v_d(model.nv), a_d(model.nv), drives = zero, external = zero;
    double samples = 0.0;
    for (int k = 0; k < 2000; ++k) {
      const double t = k * dt;
      const bool pushing = t >= 1.0 && t < 1.5;
      EXPECT_EQ(observer.update({robot.position(), robot.velocity(), drives}, dt), Status::ok);
      const Contact& contact = observer.contact();
      if (contact.touched && (t < 1.0 || t > 1.9)) result.false_alarm = true;
      if (t > 1.9) result.over = !contact.touched;
      if (contact.touched && result.onset < 0.0) result.onset = t - 1.0;
      if (t > 1.1 && t < 1.5) {
        Pose<double> X;
        EXPECT_EQ(known.kinematics().update(robot.position()), Status::ok);
        EXPECT_EQ(known.kinematics().pose(link, X), Status::ok);
        result.effort += (observer.external_effort() - external).norm() / external.norm();
        result.force += (X.R * observer.wrench().force - f).norm() / f.norm();
        result.link = contact.link;
        ++samples;
      }
      for (int j = 0; j < model.nv; ++j) {
        const double w = 1.0 + 0.3 * j;
        q_d[j] = start[j] + 0.2 * (1.0 - std::cos(w * t));
        v_d[j] = 0.2 * w * std::sin(w * t);
        a_d[j] = 0.2 * w * w * std::cos(w * t);
      }
      EXPECT_NE(controller.update({robot.position(), robot.velocity()}, {q_d, v_d, a_d}, dt),
                ControllerState::fault);
      drives = controller.command().effort;
      EXPECT_EQ(known.jacobian(robot.position(), link, J, offset), Status::ok);
      external = pushing ? VectorXd(J.bottomRows<3>().transpose() * f) : zero;
      const VectorXd both = drives + external;
      EXPECT_EQ(robot.cycle(both, dt), Status::ok);
    }
    result.effort /= samples;
    result.force /= samples;
    return result;
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, Pushed, testing::Range(1U, 6U));

TEST_P(Pushed, IsFeltWithinTenMillisecondsAndFivePercent) {
  const Model model = arm();
  const int tip = tip_link(model);
  support::Random random(GetParam() + 200);
  const Vector3d f = 40.0 * random.direction();
  const Result pushed = push(model, tip, f);
  std::printf("seed %u: felt after %.0f ms, efforts %.1f %% off, force %.1f %%\n", GetParam(),
              1e3 * pushed.onset, 1e2 * pushed.effort, 1e2 * pushed.force);
  EXPECT_FALSE(pushed.false_alarm);
  EXPECT_TRUE(pushed.over);
  EXPECT_GE(pushed.onset, 0.0);
  EXPECT_LE(pushed.onset, 0.010);
  EXPECT_LT(pushed.effort, 0.05);
  EXPECT_LT(pushed.force, 0.05);
}

/// No joint beyond a link feels a force on it.
TEST_P(Pushed, IsLocatedAtTheLinkOrNearerToTheRoot) {
  const Model model = arm();
  support::Random random(GetParam() + 300);
  int exact = 0;
  for (int link = 3; link <= 6; ++link) {
    const Result pushed = push(model, model.find_link("link_" + std::to_string(link)),
                               60.0 * random.direction(), 0.3 * random.direction());
    const std::string& name = model.links.at(static_cast<std::size_t>(pushed.link)).name;
    EXPECT_LE(model.find_link(name), model.find_link("link_" + std::to_string(link)));
    exact += name == "link_" + std::to_string(link) ? 1 : 0;
  }
  EXPECT_GE(exact, 1);
}

// --- The wrench ----------------------------------------------------------------------------------

/// At rest under a known wrench. Six joints or more tell all of it; where they do not, what is not
/// felt stays zero, the rest is right, and the numbers say so.
TEST(MomentumObserver, TellsTheWrenchAsFarAsTheJointsFeelIt) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    const int joints = seed % 2 == 0 ? 7 : 4;
    const Model model = build_model(support::random_arm(seed, joints));
    const int link = tip_link(model);
    ObserverConfig config;
    config.frame = model.links[static_cast<std::size_t>(link)].name;
    config.damping = 1e-3;
    MomentumObserver observer(model, config);
    Dynamics<double> robot(model);
    support::Random random(seed);
    const VectorXd q = random.configuration(model);
    const VectorXd v = VectorXd::Zero(model.nv);
    VectorXd tau(model.nv);
    Eigen::Matrix<double, 6, 1> wrench;
    wrench << random.vector(3.0), random.vector(10.0);
    ASSERT_EQ(robot.add_external_force(link, {wrench.head<3>(), wrench.tail<3>()}), Status::ok);
    ASSERT_EQ(robot.inverse_dynamics(q, v, v, tau), Status::ok);
    for (int k = 0; k < 2000; ++k) ASSERT_EQ(observer.update({q, v, tau}, dt), Status::ok);
    const FrameWrench& told = observer.wrench();
    EXPECT_EQ(told.directions, std::min(6, joints)) << "seed " << seed;
    Eigen::Matrix<double, 6, 1> found;
    found << told.torque, told.force;
    robot.clear_external_forces();
    VectorXd rest(model.nv), explained(model.nv);
    ASSERT_EQ(robot.inverse_dynamics(q, v, v, rest), Status::ok);
    ASSERT_EQ(robot.add_external_force(link, {told.torque, told.force}), Status::ok);
    ASSERT_EQ(robot.inverse_dynamics(q, v, v, explained), Status::ok);
    EXPECT_LT((explained - tau).norm(), 1e-6 * (rest - tau).norm()) << "seed " << seed;
    if (joints > 6) {
      EXPECT_LT((found - wrench).norm(), 1e-5) << "seed " << seed;
      EXPECT_GT(told.conditioning, 1e-4);
    } else {
      EXPECT_LT(told.conditioning, 1e-7);
      EXPECT_LT(found.norm(), 10.0 * wrench.norm());
    }
  }
}

/// At a stretched arm the joints feel no pull along it. Damped, the wrench stays of the size of the
/// forces that there are, however close to it.
TEST(MomentumObserver, StaysCalmNearASingularity) {
  support::PlanarArm planar;
  const Model model = planar.model();
  ObserverConfig config;
  config.frame = "link3";
  MomentumObserver observer(model, config);
  Dynamics<double> robot(model);
  double largest = 0.0;
  for (const double bend : {1e-1, 1e-2, 1e-3, 1e-5, 0.0}) {
    observer.restart();
    const VectorXd q = Vector3d(0.2, bend, bend);
    const VectorXd v = VectorXd::Zero(3);
    VectorXd tau(3);
    ASSERT_EQ(robot.gravity(q, tau), Status::ok);
    tau += Vector3d(0.01, -0.01, 0.01);  // the model is not perfect
    for (int k = 0; k < 1000; ++k) ASSERT_EQ(observer.update({q, v, tau}, dt), Status::ok);
    largest = std::max(largest, observer.wrench().force.norm());
  }
  EXPECT_LT(largest, 0.02 / config.damping);
  EXPECT_EQ(observer.wrench().directions, 2);
}

// --- Decisions -----------------------------------------------------------------------------------

/// Whatever the errors of the model are, within the bound nothing is reported; a third above, it is.
TEST(MomentumObserver, NoErrorWithinTheBoundIsReported) {
  support::Random random(3);
  ObserverConfig config;
  config.thresholds = {{1.0, 2.0, 0.1}};
  config.cutoff = 5.0;
  for (const double part : {0.999, 1.3}) {
    MomentumObserver observer(wheel(0.3, 0.0, 4.0), config);
    const JointFriction<double> friction{0.0, 4.0};
    double sign = 1.0;
    double v = 0.0;
    bool touched = false;
    for (int k = 0; k < 20000; ++k) {
      if (random.chance(0.003)) sign = -sign;
      const double t = k * dt;
      const double next = 0.5 * std::sin(0.7 * t) * std::sin(0.9 * t);
      const double middle = 0.5 * (v + next);
      const double bound =
          1.0 + 2.0 * std::abs(middle) + 4.0 * (1.0 - std::abs(middle) / std::hypot(middle, 0.1));
      const double model = 0.3 * (next - v) / dt + friction.effort(middle);
      v = next;
      const double tau = k == 0 ? 0.0 : model - sign * part * bound;
      ASSERT_EQ(feed(observer, 0.0, v, tau, dt), Status::ok);
      touched = touched || observer.contact().touched;
    }
    EXPECT_EQ(touched, part > 1.0);
  }
}

/// A joint that stands still under any effort below its Coulomb friction is no contact.
TEST(MomentumObserver, StictionIsNoContact) {
  ObserverConfig config;
  config.thresholds = {{1.0, 0.0, 0.05}};
  MomentumObserver observer(wheel(0.3, 0.0, 10.0), config);
  for (int k = 0; k < 3000; ++k) {
    const double tau = 10.0 * std::sin(0.01 * k);
    ASSERT_EQ(feed(observer, 0.0, 0.0, tau, dt), Status::ok);
    ASSERT_FALSE(observer.contact().touched);
  }
  for (int k = 0; k < 300; ++k) ASSERT_EQ(feed(observer, 0.0, 0.0, 12.0, dt), Status::ok);
  EXPECT_TRUE(observer.contact().touched);
}

TEST(MomentumObserver, ContactsAreConfirmedAndReleased) {
  ObserverConfig config;
  config.thresholds = {{1.0}};
  config.cutoff = 1000.0;  // hardly a filter
  config.confirm_time = 0.02;
  config.release = 0.5;
  config.release_time = 0.1;
  MomentumObserver observer(wheel(0.3), config);
  const auto feel = [&](double external, int n) {
    for (int k = 0; k < n; ++k) ASSERT_EQ(feed(observer, 0.0, 0.0, -external, dt), Status::ok);
  };
  feel(0.9, 100);
  EXPECT_FALSE(observer.contact().touched);
  feel(1.2, 15);
  EXPECT_FALSE(observer.contact().touched);  // not for long enough
  feel(0.9, 1);
  feel(1.2, 15);
  EXPECT_FALSE(observer.contact().touched);  // nor together
  feel(1.2, 10);
  EXPECT_TRUE(observer.contact().touched);
  EXPECT_EQ(observer.contact().link, 1);
  EXPECT_TRUE(observer.felt()[0]);
  feel(0.7, 500);
  EXPECT_TRUE(observer.contact().touched);  // below the threshold, above its half
  EXPECT_NEAR(observer.contact().time, 0.504, 0.002);
  feel(0.3, 50);
  EXPECT_TRUE(observer.contact().touched);  // for half of the release time
  EXPECT_FALSE(observer.felt()[0]);
  EXPECT_EQ(observer.contact().link, 1);
  feel(0.3, 60);
  EXPECT_FALSE(observer.contact().touched);
  EXPECT_EQ(observer.contact().link, -1);
}

// --- What goes wrong -----------------------------------------------------------------------------

TEST(MomentumObserver, StartsAnewAfterASampleThatCannotBeUsed) {
  const Model model = build_model(support::random_arm(2, 3));
  ObserverConfig config;
  config.frame = "link_3";
  MomentumObserver observer(model, config);
  const VectorXd q = VectorXd::Zero(3);
  VectorXd bad = q;
  bad[1] = std::nan("");
  const VectorXd tau = VectorXd::Constant(3, 30.0);
  const VectorXd huge = VectorXd::Constant(3, 1e300);
  const VectorXd short_q = VectorXd::Zero(2);
  const auto touch = [&] {
    for (int k = 0; k < 100; ++k) ASSERT_EQ(observer.update({q, q, tau}, dt), Status::ok);
    ASSERT_TRUE(observer.contact().touched);
    ASSERT_GT(observer.wrench().force.norm(), 0.0);
  };
  const auto expect_anew = [&](Status status, Status expected) {
    EXPECT_EQ(status, expected);
    EXPECT_TRUE(observer.external_effort().isZero(0.0));
    EXPECT_TRUE(observer.threshold().isZero(0.0));
    EXPECT_FALSE(observer.contact().touched);
    EXPECT_TRUE(observer.wrench().force.isZero(0.0));
    touch();
  };
  touch();
  expect_anew(observer.update({bad, q, tau}, dt), Status::not_finite);
  expect_anew(observer.update({q, bad, tau}, dt), Status::not_finite);
  expect_anew(observer.update({q, q, bad}, dt), Status::not_finite);
  expect_anew(observer.update({short_q, q, tau}, dt), Status::wrong_size);
  expect_anew(observer.update({q, short_q, tau}, dt), Status::wrong_size);
  expect_anew(observer.update({q, q, View()}, dt), Status::wrong_size);
  expect_anew(observer.update({q, q, tau, q}, dt), Status::wrong_size);
  expect_anew(observer.update({q, q, tau}, 0.0), Status::out_of_range);
  expect_anew(observer.update({q, q, tau}, -dt), Status::out_of_range);
  expect_anew(observer.update({q, q, tau}, std::nan("")), Status::out_of_range);
  expect_anew(observer.update({q, q, tau}, 0.2), Status::out_of_range);
  expect_anew(observer.update({q, huge, tau}, dt), Status::not_finite);
}

/// Efforts so large that their difference is none any longer: what is handed out stays finite, the
/// status says so, and after that the observer is as one that was never told of them.
TEST(MomentumObserver, HandsOutNothingThatIsNotFinite) {
  const Model model = build_model(support::random_arm(2, 3));
  ObserverConfig config;
  config.frame = "link_3";
  MomentumObserver observer(model, config);
  MomentumObserver spared(model, config);
  const VectorXd q = VectorXd::Zero(3);
  const auto feed_one = [&](MomentumObserver& to, double effort) {
    const VectorXd tau = VectorXd::Constant(3, effort);
    const Status status = to.update({q, q, tau}, 0.1);
    EXPECT_TRUE(to.external_effort().allFinite()) << effort;
    EXPECT_TRUE(to.threshold().allFinite()) << effort;
    EXPECT_TRUE(to.wrench().force.allFinite() && to.wrench().torque.allFinite()) << effort;
    EXPECT_TRUE(std::isfinite(to.wrench().conditioning)) << effort;
    return status;
  };
  EXPECT_EQ(feed_one(observer, 0.0), Status::ok);
  int overflows = 0;
  for (const double huge : {-1.7e308, 1.7e308, -1.7e308, 1.7e308})
    overflows += feed_one(observer, huge) == Status::not_finite ? 1 : 0;
  EXPECT_GE(overflows, 1);
  observer.restart();
  for (int k = 0; k < 50; ++k) {
    EXPECT_EQ(feed_one(observer, 50.0), Status::ok);
    EXPECT_EQ(feed_one(spared, 50.0), Status::ok);
    EXPECT_EQ(observer.external_effort(), spared.external_effort());
  }
  EXPECT_TRUE(observer.contact().touched);
}

/// The same without a wrench, whose own check is not needed for it; and nobody restarts it.
TEST(MomentumObserver, GoesOnAfterAnOverflowOfItsFilter) {
  ObserverConfig config;
  MomentumObserver observer(wheel(0.3), config);
  EXPECT_EQ(feed(observer, 0.0, 0.0, 0.0, 0.1), Status::ok);
  EXPECT_EQ(feed(observer, 0.0, 0.0, -1.7e308, 0.1), Status::ok);
  EXPECT_EQ(feed(observer, 0.0, 0.0, 1.7e308, 0.1), Status::not_finite);
  EXPECT_EQ(observer.external_effort()[0], 0.0);
  for (int k = 0; k < 50; ++k) EXPECT_EQ(feed(observer, 0.0, 0.0, -50.0, 0.1), Status::ok);
  EXPECT_NEAR(observer.external_effort()[0], 50.0, 1e-9);
}

/// Of joints that are not observed nothing has to be told: one whose speed is NaN counts as one that
/// stands still, and a speed that is no longer told is no sudden stop.
TEST(MomentumObserver, TakesSpeedsOfOtherJointsThatAreNotTold) {
  const Model model = build_model(support::random_arm(2, 4));
  ObserverConfig config;
  config.joints = {"joint_3", "joint_4"};
  MomentumObserver observer(model, config);
  MomentumObserver untold(model, config);
  const VectorXd q = VectorXd::Constant(2, 0.3), zero = VectorXd::Zero(2);
  VectorXd speed = VectorXd::Constant(2, 0.5);
  for (int k = 0; k < 100; ++k) {
    const bool told = k >= 30 && k < 60;
    speed.setConstant(told ? 0.5 : std::nan(""));
    ASSERT_EQ(observer.update({q, zero, zero, q, speed}, dt), Status::ok) << k;
    ASSERT_EQ(untold.update({q, zero, zero, q, View()}, dt), Status::ok) << k;
    if (k < 30) {
      ASSERT_EQ(observer.external_effort(), untold.external_effort()) << k;
    }
    // A stop within a period would be 500 rad/s²; the centrifugal efforts of 0.5 rad/s are small.
    ASSERT_LT((observer.external_effort() - untold.external_effort()).norm(), 1.0) << k;
  }
}

/// A filter that dies away ends at zero and not in denormal numbers.
TEST(MomentumObserver, ForgetsToZero) {
  MomentumObserver observer(wheel(0.3), {});
  for (int k = 0; k < 10; ++k) ASSERT_EQ(feed(observer, 0.0, 0.0, 1.0, dt), Status::ok);
  for (int k = 0; k < 20000 && observer.external_effort()[0] != 0.0; ++k) {
    ASSERT_EQ(feed(observer, 0.0, 0.0, 0.0, dt), Status::ok);
    EXPECT_TRUE(observer.external_effort()[0] == 0.0 ||
                std::abs(observer.external_effort()[0]) > 1e-101);
  }
  EXPECT_EQ(observer.external_effort()[0], 0.0);
}

std::string message(const Model& model, const ObserverConfig& config) {
  try {
    const MomentumObserver observer(model, config);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

TEST(MomentumObserver, RefusesWhatItCannotUse) {
  const Model model = build_model(support::random_arm(2, 3));
  const auto refused = [&](const std::function<void(ObserverConfig&)>& change) {
    ObserverConfig config;
    change(config);
    return message(model, config);
  };
  EXPECT_EQ(refused([](ObserverConfig&) {}), "");
  EXPECT_THAT(refused([](auto& c) { c.joints = {"nose"}; }), HasSubstr("joints = 'nose'"));
  EXPECT_THAT(refused([](auto& c) { c.friction = {{-1.0}}; }), HasSubstr("viscous = -1"));
  EXPECT_THAT(refused([](auto& c) { c.cutoff = 0.0; }), HasSubstr("cutoff = 0"));
  EXPECT_THAT(refused([](auto& c) { c.thresholds.resize(2); }),
              HasSubstr("thresholds = list of 2: give one element, or one for each of the 3"));
  EXPECT_THAT(refused([](auto& c) { c.thresholds[0].constant = 0.0; }),
              HasSubstr("thresholds.joint_1.constant = 0"));
  EXPECT_THAT(refused([](auto& c) { c.thresholds[0].speed = -1.0; }), HasSubstr("speed = -1"));
  EXPECT_THAT(refused([](auto& c) { c.thresholds[0].stiction_velocity = NAN; }),
              HasSubstr("stiction_velocity = nan"));
  EXPECT_THAT(refused([](auto& c) { c.confirm_time = -1.0; }), HasSubstr("confirm_time = -1"));
  EXPECT_THAT(refused([](auto& c) { c.release_time = NAN; }), HasSubstr("release_time = nan"));
  EXPECT_THAT(refused([](auto& c) { c.release = 1.5; }), HasSubstr("release = 1.5"));
  EXPECT_THAT(refused([](auto& c) { c.length = 0.0; }), HasSubstr("length = 0"));
  EXPECT_THAT(refused([](auto& c) { c.damping = 0.0; }), HasSubstr("damping = 0"));
  EXPECT_THAT(refused([](auto& c) { c.frame = "nowhere"; }), HasSubstr("frame = 'nowhere'"));
  EXPECT_THAT(refused([&](auto& c) { c.frame = model.links[0].name; }), HasSubstr("does not move"));
}

TEST(MomentumObserver, RefusesAFloatingBase) {
  ModelOptions options;
  options.floating_base = true;
  EXPECT_THAT(message(build_model(support::random_arm(2, 3), options), {}),
              HasSubstr("has no single effort to observe"));
}

TEST(EffortKind, HasNames) {
  for (const EffortKind kind : {EffortKind::total, EffortKind::without_gravity})
    EXPECT_EQ(find_effort_kind(to_string(kind)), kind);
  EXPECT_EQ(find_effort_kind("half"), std::nullopt);
}

}  // namespace
