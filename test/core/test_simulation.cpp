// SPDX-License-Identifier: Apache-2.0
/// Integrators: order of convergence, conservation laws, closed forms, failures.

#include "dynamics_core/simulation/integrators.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "support/random_model.hpp"

namespace {

using namespace dynamics_core;
using Eigen::Vector3d;
using VectorXd = VectorX<double>;
using simulation::Integrator;
using simulation::NoEffort;
using simulation::Options;
using simulation::Plant;
using simulation::Result;
using simulation::State;

/// A mass point m on a massless rod of length l, turning about y, hanging along −z at q = 0.
RobotDescription pendulum(double m = 2.0, double l = 0.5) {
  RobotDescription robot;
  robot.name = "pendulum";
  robot.links.push_back({"base", std::nullopt});
  Inertial inertial;
  inertial.mass = m;
  inertial.com = {0.0, 0.0, -l};
  robot.links.push_back({"rod", inertial});
  JointDescription joint;
  joint.name = "hinge";
  joint.type = JointType::continuous;
  joint.parent = "base";
  joint.child = "rod";
  joint.axis = Vector3d::UnitY();
  robot.joints.push_back(joint);
  return robot;
}

/// A rigid body that flies freely.
RobotDescription free_body(support::Random& random) {
  RobotDescription robot;
  robot.name = "body";
  robot.links.push_back({"world", std::nullopt});
  robot.links.push_back({"body", random.inertial()});
  JointDescription joint;
  joint.name = "free";
  joint.type = JointType::floating;
  joint.parent = "world";
  joint.child = "body";
  joint.origin = {random.rotation(), random.vector(1.0)};
  robot.joints.push_back(joint);
  return robot;
}

State start(const Model& model, const VectorXd& q, const VectorXd& v) {
  EXPECT_EQ(q.size(), model.nq);
  EXPECT_EQ(v.size(), model.nv);
  return {0.0, q, v};
}

/// Drawn one after the other: the order of a function's arguments is the compiler's.
State random_start(const Model& model, support::Random& random, double speed) {
  const VectorXd v = random.vector_x(model.nv, speed);
  return start(model, random.configuration(model), v);
}

double energy(Dynamics<double>& dynamics, const State& s) {
  EXPECT_EQ(dynamics.kinematics().update(s.q, s.v), Status::ok);
  const auto E = dynamics.kinematics().energy();
  return E.kinetic + E.potential;
}

/// Arithmetic–geometric mean.
double agm(double a, double b) {
  while (std::abs(a - b) > 1e-15 * a) {
    const double mean = 0.5 * (a + b);
    b = std::sqrt(a * b);
    a = mean;
  }
  return a;
}

// --- Integrators with tolerance ------------------------------------------------------------------

class Integrators : public testing::TestWithParam<Integrator> {
 protected:
  [[nodiscard]] static Options options(double tolerance, double duration) {
    Options o;
    o.integrator = GetParam();
    o.absolute_tolerance = o.relative_tolerance = tolerance;
    o.duration = duration;
    return o;
  }
};

TEST_P(Integrators, PendulumReturnsAfterItsPeriod) {
  const Model model = build_model(pendulum());
  Dynamics<double> dynamics(model);
  Plant plant(dynamics, NoEffort{});
  const double amplitude = 2.5;
  // T = 2π √(l/g) / agm(1, cos θ₀/2), Gauss
  const double period = 2.0 * M_PI * std::sqrt(0.5 / 9.81) / agm(1.0, std::cos(amplitude / 2));
  const State s0 = start(model, VectorXd::Constant(1, amplitude), VectorXd::Zero(1));
  double last_error = 1.0;
  for (const double tolerance : {1e-5, 1e-7, 1e-9, 1e-11}) {
    const Result r = simulate(dynamics, plant, s0, options(tolerance, period));
    ASSERT_EQ(r.status, Status::ok);
    EXPECT_EQ(r.state.t, period);
    const double error = std::hypot(r.state.q[0] - amplitude, r.state.v[0]);
    EXPECT_LT(error, 3e3 * tolerance);
    EXPECT_LT(error, 0.2 * last_error) << "two digits more have to pay";
    last_error = error;
  }
}

TEST_P(Integrators, EnergyDriftShrinksWithTheTolerance) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    support::Random random(seed);
    support::RandomOptions kinds;
    kinds.joints = 5;
    kinds.branching = 0.3;
    kinds.prismatic = 0.2;
    kinds.planar = 0.1;
    kinds.floating = 0.1;
    kinds.rotors = true;
    const Model model = build_model(random.robot(kinds));
    Dynamics<double> dynamics(model);
    Plant plant(dynamics, NoEffort{});
    const State s0 = random_start(model, random, 1.0);
    const double E0 = energy(dynamics, s0);
    const auto drift = [&](double tolerance) {
      const Result r = simulate(dynamics, plant, s0, options(tolerance, 0.5));
      EXPECT_EQ(r.status, Status::ok);
      return std::abs(energy(dynamics, r.state) - E0) / (std::abs(E0) + 1.0);
    };
    EXPECT_LT(drift(1e-6), 1e-3);
    EXPECT_LT(drift(1e-11), 1e-8);
  }
}

