// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/identification/identify.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/identification/consistent.hpp"
#include "dynamics_core/identification/equations.hpp"
#include "dynamics_core/identification/signals.hpp"
#include "dynamics_core/regressor.hpp"
#include "dynamics_core/text.hpp"
#include "explained.hpp"
#include "fitter.hpp"

namespace dynamics_core::identification {

namespace {

using Eigen::Index;
using text::to_short_text;

/// How much of the cross-validated error has to go if a joint gets a delay of its own.
constexpr double own_delay_gain = 0.99;
/// The delays to choose from, s and steps.
constexpr double delay_step = 0.002;
constexpr int earliest = -4;
constexpr int latest = 20;

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
    check_motion();
    say(0.0, "looking at the motion");
    choose_cutoff();
    find_content_and_signs();
    say(0.1, "computing the regressor");
    Equations equations(model_, basis(), {cutoff_, parts});
    add_all(equations);
    say(0.3, "choosing friction and delays on the training data");
    Fitter fitter(equations, model_, used_);
    choose(fitter, training());
    compare(fitter);
    if (out_.chosen != Candidate::nominal && validation_.empty()) {
      say(0.6, "the same on all data");
      choose(fitter, range(0, parts));
    }
    finish(fitter);
    judge_excitation(fitter);
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

  [[noreturn]] void refuse(const std::string& problem, const std::string& remedy) const {
    throw LogError(recordings_.front().source, problem, remedy);
  }

  /// Refuses logs that nothing can be learnt from.
  void check_motion() const {
    double seconds = 0.0;
    std::vector<std::string> moving;
    double outside = 0.0;
    double all = 0.0;
    bool degrees = true;
    for (const JointInfo& joint : model_.joints) {
      double low = std::numeric_limits<double>::infinity();
      double high = -low;
      const double slack = joint.type == JointType::prismatic ? 0.1 : 0.5;
      for (const Recording& r : recordings_)
        for (const Stretch& s : r.stretches) {
          low = std::min(low, s.q.col(joint.v).minCoeff());
          high = std::max(high, s.q.col(joint.v).maxCoeff());
          all += static_cast<double>(s.samples());
          for (Index i = 0; i < s.samples(); ++i)
            outside += s.q(i, joint.v) < joint.limits.lower - slack ||
                               s.q(i, joint.v) > joint.limits.upper + slack
                           ? 1.0
                           : 0.0;
        }
      constexpr double degree = 3.14159265358979323846 / 180.0;
      if (joint.type == JointType::revolute)
        degrees = degrees && low * degree > joint.limits.lower - slack &&
                  high * degree < joint.limits.upper + slack;
      if (high - low > 0.01) moving.push_back(joint.name);
    }
    for (const Recording& r : recordings_)
      for (const Stretch& s : r.stretches) seconds += static_cast<double>(s.samples()) * r.period;
    if (outside > 0.05 * all && degrees)
      refuse(to_short_text(std::round(100.0 * outside / all)) +
                 " % of the positions are beyond the joints' limits, and would not be if they were "
                 "degrees",
             "write them in radians");
    if (outside > 0.2 * all)
      refuse(to_short_text(std::round(100.0 * outside / all)) +
                 " % of the positions are beyond the joints' limits",
             "is it the log of another robot, or in other units than rad and m?");
    if (std::none_of(used_.begin(), used_.end(), [](bool used) { return used; }))
      refuse("it has no efforts that can be used",
             "add columns tau_<joint>, or say the gains of the currents with --gain");
    if (moving.empty()) refuse("nothing moves in it", "record the robot while all its joints move");
    if (moving.size() == 1 && model_.nv > 1)
      refuse("only joint '" + moving.front() + "' moves in it",
             "record a motion of all joints at once");
    if (seconds < 3.0)
      refuse("it is " + to_short_text(seconds) + " s long",
             "record at least ten seconds, better a minute");
    check_efforts(model_, recordings_, used_);
    if (!validation_.empty()) check_efforts(model_, validation_, used_);
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
    out_.notes.push_back("95 % of the motion's energy is below " + to_short_text(out_.bandwidth) +
                         " Hz; efforts and model are compared below " + to_short_text(cutoff_) +
                         " Hz (zero-phase)");
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

  [[nodiscard]] Basis basis() const {
    Basis basis;
    basis.transitions = {0.003, 0.01, 0.03, 0.06, 0.1, 0.2, 0.4};
    basis.slides = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05};
    if (options_.stribeck) basis.stribeck = {0.05, 0.1, 0.2, 0.4, 0.8};
    basis.gravity = gravity_;
    basis.delays.clear();
    for (int d = earliest; d <= latest; ++d) basis.delays.push_back(delay_step * d);
    for (const MotorPair& pair : options_.couplings)
      for (const double sign : {1.0, -1.0}) basis.pairs.push_back({pair.first, pair.second, sign});
    return basis;
  }

