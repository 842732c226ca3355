// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The controller's states, and what moves it from one to another.
///
///                   | activate | deactivate | reset    | cycle   | cycle,   | bad     | one bad
///                   |          |            |          | with    | no       | cycle   | cycle
///     state         |          |            |          | ref.    | ref.     |         | too many
///     --------------|----------|------------|----------|---------|----------|---------|---------
///     inactive      | holding_ | –          | –        | –       | –        | –       | –
///                   | position |            |          |         |          |         |
///     holding_      | –        | inactive   | inactive | running | –        | holding_| fault
///     position      |          |            |          |         |          | command |
///     running       | –        | inactive   | inactive | –       | holding_ | holding_| fault
///                   |          |            |          |         | position | command |
///     holding_      | –        | inactive   | inactive | running | holding_ | –       | fault
///     command       |          |            |          |         | position |         |
///     fault         | –        | –          | inactive | –       | –        | –       | –
///
/// ("–": stays.) A cycle is bad when the measurement or the result is not usable; one more than
/// Config::max_held_cycles of them in a row is one too many. A cycle is without reference before
/// the first one came, after Config::reference_timeout, and while it holds after a contact.

#include <array>
#include <cstdint>

namespace dynamics_core::control {

enum class ControllerState {
  inactive,          ///< effort 0
  holding_position,  ///< no reference, or none any more: at the last position, at rest
  running,           ///< the law at the reference
  holding_command,   ///< a state or result that cannot be used: repeats the last safe command
  fault,             ///< effort 0 until reset()
};

enum class Trigger {
  activate,
  deactivate,
  reset,
  cycle,
  cycle_without_reference,
  bad_cycle,
  too_many_bad_cycles,
};

/// The table above.
[[nodiscard]] constexpr ControllerState next(ControllerState state, Trigger trigger) noexcept {
  if (trigger == Trigger::reset) return ControllerState::inactive;
  if (state == ControllerState::fault) return ControllerState::fault;
  if (state == ControllerState::inactive)
    return trigger == Trigger::activate ? ControllerState::holding_position
                                        : ControllerState::inactive;
  switch (trigger) {
    case Trigger::deactivate: return ControllerState::inactive;
    case Trigger::cycle: return ControllerState::running;
    case Trigger::cycle_without_reference: return ControllerState::holding_position;
    case Trigger::bad_cycle: return ControllerState::holding_command;
    case Trigger::too_many_bad_cycles: return ControllerState::fault;
    default: return state;
  }
}

/// What is counted, each for itself, until reset().
enum class Event {
  bad_measurement,    ///< non-finite or of the wrong size
  bad_reference,      ///< non-finite, of the wrong size or out of reach; the last one is kept
  reference_timeout,  ///< the reference was lost; counted once a loss
  bad_clock,          ///< dt not positive, not finite or above max_dt; nothing is integrated
  contact,            ///< touched, and a reaction has begun; counted once a reaction
  bad_result,         ///< the law's effort was not finite, or could not be computed or written
};

inline constexpr std::array<ControllerState, 5> all_states = {
    ControllerState::inactive, ControllerState::holding_position, ControllerState::running,
    ControllerState::holding_command, ControllerState::fault};
inline constexpr std::array<Event, 6> all_events = {Event::bad_measurement,   Event::bad_reference,
                                                    Event::reference_timeout, Event::bad_clock,
                                                    Event::contact,           Event::bad_result};

[[nodiscard]] constexpr const char* to_string(ControllerState state) noexcept {
  switch (state) {
    case ControllerState::inactive: return "inactive";
    case ControllerState::holding_position: return "holding position";
    case ControllerState::running: return "running";
    case ControllerState::holding_command: return "holding command";
    case ControllerState::fault: return "fault";
  }
  return "unknown state";
}

[[nodiscard]] constexpr const char* to_string(Event event) noexcept {
  switch (event) {
    case Event::bad_measurement: return "bad measurement";
    case Event::bad_reference: return "bad reference";
    case Event::reference_timeout: return "reference timeout";
    case Event::bad_clock: return "bad clock";
    case Event::contact: return "contact";
    case Event::bad_result: return "bad result";
  }
  return "unknown event";
}

class EventCounts {
 public:
  void add(Event event) noexcept { ++counts_[static_cast<std::size_t>(event)]; }
  void clear() noexcept { counts_.fill(0); }
  [[nodiscard]] std::uint64_t operator[](Event event) const noexcept {
    return counts_[static_cast<std::size_t>(event)];
  }

 private:
  std::array<std::uint64_t, all_events.size()> counts_{};
};

}  // namespace dynamics_core::control
