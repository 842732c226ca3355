// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

namespace support {

/// Runs `action` in a child process in which every system call but exit (and read and write) kills.
/// Returns the child's wait status, or nothing where the machine does not allow such a process.
template <class Action>
std::optional<int> run_without_system_calls(Action action) {
  constexpr int refused = 77;
  const pid_t child = fork();
  if (child == 0) {
    if (prctl(PR_SET_SECCOMP, 1 /* SECCOMP_MODE_STRICT */) != 0) _exit(refused);
    action();
    syscall(SYS_exit, 0);  // exit_group, which _exit() would call, is not allowed
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return std::nullopt;
  if (WIFEXITED(status) && WEXITSTATUS(status) == refused) return std::nullopt;
  return status;
}

}  // namespace support
