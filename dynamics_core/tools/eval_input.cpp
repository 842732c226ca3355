// SPDX-License-Identifier: Apache-2.0
#include "eval_input.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "dynamics_core/text.hpp"

namespace dynamics_core::tools {

namespace {

using Eigen::Index;
using VectorXd = VectorX<double>;
using text::quoted;
using Line = LineReader::Line;

/// Is there a value? null stands for none.
[[nodiscard]] bool given(const Line& line, const char* key) {
  const auto it = line.find(key);
  return it != line.end() && !it->is_null();
}

/// A misspelt key would otherwise pass for a zero.
void check_keys(const Line& line) {
  static const std::array known = {"q",        "v",      "a",    "tau", "gravity",
                                   "external", "joints", "link", "id"};
  for (const auto& item : line.items())
    if (std::find(known.begin(), known.end(), item.key()) == known.end())
      throw LineError("unknown key " + quoted(item.key()) +
                      "; known are q, v, a, tau, gravity, external, joints, link and id");
}

[[nodiscard]] std::string read_text(const Line& value, const std::string& what) {
  if (!value.is_string()) throw LineError(what + " is not a name");
  return value.get<std::string>();
}

[[nodiscard]] VectorXd read_numbers(const Line& value, const std::string& what, int size) {
  if (!value.is_array()) throw LineError(what + " is not an array of numbers");
  if (value.size() != static_cast<std::size_t>(size))
    throw LineError(what + " has " + std::to_string(value.size()) + " elements instead of " +
                    std::to_string(size));
  VectorXd x(size);
  for (int i = 0; i < size; ++i) {
    const Line& element = value[static_cast<std::size_t>(i)];
    if (!element.is_number()) throw LineError(what + "[" + std::to_string(i) + "] is not a number");
    x[i] = element.get<double>();
  }
  return x;
}

[[nodiscard]] VectorXd ordered(const VectorXd& values, const std::vector<int>& places) {
  VectorXd x(values.size());
  for (std::size_t i = 0; i < places.size(); ++i) x[places[i]] = values[static_cast<Index>(i)];
  return x;
}

void append(const JointInfo& joint, Order& order) {
  for (int i = 0; i < joint.nq; ++i) order.q.push_back(joint.q + i);
  for (int i = 0; i < joint.nv; ++i) order.v.push_back(joint.v + i);
}

/// How deep brackets and braces nest, those in strings apart.
[[nodiscard]] int depth(const std::string& text) {
  int now = 0, deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\') ++i;
    if (in_string) continue;
    if (c == '[' || c == '{') deepest = std::max(deepest, ++now);
    if (c == ']' || c == '}') --now;
  }
  return deepest;
}

/// The library's text without its code in brackets, and not longer than a line.
[[nodiscard]] std::string explanation(const Line::exception& error) {
  const std::string text = error.what();
  const auto bracket = text.find("] ");
  return text.substr(bracket == std::string::npos ? 0 : bracket + 2, 200);
}

}  // namespace

LineReader::LineReader(const Model& model, int link) : model_(model), link_(link) {
  for (std::size_t i = 0; i < model.joints.size(); ++i) joints_[model.joints[i].name] = i;
  for (const JointInfo& joint : model.joints) append(joint, source_order_);
}

Line LineReader::parse(const std::string& text) {
  if (text.find_first_not_of(" \t\r") == std::string::npos) throw LineError("the line is empty");
  constexpr int deepest = 100;  // what is deeper takes the stack of those who write it out
  if (depth(text) > deepest)
    throw LineError("nested more than " + std::to_string(deepest) + " deep; make id simpler");
  try {
    return Line::parse(text);
  } catch (const Line::exception& error) {
    throw LineError("not JSON: " + explanation(error));
  }
}

LineValues LineReader::read(const Line& line, Dynamics<double>& robot) const {
  if (!line.is_object()) throw LineError("the line is not a JSON object; write {\"q\": [...]}");
  check_keys(line);
  LineValues s;
  s.order = given(line, "joints") ? read_order(line["joints"]) : source_order_;
  if (!given(line, "q")) throw LineError("q is missing");
  s.q = ordered(read_numbers(line["q"], "q", model_.nq), s.order.q);
  s.v = read_rates(line, "v", s.order);
  s.a = read_rates(line, "a", s.order);
  s.tau = read_rates(line, "tau", s.order);
  check_quaternions(s.q);
  s.link = given(line, "link") ? find_link(read_text(line["link"], "link")) : link_;
  const bool tilted = given(line, "gravity");
  const Eigen::Vector3d gravity =
      tilted ? Eigen::Vector3d(read_numbers(line["gravity"], "gravity", 3)) : model_.gravity;
  if (robot.set_gravity(gravity) != Status::ok) throw LineError("gravity is not finite");
  robot.clear_external_forces();
  if (given(line, "external")) read_external(line["external"], robot);
  return s;
}

VectorXd LineReader::read_rates(const Line& line, const char* key, const Order& order) const {
  if (!given(line, key)) return VectorXd::Zero(model_.nv);
  return ordered(read_numbers(line[key], key, model_.nv), order.v);
}

Order LineReader::read_order(const Line& names) const {
  if (!names.is_array()) throw LineError("joints is not an array of names");
  Order order;
  std::vector<bool> seen(model_.joints.size(), false);
  for (const Line& element : names) {
    const std::string name = read_text(element, "an element of joints");
    const auto it = joints_.find(name);
    if (it == joints_.end()) throw LineError(no_such_joint(name));
    if (seen[it->second]) throw LineError("joints names " + quoted(name) + " twice");
    seen[it->second] = true;
    append(model_.joints[it->second], order);
  }
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (!seen[i]) throw LineError("joints lacks " + quoted(model_.joints[i].name));
  return order;
}

std::string LineReader::no_such_joint(const std::string& name) const {
  for (const MimicInfo& mimic : model_.mimics)
    if (mimic.name == name)
      return "joints names " + quoted(name) + ", which mimics " + quoted(mimic.joint) +
             " and has no coordinate of its own";
  return "joints names " + quoted(name) + ", which is not a moving joint of this robot";
}

int LineReader::find_link(const std::string& name) const {
  const int link = model_.find_link(name);
  if (link < 0) throw LineError("there is no link " + quoted(name));
  return link;
}

void LineReader::check_quaternions(const VectorXd& q) const {
  for (const JointInfo& joint : model_.joints)
    if (joint.type == JointType::floating &&
        !std::isnormal(q.segment<4>(joint.q + 3).squaredNorm()))
      throw LineError("the quaternion of joint " + quoted(joint.name) +
                      " is zero; its elements are qx, qy, qz, qw, at rest 0, 0, 0, 1");
}

void LineReader::read_external(const Line& forces, Dynamics<double>& robot) const {
  if (!forces.is_object())
    throw LineError("external is not an object {link: [nx, ny, nz, fx, fy, fz]}");
  for (const auto& item : forces.items()) {
    const int link = find_link(item.key());
    const VectorXd f = read_numbers(item.value(), "external " + quoted(item.key()), 6);
    const Status status = robot.add_external_force(link, {f.head<3>(), f.tail<3>()});
    if (status != Status::ok)
      throw LineError("external " + quoted(item.key()) + ": " + to_string(status));
  }
}

}  // namespace dynamics_core::tools
