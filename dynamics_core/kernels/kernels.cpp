// SPDX-License-Identifier: Apache-2.0
/// Compiled once for each instruction set beyond the baseline: RD_KERNELS is the name of its function,
/// RD_INSTRUCTION_SET its own.
#include "kernels.hpp"

const dynamics_core::Kernels* RD_KERNELS() noexcept {
  static const dynamics_core::Kernels kernels = dynamics_core::kernels_here(RD_INSTRUCTION_SET);
  return &kernels;
}
