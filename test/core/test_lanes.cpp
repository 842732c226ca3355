// SPDX-License-Identifier: Apache-2.0
/// The lanes of batches: each function of the contract in scalar.hpp does in every lane what it does
/// for `double`. The algorithms with them are the matter of test_batch_dynamics.cpp.

#include "lanes.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

namespace {

using namespace dynamics_core;
using L = Lanes<>;
constexpr int count = L::count;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

using Numbers = std::array<double, static_cast<std::size_t>(count)>;

[[nodiscard]] Numbers numbers(const L& x) {
  Numbers out;
  x.store(out.data());
  return out;
}
[[nodiscard]] bool same_bits(double x, double y) { return std::memcmp(&x, &y, sizeof x) == 0; }

/// Numbers of every size and sign, zeros and what is not finite among them.
class Draw {
 public:
  [[nodiscard]] Numbers operator()() {
    Numbers out;
    for (double& x : out) x = number();
    return out;
  }
  [[nodiscard]] double number() {
    constexpr double special[] = {0.0, -0.0, 1.0, nan, infinity, -infinity, 5e-324, 1e300};
    if (uniform_(engine_) < 0.1) return special[engine_() % std::size(special)];
    return std::copysign(std::pow(10.0, 20.0 * uniform_(engine_) - 10.0), uniform_(engine_) - 0.5);
  }
  [[nodiscard]] double below(double limit) { return limit * (2.0 * uniform_(engine_) - 1.0); }

 private:
  std::mt19937 engine_{1};
  std::uniform_real_distribution<double> uniform_{0.0, 1.0};
};

/// `lanes` of numbers is in each lane what `single` is of its numbers, to the last bit.
template <class OfLanes, class Single>
void expect_lane_by_lane(const char* name, OfLanes of_lanes, Single single) {
  SCOPED_TRACE(name);
  Draw draw;
  for (int i = 0; i < 10000; ++i) {
    const Numbers x = draw();
    const Numbers y = draw();
    const Numbers actual = numbers(of_lanes(L::load(x.data()), L::load(y.data())));
    for (std::size_t k = 0; k < actual.size(); ++k) {
      const double expected = single(x[k], y[k]);
      if (std::isnan(expected))
        ASSERT_TRUE(std::isnan(actual[k])) << x[k] << ", " << y[k];
      else
        ASSERT_TRUE(same_bits(actual[k], expected)) << x[k] << ", " << y[k] << ": " << actual[k];
    }
  }
}

TEST(Lanes, ArithmeticIsThatOfEachLane) {
  expect_lane_by_lane(
      "sum", [](const L& x, const L& y) { return x + y; },
      [](double x, double y) { return x + y; });
  expect_lane_by_lane(
      "difference", [](const L& x, const L& y) { return x - y; },
      [](double x, double y) { return x - y; });
  expect_lane_by_lane(
      "product", [](const L& x, const L& y) { return x * y; },
      [](double x, double y) { return x * y; });
  expect_lane_by_lane(
      "quotient", [](const L& x, const L& y) { return x / y; },
      [](double x, double y) { return x / y; });
  expect_lane_by_lane(
      "minus", [](const L& x, const L&) { return -x; }, [](double x, double) { return -x; });
  expect_lane_by_lane(
      "root", [](const L& x, const L&) { return sqrt(x); },
      [](double x, double) { return std::sqrt(x); });
  expect_lane_by_lane(
      "absolute value", [](const L& x, const L&) { return abs(x); },
      [](double x, double) { return std::abs(x); });
  expect_lane_by_lane(
      "safe ratio", [](const L& x, const L& y) { return safe_ratio(x, y, L(3)); },
      [](double x, double y) { return safe_ratio(x, y, 3.0); });
}

TEST(Lanes, AssigningFormsAreTheSame) {
  Draw draw;
  const Numbers x = draw();
  const L a = L::load(x.data());
  L b(2.5);
  b += a;
  b -= L(1);
  b *= a;
  b /= L(4.0);
  const L expected = (L(2.5) + a - L(1)) * a / L(4.0);
  for (int k = 0; k < count; ++k)
    EXPECT_TRUE(same_bits(b[k], expected[k]) || std::isnan(expected[k]));
}

TEST(Lanes, NumbersGoInAndOut) {
  Draw draw;
  std::array<Numbers, static_cast<std::size_t>(count)> arrays;
  std::array<const double*, static_cast<std::size_t>(count)> from;
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    for (double& x : arrays[k]) x = draw.below(1.0);
    from[k] = arrays[k].data();
  }
  L x = L::gather(from.data(), 1);
  for (std::size_t k = 0; k < arrays.size(); ++k) EXPECT_EQ(x[static_cast<int>(k)], arrays[k][1]);
  x.set(1, 7.0);
  EXPECT_EQ(x[0], arrays[0][1]);
  EXPECT_EQ(x[1], 7.0);
}

TEST(Lanes, RowsAndColumnsChangePlaces) {
  Draw draw;
  L rows[static_cast<std::size_t>(count)];
  std::array<Numbers, static_cast<std::size_t>(count)> before;
  for (std::size_t i = 0; i < before.size(); ++i) {
    for (double& x : before[i]) x = draw.below(1.0);
    rows[i] = L::load(before[i].data());
  }
  L::transpose(rows);
  for (std::size_t i = 0; i < before.size(); ++i)
    for (std::size_t k = 0; k < before.size(); ++k)
      EXPECT_EQ(rows[i][static_cast<int>(k)], before[k][i]);
}

