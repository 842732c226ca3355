// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a library of kernels hands to the core: the algorithms compiled for one instruction set.
///
/// The text of the algorithms is the same in all of them, and so are the names of the functions that
/// it becomes. Therefore each set is a shared library of its own that shows nothing but its table,
/// and what goes through the table does not depend on how Eigen aligns and allocates (VectorX and
/// its kin in scalar.hpp).

#include <optional>

#include "../src/batch_kernel.hpp"
#include "dynamics_core/families.hpp"

namespace dynamics_core {

struct Kernels {
  const char* name;
  Dynamics<double>::Choice (*choose_double)(const Tree<double>&, std::optional<Method>) noexcept;
  Dynamics<float>::Choice (*choose_float)(const Tree<float>&, std::optional<Method>) noexcept;
  /// None where there are no lanes; then that of the baseline serves.
  std::unique_ptr<BatchKernel> (*make_batch_kernel)(const Model&);
};

/// Those in use, see instruction_set().
[[nodiscard]] const Kernels& kernels();

/// The table of the instruction set that this is compiled for.
[[nodiscard]] inline Kernels kernels_here(const char* name) noexcept {
  return {name, &choose_here<double>, &choose_here<float>,
#ifdef RD_HAVE_XSIMD
          &make_batch_kernel
#else
          nullptr
#endif
  };
}

}  // namespace dynamics_core

extern "C" {
const dynamics_core::Kernels* realtime_dynamics_kernels_x86_64_v3() noexcept;
const dynamics_core::Kernels* realtime_dynamics_kernels_x86_64_v4() noexcept;
}
