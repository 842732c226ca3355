// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the tests of the algorithm families share: a variety of random trees with a state, and a
/// comparison relative to the size of the reference.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "dynamics_core/families.hpp"
#include "support/random_model.hpp"

namespace support {

/// A random robot and a state; everything follows from the seed.
struct RandomTree {
  unsigned seed;
  dynamics_core::Model model;
  Eigen::VectorXd q, v, a;

  explicit RandomTree(unsigned seed_, bool mimic = true, bool floating = true) : seed(seed_) {
    Random random(seed);
    RandomOptions options;
    options.joints = random.integer(1, seed % 10 == 0 ? 64 : 12);
    if (random.chance(0.7)) options.branching = 0.4;
    if (random.chance(0.5)) options.prismatic = 0.3;
    if (seed % 4 == 3) options.helical = 0.2;
    if (random.chance(0.3)) options.fixed = 0.2;
    if (random.chance(0.3)) options.planar = 0.2;
    if (floating && random.chance(0.3)) options.floating = 0.2;
    if (mimic && random.chance(0.5)) options.mimic = 0.3;
    options.rotors = random.chance(0.5);
    options.aligned = random.chance(0.3);
    dynamics_core::ModelOptions build;
    build.floating_base = floating && random.chance(0.3);
    build.gravity = random.vector(10.0);
    model = dynamics_core::build_model(random.robot(options), build);
    q = random.configuration(model);
    v = random.vector_x(model.nv, 2.0);
    a = random.vector_x(model.nv, 5.0);
  }
  [[nodiscard]] std::string trace() const {
    return "seed " + std::to_string(seed) + ", " + std::to_string(model.nv) +
           " degrees of freedom, " + std::to_string(model.nb()) + " bodies";
  }
};

/// Forces on some links and a load on one, drawn from the seed.
template <class S>
void load_randomly(unsigned seed, const dynamics_core::Model& model,
                   dynamics_core::Dynamics<S>& dynamics) {
  using namespace dynamics_core;
  Random random(seed + 1000000);
  const auto vec = [&](double size) { return Vec3<S>(random.vector(size).cast<S>()); };
  const int last = static_cast<int>(model.links.size()) - 1;
  for (int k = 0; k < 3; ++k) {
    const Force<S> F = {vec(5.0), vec(10.0)};
    ASSERT_EQ(dynamics.add_external_force(random.integer(0, last), F), Status::ok);
  }
  const Payload<S> payload = {S(random.uniform(0.1, 3.0)),
                              vec(0.2),
                              {S(0.02), S(0.001), S(-0.002), S(0.03), S(0.003), S(0.025)}};
  ASSERT_EQ(dynamics.set_payload(random.integer(0, last), payload), Status::ok);
}

/// The robot, with the named family chosen.
template <class S>
[[nodiscard]] dynamics_core::Dynamics<S>& with(dynamics_core::Dynamics<S>& robot,
                                               dynamics_core::Method method) noexcept {
  robot.use(method);
  return robot;
}

/// Every element within `tolerance` of the reference, relative to its largest element (or to 1).
template <class A, class B>
[[nodiscard]] ::testing::AssertionResult close_to(const A& actual, const B& expected,
                                                  double tolerance) {
  if (actual.rows() != expected.rows() || actual.cols() != expected.cols())
    return ::testing::AssertionFailure() << "sizes differ";
  if (expected.size() == 0) return ::testing::AssertionSuccess();
  const double scale = std::max(1.0, expected.cwiseAbs().maxCoeff());
  const double error = (actual - expected).cwiseAbs().maxCoeff() / scale;
  if (error <= tolerance) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "relative error " << error << " > " << tolerance << "\n"
                                       << actual << "\ninstead of\n"
                                       << expected;
}

}  // namespace support