/// Within 1e-15 of the exact values (long double has eleven more bits), also far beyond the limit.
TEST(Lanes, SineAndCosineInEveryLane) {
  Draw draw;
  for (const double limit : {0.8, 10.0, 1e5, 1e7, 1e300}) {
    SCOPED_TRACE(limit);
    for (int i = 0; i < 20000; ++i) {
      Numbers x;
      for (double& angle : x) angle = draw.below(limit);
      if (i % 3 == 0) x[0] = draw.below(1.0);  // a small angle beside large ones
      L s, c;
      sincos(L::load(x.data()), s, c);
      for (int k = 0; k < count; ++k) {
        const auto angle = static_cast<long double>(x[static_cast<std::size_t>(k)]);
        ASSERT_NEAR(s[k], static_cast<double>(std::sin(angle)), 1e-15) << x[0];
        ASSERT_NEAR(c[k], static_cast<double>(std::cos(angle)), 1e-15) << x[0];
      }
    }
  }
}

TEST(Lanes, AnAngleThatIsNotFiniteSpoilsItsLaneAlone) {
  for (const double bad : {nan, infinity, -infinity, 1e200}) {
    L x[2] = {L(0.3), L(-1.2)};
    x[1].set(1, bad);
    L s[2], c[2], s_good[2], c_good[2];
    sincos_many(x, s, c, 2);
    const L good[2] = {L(0.3), L(-1.2)};
    sincos_many(good, s_good, c_good, 2);
    for (int i = 0; i < 2; ++i) {
      for (int k = 0; k < count; ++k) {
        if (i == 1 && k == 1) continue;
        EXPECT_TRUE(same_bits(s[i][k], s_good[i][k]));
        EXPECT_TRUE(same_bits(c[i][k], c_good[i][k]));
      }
    }
    EXPECT_EQ(std::isnan(s[1][1]), !std::isfinite(bad));
    EXPECT_EQ(std::isnan(c[1][1]), !std::isfinite(bad));
  }
}

TEST(Lanes, JudgementsLookAtEveryLane) {
  for (int k = 0; k < count; ++k) {
    SCOPED_TRACE(k);
    L x(1.0);
    EXPECT_TRUE(is_finite(x));
    EXPECT_FALSE(is_negative(x));
    EXPECT_TRUE(finite_status<L>(x).all_ok());
    for (const double bad : {nan, infinity, -infinity}) {
      x.set(k, bad);
      EXPECT_FALSE(is_finite(x));
      const StatusOf<L> status = finite_status<L>(x);
      for (int i = 0; i < count; ++i)
        EXPECT_EQ(status[i], i == k ? Status::not_finite : Status::ok);
    }
    x.set(k, -1e-300);
    EXPECT_TRUE(is_negative(x));
    EXPECT_TRUE(is_finite(x));
  }
}

TEST(Lanes, APivotIsKeptOrItsLaneFails) {
  for (int k = 0; k < count; ++k) {
    SCOPED_TRACE(k);
    for (const double bad : {0.0, 1e-14, -1e-14, nan}) {
      L x(0.5);
      StatusOf<L> status = Status::ok;
      EXPECT_TRUE(keep_pivot<L>(x, L(1.0), status));
      EXPECT_TRUE(status.all_ok());
      x.set(k, bad);
      EXPECT_TRUE(keep_pivot<L>(x, L(1.0), status, Status::out_of_range));  // others are left
      for (int i = 0; i < count; ++i) {
        EXPECT_EQ(status[i], i == k ? Status::out_of_range : Status::ok);
        EXPECT_EQ(x[i], i == k ? 1.0 : 0.5);
      }
      x.set(k, bad);
      EXPECT_TRUE(keep_pivot<L>(x, L(1.0), status));
      EXPECT_EQ(status[k], Status::out_of_range);  // the first failure stays
    }
  }
  L none(0.0);
  StatusOf<L> status = Status::ok;
  EXPECT_FALSE(keep_pivot<L>(none, L(1.0), status));
  EXPECT_TRUE(failed(status));
}

template <int width>
void expect_statuses_by_lane() {
  SCOPED_TRACE(width);
  using Statuses = LaneStatus<width>;
  constexpr Status all[] = {Status::ok,           Status::wrong_size,        Status::not_finite,
                            Status::singular,     Status::unsupported_joint, Status::out_of_range,
                            Status::not_converged};
  std::mt19937 engine(1);
  for (int i = 0; i < 1000; ++i) {
    Statuses first = Status::ok;
    Statuses second = Status::ok;
    std::array<Status, static_cast<std::size_t>(width)> x, y;
    for (int k = 0; k < width; ++k) {
      x[static_cast<std::size_t>(k)] = all[engine() % 2 * (engine() % std::size(all))];
      y[static_cast<std::size_t>(k)] = all[engine() % std::size(all)];
      first.fail(k, x[static_cast<std::size_t>(k)]);
      second.fail(k, y[static_cast<std::size_t>(k)]);
    }
    const Statuses both = merged(first, second);
    bool every = true;
    bool none = true;
    for (int k = 0; k < width; ++k) {
      const auto at = static_cast<std::size_t>(k);
      ASSERT_EQ(first[k], x[at]);
      ASSERT_EQ(both[k], merged(x[at], y[at]));
      every = every && failed(x[at]);
      none = none && !failed(x[at]);
    }
    ASSERT_EQ(failed(first), every);
    ASSERT_EQ(first.all_ok(), none);
  }
  for (const Status status : all) {
    EXPECT_EQ(failed(Statuses(status)), status != Status::ok);
    for (int k = 0; k < width; ++k) EXPECT_EQ(Statuses(status)[k], status);
  }
}

TEST(LaneStatus, EachLaneHasItsOwn) {
  expect_statuses_by_lane<2>();
  expect_statuses_by_lane<4>();
  expect_statuses_by_lane<8>();
}

}  // namespace
