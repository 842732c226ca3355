// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/control/reference_keeper.hpp"

#include <cmath>
#include <utility>

namespace dynamics_core::control {

Reach reach(const Limits& limits, double margin) noexcept {
  Reach out;
  if (!std::isfinite(margin)) return out;
  const double range = limits.upper - limits.lower;
  if (std::isfinite(range) && range > 0.0) {
    out.lower = limits.lower - margin * range;
    out.upper = limits.upper + margin * range;
  }
  if (limits.velocity > 0.0) out.speed = (1.0 + margin) * limits.velocity;
  return out;
}

ReferenceKeeper::ReferenceKeeper(const Config& config, std::vector<Reach> reaches,
                                 const std::vector<bool>& wraps)
    : missing_velocity_(config.missing_velocity),
      missing_acceleration_(config.missing_acceleration),
      timeout_(config.reference_timeout),
      reaches_(std::move(reaches)),
      position_(VectorX<double>::Zero(static_cast<Eigen::Index>(reaches_.size()))),
      velocity_(position_),
      acceleration_(position_),
      position_rate_(position_.size(), config.reference_cutoff, wraps),
      velocity_rate_(position_.size(), config.reference_cutoff,
                     std::vector<bool>(wraps.size(), false)) {}

void ReferenceKeeper::rest() noexcept {
  velocity_.setZero();
  acceleration_.setZero();
  position_rate_.restart();
  velocity_rate_.restart();
  alive_ = false;
  follows_ = false;
  age_ = 0.0;
}

void ReferenceKeeper::update(const Reference& reference, double step,
                             EventCounts& counts) noexcept {
  position_rate_.advance(step);
  velocity_rate_.advance(step);
  age_ += step;
  if (reference.fresh && take(reference, counts)) {
    alive_ = true;
    age_ = 0.0;
  } else if (alive_ && timeout_ > 0.0 && age_ > timeout_) {
    counts.add(Event::reference_timeout);
    rest();
  }
}

ReferenceKeeper::Part ReferenceKeeper::classify(const View& values, bool seen) const noexcept {
  if (values.absent()) return Part::absent;
  if (values.usable(position_.size())) return Part::given;
  const bool unwritten = !seen && values.size() == position_.size() && values.all_nan();
  return unwritten ? Part::absent : Part::bad;
}

bool ReferenceKeeper::within_reach(const View& positions, const View& velocities) const noexcept {
  for (std::size_t j = 0; j < reaches_.size(); ++j) {
    const Reach& reach = reaches_[j];
    const auto i = static_cast<Eigen::Index>(j);
    if (i < positions.size() && (positions[i] < reach.lower || positions[i] > reach.upper))
      return false;
    if (i < velocities.size() && std::abs(velocities[i]) > reach.speed) return false;
  }
  return true;
}

/// Takes over a new reference. False, and all as it was, where there is none or a part is bad.
bool ReferenceKeeper::take(const Reference& reference, EventCounts& counts) noexcept {
  const Part q = classify(reference.position, seen_position_);
  const Part v = classify(reference.velocity, seen_velocity_);
  const Part a = classify(reference.acceleration, seen_acceleration_);
  if (q == Part::bad || v == Part::bad || a == Part::bad ||
      !within_reach(reference.position, reference.velocity)) {
    counts.add(Event::bad_reference);
    return false;
  }
  if (q == Part::absent && v == Part::absent && a == Part::absent) return false;
  seen_position_ = seen_position_ || q == Part::given;
  seen_velocity_ = seen_velocity_ || v == Part::given;
  seen_acceleration_ = seen_acceleration_ || a == Part::given;

  follows_ = q == Part::absent && v == Part::given;
  if (q == Part::given) position_ = reference.position.vector();

  bool has_velocity = v == Part::given;
  if (v == Part::given) {
    velocity_ = reference.velocity.vector();
  } else if (q == Part::given && missing_velocity_ == Missing::differentiate) {
    position_rate_.sample(position_);
    velocity_ = position_rate_.rate();
    has_velocity = true;
  } else {
    velocity_.setZero();
  }

  if (a == Part::given) {
    acceleration_ = reference.acceleration.vector();
  } else if (has_velocity && missing_acceleration_ == Missing::differentiate) {
    velocity_rate_.sample(velocity_);
    acceleration_ = velocity_rate_.rate();
  } else {
    acceleration_.setZero();
  }
  return true;
}

}  // namespace dynamics_core::control
