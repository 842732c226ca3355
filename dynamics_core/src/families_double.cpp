// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/families.hpp"

namespace dynamics_core {

RD_FAMILIES(, double)
template class Dynamics<double>;

}  // namespace dynamics_core
