// SPDX-License-Identifier: Apache-2.0
// A hundred thousand states against the torque limits of the drives, as a planner asks. The library
// computes as many at a time as a register of the processor holds.
//
//     08_torque_limits [robot.urdf] [threads beside this one]

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <dynamics_core/batch_dynamics.hpp>
#include <dynamics_core/dynamics.hpp>
#include <dynamics_core/load.hpp>
#include <dynamics_core/scalar.hpp>
#include <exception>
#include <iostream>
#include <limits>
#include <random>
#include <vector>

using namespace dynamics_core;

namespace {

/// k states within the limits of position and speed, each coordinate's values one after the other.
struct States {
  std::size_t k;
  std::vector<double> q, v, a;

  States(const Model& model, std::size_t count) : k(count) {
    std::mt19937 engine(1);
    std::uniform_real_distribution<double> random(-1.0, 1.0);
    for (const JointInfo& joint : model.joints) {
      const Limits& limits = joint.limits;
      const bool bounded = std::isfinite(limits.lower) && std::isfinite(limits.upper);
      const double centre = bounded ? 0.5 * (limits.lower + limits.upper) : 0.0;
      const double range = bounded ? 0.5 * (limits.upper - limits.lower) : 3.0;
      const double speed = std::min(limits.velocity, 2.0);
      for (std::size_t i = 0; i < k; ++i) {
        q.push_back(centre + range * random(engine));
        v.push_back(speed * random(engine));
        a.push_back(10.0 * random(engine));
      }
    }
  }
};

/// The same by Dynamics, one state after the other.
[[nodiscard]] bool within_limits(Dynamics<double>& robot, const Model& model, const States& states,
                                 std::size_t i) {
  VectorX<double> q(model.nq), v(model.nv), a(model.nv), tau(model.nv);
  for (int j = 0; j < model.nv; ++j) {
    const std::size_t at = static_cast<std::size_t>(j) * states.k + i;
    q[j] = states.q[at];
    v[j] = states.v[at];
    a[j] = states.a[at];
  }
  if (robot.inverse_dynamics(q, v, a, tau) != Status::ok) return false;
  for (int j = 0; j < model.nv; ++j)
    if (std::abs(tau[j]) > model.joints[static_cast<std::size_t>(j)].limits.effort) return false;
  return true;
}

}  // namespace

int main(int argc, char** argv) try {
  const Model model = load_urdf(argc > 1 ? argv[1] : "config/robots/panda.urdf");
  const int threads = argc > 2 ? std::atoi(argv[2]) : 0;
  if (model.nq != static_cast<int>(model.joints.size())) {
    std::cerr << model.name << ": this example is for joints of one degree of freedom\n";
    return 1;
  }
  const std::size_t k = 100'000;
  const States states(model, k);
  const int n = model.nv;

  // [set up]
  BatchDynamics batch(model, threads);  // all memory is taken here
  std::vector<double> tau(static_cast<std::size_t>(n) * k);
  std::vector<Status> statuses(k);
  // [set up]
  std::vector<char> fits(k);

  double best = std::numeric_limits<double>::infinity();  // of several times, in ns
  Status worst = Status::ok;
  for (int repeat = 0; repeat < 10; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    // [check]
    // Coordinate j of state i is at [j * k + i]; arrays of whole states are by_configuration(q, n).
    const auto stride = static_cast<std::ptrdiff_t>(k);
    const Status status = batch.inverse_dynamics(
        k, by_coordinate(states.q.data(), n, stride), by_coordinate(states.v.data(), n, stride),
        by_coordinate(states.a.data(), n, stride), by_coordinate(tau.data(), n, stride),
        statuses.data());  // ok, or that of the first state that is not

    std::fill(fits.begin(), fits.end(), 1);
    for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j) {
      const double limit = model.joints[j].limits.effort;
      for (std::size_t i = 0; i < k; ++i) fits[i] &= std::abs(tau[j * k + i]) <= limit;
    }
    // [check]
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count());
    worst = merged(worst, status);
  }

  std::size_t many = 0;
  for (const char fit : fits) many += fit != 0 ? 1 : 0;
  std::cout << model.name << ": " << many << " of " << k << " states within the limits\n"
            << best / static_cast<double>(k) << " ns each, " << batch.width() << " at a time, "
            << threads << " threads beside this one\n";

  Dynamics<double> robot(model);  // a few of them again, one by one
  for (std::size_t i = 0; i < k; i += 997)
    if (within_limits(robot, model, states, i) != (fits[i] != 0)) return 1;
  return worst == Status::ok && many > 0 && many < k ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
