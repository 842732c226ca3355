// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/loops.hpp"

namespace dynamics_core {

template class Loops<double>;
template class Loops<float>;

}  // namespace dynamics_core
