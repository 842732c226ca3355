// SPDX-License-Identifier: Apache-2.0
/// A recorded graph is the algorithm: evaluated with other arguments, and in other scalar types, it
/// gives what the algorithm gives there.

#include "dynamics_core/operation_graph.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "dynamics_core/counted_families.hpp"
#include "support/dual.hpp"
#include "support/quantities.hpp"

namespace {

using namespace dynamics_core;
using support::Dual;
using support::Robot;
using support::State;

// --- Single operations ---------------------------------------------------------------------------

/// f of two variables, recorded at one place and evaluated at another.
template <class F>
[[nodiscard]] OperationGraph record(F f) {
  Counted::forget();
  const Counted x = Counted::variable(0.3);
  const Counted y = Counted::variable(-0.7);
  return Counted::graph(std::vector<Counted>{f(x, y)});
}
template <class F>
void expect_same(F f) {
  using std::abs;
  const OperationGraph graph = record(f);
  for (const double x : {-2.0, 0.25, 3.0})
    for (const double y : {-1.5, 0.5, 4.0})
      EXPECT_EQ(graph.evaluate(std::vector<double>{x, y}), std::vector<double>{f(x, y)})
          << x << ", " << y;
}

TEST(OperationGraph, HasEveryOperation) {
  using std::abs;
  using std::sqrt;
  expect_same([](auto x, auto y) { return x + y; });
  expect_same([](auto x, auto y) { return x - y; });
  expect_same([](auto x, auto y) { return -x - y; });
  expect_same([](auto x, auto y) { return x * -y; });
  expect_same([](auto x, auto y) { return x / y; });
  expect_same([](auto x, auto y) { return sqrt(decltype(x)(x * x + y * y)); });
  expect_same([](auto x, auto y) { return abs(x) - abs(y); });
  expect_same([](auto x, auto y) { return decltype(x)(2.5) * x + decltype(y)(-2.5); });
  expect_same([](auto x, auto y) {
    decltype(x) s, c;
    sincos(decltype(x)(x + y), s, c);
    return s * x + c;
  });
}

/// A quotient may be asked for where its denominator is zero, now or later.
TEST(OperationGraph, KeepsTheOtherwiseOfASafeRatio) {
  const OperationGraph graph =
      record([](auto x, auto y) { return safe_ratio(x, y, decltype(x)(x + x)); });
  EXPECT_EQ(graph.evaluate(std::vector<double>{3.0, 0.0})[0], 6.0);
  EXPECT_EQ(graph.evaluate(std::vector<double>{3.0, 2.0})[0], 1.5);
}

TEST(OperationGraph, OutputsMayBeInputsAndConstants) {
  Counted::forget();
  const Counted x = Counted::variable(1.0);
  [[maybe_unused]] const Counted no_part_in_it = Counted::variable(2.0);
  const OperationGraph graph =
      Counted::graph(std::vector<Counted>{-x, Counted(-4.0), Counted(0.0), Counted(4.0)});
  EXPECT_EQ(graph.inputs().size(), 2U);
  EXPECT_EQ(graph.evaluate(std::vector<double>{7.0, 9.0}),
            (std::vector<double>{-7.0, -4.0, 0.0, 4.0}));
}

TEST(OperationGraph, HasOnlyWhatTheResultsNeed) {
  Counted::forget();
  const Counted x = Counted::variable(1.0);
  const Counted needed = x * x;
  [[maybe_unused]] const Counted other = x + needed;
  const OperationGraph graph = Counted::graph(std::vector<Counted>{needed});
  EXPECT_EQ(graph.nodes().size(), 2U);
}

TEST(OperationGraph, OperandsComeBeforeTheirResults) {
  Robot robot(support::kinds()[0], 3);
  Counted::forget();
  Families<Counted> families(robot.model);
  VectorX<Counted> q(robot.model.nq);
  for (auto& x : q) x = Counted::variable(0.4);
  MatrixX<Counted> M(robot.model.nv, robot.model.nv);
  ASSERT_EQ(families.composite_body.mass_matrix(q, M), Status::ok);
  const OperationGraph graph = Counted::graph(M.reshaped());
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const auto& node = graph.nodes()[i];
    const int operands = operand_count(node.operation);
    if (operands > 0) {
      EXPECT_LT(node.x.node, i);
    }
    if (operands > 1) {
      EXPECT_LT(node.y.node, i);
    }
    if (operands > 2) {
      EXPECT_LT(node.z.node, i);
    }
  }
}

