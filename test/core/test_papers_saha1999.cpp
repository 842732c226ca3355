// SPDX-License-Identifier: Apache-2.0
/// S. K. Saha, "Dynamics of serial multibody systems using the decoupled natural orthogonal
/// complement matrices" (1999), §6: the three-link planar arm and the Stanford arm.

#include <gtest/gtest.h>

#include "support/global_analysis.hpp"
#include "support/paper_simulations.hpp"
#include "support/random_model.hpp"

namespace {

using namespace support;
using namespace dynamics_core;
using Eigen::Matrix3d;
using Eigen::MatrixXd;
using Eigen::Vector3d;

// --- Three links in a plane, by hand -------------------------------------------------------------

/// Lagrange's equations in the angles φ of the rods against the x-axis. Rod i of length l and mass
/// m has its mass centre in the middle. With the velocities Σ l_k φ̇_k (−sin φ_k, cos φ_k),
///
///     T = ½ Σ A_ij cos(φ_i − φ_j) φ̇_i φ̇_j,   V = g Σ b_i sin φ_i,
///     Σ_j A_ij cos(φ_i − φ_j) φ̈_j + Σ_j A_ij sin(φ_i − φ_j) φ̇_j² + g b_i cos φ_i = Q_i
///
/// where rod i carries the mass of all rods after it at its end: b_i = m_i l_i/2 + l_i Σ_{k>i} m_k,
/// A_ii = m_i l_i²/3 + l_i² Σ_{k>i} m_k and A_ij = l_i b_j for i < j. φ = Lθ with L of ones on and
/// below the diagonal, so τ = Lᵀ Q.
struct PlanarArm {
  Vector3d l{0.3, 0.3, 0.2}, m{0.5, 0.4, 0.3};
  double g = 9.81;
  Matrix3d A = Matrix3d::Zero();
  Matrix3d L = Matrix3d::Ones().triangularView<Eigen::Lower>();
  Vector3d b = Vector3d::Zero();

  PlanarArm() {
    for (int i = 0; i < 3; ++i) {
      const double after = m.tail(2 - i).sum();
      b[i] = m[i] * l[i] / 2 + l[i] * after;
      A(i, i) = m[i] * l[i] * l[i] / 3 + l[i] * l[i] * after;
    }
    for (int i = 0; i < 3; ++i)
      for (int j = i + 1; j < 3; ++j) A(i, j) = A(j, i) = l[i] * b[j];
  }
  [[nodiscard]] Matrix3d mass_matrix(const Vector3d& q) const {
    const Vector3d phi = L * q;
    Matrix3d M;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) M(i, j) = A(i, j) * std::cos(phi[i] - phi[j]);
    return L.transpose() * M * L;
  }
  [[nodiscard]] Matrix3d coriolis(const Vector3d& q, const Vector3d& v) const {
    const Vector3d phi = L * q;
    const Vector3d w = L * v;
    Matrix3d C;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) C(i, j) = A(i, j) * std::sin(phi[i] - phi[j]) * w[j];
    return L.transpose() * C * L;
  }
  [[nodiscard]] Vector3d gravity(const Vector3d& q) const {
    const Vector3d phi = L * q;
    return L.transpose() * (g * b.cwiseProduct(Vector3d(phi.array().cos())));
  }
  [[nodiscard]] Vector3d torques(const Vector3d& q, const Vector3d& v, const Vector3d& a) const {
    return mass_matrix(q) * a + coriolis(q, v) * v + gravity(q);
  }
  [[nodiscard]] Vector3d accelerations(const Vector3d& q, const Vector3d& v,
                                       const Vector3d& tau) const {
    return mass_matrix(q).ldlt().solve(tau - coriolis(q, v) * v - gravity(q));
  }
};

