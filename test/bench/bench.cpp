// SPDX-License-Identifier: Apache-2.0
/// This library beside others, on one robot, in one process.
///
///     bench list ROBOT                          contestants and quantities, one pair a line
///     bench count ROBOT CONTESTANT QUANTITY N   calls it N times, for callgrind: the difference of
///                                               two runs is the cost of a call, loading left out
///     bench time ROBOT [ROUNDS] [QUANTITY]      checks agreement, then prints times as JSON
///
/// Times are taken in rounds. In each round every contestant passes over the same random states, in
/// one order and then in the reverse one, so that a drift of the machine's speed meets all alike.
/// Throughput is the time of a pass, a call; calls may overlap in the processor. Latency is the same
/// with each call's q made to wait for the result before. The first contestant runs a second time
/// under another name: how far its ratio to itself is from one bounds what a ratio may claim.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <random>
#include <stdexcept>

#include "contestant.hpp"

namespace {

using namespace bench;

constexpr int state_count = 1024;

struct States {
  explicit States(int joints) : n(joints) {
    std::mt19937 engine(1);
    std::uniform_real_distribution<double> unit(-1.0, 1.0);
    for (auto* x : {&q, &v, &a}) {
      x->resize(static_cast<std::size_t>(state_count) * static_cast<std::size_t>(n));
      const double size = x == &q ? 3.0 : x == &v ? 2.0 : 5.0;
      for (double& element : *x) element = size * unit(engine);
    }
  }
  [[nodiscard]] std::size_t at(int state) const {
    return static_cast<std::size_t>(state) * static_cast<std::size_t>(n);
  }
  int n;
  std::vector<double> q, v, a;
};

std::vector<Contestant> all_contestants(const Robot& robot) {
  std::vector<Contestant> all = ours(robot);
  Contestant control = ours(robot).front();
  control.name = "control";
  all.push_back(std::move(control));
#ifdef RD_BENCH_PINOCCHIO
  for (Contestant& c : pinocchio_contestants(robot)) all.push_back(std::move(c));
#endif
#ifdef RD_BENCH_RBDL
  all.push_back(rbdl_contestant(robot));
#endif
#ifdef RD_BENCH_KDL
  all.push_back(kdl_contestant(robot));
#endif
  return all;
}

std::vector<double> result(const Contestant& c, Quantity quantity, const States& x, int state) {
  const std::size_t i = x.at(state);
  const double* from = c.compute[quantity](&x.q[i], &x.v[i], &x.a[i]);
  const int n = x.n;
  const int size = quantity == jacobian                                         ? 6 * n
                   : quantity == mass_matrix || quantity == inverse_mass_matrix ? n * n
                                                                                : n;
  std::vector<double> out(from, from + size);
  if (quantity == jacobian && c.linear_first)
    for (int k = 0; k < n; ++k) std::swap_ranges(&out[6 * k], &out[6 * k] + 3, &out[6 * k] + 3);
  return out;
}

/// The largest difference to the first contestant, relative to the largest element.
double disagreement(const Contestant& first, const Contestant& other, Quantity quantity,
                    const States& x) {
  double worst = 0.0;
  for (int state = 0; state < state_count; state += state_count / 16) {
    const std::vector<double> expected = result(first, quantity, x, state);
    const std::vector<double> found = result(other, quantity, x, state);
    double size = 0.0, difference = 0.0;
    for (std::size_t k = 0; k < expected.size(); ++k) {
      size = std::max(size, std::abs(expected[k]));
      difference = std::max(difference, std::abs(expected[k] - found[k]));
    }
    worst = std::max(worst, difference / size);
  }
  return worst;
}

double now() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double throughput(const Compute& compute, const States& x, int states) {
  const double start = now();
  for (int s = 0; s < states; ++s) {
    const std::size_t i = x.at(s);
    compute(&x.q[i], &x.v[i], &x.a[i]);
  }
  return (now() - start) / states;
}

double latency(const Compute& compute, const States& x, int states) {
  std::vector<double> q(x.q.begin(), x.q.begin() + x.n);
  const double start = now();
  double last = 0.0;
  for (int s = 0; s < states; ++s) {
    const std::size_t i = x.at(s);
    for (int k = 0; k < x.n; ++k)
      q[static_cast<std::size_t>(k)] = x.q[i + static_cast<std::size_t>(k)] + 0.0 * last;
    last = compute(q.data(), &x.v[i], &x.a[i])[0];
  }
  return (now() - start) / states;
}

struct Times {
  std::vector<double> all;
  [[nodiscard]] double minimum() const { return *std::min_element(all.begin(), all.end()); }
  [[nodiscard]] double median() const {
    std::vector<double> x = all;
    std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
    return x[x.size() / 2];
  }
};

using Measure = double (*)(const Compute&, const States&, int);

/// A pass takes about a fifth of a millisecond or all states, whichever is less, so that an
/// interruption spoils little.
std::vector<Times> interleaved(const std::vector<const Contestant*>& contestants, Quantity quantity,
                               const States& x, int rounds, Measure measure) {
  std::vector<Times> times(contestants.size());
  const auto pass = [&](std::size_t k, int states) {
    return measure(contestants[k]->compute[quantity], x, states);
  };
  double slowest = 0.0;
  for (std::size_t k = 0; k < contestants.size(); ++k) slowest = std::max(slowest, pass(k, 8));
  const int states = std::clamp(static_cast<int>(1e6 / slowest), 16, state_count);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t k = 0; k < contestants.size(); ++k) times[k].all.push_back(pass(k, states));
    for (std::size_t k = contestants.size(); k-- > 0;) times[k].all.push_back(pass(k, states));
  }
  return times;
}

