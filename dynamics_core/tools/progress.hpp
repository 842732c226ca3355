// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <iostream>
#include <string>

namespace dynamics_core::tools {

/// A bar on stderr, if somebody is watching and nothing else is written to that terminal.
class Progress {
 public:
  Progress(double whole, bool to_stdout)
      : whole_(whole),
        visible_(isatty(STDERR_FILENO) != 0 && !(to_stdout && isatty(STDOUT_FILENO) != 0)) {}
  ~Progress() {
    if (visible_) std::cerr << "\r\x1b[K" << std::flush;
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `note` says what is going on.
  void show(double done, const char* note = "") {
    const int percent = static_cast<int>(100.0 * done / whole_);
    if (!visible_ || percent == percent_) return;
    percent_ = percent;
    constexpr int width = 40;
    const std::string bar(static_cast<std::size_t>(width * percent / 100), '#');
    std::cerr << "\r[" << bar << std::string(width - bar.size(), ' ') << "] " << percent << " % "
              << note << "\x1b[K" << std::flush;
  }

 private:
  double whole_;
  bool visible_;
  int percent_ = -1;
};

}  // namespace dynamics_core::tools