TEST(Saha1999Planar, EquationsAreTheClosedForm) {
  const Model model = paper_robot("planar3r");
  Dynamics<double> robot(model);
  const PlanarArm arm;
  Random random(1999);
  for (int k = 0; k < 200; ++k) {
    const VectorXd q = random.vector_x(3, 3.0), v = random.vector_x(3, 3.0),
                   a = random.vector_x(3, 10.0);
    const Vector3d tau = arm.torques(q, v, a);
    for (const Method method : all_methods) {
      SCOPED_TRACE(to_string(method));
      robot.use(method);
      MatrixXd M(3, 3), C(3, 3);
      VectorXd x(3);
      ASSERT_EQ(robot.mass_matrix(q, M), Status::ok);
      EXPECT_LT((M - arm.mass_matrix(q)).norm(), 1e-13);
      ASSERT_EQ(robot.coriolis(q, v, C), Status::ok);
      EXPECT_LT((C * v - arm.coriolis(q, v) * v).norm(), 1e-12);
      ASSERT_EQ(robot.gravity(q, x), Status::ok);
      EXPECT_LT((x - arm.gravity(q)).norm(), 1e-12);
      ASSERT_EQ(robot.inverse_dynamics(q, v, a, x), Status::ok);
      EXPECT_LT((x - tau).norm(), 1e-12);
      ASSERT_EQ(robot.forward_dynamics(q, v, tau, x), Status::ok);
      EXPECT_LT((x - a).norm(), 1e-9);
    }
  }
}

TEST(Saha1999Planar, TorquesAlongThePathFillThePlot) {
  // Fig. 5 has its axis from −2 to 5 N·m and starts with all weight on joint 1.
  const Experiment experiment = planar_experiment();
  Dynamics<double> robot(experiment.model);
  const PlanarArm arm;
  VectorXd tau(3);
  double low = 0.0, high = 0.0;
  for (int k = 0; k <= 100; ++k) {
    const double t = 0.1 * k;
    experiment.efforts(robot, t, tau);
    VectorXd q(3), v(3), a(3);
    ASSERT_EQ(experiment.path.evaluate(t, q, v, a), Status::ok);
    EXPECT_LT((tau - arm.torques(q, v, a)).norm(), 1e-12);
    low = std::min(low, tau.minCoeff());
    high = std::max(high, tau.maxCoeff());
  }
  EXPECT_GT(low, -2.0);
  EXPECT_LT(high, 5.0);
  EXPECT_GT(high, 4.0);
}

TEST(Saha1999Planar, FreeFallIsThatOfTheClosedForm) {
  // Fig. 6: a triple pendulum; joint 1 moves in the negative direction at first.
  const Experiment experiment = planar_experiment();
  Dynamics<double> robot(experiment.model);
  const PlanarArm arm;
  Options options;
  options.integrator = simulation::Integrator::fehlberg45;
  options.absolute_tolerance = options.relative_tolerance = 1e-12;
  options.duration = 3.5;
  options.interval = 0.05;
  std::vector<VectorXd> expected;
  const auto closed_form = [&](double, const auto& q, const auto& v, Eigen::Ref<VectorXd> a) {
    a = arm.accelerations(q, v, Vector3d::Zero());
    return Status::ok;
  };
  ASSERT_EQ(simulate(robot, closed_form, experiment.at_rest(), options,
                     [&](const State& s) {
                       expected.push_back(s.q);
                       return true;
                     })
                .status,
            Status::ok);
  robot.use(Method::udut);
  simulation::Plant plant(robot, simulation::NoEffort{});
  std::size_t k = 0;
  ASSERT_EQ(simulate(robot, plant, experiment.at_rest(), options,
                     [&](const State& s) {
                       EXPECT_LT((s.q - expected[k++]).norm(), 1e-7) << "t = " << s.t;
                       return true;
                     })
                .status,
            Status::ok);
  EXPECT_LT(expected[2][0], 0.0);
  EXPECT_LT(expected[4][0], expected[2][0]);
}