void time_robot(const std::string& name, int rounds, const std::string& only) {
  const Robot robot = load_robot(name);
  const States x(robot.n());
  const std::vector<Contestant> all = all_contestants(robot);
  std::printf("{\"robot\": \"%s\", \"n\": %d, \"states\": %d, \"rounds\": %d, \"results\": [",
              name.c_str(), robot.n(), state_count, rounds);
  const char* separator = "\n";
  for (int i = 0; i < quantities; ++i) {
    const auto quantity = static_cast<Quantity>(i);
    if (!only.empty() && only != quantity_names[i]) continue;
    std::vector<const Contestant*> offered;
    std::vector<double> differences;
    for (const Contestant& c : all) {
      if (!c.compute[quantity]) continue;
      const double difference = disagreement(all.front(), c, quantity, x);
      if (!(difference < 1e-6))
        throw std::runtime_error(c.name + " disagrees about " + quantity_names[i] + " by " +
                                 std::to_string(difference));
      offered.push_back(&c);
      differences.push_back(difference);
    }
    const auto through = interleaved(offered, quantity, x, rounds, throughput);
    const auto late = interleaved(offered, quantity, x, rounds, latency);
    for (std::size_t k = 0; k < offered.size(); ++k) {
      std::printf(
          "%s  {\"quantity\": \"%s\", \"contestant\": \"%s\", \"difference\": %.2g, "
          "\"minimum_ns\": %.1f, \"median_ns\": %.1f, \"latency_minimum_ns\": %.1f, "
          "\"latency_median_ns\": %.1f}",
          separator, quantity_names[i], offered[k]->name.c_str(), differences[k],
          through[k].minimum(), through[k].median(), late[k].minimum(), late[k].median());
      separator = ",\n";
    }
  }
  std::printf("]}\n");
}

void list(const std::string& name) {
  for (const Contestant& c : all_contestants(load_robot(name)))
    for (int i = 0; i < quantities; ++i)
      if (c.compute[i] && c.name != "control")
        std::printf("%s;%s\n", c.name.c_str(), quantity_names[i]);
}

void count(const std::string& name, const std::string& contestant, const std::string& quantity,
           int calls) {
  const Robot robot = load_robot(name);
  const States x(robot.n());
  for (const Contestant& c : all_contestants(robot))
    for (int i = 0; i < quantities; ++i)
      if (c.compute[i] && c.name == contestant && quantity == quantity_names[i])
        for (int k = 0; k < calls; ++k)
          c.compute[i](&x.q[x.at(k % state_count)], &x.v[x.at(k % state_count)],
                       &x.a[x.at(k % state_count)]);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  try {
    if (args.size() == 2 && args[0] == "list") {
      list(args[1]);
    } else if (args.size() == 5 && args[0] == "count") {
      count(args[1], args[2], args[3], std::stoi(args[4]));
    } else if (args.size() >= 2 && args[0] == "time") {
      time_robot(args[1], args.size() > 2 ? std::stoi(args[2]) : 100,
                 args.size() > 3 ? args[3] : "");
    } else {
      std::cerr << "usage: bench list ROBOT | count ROBOT CONTESTANT QUANTITY N | "
                   "time ROBOT [ROUNDS] [QUANTITY]\n";
      return 2;
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
