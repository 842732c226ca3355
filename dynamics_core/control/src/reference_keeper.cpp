// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/control/reference_keeper.hpp"

namespace dynamics_core::control {

ReferenceKeeper::ReferenceKeeper(const Config& config, Eigen::Index size,
                                 const std::vector<bool>& wraps)
    : missing_velocity_(config.missing_velocity),
      missing_acceleration_(config.missing_acceleration),
      timeout_(config.reference_timeout),
      position_(VectorX<double>::Zero(size)),
      velocity_(VectorX<double>::Zero(size)),
      acceleration_(VectorX<double>::Zero(size)),
      position_rate_(size, config.reference_cutoff, wraps),
      velocity_rate_(size, config.reference_cutoff, std::vector<bool>(wraps.size(), false)) {}

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

/// Takes over a new reference. False, and all as it was, where there is none or a part is bad.
bool ReferenceKeeper::take(const Reference& reference, EventCounts& counts) noexcept {
  const Part q = classify(reference.position, seen_position_);
  const Part v = classify(reference.velocity, seen_velocity_);
  const Part a = classify(reference.acceleration, seen_acceleration_);
  if (q == Part::bad || v == Part::bad || a == Part::bad) {
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
