// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Fits of the equations to parts of the samples, and their errors on others.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/identification/consistent.hpp"
#include "dynamics_core/identification/equations.hpp"
#include "dynamics_core/regressor.hpp"

namespace dynamics_core::identification {

using Eigen::Index;

/// Of the samples' parts the last ones are held out: a quarter.
inline constexpr int parts = 8;
inline constexpr int held_out_parts = 2;
inline constexpr int training_parts = parts - held_out_parts;

using Parts = std::vector<int>;
[[nodiscard]] inline Parts range(int first, int end) {
  Parts p(static_cast<std::size_t>(end - first));
  std::iota(p.begin(), p.end(), first);
  return p;
}
[[nodiscard]] inline Parts without(const Parts& all, int part) {
  Parts p;
  for (const int k : all)
    if (k != part) p.push_back(k);
  return p;
}

/// Which friction a joint has: indices into the basis; −1: no Stribeck effect, no memory.
struct FrictionKind {
  int transition = 0;
  int stribeck = -1;
  int slide = -1;
};

/// Squares summed over samples, by joint.
struct Sums {
  VectorX<double> error, signal, samples;
  [[nodiscard]] double overall() const { return std::sqrt(error.sum() / signal.sum()); }
};

/// The unknowns of a fit: π, then for each joint rotor, offset, viscous, Coulomb and Stribeck
/// friction, then for each pair rotor, viscous and Coulomb friction.
struct Unknowns {
  int inertial = 0;
  std::vector<int> joint;  ///< first of each joint; −1: its efforts are not used
  std::vector<int> pair;
  int count = 0;
};

/// Fits of the equations and their errors.
class Fitter {
 public:
  Fitter(const Equations& equations, const Model& model, std::vector<bool> used)
      : eq_(equations), used_(std::move(used)) {
    Dynamics<double> robot(model);
    prior_.resize(eq_.inertial_columns());
    (void)robot.regressor().parameters(prior_);
    for (Index b = 0; b < prior_.size() / 10; ++b)
      bodies_.emplace_back(BodyParameters(prior_.segment<10>(10 * b)));
    kinds_.assign(static_cast<std::size_t>(eq_.joints()), {});
    delays_.assign(static_cast<std::size_t>(eq_.joints()), 0);
    pair_transition_.assign(eq_.basis().pairs.size(), 0);
    noise_ = VectorX<double>::Ones(eq_.joints());
    for (int j = 0; j < eq_.joints(); ++j) {
      const double n = samples(j, range(0, parts));
      const MatrixX<double> G = sum(j, range(0, parts));
      const int e = eq_.columns(j).effort;
      if (n > 0.0) noise_[j] = 0.1 * std::sqrt(G(e, e) / n) + 1e-6;
    }
    number();
  }

  std::vector<FrictionKind>& kinds() { return kinds_; }
  std::vector<int>& pair_transitions() { return pair_transition_; }
  std::vector<int>& delays() { return delays_; }
  [[nodiscard]] const std::vector<int>& delays() const { return delays_; }
  [[nodiscard]] FrictionKind kinds_of(int j) const { return kinds_[static_cast<std::size_t>(j)]; }
  [[nodiscard]] int pair_transition(std::size_t p) const { return pair_transition_[p]; }
  [[nodiscard]] const Basis& basis() const { return eq_.basis(); }
  [[nodiscard]] const VectorX<double>& prior() const { return prior_; }
  [[nodiscard]] const Unknowns& unknowns() const { return at_; }
  [[nodiscard]] const VectorX<double>& noise() const { return noise_; }
  [[nodiscard]] bool used(int j) const { return used_[static_cast<std::size_t>(j)]; }
  void use_pairs(std::vector<bool> on) {
    pairs_on_ = std::move(on);
    number();
  }

