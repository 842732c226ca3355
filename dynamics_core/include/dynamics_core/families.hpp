// SPDX-License-Identifier: Apache-2.0
#pragma once

/// All families of algorithms, and the one place that knows which of them provides what. A new
/// family is its own header and an entry here.

#include <algorithm>

#include "dynamics_core/articulated_body.hpp"
#include "dynamics_core/cholesky.hpp"
#include "dynamics_core/composite_body.hpp"
#include "dynamics_core/denoc.hpp"
#include "dynamics_core/derivatives.hpp"
#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/gibbs_appell.hpp"
#include "dynamics_core/kinematics.hpp"
#include "dynamics_core/newton_euler.hpp"
#include "dynamics_core/operational_space.hpp"
#include "dynamics_core/regressor.hpp"
#include "dynamics_core/udut.hpp"

namespace dynamics_core {

/// A tree, and every family at work on it.
template <class S>
struct Families {
  explicit Families(const Model& model) : Families(std::make_unique<Tree<S>>(model)) {}
  /// A robot of its own, with the same payloads, gravity and external forces.
  Families(const Families& other) : Families(std::make_unique<Tree<S>>(*other.owned_tree)) {}
  Families(Families&&) noexcept = default;
  Families& operator=(const Families&) = delete;
  Families& operator=(Families&&) = delete;
  ~Families() = default;
  explicit Families(std::unique_ptr<Tree<S>> robot)
      : owned_tree(std::move(robot)),
        tree(*owned_tree),
        newton_euler(tree),
        denoc(tree),
        gibbs_appell(tree),
        composite_body(tree),
        articulated_body(tree),
        udut(tree),
        cholesky(tree),
        kinematics(tree),
        operational_space(tree),
        regressor(tree),
        derivatives(tree) {}

  std::unique_ptr<Tree<S>> owned_tree;  ///< so that the families may move
  Tree<S>& tree;
  NewtonEuler<S> newton_euler;
  Denoc<S> denoc;
  GibbsAppell<S> gibbs_appell;
  CompositeBody<S> composite_body;
  ArticulatedBody<S> articulated_body;
  Udut<S> udut;
  Cholesky<S> cholesky;
  Kinematics<S> kinematics;
  OperationalSpace<S> operational_space;
  Regressor<S> regressor;
  Derivatives<S> derivatives;
};

// --- Compiled into the library -------------------------------------------------------------------
// A program that includes this header takes the families in double and float from there.

// NOLINTBEGIN(bugprone-macro-parentheses)
#define RD_FAMILIES(keyword, S)               \
  keyword template class Tree<S>;             \
  keyword template class NewtonEuler<S>;      \
  keyword template class Denoc<S>;            \
  keyword template class GibbsAppell<S>;      \
  keyword template class CompositeBody<S>;    \
  keyword template class ArticulatedBody<S>;  \
  keyword template class Udut<S>;             \
  keyword template class Cholesky<S>;         \
  keyword template class Kinematics<S>;       \
  keyword template class OperationalSpace<S>; \
  keyword template class Regressor<S>;        \
  keyword template class Derivatives<S>;
// NOLINTEND(bugprone-macro-parentheses)
#ifndef RD_KERNELS  // a library of kernels has its own
RD_FAMILIES(extern, double)
RD_FAMILIES(extern, float)
#endif

// --- Who provides what ---------------------------------------------------------------------------

/// The function that is called for each quantity.
template <class S>
struct Dynamics<S>::Choice {
  using F = Families<S>;
  using In = VectorIn<S>;
  using Out = VectorOut<S>;
  using Matrix = MatrixOut<S>;
  using Result = StatusOf<S>;

  Result (*inverse_dynamics)(F&, In, In, In, Out&) noexcept;
  Result (*bias)(F&, In, In, Out&) noexcept;
  Result (*velocity_effort)(F&, In, In, Out&) noexcept;
  Result (*gravity)(F&, In, Out&) noexcept;
  Result (*mass_matrix)(F&, In, Matrix&) noexcept;
  Result (*coriolis)(F&, In, In, Matrix&) noexcept;
  Result (*coriolis_christoffel)(F&, In, In, Matrix&) noexcept;
  Result (*forward_dynamics)(F&, In, In, In, Out&) noexcept;
  Result (*inverse_mass_matrix)(F&, In, Matrix&) noexcept;
  Result (*jacobian)(F&, In, int, Matrix&, const Vec3<S>&) noexcept;
  Result (*inverse_dynamics_derivatives)(F&, In, In, In, Matrix&, Matrix&, Matrix&) noexcept;
  Result (*forward_dynamics_derivatives)(F&, In, In, In, Matrix&, Matrix&, Matrix&) noexcept;

