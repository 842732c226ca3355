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
#include "dynamics_core/instruction_set.hpp"

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

void append(std::vector<Contestant> some, std::vector<Contestant>& to) {
  for (Contestant& c : some) to.push_back(std::move(c));
}

std::vector<Contestant> all_contestants(const Robot& robot) {
  std::vector<Contestant> all = ours(robot);
  Contestant control = ours(robot).front();
  control.name = "control";
  all.push_back(std::move(control));
#ifdef RD_BENCH_GENERATED
  append(generated_contestants(robot), all);
#endif
#ifdef RD_BENCH_PINOCCHIO
  append(pinocchio_contestants(robot), all);
#endif
#ifdef RD_BENCH_KDL
  append(kdl_contestants(robot), all);
#endif
  return all;
}

bool of_derivatives(Quantity quantity) {
  return quantity == inverse_dynamics_derivatives || quantity == forward_dynamics_derivatives;
}

/// What is compared.
std::size_t size_of(Quantity quantity, int n) {
  switch (quantity) {
    case mass_matrix:
    case inverse_mass_matrix: return static_cast<std::size_t>(n * n);
    case jacobian: return static_cast<std::size_t>(6 * n);
    case inverse_dynamics_derivatives:
    case forward_dynamics_derivatives: return static_cast<std::size_t>(2 * n * n);
    default: return static_cast<std::size_t>(n);
  }
}

std::vector<double> result(const Contestant& c, Quantity quantity, const States& x, int state) {
  const std::size_t i = x.at(state);
  const std::size_t size = size_of(quantity, x.n);
  const std::size_t next = of_derivatives(quantity) ? size / 2 * 3 : size;
  const double* from = c.compute[quantity] ? c.compute[quantity](&x.q[i], &x.v[i], &x.a[i])
                                           : c.compute_all[quantity](x.q.data(), x.v.data(),
                                                                     x.a.data(), state_count) +
                                                 static_cast<std::size_t>(state) * next;
  std::vector<double> out(from, from + size);
  if (quantity == jacobian && c.linear_first)
    for (auto column = out.begin(); column != out.end(); column += 6)
      std::swap_ranges(column, column + 3, column + 3);
  if (of_derivatives(quantity) && c.by_rows) {
    for (double* matrix : {out.data(), out.data() + x.n * x.n}) {
      Eigen::Map<Eigen::MatrixXd> A(matrix, x.n, x.n);
      A.transposeInPlace();
    }
  }
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

double throughput(const Contestant& c, Quantity quantity, const States& x, int states) {
  const Compute& compute = c.compute[quantity];
  const double start = now();
  if (compute)
    for (int s = 0; s < states; ++s) compute(&x.q[x.at(s)], &x.v[x.at(s)], &x.a[x.at(s)]);
  else
    c.compute_all[quantity](x.q.data(), x.v.data(), x.a.data(), states);
  return (now() - start) / states;
}

/// Each q waits for a number of the result before, times zero.
double latency(const Contestant& c, Quantity quantity, const States& x, int states) {
  std::vector<double> q(static_cast<std::size_t>(x.n));
  double last = 0.0;
  const double start = now();
  for (int s = 0; s < states; ++s) {
    for (std::size_t k = 0; k < q.size(); ++k) q[k] = x.q[x.at(s) + k] + 0.0 * last;
    last = c.compute[quantity](q.data(), &x.v[x.at(s)], &x.a[x.at(s)])[0];
  }
  return (now() - start) / states;
}

using Measure = double (*)(const Contestant&, Quantity, const States&, int);

/// Times of passes by contestant. A pass takes about a millisecond of the slowest or all states,
/// whichever is less, so that an interruption spoils little.
std::vector<std::vector<double>> interleaved(const std::vector<const Contestant*>& contestants,
                                             Quantity quantity, const States& x, int rounds,
                                             Measure measure) {
  double slowest = 1.0;
  for (const Contestant* c : contestants) slowest = std::max(slowest, measure(*c, quantity, x, 8));
  const int states = std::clamp(static_cast<int>(1e6 / slowest), 16, state_count);
  std::vector<std::vector<double>> times(contestants.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t k = 0; k < contestants.size(); ++k)
      times[k].push_back(measure(*contestants[k], quantity, x, states));
    for (std::size_t k = contestants.size(); k-- > 0;)
      times[k].push_back(measure(*contestants[k], quantity, x, states));
  }
  return times;
}

std::string minimum_and_median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  char text[64];
  std::snprintf(text, sizeof text, "[%.1f, %.1f]", times.front(), times[times.size() / 2]);
  return text;
}

/// Throws where libraries disagree.
std::vector<const Contestant*> agreeing(const std::vector<Contestant>& all, Quantity quantity,
                                        const States& x, double& worst) {
  std::vector<const Contestant*> offered;
  worst = 0.0;
  for (const Contestant& c : all) {
    if (!c.offers(quantity)) continue;
    const double difference = disagreement(all.front(), c, quantity, x);
    if (!(difference < 1e-6))
      throw std::runtime_error(c.name + " disagrees about " + quantity_names[quantity] + " by " +
                               std::to_string(difference));
    worst = std::max(worst, difference);
    offered.push_back(&c);
  }
  return offered;
}

void time_robot(const std::string& name, int rounds, const std::string& only) {
  const Robot robot = load_robot(name);
  const States x(robot.n());
  const std::vector<Contestant> all = all_contestants(robot);
  std::printf("{\"robot\": \"%s\", \"n\": %d, \"instruction_set\": \"%s\", \"results\": {",
              name.c_str(), robot.n(), dynamics_core::instruction_set().c_str());
  const char* separator = "\n";
  for (int i = 0; i < quantities; ++i) {
    const auto quantity = static_cast<Quantity>(i);
    if (!only.empty() && only != quantity_names[quantity]) continue;
    double difference = 0.0;
    const auto offered = agreeing(all, quantity, x, difference);
    std::vector<const Contestant*> one_by_one;
    for (const Contestant* c : offered)
      if (c->compute[quantity]) one_by_one.push_back(c);
    const auto through = interleaved(offered, quantity, x, rounds, throughput);
    const auto late = interleaved(one_by_one, quantity, x, rounds, latency);
    std::printf("%s  \"%s\": {\"disagreement\": %.2g", separator, quantity_names[quantity],
                difference);
    for (std::size_t k = 0; k < offered.size(); ++k)
      std::printf(",\n    \"%s\": {\"throughput_ns\": %s}", offered[k]->name.c_str(),
                  minimum_and_median(through[k]).c_str());
    std::printf(",\n    \"latency_ns\": {");
    for (std::size_t k = 0; k < one_by_one.size(); ++k)
      std::printf("%s\"%s\": %s", k == 0 ? "" : ", ", one_by_one[k]->name.c_str(),
                  minimum_and_median(late[k]).c_str());
    std::printf("}}");
    separator = ",\n";
  }
  std::printf("}}\n");
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
  for (const Contestant& c : all_contestants(robot)) {
    for (int i = 0; i < quantities; ++i) {
      if (!c.compute[i] || c.name != contestant || quantity != quantity_names[i]) continue;
      for (int k = 0; k < calls; ++k) {
        const std::size_t at = x.at(k % state_count);
        c.compute[i](&x.q[at], &x.v[at], &x.a[at]);
      }
    }
  }
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