TEST_P(Integrators, MimicModelsConserveEnergyToo) {
  support::Random random(11);
  support::RandomOptions kinds;
  kinds.joints = 6;
  kinds.mimic = 0.5;
  const Model model = build_model(random.robot(kinds));
  ASSERT_FALSE(model.mimics.empty());
  Dynamics<double> dynamics(model);
  Plant plant(dynamics, NoEffort{});
  const State s0 = random_start(model, random, 1.0);
  const Result r = simulate(dynamics, plant, s0, options(1e-10, 0.5));
  ASSERT_EQ(r.status, Status::ok);
  EXPECT_NEAR(energy(dynamics, r.state), energy(dynamics, s0), 1e-6);
}

/// Momentum of a free body about the world's origin, from its pose and velocity alone.
Vec6<double> momentum(Dynamics<double>& dynamics, const Inertial& body, const State& s) {
  EXPECT_EQ(dynamics.kinematics().update(s.q, s.v), Status::ok);
  Pose<double> X;
  Motion<double> V;
  EXPECT_EQ(dynamics.kinematics().pose(1, X), Status::ok);
  EXPECT_EQ(dynamics.kinematics().velocity(1, V, body.com), Status::ok);
  Vec6<double> P;
  P.tail<3>() = body.mass * V.v;
  P.head<3>() = X.R * body.inertia * X.R.transpose() * V.w + (X * body.com).cross(P.tail<3>());
  return P;
}

TEST_P(Integrators, FreeBodyConservesMomentumAndFallsFreely) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    support::Random random(seed);
    const RobotDescription robot = free_body(random);
    const Inertial body = *robot.links[1].inertial;
    ModelOptions weightless;
    weightless.gravity = Vector3d::Zero();
    Model model = build_model(robot, weightless);
    Dynamics<double> dynamics(model);
    Plant plant(dynamics, NoEffort{});
    const State s0 = random_start(model, random, 3.0);
    Options o = options(1e-11, 2.0);
    o.interval = 0.25;
    const Vec6<double> P0 = momentum(dynamics, body, s0);
    Result r = simulate(dynamics, plant, s0, o, [&](const State& s) {
      EXPECT_LT((momentum(dynamics, body, s) - P0).norm(), 1e-8 * (1.0 + P0.norm()))
          << "t = " << s.t;
      EXPECT_NEAR((s.q.segment<4>(3).norm()), 1.0, 1e-14);
      return true;
    });
    ASSERT_EQ(r.status, Status::ok);

    // The same with gravity: the mass centre falls on a parabola.
    const Vector3d g(1.0, -2.0, -9.0);
    ASSERT_EQ(dynamics.set_gravity(g), Status::ok);
    Vector3d c0, v0, c;
    ASSERT_EQ(dynamics.kinematics().update(s0.q, s0.v), Status::ok);
    ASSERT_EQ(dynamics.kinematics().centre_of_mass(c0), Status::ok);
    ASSERT_EQ(dynamics.kinematics().centre_of_mass_velocity(v0), Status::ok);
    r = simulate(dynamics, plant, s0, o, [&](const State& s) {
      EXPECT_EQ(dynamics.kinematics().update(s.q, s.v), Status::ok);
      EXPECT_EQ(dynamics.kinematics().centre_of_mass(c), Status::ok);
      EXPECT_LT((c - (c0 + v0 * s.t + 0.5 * g * s.t * s.t)).norm(), 1e-8) << "t = " << s.t;
      return true;
    });
    ASSERT_EQ(r.status, Status::ok);
  }
}

