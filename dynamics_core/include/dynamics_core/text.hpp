// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Text in and out: what loaders, settings, tools and messages share. Nothing here depends on the
/// locale, so that a file or a command means the same on every machine.

#include <charconv>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dynamics_core::text {

// --- Parts ---------------------------------------------------------------------------------------

/// Without the blanks around it.
[[nodiscard]] std::string trimmed(std::string_view text);
/// What stands between the separators, trimmed. A blank text has no parts; "a," has two.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator = ',');
/// What stands between blanks.
[[nodiscard]] std::vector<std::string> words(std::string_view text);

// --- Numbers -------------------------------------------------------------------------------------

/// Reads all of `text` as one number, with a decimal point. "inf", "nan" and numbers too large for
/// a double give a non-finite result, anything else that is no number gives none.
[[nodiscard]] std::optional<double> parse_number(std::string_view text);
/// The same, and none for what is not finite either.
[[nodiscard]] std::optional<double> parse_finite(std::string_view text);
/// Reads all of `text` as one whole number that `Integer` can hold.
template <class Integer>
[[nodiscard]] std::optional<Integer> parse_whole(std::string_view text);

/// The shortest text that reads back as the same number.
[[nodiscard]] std::string to_text(double value);
/// The same with six significant digits, for computed values.
[[nodiscard]] std::string to_short_text(double value);

/// A field of a CSV file, in double quotes where it has to be.
[[nodiscard]] std::string csv_field(const std::string& text);

// --- Messages ------------------------------------------------------------------------------------

/// Fit for a terminal and a log: control characters, which move the cursor or begin lines of their
/// own, are written as \x1b.
[[nodiscard]] std::string printable(std::string_view text);
/// The same, cut where it is too long for a message.
[[nodiscard]] std::string shortened(std::string_view text);
/// The same in single quotes. Where it took a view, std::quoted would be preferred to it.
[[nodiscard]] std::string quoted(const std::string& text);

/// One after another, for anything that holds strings.
template <class Strings>
[[nodiscard]] std::string joined(const Strings& strings, std::string_view separator = ", ");
/// "a, b or c"
[[nodiscard]] std::string alternatives(std::vector<std::string> names);
/// One after another, each in quotes; "…" stands for those beyond the first `most`.
[[nodiscard]] std::string quoted_list(const std::vector<std::string>& names,
                                      std::string_view separator = ", ",
                                      std::size_t most = std::numeric_limits<std::size_t>::max());

// --- Templates -----------------------------------------------------------------------------------

namespace detail {

/// std::from_chars knows no plus sign.
[[nodiscard]] std::string_view without_plus(std::string_view text);

}  // namespace detail

template <class Integer>
std::optional<Integer> parse_whole(std::string_view text) {
  text = detail::without_plus(text);
  const char* const end = text.data() + text.size();
  Integer value{};
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

template <class Strings>
std::string joined(const Strings& strings, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto& string : strings) {
    if (!first) out += separator;
    first = false;
    out += string;
  }
  return out;
}

}  // namespace dynamics_core::text
