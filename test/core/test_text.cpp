// SPDX-License-Identifier: Apache-2.0
/// Text in and out.

#include "dynamics_core/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <locale>
#include <set>

namespace {

using namespace dynamics_core::text;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr double infinity = std::numeric_limits<double>::infinity();

// --- Parts ---------------------------------------------------------------------------------------

TEST(Text, Trims) {
  EXPECT_EQ(trimmed(" \t a b\r\n"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \n"), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(Text, Splits) {
  EXPECT_THAT(split("a, b ,c d"), ElementsAre("a", "b", "c d"));
  EXPECT_THAT(split("a=1;b", ';'), ElementsAre("a=1", "b"));
  EXPECT_THAT(split("a,"), ElementsAre("a", ""));
  EXPECT_THAT(split(","), ElementsAre("", ""));
  EXPECT_THAT(split(" "), IsEmpty());
  EXPECT_THAT(split(""), IsEmpty());
}

TEST(Text, FindsWords) {
  EXPECT_THAT(words(" 1\t2\n\r 3 "), ElementsAre("1", "2", "3"));
  EXPECT_THAT(words("one"), ElementsAre("one"));
  EXPECT_THAT(words(" "), IsEmpty());
}

// --- Numbers -------------------------------------------------------------------------------------

TEST(Text, ReadsNumbers) {
  EXPECT_EQ(parse_number("-1.5e3"), -1500.0);
  EXPECT_EQ(parse_number("+.5"), 0.5);
  EXPECT_EQ(parse_number("1e-400"), 0.0);
  EXPECT_EQ(parse_number("1e400"), infinity);
  EXPECT_EQ(parse_number("-inf"), -infinity);
  EXPECT_TRUE(std::isnan(parse_number("nan").value()));
  for (const char* bad : {"", " 1", "1 ", "1,5", "0x10", "--1", "+-1", "++1", "+", "1e", "one"}) {
    EXPECT_FALSE(parse_number(bad)) << bad;
  }
}

TEST(Text, TellsFiniteNumbers) {
  EXPECT_EQ(parse_finite("2"), 2.0);
  for (const char* bad : {"inf", "nan", "1e400", "x"}) EXPECT_FALSE(parse_finite(bad)) << bad;
}

TEST(Text, ReadsWholeNumbers) {
  EXPECT_EQ(parse_whole<int>("+3"), 3);
  EXPECT_EQ(parse_whole<int>("-3"), -3);
  EXPECT_EQ(parse_whole<std::uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_FALSE(parse_whole<std::uint64_t>("-3"));
  for (const char* bad : {"", "1.5", "+-3", "99999999999", "3 "}) {
    EXPECT_FALSE(parse_whole<int>(bad)) << bad;
  }
}

TEST(Text, WritesNumbers) {
  EXPECT_EQ(to_text(0.1), "0.1");
  EXPECT_EQ(to_text(1.0 / 3.0), "0.3333333333333333");
  EXPECT_EQ(to_text(infinity), "inf");
  EXPECT_EQ(to_short_text(1.0 / 3.0), "0.333333");
  EXPECT_EQ(to_short_text(1e-6), "1e-06");
  EXPECT_EQ(to_short_text(-infinity), "-inf");
}

TEST(Text, IsAlikeInAnyLocale) {
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale(), new Comma));
  EXPECT_EQ(parse_number("1234.5"), 1234.5);
  EXPECT_EQ(to_text(1234.5), "1234.5");
  EXPECT_EQ(to_short_text(1234.5), "1234.5");
  std::locale::global(before);
}

// --- Messages ------------------------------------------------------------------------------------

TEST(Text, ShortensWhatIsTooLongForAMessage) {
  EXPECT_EQ(shortened("short"), "short");
  EXPECT_EQ(shortened(std::string(80, 'x')), std::string(80, 'x'));
  EXPECT_EQ(quoted(std::string(81, 'x')), "'" + std::string(80, 'x') + "…'");
  // No letter is cut in two.
  EXPECT_EQ(shortened(std::string(79, 'x') + "ä…"), std::string(79, 'x') + "…");
}

TEST(Text, ControlCharactersReachNoTerminal) {
  EXPECT_EQ(quoted("a\x1b[2J\a\nerror: b\r\x7f"), "'a\\x1b[2J\\x07\\x0aerror: b\\x0d\\x7f'");
  EXPECT_EQ(printable("\xc2\x9b\xc2\xa0ä"), "\\x9b\xc2\xa0ä");  // CSI in one character
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
}

TEST(Text, FieldsOfTables) {
  EXPECT_EQ(csv_field("q.elbow"), "q.elbow");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("a\"b\n"), "\"a\"\"b\n\"");
}

TEST(Text, Joins) {
  EXPECT_EQ(joined(std::array{"b", "a"}), "b, a");
  EXPECT_EQ(joined(std::set<std::string>{"b", "a"}, " or "), "a or b");
  EXPECT_EQ(joined(std::vector<std::string>{"", "a"}), ", a");
  EXPECT_EQ(joined(std::vector<std::string>{}), "");
}

TEST(Text, OffersAlternatives) {
  EXPECT_EQ(alternatives({"a", "b", "c"}), "a, b or c");
  EXPECT_EQ(alternatives({"a", "b"}), "a or b");
  EXPECT_EQ(alternatives({"a"}), "a");
}

TEST(Text, ListsNames) {
  const std::vector<std::string> names = {"a", "b", "c"};
  EXPECT_EQ(quoted_list(names), "'a', 'b', 'c'");
  EXPECT_EQ(quoted_list(names, " under ", 3), "'a' under 'b' under 'c'");
  EXPECT_EQ(quoted_list(names, ", ", 2), "'a', 'b', …");
}

}  // namespace
