// SPDX-License-Identifier: Apache-2.0
#include <yaml-cpp/yaml.h>

#include <array>
#include <cmath>
#include <fstream>
#include <iterator>
#include <set>

#include "dynamics_core/loops.hpp"
#include "dynamics_core/text.hpp"
#include "load_common.hpp"

namespace dynamics_core {

namespace {

using text::quoted;

constexpr std::array<LoopType, 7> all_types = {
    LoopType::fixed,     LoopType::revolute,  LoopType::prismatic, LoopType::cylindrical,
    LoopType::universal, LoopType::spherical, LoopType::planar};

[[nodiscard]] bool has_axis(LoopType type) {
  return type != LoopType::fixed && type != LoopType::spherical;
}

[[nodiscard]] std::string type_names() {
  std::vector<std::string> names;
  names.reserve(all_types.size());
  for (const LoopType type : all_types) names.emplace_back(to_string(type));
  return text::alternatives(names);
}

class LoopReader {
 public:
  LoopReader(const Model& model, const std::string& source) : model_(model), source_(source) {}

  [[nodiscard]] LoopSet read(const YAML::Node& file) {
    const YAML::Node list = file.IsMap() ? file["loops"] : file;
    if (file.IsMap()) check_keys("", file, {"loops"});
    if (!list || !list.IsSequence())
      refuse("", file, "has no list of loop joints", "write 'loops:' and a list under it");
    constexpr std::size_t most = 256;  // memory grows with the square
    if (list.size() > most)
      refuse(
          "", list,
          "has " + std::to_string(list.size()) + " loop joints, more than " + std::to_string(most),
          "split the robot into several models");
    LoopSet loops;
    for (const auto& node : list) loops.push_back(read_joint(node, loops.size() + 1));
    return loops;
  }

 private:
  [[noreturn]] void refuse(const std::string& owner, const YAML::Node& node,
                           const std::string& problem, const std::string& remedy) const {
    const YAML::Mark mark = node.IsDefined() ? node.Mark() : YAML::Mark::null_mark();
    const std::string line = mark.is_null() ? "" : "line " + std::to_string(mark.line + 1);
    const std::string name = owner.empty() ? "file" : owner;
    throw ModelError(source_, line.empty() ? name : name + " (" + line + ")", problem, remedy);
  }

  void check_keys(const std::string& owner, const YAML::Node& map,
                  const std::set<std::string>& known) const {
    std::set<std::string> seen;
    for (const auto& entry : map) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      if (known.count(key) == 0) {
        refuse(owner, entry.first, "unknown key " + quoted(key),
               "known here are " + text::joined(known));
      }
      if (!seen.insert(key).second)
        refuse(owner, entry.first, "key " + quoted(key) + " is given twice", "remove one");
    }
  }

  [[nodiscard]] std::string text(const std::string& owner, const YAML::Node& map,
                                 const char* key) const {
    const YAML::Node node = map[key];
    if (!node)
      refuse(owner, map, std::string("has no ") + key, std::string("add '") + key + ": …'");
    if (!node.IsScalar() || node.Scalar().empty())
      refuse(owner, node, std::string(key) + " is not a single value", "write one");
    return node.Scalar();
  }

  [[nodiscard]] Eigen::Vector3d vector(const std::string& owner, const YAML::Node& node,
                                       const char* key) const {
    if (!node.IsSequence() || node.size() != 3)
      refuse(owner, node, std::string(key) + " is not a list of three numbers",
             std::string("write for example '") + key + ": [0, 0, 1]'");
    Eigen::Vector3d out;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::string value = node[i].IsScalar() ? node[i].Scalar() : "";
      const std::optional<double> x = text::parse_finite(value);
      if (!x)
        refuse(owner, node, std::string(key) + " holds " + quoted(value) + ", no finite number",
               "write a number such as 0.25");
      out[static_cast<Eigen::Index>(i)] = *x;
    }
    return out;
  }

  [[nodiscard]] Eigen::Vector3d direction(const std::string& owner, const YAML::Node& map,
                                          const char* key) const {
    const YAML::Node node = map[key];
    if (!node)
      refuse(owner, map, std::string("has no ") + key,
             std::string("write for example '") + key + ": [0, 0, 1]'");
    const Eigen::Vector3d u = vector(owner, node, key);
    if (!(u.norm() > 1e-9))
      refuse(owner, node, std::string(key) + " is zero", "give it a direction");
    return u.normalized();
  }

  [[nodiscard]] Pose<double> frame(const std::string& owner, const YAML::Node& map,
                                   const char* key) const {
    Pose<double> X = Pose<double>::identity();
    const YAML::Node node = map[key];
    if (!node) return X;
    if (!node.IsMap())
      refuse(owner, node, std::string(key) + " is no frame",
             "write '{xyz: [0, 0, 0], rpy: [0, 0, 0]}'");
    check_keys(owner, node, {"xyz", "rpy"});
    if (const YAML::Node xyz = node["xyz"]) X.p = vector(owner, xyz, "xyz");
    if (const YAML::Node rpy = node["rpy"]) {
      const Eigen::Vector3d angle = vector(owner, rpy, "rpy");
      X.R = (Eigen::AngleAxisd(angle[2], Eigen::Vector3d::UnitZ()) *
             Eigen::AngleAxisd(angle[1], Eigen::Vector3d::UnitY()) *
             Eigen::AngleAxisd(angle[0], Eigen::Vector3d::UnitX()))
                .toRotationMatrix();
    }
    return X;
  }

