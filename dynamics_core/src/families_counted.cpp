// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/counted_families.hpp"

namespace dynamics_core {

Counted::Tape& Counted::tape() {
  thread_local Tape tape;
  return tape;
}

RD_FAMILIES(, Counted)
template class Dynamics<Counted>;

}  // namespace dynamics_core
