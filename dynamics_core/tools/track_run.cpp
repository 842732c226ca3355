// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>

#include "dynamics_core/text.hpp"
#include "realtime.hpp"
#include "track.hpp"

// Last, as it replaces functions that the headers before it declare.
#include "allocation_guard.hpp"

namespace dynamics_core::tools {

namespace {

using control::Controller;
using Eigen::Index;
using VectorXd = VectorX<double>;
using Clock = std::chrono::steady_clock;

[[nodiscard]] control::Config configuration(const Experiment& x, const Law& law) {
  control::Config config;
  config.mode = law.mode;
  config.compensation = law.compensation;
  for (const JointGains& pd : x.gains) config.gains.push_back(gains_of(law, pd));
  if (!x.effort_limits) config.effort_limits = {std::numeric_limits<double>::infinity()};
  config.soft_start = 0.0;  // the robot stands on the path, and nothing else holds it
  config.max_dt = std::max(config.max_dt, 2.0 * x.period);
  config.reference_timeout = std::max(config.reference_timeout, 2.0 * x.period);
  return config;
}

void require(Status status, const char* what) {
  if (status != Status::ok) throw UsageError(std::string(what) + ": " + to_string(status));
}

/// A law, the robot, and the cycle that joins them.
class Loop {
 public:
  Loop(const Experiment& x, const Law& law)
      : x_(x),
        controller_(x.model, configuration(x, law)),
        robot_(x.robot, x.imperfections),
        at_{VectorXd::Zero(x.model.nq), VectorXd::Zero(x.model.nv), VectorXd::Zero(x.model.nv)},
        error_(at_.v),
        squares_(at_.v) {
    out_.law = &law;
    out_.peak_by_joint = out_.peak_effort = VectorXd::Zero(x.model.nv);
    out_.compute.reserve(static_cast<std::size_t>(x.cycles));
    if (x.realtime) out_.late.reserve(static_cast<std::size_t>(x.cycles));
    if (x.record) out_.q = out_.v = out_.tau = MatrixX<double>::Zero(x.model.nv, x.cycles);
    for (const CarriedPayload& on : x.known_payloads)
      require(controller_.set_payload(on.link, on.payload, 0.0), "--payload");
    for (const CarriedPayload& on : x.payloads)
      require(robot_.set_payload(on.link, on.payload), "--payload-unknown");
    require(x.motion.path(0.0, at_), "the trajectory");
    lowest_ = highest_ = at_.q;
    require(robot_.start(at_.q, at_.v), "the start of the trajectory");
    if (controller_.activate(measurement()) == control::ControllerState::inactive)
      throw std::runtime_error("the controller does not start");
  }

  /// False where the loop cannot go on. Real-time safe.
  [[nodiscard]] bool cycle(long k) noexcept {
    const AllocationGuard guard;
    const bool good = advance(k);
    out_.allocations += guard.count();
    return good;
  }

  void woke_up(std::int64_t late) { out_.late.push_back(late); }

  [[nodiscard]] Outcome finish(std::string failure, long missed_beats) {
    const double cycles = static_cast<double>(std::max(out_.cycles, 1L));
    out_.rms_by_joint = (squares_ / cycles).cwiseSqrt();
    out_.rms = std::sqrt(squares_.mean() / cycles);
    out_.peak = out_.peak_by_joint.maxCoeff();
    out_.saturated_cycles = robot_.saturated_cycles();
    for (const control::LimitReport& limit : controller_.limits())
      out_.limited_cycles = std::max(out_.limited_cycles, limit.effort_limited_cycles);
    out_.missed_beats = missed_beats;
    out_.failure = std::move(failure);
    return std::move(out_);
  }

  /// What is off by more than the trajectory is wide does not follow it. (Gains alone sag under
  /// gravity as far as they will; that is what they are shown for.)
  [[nodiscard]] std::string verdict() const {
    const double width = (highest_ - lowest_).maxCoeff();
    const double off = out_.peak_by_joint.maxCoeff();
    if (off <= width || out_.law->compensation == control::Compensation::none) return {};
    return "does not follow: off by " + text::to_short_text(off) + " " + position_unit(x_.model) +
           ", and the trajectory is " + text::to_short_text(width) +
           " wide; take a higher --rate or --bandwidth";
  }

