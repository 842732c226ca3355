// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The instructions that the algorithms run on. The library carries them compiled for several, and
/// takes at its first use the widest that the processor has. Programs may be compiled for any other.

#include <string>
#include <vector>

namespace dynamics_core {

/// The name of the one in use: `x86-64`, `x86-64-v3` (AVX2, FMA) or `x86-64-v4` (AVX-512); elsewhere
/// `aarch64` or `generic`. The environment variable DYNAMICS_ISA asks for another one of
/// instruction_sets(); it is read once. Throws ConfigError where it names none of them.
[[nodiscard]] std::string instruction_set();

/// Those that the library has and the processor can run, the widest last.
[[nodiscard]] std::vector<std::string> instruction_sets();

}  // namespace dynamics_core
