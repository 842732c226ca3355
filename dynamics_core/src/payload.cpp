// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/payload.hpp"

#include <Eigen/Eigenvalues>
#include <cmath>
#include <vector>

#include "dynamics_core/text.hpp"

namespace dynamics_core {

namespace {

[[nodiscard]] std::string listed(std::initializer_list<double> numbers) {
  std::vector<std::string> texts;
  for (const double x : numbers) texts.push_back(text::to_short_text(x));
  return text::joined(texts, " ");
}

/// The principal moments of a rigid body are not negative, and none exceeds the sum of the others.
[[nodiscard]] bool physical(const Eigen::Matrix3d& inertia) {
  const Eigen::Vector3d moments =
      Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d>(inertia, Eigen::EigenvaluesOnly).eigenvalues();
  const double round_off = 1e-9 * std::abs(moments[2]);
  return moments[0] >= -round_off && moments[2] <= moments[0] + moments[1] + round_off;
}

}  // namespace

int checked_payload(const Model& model, const std::string& link, const Payload<double>& payload) {
  const int index = model.find_link(link);
  if (index < 0) throw ConfigError("payload.link", "'" + link + "'", "name a link of the robot");
  if (model.links[static_cast<std::size_t>(index)].body < 0)
    throw ConfigError("payload.link", "'" + link + "'",
                      "this link does not move, a load on it changes nothing; name a moving link");
  if (!std::isfinite(payload.mass) || payload.mass < 0.0)
    throw ConfigError("payload.mass", listed({payload.mass}),
                      "give a finite mass in kg, not below zero");
  const Vec3<double>& com = payload.com;
  if (!com.allFinite())
    throw ConfigError("payload.center_of_mass", listed({com[0], com[1], com[2]}),
                      "give three finite numbers in m");
  const Symmetric3<double>& I = payload.inertia;
  const Eigen::Matrix3d inertia = I.matrix();
  if (!inertia.allFinite() || !physical(inertia))
    throw ConfigError("payload.inertia", listed({I.xx, I.xy, I.xz, I.yy, I.yz, I.zz}),
                      "give xx xy xz yy yz zz in kg m² about the centre of mass, as of a body: no "
                      "principal moment negative or above the sum of the others");
  if (payload.mass == 0.0 && inertia != Eigen::Matrix3d::Zero())
    throw ConfigError("payload.mass", "0", "a load without mass has no inertia; give its mass");
  return index;
}

}  // namespace dynamics_core
