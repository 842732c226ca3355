// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/simulation/simulation_setup.hpp"

#include <algorithm>
#include <optional>

#include "dynamics_core/config_error.hpp"
#include "dynamics_core/load.hpp"
#include "dynamics_core/text.hpp"

namespace dynamics_core::simulation {

namespace {

using text::to_short_text;
using text::trimmed;
using Settings = std::unordered_map<std::string, std::string>;

/// The parts between commas; a comma may also end the list.
[[nodiscard]] std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts = text::split(text);
  if (!text.empty() && text.back() == ',') parts.pop_back();
  return parts;
}

[[nodiscard]] double parse_number(const std::string& name, const std::string& text) {
  const std::optional<double> value = text::parse_finite(trimmed(text));
  if (!value)
    throw ConfigError(name, "'" + text + "'", "is not a finite number; write one as 0.01 or 1e-2");
  return *value;
}

[[nodiscard]] bool parse_bool(const std::string& name, const std::string& text) {
  const std::string word = trimmed(text);
  if (word == "true" || word == "True") return true;
  if (word == "false" || word == "False") return false;
  throw ConfigError(name, "'" + text + "'", "write true or false");
}

struct Assignment {
  std::string name;  ///< empty where there is none
  std::string value;
};
/// NAME=VALUE or VALUE
[[nodiscard]] Assignment parse_assignment(const std::string& text) {
  const auto equals = text.rfind('=');
  if (equals == std::string::npos) return {"", text};
  return {trimmed(text.substr(0, equals)), trimmed(text.substr(equals + 1))};
}

/// 1 + error for each of the items: "10%" for all, "name=10%" for one; what comes later prevails.
template <class Items>
[[nodiscard]] std::vector<double> parse_errors(const std::string& name, const std::string& text,
                                               const Items& items) {
  std::vector<double> factors(items.size(), 1.0);
  for (const std::string& part : split(text)) {
    const Assignment error = parse_assignment(part);
    if (error.value.empty() || error.value.back() != '%')
      throw ConfigError(name, "'" + part + "'", "write it in percent, as 10% or NAME=10%");
    const double factor =
        1.0 + 0.01 * parse_number(name, error.value.substr(0, error.value.size() - 1));
    if (factor < 0.0) throw ConfigError(name, "'" + part + "'", "give -100% or more");
    if (error.name.empty()) {
      std::fill(factors.begin(), factors.end(), factor);
      continue;
    }
    const auto it = std::find_if(items.begin(), items.end(),
                                 [&](const auto& item) { return item.name == error.name; });
    if (it == items.end())
      throw ConfigError(name, "'" + part + "'",
                        "the robot has no '" + error.name + "' that moves; correct the name");
    factors[static_cast<std::size_t>(it - items.begin())] = factor;
  }
  return factors;
}

[[nodiscard]] std::map<std::string, double> parse_locked(const std::string& text) {
  std::map<std::string, double> locked;
  for (const std::string& part : split(text)) {
    const Assignment at = parse_assignment(part);
    if (at.name.empty())
      throw ConfigError("locked", "'" + part + "'", "write it as JOINT=POSITION");
    if (!locked.emplace(at.name, parse_number("locked", at.value)).second)
      throw ConfigError("locked", "'" + part + "'", "the joint is named twice");
  }
  return locked;
}

[[nodiscard]] Eigen::Vector3d parse_gravity(const std::string& text) {
  const std::vector<std::string> parts = split(text);
  if (parts.size() != 3)
    throw ConfigError("gravity", "'" + text + "'", "write it as X,Y,Z in m/s^2, as 0,0,-9.81");
  return {parse_number("gravity", parts[0]), parse_number("gravity", parts[1]),
          parse_number("gravity", parts[2])};
}

void require_within(const std::string& name, double value, double low, double high) {
  if (value >= low && value <= high) return;
  throw ConfigError(name, to_short_text(value),
                    "give a number from " + to_short_text(low) + " to " + to_short_text(high));
}

/// What the settings say, and defaults where they say nothing.
class Reader {
 public:
  explicit Reader(const Settings& settings) : settings_(settings) {
    for (const auto& [name, text] : settings)
      if (std::find(simulation_settings.begin(), simulation_settings.end(), name) ==
          simulation_settings.end())
        throw ConfigError(name, "'" + text + "'",
                          "is unknown; known are " + text::joined(simulation_settings));
  }

