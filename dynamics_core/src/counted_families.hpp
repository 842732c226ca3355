// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The families in the scalar that records, compiled once for those who count and who generate code.

#include "dynamics_core/counting.hpp"
#include "dynamics_core/families.hpp"

namespace dynamics_core {

// Those that all need; the rest is compiled where it is used.
extern template class Tree<Counted>;
extern template class NewtonEuler<Counted>;
extern template class Denoc<Counted>;
extern template class GibbsAppell<Counted>;
extern template class CompositeBody<Counted>;
extern template class ArticulatedBody<Counted>;
extern template class Udut<Counted>;
extern template class Cholesky<Counted>;

}  // namespace dynamics_core
