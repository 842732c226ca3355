// SPDX-License-Identifier: Apache-2.0
/// A simplified graph computes the same with fewer operations, and nothing that nobody needs.

#include "dynamics_core/simplification.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "dynamics_core/families.hpp"
#include "support/quantities.hpp"

namespace {

using namespace dynamics_core;
using Node = OperationGraph::Node;

/// f of two variables, simplified.
template <class F>
[[nodiscard]] OperationGraph simple(F f) {
  Counted::forget();
  const Counted x = Counted::variable(0.3);
  const Counted y = Counted::variable(-0.7);
  const Counted z = Counted::variable(1.1);
  return simplified(Counted::graph(std::vector<Counted>{f(x, y, z)}));
}
[[nodiscard]] OperationCount operations(int multiplications, int additions, int divisions = 0) {
  OperationCount out;
  out.multiplications = multiplications;
  out.additions = additions;
  out.divisions = divisions;
  return out;
}

TEST(Simplification, TakesOutCommonFactors) {
  const auto sum = [](auto x, auto y, auto z) { return x * y + x * z; };
  EXPECT_EQ(count(simple(sum)), operations(1, 1));
  const auto difference = [](auto x, auto y, auto z) { return z - x * y + Counted(2.0) * x; };
  EXPECT_EQ(count(simple(difference)), operations(1, 2));
  const auto constants = [](auto x, auto y, auto) {
    return Counted(3.0) * x + (y - Counted(2.0) * x);
  };
  EXPECT_EQ(count(simple(constants)), operations(0, 1));
}

TEST(Simplification, CombinesConstants) {
  const auto f = [](auto x, auto, auto) { return Counted(3.0) * (Counted(5.0) * x); };
  EXPECT_EQ(count(simple(f)), operations(1, 0));
}

TEST(Simplification, DividesOnceByTheSame) {
  const auto f = [](auto x, auto y, auto z) { return x / z + Counted(2.0) * (y / z) * (x / z); };
  EXPECT_EQ(count(simple(f)).divisions, 1);
}

TEST(Simplification, KeepsTheSignsOfAngles) {
  const auto f = [](auto x, auto y, auto z) {
    Counted s, c, t, d;
    sincos(x, s, c);
    sincos(-x, t, d);
    return s * y + t * z + c * d;
  };
  const OperationGraph graph = simple(f);
  EXPECT_EQ(count(graph).sincos, 1);
  const double s = std::sin(2.0);
  const double c = std::cos(2.0);
  EXPECT_NEAR(graph.evaluate(std::vector<double>{2.0, 3.0, 5.0})[0], 3.0 * s - 5.0 * s + c * c,
              1e-14);
}

// --- Random graphs -------------------------------------------------------------------------------

/// Operations on what there is already, many of them twice.
[[nodiscard]] OperationGraph random_graph(unsigned seed, int size) {
  std::mt19937 random(seed);
  const auto below = [&random](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  Counted::forget();
  std::vector<Counted> all;
  for (int i = 0; i < 4; ++i) all.push_back(Counted::variable(0.3 + 0.2 * i));
  for (const double x : {0.0, 1.0, -1.0, 2.5, -0.4}) all.emplace_back(x);
  for (int i = 0; i < size; ++i) {
    const Counted& x = all[below(all.size())];
    const Counted& y = all[below(all.size())];
    switch (below(9)) {
      case 0:
      case 1: all.push_back(x + y); break;
      case 2: all.push_back(x - y); break;
      case 3:
      case 4: all.push_back(x * y); break;
      case 5: all.push_back(x * Counted(0.7) - y * x); break;
      case 6: all.push_back(x / (Counted(1.5) + abs(y))); break;
      case 7: {
        Counted s, c;
        sincos(x, s, c);
        all.push_back(c);
        all.push_back(-s);
        break;
      }
      default: all.push_back(safe_ratio(x, Counted(sqrt(Counted(abs(y)))), Counted(0.5))); break;
    }
  }
  return Counted::graph(std::vector<Counted>(all.end() - 10, all.end()));
}

[[nodiscard]] std::vector<bool> needed_nodes(const OperationGraph& graph) {
  std::vector<bool> needed(graph.nodes().size(), false);
  for (const auto& output : graph.outputs()) needed[output.node] = true;
  for (std::size_t i = graph.nodes().size(); i-- > 0;) {
    const Node& node = graph.nodes()[i];
    const int operands = needed[i] ? operand_count(node.operation) : 0;
    if (operands > 0) needed[node.x.node] = true;
    if (operands > 1) needed[node.y.node] = true;
    if (operands > 2) needed[node.z.node] = true;
  }
  return needed;
}

TEST(Simplification, ComputesTheSame) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const OperationGraph graph = random_graph(seed, 10 + static_cast<int>(seed) / 4);
    const OperationGraph simple = simplified(graph);
    ASSERT_EQ(simple.inputs().size(), graph.inputs().size());
    EXPECT_LE(cost(count(simple)), cost(count(graph)));
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> value(-1.0, 1.0);
    for (int trial = 0; trial < 5; ++trial) {
      std::vector<double> inputs;
      for (std::size_t i = 0; i < graph.inputs().size(); ++i) inputs.push_back(value(random));
      const std::vector<double> expected = graph.evaluate(inputs);
      const std::vector<double> actual = simple.evaluate(inputs);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        if (!std::isfinite(expected[i]) || std::abs(expected[i]) > 1e6) continue;
        EXPECT_NEAR(actual[i], expected[i], 1e-6 * (1.0 + std::abs(expected[i])));
      }
    }
  }
}

TEST(Simplification, LeavesNothingThatNobodyNeeds) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    const OperationGraph graph = simplified(random_graph(seed, 40));
    const std::vector<bool> needed = needed_nodes(graph);
    for (std::size_t i = 0; i < needed.size(); ++i)
      EXPECT_TRUE(needed[i] || graph.nodes()[i].operation == Operation::input) << seed;
  }
}

TEST(Simplification, IsTheSameEachTime) {
  const auto text = [](const OperationGraph& graph) {
    std::vector<double> out;
    for (const Node& n : graph.nodes())
      for (const double x : {static_cast<double>(n.operation), static_cast<double>(n.x.node),
                             static_cast<double>(n.y.node), static_cast<double>(n.z.node)})
        out.push_back(x);
    return out;
  };
  for (unsigned seed = 1; seed <= 20; ++seed)
    EXPECT_EQ(text(simplified(random_graph(seed, 60))), text(simplified(random_graph(seed, 60))));
}

/// Nothing is left for a second time.
TEST(Simplification, IsDoneAtOnce) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const OperationGraph once = simplified(random_graph(seed, 60));
    EXPECT_EQ(count(simplified(once)), count(once)) << seed;
  }
}

}  // namespace