  /// All that the data decide before the last fit, by cross-validation among these parts.
  void choose(Fitter& fitter, const Parts& over) {
    fitter.keep_sums(over);
    const int common = choose_delay(fitter, over);
    choose_pairs(fitter, over);
    for (int round = 0; round < 2; ++round) {
      choose_friction(fitter, over);
      fitter.learn_noise(over, 10.0);
      choose_own_delays(fitter, over, common);
    }
    choose_weight(fitter, over);
  }

  /// One delay for all joints, by the whole error.
  [[nodiscard]] int choose_delay(Fitter& fitter, const Parts& over) const {
    double least = std::numeric_limits<double>::infinity();
    int best = -earliest;
    for (int d = 0; d <= latest - earliest; ++d) {
      fitter.delays().assign(static_cast<std::size_t>(model_.nv), d);
      const double left = fitter.errors(fitter.fit(over, 10.0, false).x, over).overall();
      if (left < least) {
        least = left;
        best = d;
      }
    }
    fitter.delays().assign(static_cast<std::size_t>(model_.nv), best);
    fitter.learn_noise(over, 10.0);
    return best;
  }

  /// A joint gets a delay of its own if that is clearly better.
  void choose_own_delays(Fitter& fitter, const Parts& over, int common) const {
    for (int j = 0; j < model_.nv; ++j) {
      const auto k = static_cast<std::size_t>(j);
      if (!used_[k]) continue;
      const auto judge = [&](int d) {
        fitter.delays()[k] = d;
        return in_noise(fitter.cross_validated(over, 10.0, false), fitter.noise());
      };
      const double otherwise = judge(common);
      double least = otherwise;
      int best = common;
      const auto attempt = [&](int d) {
        const double left = judge(d);
        if (left < least) {
          least = left;
          best = d;
        }
      };
      for (int d = 0; d <= latest - earliest; d += 3) attempt(d);
      for (const int step : {-1, 1}) {
        const int d = best + step;
        if (d >= 0 && d <= latest - earliest) attempt(d);
      }
      fitter.delays()[k] = least < own_delay_gain * otherwise ? best : common;
    }
  }

  /// Of each pair the sign that fits better.
  void choose_pairs(Fitter& fitter, const Parts& over) const {
    const std::size_t pairs = options_.couplings.size();
    std::vector<bool> on(2 * pairs, false);
    for (std::size_t p = 0; p < pairs; ++p) {
      std::array<double, 2> left{};
      for (const std::size_t k : {0U, 1U}) {
        on[2 * p] = k == 0;
        on[2 * p + 1] = k == 1;
        fitter.use_pairs(on);
        left[k] = in_noise(fitter.errors(fitter.fit(over, 10.0, false).x, over), fitter.noise());
      }
      on[2 * p] = left[0] <= left[1];
      on[2 * p + 1] = !on[2 * p];
    }
    fitter.use_pairs(on);
    if (pairs > 0) fitter.learn_noise(over, 10.0);
  }

