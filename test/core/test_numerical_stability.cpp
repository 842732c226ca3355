// SPDX-License-Identifier: Apache-2.0
/// Mata et al. 2002, §5.1 (after Ascher, Pai and Cloutier): an arm whose mass matrix is
/// ill-conditioned, in single against double precision. Run by itself it prints the table of
/// docs/papers.md.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "dynamics_core/families.hpp"
#include "support/linear_algebra.hpp"

namespace {

using namespace dynamics_core;

/// Links 0.02 m wide, 0.02 m and 2 m long, of 0.1 kg and 10 kg; gravity across the first link.
Model ill_conditioned_arm() {
  RobotDescription robot;
  robot.name = "two links";
  robot.gravity = {0.0, -9.81, 0.0};
  robot.links.push_back({"base", std::nullopt});
  double joint_at = 0.0;
  for (const auto& [length, mass] : {std::pair{0.02, 0.1}, std::pair{2.0, 10.0}}) {
    const double width = 0.02;
    Inertial inertial;
    inertial.mass = mass;
    inertial.com = {length / 2, 0.0, 0.0};
    const double across = mass * (length * length + width * width) / 12;
    const double along = mass * (width * width + width * width) / 12;
    inertial.inertia = Eigen::Vector3d(along, across, across).asDiagonal();
    JointDescription joint;
    joint.name = "joint_" + std::to_string(robot.links.size());
    joint.type = JointType::continuous;
    joint.parent = robot.links.back().name;
    joint.child = "link_" + std::to_string(robot.links.size());
    joint.origin.p = {joint_at, 0.0, 0.0};
    joint.axis = Eigen::Vector3d::UnitZ();
    joint_at = length;
    robot.links.push_back({joint.child, inertial});
    robot.joints.push_back(joint);
  }
  return build_model(robot);
}

/// Gauss–Jordan elimination, as in the paper; its pivots here need no exchange.
template <class S>
VectorX<S> gauss_jordan(MatrixX<S> A, VectorX<S> b) {
  for (Eigen::Index k = 0; k < b.size(); ++k) {
    const S pivot = A(k, k);
    A.row(k) /= pivot;
    b[k] /= pivot;
    for (Eigen::Index i = 0; i < b.size(); ++i) {
      if (i == k) continue;
      const S factor = A(i, k);
      A.row(i) -= factor * A.row(k);
      b[i] -= factor * b[k];
    }
  }
  return b;
}

template <class S>
VectorX<S> zeros() {
  return VectorX<S>::Zero(2);
}

struct ArticulatedBody {
  template <class S>
  VectorX<S> operator()(Dynamics<S>& dynamics, const VectorX<S>& q) const {
    VectorX<S> a(2);
    EXPECT_EQ(dynamics.families().articulated_body.forward_dynamics(q, zeros<S>(), zeros<S>(), a),
              Status::ok);
    return a;
  }
};
struct Udut {
  template <class S>
  VectorX<S> operator()(Dynamics<S>& dynamics, const VectorX<S>& q) const {
    VectorX<S> a(2);
    EXPECT_EQ(dynamics.families().udut.forward_dynamics(q, zeros<S>(), zeros<S>(), a), Status::ok);
    return a;
  }
};
struct CompositeBody {
  template <class S>
  VectorX<S> operator()(Dynamics<S>& dynamics, const VectorX<S>& q) const {
    VectorX<S> bias(2);
    MatrixX<S> M(2, 2);
    EXPECT_EQ(dynamics.families().composite_body.mass_matrix(q, M), Status::ok);
    EXPECT_EQ(dynamics.families().newton_euler.bias(q, zeros<S>(), bias), Status::ok);
    return gauss_jordan<S>(M, -bias);
  }
};
struct GibbsAppell {
  template <class S>
  VectorX<S> operator()(Dynamics<S>& dynamics, const VectorX<S>& q) const {
    VectorX<S> bias(2);
    MatrixX<S> M(2, 2);
    EXPECT_EQ(dynamics.families().gibbs_appell.mass_matrix(q, M), Status::ok);
    EXPECT_EQ(dynamics.families().gibbs_appell.bias(q, zeros<S>(), bias), Status::ok);
    return gauss_jordan<S>(M, -bias);
  }
};
struct RefinedGibbsAppell {
  template <class S>
  VectorX<S> operator()(Dynamics<S>& dynamics, const VectorX<S>& q) const {
    VectorX<S> a(2);
    EXPECT_EQ(dynamics.families().gibbs_appell.forward_dynamics(q, zeros<S>(), zeros<S>(), a),
              Status::ok);
    EXPECT_EQ(dynamics.families().gibbs_appell.refine(q, zeros<S>(), zeros<S>(), a), Status::ok);
    return a;
  }
};
/// M and bias computed in double precision, then rounded: what no method that solves with M in
/// single precision can better by computing M well.
struct RoundedMassMatrix {
  template <class S>
  VectorX<S> operator()(Dynamics<S>&, const VectorX<S>& q) const {
    Dynamics<double> dynamics(ill_conditioned_arm());
    const Eigen::VectorXd qd = q.template cast<double>();
    Eigen::VectorXd bias(2);
    Eigen::MatrixXd M(2, 2);
    EXPECT_EQ(dynamics.families().composite_body.mass_matrix(qd, M), Status::ok);
    EXPECT_EQ(dynamics.families().newton_euler.bias(qd, zeros<double>(), bias), Status::ok);
    return gauss_jordan<S>(M.cast<S>(), -bias.cast<S>());
  }
};

struct Errors {
  double max = 0.0;      ///< of |double − float|
  double average = 0.0;  ///< of |double − float|
  double mean = 0.0;     ///< of double − float
};

/// The first joint's acceleration over a turn of the second in steps of 2°.
template <class Method>
Errors errors(const char* name, const Method& method) {
  const Model model = ill_conditioned_arm();
  Dynamics<double> wd(model);
  Dynamics<float> wf(model);
  constexpr int steps = 180;
  Errors e;
  for (int k = 0; k < steps; ++k) {
    const Eigen::VectorXd q = Eigen::Vector2d(0.0, 2.0 * k * M_PI / 180.0);
    const double exact = method(wd, q)[0];
    const double single = static_cast<double>(method(wf, Eigen::VectorXf(q.cast<float>()))[0]);
    e.max = std::max(e.max, std::abs(exact - single));
    e.average += std::abs(exact - single) / steps;
    e.mean += (exact - single) / steps;
  }
  std::printf("| %-38s | %8.5f | %8.5f | %9.5f |\n", name, e.max, e.average, e.mean);
  return e;
}

TEST(NumericalStability, TheMassMatrixIsIllConditioned) {
  Dynamics<double> dynamics(ill_conditioned_arm());
  double worst = 0.0;
  for (int k = 0; k < 180; ++k) {
    Eigen::MatrixXd M(2, 2);
    ASSERT_EQ(
        dynamics.families().composite_body.mass_matrix(Eigen::Vector2d(0.0, k * M_PI / 90.0), M),
        Status::ok);
    const Eigen::Vector2d values = support::eigenvalues(M);
    ASSERT_GT(values[0], 0.0);
    worst = std::max(worst, values[1] / values[0]);
  }
  // (tr M)²/det M at q₂ = 0: M = [13.7377 13.5337; 13.5337 13.3337].
  EXPECT_NEAR(worst, 54047.0, 100.0);
}

TEST(NumericalStability, TheRecursiveMethodsAreFarBelowThoseThatFormM) {
  std::printf("| single against double, rad/s²           |  maximum | average  |  signed   |\n");
  const Errors articulated = errors("articulated body", ArticulatedBody());
  const Errors udut = errors("UDUᵀ", Udut());
  const Errors composite = errors("composite body, Gauss–Jordan", CompositeBody());
  const Errors gibbs = errors("Gibbs–Appell, Gauss–Jordan", GibbsAppell());
  const Errors refined = errors("Gibbs–Appell, one step of refinement", RefinedGibbsAppell());
  const Errors rounded = errors("M in double, rounded; Gauss–Jordan", RoundedMassMatrix());

  // The paper's finding for the articulated body (Table 5: average 0.0132 against 0.2751).
  EXPECT_LT(articulated.average, 0.01324);
  EXPECT_LT(20.0 * articulated.average, composite.average);
  EXPECT_LT(20.0 * articulated.max, composite.max);
  EXPECT_LT(20.0 * udut.average, composite.average);
  EXPECT_LT(20.0 * udut.max, composite.max);
  // Composite bodies are in the region of the paper's 1.29 and 0.275, and no worse.
  EXPECT_LT(composite.max, 1.2922);
  EXPECT_LT(composite.average, 0.27506);
  EXPECT_GT(composite.average, 0.05);
  // The mass matrix alone decides: with M rounded from double precision the errors are as large,
  // so that no way to compute M, Gibbs–Appell's included, is far below another.
  EXPECT_GT(gibbs.average, rounded.average / 2);
  EXPECT_GT(composite.average, rounded.average / 2);
  EXPECT_LT(gibbs.average, rounded.average * 2);
  EXPECT_LT(composite.average, rounded.average * 2);
  // One step of refinement through the recursive inverse dynamics brings Gibbs–Appell far below.
  EXPECT_LT(100.0 * refined.max, composite.max);
  EXPECT_LT(100.0 * refined.average, composite.average);
  EXPECT_LT(refined.average, 0.0087611);  // Table 5, GA
}

}  // namespace
