// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "common.hpp"
#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/regressor.hpp"
#include "dynamics_core/text.hpp"

namespace dynamics_core::tools {

namespace {

using Json = nlohmann::ordered_json;

[[nodiscard]] std::string number(double x) {
  return std::isfinite(x) ? text::to_short_text(x) : "-";
}

/// JSON knows no infinity: no limit is null.
[[nodiscard]] Json finite(double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); }

[[nodiscard]] Json numbers(const Eigen::Ref<const VectorX<double>>& x) {
  return std::vector<double>(x.begin(), x.end());
}

/// The joint that moves a link, or an empty text for a link fixed in the world.
[[nodiscard]] std::string moved_by(const Model& model, const LinkInfo& link) {
  if (link.body < 0) return {};
  const BodyData& body = model.bodies[static_cast<std::size_t>(link.body)];
  return model.joints[static_cast<std::size_t>(body.joint)].name;
}

struct Masses {
  double total = 0.0;
  double moving = 0.0;
  Eigen::Vector3d center = Eigen::Vector3d::Zero();  ///< of all, in the root link's frame
};

/// At the neutral configuration, payloads included.
[[nodiscard]] Masses weigh(const Model& model, Dynamics<double>& dynamics) {
  Masses masses;
  if (dynamics.kinematics().update(model.neutral()) != Status::ok) return masses;
  Eigen::Vector3d moment = Eigen::Vector3d::Zero();
  for (std::size_t i = 0; i < dynamics.tree().links().size(); ++i) {
    const auto& link = dynamics.tree().links()[i];
    Pose<double> X_WL = Pose<double>::identity();
    if (dynamics.kinematics().pose(static_cast<int>(i), X_WL) != Status::ok) continue;
    const Pose<double> X_WB = X_WL * link.X_BL.inverse();
    RigidInertia<double> inertia = link.own;
    inertia += link.payload;
    masses.total += inertia.m;
    masses.moving += link.body < 0 ? 0.0 : inertia.m;
    moment += X_WB.R * inertia.h + inertia.m * X_WB.p;
  }
  if (masses.total > 0.0) masses.center = moment / masses.total;
  return masses;
}

[[nodiscard]] Json joint_json(const JointInfo& joint) {
  return {{"name", joint.name},
          {"type", to_string(joint.type)},
          {"parent", joint.parent},
          {"child", joint.child},
          {"q", joint.q},
          {"nq", joint.nq},
          {"v", joint.v},
          {"nv", joint.nv},
          {"lower", finite(joint.limits.lower)},
          {"upper", finite(joint.limits.upper)},
          {"velocity", finite(joint.limits.velocity)},
          {"effort", finite(joint.limits.effort)},
          {"damping", joint.damping},
          {"friction", joint.friction},
          {"rotor_inertia", joint.rotor_inertia},
          {"gear_ratio", joint.gear_ratio}};
}

[[nodiscard]] Json link_json(const Model& model, const LinkInfo& link, double payload) {
  const std::string joint = moved_by(model, link);
  const Eigen::Matrix3d& I = link.inertial.inertia;
  return {{"name", link.name},
          {"joint", joint.empty() ? Json(nullptr) : Json(joint)},
          {"mass", link.inertial.mass},
          {"com", numbers(link.inertial.com)},
          {"inertia", {I(0, 0), I(0, 1), I(0, 2), I(1, 1), I(1, 2), I(2, 2)}},
          {"payload", payload}};
}

[[nodiscard]] Json loop_json(const Model& model, const LoopJoint& loop) {
  return {{"name", loop.name},
          {"type", to_string(loop.type)},
          {"link_a", model.links[static_cast<std::size_t>(loop.link_a)].name},
          {"link_b", model.links[static_cast<std::size_t>(loop.link_b)].name}};
}

/// What the regressor's columns belong to, and their values.
[[nodiscard]] Json parameters_json(const Model& model, const Dynamics<double>& dynamics) {
  VectorX<double> pi(dynamics.regressor().columns());
  Json json = Json::object();
  if (dynamics.regressor().parameters(pi) != Status::ok) return json;
  const std::vector<std::string> names = parameter_names(model);
  for (std::size_t i = 0; i < names.size(); ++i) json[names[i]] = pi[static_cast<Eigen::Index>(i)];
  return json;
}

[[nodiscard]] Json to_json(const Model& model, const Dynamics<double>& dynamics,
                           const LoopSet& loops, const Masses& masses) {
  Json json = {{"name", model.name}, {"nq", model.nq}, {"nv", model.nv}};
  json["joints"] = Json::array();
  for (const JointInfo& joint : model.joints) json["joints"].push_back(joint_json(joint));
  json["mimics"] = Json::array();
  for (const MimicInfo& mimic : model.mimics)
    json["mimics"].push_back({{"name", mimic.name},
                              {"joint", mimic.joint},
                              {"multiplier", mimic.multiplier},
                              {"offset", mimic.offset}});
  json["links"] = Json::array();
  for (std::size_t i = 0; i < model.links.size(); ++i)
    json["links"].push_back(link_json(model, model.links[i], dynamics.tree().links()[i].payload.m));
  json["loops"] = Json::array();
  for (const LoopJoint& loop : loops) json["loops"].push_back(loop_json(model, loop));
  json["total_mass"] = masses.total;
  json["moving_mass"] = masses.moving;
  json["center_of_mass"] = numbers(masses.center);
  json["gravity"] = numbers(model.gravity);
  json["parameters"] = parameters_json(model, dynamics);
  json["warnings"] = model.warnings;
  return json;
}

/// Takes a column out of a table if it says the same for all.
void drop_if_all(std::vector<Row>& rows, const std::string& heading, const std::string& cell) {
  const auto column = std::find(rows[0].begin(), rows[0].end(), heading) - rows[0].begin();
  const auto same = [&](const Row& row) { return row[static_cast<std::size_t>(column)] == cell; };
  if (!std::all_of(rows.begin() + 1, rows.end(), same)) return;
  for (Row& row : rows) row.erase(row.begin() + column);
}

void print_joints(const Model& model) {
  std::vector<Row> rows = {{"#", "joint", "type", "parent", "child", "lower", "upper", "velocity",
                            "effort", "damping", "friction", "rotor", "gear"}};
  for (const JointInfo& j : model.joints)
    rows.push_back({std::to_string(j.v), j.name, to_string(j.type), j.parent, j.child,
                    number(j.limits.lower), number(j.limits.upper), number(j.limits.velocity),
                    number(j.limits.effort), number(j.damping), number(j.friction),
                    number(j.rotor_inertia), number(j.gear_ratio)});
  for (const char* heading : {"damping", "friction", "rotor"}) drop_if_all(rows, heading, "0");
  drop_if_all(rows, "gear", "1");
  std::cout << "\nJoints (# is the place in v, a and tau; rad or m, N m or N; - is no limit)\n";
  print_table(std::cout, rows);
}

void print_mimics(const Model& model) {
  std::vector<Row> rows = {{"joint", "follows", "multiplier", "offset"}};
  for (const MimicInfo& m : model.mimics)
    rows.push_back({m.name, m.joint, number(m.multiplier), number(m.offset)});
  std::cout << "\nMimic joints\n";
  print_table(std::cout, rows);
}

void print_loops(const Model& model, const LoopSet& loops) {
  std::vector<Row> rows = {{"joint", "type", "link a", "link b"}};
  for (const LoopJoint& loop : loops)
    rows.push_back({loop.name, to_string(loop.type),
                    model.links[static_cast<std::size_t>(loop.link_a)].name,
                    model.links[static_cast<std::size_t>(loop.link_b)].name});
  std::cout << "\nLoop joints\n";
  print_table(std::cout, rows);
}

void print_links(const Model& model, const Dynamics<double>& dynamics) {
  std::vector<Row> rows = {{"link", "moved by", "mass", "payload"}};
  for (std::size_t i = 0; i < model.links.size(); ++i) {
    const LinkInfo& link = model.links[i];
    const std::string joint = moved_by(model, link);
    rows.push_back({link.name, joint.empty() ? "(fixed in the world)" : joint,
                    number(link.inertial.mass), number(dynamics.tree().links()[i].payload.m)});
  }
  drop_if_all(rows, "payload", "0");
  std::cout << "\nLinks (kg)\n";
  print_table(std::cout, rows);
}

[[nodiscard]] std::string triple(const Eigen::Vector3d& x) {
  return number(x[0]) + ", " + number(x[1]) + ", " + number(x[2]);
}

void print(const Model& model, const Dynamics<double>& dynamics, const LoopSet& loops,
           const Masses& masses) {
  std::cout << "Robot               " << text::printable(model.name) << '\n'
            << "Joints              " << model.joints.size() << '\n'
            << "Degrees of freedom  " << model.nv << '\n'
            << "Links               " << model.links.size() << '\n'
            << "Mass                " << number(masses.total) << " kg, of which "
            << number(masses.moving) << " kg move\n"
            << "Centre of mass      " << triple(masses.center) << " m at the neutral position\n"
            << "Gravity             " << triple(model.gravity) << " m/s^2\n";
  if (!model.joints.empty()) print_joints(model);
  if (!model.mimics.empty()) print_mimics(model);
  if (!loops.empty()) print_loops(model, loops);
  print_links(model, dynamics);
  if (model.warnings.empty()) return;
  std::cout << "\nWarnings\n";
  for (const std::string& warning : model.warnings)
    std::cout << "  " << text::printable(warning) << '\n';
}

struct InfoOptions {
  RobotOptions robot;
  bool json = false;
};

int info(const InfoOptions& options) {
  const Model model = load_robot(options.robot);
  Dynamics<double> dynamics = make_dynamics(model, options.robot);
  const LoopSet loops = load_loops(model, options.robot);
  const Masses masses = weigh(model, dynamics);
  if (options.json) {
    std::cout << to_json(model, dynamics, loops, masses)
                     .dump(2, ' ', false, Json::error_handler_t::replace)
              << '\n';
  } else {
    print(model, dynamics, loops, masses);
  }
  return 0;
}

}  // namespace

Subcommand add_info(CLI::App& program) {
  CLI::App* app = program.add_subcommand("info", "Show joints, links, masses and warnings");
  app->footer(
      "Joints are listed in the order of q, v, a and tau: depth-first from the root, siblings as\n"
      "in the file.\n\nExample: dynamics info robot.urdf --json");
  const auto options = std::make_shared<InfoOptions>();
  add_robot_options(*app, options->robot);
  app->add_flag("--json", options->json, "Print everything as one JSON object");
  return {app, [options] { return info(*options); }};
}

}  // namespace dynamics_core::tools