  /// A member function of a family as a plain function.
  template <auto family, auto function, class... Arguments>
  [[nodiscard]] static Result call(F& families, Arguments... arguments) noexcept {
    return ((families.*family).*function)(arguments...);
  }
  template <auto family, auto function>
  [[nodiscard]] static constexpr auto in_in_in_out() noexcept {
    return &call<family, function, In, In, In, Out&>;
  }
  template <auto family, auto function>
  [[nodiscard]] static constexpr auto in_in_out() noexcept {
    return &call<family, function, In, In, Out&>;
  }
  template <auto family, auto function>
  [[nodiscard]] static constexpr auto in_in_matrix() noexcept {
    return &call<family, function, In, In, Matrix&>;
  }
  template <auto family, auto function>
  [[nodiscard]] static constexpr auto in_in_in_matrices() noexcept {
    return &call<family, function, In, In, In, Matrix&, Matrix&, Matrix&>;
  }
  template <auto family, auto function>
  [[nodiscard]] static constexpr auto in_matrix() noexcept {
    return &call<family, function, In, Matrix&>;
  }

  /// The fastest for a robot; docs/performance.md has the measurements. Mimic joints make coordinates
  /// share bodies; then the accelerations come from M.
  explicit Choice(const Tree<S>& tree) noexcept {
    take_gibbs_appell_efforts();
    take_gibbs_appell_matrices();
    coriolis = in_in_matrix<&F::denoc, &Denoc<S>::coriolis>();
    coriolis_christoffel = in_in_matrix<&F::denoc, &Denoc<S>::coriolis_christoffel>();
    constexpr Result (Kinematics<S>::*of_path)(In, int, MatrixOut<S>, const Vec3<S>&) noexcept =
        &Kinematics<S>::jacobian;
    jacobian = &call<&F::kinematics, of_path, In, int, Matrix&, const Vec3<S>&>;
    inverse_dynamics_derivatives =
        in_in_in_matrices<&F::derivatives, &Derivatives<S>::inverse_dynamics>();
    forward_dynamics_derivatives =
        in_in_in_matrices<&F::derivatives, &Derivatives<S>::forward_dynamics>();
    constexpr int few = 10;  // bodies
    if (tree.nb() <= few) take_composite_body_matrices();
    if (tree.has_mimic()) {
      take_gibbs_appell_accelerations();
    } else {
      take_articulated_body();
      constexpr double long_path = 8.0;
      if (mean_depth(tree) > long_path) take_udut_inverse();
    }
  }
  /// How many bodies lie between a body and the base, on the average.
  [[nodiscard]] static double mean_depth(const Tree<S>& tree) noexcept {
    double sum = 0.0;
    for (int i = 0; i < tree.nb(); ++i)
      for (int j = tree.bodies()[i].parent; j >= 0; j = tree.bodies()[j].parent) sum += 1.0;
    return sum / std::max(1, tree.nb());
  }

  /// What the family provides instead.
  void take(Method method) noexcept {
    switch (method) {
      case Method::newton_euler:
        inverse_dynamics = in_in_in_out<&F::newton_euler, &NewtonEuler<S>::inverse_dynamics>();
        bias = in_in_out<&F::newton_euler, &NewtonEuler<S>::bias>();
        velocity_effort = in_in_out<&F::newton_euler, &NewtonEuler<S>::velocity_effort>();
        gravity = &call<&F::newton_euler, &NewtonEuler<S>::gravity, In, Out&>;
        return;
      case Method::denoc:
        inverse_dynamics = in_in_in_out<&F::denoc, &Denoc<S>::inverse_dynamics>();
        mass_matrix = in_matrix<&F::denoc, &Denoc<S>::mass_matrix>();
        coriolis = in_in_matrix<&F::denoc, &Denoc<S>::coriolis>();
        return;
      case Method::gibbs_appell:
        take_gibbs_appell_efforts();
        take_gibbs_appell_matrices();
        take_gibbs_appell_accelerations();
        return;
      case Method::composite_body:
        mass_matrix = in_matrix<&F::composite_body, &CompositeBody<S>::mass_matrix>();
        return;
      case Method::articulated_body: take_articulated_body(); return;
      case Method::udut:
        forward_dynamics = in_in_in_out<&F::udut, &Udut<S>::forward_dynamics>();
        take_udut_inverse();
        return;
      case Method::cholesky: take_cholesky(); return;
    }
  }