  [[nodiscard]] const std::string* text(const char* name) const {
    const auto it = settings_.find(name);
    return it == settings_.end() ? nullptr : &it->second;
  }
  void number(const char* name, double& value) const {
    if (const std::string* t = text(name)) value = parse_number(name, *t);
  }
  template <class Integer>
  void whole(const char* name, Integer& value) const {
    const std::string* t = text(name);
    if (t == nullptr) return;
    const std::optional<Integer> whole = text::parse_whole<Integer>(trimmed(*t));
    if (!whole) throw ConfigError(name, "'" + *t + "'", "is not a whole number; write one as 3");
    value = *whole;
  }
  [[nodiscard]] bool is(const char* name, bool otherwise) const {
    const std::string* t = text(name);
    return t == nullptr ? otherwise : parse_bool(name, *t);
  }

 private:
  const Settings& settings_;
};

[[nodiscard]] bool is_mimic(const RobotDescription& robot, const std::string& joint) {
  return std::any_of(robot.joints.begin(), robot.joints.end(), [&](const JointDescription& j) {
    return j.name == joint && j.mimic.has_value();
  });
}

[[nodiscard]] Model read_model(const std::string& urdf, const std::vector<std::string>& joints,
                               const Reader& read) {
  const RobotDescription robot = parse_urdf(urdf);
  for (const JointDescription& joint : robot.joints)
    if (joint.type == JointType::floating || joint.type == JointType::planar)
      throw ModelError("", "joint '" + joint.name + "'",
                       std::string("is ") + to_string(joint.type) + " and has no drive",
                       "make it fixed in the URDF");
  ModelOptions options;
  options.joints.emplace();
  for (const std::string& joint : joints)
    if (!is_mimic(robot, joint)) options.joints->push_back(joint);
  if (const std::string* text = read.text("locked")) options.locked = parse_locked(*text);
  if (const std::string* text = read.text("gravity")) options.gravity = parse_gravity(*text);
  for (const std::string& joint : joints)
    if (options.locked.count(joint) > 0)
      throw ConfigError("locked", "'" + joint + "'",
                        "the joint is driven, too; leave it out here or among the driven ones");
  const Model model = build_model(robot, options);
  std::vector<double> masses;
  std::vector<double> friction;
  if (const std::string* text = read.text("mass_error"))
    masses = parse_errors("mass_error", *text, model.links);
  if (const std::string* text = read.text("friction_error"))
    friction = parse_errors("friction_error", *text, model.joints);
  return rescaled(model, masses, friction);
}

[[nodiscard]] std::vector<double> effort_limits(const Model& model) {
  std::vector<double> limits;
  for (const JointInfo& joint : model.joints) {
    if (!(joint.limits.effort > 0.0))
      throw ConfigError("effort limit of joint '" + joint.name + "'",
                        to_short_text(joint.limits.effort),
                        "correct the URDF, or set effort_limits to false");
    limits.push_back(joint.limits.effort);
  }
  return limits;
}

}  // namespace

SimulationSetup read_simulation(const std::string& urdf, const std::vector<std::string>& joints,
                                const Settings& settings) {
  const Reader read(settings);
  SimulationSetup setup;
  setup.model = read_model(urdf, joints, read);
  Imperfections& x = setup.imperfections;
  read.number("position_noise", x.position_noise);
  read.number("velocity_noise", x.velocity_noise);
  read.number("resolution", x.resolution);
  read.whole("delay", x.delay);
  require_within("delay", x.delay, 0, 10000);
  read.whole("seed", x.seed);
  if (read.is("effort_limits", true)) x.effort_limits = effort_limits(setup.model);
  setup.mechanics.joint_stops = read.is("joint_stops", true);
  read.number("stop_frequency", setup.mechanics.stop_frequency);
  read.number("servo_frequency", setup.mechanics.servo_frequency);
  read.number("max_step", setup.max_step);
  require_within("max_step", setup.max_step, 1e-6, 0.1);
  return setup;
}

double initial_position(const JointInfo& joint, const std::string& text) {
  if (text.empty()) return std::clamp(0.0, joint.limits.lower, joint.limits.upper);
  const std::string name = "initial_value of joint '" + joint.name + "'";
  const double value = parse_number(name, text);
  require_within(name, value, joint.limits.lower, joint.limits.upper);
  return value;
}

}  // namespace dynamics_core::simulation
