#include "dynamics_core/loops.hpp"

namespace dynamics_core {

template class Loops<double>;
template class Loops<float>;

}  // namespace dynamics_core