  /// The products summed over parts. Sums over all parts that a choice is made by are kept, so that
  /// leaving out one of them is a subtraction.
  [[nodiscard]] MatrixX<double> sum(int joint, const Parts& over) const {
    const auto j = static_cast<std::size_t>(joint);
    if (over == total_of_) return total_[j];
    if (over.size() + 1 == total_of_.size())
      for (const int part : total_of_)
        if (over == without(total_of_, part)) return total_[j] - eq_.products(joint, part);
    MatrixX<double> G = eq_.products(joint, over.front());
    for (std::size_t k = 1; k < over.size(); ++k) G += eq_.products(joint, over[k]);
    return G;
  }
  /// Prepares for choices among these parts.
  void keep_sums(const Parts& over) {
    total_of_.clear();
    total_.clear();
    for (int j = 0; j < eq_.joints(); ++j) total_.push_back(sum(j, over));
    total_of_ = over;
  }
  [[nodiscard]] double samples(int joint, const Parts& over) const {
    double n = 0.0;
    for (const int p : over) n += eq_.samples(joint, p);
    return n;
  }

  void number() {
    at_ = {};
    at_.inertial = eq_.inertial_columns();
    at_.count = at_.inertial;
    for (int j = 0; j < eq_.joints(); ++j) {
      at_.joint.push_back(used(j) ? at_.count : -1);
      if (used(j)) at_.count += 5;
    }
    for (std::size_t p = 0; p < eq_.basis().pairs.size(); ++p) {
      const bool on = p < pairs_on_.size() && pairs_on_[p];
      at_.pair.push_back(on ? at_.count : -1);
      if (on) at_.count += 3;
    }
  }

  /// By local column of a joint: the unknown; −1: none.
  [[nodiscard]] std::vector<int> places(int joint) const {
    const JointColumns& c = eq_.columns(joint);
    std::vector<int> place(static_cast<std::size_t>(c.count), -1);
    std::copy(c.inertial.begin(), c.inertial.end(), place.begin());
    const auto set = [&](int column, int unknown) {
      place[static_cast<std::size_t>(column)] = unknown;
    };
    const int first = at_.joint[static_cast<std::size_t>(joint)];
    const FrictionKind& kind = kinds_[static_cast<std::size_t>(joint)];
    set(c.rotor, first);
    set(c.offset, first + 1);
    set(c.viscous, first + 2);
    set(kind.slide < 0 ? c.sign + kind.transition : c.slide + kind.slide, first + 3);
    const int speeds = static_cast<int>(eq_.basis().stribeck.size());
    if (kind.stribeck >= 0) set(c.stribeck + kind.transition * speeds + kind.stribeck, first + 4);
    const int signs = static_cast<int>(eq_.basis().transitions.size());
    for (std::size_t p = 0; p < at_.pair.size(); ++p) {
      if (at_.pair[p] < 0) continue;
      const int column = c.pair + static_cast<int>(p) * (2 + signs);
      set(column, at_.pair[p]);
      set(column + 1, at_.pair[p] + 1);
      set(column + 2 + pair_transition_[p], at_.pair[p] + 2);
    }
    return place;
  }

  /// The weighted normal equations.
  void assemble(const Parts& over, MatrixX<double>& H, VectorX<double>& g) const {
    H = MatrixX<double>::Zero(at_.count, at_.count);
    g = VectorX<double>::Zero(at_.count);
    for (int j = 0; j < eq_.joints(); ++j) {
      if (!used(j)) continue;
      const MatrixX<double> G = sum(j, over);
      const std::vector<int> place = places(j);
      const int effort = eq_.columns(j).effort + delays_[static_cast<std::size_t>(j)];
      const double weight = 1.0 / (noise_[j] * noise_[j] * eq_.redundancy());
      for (std::size_t r = 0; r < place.size(); ++r) {
        if (place[r] < 0) continue;
        g[place[r]] += weight * G(static_cast<Index>(r), effort);
        for (std::size_t c = 0; c < place.size(); ++c)
          if (place[c] >= 0)
            H(place[r], place[c]) += weight * G(static_cast<Index>(r), static_cast<Index>(c));
      }
    }
  }

