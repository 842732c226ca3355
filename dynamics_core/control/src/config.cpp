// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/control/config.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "checks.hpp"
#include "dynamics_core/text.hpp"

namespace dynamics_core::control {

namespace {

using text::to_short_text;

constexpr std::array<Mode, 5> all_modes = {Mode::gravity_compensation, Mode::feedforward,
                                           Mode::computed_torque, Mode::passivity,
                                           Mode::pass_through};
constexpr std::array<Compensation, 3> all_compensations = {
    Compensation::none, Compensation::gravity, Compensation::full};
constexpr std::array<Reaction, 3> all_reactions = {Reaction::none, Reaction::hold,
                                                   Reaction::give_way};
constexpr std::array<Missing, 2> all_missing = {Missing::zero, Missing::differentiate};

template <class Values>
[[nodiscard]] auto find(const Values& values, std::string_view name) noexcept
    -> std::optional<typename Values::value_type> {
  for (const auto value : values)
    if (name == to_string(value)) return value;
  return std::nullopt;
}

[[nodiscard]] bool has_one_dof(const JointInfo& joint) noexcept { return joint.nv == 1; }

[[nodiscard]] std::vector<std::string> commandable(const Model& model) {
  std::vector<std::string> names;
  for (const JointInfo& joint : model.joints)
    if (has_one_dof(joint)) names.push_back(joint.name);
  return names;
}

void check_joint(const Model& model, const std::string& name, const std::string& parameter) {
  for (const MimicInfo& mimic : model.mimics)
    if (mimic.name == name)
      throw ConfigError(parameter, "'" + name + "'",
                        "this joint mimics '" + mimic.joint + "'; name that one instead");
  const int index = model.find_joint(name);
  if (index < 0)
    throw ConfigError(
        parameter, "'" + name + "'",
        "the model has no such moving joint; it has " + text::quoted_list(commandable(model)));
  const JointInfo& joint = model.joints[static_cast<std::size_t>(index)];
  if (!has_one_dof(joint))
    throw ConfigError(parameter, "'" + name + "'",
                      std::string("a ") + to_string(joint.type) +
                          " joint has no single effort; name joints of one degree of freedom");
}

void resolve_joints(const Model& model, Config& config) {
  if (config.joints.empty()) config.joints = commandable(model);
  if (config.joints.empty())
    throw ConfigError("joints", "[]", "the model has no joint of one degree of freedom");
  for (auto name = config.joints.begin(); name != config.joints.end(); ++name) {
    check_joint(model, *name, "joints");
    if (std::find(config.joints.begin(), name, *name) != name)
      throw ConfigError("joints", "'" + *name + "'", "named twice; name each joint once");
  }
  for (const auto& [name, position] : config.locked) {
    check_joint(model, name, "locked");
    const std::string parameter = "locked." + name;
    if (!std::isfinite(position))
      throw ConfigError(parameter, to_short_text(position), "give a finite position");
    if (std::find(config.joints.begin(), config.joints.end(), name) != config.joints.end())
      throw ConfigError(parameter, to_short_text(position),
                        "this joint is commanded; take it out of `joints` or of `locked`");
  }
}

void check_friction(const std::string& joint, const JointFriction<double>& friction) {
  const std::string prefix = "friction." + joint + ".";
  const auto check = [&](const char* name, double x) {
    require(std::isfinite(x) && x >= 0.0, prefix + name, x, "give a finite number, not below zero");
  };
  check("viscous", friction.viscous);
  check("coulomb", friction.coulomb);
  check("breakaway", friction.breakaway);
  check("stiffness", friction.stiffness);
  require(friction.breakaway == 0.0 || friction.breakaway >= friction.coulomb, prefix + "breakaway",
          friction.breakaway, "give zero (no Stribeck effect) or no less than coulomb");
  const auto positive = [&](const char* name, double x) {
    require(std::isfinite(x) && x > 0.0, prefix + name, x, "give a speed above zero");
  };
  positive("stribeck_velocity", friction.stribeck_velocity);
  positive("transition", friction.transition);
}

void resolve_lists(const Model& model, Config& config) {
  const std::size_t n = config.joints.size();
  if (config.gains.empty()) config.gains.resize(n);
  if (config.effort_rate_limits.empty())
    config.effort_rate_limits.resize(n, std::numeric_limits<double>::infinity());
  const bool model_friction = config.friction.empty();
  const bool model_limits = config.effort_limits.empty();
  if (model_friction) config.friction.resize(n);
  if (model_limits) config.effort_limits.resize(n);
  expand("gains", config.gains, n);
  expand("friction", config.friction, n);
  expand("effort_limits", config.effort_limits, n);
  expand("effort_rate_limits", config.effort_rate_limits, n);
  for (std::size_t j = 0; j < n; ++j) {
    const std::string& name = config.joints[j];
    const JointInfo& joint = model.joints[static_cast<std::size_t>(model.find_joint(name))];
    if (model_friction) {
      config.friction[j].viscous = joint.damping;
      config.friction[j].coulomb = joint.friction;
    }
    if (model_limits) config.effort_limits[j] = joint.limits.effort;
    check_gains(name, config.gains[j], config.mode);
    check_friction(name, config.friction[j]);
    require(config.effort_limits[j] > 0.0, "effort_limits." + name, config.effort_limits[j],
            model_limits ? "so says the model; set effort_limits, infinity for none"
                         : "give a number above zero; infinity for none");
    require(config.effort_rate_limits[j] > 0.0, "effort_rate_limits." + name,
            config.effort_rate_limits[j], "give a number above zero; infinity for none");
  }
}

void check_times(const Config& config) {
  const auto time = [](const char* name, double x) {
    require(from_zero(x), name, x, "give a finite time, not below zero");
  };
  const auto positive = [](const char* name, double x, const char* remedy) {
    require(above_zero(x), name, x, remedy);
  };
  time("soft_start", config.soft_start);
  time("reference_timeout", config.reference_timeout);
  positive("max_dt", config.max_dt, "give a time above the control period");
  positive("velocity_cutoff", config.velocity_cutoff, "give a frequency above zero");
  positive("reference_cutoff", config.reference_cutoff, "give a frequency above zero");
  require(config.reference_margin >= 0.0, "reference_margin", config.reference_margin,
          "give a share, not below zero; infinity for no bound");
  if (config.max_held_cycles < 0)
    throw ConfigError("max_held_cycles", std::to_string(config.max_held_cycles),
                      "give zero (fault at once) or more");
}

}  // namespace

const char* to_string(Mode mode) noexcept {
  switch (mode) {
    case Mode::gravity_compensation: return "gravity_compensation";
    case Mode::feedforward: return "feedforward";
    case Mode::computed_torque: return "computed_torque";
    case Mode::passivity: return "passivity";
    case Mode::pass_through: return "pass_through";
  }
  return "unknown mode";
}

const char* to_string(Compensation compensation) noexcept {
  switch (compensation) {
    case Compensation::none: return "none";
    case Compensation::gravity: return "gravity";
    case Compensation::full: return "full";
  }
  return "unknown compensation";
}

const char* to_string(Missing missing) noexcept {
  switch (missing) {
    case Missing::zero: return "zero";
    case Missing::differentiate: return "differentiate";
  }
  return "unknown substitute";
}

const char* to_string(Reaction reaction) noexcept {
  switch (reaction) {
    case Reaction::none: return "none";
    case Reaction::hold: return "hold";
    case Reaction::give_way: return "float";
  }
  return "unknown reaction";
}

std::optional<Mode> find_mode(std::string_view name) noexcept { return find(all_modes, name); }
std::optional<Compensation> find_compensation(std::string_view name) noexcept {
  return find(all_compensations, name);
}
std::optional<Missing> find_missing(std::string_view name) noexcept {
  return find(all_missing, name);
}
std::optional<Reaction> find_reaction(std::string_view name) noexcept {
  return find(all_reactions, name);
}

bool usable(const Gains& gains, Mode mode) noexcept {
  const bool finite = std::isfinite(gains.p + gains.d + gains.i);
  if (!finite || gains.p < 0.0 || gains.d < 0.0 || gains.i < 0.0) return false;
  if (!(gains.i_clamp >= 0.0)) return false;
  return gains.i == 0.0 || mode == Mode::computed_torque;
}

void check_gains(const std::string& joint, const Gains& gains, Mode mode) {
  const std::string prefix = "gains." + joint + ".";
  constexpr const char* remedy = "give a finite number, not below zero";
  const auto good = [](double x) { return std::isfinite(x) && x >= 0.0; };
  require(good(gains.p), prefix + "p", gains.p, remedy);
  require(good(gains.d), prefix + "d", gains.d, remedy);
  require(good(gains.i), prefix + "i", gains.i, remedy);
  require(gains.i_clamp >= 0.0, prefix + "i_clamp", gains.i_clamp,
          "give a number not below zero; infinity for no bound");
  if (!usable(gains, mode))
    throw ConfigError(prefix + "i", to_short_text(gains.i),
                      std::string("mode ") + to_string(mode) +
                          " has no integral; set it to zero or use computed_torque");
}

Config resolve(const Model& model, Config config) {
  resolve_joints(model, config);
  resolve_lists(model, config);
  check_times(config);
  if (config.mode == Mode::gravity_compensation && config.reaction == Reaction::hold)
    throw ConfigError(
        "reaction", to_string(config.reaction),
        "mode gravity_compensation holds nothing; give none or float, or another mode");
  if (!config.gravity) config.gravity = model.gravity;
  if (!config.gravity->allFinite()) {
    const Eigen::Vector3d& g = *config.gravity;
    throw ConfigError("gravity",
                      to_short_text(g[0]) + " " + to_short_text(g[1]) + " " + to_short_text(g[2]),
                      "give three finite numbers in m/s²");
  }
  return config;
}

std::vector<bool> without_end_stops(const Model& model, const std::vector<std::string>& joints) {
  std::vector<bool> out;
  out.reserve(joints.size());
  for (const std::string& name : joints)
    out.push_back(model.joints[static_cast<std::size_t>(model.find_joint(name))].type ==
                  JointType::continuous);
  return out;
}

}  // namespace dynamics_core::control