  void take_gibbs_appell_efforts() noexcept {
    inverse_dynamics = in_in_in_out<&F::gibbs_appell, &GibbsAppell<S>::inverse_dynamics>();
    bias = in_in_out<&F::gibbs_appell, &GibbsAppell<S>::bias>();
    velocity_effort = in_in_out<&F::gibbs_appell, &GibbsAppell<S>::velocity_effort>();
  }
  /// And gravity, which likewise goes by the composites of subtrees.
  void take_gibbs_appell_matrices() noexcept {
    gravity = &call<&F::gibbs_appell, &GibbsAppell<S>::gravity, In, Out&>;
    mass_matrix = in_matrix<&F::gibbs_appell, &GibbsAppell<S>::mass_matrix>();
    inverse_mass_matrix = in_matrix<&F::gibbs_appell, &GibbsAppell<S>::inverse_mass_matrix>();
  }
  void take_composite_body_matrices() noexcept {
    gravity = &call<&F::newton_euler, &NewtonEuler<S>::gravity, In, Out&>;
    mass_matrix = in_matrix<&F::composite_body, &CompositeBody<S>::mass_matrix>();
    inverse_mass_matrix = in_matrix<&F::cholesky, &Cholesky<S>::inverse_mass_matrix>();
  }
  void take_gibbs_appell_accelerations() noexcept {
    forward_dynamics = in_in_in_out<&F::gibbs_appell, &GibbsAppell<S>::forward_dynamics>();
  }
  void take_articulated_body() noexcept {
    forward_dynamics = in_in_in_out<&F::articulated_body, &ArticulatedBody<S>::forward_dynamics>();
  }
  void take_udut_inverse() noexcept {
    inverse_mass_matrix = in_matrix<&F::udut, &Udut<S>::inverse_mass_matrix>();
  }
  void take_cholesky() noexcept {
    constexpr Result (Cholesky<S>::*forward)(In, In, In, Out) noexcept =
        &Cholesky<S>::forward_dynamics;
    forward_dynamics = in_in_in_out<&F::cholesky, forward>();
    inverse_mass_matrix = in_matrix<&F::cholesky, &Cholesky<S>::inverse_mass_matrix>();
  }
};

/// The best for a robot, or what a method provides and the best for the rest, in the functions of
/// the translation unit that this is compiled in.
template <class S>
[[nodiscard]] typename Dynamics<S>::Choice choose_here(const Tree<S>& tree,
                                                       std::optional<Method> method) noexcept {
  typename Dynamics<S>::Choice choice(tree);
  if (method) choice.take(*method);
  return choice;
}

/// Who chooses. For double and float that is the library, among its functions for the instructions
/// that this processor has (instruction_set.hpp).
template <class S>
[[nodiscard]] typename Dynamics<S>::Choose* chooser() {
  return &choose_here<S>;
}
template <>
[[nodiscard]] Dynamics<double>::Choose* chooser<double>();
template <>
[[nodiscard]] Dynamics<float>::Choose* chooser<float>();

// --- The face ------------------------------------------------------------------------------------

template <class S>
struct Dynamics<S>::Parts {
  explicit Parts(const Model& model)
      : families(model), choose(chooser<S>()), choice(choose(families.tree, std::nullopt)) {}
  Families<S> families;
  Choose* choose;
  Choice choice;
};

template <class S>
Dynamics<S>::Dynamics(const Model& model) : parts_(std::make_unique<Parts>(model)) {}
template <class S>
Dynamics<S>::Dynamics(const Model& model, Method method) : Dynamics(model) {
  use(method);
}
template <class S>
Dynamics<S>::Dynamics(const Dynamics& other) : parts_(std::make_unique<Parts>(*other.parts_)) {}
template <class S>
Dynamics<S>::Dynamics(Dynamics&&) noexcept = default;
template <class S>
Dynamics<S>& Dynamics<S>::operator=(Dynamics&&) noexcept = default;
template <class S>
Dynamics<S>::~Dynamics() = default;

template <class S>
int Dynamics<S>::nq() const noexcept {
  return tree().nq();
}
template <class S>
int Dynamics<S>::nv() const noexcept {
  return tree().nv();
}
template <class S>
void Dynamics<S>::use(std::optional<Method> method) noexcept {
  parts_->choice = parts_->choose(tree(), method);
}

template <class S>
StatusOf<S> Dynamics<S>::inverse_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> a,
                                          VectorOut<S> tau) noexcept {
  return parts_->choice.inverse_dynamics(parts_->families, q, v, a, tau);
}
template <class S>
StatusOf<S> Dynamics<S>::forward_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau,
                                          VectorOut<S> a) noexcept {
  return parts_->choice.forward_dynamics(parts_->families, q, v, tau, a);
}
template <class S>
StatusOf<S> Dynamics<S>::forward_dynamics(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau,
                                          const std::vector<int>& held, VectorOut<S> a) noexcept {
  return parts_->families.cholesky.forward_dynamics(q, v, tau, held, a);
}
template <class S>
StatusOf<S> Dynamics<S>::bias(VectorIn<S> q, VectorIn<S> v, VectorOut<S> tau) noexcept {
  return parts_->choice.bias(parts_->families, q, v, tau);
}
template <class S>
StatusOf<S> Dynamics<S>::velocity_effort(VectorIn<S> q, VectorIn<S> v, VectorOut<S> tau) noexcept {
  return parts_->choice.velocity_effort(parts_->families, q, v, tau);
}
template <class S>
StatusOf<S> Dynamics<S>::gravity(VectorIn<S> q, VectorOut<S> tau) noexcept {
  return parts_->choice.gravity(parts_->families, q, tau);
}
template <class S>
StatusOf<S> Dynamics<S>::mass_matrix(VectorIn<S> q, MatrixOut<S> M) noexcept {
  return parts_->choice.mass_matrix(parts_->families, q, M);
}
template <class S>
StatusOf<S> Dynamics<S>::inverse_mass_matrix(VectorIn<S> q, MatrixOut<S> inverse) noexcept {
  return parts_->choice.inverse_mass_matrix(parts_->families, q, inverse);
}
template <class S>
StatusOf<S> Dynamics<S>::coriolis(VectorIn<S> q, VectorIn<S> v, MatrixOut<S> C) noexcept {
  return parts_->choice.coriolis(parts_->families, q, v, C);
}
template <class S>
StatusOf<S> Dynamics<S>::coriolis_christoffel(VectorIn<S> q, VectorIn<S> v,
                                              MatrixOut<S> C) noexcept {
  return parts_->choice.coriolis_christoffel(parts_->families, q, v, C);
}