TEST_P(Integrators, PowerOfEffortsAndFrictionIsTheRateOfEnergy) {
  support::Random random(3);
  support::RandomOptions kinds;
  kinds.joints = 4;
  kinds.branching = 0.3;
  kinds.prismatic = 0.3;
  RobotDescription robot = random.robot(kinds);
  for (auto& joint : robot.joints) {
    joint.damping = random.uniform(0.1, 1.0);
    joint.friction = random.uniform(0.1, 1.0);
  }
  const Model model = build_model(robot);
  Dynamics<double> dynamics(model);
  const Friction<double> friction(model, 0.05);
  const VectorXd amplitude = random.vector_x(model.nv, 5.0);
  const auto effort = [&](double t, const auto&, const auto&, Eigen::Ref<VectorXd> tau) {
    tau = amplitude * std::sin(5.0 * t);
  };
  Plant plant(dynamics, effort);
  plant.set_friction(&friction);
  const State s0 = random_start(model, random, 1.0);
  // Simpson's rule over samples of the power.
  const double dt = 1e-3;
  Options o = options(1e-11, 1.0);
  o.interval = dt;
  std::vector<double> power;
  const Result r = simulate(dynamics, plant, s0, o, [&](const State& s) {
    VectorXd tau = amplitude * std::sin(5.0 * s.t);
    EXPECT_EQ(friction.subtract(s.v, tau), Status::ok);
    power.push_back(s.v.dot(tau));
    return true;
  });
  ASSERT_EQ(r.status, Status::ok);
  ASSERT_EQ(power.size(), 1001U);
  double work = 0.0;
  for (std::size_t i = 0; i + 2 < power.size(); i += 2)
    work += dt / 3.0 * (power[i] + 4.0 * power[i + 1] + power[i + 2]);
  EXPECT_GT(std::abs(work), 0.1) << "else this proves nothing";
  EXPECT_NEAR(energy(dynamics, r.state) - energy(dynamics, s0), work,
              1e-5 * (1.0 + std::abs(work)));
}

TEST_P(Integrators, CountsAndObserves) {
  const Model model = build_model(pendulum());
  Dynamics<double> dynamics(model);
  long calls = 0;
  Plant plant(dynamics, [&](double, const auto&, const auto&, Eigen::Ref<VectorXd> tau) {
    ++calls;
    tau.setZero();
  });
  const State s0 = start(model, VectorXd::Ones(1), VectorXd::Zero(1));
  Options o = options(1e-8, 1.0);
  o.interval = 0.3;
  std::vector<double> times;
  const auto note = [&](const State& s) {
    times.push_back(s.t);
    return true;
  };
  Result r = simulate(dynamics, plant, s0, o, note);
  EXPECT_EQ(r.evaluations, calls);
  EXPECT_EQ(times, (std::vector<double>{0.0, 0.3, 0.6, 3 * 0.3, 1.0}));

  o.interval = 0.0;  // every step
  times.clear();
  r = simulate(dynamics, plant, s0, o, note);
  EXPECT_EQ(times.size(), static_cast<std::size_t>(r.steps) + 1);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  EXPECT_EQ(times.back(), 1.0);

  o.interval = 0.1;  // round-off must not leave an eleventh interval
  times.clear();
  (void)simulate(dynamics, plant, s0, o, note);
  EXPECT_EQ(times.size(), 11U);

  r = simulate(dynamics, plant, s0, o, [](const State& s) { return s.t < 0.45; });
  EXPECT_EQ(r.status, Status::ok);
  EXPECT_EQ(r.state.t, 0.5);
  r = simulate(dynamics, plant, s0, o, [](const State&) { return false; });
  EXPECT_EQ(r.steps, 0);
}

