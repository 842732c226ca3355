// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/identification/identify.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/identification/consistent.hpp"
#include "dynamics_core/identification/equations.hpp"
#include "dynamics_core/identification/signals.hpp"
#include "dynamics_core/regressor.hpp"
#include "dynamics_core/text.hpp"

namespace dynamics_core::identification {

namespace {

using Eigen::Index;
using text::to_short_text;

/// Of the samples' parts the last ones are held out: a quarter.
constexpr int parts = 8;
constexpr int held_out_parts = 2;
constexpr int training_parts = parts - held_out_parts;

using Parts = std::vector<int>;
[[nodiscard]] Parts range(int first, int end) {
  Parts p(static_cast<std::size_t>(end - first));
  std::iota(p.begin(), p.end(), first);
  return p;
}
[[nodiscard]] Parts without(const Parts& all, int part) {
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

  [[nodiscard]] MatrixX<double> sum(int joint, const Parts& over) const {
    MatrixX<double> G = eq_.products(joint, over.front());
    for (std::size_t k = 1; k < over.size(); ++k) G += eq_.products(joint, over[k]);
    return G;
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
    if (kind.stribeck >= 0)
      set(c.stribeck + kind.transition * speeds + kind.stribeck, first + 4);
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
  [[nodiscard]] ConsistentSolution fit(const Parts& over, double weight, bool bounded = true) const {
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
[[nodiscard]] double in_noise(const Sums& sums, const VectorX<double>& noise) {
  double total = 0.0;
  for (Index j = 0; j < noise.size(); ++j) total += sums.error[j] / (noise[j] * noise[j]);
  return total;
}

/// How the URDF explains a joint's efforts before anything is known; in the log's units.
struct Explained {
  double gravity = 0.0;       ///< factor of the URDF's gravity effort
  double gravity_size = 0.0;  ///< standard deviation of that effort, N·m
  double balance = 0.0;       ///< above zero: the efforts drive the joint and do not brake it
  double gain = 0.0;          ///< N·m for one unit if the URDF is right
};

[[nodiscard]] std::vector<Explained> explained(const Model& model,
                                               const std::vector<Recording>& recordings) {
  constexpr double cutoff = 3.0;
  constexpr int columns = 6;  // gravity, inertias, rotor, viscous, Coulomb, offset
  const VectorX<double> rest = rest_speed(recordings);
  Dynamics<double> robot(model);
  const auto nv = static_cast<std::size_t>(model.nv);
  std::vector<MatrixX<double>> products(nv, MatrixX<double>::Zero(columns + 1, columns + 1));
  for (const Recording& recording : recordings) {
    const double rate = 1.0 / recording.period;
    const int every = std::max(1, static_cast<int>(rate / (10.0 * cutoff)));
    for (const Stretch& raw : recording.stretches) {
      const Stretch s = differentiated(raw, recording.period, smoothing_width * cutoff, every);
      std::vector<MatrixX<double>> X(nv, MatrixX<double>(s.samples(), columns + 1));
      Eigen::VectorXd gravity(model.nv), effort(model.nv);
      for (Index i = 0; i < s.samples(); ++i) {
        (void)robot.gravity(s.q.row(i).transpose(), gravity);
        (void)robot.inverse_dynamics(s.q.row(i).transpose(), s.v.row(i).transpose(),
                                     s.a.row(i).transpose(), effort);
        for (int j = 0; j < model.nv; ++j)
          X[static_cast<std::size_t>(j)].row(i) << gravity[j], effort[j] - gravity[j], s.a(i, j),
              s.v(i, j), smooth_sign(s.v(i, j), rest[j] + 1e-9), 1.0, s.tau(i, j);
      }
      const LowPass low_pass(cutoff, rate / every);
      for (int j = 0; j < model.nv; ++j) {
        MatrixX<double>& x = X[static_cast<std::size_t>(j)];
        low_pass.apply(x);
        for (Index i = 0; i < s.samples(); ++i)
          if (std::abs(s.v(i, j)) > rest[j])
            products[static_cast<std::size_t>(j)] += x.row(i).transpose() * x.row(i);
      }
    }
  }
  std::vector<Explained> joints;
  for (const MatrixX<double>& G : products) {
    const double n = std::max(G(5, 5), 1.0);
    const Eigen::VectorXd size = (G.diagonal() / n).cwiseSqrt();
    Eigen::MatrixXd H = G.topLeftCorner(columns, columns);
    for (int k = 0; k < columns; ++k) H(k, k) += 1e-3 * n * size[k] * size[k] + 1e-12;
    const Eigen::VectorXd x = H.llt().solve(Eigen::VectorXd(G.col(columns).head(columns)));
    Explained joint;
    joint.gravity = x[0];
    joint.gravity_size = std::sqrt(std::max(0.0, G(0, 0) - G(0, 5) * G(0, 5) / n) / n);
    joint.balance = x[0] * joint.gravity_size;
    for (int k = 1; k < 5; ++k) joint.balance += x[k] * size[k];
    const double weight = joint.gravity_size + size[1];
    const double factor = weight > 0.0 ? (std::abs(x[0]) * joint.gravity_size + std::abs(x[1]) * size[1]) / weight : 0.0;
    joint.gain = factor > 0.0 ? 1.0 / factor : 0.0;
    joints.push_back(joint);
  }
  return joints;
}

/// How much of the cross-validated error has to go if a joint gets a delay of its own.
constexpr double own_delay_gain = 0.99;


class Identifier {
 public:
  Identifier(const Model& model, const std::vector<Recording>& recordings,
             const std::vector<Recording>& validation, const IdentifyOptions& options)
      : model_(model), recordings_(recordings), validation_(validation), options_(options) {}

  [[nodiscard]] Identification run() {
    scale_.factor = options_.gains;
    if (scale_.factor.empty()) scale_.factor.assign(static_cast<std::size_t>(model_.nv), 1.0);
    for (int j = 0; j < model_.nv; ++j) used_.push_back(is_used(j));
    rest_speed_ = rest_speed(recordings_);
    say(0.0, "looking at the motion");
    choose_cutoff();
    say(0.05, "looking for the efforts' sign and delay");
    find_content_and_signs();
    find_delays();
    say(0.3, "computing the regressor");
    Equations equations(model_, full_basis(), {cutoff_, parts});
    add_all(equations);
    Fitter fitter(equations, model_, used_);
    say(0.6, "choosing friction");
    fitter.learn_noise(training(), 10.0);
    choose_pairs(fitter);
    choose_friction(fitter);
    fitter.learn_noise(training(), 10.0);
    say(0.8, "weighing the URDF against the data");
    choose_weight(fitter);
    compare(fitter);
    finish(equations, fitter);
    say(1.0, "done");
    return std::move(out_);
  }

 private:
  void say(double share, const char* what) const {
    if (options_.progress) options_.progress(share, what);
  }
  [[nodiscard]] static Parts training() { return range(0, training_parts); }
  [[nodiscard]] static Parts held_out() { return range(training_parts, parts); }

  [[nodiscard]] bool is_used(int j) const {
    if (!scale_.used(j)) return false;
    return std::any_of(recordings_.begin(), recordings_.end(), [&](const Recording& r) {
      return r.has_effort[static_cast<std::size_t>(j)];
    });
  }

  void add_all(Equations& equations) const {
    const bool own = validation_.empty();
    for (const Recording& r : recordings_)
      equations.add(r, scale_, rest_speed_, 0, own ? parts : training_parts);
    for (const Recording& r : validation_)
      equations.add(r, scale_, rest_speed_, training_parts, held_out_parts);
  }

  void choose_cutoff() {
    for (const Recording& r : recordings_) out_.bandwidth = std::max(out_.bandwidth, bandwidth(r));
    cutoff_ = options_.cutoff;
    if (cutoff_ <= 0.0) {
      double rate = std::numeric_limits<double>::infinity();
      for (const Recording& r : recordings_) rate = std::min(rate, 1.0 / r.period);
      cutoff_ = std::clamp(10.0 * out_.bandwidth, 3.0, 0.1 * rate);
    }
    out_.notes.push_back("95 % of the motion's energy is below " +
                         to_short_text(out_.bandwidth) + " Hz; efforts and model are compared below " +
                         to_short_text(cutoff_) + " Hz (zero-phase)");
  }

  /// The efforts as a sum of what the URDF's gravity and inertias, a rotor, friction and an offset
  /// explain, each with a free factor, by joint.
  void find_content_and_signs() {
    const std::vector<Explained> joints = explained(model_, recordings_);
    std::vector<double> shares;  // of the URDF's gravity that the efforts contain
    double largest = 0.0;
    for (int j = 0; j < model_.nv; ++j)
      if (used_[static_cast<std::size_t>(j)])
        largest = std::max(largest, joints[static_cast<std::size_t>(j)].gravity_size);
    std::vector<std::string> turned, estimated;
    for (int j = 0; j < model_.nv; ++j) {
      const auto k = static_cast<std::size_t>(j);
      if (!used_[k]) continue;
      const Explained& joint = joints[k];
      double& factor = scale_.factor[k];
      if (std::isnan(factor)) {  // a current of which nobody knows the gain
        factor = joint.gain > 0.0 ? joint.gain : 1.0;
        estimated.push_back(model_.joints[k].name + " " + to_short_text(factor));
      }
      const double sign = joint.balance * factor < 0.0 ? -1.0 : 1.0;
      if (sign < 0.0) {
        factor = -factor;
        turned.push_back(model_.joints[k].name);
      }
      if (joint.gravity_size > 0.2 * largest) shares.push_back(joint.gravity * factor);
    }
    if (!estimated.empty())
      out_.notes.push_back("no --gain was given; those that suit the URDF's masses are " +
                           text::joined(estimated) +
                           " N m/A, and all masses are only as right as these");
    if (!turned.empty())
      out_.notes.push_back("the efforts of " + text::joined(turned) +
                           " have the opposite sign of the URDF's; they were turned");
    gravity_ = options_.content != EffortContent::without_gravity;
    if (options_.content == EffortContent::find_out && !shares.empty())
      gravity_ = std::abs(quantile(shares, 0.5)) > 0.3;
    if (!gravity_ && options_.content == EffortContent::find_out)
      out_.notes.emplace_back(
          "the efforts do not contain gravity's share: the hardware subtracts it before it "
          "reports (if that is wrong: --effort whole)");
  }

  /// One delay for all joints first, by the whole error, then one for each.
  void find_delays() {
    Basis basis;
    basis.transitions = transitions();
    basis.slides = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05};
    basis.gravity = gravity_;
    basis.pairs = pairs();
    basis.joint_delays.assign(static_cast<std::size_t>(model_.nv), 0.0);
    basis.delays.clear();
    constexpr double step = 0.004;
    constexpr int reach = 10;
    constexpr int early = 2;
    for (int d = -early; d <= reach; ++d) basis.delays.push_back(step * d);
    Equations equations(model_, basis, {cutoff_, parts});
    add_all(equations);
    Fitter fitter(equations, model_, used_);
    const int count = static_cast<int>(basis.delays.size());
    const Parts all = training();
    double least = std::numeric_limits<double>::infinity();
    int best = early;
    for (int d = 0; d < count; ++d) {
      fitter.delays().assign(static_cast<std::size_t>(model_.nv), d);
      const double left = fitter.errors(fitter.fit(all, 10.0, false).x, all).overall();
      if (left < least) {
        least = left;
        best = d;
      }
    }
    fitter.delays().assign(static_cast<std::size_t>(model_.nv), best);
    fitter.learn_noise(all, 10.0);
    choose_pairs(fitter);
    basis.joint_delays.assign(static_cast<std::size_t>(model_.nv),
                              basis.delays[static_cast<std::size_t>(best)]);
    for (int round = 0; round < 2; ++round) {
      choose_friction(fitter);
      fitter.learn_noise(all, 10.0);
      for (int j = 0; j < model_.nv; ++j) {
        const auto k = static_cast<std::size_t>(j);
        if (!used_[k]) continue;
        std::vector<double> left;
        for (int d = 0; d < count; ++d) {
          fitter.delays()[k] = d;
          left.push_back(in_noise(fitter.cross_validated(all, 10.0, false), fitter.noise()));
        }
        auto at = static_cast<std::size_t>(std::min_element(left.begin(), left.end()) - left.begin());
        if (left[at] > own_delay_gain * left[static_cast<std::size_t>(best)])
          at = static_cast<std::size_t>(best);
        fitter.delays()[k] = static_cast<int>(at);
        double& delay = basis.joint_delays[k];
        delay = basis.delays[at];
        if (at == 0 || at + 1 == left.size()) continue;
        const double curvature = left[at - 1] - 2.0 * left[at] + left[at + 1];
        if (curvature > 0.0)
          delay += std::clamp(0.5 * step * (left[at - 1] - left[at + 1]) / curvature, -step, step);
      }
    }
    delays_ = basis.joint_delays;
    std::vector<std::string> texts;
    for (const double delay : delays_) texts.push_back(to_short_text(std::round(1e4 * delay) / 10.0));
    out_.notes.push_back("the efforts come later than the positions by " + text::joined(texts) +
                         " ms");
  }

  [[nodiscard]] static std::vector<double> transitions() {
    return {0.003, 0.01, 0.03, 0.06, 0.1, 0.2, 0.4};
  }
  [[nodiscard]] std::vector<MotorPair> pairs() const {
    std::vector<MotorPair> both;
    for (const MotorPair& pair : options_.couplings)
      for (const double sign : {1.0, -1.0}) both.push_back({pair.first, pair.second, sign});
    return both;
  }

  [[nodiscard]] Basis full_basis() const {
    Basis basis;
    basis.transitions = transitions();
    basis.slides = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05};
    if (options_.stribeck) basis.stribeck = {0.05, 0.1, 0.2, 0.4, 0.8};
    basis.gravity = gravity_;
    basis.joint_delays = delays_;
    basis.pairs = pairs();
    return basis;
  }

  /// Of each pair the sign that fits better.
  void choose_pairs(Fitter& fitter) const {
    const std::size_t pairs = options_.couplings.size();
    std::vector<bool> on(2 * pairs, false);
    for (std::size_t p = 0; p < pairs; ++p) {
      std::array<double, 2> left{};
      for (const std::size_t k : {0U, 1U}) {
        on[2 * p] = k == 0;
        on[2 * p + 1] = k == 1;
        fitter.use_pairs(on);
        left[k] = in_noise(fitter.errors(fitter.fit(training(), 10.0, false).x, training()),
                           fitter.noise());
      }
      on[2 * p] = left[0] <= left[1];
      on[2 * p + 1] = !on[2 * p];
    }
    fitter.use_pairs(on);
    if (pairs > 0) fitter.learn_noise(training(), 10.0);
  }

  /// Joint by joint the friction with the smallest cross-validated error.
  void choose_friction(Fitter& fitter) const {
    const Basis& basis = fitter.basis();
    const int transitions = static_cast<int>(basis.transitions.size());
    const auto judge = [&] {
      return in_noise(fitter.cross_validated(training(), 10.0, false), fitter.noise());
    };
    double best = judge();
    for (int round = 0; round < 2; ++round) {
      for (int j = 0; j < model_.nv; ++j) {
        if (!fitter.used(j)) continue;
        FrictionKind& kind = fitter.kinds()[static_cast<std::size_t>(j)];
        FrictionKind winner = kind;
        const auto attempt = [&](FrictionKind other, double gain) {
          kind = other;
          const double left = judge();
          if (left < gain * best) {
            best = left;
            winner = other;
          }
        };
        for (int t = 0; t < transitions; ++t) attempt({t, winner.stribeck, winner.slide}, 1.0);
        const int t = winner.transition;
        for (int s = 0; s < static_cast<int>(basis.slides.size()); ++s) attempt({t, -1, s}, 0.999);
        for (int s = 0; s < static_cast<int>(basis.stribeck.size()); ++s)
          if (basis.stribeck[static_cast<std::size_t>(s)] >
              2.0 * basis.transitions[static_cast<std::size_t>(t)])
            attempt({t, s, -1}, 0.999);
        kind = winner;
      }
      for (std::size_t p = 0; p < fitter.pair_transitions().size(); ++p) {
        if (fitter.unknowns().pair[p] < 0) continue;
        int& transition = fitter.pair_transitions()[p];
        int winner = transition;
        for (transition = 0; transition < transitions; ++transition) {
          const double left = judge();
          if (left < best) {
            best = left;
            winner = transition;
          }
        }
        transition = winner;
      }
    }
  }

  void choose_weight(Fitter& fitter) {
    double best = std::numeric_limits<double>::infinity();
    for (double weight = 1e4; weight > 2e-3; weight *= 0.1) {
      const Sums sums = fitter.cross_validated(training(), weight);
      const double left = sums.overall();
      // What is nearer to the URDF is preferred unless the other is clearly better.
      if (left < 0.98 * best) {
        best = left;
        out_.weight = weight;
      }
      if (getenv("RD_DEBUG")) { const auto h=fitter.errors(fitter.fit(training(), weight).x, held_out()); const auto c=fitter.cross_validated(range(0,parts),weight); fprintf(stderr, "lambda %g: cv %.2f noise %.1f held out %.2f noise %.1f cv8 %.2f noise %.1f\n", weight, 100*left, in_noise(sums, fitter.noise()),100*h.overall(),in_noise(h,fitter.noise()),100*c.overall(),in_noise(c,fitter.noise()));}
    }
  }

  [[nodiscard]] VectorX<double> nominal(const Fitter& fitter) const {
    VectorX<double> x = VectorX<double>::Zero(fitter.unknowns().count);
    x.head(fitter.prior().size()) = fitter.prior();
    const Drives drives = nominal_drives(model_);
    for (int j = 0; j < model_.nv; ++j) {
      const int first = fitter.unknowns().joint[static_cast<std::size_t>(j)];
      if (first < 0) continue;
      const Drive& drive = drives.joints[static_cast<std::size_t>(j)];
      x[first] = drive.rotor;
      x[first + 2] = drive.friction.viscous;
      x[first + 3] = drive.friction.coulomb;
    }
    return x;
  }

  void compare(const Fitter& fitter) {
    const auto judge = [&](Candidate candidate, const VectorX<double>& x) {
      CandidateScore score;
      score.candidate = candidate;
      score.training = fitter.errors(x, training()).overall();
      const Sums sums = fitter.errors(x, held_out());
      score.held_out = sums.overall();
      score.by_joint = (sums.error.array() / sums.signal.array()).sqrt();
      score.error = (sums.error.array() / sums.samples.array()).sqrt();
      out_.scores.push_back(score);
    };
    judge(Candidate::nominal, nominal(fitter));
    judge(Candidate::friction, fitter.fit_friction(training(), fitter.prior()));
    judge(Candidate::full, fitter.fit(training(), out_.weight).x);
    out_.chosen = std::min_element(out_.scores.begin(), out_.scores.end(),
                                   [](const CandidateScore& a, const CandidateScore& b) {
                                     return a.held_out < b.held_out;
                                   })
                      ->candidate;
  }

  void finish(const Equations& equations, const Fitter& fitter) {
    (void)equations;
    const Parts all = validation_.empty() ? range(0, parts) : training();
    VectorX<double> x = nominal(fitter);
    if (out_.chosen == Candidate::friction) x = fitter.fit_friction(all, fitter.prior());
    if (out_.chosen == Candidate::full) {
      const ConsistentSolution solution = fitter.fit(all, out_.weight);
      x = solution.x;
      out_.constrained = solution.constrained;
    }
    out_.pi_nominal = fitter.prior();
    out_.pi = x.head(fitter.prior().size());
    out_.drives = nominal_drives(model_);
    out_.drives.cutoff = cutoff_;
    out_.drives.gravity = gravity_;
    const Sums sums = fitter.errors(x, all);
    const Basis basis = full_basis();
    for (int j = 0; j < model_.nv; ++j) {
      Drive& drive = out_.drives.joints[static_cast<std::size_t>(j)];
      drive.factor = used_[static_cast<std::size_t>(j)] ? scale_.factor[static_cast<std::size_t>(j)] : 0.0;
      const int first = fitter.unknowns().joint[static_cast<std::size_t>(j)];
      if (first < 0) continue;
      drive.noise = std::sqrt(sums.error[j] / sums.samples[j]);
      drive.delay = delays_[static_cast<std::size_t>(j)];
      if (out_.chosen == Candidate::nominal) continue;
      const FrictionKind kind = fitter.kinds_of(j);
      drive.rotor = x[first];
      drive.offset = x[first + 1];
      drive.friction.viscous = x[first + 2];
      drive.friction.coulomb = x[first + 3];
      drive.friction.transition = basis.transitions[static_cast<std::size_t>(kind.transition)];
      if (kind.slide >= 0)
        drive.friction.stiffness =
            drive.friction.coulomb / basis.slides[static_cast<std::size_t>(kind.slide)];
      if (kind.stribeck >= 0) {
        drive.friction.breakaway = x[first + 3] + x[first + 4];
        drive.friction.stribeck_velocity = basis.stribeck[static_cast<std::size_t>(kind.stribeck)];
      }
    }
    for (std::size_t p = 0; p < basis.pairs.size(); ++p) {
      const int first = fitter.unknowns().pair[p];
      if (first < 0 || out_.chosen == Candidate::nominal) continue;
      SharedMotor motor;
      motor.first = basis.pairs[p].first;
      motor.second = basis.pairs[p].second;
      motor.sign = basis.pairs[p].sign;
      motor.rotor = x[first];
      motor.friction.viscous = x[first + 1];
      motor.friction.coulomb = x[first + 2];
      motor.friction.transition =
          basis.transitions[static_cast<std::size_t>(fitter.pair_transition(p))];
      out_.drives.shared.push_back(motor);
    }
  }

  const Model& model_;
  const std::vector<Recording>& recordings_;
  const std::vector<Recording>& validation_;
  const IdentifyOptions& options_;
  Identification out_;
  EffortScale scale_;
  std::vector<bool> used_;
  VectorX<double> rest_speed_;
  double cutoff_ = 5.0;
  std::vector<double> delays_;
  bool gravity_ = true;
};

}  // namespace

Identification identify(const Model& model, const std::vector<Recording>& recordings,
                        const std::vector<Recording>& validation, const IdentifyOptions& options) {
  return Identifier(model, recordings, validation, options).run();
}

}  // namespace dynamics_core::identification
