#include "dynamics_core/methods.hpp"

namespace dynamics_core {

RD_METHODS(, double)
RD_METHODS(, float)

}  // namespace dynamics_core