  [[nodiscard]] std::vector<bool> not_negative() const {
    std::vector<bool> bounded(static_cast<std::size_t>(at_.count - at_.inertial), true);
    for (const int first : at_.joint)
      if (first >= 0) bounded[static_cast<std::size_t>(first + 1 - at_.inertial)] = false;
    return bounded;
  }

  /// The full model.
  [[nodiscard]] ConsistentSolution fit(const Parts& over, double weight,
                                       bool bounded = true) const {
    ConsistentProblem problem;
    assemble(over, problem.H, problem.g);
    problem.consistent = bounded;
    problem.bodies = bodies_;
    problem.not_negative = not_negative();
    problem.weight = weight;
    return solve(problem);
  }

  /// Friction, rotors and offsets with the inertial parameters π.
  [[nodiscard]] VectorX<double> fit_friction(const Parts& over, const VectorX<double>& pi) const {
    MatrixX<double> H;
    VectorX<double> g;
    assemble(over, H, g);
    const Index n = at_.count - at_.inertial;
    ConsistentProblem problem;
    problem.H = H.bottomRightCorner(n, n);
    problem.g = g.tail(n) - H.bottomLeftCorner(n, at_.inertial) * pi;
    problem.not_negative = not_negative();
    VectorX<double> x(at_.count);
    x << pi, solve(problem).x;
    return x;
  }

  [[nodiscard]] Sums errors(const VectorX<double>& x, const Parts& over) const {
    Sums sums;
    sums.error = sums.signal = sums.samples = VectorX<double>::Zero(eq_.joints());
    for (int j = 0; j < eq_.joints(); ++j) {
      if (!used(j)) continue;
      const MatrixX<double> G = sum(j, over);
      const std::vector<int> place = places(j);
      const int effort = eq_.columns(j).effort + delays_[static_cast<std::size_t>(j)];
      VectorX<double> local = VectorX<double>::Zero(static_cast<Index>(place.size()));
      for (std::size_t k = 0; k < place.size(); ++k)
        if (place[k] >= 0) local[static_cast<Index>(k)] = x[place[k]];
      local[effort] = -1.0;
      sums.error[j] = std::max(0.0, local.dot(G * local));
      sums.signal[j] = G(effort, effort);
      sums.samples[j] = samples(j, over);
    }
    return sums;
  }

  /// Takes each joint's noise from what a fit leaves.
  void learn_noise(const Parts& over, double weight) {
    for (int round = 0; round < 3; ++round) {
      const Sums sums = errors(fit(over, weight, false).x, over);
      for (int j = 0; j < eq_.joints(); ++j)
        if (used(j) && sums.samples[j] > 0.0) {
          const double signal = std::sqrt(sums.signal[j] / sums.samples[j]);
          noise_[j] = std::max(std::sqrt(sums.error[j] / sums.samples[j]), 1e-4 * signal) + 1e-9;
        }
    }
  }

  /// The error on each training part of the fit to the others.
  [[nodiscard]] Sums cross_validated(const Parts& over, double weight, bool bounded = true) const {
    Sums all;
    for (const int part : over) {
      const Sums sums = errors(fit(without(over, part), weight, bounded).x, {part});
      if (all.error.size() == 0) {
        all = sums;
      } else {
        all.error += sums.error;
        all.signal += sums.signal;
        all.samples += sums.samples;
      }
    }
    return all;
  }

 private:
  const Equations& eq_;
  std::vector<bool> used_;
  Parts total_of_;
  std::vector<MatrixX<double>> total_;  ///< by joint
  VectorX<double> prior_;
  std::vector<BodyPrior> bodies_;
  std::vector<FrictionKind> kinds_;
  std::vector<int> pair_transition_;
  std::vector<int> delays_;
  std::vector<bool> pairs_on_;
  VectorX<double> noise_;
  Unknowns at_;
};

/// What the choices are made by: each joint's squared error in units of its noise.
[[nodiscard]] inline double in_noise(const Sums& sums, const VectorX<double>& noise) {
  double total = 0.0;
  for (Index j = 0; j < noise.size(); ++j) total += sums.error[j] / (noise[j] * noise[j]);
  return total;
}

}  // namespace dynamics_core::identification
