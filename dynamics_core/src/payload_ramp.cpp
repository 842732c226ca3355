// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/payload_ramp.hpp"

#include <cmath>

namespace dynamics_core {

namespace {

[[nodiscard]] double mix(double from, double to, double x) noexcept {
  return x < 1.0 ? from + x * (to - from) : to;
}

[[nodiscard]] RigidInertia<double> about_origin(const Payload<double>& load) noexcept {
  return shift(RigidInertia<double>{load.mass, Vec3<double>::Zero(), load.inertia}, load.com);
}

[[nodiscard]] Payload<double> about_mass_centre(const RigidInertia<double>& load) noexcept {
  if (load.m == 0.0) return {0.0, Vec3<double>::Zero(), Symmetric3<double>::zero()};
  const Vec3<double> com = load.h / load.m;
  return {load.m, com, shift(load, Vec3<double>(-com)).I};
}

}  // namespace

RigidInertia<double> PayloadRamp::Load::now() const noexcept {
  const double x = ramp.value();
  return {mix(from.m, to.m, x),
          {mix(from.h[0], to.h[0], x), mix(from.h[1], to.h[1], x), mix(from.h[2], to.h[2], x)},
          {mix(from.I.xx, to.I.xx, x), mix(from.I.xy, to.I.xy, x), mix(from.I.xz, to.I.xz, x),
           mix(from.I.yy, to.I.yy, x), mix(from.I.yz, to.I.yz, x), mix(from.I.zz, to.I.zz, x)}};
}

PayloadRamp::PayloadRamp(std::size_t links) : loads_(links) {}

Status PayloadRamp::start(int link, const Payload<double>& target, double duration) noexcept {
  if (link < 0 || static_cast<std::size_t>(link) >= loads_.size()) return Status::out_of_range;
  const Symmetric3<double>& I = target.inertia;
  const double sum =
      target.mass + target.com.sum() + I.xx + I.xy + I.xz + I.yy + I.yz + I.zz + duration;
  if (!std::isfinite(sum)) return Status::not_finite;
  if (target.mass < 0.0 || duration < 0.0) return Status::out_of_range;
  Load& load = loads_[static_cast<std::size_t>(link)];
  load.from = load.now();
  load.to = target.mass > 0.0 ? about_origin(target) : RigidInertia<double>::zero();
  load.ramp.start(duration);
  if (!load.moving) ++moving_;
  load.moving = true;
  return Status::ok;
}

Status PayloadRamp::advance(double step, Tree<double>& robot) noexcept {
  if (moving_ == 0) return Status::ok;
  for (std::size_t i = 0; i < loads_.size(); ++i) {
    Load& load = loads_[i];
    if (!load.moving) continue;
    load.ramp.advance(step);
    const int link = static_cast<int>(i);
    if (const Status s = robot.set_payload(link, current(link)); s != Status::ok) return s;
    if (!load.ramp.done()) continue;
    load.moving = false;
    --moving_;
  }
  return Status::ok;
}

Payload<double> PayloadRamp::current(int link) const noexcept {
  return about_mass_centre(loads_[static_cast<std::size_t>(link)].now());
}

}  // namespace dynamics_core
