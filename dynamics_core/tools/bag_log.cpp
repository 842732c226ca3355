// SPDX-License-Identifier: Apache-2.0
#include "bag_log.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "dynamics_core/text.hpp"

namespace dynamics_core::tools {

namespace {

namespace fs = std::filesystem;
using identification::Log;
using identification::LogError;

[[nodiscard]] bool is_bag_file(const fs::path& path) {
  return path.extension() == ".mcap" || path.extension() == ".db3";
}

[[nodiscard]] bool is_bag(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return fs::exists(path, error) && is_bag_file(path);
  if (fs::exists(path / "metadata.yaml", error)) return true;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error))
    if (is_bag_file(entry.path())) return true;
  return false;
}

/// It stands beside the executable where both are built or installed with ROS.
[[nodiscard]] std::string find_converter(const std::string& bag) {
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {"", "../lib/realtime_dynamics", "../../lib/realtime_dynamics"}) {
    const fs::path program = here / place / "bag_to_csv";
    if (fs::exists(program, error)) return program.string();
  }
  throw LogError(bag, "is a rosbag2 bag, and bag_to_csv, which reads them, was not built",
                 "build realtime_dynamics where ROS 2 and rosbag2_cpp are installed, or write the "
                 "bag as CSV (docs/identify.md)");
}

/// The reading end of a pipe that closes itself.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0)
      throw std::runtime_error(std::string("no pipe: ") + std::strerror(errno));
  }
  ~Pipe() {
    close(ends_[0]);
    close_writing_end();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  [[nodiscard]] int reading_end() const { return ends_[0]; }
  [[nodiscard]] int writing_end() const { return ends_[1]; }
  void close_writing_end() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  std::array<int, 2> ends_{};
};

/// Reads both until both have ended, in whichever order there is something.
void drain(const Pipe& first, std::string& first_text, const Pipe& second,
           std::string& second_text) {
  std::array<pollfd, 2> waiting = {
      {{first.reading_end(), POLLIN, 0}, {second.reading_end(), POLLIN, 0}}};
  const std::array<std::string*, 2> texts = {&first_text, &second_text};
  std::vector<char> part(1U << 16U);
  while (waiting[0].fd >= 0 || waiting[1].fd >= 0) {
    if (poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) return;
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].fd < 0 || waiting[i].revents == 0) continue;
      const ssize_t got = read(waiting[i].fd, part.data(), part.size());
      if (got > 0) texts[i]->append(part.data(), static_cast<std::size_t>(got));
      if (got == 0 || (got < 0 && errno != EINTR)) waiting[i].fd = -1;
    }
  }
}

struct Conversion {
  int code = -1;  ///< of the exit; −1: ended by a signal
  std::string csv;
  std::vector<std::string> remarks;
};

[[nodiscard]] Conversion convert(const std::string& bag) {
  std::string program = find_converter(bag);
  std::string argument = bag;
  std::array<char*, 3> argv = {program.data(), argument.data(), nullptr};
  Pipe out;
  Pipe err;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out.writing_end(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.writing_end(), STDERR_FILENO);
  pid_t child = 0;
  const int error = posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw std::runtime_error(program +
                             ", which reads bags, cannot be started: " + std::strerror(error));
  out.close_writing_end();
  err.close_writing_end();
  Conversion conversion;
  std::string remarks;
  drain(out, conversion.csv, err, remarks);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) conversion.code = WEXITSTATUS(status);
  for (std::string& line : text::split(remarks, '\n'))
    if (!line.empty()) conversion.remarks.push_back(std::move(line));
  return conversion;
}

}  // namespace

Log read_log_or_bag(const std::string& path) {
  if (!is_bag(path)) return identification::read_log(path);
  const Conversion conversion = convert(path);
  const std::string last = conversion.remarks.empty() ? "" : conversion.remarks.back();
  constexpr int could_not_be_loaded = 127;  // the loader's
  if (conversion.code == could_not_be_loaded)
    throw LogError(path, "bag_to_csv, which reads bags, lacks a library (" + last + ")",
                   "source ROS 2 first: source /opt/ros/$ROS_DISTRO/setup.bash");
  if (conversion.code == 1 && !last.empty()) throw std::runtime_error(last);
  if (conversion.code != 0)
    throw LogError(path, "the bag's reader, bag_to_csv, broke down", "run it by itself");
  Log log = identification::parse_log(conversion.csv, path);
  log.notes.insert(log.notes.begin(), conversion.remarks.begin(), conversion.remarks.end());
  return log;
}

}  // namespace dynamics_core::tools
