// SPDX-License-Identifier: Apache-2.0
#include "common.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <ostream>

#include "dynamics_core/config_error.hpp"
#include "dynamics_core/load.hpp"
#include "dynamics_core/text.hpp"

namespace dynamics_core::tools {

namespace {

using text::trimmed;

/// joint=value, from each use of a repeatable option.
[[nodiscard]] std::map<std::string, double> parse_assignments(const std::vector<std::string>& texts,
                                                              const std::string& option) {
  std::map<std::string, double> values;
  for (const std::string& text : texts) {
    const auto equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError(option + " '" + text + "': write it as joint=value");
    const std::string joint = trimmed(text.substr(0, equals));
    const double value = parse_number(text.substr(equals + 1), option + " '" + text + "'");
    if (!values.emplace(joint, value).second)
      throw UsageError(option + ": joint '" + joint + "' is named twice");
  }
  return values;
}

/// Characters that take a place: no continuation bytes, and no accents (U+0300 to U+036F) that go
/// onto the letter before.
[[nodiscard]] std::size_t width(const std::string& utf8) {
  std::size_t places = 0;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const auto byte = static_cast<unsigned char>(utf8[i]);
    const auto next = i + 1 < utf8.size() ? static_cast<unsigned char>(utf8[i + 1]) : 0;
    const bool continues = (byte & 0xC0) == 0x80;
    const bool accent = byte == 0xCC || (byte == 0xCD && next < 0xB0);
    places += continues || accent ? 0 : 1;
  }
  return places;
}

[[nodiscard]] std::vector<std::string> method_names() {
  std::vector<std::string> names;
  names.reserve(all_methods.size());
  for (const Method method : all_methods) names.emplace_back(to_string(method));
  return names;
}

[[nodiscard]] bool is_number(const std::string& cell) {
  return cell == "-" || cell.find_first_not_of("0123456789.+-e") == std::string::npos;
}

}  // namespace

double parse_number(const std::string& text, const std::string& what) {
  const std::optional<double> value = text::parse_finite(trimmed(text));
  if (!value) throw UsageError(what + ": '" + trimmed(text) + "' is not a finite number");
  return *value;
}

std::vector<double> parse_numbers(const std::string& text, const std::string& what) {
  std::vector<double> numbers;
  for (const std::string& part : text::split(text)) numbers.push_back(parse_number(part, what));
  return numbers;
}

void add_robot_options(CLI::App& app, RobotOptions& options) {
  app.add_option("ROBOT", options.file, "URDF or Denavit-Hartenberg file (YAML or JSON)")
      ->required();
  const char* const group = "Robot";
  const auto repeatable = [&](const char* name, std::vector<std::string>& values, const char* form,
                              const char* text) {
    app.add_option(name, values, text)->group(group)->expected(1)->type_name(form)->take_all();
  };
  app.add_flag("--strict", options.strict, "Refuse what would only be a warning")->group(group);
  app.add_flag("--floating-base", options.floating_base, "Let the root link float freely")
      ->group(group);
  app.add_option("--gravity", options.gravity, "Gravity in the root link's axes, m/s^2")
      ->group(group)
      ->type_name("X,Y,Z");
  app.add_option("--joints", options.joints, "Only these joints move, the others are locked")
      ->group(group)
      ->type_name("A,B,...");
  app.add_option("--loops", options.loops, "Joints that close loops (YAML)")
      ->group(group)
      ->type_name("FILE");
  repeatable("--locked", options.locked, "JOINT=VALUE", "Hold a joint at a position (repeatable)");
  repeatable("--payload", options.payloads, "LINK,MASS,X,Y,Z",
             "Fix a payload to a link: kg, and its centre of mass in m;\nsix more numbers are its "
             "inertia\nixx,ixy,ixz,iyy,iyz,izz (repeatable)");
  repeatable("--damping", options.damping, "JOINT=VALUE", "Viscous friction (repeatable)");
  repeatable("--friction", options.friction, "JOINT=VALUE", "Coulomb friction (repeatable)");
  repeatable("--rotor-inertia", options.rotor_inertia, "JOINT=VALUE",
             "Inertia of a motor's rotor, kg m^2 (repeatable)");
  repeatable("--gear-ratio", options.gear_ratio, "JOINT=VALUE",
             "Motor turns per joint turn (repeatable)");
}

Model load_robot(const RobotOptions& options) {
  ModelOptions model;
  model.strict = options.strict;
  model.floating_base = options.floating_base;
  if (!options.gravity.empty()) {
    const std::vector<double> g = parse_numbers(options.gravity, "--gravity");
    if (g.size() != 3) throw UsageError("--gravity '" + options.gravity + "': write it as x,y,z");
    model.gravity = Eigen::Vector3d(g[0], g[1], g[2]);
  }
  if (!options.joints.empty()) model.joints = text::split(options.joints);
  model.locked = parse_assignments(options.locked, "--locked");
  model.damping = parse_assignments(options.damping, "--damping");
  model.friction = parse_assignments(options.friction, "--friction");
  model.rotor_inertia = parse_assignments(options.rotor_inertia, "--rotor-inertia");
  model.gear_ratio = parse_assignments(options.gear_ratio, "--gear-ratio");
  return load_model(options.file, model);
}

LoopSet load_loops(const Model& model, const RobotOptions& options) {
  return options.loops.empty() ? LoopSet{} : dynamics_core::load_loops(options.loops, model);
}