  /// Joint by joint the friction with the smallest cross-validated error.
  void choose_friction(Fitter& fitter, const Parts& over) const {
    const Basis& basis = fitter.basis();
    const int transitions = static_cast<int>(basis.transitions.size());
    const auto judge = [&] {
      return in_noise(fitter.cross_validated(over, 10.0, false), fitter.noise());
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

  void choose_weight(Fitter& fitter, const Parts& over) {
    double best = std::numeric_limits<double>::infinity();
    for (double weight = 1e4; weight > 2e-3; weight *= 0.1) {
      const Sums sums = fitter.cross_validated(over, weight);
      const double left = sums.overall();
      // What is nearer to the URDF is preferred unless the other is clearly better.
      if (left < 0.99 * best) {
        best = left;
        out_.weight = weight;
      }
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
    if (!std::isfinite(out_.scores.front().held_out))
      throw LogError((validation_.empty() ? recordings_ : validation_).front().source,
                     "no efforts of it can be compared below " + to_short_text(cutoff_) + " Hz",
                     "give a longer log with motion to its end and efforts that change");
    judge(Candidate::friction, fitter.fit_friction(training(), fitter.prior()));
    judge(Candidate::full, fitter.fit(training(), out_.weight).x);
    // The full model is held near the URDF already; alike on the data it knows more of the robot.
    const auto held_out_error = [&](Candidate candidate) {
      return out_.scores[static_cast<std::size_t>(candidate)].held_out;
    };
    const Candidate better =
        held_out_error(Candidate::full) <= 1.02 * held_out_error(Candidate::friction)
            ? Candidate::full
            : Candidate::friction;
    out_.chosen =
        held_out_error(better) < held_out_error(Candidate::nominal) ? better : Candidate::nominal;
  }

  void finish(const Fitter& fitter) {
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
    const Basis& basis = fitter.basis();
    for (int j = 0; j < model_.nv; ++j) {
      Drive& drive = out_.drives.joints[static_cast<std::size_t>(j)];
      drive.factor =
          used_[static_cast<std::size_t>(j)] ? scale_.factor[static_cast<std::size_t>(j)] : 0.0;
      const int first = fitter.unknowns().joint[static_cast<std::size_t>(j)];
      if (first < 0) continue;
      drive.noise = std::sqrt(sums.error[j] / sums.samples[j]);
      drive.delay =
          basis.delays[static_cast<std::size_t>(fitter.delays()[static_cast<std::size_t>(j)])];
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

  /// The parameters that the efforts tell, their deviations, and what they do not tell well.
  void judge_excitation(const Fitter& fitter) {
    const Parts all = validation_.empty() ? range(0, parts) : training();
    MatrixX<double> H;
    VectorX<double> g;
    fitter.assemble(all, H, g);
    const BaseParameters base = base_parameters(model_);
    const std::vector<std::string> names = parameter_names(model_);
    const Index n = base.size();
    const Index others = fitter.unknowns().count - fitter.unknowns().inertial;
    // Columns of the base parameters, then of the drives.
    std::vector<Index> picked(base.columns.begin(), base.columns.end());
    for (Index k = 0; k < others; ++k) picked.push_back(fitter.unknowns().inertial + k);
    const auto count = static_cast<Index>(picked.size());
    Eigen::MatrixXd P(count, count);
    for (Index r = 0; r < count; ++r)
      for (Index c = 0; c < count; ++c)
        P(r, c) = H(picked[static_cast<std::size_t>(r)], picked[static_cast<std::size_t>(c)]);
    // Each column in its own size, so that units do not matter.
    Eigen::VectorXd size = P.diagonal().cwiseMax(0.0).cwiseSqrt();
    std::vector<Index> told;
    for (Index k = 0; k < count; ++k)
      if (size[k] > 1e-6 * size.maxCoeff()) told.push_back(k);
    const auto m = static_cast<Index>(told.size());
    Eigen::MatrixXd C(m, m);
    for (Index r = 0; r < m; ++r)
      for (Index c = 0; c < m; ++c) {
        const Index i = told[static_cast<std::size_t>(r)];
        const Index j = told[static_cast<std::size_t>(c)];
        C(r, c) = P(i, j) / (size[i] * size[j]);
      }
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(C);
    // A joint's rotor and its links' inertia about the first axes are one to the efforts; such
    // directions say nothing of the motion.
    const Eigen::VectorXd& d = eigen.eigenvalues();
    const double floor = 1e-9 * d[m - 1];
    double smallest = d[m - 1];
    Eigen::VectorXd inverse(m);
    for (Index k = 0; k < m; ++k) {
      inverse[k] = d[k] > floor ? 1.0 / d[k] : 0.0;
      if (d[k] > floor) smallest = std::min(smallest, d[k]);
    }
    out_.condition = std::sqrt(d[m - 1] / smallest);
    const Eigen::VectorXd variance = (eigen.eigenvectors().cwiseAbs2() * inverse).eval();
    const VectorX<double> nominal = base.reduce(out_.pi_nominal);
    const VectorX<double> value = base.reduce(out_.pi);
    for (Index k = 0; k < m; ++k) {
      const Index i = told[static_cast<std::size_t>(k)];
      if (i >= n) continue;
      const auto column = static_cast<std::size_t>(base.columns[static_cast<std::size_t>(i)]);
      out_.parameters.push_back(
          {names[column], nominal[i], value[i], std::sqrt(variance[k]) / size[i]});
    }
    for (const JointInfo& joint : model_.joints) advise(joint);
    if (out_.condition > 1000.0)
      out_.advice.push_back("the motion tells some parameters badly (condition number " +
                            to_short_text(out_.condition) +
                            "): move all joints at once, faster and over more of their range");
    check_mass_matrix();
  }

  void advise(const JointInfo& joint) {
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    double fastest = 0.0;
    for (const Recording& r : recordings_)
      for (const Stretch& s : r.stretches) {
        low = std::min(low, s.q.col(joint.v).minCoeff());
        high = std::max(high, s.q.col(joint.v).maxCoeff());
        fastest = std::max(fastest, 100.0 * rest_speed_[joint.v]);
      }
    const double wide = joint.limits.upper - joint.limits.lower;
    if (high - low < 1e-3)
      out_.advice.push_back("joint '" + joint.name +
                            "' does not move: nothing is known of its friction and rotor; move it");
    else if (std::isfinite(wide) && high - low < 0.1 * wide)
      out_.advice.push_back("joint '" + joint.name + "' moves over " + to_short_text(high - low) +
                            " of " + to_short_text(wide) + "; move it farther");
    else if (std::isfinite(joint.limits.velocity) && fastest < 0.1 * joint.limits.velocity)
      out_.advice.push_back("joint '" + joint.name + "' moves at " + to_short_text(fastest) +
                            " of " + to_short_text(joint.limits.velocity) +
                            " a second; move it faster");
  }

  /// M is positive definite if all bodies are; the poses make sure of it.
  void check_mass_matrix() const {
    constexpr int poses = 200;
    Dynamics<double> robot(model_);
    Eigen::MatrixXd Y(model_.nv, out_.pi.size());
    std::mt19937 random(1);
    const Eigen::VectorXd none = Eigen::VectorXd::Zero(model_.nv);
    (void)robot.set_gravity(Vec3<double>::Zero());
    for (int k = 0; k < poses; ++k) {
      Eigen::VectorXd q(model_.nq);
      for (const JointInfo& joint : model_.joints) {
        const double lower = std::max(joint.limits.lower, -3.2);
        const double upper = std::min(joint.limits.upper, 3.2);
        q[joint.q] = lower + (upper - lower) * static_cast<double>(random()) / 4294967295.0;
      }
      Eigen::MatrixXd M(model_.nv, model_.nv);
      for (int j = 0; j < model_.nv; ++j) {
        const Status status =
            robot.regressor().matrix(q, none, Eigen::VectorXd::Unit(model_.nv, j), Y);
        if (status != Status::ok)
          throw LogError(recordings_.front().source,
                         std::string("the regressor is ") + to_string(status),
                         "check the limits of the joints in the URDF for huge values");
        M.col(j) = Y * out_.pi;
        M(j, j) += out_.drives.joints[static_cast<std::size_t>(j)].rotor;
      }
      if (Eigen::LLT<Eigen::MatrixXd>(M).info() != Eigen::Success)
        throw LogError(recordings_.front().source,
                       "the mass matrix of the identified robot is not positive definite",
                       "give a log with more motion");
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
  bool gravity_ = true;
};

}  // namespace

Identification identify(const Model& model, const std::vector<Recording>& recordings,
                        const std::vector<Recording>& validation, const IdentifyOptions& options) {
  return Identifier(model, recordings, validation, options).run();
}

}  // namespace dynamics_core::identification