  [[nodiscard]] int link(const std::string& owner, const YAML::Node& map, const char* key) const {
    const std::string name = text(owner, map, key);
    const int index = model_.find_link(name);
    if (index < 0)
      refuse(owner, map[key], std::string(key) + " " + quoted(name) + " is no link of the robot",
             "use one of the robot's link names");
    return index;
  }

  [[nodiscard]] LoopType type(const std::string& owner, const YAML::Node& map) const {
    const std::string name = text(owner, map, "type");
    for (const LoopType type : all_types)
      if (name == to_string(type)) return type;
    refuse(owner, map["type"], "type " + quoted(name) + " is unknown", "write " + type_names());
  }

  [[nodiscard]] LoopJoint read_joint(const YAML::Node& node, std::size_t number) {
    std::string owner = "loop joint number " + std::to_string(number);
    if (!node.IsMap()) refuse(owner, node, "is no map of keys", "give it name, type and two links");
    LoopJoint joint;
    joint.name = text(owner, node, "name");
    owner = "loop joint " + quoted(joint.name);
    if (!names_.insert(joint.name).second)
      refuse(owner, node, "exists twice", "rename one of them");
    joint.type = type(owner, node);
    std::set<std::string> keys = {"name", "type", "link_a", "link_b", "frame_a", "frame_b"};
    if (has_axis(joint.type)) keys.insert("axis");
    if (joint.type == LoopType::universal) keys.insert("axis_b");
    check_keys(owner, node, keys);
    joint.link_a = link(owner, node, "link_a");
    joint.link_b = link(owner, node, "link_b");
    joint.frame_a = frame(owner, node, "frame_a");
    joint.frame_b = frame(owner, node, "frame_b");
    if (has_axis(joint.type)) joint.axis = direction(owner, node, "axis");
    if (joint.type == LoopType::universal) joint.axis_b = direction(owner, node, "axis_b");
    return joint;
  }

  const Model& model_;
  const std::string& source_;
  std::set<std::string> names_;
};

}  // namespace

const char* to_string(LoopType type) noexcept {
  switch (type) {
    case LoopType::fixed: return "fixed";
    case LoopType::revolute: return "revolute";
    case LoopType::prismatic: return "prismatic";
    case LoopType::cylindrical: return "cylindrical";
    case LoopType::universal: return "universal";
    case LoopType::spherical: return "spherical";
    case LoopType::planar: return "planar";
  }
  return "unknown";
}

void validate(const LoopSet& loops, const Model& model, const std::string& source) {
  const int links = static_cast<int>(model.links.size());
  for (const LoopJoint& j : loops) {
    const std::string owner = "loop joint " + quoted(j.name);
    for (const int link : {j.link_a, j.link_b})
      if (link < 0 || link >= links)
        throw ModelError(source, owner, "link " + std::to_string(link) + " does not exist",
                         "give an index into the model's " + std::to_string(links) + " links");
    const LinkInfo& a = model.links[static_cast<std::size_t>(j.link_a)];
    const LinkInfo& b = model.links[static_cast<std::size_t>(j.link_b)];
    if (a.body == b.body)
      throw ModelError(source, owner,
                       "links " + quoted(a.name) + " and " + quoted(b.name) + " cannot move apart",
                       "connect links with a moving joint between them");
    if (!(j.axis.norm() > 1e-9) || !(j.axis_b.norm() > 1e-9) || !j.axis.allFinite() ||
        !j.axis_b.allFinite())
      throw ModelError(source, owner, "axis has no direction",
                       "give three finite numbers, not all zero");
    if (!j.frame_a.R.allFinite() || !j.frame_a.p.allFinite() || !j.frame_b.R.allFinite() ||
        !j.frame_b.p.allFinite())
      throw ModelError(source, owner, "a frame is not finite", "give finite numbers");
  }
}

LoopSet parse_loops(const std::string& yaml, const Model& model, const std::string& source) {
  if (yaml.size() > detail::max_bytes)
    throw ModelError(source, "file", "is larger than 10 MB", "remove what is no loop joint");
  try {
    LoopSet loops = LoopReader(model, source).read(YAML::Load(yaml));
    validate(loops, model, source);
    return loops;
  } catch (const YAML::Exception& error) {
    const std::string line =
        error.mark.is_null() ? "" : " (line " + std::to_string(error.mark.line + 1) + ")";
    throw ModelError(source, "file" + line, "not YAML (" + error.msg + ")",
                     "check brackets, quotes and indentation");
  }
}

LoopSet load_loops(const std::string& path, const Model& model) {
  std::ifstream stream(path, std::ios::binary);
  std::string text(detail::max_bytes + 1, '\0');  // a device may never end
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream.eof() && stream.gcount() == 0)
    throw ModelError(path, "file", "cannot be read", "check the path");
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return parse_loops(text, model, path);
}

}  // namespace dynamics_core