TEST(Saha1999Planar, ForcedSimulationIsThatOfTheClosedForm) {
  // Saha 2001, §4: "The results in both the cases, i.e., free-fall and forced, exactly match."
  const Experiment experiment = planar_experiment();
  Dynamics<double> robot(experiment.model);
  const PlanarArm arm;
  Options options;
  options.integrator = simulation::Integrator::fehlberg45;
  options.absolute_tolerance = options.relative_tolerance = 1e-6;
  options.interval = 0.0;
  const Forced ours = forced_simulation(experiment, options);
  VectorXd tau(3);
  Crossing tenth(0.1);
  options.duration = 10.0;
  (void)simulate(
      robot,
      [&](double t, const auto& q, const auto& v, Eigen::Ref<VectorXd> a) {
        experiment.efforts(robot, t, tau);
        a = arm.accelerations(q, v, tau);
        return Status::ok;
      },
      experiment.at_rest(), options,
      [&](const State& s) {
        tenth.sample(s.t, (s.q - experiment.desired(s.t)).cwiseAbs().maxCoeff());
        return !tenth.happened();
      });
  EXPECT_EQ(tenth.happened(), !std::isnan(ours.leaves_tenth));
  if (tenth.happened()) {
    EXPECT_NEAR(tenth.time(), ours.leaves_tenth, 0.1);
  }
}

// --- The Stanford arm ----------------------------------------------------------------------------

TEST(Saha1999Stanford, TorquesAlongThePathAreThoseOfIndependentEquations) {
  // Fig. 8; the paper compares with Cyril (1988) by eye.
  for (const int year : {1999, 2001}) {
    SCOPED_TRACE(year);
    const std::string file = std::string(RD_SOURCE_DIR) + "/config/robots/stanford_saha" +
                             std::to_string(year) + ".yaml";
    const Experiment experiment = stanford_experiment(year);
    GlobalAnalysis oracle(parse_file(file), experiment.model);
    Dynamics<double> robot(experiment.model);
    VectorXd q(6), v(6), a(6), tau(6);
    for (int k = 0; k <= 100; ++k) {
      ASSERT_EQ(experiment.path.evaluate(0.1 * k, q, v, a), Status::ok);
      oracle.set_state(q, v);
      const VectorXd expected = oracle.inverse_dynamics(a);
      for (const Method method : all_methods) {
        robot.use(method);
        ASSERT_EQ(robot.inverse_dynamics(q, v, a, tau), Status::ok);
        EXPECT_LT((tau - expected).norm(), 1e-11) << to_string(method);
      }
    }
  }
}

TEST(Saha1999Stanford, WeightsAtBothEndsOfThePath) {
  const Experiment experiment = stanford_experiment(1999);
  Dynamics<double> robot(experiment.model);
  VectorXd tau(6);
  // Level arm: r₄ = −0.1 m along y₅ puts C₄ 0.1 m beyond O₅, 0.7 m from joint 2; links 5 and 6 have
  // their mass centres at 0.6 m, links 2 and 3 on the axis.
  experiment.efforts(robot, 0.0, tau);
  EXPECT_NEAR(tau[1], 9.81 * (1.0 * 0.7 + (0.6 + 0.5) * 0.6), 1e-12);
  EXPECT_NEAR(tau[2], 0.0, 1e-12);
  // θ₂ = 60°: the slide holds the weight of links 3 to 6 down an incline of 30°.
  experiment.efforts(robot, 10.0, tau);
  EXPECT_NEAR(tau[2], -9.81 * (4.0 + 1.0 + 0.6 + 0.5) * std::cos(M_PI / 3), 1e-10);
}

TEST(Saha1999Stanford, TheHeightOfTheBaseChangesNothing) {
  // The tables differ in b₁, 0.2 m and 0.1 m: a shift along the first axis, which is vertical.
  const Experiment a = stanford_experiment(1999);
  const Experiment b = stanford_experiment(2001);
  Dynamics<double> ws_a(a.model), ws_b(b.model);
  VectorXd tau_a(6), tau_b(6);
  for (int k = 0; k <= 100; ++k) {
    a.efforts(ws_a, 0.1 * k, tau_a);
    b.efforts(ws_b, 0.1 * k, tau_b);
    EXPECT_LT((tau_a - tau_b).norm(), 1e-12);
  }
}

}  // namespace