template <class S>
StatusOf<S> Dynamics<S>::jacobian(VectorIn<S> q, int link, MatrixOut<S> J,
                                  const Vec3<S>& offset) noexcept {
  return parts_->choice.jacobian(parts_->families, q, link, J, offset);
}

template <class S>
StatusOf<S> Dynamics<S>::inverse_dynamics_derivatives(VectorIn<S> q, VectorIn<S> v, VectorIn<S> a,
                                                      MatrixOut<S> dtau_dq, MatrixOut<S> dtau_dv,
                                                      MatrixOut<S> M) noexcept {
  return parts_->choice.inverse_dynamics_derivatives(parts_->families, q, v, a, dtau_dq, dtau_dv,
                                                     M);
}
template <class S>
StatusOf<S> Dynamics<S>::forward_dynamics_derivatives(VectorIn<S> q, VectorIn<S> v, VectorIn<S> tau,
                                                      MatrixOut<S> da_dq, MatrixOut<S> da_dv,
                                                      MatrixOut<S> da_dtau) noexcept {
  return parts_->choice.forward_dynamics_derivatives(parts_->families, q, v, tau, da_dq, da_dv,
                                                     da_dtau);
}

template <class S>
StatusOf<S> Dynamics<S>::set_gravity(const Vec3<S>& g) noexcept {
  return tree().set_gravity(g);
}
template <class S>
Vec3<S> Dynamics<S>::gravity() const noexcept {
  return tree().gravity();
}
template <class S>
Status Dynamics<S>::set_payload(int link, const Payload<S>& payload) noexcept {
  return tree().set_payload(link, payload);
}
template <class S>
Status Dynamics<S>::set_rotor_inertia(int dof, const S& inertia) noexcept {
  return tree().set_rotor_inertia(dof, inertia);
}
template <class S>
S Dynamics<S>::rotor_inertia(int dof) const noexcept {
  return tree().rotor_inertia(dof);
}
template <class S>
Status Dynamics<S>::add_external_force(int link, const Force<S>& F_L) noexcept {
  return tree().add_external_force(link, F_L);
}
template <class S>
void Dynamics<S>::clear_external_forces() noexcept {
  tree().clear_external_forces();
}

template <class S>
Kinematics<S>& Dynamics<S>::kinematics() noexcept {
  return parts_->families.kinematics;
}
template <class S>
const Kinematics<S>& Dynamics<S>::kinematics() const noexcept {
  return parts_->families.kinematics;
}
template <class S>
OperationalSpace<S>& Dynamics<S>::operational_space() noexcept {
  return parts_->families.operational_space;
}
template <class S>
const OperationalSpace<S>& Dynamics<S>::operational_space() const noexcept {
  return parts_->families.operational_space;
}
template <class S>
Regressor<S>& Dynamics<S>::regressor() noexcept {
  return parts_->families.regressor;
}
template <class S>
const Regressor<S>& Dynamics<S>::regressor() const noexcept {
  return parts_->families.regressor;
}
template <class S>
Families<S>& Dynamics<S>::families() noexcept {
  return parts_->families;
}
template <class S>
Tree<S>& Dynamics<S>::tree() noexcept {
  return parts_->families.tree;
}
template <class S>
const Tree<S>& Dynamics<S>::tree() const noexcept {
  return parts_->families.tree;
}

}  // namespace dynamics_core
