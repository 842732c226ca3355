// SPDX-License-Identifier: Apache-2.0
/// What Status::ok promises (status.hpp), of every quantity of every family: finite results, and the
/// right ones for quaternions of any length.

#include <gtest/gtest.h>

#include <limits>

#include "support/quantities.hpp"

using namespace dynamics_core;
using support::Robot;
using support::State;

namespace {

using Quantities = support::Quantities<double>;

class EveryKind : public ::testing::TestWithParam<support::Kind> {};
INSTANTIATE_TEST_SUITE_P(StatusOk, EveryKind, ::testing::ValuesIn(support::kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

void scale_quaternions(const Model& model, double factor, VectorX<double>& q) {
  for (const JointInfo& joint : model.joints)
    if (joint.type == JointType::floating) q.segment(joint.q + 3, 4) *= factor;
}

/// Energies are figures without a Status of their own.
[[nodiscard]] bool has_no_status(const std::string& name) {
  return name == "mass and energy" || name == "kinetic energy at rest";
}

/// However large the arguments, a result that is no number is not handed out as one.
TEST_P(EveryKind, IsNeverSaidOfWhatIsNotFinite) {
  constexpr double largest = std::numeric_limits<double>::max();
  long ok = 0;
  long refused = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Robot robot(GetParam(), seed);
    SCOPED_TRACE(robot.trace());
    Families<double> families(robot.model);
    ASSERT_TRUE(support::random_surroundings(robot).put_on(families.tree));
    const State<double> usual = support::random_state(robot);
    for (const double size : {1e50, 1e100, 1e154, 1e155, 1e200, 1e300, largest}) {
      for (int which = 0; which < 6; ++which) {
        State<double> state = usual;
        VectorX<double>& x = which % 3 == 0 ? state.q : which % 3 == 1 ? state.v : state.u;
        if (which < 3)
          x *= size / x.cwiseAbs().maxCoeff();
        else
          x[robot.random.integer(0, static_cast<int>(x.size()) - 1)] = size;
        const Quantities quantities(families, state);
        for (const auto& quantity : quantities.all()) {
          if (quantity.status != Status::ok) {
            ++refused;
            continue;
          }
          if (has_no_status(quantity.name)) continue;
          ++ok;
          ASSERT_TRUE(quantity.value.allFinite()) << quantity.name << ", "
                                                  << (which % 3 == 0   ? "q"
                                                      : which % 3 == 1 ? "v"
                                                                       : "u")
                                                  << " up to " << size;
        }
      }
    }
  }
  EXPECT_GT(ok, 1000);
  EXPECT_GT(refused, 1000);
}

TEST_P(EveryKind, DoesNotDependOnTheLengthOfAQuaternion) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Robot robot(GetParam(), seed);
    if (!robot.has_floating_joint()) continue;
    SCOPED_TRACE(robot.trace());
    Families<double> families(robot.model);
    ASSERT_TRUE(support::random_surroundings(robot).put_on(families.tree));
    const State<double> unit = support::random_state(robot);
    const Quantities expected(families, unit);
    const Eigen::MatrixXd& J = expected[expected.last_jacobian()].value;
    for (const double length : {1e-300, 1e-200, 1e-160, 0.1, 7.0, 1e160, 1e200, 1e300}) {
      State<double> state = unit;
      scale_quaternions(robot.model, length, state.q);
      const Quantities found(families, state);
      for (const auto& quantity : expected.all()) {
        if (quantity.status != Status::ok) continue;
        if (!support::is_regular(quantity.name, J)) continue;
        if (quantity.name == "rate of the configuration") continue;  // it has that length as well
        ASSERT_EQ(found[quantity.name].status, Status::ok) << quantity.name << ", " << length;
        if (quantity.value.size() == 0) continue;
        EXPECT_LT(support::difference(found[quantity.name].value, quantity.value), 1e-8)
            << quantity.name << ", " << length;
      }
    }
  }
}

TEST_P(EveryKind, IsNotSaidOfAQuaternionThatIsZero) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Robot robot(GetParam(), seed);
    if (!robot.has_floating_joint()) continue;
    SCOPED_TRACE(robot.trace());
    Families<double> families(robot.model);
    State<double> state = support::random_state(robot);
    scale_quaternions(robot.model, 0.0, state.q);
    const Quantities quantities(families, state);
    for (const auto& quantity : quantities.all()) {
      if (quantity.name == "parameters") continue;  // they do not depend on the state
      EXPECT_EQ(quantity.status, Status::out_of_range) << quantity.name;
    }
  }
}

}  // namespace
