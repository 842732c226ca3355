// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/families.hpp"

namespace dynamics_core {

RD_FAMILIES(, float)
template class Dynamics<float>;

}  // namespace dynamics_core
