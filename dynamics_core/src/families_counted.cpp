// SPDX-License-Identifier: Apache-2.0
#include "counted_families.hpp"

namespace dynamics_core {

template class Tree<Counted>;
template class NewtonEuler<Counted>;
template class Denoc<Counted>;
template class GibbsAppell<Counted>;
template class CompositeBody<Counted>;
template class ArticulatedBody<Counted>;
template class Udut<Counted>;
template class Cholesky<Counted>;

}  // namespace dynamics_core
