// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/trajectory.hpp"

#include <sstream>

#include "dynamics_core/text.hpp"
#include "load_common.hpp"

namespace dynamics_core::trajectory {
namespace {

std::vector<double> numbers(const std::vector<std::string>& fields, const std::string& source,
                            const std::string& element) {
  std::vector<double> row;
  for (const std::string& field : fields) {
    const std::optional<double> value = text::parse_finite(field);
    if (!value) {
      throw ModelError(source, element, text::quoted(field) + " is not a finite number",
                       "write the time and a position for each joint, separated by commas");
    }
    row.push_back(*value);
  }
  return row;
}

}  // namespace

Waypoints read_waypoints(const std::string& text, const std::string& source) {
  dynamics_core::detail::check_size(text, source);
  Waypoints out;
  std::vector<std::vector<double>> rows;
  std::istringstream stream(text);
  std::string line;
  for (int at = 1; std::getline(stream, line); ++at) {
    line = text::trimmed(line);
    if (line.empty() || line[0] == '#') continue;
    const std::string element = "line " + std::to_string(at);
    const std::vector<std::string> fields = text::split(line);
    if (rows.empty() && out.joints.empty() && !text::parse_number(fields[0])) {
      out.joints.assign(fields.begin() + 1, fields.end());
      continue;
    }
    rows.push_back(numbers(fields, source, element));
    const std::size_t columns = rows.size() > 1      ? rows[0].size()
                                : out.joints.empty() ? fields.size()
                                                     : out.joints.size() + 1;
    if (fields.size() != columns || columns < 2) {
      throw ModelError(source, element, std::to_string(fields.size()) + " columns",
                       "write the time and a position for each joint, as many on every line");
    }
    if (rows.size() > 1 && !(rows[rows.size() - 2][0] < rows.back()[0])) {
      throw ModelError(source, element, "the time " + fields[0] + " does not rise",
                       "sort the waypoints by time and remove duplicates");
    }
  }
  if (rows.size() < 2) {
    throw ModelError(source, "file", std::to_string(rows.size()) + " waypoints",
                     "write two or more");
  }
  const auto n = static_cast<Eigen::Index>(rows.size());
  out.times.resize(n);
  out.positions.resize(n, static_cast<Eigen::Index>(rows[0].size()) - 1);
  for (Eigen::Index i = 0; i < n; ++i) {
    const std::vector<double>& row = rows[static_cast<std::size_t>(i)];
    out.times[i] = row[0];
    for (Eigen::Index j = 0; j < out.positions.cols(); ++j)
      out.positions(i, j) = row[static_cast<std::size_t>(j) + 1];
  }
  return out;
}

}  // namespace dynamics_core::trajectory
