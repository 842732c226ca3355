// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Payloads that links carry besides their own mass.

#include <string>

#include "dynamics_core/config_error.hpp"
#include "dynamics_core/model.hpp"
#include "dynamics_core/spatial.hpp"

namespace dynamics_core {

/// A rigid payload fixed to a link. Mass zero: none.
template <class S>
struct Payload {
  S mass;                 ///< kg
  Vec3<S> com;            ///< m, in the link's frame
  Symmetric3<S> inertia;  ///< kg·m², about the payload's centre of mass, in the link's axes
};

/// The index of the link that is to carry this payload. Throws ConfigError for a link that is
/// unknown or does not move, and for a payload that no rigid body can be. Off the real-time path.
[[nodiscard]] int checked_payload(const Model& model, const std::string& link,
                                  const Payload<double>& payload);

}  // namespace dynamics_core
