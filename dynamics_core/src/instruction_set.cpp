// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/instruction_set.hpp"

#include <cstdlib>

#include "../kernels/kernels.hpp"
#include "dynamics_core/config_error.hpp"
#include "dynamics_core/text.hpp"

namespace dynamics_core {

namespace {

#if defined(__x86_64__)
constexpr const char* baseline_name = "x86-64";
#elif defined(__aarch64__)
constexpr const char* baseline_name = "aarch64";
#else
constexpr const char* baseline_name = "generic";
#endif

/// The baseline is compiled into the core itself.
[[nodiscard]] const Kernels* baseline() noexcept {
  static const Kernels kernels = kernels_here(baseline_name);
  return &kernels;
}

/// Of the features that a level names, those that no processor has without the others.
[[nodiscard]] std::vector<const Kernels*> runnable() {
  std::vector<const Kernels*> found{baseline()};
#ifdef RD_X86_64_KERNELS
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (v3) found.push_back(realtime_dynamics_kernels_x86_64_v3());
  if (v4) found.push_back(realtime_dynamics_kernels_x86_64_v4());
#endif
  return found;
}

[[nodiscard]] const Kernels& pick() {
  const std::vector<const Kernels*> found = runnable();
  const char* const wanted = std::getenv("DYNAMICS_ISA");
  if (wanted == nullptr || *wanted == '\0') return *found.back();
  for (const Kernels* kernels : found)
    if (std::string(wanted) == kernels->name) return *kernels;
  throw ConfigError(
      "DYNAMICS_ISA", text::quoted(wanted),
      "name one of " + text::alternatives(instruction_sets()) + ", or none for the best");
}

}  // namespace

const Kernels& kernels() {
  static const Kernels& picked = pick();
  return picked;
}

std::string instruction_set() { return kernels().name; }

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const Kernels* kernels : runnable()) names.emplace_back(kernels->name);
  return names;
}

template <>
Dynamics<double>::Choose* chooser<double>() {
  return kernels().choose_double;
}
template <>
Dynamics<float>::Choose* chooser<float>() {
  return kernels().choose_float;
}

}  // namespace dynamics_core
