// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The mass matrix by composite rigid bodies (Featherstone & Orin 2000, §3.2).

#include <vector>

#include "dynamics_core/joint_space.hpp"
#include "dynamics_core/tree.hpp"

namespace dynamics_core {

template <class S>
class CompositeBody {
 public:
  /// The tree has to outlive this.
  explicit CompositeBody(Tree<S>& tree)
      : tree_(&tree), composite_(static_cast<std::size_t>(tree.nb())) {
    if (tree.has_mimic()) H_.setZero(tree.nb(), tree.nb());
  }

  /// M(q), nv × nv, both triangles.
  [[nodiscard]] StatusOf<S> mass_matrix(VectorIn<S> q, MatrixOut<S> M) noexcept;

  /// The same where the tree already is, for the families that build on this one.
  void mass_matrix_here(MatrixOut<S> M) noexcept;

 private:
  void fold_mimic_joints(MatrixOut<S>& M) const noexcept;

  Tree<S>* tree_;
  std::vector<RigidInertia<S>> composite_;
  MatrixX<S> H_;  ///< M by bodies, nb × nb, where there are mimic joints; else empty
};

// --- Implementation ------------------------------------------------------------------------------

/// Mimic joints into the coordinates that they follow.
template <class S>
void CompositeBody<S>::fold_mimic_joints(MatrixOut<S>& M) const noexcept {
  const Body<S>* body = tree_->bodies();
  M.setZero();
  for (int i = 0; i < tree_->nb(); ++i) {
    for (int j = i; j >= 0; j = body[j].parent) {
      const S x = body[i].multiplier * body[j].multiplier * H_(j, i);
      M(body[i].dof, body[j].dof) += x;
      if (i != j) M(body[j].dof, body[i].dof) += x;
    }
  }
}

template <class S>
void CompositeBody<S>::mass_matrix_here(MatrixOut<S> M) noexcept {
  const Body<S>* body = tree_->bodies();
  RigidInertia<S>* IC = composite_.data();
  const int n = tree_->nb();
  for (int i = 0; i < n; ++i) IC[i] = body[i].inertia;
  // Without mimic joints the numbers of the bodies are those of the coordinates.
  MatrixOut<S> H = tree_->has_mimic() ? MatrixOut<S>(H_) : M;
  if (tree_->branched()) H.setZero();
  const Eigen::Index stride = H.outerStride();
  for (int i = n - 1; i >= 0; --i) {
    const Body<S>& b = body[i];
    S* column = H.data() + i * stride;
    S* row = H.data() + i;
    Force<S> F = unit_force<S>(b, IC[i]);
    column[i] = along<S>(b, F) + b.rotor;
    const Body<S>* from = &b;
    for (int j = b.parent; j >= 0; j = from->parent) {  // Eq. 10, up to the base
      F = from->X.to_parent(F);
      from = body + j;
      column[j] = row[j * stride] = along<S>(*from, F);
    }
    if (b.parent >= 0) IC[b.parent] += b.X.to_parent(IC[i]);  // Eq. 9
  }
  if (tree_->has_mimic()) fold_mimic_joints(M);
}

template <class S>
StatusOf<S> CompositeBody<S>::mass_matrix(VectorIn<S> q, MatrixOut<S> M) noexcept {
  const StatusOf<S> status = check_and_move<S>(*tree_, q, M);
  if (failed(status)) return status;
  mass_matrix_here(M);
  return merged(status, diagonal_status<S>(M));
}

}  // namespace dynamics_core
