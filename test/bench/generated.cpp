// SPDX-License-Identifier: Apache-2.0
#include <panda_dynamics.hpp>
#include <ur5e_dynamics.hpp>

#include "contestant.hpp"

namespace bench {

namespace {

/// The functions of a robot's namespace, whose results are in `out`.
#define RD_GENERATED(robot)                                                             \
  [] {                                                                                  \
    using In = const double*;                                                           \
    static double out[3 * robot::nv * robot::nv];                                       \
    Contestant c;                                                                       \
    c.name = "generated";                                                               \
    c.compute[inverse_dynamics] = [](In q, In v, In a) -> const double* {               \
      robot::inverse_dynamics(q, v, a, out);                                            \
      return out;                                                                       \
    };                                                                                  \
    c.compute[bias] = [](In q, In v, In) -> const double* {                             \
      robot::bias(q, v, out);                                                           \
      return out;                                                                       \
    };                                                                                  \
    c.compute[gravity] = [](In q, In, In) -> const double* {                            \
      robot::gravity(q, out);                                                           \
      return out;                                                                       \
    };                                                                                  \
    c.compute[mass_matrix] = [](In q, In, In) -> const double* {                        \
      robot::mass_matrix(q, out);                                                       \
      return out;                                                                       \
    };                                                                                  \
    c.compute[forward_dynamics] = [](In q, In v, In tau) -> const double* {             \
      robot::forward_dynamics(q, v, tau, out);                                          \
      return out;                                                                       \
    };                                                                                  \
    c.compute[inverse_mass_matrix] = [](In q, In, In) -> const double* {                \
      robot::inverse_mass_matrix(q, out);                                               \
      return out;                                                                       \
    };                                                                                  \
    constexpr int size = robot::nv * robot::nv;                                         \
    c.by_rows = true;                                                                   \
    c.compute[inverse_dynamics_derivatives] = [](In q, In v, In a) -> const double* {   \
      robot::inverse_dynamics_derivatives(q, v, a, out, out + size, out + 2 * size);    \
      return out;                                                                       \
    };                                                                                  \
    c.compute[forward_dynamics_derivatives] = [](In q, In v, In tau) -> const double* { \
      robot::forward_dynamics_derivatives(q, v, tau, out, out + size, out + 2 * size);  \
      return out;                                                                       \
    };                                                                                  \
    return c;                                                                           \
  }()

}  // namespace

std::vector<Contestant> generated_contestants(const Robot& robot) {
  if (robot.model.name == "panda" && robot.n() == panda::nv) return {RD_GENERATED(panda)};
  if (robot.model.name == "ur5e" && robot.n() == ur5e::nv) return {RD_GENERATED(ur5e)};
  return {};
}

}  // namespace bench
