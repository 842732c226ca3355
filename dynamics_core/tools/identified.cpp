// SPDX-License-Identifier: Apache-2.0
#include "identified.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "dynamics_core/identification/signals.hpp"
#include "dynamics_core/identification/urdf_edit.hpp"
#include "dynamics_core/load.hpp"
#include "dynamics_core/text.hpp"
#include "output.hpp"
#include "page.hpp"

namespace dynamics_core::tools {

namespace {

namespace fs = std::filesystem;
using identification::Candidate;
using identification::Drive;
using identification::Identification;
using identification::SharedMotor;
using Json = nlohmann::ordered_json;

/// Hz
constexpr double lowest_cutoff = 0.05;
constexpr double highest_cutoff = 1e4;

[[nodiscard]] Json finite_or_null(double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); }

template <class Vector>
[[nodiscard]] Json finite_list(const Vector& x) {
  Json json = Json::array();
  for (Eigen::Index i = 0; i < x.size(); ++i) json.push_back(finite_or_null(x[i]));
  return json;
}

[[nodiscard]] Json friction_json(const JointFriction<double>& f) {
  return {{"viscous", f.viscous},       {"coulomb", f.coulomb},
          {"breakaway", f.breakaway},   {"stribeck_velocity", f.stribeck_velocity},
          {"transition", f.transition}, {"stiffness", f.stiffness}};
}
/// The number of that name, which lies between the two.
[[nodiscard]] double number_of(const Json& json, const char* key, double least = -1e9,
                               double most = 1e9) {
  const Json& value = json.at(key);
  const double x = value.is_number() ? value.get<double>() : std::nan("");
  if (!(x >= least && x <= most))
    throw std::runtime_error("'" + std::string(key) + "' is " + text::printable(value.dump()) +
                             ", and not a number from " + text::to_short_text(least) + " to " +
                             text::to_short_text(most));
  return x;
}
[[nodiscard]] JointFriction<double> friction_of(const Json& json) {
  JointFriction<double> f;
  f.viscous = number_of(json, "viscous");
  f.coulomb = number_of(json, "coulomb");
  f.breakaway = number_of(json, "breakaway");
  f.stribeck_velocity = number_of(json, "stribeck_velocity", 0.0);
  f.transition = number_of(json, "transition", 0.0);
  f.stiffness = number_of(json, "stiffness", 0.0);
  return f;
}

[[nodiscard]] std::string joint_name(const Model& model, int dof) {
  return model.joints[static_cast<std::size_t>(dof)].name;
}

/// Efforts over time for the page, below the cut-off.
[[nodiscard]] Json traces(const Finding& finding, const std::string& urdf) {
  constexpr Eigen::Index points = 700;
  const identification::Recording& log = finding.shown;
  const identification::Drives& drives = finding.result.drives;
  // The same joints move in the file that is written.
  ModelOptions options;
  options.joints.emplace();
  for (const JointInfo& joint : finding.model.joints) options.joints->push_back(joint.name);
  options.locked = finding.locked;
  const Model model = load_urdf_string(urdf, options);
  identification::Drives plain = identification::nominal_drives(finding.model);
  plain.gravity = drives.gravity;
  plain.cutoff = drives.cutoff;
  const identification::LowPass low_pass(drives.cutoff, 1.0 / log.period);
  const auto json_of = [&](MatrixX<double> x) {
    low_pass.apply(x);
    const Eigen::Index every = std::max<Eigen::Index>(1, x.rows() / points);
    Json all = Json::array();
    for (Eigen::Index j = 0; j < x.cols(); ++j) {
      Json trace = Json::array();
      for (Eigen::Index i = 0; i < x.rows(); i += every)
        trace.push_back(std::round(1e4 * x(i, j)) / 1e4);
      all.push_back(std::move(trace));
    }
    return all;
  };
  Json t = Json::array();
  const auto rows = static_cast<Eigen::Index>(log.clock.size());
  for (Eigen::Index i = 0; i < rows; i += std::max<Eigen::Index>(1, rows / points))
    t.push_back(log.clock[static_cast<std::size_t>(i)] - log.clock.front());
  return {{"t", std::move(t)},
          {"measured", json_of(identification::measured(log, drives))},
          {"predicted", json_of(identification::predicted(log, model, drives))},
          {"nominal", json_of(identification::predicted(log, finding.model, plain))}};
}

[[nodiscard]] Json json_of(const Finding& finding, const std::string& urdf) {
  const Model& model = finding.model;
  const Identification& result = finding.result;
  Json json;
  json["robot"] = model.name;
  json["verdict"] = finding.verdict;
  json["chosen"] = to_string(result.chosen);
  json["notes"] = finding.notes;
  json["advice"] = result.advice;
  json["cutoff"] = result.drives.cutoff;
  json["bandwidth"] = result.bandwidth;
  json["effort_contains_gravity"] = result.drives.gravity;
  json["locked"] = finding.locked;
  json["joints"] = Json::array();
  for (int j = 0; j < model.nv; ++j) {
    const Drive& drive = result.drives.joints[static_cast<std::size_t>(j)];
    json["joints"].push_back({{"name", joint_name(model, j)},
                              {"factor", drive.factor},
                              {"delay", drive.delay},
                              {"offset", drive.offset},
                              {"rotor_inertia", drive.rotor},
                              {"noise", drive.noise},
                              {"friction", friction_json(drive.friction)}});
  }
  json["shared_motors"] = Json::array();
  for (const SharedMotor& motor : result.drives.shared)
    json["shared_motors"].push_back({{"first", joint_name(model, motor.first)},
                                     {"second", joint_name(model, motor.second)},
                                     {"sign", motor.sign},
                                     {"rotor_inertia", motor.rotor},
                                     {"friction", friction_json(motor.friction)}});
  json["candidates"] = Json::array();
  for (const auto& score : result.scores)
    json["candidates"].push_back({{"name", to_string(score.candidate)},
                                  {"training_error", finite_or_null(score.training)},
                                  {"held_out_error", finite_or_null(score.held_out)},
                                  {"held_out_error_by_joint", finite_list(score.by_joint)},
                                  {"held_out_rms_by_joint", finite_list(score.error)}});
  json["prior_weight"] = result.weight;
  json["constrained"] = result.constrained;
  json["condition_number"] = finite_or_null(result.condition);
  json["base_parameters"] = Json::array();
  for (const auto& p : result.parameters)
    json["base_parameters"].push_back({{"name", p.name},
                                       {"nominal", finite_or_null(p.nominal)},
                                       {"value", finite_or_null(p.value)},
                                       {"standard_deviation", finite_or_null(p.deviation)}});
  json["inertial_parameters"] = finite_list(result.pi);
  json["nominal_inertial_parameters"] = finite_list(result.pi_nominal);
  json["traces"] = traces(finding, urdf);
  return json;
}

/// For the `--param-file` of FeedforwardController.
[[nodiscard]] std::string friction_yaml(const Model& model, const Identification& result) {
  std::string joints, rotors, ratios, friction;
  for (int j = 0; j < model.nv; ++j) {
    const Drive& drive = result.drives.joints[static_cast<std::size_t>(j)];
    const JointFriction<double>& f = drive.friction;
    joints += (j > 0 ? ", " : "") + yaml_name(joint_name(model, j));
    rotors += (j > 0 ? ", " : "") + yaml_number(drive.rotor);
    ratios += (j > 0 ? ", " : "") + yaml_number(1.0);
    friction += "      " + yaml_name(joint_name(model, j)) +
                ": {viscous: " + yaml_number(f.viscous) + ", coulomb: " + yaml_number(f.coulomb);
    if (f.breakaway > f.coulomb)
      friction += ", breakaway: " + yaml_number(f.breakaway) +
                  ", stribeck_velocity: " + yaml_number(f.stribeck_velocity);
    friction += ", transition: " + yaml_number(f.transition) + "}\n";
  }
  std::string yaml =
      "# What `dynamics identify` found of the joints, for FeedforwardController beside "
      "robot.urdf.\n";
  for (const SharedMotor& motor : result.drives.shared)
    yaml += "# Not in here, as the controller does not know it: the motor that " +
            yaml_name(joint_name(model, motor.first)) + " and " +
            yaml_name(joint_name(model, motor.second)) + " share.\n";
  yaml += "feedforward_controller:\n  ros__parameters:\n    joints: [" + joints +
          "]\n    rotor_inertia: [" + rotors +
          "]  # kg m^2, at the joints, in their order\n    gear_ratio: [" + ratios +
          "]\n    friction:\n" + friction;
  if (!result.drives.gravity) yaml += "    hardware_compensates_gravity: true\n";
  return yaml;
}

}  // namespace

