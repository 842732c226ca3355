#pragma once

/// One place that knows which family of algorithms provides what, so that a user may pick a family
/// by name and everything the family lacks comes from the default choice.

#include <array>
#include <optional>
#include <string_view>

#include "dynamics_core/articulated_body.hpp"
#include "dynamics_core/cholesky.hpp"
#include "dynamics_core/composite_body.hpp"
#include "dynamics_core/coriolis.hpp"
#include "dynamics_core/denoc.hpp"
#include "dynamics_core/gibbs_appell.hpp"
#include "dynamics_core/newton_euler.hpp"
#include "dynamics_core/udut.hpp"

namespace dynamics_core {

enum class Method { newton_euler, denoc, gibbs_appell, articulated_body, udut, cholesky };

inline constexpr std::array<Method, 6> all_methods = {
    Method::newton_euler,     Method::denoc, Method::gibbs_appell,
    Method::articulated_body, Method::udut,  Method::cholesky};

[[nodiscard]] constexpr const char* to_string(Method method) noexcept {
  switch (method) {
    case Method::newton_euler: return "newton_euler";
    case Method::denoc: return "denoc";
    case Method::gibbs_appell: return "gibbs_appell";
    case Method::articulated_body: return "articulated_body";
    case Method::udut: return "udut";
    case Method::cholesky: return "cholesky";
  }
  return "unknown method";
}

[[nodiscard]] constexpr std::optional<Method> find_method(std::string_view name) noexcept {
  for (const Method method : all_methods)
    if (name == to_string(method)) return method;
  return std::nullopt;
}

/// A function for each quantity. All are real-time safe.
template <class S>
struct Algorithms {
  using Ws = Workspace<S>;
  /// τ(q, v, a), external forces included
  Status (*inverse_dynamics)(Ws&, VectorIn<S>, VectorIn<S>, VectorIn<S>, VectorOut<S>) noexcept;
  /// C(q, v) v + g(q)
  Status (*bias)(Ws&, VectorIn<S>, VectorIn<S>, VectorOut<S>) noexcept;
  /// g(q)
  Status (*gravity)(Ws&, VectorIn<S>, VectorOut<S>) noexcept;
  /// M(q)
  Status (*mass_matrix)(Ws&, VectorIn<S>, MatrixOut<S>) noexcept;
  /// C(q, v)
  Status (*coriolis)(Ws&, VectorIn<S>, VectorIn<S>, MatrixOut<S>) noexcept;
  /// q̈(q, v, τ), external forces included
  Status (*forward_dynamics)(Ws&, VectorIn<S>, VectorIn<S>, VectorIn<S>, VectorOut<S>) noexcept;
  /// M⁻¹(q)
  Status (*inverse_mass_matrix)(Ws&, VectorIn<S>, MatrixOut<S>) noexcept;
};

/// The fastest for a robot: in O(n) where its joints allow it. Mimic joints make coordinates share
/// bodies; then the inverses go through M.
template <class S>
[[nodiscard]] Algorithms<S> default_algorithms(const Workspace<S>& ws) noexcept {
  const bool mimic = ws.has_mimic();
  return {gibbs_appell::inverse_dynamics<S>,
          gibbs_appell::bias<S>,
          newton_euler::gravity<S>,
          composite_body::mass_matrix<S>,
          denoc::coriolis<S>,
          mimic ? cholesky::forward_dynamics<S> : articulated_body::forward_dynamics<S>,
          mimic ? cholesky::inverse_mass_matrix<S> : udut::inverse_mass_matrix<S>};
}

/// What the family provides, and the default for the rest.
template <class S>
[[nodiscard]] Algorithms<S> algorithms(const Workspace<S>& ws, Method method) noexcept {
  Algorithms<S> chosen = default_algorithms<S>(ws);
  switch (method) {
    case Method::newton_euler:
      chosen.inverse_dynamics = newton_euler::inverse_dynamics<S>;
      chosen.bias = newton_euler::bias<S>;
      break;
    case Method::denoc:
      chosen.inverse_dynamics = denoc::inverse_dynamics<S>;
      chosen.mass_matrix = denoc::mass_matrix<S>;
      chosen.coriolis = denoc::coriolis<S>;
      break;
    case Method::gibbs_appell:
      chosen.inverse_dynamics = gibbs_appell::inverse_dynamics<S>;
      chosen.bias = gibbs_appell::bias<S>;
      chosen.mass_matrix = gibbs_appell::mass_matrix<S>;
      chosen.forward_dynamics = gibbs_appell::forward_dynamics<S>;
      break;
    case Method::articulated_body:
      chosen.forward_dynamics = articulated_body::forward_dynamics<S>;
      break;
    case Method::udut:
      chosen.forward_dynamics = udut::forward_dynamics<S>;
      chosen.inverse_mass_matrix = udut::inverse_mass_matrix<S>;
      break;
    case Method::cholesky:
      chosen.forward_dynamics = cholesky::forward_dynamics<S>;
      chosen.inverse_mass_matrix = cholesky::inverse_mass_matrix<S>;
      break;
  }
  return chosen;
}

// --- Compiled into the library -------------------------------------------------------------------
// A program that includes this header takes the algorithms in double and float from there and
// compiles in a third of the time. One that wants them compiled for its own processor includes the
// families' headers instead.

// NOLINTBEGIN(bugprone-macro-parentheses)
#define RD_METHODS(keyword, S)                                                                    \
  keyword template class Workspace<S>;                                                            \
  keyword template Status newton_euler::inverse_dynamics(Workspace<S>&, VectorIn<S>, VectorIn<S>, \
                                                         VectorIn<S>, VectorOut<S>) noexcept;     \
  keyword template Status newton_euler::bias(Workspace<S>&, VectorIn<S>, VectorIn<S>,             \
                                             VectorOut<S>) noexcept;                              \
  keyword template Status newton_euler::gravity(Workspace<S>&, VectorIn<S>,                       \
                                                VectorOut<S>) noexcept;                           \
  keyword template Status denoc::inverse_dynamics(Workspace<S>&, VectorIn<S>, VectorIn<S>,        \
                                                  VectorIn<S>, VectorOut<S>) noexcept;            \
  keyword template Status denoc::mass_matrix(Workspace<S>&, VectorIn<S>, MatrixOut<S>) noexcept;  \
  keyword template Status denoc::coriolis(Workspace<S>&, VectorIn<S>, VectorIn<S>,                \
                                          MatrixOut<S>) noexcept;                                 \
  keyword template Status denoc::coriolis_skew(Workspace<S>&, VectorIn<S>, VectorIn<S>,           \
                                               MatrixOut<S>) noexcept;                            \
  keyword template Status gibbs_appell::inverse_dynamics(Workspace<S>&, VectorIn<S>, VectorIn<S>, \
                                                         VectorIn<S>, VectorOut<S>) noexcept;     \
  keyword template Status gibbs_appell::bias(Workspace<S>&, VectorIn<S>, VectorIn<S>,             \
                                             VectorOut<S>) noexcept;                              \
  keyword template Status gibbs_appell::mass_matrix(Workspace<S>&, VectorIn<S>,                   \
                                                    MatrixOut<S>) noexcept;                       \
  keyword template Status gibbs_appell::forward_dynamics(Workspace<S>&, VectorIn<S>, VectorIn<S>, \
                                                         VectorIn<S>, VectorOut<S>) noexcept;     \
  keyword template Status composite_body::mass_matrix(Workspace<S>&, VectorIn<S>,                 \
                                                      MatrixOut<S>) noexcept;                     \
  keyword template Status articulated_body::forward_dynamics(                                     \
      Workspace<S>&, VectorIn<S>, VectorIn<S>, VectorIn<S>, VectorOut<S>) noexcept;               \
  keyword template Status udut::factorize(Workspace<S>&, VectorIn<S>) noexcept;                   \
  keyword template Status udut::solve(Workspace<S>&, VectorIn<S>, VectorOut<S>) noexcept;         \
  keyword template Status udut::forward_dynamics(Workspace<S>&, VectorIn<S>, VectorIn<S>,         \
                                                 VectorIn<S>, VectorOut<S>) noexcept;             \
  keyword template Status udut::inverse_mass_matrix(Workspace<S>&, VectorIn<S>,                   \
                                                    MatrixOut<S>) noexcept;                       \
  keyword template Status cholesky::forward_dynamics(Workspace<S>&, VectorIn<S>, VectorIn<S>,     \
                                                     VectorIn<S>, VectorOut<S>) noexcept;         \
  keyword template Status cholesky::inverse_mass_matrix(Workspace<S>&, VectorIn<S>,               \
                                                        MatrixOut<S>) noexcept;                   \
  keyword template Algorithms<S> default_algorithms(const Workspace<S>&) noexcept;                \
  keyword template Algorithms<S> algorithms(const Workspace<S>&, Method) noexcept;

// NOLINTEND(bugprone-macro-parentheses)

RD_METHODS(extern, double)
RD_METHODS(extern, float)

}  // namespace dynamics_core
