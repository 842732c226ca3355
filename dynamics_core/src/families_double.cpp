// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/families.hpp"
#include "dynamics_core/loops.hpp"

namespace dynamics_core {

RD_FAMILIES(, double)
template class Dynamics<double>;
template class Loops<double>;

}  // namespace dynamics_core
