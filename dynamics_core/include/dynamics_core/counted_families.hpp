// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The families in the scalar that counts and records, compiled once into the library.

#include "dynamics_core/counting.hpp"
#include "dynamics_core/families.hpp"

namespace dynamics_core {

RD_FAMILIES(extern, Counted)
extern template class Dynamics<Counted>;

}  // namespace dynamics_core