TEST_P(Integrators, FailuresEndTheSimulationWithTheirStatus) {
  // A slide without mass: M is singular.
  support::Random random(5);
  RobotDescription robot = pendulum();
  const Model model = build_model(robot);
  Dynamics<double> dynamics(model);
  Plant plant(dynamics, NoEffort{});
  const State s0 = start(model, VectorXd::Ones(1), VectorXd::Zero(1));
  const auto run = [&](const simulation::Acceleration& f, const Options& o) {
    return simulate(dynamics, f, s0, o);
  };
  const Options good = options(1e-6, 1.0);

  robot.links[1].inertial = Inertial{};
  const Model massless = build_model(robot);
  Dynamics<double> ws0(massless);
  EXPECT_EQ(simulate(ws0, Plant(ws0, NoEffort{}), s0, good).status, Status::singular);

  const auto blow_up = [](double t, const auto&, const auto&, Eigen::Ref<VectorXd> a) {
    a.setConstant(t > 0.5 ? NAN : 0.0);
    return Status::ok;
  };
  const Result r = run(blow_up, good);
  EXPECT_EQ(r.status, Status::not_finite);
  EXPECT_LE(r.state.t, 0.5);
  EXPECT_TRUE(r.state.q.allFinite());

  // x'' = x'² from x' = 1 is infinite after one second.
  State fast = s0;
  fast.v[0] = 1.0;
  const auto square = [](double, const auto&, const auto& v, Eigen::Ref<VectorXd> a) {
    a[0] = v[0] * v[0];
    return Status::ok;
  };
  const Result pole = simulate(dynamics, square, fast, options(1e-9, 2.0));
  EXPECT_NE(pole.status, Status::ok);
  EXPECT_NEAR(pole.state.t, 1.0, 1e-3);

  Options few = good;
  few.max_evaluations = 20;
  EXPECT_EQ(run(plant, few).status, Status::not_converged);
  EXPECT_EQ(run(plant, few).evaluations, 20);
  Options none = good;
  none.absolute_tolerance = none.relative_tolerance = 0.0;
  EXPECT_EQ(run(plant, none).status, Status::out_of_range);
  Options backwards = good;
  backwards.duration = -1.0;
  EXPECT_EQ(run(plant, backwards).status, Status::out_of_range);
  State wrong = s0;
  wrong.v.resize(2);
  EXPECT_EQ(simulate(dynamics, plant, wrong, good).status, Status::wrong_size);
  wrong = s0;
  wrong.q[0] = NAN;
  EXPECT_EQ(simulate(dynamics, plant, wrong, good).status, Status::not_finite);
}

INSTANTIATE_TEST_SUITE_P(All, Integrators, testing::ValuesIn(simulation::all_integrators),
                         [](const auto& i) { return to_string(i.param); });

TEST(IntegratorNames, AreFound) {
  for (const Integrator i : simulation::all_integrators)
    EXPECT_EQ(simulation::find_integrator(to_string(i)), i);
  EXPECT_FALSE(simulation::find_integrator("euler"));
}

TEST(Methods, LeadToTheSameMotion) {
  support::Random random(21);
  support::RandomOptions kinds;
  kinds.joints = 5;
  kinds.branching = 0.3;
  kinds.prismatic = 0.2;
  const Model model = build_model(random.robot(kinds));
  Dynamics<double> dynamics(model);
  const State s0 = random_start(model, random, 1.0);
  Options o;
  o.absolute_tolerance = o.relative_tolerance = 1e-10;
  o.duration = 0.5;
  std::optional<VectorXd> first;
  for (const Method m :
       {Method::articulated_body, Method::udut, Method::gibbs_appell, Method::cholesky}) {
    dynamics.use(m);
    Plant plant(dynamics, NoEffort{});
    const Result r = simulate(dynamics, plant, s0, o);
    ASSERT_EQ(r.status, Status::ok);
    if (!first) first = r.state.q;
    EXPECT_LT((r.state.q - *first).norm(), 1e-6) << to_string(m);
  }
}

// --- Fixed steps ---------------------------------------------------------------------------------

enum class Scheme { runge_kutta4, semi_implicit_euler };

template <class S, class Acceleration>
Status step(Scheme scheme, simulation::FixedStep<S>& stepper, Acceleration& acceleration, S t, S dt,
            VectorX<S>& q, VectorX<S>& v) {
  return scheme == Scheme::runge_kutta4 ? stepper.runge_kutta4(acceleration, t, dt, q, v)
                                        : stepper.semi_implicit_euler(acceleration, t, dt, q, v);
}

class FixedSteps : public testing::TestWithParam<Scheme> {};

