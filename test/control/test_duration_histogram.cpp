// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <thread>
#include <vector>

#include "dynamics_core/control/duration_histogram.hpp"

namespace {

using dynamics_core::control::DurationHistogram;

TEST(DurationHistogram, IsZeroWhereNothingWasAdded) {
  const DurationHistogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.max(), 0.0);
  EXPECT_EQ(histogram.quantile(0.99), 0.0);
}

TEST(DurationHistogram, TellsOneDurationExactly) {
  for (const std::int64_t ns : {0, 1, 7, 8, 15, 16, 17, 1000, 123456789}) {
    DurationHistogram histogram;
    histogram.add(ns);
    EXPECT_EQ(histogram.max(), 1e-9 * static_cast<double>(ns));
    EXPECT_EQ(histogram.quantile(0.99), histogram.max()) << ns;
  }
}

TEST(DurationHistogram, TakesNegativeDurationsForZeroAndHoldsAnyLongOne) {
  DurationHistogram histogram;
  histogram.add(-5);
  EXPECT_EQ(histogram.max(), 0.0);
  histogram.add(INT64_MAX);
  EXPECT_EQ(histogram.count(), 2u);
  EXPECT_EQ(histogram.max(), 1e-9 * static_cast<double>(INT64_MAX));
}

TEST(DurationHistogram, QuantilesAreAtMostAnEighthTooLong) {
  std::mt19937 random(4);
  std::lognormal_distribution<double> durations(std::log(5000.0), 2.0);
  std::vector<std::int64_t> all;
  DurationHistogram histogram;
  for (int i = 0; i < 20000; ++i) {
    all.push_back(static_cast<std::int64_t>(durations(random)));
    histogram.add(all.back());
  }
  std::sort(all.begin(), all.end());
  for (const double p : {0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<std::size_t>(std::ceil(p * static_cast<double>(all.size()))) - 1;
    const double exact = 1e-9 * static_cast<double>(all[rank]);
    EXPECT_GE(histogram.quantile(p), exact - 1e-15) << p;
    EXPECT_LE(histogram.quantile(p), 1.125 * exact + 1e-9) << p;
  }
  histogram.clear();
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.max(), 0.0);
}

TEST(DurationHistogram, IsReadWhileAnotherThreadAdds) {
  DurationHistogram histogram;
  std::thread writer([&] {
    for (int i = 0; i < 100000; ++i) histogram.add(1000 + i % 100);
  });
  while (histogram.count() < 100000) EXPECT_LE(histogram.quantile(0.99), 1.1e-6);
  writer.join();
  EXPECT_EQ(histogram.max(), 1.099e-6);
}

}  // namespace
