// SPDX-License-Identifier: Apache-2.0
#include "realtime.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>

namespace dynamics_core::tools {

namespace {

constexpr int priority = 80;  // above most of the kernel's threaded interrupts

[[nodiscard]] std::int64_t now() noexcept {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

/// Has the stack's next pages in memory before they are needed.
void touch_stack() noexcept {
  std::array<volatile char, 256 * 1024> stack;
  for (std::size_t i = 0; i < stack.size(); i += 4096) stack[i] = 0;
}

}  // namespace

RealtimeGuard::RealtimeGuard(bool wanted) {
  if (!wanted) return;
  sched_param parameters{};
  parameters.sched_priority = priority;
  scheduled_ = sched_setscheduler(0, SCHED_FIFO, &parameters) == 0;
  scheduling_ = scheduled_ ? "SCHED_FIFO, priority " + std::to_string(priority)
                           : std::string("the usual scheduling, as SCHED_FIFO was refused (") +
                                 std::strerror(errno) + ")";
  locked_ = mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
  memory_ =
      locked_ ? "locked memory" : std::string("memory not locked (") + std::strerror(errno) + ")";
  touch_stack();
}

RealtimeGuard::~RealtimeGuard() {
  if (locked_) munlockall();
  const sched_param parameters{};
  if (scheduled_) sched_setscheduler(0, SCHED_OTHER, &parameters);
}

Metronome::Metronome(double period) noexcept : period_(std::llround(period * 1e9)), next_(now()) {}

std::int64_t Metronome::wait() noexcept {
  next_ += period_;
  const std::int64_t late = now() - next_;
  if (late > period_) {
    missed_ += static_cast<long>(late / period_);
    next_ += late / period_ * period_;
  }
  timespec until{};
  until.tv_sec = next_ / 1'000'000'000;
  until.tv_nsec = next_ % 1'000'000'000;
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
  return std::max<std::int64_t>(now() - next_, 0);
}

}  // namespace dynamics_core::tools
