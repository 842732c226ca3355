// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dynamics_core::control {

/// How long something took, over any number of times: counts by duration, in buckets that are at
/// most an eighth wide. One thread adds while others read; nobody waits for anybody.
class DurationHistogram {
 public:
  void add(std::int64_t nanoseconds) noexcept {
    const std::uint64_t ns = nanoseconds > 0 ? static_cast<std::uint64_t>(nanoseconds) : 0;
    counts_[bucket(ns)].fetch_add(1, std::memory_order_relaxed);
    if (ns > max_.load(std::memory_order_relaxed)) max_.store(ns, std::memory_order_relaxed);
  }

  void clear() noexcept {
    for (auto& count : counts_) count.store(0, std::memory_order_relaxed);
    max_.store(0, std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t count() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& count : counts_) sum += count.load(std::memory_order_relaxed);
    return sum;
  }

  /// The longest, s; zero where there was none.
  [[nodiscard]] double max() const noexcept {
    return 1e-9 * static_cast<double>(max_.load(std::memory_order_relaxed));
  }

  /// At least the fraction p of all took no longer than this, s. At most an eighth too long, never
  /// above max(); zero where there was none.
  [[nodiscard]] double quantile(double p) const noexcept {
    const double wanted = p * static_cast<double>(count());
    double seen = 0.0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += static_cast<double>(counts_[i].load(std::memory_order_relaxed));
      if (seen > 0.0 && seen >= wanted) {
        const double end = 1e-9 * static_cast<double>(last(i));
        return end < max() ? end : max();
      }
    }
    return max();
  }

 private:
  static constexpr unsigned fraction_bits = 3;  // eight buckets to a doubling
  static constexpr std::size_t per_octave = std::size_t{1} << fraction_bits;
  static constexpr unsigned octaves = 36;  // up to 2^38 ns, 4.6 minutes; longer ones in the last
  static constexpr std::size_t buckets = (octaves + 1) * per_octave;

  /// Durations below eight nanoseconds have a bucket each, then each doubling has eight.
  [[nodiscard]] static std::size_t bucket(std::uint64_t ns) noexcept {
    unsigned shift = 0;
    while ((ns >> shift) >= 2 * per_octave) ++shift;
    const std::size_t i = shift * per_octave + static_cast<std::size_t>(ns >> shift);
    return i < buckets ? i : buckets - 1;
  }

  /// The longest duration of a bucket, ns.
  [[nodiscard]] static std::uint64_t last(std::size_t bucket) noexcept {
    if (bucket < 2 * per_octave) return bucket;
    const std::size_t shift = bucket / per_octave - 1;
    const std::uint64_t head = bucket % per_octave + per_octave;
    return ((head + 1) << shift) - 1;
  }

  std::array<std::atomic<std::uint64_t>, buckets> counts_{};
  std::atomic<std::uint64_t> max_{0};
};

}  // namespace dynamics_core::control
