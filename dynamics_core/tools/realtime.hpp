// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a machine allows a loop that has to be on time.

#include <cstdint>
#include <ctime>
#include <string>

namespace dynamics_core::tools {

/// Asks for a real-time priority (SCHED_FIFO) and for memory that is never swapped out, and gives
/// both back at its end.
class RealtimeGuard {
 public:
  explicit RealtimeGuard(bool wanted);
  ~RealtimeGuard();
  RealtimeGuard(const RealtimeGuard&) = delete;
  RealtimeGuard& operator=(const RealtimeGuard&) = delete;

  [[nodiscard]] bool scheduled() const noexcept { return scheduled_; }
  [[nodiscard]] bool locked() const noexcept { return locked_; }
  /// What it got, and why not more.
  [[nodiscard]] const std::string& scheduling() const noexcept { return scheduling_; }
  [[nodiscard]] const std::string& memory() const noexcept { return memory_; }

 private:
  bool scheduled_ = false;
  bool locked_ = false;
  std::string scheduling_, memory_;
};

/// Wakes up at equal distances of absolute time, whatever the work in between took.
class Metronome {
 public:
  explicit Metronome(double period) noexcept;
  /// Sleeps until the next beat; returns by how many ns it woke up late. Beats that have passed
  /// already are left out and counted.
  std::int64_t wait() noexcept;
  [[nodiscard]] long missed() const noexcept { return missed_; }

 private:
  std::int64_t period_, next_;  ///< ns
  long missed_ = 0;
};

}  // namespace dynamics_core::tools
