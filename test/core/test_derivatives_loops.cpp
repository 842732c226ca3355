// SPDX-License-Identifier: Apache-2.0
/// Closed loops with numbers that carry a derivative. They need an order besides the contract of
/// scalar.hpp, which such numbers have.

#include <gtest/gtest.h>

#include <string>

#include "dynamics_core/loops.hpp"
#include "support/dual.hpp"
#include "support/random_model.hpp"

namespace {

using namespace dynamics_core;
using support::constant;
using support::dual;
using support::Dual;
using support::expect_equal;
using support::rates;
using support::values;

/// A crank and a rocker on the ground, joined by a coupler, all turning about z.
struct FourBar {
  FourBar() {
    RobotDescription robot;
    robot.gravity = {0.0, -9.81, 0.0};
    robot.links.push_back({"ground", std::nullopt});
    const auto add = [&robot](const char* name, const char* parent, double x) {
      const auto number = static_cast<double>(robot.links.size());
      robot.links.push_back({name, Inertial{number,
                                            {0.1 * number, 0.05, 0.0},
                                            Eigen::Matrix3d(0.04 * Eigen::Matrix3d::Identity())}});
      JointDescription joint;
      joint.name = std::string(name) + "_joint";
      joint.type = JointType::continuous;
      joint.parent = parent;
      joint.child = name;
      joint.origin.p = {x, 0.0, 0.0};
      joint.axis = Eigen::Vector3d::UnitZ();
      robot.joints.push_back(joint);
    };
    add("crank", "ground", 0.0);
    add("coupler", "crank", 0.3);
    add("rocker", "ground", 0.7);
    model = build_model(robot);
    LoopJoint pin;
    pin.name = "pin";
    pin.type = LoopType::revolute;
    pin.link_a = model.find_link("coupler");
    pin.frame_a.p = {0.8, 0.0, 0.0};
    pin.link_b = model.find_link("rocker");
    pin.frame_b.p = {0.6, 0.0, 0.0};
    loops = {pin};
  }
  Model model;
  LoopSet loops;
};

/// The linkage in one scalar type, solved by the method of the given number: [q̈; λ].
template <class S>
struct SolvedFourBar {
  explicit SolvedFourBar(const FourBar& from)
      : tree(from.model), loops(tree, from.model, from.loops) {
    loops.alpha = loops.beta = S(5.0);
  }
  [[nodiscard]] VectorX<S> operator()(int method, const VectorX<S>& q, const VectorX<S>& v,
                                      const VectorX<S>& tau) {
    VectorX<S> a(3), lambda(loops.rows());
    const Status status = method == 0   ? loops.bordered(q, v, tau, a, lambda)
                          : method == 1 ? loops.multipliers_first(q, v, tau, a, lambda)
                                        : loops.null_space(q, v, tau, a, lambda);
    EXPECT_EQ(status, Status::ok);
    VectorX<S> both(3 + loops.rows());
    both << a, lambda;
    return both;
  }
  Tree<S> tree;
  Loops<S> loops;
};

TEST(DerivativesOfLoops, AreThoseOfDifferences) {
  const FourBar linkage;
  SolvedFourBar<double> numbers(linkage);
  SolvedFourBar<Dual> duals(linkage);
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    support::Random random(seed);
    // Not closed exactly, as Baumgarte's terms are to have derivatives as well.
    const Eigen::VectorXd q = Eigen::Vector3d(1.2, -0.7, 1.6) + random.vector(0.2);
    const Eigen::VectorXd v = random.vector(1.0), tau = random.vector(5.0);
    const Eigen::VectorXd dq = random.vector(1.0), dv = random.vector(1.0), du = random.vector(1.0);
    for (int method = 0; method < 3; ++method) {
      SCOPED_TRACE("method " + std::to_string(method + 1));
      const auto at = [&](double h) -> Eigen::VectorXd {
        return numbers(method, q + h * dq, v + h * dv, tau + h * du);
      };
      const double h = 1e-3;
      const Eigen::VectorXd coarse = (at(h) - at(-h)) / (2.0 * h);
      const Eigen::VectorXd fine = (at(0.5 * h) - at(-0.5 * h)) / h;
      const VectorX<Dual> x = duals(method, dual(q, dq), dual(v, dv), dual(tau, du));
      expect_equal(values(x), at(0.0), 1e-11);
      expect_equal(rates(x), (4.0 * fine - coarse) / 3.0, 1e-7);
      // Accelerations and multipliers are linear in τ.
      const VectorX<Dual> by_effort = duals(method, constant(q), constant(v), dual(tau, du));
      expect_equal(rates(by_effort), numbers(method, q, v, tau + du) - at(0.0), 1e-11,
                   at(0.0).cwiseAbs().maxCoeff());
    }
    VectorX<Dual> phi(numbers.loops.rows());
    Eigen::MatrixXd jacobian(numbers.loops.rows(), 3);
    Eigen::VectorXd bias(numbers.loops.rows());
    ASSERT_EQ(duals.loops.position_error(dual(q, v), phi), Status::ok);
    ASSERT_EQ(numbers.loops.constraint(q, v, jacobian, bias), Status::ok);
    expect_equal(rates(phi), jacobian * v, 1e-12);
    MatrixX<Dual> dual_jacobian(numbers.loops.rows(), 3);
    VectorX<Dual> dual_bias(numbers.loops.rows());
    ASSERT_EQ(duals.loops.constraint(dual(q, v), constant(v), dual_jacobian, dual_bias),
              Status::ok);
    expect_equal(rates(dual_jacobian) * v, bias, 1e-12);
  }
}

}  // namespace