  [[nodiscard]] std::string failure(long k) const {
    const std::string when = " at t = " + std::to_string(static_cast<double>(k) * x_.period) + " s";
    if (controller_.state() == control::ControllerState::fault)
      return std::string("fault, ") + to_string(controller_.fault_cause()) + when;
    return std::string("the robot runs away (") + to_string(robot_status_) + ")" + when;
  }

 private:
  [[nodiscard]] control::Measurement measurement() const noexcept {
    if (!x_.velocity_measured) return {robot_.measured_position(), {}};
    return {robot_.measured_position(), robot_.measured_velocity()};
  }

  [[nodiscard]] bool advance(long k) noexcept {
    robot_status_ = x_.motion.path(static_cast<double>(k) * x_.period, at_);
    if (robot_status_ != Status::ok) return false;
    const auto begin = Clock::now();
    const control::ControllerState state =
        controller_.update(measurement(), {at_.q, at_.v, at_.a}, x_.period);
    const auto end = Clock::now();
    if (state == control::ControllerState::fault) return false;
    take_stock(k, std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count());
    robot_status_ = robot_.cycle(controller_.command().effort, x_.period, x_.steps);
    return robot_status_ == Status::ok;
  }

  void take_stock(long k, std::int64_t nanoseconds) noexcept {
    error_ = at_.q - robot_.position();
    lowest_ = lowest_.cwiseMin(at_.q);
    highest_ = highest_.cwiseMax(at_.q);
    squares_ += error_.cwiseAbs2();
    out_.peak_by_joint = out_.peak_by_joint.cwiseMax(error_.cwiseAbs());
    out_.peak_effort = out_.peak_effort.cwiseMax(controller_.command().effort.cwiseAbs());
    out_.compute.push_back(nanoseconds);
    if (static_cast<double>(nanoseconds) > 1e9 * x_.budget) ++out_.over_budget;
    if (x_.record) {
      out_.q.col(k) = robot_.position();
      out_.v.col(k) = robot_.velocity();
      out_.tau.col(k) = controller_.command().effort;
    }
    out_.cycles = k + 1;
  }

  const Experiment& x_;
  Controller controller_;
  simulation::SimulatedRobot robot_;
  Status robot_status_ = Status::ok;
  Desired at_;
  VectorXd error_, squares_;
  VectorXd lowest_, highest_;  ///< of the reference
  Outcome out_;
};

}  // namespace

control::Gains gains_of(const Law& law, const JointGains& pd) {
  switch (law.mode) {
    // M (ë + d ė + p e) = 0
    case control::Mode::computed_torque: return {pd.p / pd.inertia, pd.d / pd.inertia};
    // M ṡ + K s = 0, s = ė + Λ e: stiffness K Λ and, critically damped, damping 2 K
    case control::Mode::passivity: return {pd.d > 0.0 ? 2.0 * pd.p / pd.d : 0.0, 0.5 * pd.d};
    default: return {pd.p, pd.d};
  }
}

Percentiles percentiles(std::vector<std::int64_t> x) {
  if (x.empty()) return {};
  std::sort(x.begin(), x.end());
  const auto at = [&](double share) {  // the smallest value that so many do not exceed
    const double rank = std::ceil(share * static_cast<double>(x.size()));
    return 1e-3 * static_cast<double>(x[static_cast<std::size_t>(std::max(rank, 1.0)) - 1]);
  };
  return {at(0.5), at(0.99), at(0.999), at(1.0)};
}

Outcome run_law(const Experiment& experiment, const Law& law,
                const std::function<void(long)>& progress) {
  Loop loop(experiment, law);
  std::optional<Metronome> metronome;
  if (experiment.realtime) metronome.emplace(experiment.period);
  const auto missed = [&] { return metronome ? metronome->missed() : 0; };
  for (long k = 0; k < experiment.cycles; ++k) {
    if (metronome) loop.woke_up(metronome->wait());
    if (!loop.cycle(k)) return loop.finish(loop.failure(k), missed());
    progress(k);
  }
  return loop.finish(loop.verdict(), missed());
}

}  // namespace dynamics_core::tools