TEST(OperationGraph, RefusesAWrongNumberOfInputs) {
  const OperationGraph graph = record([](auto x, auto y) { return x + y; });
  EXPECT_THROW((void)graph.evaluate(std::vector<double>{1.0}), std::invalid_argument);
}

// --- Whole algorithms ----------------------------------------------------------------------------

[[nodiscard]] std::vector<double> values(const State<double>& s) {
  std::vector<double> out;
  for (const auto* part : {&s.q, &s.v, &s.u}) out.insert(out.end(), part->begin(), part->end());
  return out;
}

[[nodiscard]] VectorX<Counted> variables(const Eigen::VectorXd& from) {
  VectorX<Counted> out(from.size());
  for (Eigen::Index i = 0; i < from.size(); ++i) out[i] = Counted::variable(from[i]);
  return out;
}

class EveryKind : public ::testing::TestWithParam<support::Kind> {};
INSTANTIATE_TEST_SUITE_P(OperationGraph, EveryKind, ::testing::ValuesIn(support::kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

/// Every quantity of every family, recorded in one state and evaluated in another.
TEST_P(EveryKind, EvaluatesToWhatTheAlgorithmGives) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    Robot robot(GetParam(), seed);
    SCOPED_TRACE(robot.trace());
    const State<double> here = support::random_state(robot);
    const State<double> there = support::random_state(robot);
    Counted::forget();
    Families<Counted> recorded(robot.model);
    const State<Counted> state = {variables(here.q), variables(here.v), variables(here.u)};
    const support::Quantities<Counted> graphs(recorded, state);
    Families<double> families(robot.model);
    const support::Quantities<double> expected(families, there);
    for (const auto& quantity : graphs.all()) {
      const OperationGraph graph = Counted::graph(quantity.value.reshaped());
      const std::vector<double> actual = graph.evaluate(values(there));
      const Eigen::MatrixXd& truth = expected[quantity.name].value;
      ASSERT_EQ(actual.size(), static_cast<std::size_t>(truth.size())) << quantity.name;
      const double scale = 1.0 + truth.lpNorm<Eigen::Infinity>();  // some are empty
      for (std::size_t i = 0; i < actual.size(); ++i)
        EXPECT_NEAR(actual[i], truth.reshaped()[static_cast<Eigen::Index>(i)], 1e-7 * scale)
            << quantity.name;
    }
    if (HasFailure()) return;
  }
}

/// A graph in another scalar type: derivatives of a graph are those of the algorithm.
TEST_P(EveryKind, CarriesDerivatives) {
  Robot robot(GetParam(), 5);
  SCOPED_TRACE(robot.trace());
  const State<double> s = support::random_state(robot);
  Counted::forget();
  Families<Counted> recorded(robot.model);
  const State<Counted> state = {variables(s.q), variables(s.v), variables(s.u)};
  VectorX<Counted> tau(robot.model.nv);
  ASSERT_EQ(recorded.gibbs_appell.inverse_dynamics(state.q, state.v, state.u, tau), Status::ok);
  const OperationGraph graph = Counted::graph(tau);
  const auto along = [&](int i) {
    std::vector<Dual> inputs;
    for (const double x : values(s)) inputs.emplace_back(x);
    const auto k = static_cast<std::size_t>(robot.model.nq + robot.model.nv + i);
    inputs[k] = Dual(inputs[k].value, 1.0);
    return graph.evaluate(inputs);
  };
  Families<double> families(robot.model);
  Eigen::MatrixXd M(robot.model.nv, robot.model.nv);
  ASSERT_EQ(families.composite_body.mass_matrix(s.q, M), Status::ok);
  for (int i = 0; i < robot.model.nv; ++i) {
    const std::vector<Dual> column = along(i);
    for (int j = 0; j < robot.model.nv; ++j)
      EXPECT_NEAR(column[static_cast<std::size_t>(j)].rate, M(j, i),
                  1e-9 * (1.0 + M.cwiseAbs().maxCoeff()));
  }
}

}  // namespace
