// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/families.hpp"
#include "dynamics_core/loops.hpp"

namespace dynamics_core {

RD_FAMILIES(, float)
template class Dynamics<float>;
template class Loops<float>;

}  // namespace dynamics_core
