// SPDX-License-Identifier: Apache-2.0
#include "page.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <vector>

namespace dynamics_core::tools {

namespace {

namespace fs = std::filesystem;

/// The scripts stand beside the executable in a build and under share/ once installed.
[[nodiscard]] fs::path find_script(const std::string& name) {
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {"", "../share/realtime_dynamics", "../../share/realtime_dynamics"}) {
    fs::path script = here / place / name;
    if (fs::exists(script, error)) return script;
  }
  throw std::runtime_error(name + ", which draws the page, is not where it was installed");
}

/// The system's own Python has the system's matplotlib, whatever PATH says.
void run_python(const std::vector<std::string>& arguments) {
  std::string python = access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3";
  std::vector<char*> argv = {python.data()};
  std::vector<std::string> words = arguments;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  if (const int error =
          posix_spawnp(&child, python.c_str(), nullptr, nullptr, argv.data(), environ);
      error != 0)
    throw std::runtime_error(std::string("python3, which draws the page, cannot be started: ") +
                             std::strerror(error) + "; install python3-matplotlib");
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error("the page was not drawn; its data are in " + arguments[1]);
}

}  // namespace

void draw_page(const std::string& script, const std::string& data, const std::string& page) {
  run_python({find_script(script).string(), data, page});
}

}  // namespace dynamics_core::tools
