#include "dynamics_core/methods.hpp"

namespace dynamics_core {

template Algorithms<double> default_algorithms(const Workspace<double>&) noexcept;
template Algorithms<double> algorithms(const Workspace<double>&, Method) noexcept;
template Algorithms<float> default_algorithms(const Workspace<float>&) noexcept;
template Algorithms<float> algorithms(const Workspace<float>&, Method) noexcept;

}  // namespace dynamics_core