CLI::Validator cutoff_range() { return number_between(lowest_cutoff, highest_cutoff); }

void add_log_options(CLI::App& app, LogOptions& options) {
  const char* const group = "Logs";
  app.add_option("--rate", options.rate, "Samples a second of logs without stamps, Hz")
      ->group(group)
      ->check(number_between(1.0, 1e5));
  app.add_option("--gain", options.gains,
                 "Torque for an ampere of the motor's current, or whatever turns the log's\n"
                 "effort into N m (repeatable)")
      ->group(group)
      ->expected(1)
      ->type_name("JOINT=NM/A")
      ->take_all();
}

Model robot_of_log(const RobotOptions& options, const identification::Log& log) {
  const RobotDescription description = parse_file(options.file);
  RobotOptions with_joints = options;
  if (options.joints.empty())
    with_joints.joints = text::joined(identification::joints_of(log, description), ",");
  return load_robot(with_joints);
}

void write_identified(const std::string& directory, const Finding& finding) {
  const Model& model = finding.model;
  const Identification& result = finding.result;
  std::map<std::string, identification::JointDynamics> dynamics;
  for (int j = 0; j < model.nv; ++j) {
    const Drive& drive = result.drives.joints[static_cast<std::size_t>(j)];
    if (drive.factor == 0.0 || result.chosen == Candidate::nominal) continue;
    dynamics[joint_name(model, j)] = {drive.friction.viscous, drive.friction.coulomb};
  }
  const std::string urdf =
      identification::edited_urdf(read_text_file(finding.urdf_file),
                                  identification::link_inertials(model, result.pi), dynamics);
  const Json json = json_of(finding, urdf);  // it has to load before it is written
  const fs::path folder(directory);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder))
    throw std::runtime_error(directory + ": cannot be made a folder; choose another with -o");
  const std::string data = (folder / "identify.json").string();
  write_files({{(folder / "robot.urdf").string(), urdf},
               {(folder / "friction.yaml").string(), friction_yaml(model, result)},
               {data, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"}});
  try {
    draw_page("identify_report.py", data, (folder / "index.html").string());
  } catch (const std::runtime_error& failure) {
    std::cerr << "warning: " << failure.what() << '\n';
  }
}

Identified read_identified(const std::string& directory) {
  const fs::path folder(directory);
  Identified identified;
  identified.urdf = (folder / "robot.urdf").string();
  const std::string file = (folder / "identify.json").string();
  const std::string text = read_text_file(file);
  try {
    const Json json = Json::parse(text);
    identified.locked = json.at("locked").get<std::map<std::string, double>>();
    identified.drives.cutoff = number_of(json, "cutoff", lowest_cutoff, highest_cutoff);
    identified.drives.gravity = json.at("effort_contains_gravity");
    for (const Json& joint : json.at("joints")) {
      identified.joints.push_back(joint.at("name"));
      Drive drive;
      drive.factor = number_of(joint, "factor");
      drive.delay = number_of(joint, "delay", -1.0, 1.0);
      drive.offset = number_of(joint, "offset");
      drive.rotor = number_of(joint, "rotor_inertia");
      drive.noise = number_of(joint, "noise", 0.0);
      drive.friction = friction_of(joint.at("friction"));
      identified.drives.joints.push_back(drive);
    }
    if (identified.joints.empty()) throw std::runtime_error("it names no joints");
    const auto dof = [&](const std::string& name) {
      for (std::size_t k = 0; k < identified.joints.size(); ++k)
        if (identified.joints[k] == name) return static_cast<int>(k);
      throw std::runtime_error("joint '" + name + "' is not among its joints");
    };
    for (const Json& shared : json.at("shared_motors")) {
      SharedMotor motor;
      motor.first = dof(shared.at("first"));
      motor.second = dof(shared.at("second"));
      motor.sign = number_of(shared, "sign", -1.0, 1.0);
      motor.rotor = number_of(shared, "rotor_inertia");
      motor.friction = friction_of(shared.at("friction"));
      identified.drives.shared.push_back(motor);
    }
  } catch (const std::exception& error) {
    throw std::runtime_error(file + ": is not what `dynamics identify` writes (" + error.what() +
                             "); identify again");
  }
  return identified;
}

void check_joints(const Identified& identified, const identification::Log& log) {
  for (const std::string& joint : identified.joints)
    if (std::find(log.joints.begin(), log.joints.end(), joint) == log.joints.end())
      throw identification::LogError(log.source, "it has no column q_" + joint,
                                     "give a log of the robot that was identified");
}

Model load_identified(const Identified& identified, RobotOptions options, const std::string& urdf) {
  options.file = urdf;
  options.joints = text::joined(identified.joints, ",");
  for (const auto& [joint, position] : identified.locked) {
    const bool given = std::any_of(
        options.locked.begin(), options.locked.end(),
        [&, &name = joint](const auto& text) { return text.rfind(name + "=", 0) == 0; });
    if (!given) options.locked.push_back(joint + "=" + text::to_text(position));
  }
  return load_robot(options);
}

identification::Drives drives_of(const Identified& identified, const Model& model) {
  identification::Drives drives = identified.drives;
  std::vector<int> place;
  for (const std::string& joint : identified.joints)
    place.push_back(model.joints[static_cast<std::size_t>(model.find_joint(joint))].v);
  for (std::size_t k = 0; k < place.size(); ++k)
    drives.joints[static_cast<std::size_t>(place[k])] = identified.drives.joints[k];
  for (SharedMotor& motor : drives.shared) {
    motor.first = place[static_cast<std::size_t>(motor.first)];
    motor.second = place[static_cast<std::size_t>(motor.second)];
  }
  return drives;
}

std::string percent(double share) {
  if (!std::isfinite(share)) return "-";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), 100.0 * share < 9.95 ? "%.2f" : "%.1f", 100.0 * share);
  return text.data();
}

}  // namespace dynamics_core::tools
