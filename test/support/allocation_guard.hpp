// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The guard that `dynamics track` uses, too.

#include "../../dynamics_core/tools/allocation_guard.hpp"

namespace support {

using dynamics_core::tools::AllocationGuard;
using dynamics_core::tools::allocations_are_counted;

}  // namespace support
