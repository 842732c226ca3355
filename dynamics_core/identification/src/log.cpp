// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/identification/log.hpp"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <string_view>

#include "dynamics_core/identification/signals.hpp"
#include "dynamics_core/text.hpp"

namespace dynamics_core::identification {

namespace {

namespace fs = std::filesystem;
/// Half an hour of a seven-joint arm at 1 kHz. More does not make a better model.
constexpr std::size_t largest = 512U << 20U;

[[noreturn]] void refuse_size(const std::string& path) {
  throw LogError(path, "is larger than 512 MB of text",
                 "give a part of it: one to five minutes of varied motion are enough");
}

/// zlib reads plain files as they are. `whole` is false where a compressed one breaks off.
[[nodiscard]] std::string read_text(const std::string& path, bool& whole) {
  std::error_code error;
  if (fs::is_directory(path, error))
    throw LogError(path, "is a folder and not a log", "name a CSV file in it, or a rosbag2 bag");
  if (!fs::exists(path, error)) throw LogError(path, "there is no such file", "check the path");
  if (!fs::is_regular_file(path, error))
    throw LogError(path, "is a device or a pipe and not a file", "write its text to a CSV file");
  if (fs::file_size(path, error) > largest) refuse_size(path);
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw LogError(path, "cannot be opened", "check that it may be read");
  std::string text;
  std::string part(1U << 20U, '\0');
  int got = 0;
  while ((got = gzread(file.get(), part.data(), static_cast<unsigned>(part.size()))) > 0) {
    text.append(part, 0, static_cast<std::size_t>(got));
    if (text.size() > largest) refuse_size(path);
  }
  if (got < 0 && text.empty())
    throw LogError(path, "is compressed but damaged", "compress it again");
  int error_number = Z_OK;
  (void)gzerror(file.get(), &error_number);
  whole = error_number == Z_OK;
  return text;
}

[[nodiscard]] double number(std::string_view cell) {
  while (!cell.empty() && cell.front() == ' ') cell.remove_prefix(1);
  while (!cell.empty() && cell.back() == ' ') cell.remove_suffix(1);
  const std::optional<double> value = text::parse_number(cell);
  return value && std::isfinite(*value) ? *value : no_number;
}

/// The next line, without its end; `text` goes on behind it.
[[nodiscard]] std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

/// Where the columns of a log are; −1: there is none.
struct Columns {
  std::size_t count = 0;
  int time = -1;
  std::vector<int> q, tau;  ///< by joint
};

class Reader {
 public:
  Reader(std::string_view text, const std::string& source) : text_(text) { log_.source = source; }

  [[nodiscard]] Log read() {
    read_header();
    read_rows();
    return std::move(log_);
  }

 private:
  [[noreturn]] void refuse(const std::string& problem, const std::string& remedy) const {
    throw LogError(log_.source, problem, remedy);
  }

  void read_header() {
    std::string_view line = take_line(text_);
    if (line.substr(0, 3) == "\xEF\xBB\xBF") line.remove_prefix(3);
    const std::vector<std::string> names = text::split(line);
    columns_.count = names.size();
    std::vector<std::string> others;
    const auto find = [&](const std::string& name) {
      const auto it = std::find(names.begin(), names.end(), name);
      if (it != names.end() && std::find(it + 1, names.end(), name) != names.end())
        refuse("column '" + name + "' is there twice", "remove one of them");
      return it == names.end() ? -1 : static_cast<int>(it - names.begin());
    };
    columns_.time = find("time");
    for (const std::string& name : names) {
      if (name.rfind("q_", 0) == 0) {
        const std::string joint = name.substr(2);
        const int tau = find("tau_" + joint);
        const int current = find("current_" + joint);
        if (tau >= 0 && current >= 0)
          refuse("joint '" + joint + "' has a torque and a current", "remove one of the columns");
        log_.joints.push_back(joint);
        log_.current.push_back(current >= 0);
        columns_.q.push_back(find(name));
        columns_.tau.push_back(std::max(tau, current));
      } else if (name != "time" && name.rfind("v_", 0) != 0 && name.rfind("tau_", 0) != 0 &&
                 name.rfind("current_", 0) != 0) {
        others.push_back(name);
      }
    }
    if (log_.joints.empty() && columns_.count == 1 && line.find(';') != line.npos)
      refuse("its columns are separated by semicolons", "separate them by commas");
    if (log_.joints.empty())
      refuse("its first line names no column q_<joint>",
             "write the names first: time,q_<joint>,…,tau_<joint>,… (or current_<joint>)");
    if (std::all_of(columns_.tau.begin(), columns_.tau.end(), [](int c) { return c < 0; }))
      refuse("it has no efforts", "add a column tau_<joint> (N·m) or current_<joint> (A)");
    if (!others.empty())
      log_.notes.push_back("columns of unknown names are not used: " +
                           text::quoted_list(others, ", ", 4));
  }

  void read_rows() {
    const std::size_t joints = log_.joints.size();
    std::vector<double> cells;
    std::vector<double> row;
    std::vector<double> rows;
    long broken = 0;
    while (!text_.empty()) {
      const std::string_view line = take_line(text_);
      if (line.find_first_not_of(" \t") == line.npos) continue;
      split(line, cells);
      if (cells.size() != columns_.count) {
        ++broken;
        if (text_.empty()) log_.notes.emplace_back("the last line breaks off and was left out");
        continue;
      }
      if (columns_.time >= 0) log_.time.push_back(cells[static_cast<std::size_t>(columns_.time)]);
      for (std::size_t j = 0; j < joints; ++j) rows.push_back(cell(cells, columns_.q[j]));
      for (std::size_t j = 0; j < joints; ++j) rows.push_back(cell(cells, columns_.tau[j]));
    }
    const auto samples = static_cast<Eigen::Index>(rows.size() / (2 * joints));
    if (samples == 0) refuse("it has no samples", "record the robot while it moves");
    if (broken > 1)
      log_.notes.push_back(std::to_string(broken) +
                           " lines have not as many cells as the first "
                           "one and were left out");
    using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const auto n = static_cast<Eigen::Index>(joints);
    const Eigen::Map<const RowMajor> all(rows.data(), samples, 2 * n);
    log_.q = all.leftCols(n);
    log_.tau = all.rightCols(n);
  }

  static void split(std::string_view line, std::vector<double>& cells) {
    cells.clear();
    while (true) {
      const std::size_t comma = line.find(',');
      cells.push_back(number(line.substr(0, comma)));
      if (comma == line.npos) return;
      line.remove_prefix(comma + 1);
    }
  }
  [[nodiscard]] static double cell(const std::vector<double>& cells, int column) {
    return column < 0 ? no_number : cells[static_cast<std::size_t>(column)];
  }

  std::string_view text_;
  Columns columns_;
  Log log_;
};

}  // namespace

Log parse_log(const std::string& text, const std::string& source) {
  return Reader(text, source).read();
}

Log read_log(const std::string& path) {
  bool whole = true;
  Log log = parse_log(read_text(path, whole), path);
  if (!whole) log.notes.emplace_back("the compressed file breaks off; what is there was taken");
  return log;
}

}  // namespace dynamics_core::identification
