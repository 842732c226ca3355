// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace dynamics_core::text {
namespace {

constexpr std::string_view blanks = " \t\r\n";

template <class... Format>
std::string format(double value, Format... how) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, how...).ptr;
  return {buffer.data(), end};
}

}  // namespace

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == text.npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(blanks) + 1 - first));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  if (text.find_first_not_of(blanks) == text.npos) return parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> found;
  for (std::size_t begin = text.find_first_not_of(blanks), end; begin != text.npos;
       begin = text.find_first_not_of(blanks, end)) {
    end = std::min(text.find_first_of(blanks, begin), text.size());
    found.emplace_back(text.substr(begin, end - begin));
  }
  return found;
}

std::string_view detail::without_plus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

std::optional<double> parse_number(std::string_view text) {
  text = detail::without_plus(text);
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    const bool tiny = text.find("e-") != text.npos || text.find("E-") != text.npos;
    return tiny ? 0.0 : std::numeric_limits<double>::infinity();
  }
  return value;
}

std::optional<double> parse_finite(std::string_view text) {
  const std::optional<double> value = parse_number(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::string to_text(double value) { return format(value); }

std::string to_short_text(double value) { return format(value, std::chars_format::general, 6); }

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

std::string printable(std::string_view text) {
  constexpr const char* digits = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    const bool second_set = c == 0xC2U && next >= 0x80U && next < 0xA0U;  // U+0080 to U+009F
    if (c >= 0x20U && c != 0x7FU && !second_set) {
      out += text[i];
      continue;
    }
    if (second_set) c = static_cast<unsigned char>(next), ++i;
    out += std::string("\\x") + digits[c >> 4U] + digits[c & 0xFU];
  }
  return out;
}

std::string shortened(std::string_view text) {
  constexpr std::size_t longest = 80;
  std::string out = printable(text.substr(0, 4 * longest));
  if (out.size() <= longest) return out;
  std::size_t cut = longest;
  while (cut > 0 && (static_cast<unsigned char>(out[cut]) & 0xC0U) == 0x80U) --cut;  // UTF-8
  return out.substr(0, cut) + "…";
}

std::string quoted(const std::string& text) { return "'" + shortened(text) + "'"; }

std::string alternatives(std::vector<std::string> names) {
  if (names.size() < 2) return joined(names);
  const std::string last = names.back();
  names.pop_back();
  return joined(names) + " or " + last;
}

std::string quoted_list(const std::vector<std::string>& names, std::string_view separator,
                        std::size_t most) {
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < names.size() && i < most; ++i) shown.push_back(quoted(names[i]));
  if (names.size() > most) shown.emplace_back("…");
  return joined(shown, separator);
}

}  // namespace dynamics_core::text
