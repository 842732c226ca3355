#include "dynamics_core/families.hpp"

namespace dynamics_core {

RD_FAMILIES(, float)
template class Dynamics<float>;

}  // namespace dynamics_core