TEST_P(FixedSteps, ConvergeWithTheirOrder) {
  const double order = GetParam() == Scheme::runge_kutta4 ? 4.0 : 1.0;
  for (unsigned seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    support::Random random(seed);
    support::RandomOptions kinds;
    kinds.joints = 3;
    kinds.prismatic = 0.3;
    ModelOptions floating;
    floating.floating_base = seed == 3;
    const Model model = build_model(random.robot(kinds), floating);
    Dynamics<double> dynamics(model);
    const VectorXd wave = random.vector_x(model.nv, 1.0);
    Plant plant(dynamics, [&](double t, const auto&, const auto&, Eigen::Ref<VectorXd> tau) {
      tau = wave * std::cos(3.0 * t);
    });
    const State s0 = random_start(model, random, 0.5);
    Options exact;
    exact.absolute_tolerance = exact.relative_tolerance = 1e-13;
    exact.duration = 0.2;
    const Result reference = simulate(dynamics, plant, s0, exact);
    ASSERT_EQ(reference.status, Status::ok);
    const auto error = [&](int steps) {
      simulation::FixedStep<double> stepper(dynamics);
      VectorXd q = s0.q;
      VectorXd v = s0.v;
      const double dt = exact.duration / steps;
      for (int i = 0; i < steps; ++i)
        EXPECT_EQ(step(GetParam(), stepper, plant, i * dt, dt, q, v), Status::ok);
      EXPECT_EQ(stepper.evaluations(), steps * (GetParam() == Scheme::runge_kutta4 ? 4 : 1));
      return (q - reference.state.q).norm() + (v - reference.state.v).norm();
    };
    const int coarse = GetParam() == Scheme::runge_kutta4 ? 40 : 400;
    const double e1 = error(coarse);
    const double e2 = error(2 * coarse);
    EXPECT_GT(e2, 1e-13) << "else round-off hides the order";
    EXPECT_NEAR(std::log2(e1 / e2), order, 0.25);
  }
}

TEST_P(FixedSteps, DriftOfTheEnergyHasTheirOrder) {
  const Model model = build_model(pendulum());
  Dynamics<double> dynamics(model);
  Plant plant(dynamics, NoEffort{});
  const State s0 = start(model, VectorXd::Constant(1, 2.0), VectorXd::Zero(1));
  const double E0 = energy(dynamics, s0);
  const auto drift = [&](int steps) {  // the largest over a quarter of a period
    simulation::FixedStep<double> stepper(dynamics);
    State s = s0;
    double worst = 0.0;
    const double dt = 0.5 / steps;
    for (int i = 0; i < steps; ++i) {
      EXPECT_EQ(step(GetParam(), stepper, plant, i * dt, dt, s.q, s.v), Status::ok);
      worst = std::max(worst, std::abs(energy(dynamics, s) - E0));
    }
    return worst;
  };
  const double order = std::log2(drift(100) / drift(200));
  EXPECT_NEAR(order, GetParam() == Scheme::runge_kutta4 ? 4.0 : 1.0, 0.3);
}

TEST_P(FixedSteps, FailuresLeaveTheStateAlone) {
  const Model model = build_model(pendulum());
  Dynamics<double> dynamics(model);
  simulation::FixedStep<double> stepper(dynamics);
  VectorXd q = VectorXd::Ones(1);
  VectorXd v = VectorXd::Ones(1);
  int good = 0;
  auto singular_later = [&](double, const auto&, const auto&, Eigen::Ref<VectorXd> a) {
    a.setZero();
    return good-- > 0 ? Status::ok : Status::singular;
  };
  for (int k = 0; k < (GetParam() == Scheme::runge_kutta4 ? 4 : 1); ++k) {
    good = k;
    EXPECT_EQ(step(GetParam(), stepper, singular_later, 0.0, 0.1, q, v), Status::singular);
  }
  auto infinite = [&](double, const auto&, const auto&, Eigen::Ref<VectorXd> a) {
    a.setConstant(INFINITY);
    return Status::ok;
  };
  EXPECT_EQ(step(GetParam(), stepper, infinite, 0.0, 0.1, q, v), Status::not_finite);
  Plant plant(dynamics, NoEffort{});
  EXPECT_EQ(step(GetParam(), stepper, plant, 0.0, double(NAN), q, v), Status::not_finite);
  EXPECT_EQ(q[0], 1.0);
  EXPECT_EQ(v[0], 1.0);
  VectorXd two = VectorXd::Zero(2);
  EXPECT_EQ(step(GetParam(), stepper, plant, 0.0, 0.1, two, v), Status::wrong_size);
  EXPECT_EQ(step(GetParam(), stepper, plant, 0.0, 0.1, q, two), Status::wrong_size);
}