std::vector<CarriedPayload> parse_payloads(const Model& model,
                                           const std::vector<std::string>& texts,
                                           const std::string& option) {
  std::vector<CarriedPayload> payloads;
  for (const std::string& text : texts) {
    const std::string what = option + " '" + text + "'";
    const auto comma = text.find(',');
    if (comma == std::string::npos || comma == 0)
      throw UsageError(what + ": write it as link,mass,x,y,z");
    const std::vector<double> x = parse_numbers(text.substr(comma + 1), what);
    if (x.size() != 4 && x.size() != 10)
      throw UsageError(what + ": write it as link,mass,x,y,z or as " +
                       "link,mass,x,y,z,ixx,ixy,ixz,iyy,iyz,izz");
    Payload<double> payload{x[0], {x[1], x[2], x[3]}, Symmetric3<double>::zero()};
    if (x.size() == 10) payload.inertia = {x[4], x[5], x[6], x[7], x[8], x[9]};
    const std::string link = trimmed(text.substr(0, comma));
    if (model.find_link(link) < 0)
      throw ModelError(option, "link '" + link + "'", "there is no such link to carry it",
                       "`dynamics info` lists the links");
    int index = -1;
    try {
      index = checked_payload(model, link, payload);
    } catch (const ConfigError& error) {
      throw UsageError(what + ": " + error.what());
    }
    for (const CarriedPayload& other : payloads)
      if (other.link == index)
        throw UsageError(option + ": link '" + link + "' is named twice; give one payload a link");
    payloads.push_back({index, payload});
  }
  return payloads;
}

Dynamics<double> make_dynamics(const Model& model, const RobotOptions& options) {
  Dynamics<double> robot(model);
  for (const CarriedPayload& on : parse_payloads(model, options.payloads, "--payload"))
    if (const Status status = robot.set_payload(on.link, on.payload); status != Status::ok)
      throw UsageError(std::string("--payload: ") + to_string(status));
  return robot;
}

std::optional<Method> parse_method(const std::string& name) {
  if (name.empty()) return std::nullopt;
  const std::optional<Method> method = find_method(name);
  if (method) return method;
  throw UsageError("--method: unknown method '" + name + "'; known are " +
                   text::joined(method_names()));
}

std::string method_help() {
  return "Family of algorithms, for what it provides:\n" + text::alternatives(method_names());
}

CLI::Validator number_between(double least, double most) {
  const std::string range = text::to_short_text(least) + " to " + text::to_short_text(most);
  return CLI::Validator(
      [=](std::string& text) {
        const std::optional<double> x = text::parse_finite(trimmed(text));
        return x && *x >= least && *x <= most
                   ? std::string()
                   : "'" + trimmed(text) + "' is not a number from " + range;
      },
      "FLOAT in [" + range + "]");
}

std::string yaml_number(double value) {
  std::string text = text::to_short_text(value);
  if (!std::isfinite(value) || text.find('.') != text.npos) return text;
  return text.insert(std::min(text.find('e'), text.size()), ".0");
}

std::string yaml_name(const std::string& name) {
  constexpr const char* letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
  static const std::vector<std::string> words = {"y",   "n",    "yes",   "no",   "on",
                                                 "off", "true", "false", "null", "none"};
  std::string lower = name;
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  const bool plain = !name.empty() &&
                     std::string(letters).find(name.front()) != std::string::npos &&
                     name.find_first_not_of(std::string(letters) + "0123456789-./") == name.npos &&
                     std::find(words.begin(), words.end(), lower) == words.end();
  if (plain) return name;
  constexpr const char* digits = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F)
      out += std::string("\\x") + digits[byte >> 4U] + digits[byte & 15U];
    else
      out += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
  }
  return out + '"';
}

std::string read_text_file(const std::string& path) {
  constexpr std::size_t largest =
      10'000'000;  // read_waypoints refuses more; a device may never end
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::vector<char> part(std::size_t{1} << 16U);
  do {
    file.read(part.data(), static_cast<std::streamsize>(part.size()));
    text.append(part.data(), static_cast<std::size_t>(file.gcount()));
  } while (file && text.size() <= largest);
  if (!file.is_open() || file.bad() || text.empty())
    throw std::runtime_error(path + ": cannot be read, or is empty; check the name");
  return text;
}

CoordinateNames coordinate_names(const Model& model) {
  static const std::vector<std::string> pose = {".x", ".y", ".z", ".qx", ".qy", ".qz", ".qw"};
  static const std::vector<std::string> twist = {".wx", ".wy", ".wz", ".vx", ".vy", ".vz"};
  static const std::vector<std::string> plane = {".x", ".y", ".theta"};
  CoordinateNames names;
  for (const JointInfo& joint : model.joints) {
    const bool floating = joint.type == JointType::floating;
    for (const std::string& suffix : joint.nq == 1 ? std::vector<std::string>{""}
                                     : floating    ? pose
                                                   : plane)
      names.q.push_back(joint.name + suffix);
    for (const std::string& suffix : joint.nv == 1 ? std::vector<std::string>{""}
                                     : floating    ? twist
                                                   : plane)
      names.v.push_back(joint.name + suffix);
  }
  return names;
}

void print_table(std::ostream& out, std::vector<Row> rows) {
  for (Row& row : rows)
    for (std::string& cell : row) cell = text::printable(cell);
  std::vector<std::size_t> widths(rows.front().size(), 0);
  std::vector<bool> numeric(rows.front().size(), true);
  for (const Row& row : rows) {
    for (std::size_t j = 0; j < row.size(); ++j) {
      widths[j] = std::max(widths[j], width(row[j]));
      if (&row != &rows.front()) numeric[j] = numeric[j] && is_number(row[j]);
    }
  }
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t j = 0; j < row.size(); ++j) {
      const std::string blanks(widths[j] - width(row[j]), ' ');
      line += "  " + (numeric[j] ? blanks + row[j] : row[j] + blanks);
    }
    out << line.substr(0, line.find_last_not_of(' ') + 1) << '\n';
  }
}

}  // namespace dynamics_core::tools
