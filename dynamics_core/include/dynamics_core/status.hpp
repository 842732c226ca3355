// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace dynamics_core {

/// What every function on the real-time path returns. Nothing there throws.
///
/// `ok` promises that every output of the call is finite and right to round-off. Where arguments are
/// finite but so large that a result overflows, that is `not_finite`, not `ok`. After anything but
/// `ok` the outputs hold nothing to be relied on, and the object that was called is as good as
/// before: the next call starts afresh.
///
/// A floating joint's quaternion may have any length but zero; its direction counts. Zero is
/// `out_of_range`.
enum class Status {
  ok,
  wrong_size,         ///< an argument does not have the size the model asks for
  not_finite,         ///< an argument holds a NaN or an infinity, or a result overflows
  singular,           ///< the matrix to be inverted (M, or a constraint's) has lost rank
  unsupported_joint,  ///< this method cannot treat one of the model's joints (e.g. mimic joints)
  out_of_range,       ///< an index, a parameter or a quaternion outside its documented range
  not_converged,      ///< an iteration or a step-size control gave up
};

/// A short English text for messages; never allocates.
[[nodiscard]] constexpr const char* to_string(Status status) noexcept {
  switch (status) {
    case Status::ok: return "ok";
    case Status::wrong_size: return "wrong size";
    case Status::not_finite: return "not finite";
    case Status::singular: return "singular";
    case Status::unsupported_joint: return "unsupported joint";
    case Status::out_of_range: return "out of range";
    case Status::not_converged: return "not converged";
  }
  return "unknown status";
}

}  // namespace dynamics_core