TEST_P(FixedSteps, WorkInSinglePrecision) {
  const Model model = build_model(pendulum());
  Dynamics<float> dynamics(model);
  simulation::FixedStep<float> stepper(dynamics);
  Plant plant(dynamics, NoEffort{});
  VectorX<float> q = VectorX<float>::Constant(1, 0.01F);
  VectorX<float> v = VectorX<float>::Zero(1);
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(step(GetParam(), stepper, plant, 1e-3F * static_cast<float>(i), 1e-3F, q, v),
              Status::ok);
  EXPECT_NEAR(q[0], 0.01 * std::cos(std::sqrt(9.81 / 0.5)), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(All, FixedSteps,
                         testing::Values(Scheme::runge_kutta4, Scheme::semi_implicit_euler));

TEST(SemiImplicitEuler, KeepsTheEnergyBoundedOverLongTimes) {
  const Model model = build_model(pendulum());
  Dynamics<double> dynamics(model);
  simulation::FixedStep<double> stepper(dynamics);
  Plant plant(dynamics, NoEffort{});
  State s = start(model, VectorXd::Constant(1, 1.0), VectorXd::Zero(1));
  const double E0 = energy(dynamics, s);
  double early = 0.0;
  double late = 0.0;
  for (int i = 0; i < 200000; ++i) {
    ASSERT_EQ(stepper.semi_implicit_euler(plant, 0.0, 1e-3, s.q, s.v), Status::ok);
    double& worst = i < 2000 ? early : late;
    worst = std::max(worst, std::abs(energy(dynamics, s) - E0));
  }
  EXPECT_LT(late, 1.05 * early);
}

// --- Friction ------------------------------------------------------------------------------------

TEST(JointFriction, IsViscousAndCoulombWithASmoothSign) {
  RobotDescription robot = pendulum();
  robot.joints[0].damping = 2.0;
  robot.joints[0].friction = 3.0;
  const Model model = build_model(robot);
  const Friction<double> friction(model, 1e-3);
  for (const double v : {0.5, 10.0}) {
    EXPECT_NEAR(friction[0].effort(v), 2.0 * v + 3.0, 1e-5);
    EXPECT_EQ(friction[0].effort(-v), -friction[0].effort(v));
  }
  EXPECT_EQ(friction[0].effort(0.0), 0.0);
  EXPECT_NEAR(friction[0].effort(1e-3), 2e-3 + 3.0 * std::sqrt(0.5), 1e-12);
  VectorXd tau = VectorXd::Constant(1, 7.0);
  const VectorXd v = VectorXd::Ones(1);
  EXPECT_EQ(friction.add(v, tau), Status::ok);
  EXPECT_NEAR(tau[0], 12.0, 1e-5);
  EXPECT_EQ(friction.subtract(v, tau), Status::ok);
  EXPECT_NEAR(tau[0], 7.0, 1e-12);
  EXPECT_EQ(friction.add(VectorXd::Ones(2), tau), Status::wrong_size);
  EXPECT_EQ(friction.subtract(VectorXd::Ones(2), tau), Status::wrong_size);
}

TEST(JointFriction, ViscousPendulumDecaysAsTheClosedFormSays) {
  RobotDescription robot = pendulum(2.0, 0.5);
  robot.joints[0].damping = 0.2;
  ModelOptions weightless;
  weightless.gravity = Vector3d::Zero();
  const Model model = build_model(robot, weightless);
  Dynamics<double> dynamics(model);
  const Friction<double> friction(model);
  Plant plant(dynamics, NoEffort{});
  plant.set_friction(&friction);
  Options o;
  o.absolute_tolerance = o.relative_tolerance = 1e-10;
  o.duration = 3.0;
  const Result r =
      simulate(dynamics, plant, start(model, VectorXd::Zero(1), VectorXd::Constant(1, 4.0)), o);
  EXPECT_NEAR(r.state.v[0], 4.0 * std::exp(-0.2 / (2.0 * 0.25) * 3.0), 1e-8);
}

}  // namespace
