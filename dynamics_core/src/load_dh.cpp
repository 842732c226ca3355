// SPDX-License-Identifier: Apache-2.0
/// Denavit–Hartenberg tables, in the convention of Saha 1999, Appendix A.
///
/// A file is YAML (or JSON, which is YAML):
///
///     name: example
///     convention: saha          # the only one, and the default
///     angles: degrees           # or radians, the default; of alpha, theta and the position limits
///                               # of all but prismatic joints. Radians may be written as pi/2,
///                               # -3*pi/4 …
///     gravity: [0, 0, -9.81]    # m/s², in frame 1
///     joints:                   # a serial chain, from the base to the tip
///       - name: waist           # default: joint1, joint2, …
///         link: trunk           # default: link1, link2, …; the base is "base"
///         type: revolute        # or prismatic or helical; needed
///         a: 0                  # m, default 0
///         b: 0.2                # m, default 0; prismatic and helical: at q = 0
///         alpha: -90            # default 0
///         theta: 0              # default 0; revolute and helical: at q = 0
///         pitch: 0.002          # m/rad, whatever the unit of angles; helical joints need it,
///                               # others have none
///         mass: 9               # kg; a link without has no inertial
///         r: [0, -0.1, 0]       # m, from the mass centre to the origin of frame i+1; or, the
///                               # other way round, com: [0, 0.1, 0]. Default 0
///         inertia: [0.01, 0.02, 0.01]   # kg·m², xx yy zz or xx xy xz yy yz zz, about the mass
///                                       # centre, in the axes of frame i+1. Default 0
///         damping: 0            # N·m·s/rad or N·s/m
///         friction: 0           # N·m or N
///         rotor_inertia: 0      # kg·m², on the motor's side
///         gear_ratio: 1         # motor turns per joint turn
///         limits: {lower: -170, upper: 170, velocity: 2, effort: 50}   # each optional; velocity
///                                                                      # in rad/s or m/s
///
/// Saha numbers n + 1 links, the base and #1 … #n, and n joints; joint i connects links #i−1 and
/// #i. Frame i is attached to link #i−1: Z_i is the axis of joint i, X_i the common perpendicular
/// from Z_{i−1} to Z_i, and O_i its foot on Z_i. Then
///
///     a_i      distance of Z_i and Z_{i+1}
///     b_i      Z_i coordinate of the foot of X_{i+1} on Z_i  (the variable of a prismatic joint)
///     alpha_i  angle from Z_i to Z_{i+1} about X_{i+1}
///     theta_i  angle from X_i to X_{i+1} about Z_i           (the variable of a revolute joint)
///
/// so that the pose of frame i+1 in frame i is Rz(theta_i) T(0, 0, b_i) T(a_i, 0, 0) Rx(alpha_i).
/// A helical joint, which is not in the paper, adds its coordinate q to theta_i and pitch q to b_i.
///
/// A link of the resulting description has its DH frame for its frame: the base frame 1, link #i
/// frame i+1, in which the table gives r_i and I_i. A joint of a description turns about an axis
/// through the origin of its child, though, and Z_i misses O_{i+1}. So each joint i leads to a
/// massless link "<joint>_axis", frame i turned by the joint's coordinate, to which link #i is
/// fixed. The two are one body in the model.

#include <yaml-cpp/yaml.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <set>

#include "dynamics_core/load.hpp"
#include "dynamics_core/text.hpp"
#include "load_common.hpp"
#include "snap.hpp"

namespace dynamics_core {
namespace {

using detail::snap;
using text::parse_number;
using text::quoted;

constexpr double pi = 3.14159265358979323846;

/// [-][number[*]]pi[/number], without spaces.
std::optional<double> parse_multiple_of_pi(const std::string& text) {
  const std::size_t at = text.find("pi");
  if (at == text.npos) return std::nullopt;
  std::string before = text.substr(0, at);
  const std::string after = text.substr(at + 2);
  if (before.size() > 1 && before.back() == '*') before.pop_back();
  if (before.empty() || before == "-" || before == "+") before += "1";
  const std::optional<double> factor = parse_number(before);
  const bool divided = !after.empty() && after[0] == '/';
  const std::optional<double> divisor = divided ? parse_number(after.substr(1)) : 1.0;
  if (!factor || !divisor || (!divided && !after.empty())) return std::nullopt;
  return *factor * pi / *divisor;
}

/// Frame i+1 in frame i.
Pose<double> dh_pose(double a, double b, double alpha, double theta) {
  const double ct = snap(std::cos(theta));
  const double st = snap(std::sin(theta));
  const double ca = snap(std::cos(alpha));
  const double sa = snap(std::sin(alpha));
  Pose<double> pose;
  pose.R << ct, -ca * st, sa * st,  //
      st, ca * ct, -sa * ct,        //
      0.0, sa, ca;
  pose.p << a * ct, a * st, b;
  return pose;
}

std::string line_of(const YAML::Mark& mark) {
  return mark.is_null() ? "" : "line " + std::to_string(mark.line + 1);
}

class DhReader {
 public:
  DhReader(const std::string& text, const std::string& source) : source_(source) {
    description_.source = source;
    read_table(YAML::Load(text));
  }
  [[nodiscard]] RobotDescription& description() { return description_; }

 private:
  using Keys = std::set<std::string>;

  /// `owner` is empty for what belongs to the whole table.
  [[noreturn]] void refuse(const std::string& owner, const YAML::Node& node,
                           const std::string& problem, const std::string& remedy) const {
    const std::string line = line_of(node.Mark());
    throw ModelError(source_,
                     owner.empty()  ? (line.empty() ? "file" : line)
                     : line.empty() ? owner
                                    : owner + " (" + line + ")",
                     problem, remedy);
  }

  // --- YAML --------------------------------------------------------------------------------------

  void check_keys(const std::string& owner, const YAML::Node& map, const Keys& known) const {
    Keys seen;
    for (const auto& entry : map) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      if (known.count(key) == 0) {
        refuse(owner, entry.first, "unknown key " + quoted(key),
               "known here are " + text::joined(known));
      }
      if (!seen.insert(key).second) {
        refuse(owner, entry.first, "key " + quoted(key) + " is given twice", "remove one");
      }
    }
  }

  std::string scalar(const std::string& owner, const YAML::Node& node,
                     const std::string& key) const {
    if (!node.IsScalar() || node.Scalar().empty()) {
      refuse(owner, node, key + " is not a single value", "write one");
    }
    return node.Scalar();
  }

  double finite(const std::string& owner, const YAML::Node& node, const std::string& key,
                const std::optional<double>& value, const std::string& remedy) const {
    if (!value || !std::isfinite(*value)) {
      refuse(owner, node, key + " " + quoted(node.Scalar()) + " is not a finite number", remedy);
    }
    return *value;
  }

  double number(const std::string& owner, const YAML::Node& node, const std::string& key) const {
    const std::string text = scalar(owner, node, key);
    return finite(owner, node, key, parse_number(text), "write a number such as 0.25");
  }

  double angle(const std::string& owner, const YAML::Node& node, const std::string& key) const {
    std::string text = scalar(owner, node, key);
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    const std::optional<double> plain = parse_number(text);
    if (degrees_) {
      return finite(owner, node, key, plain, "write a number of degrees") * (pi / 180.0);
    }
    return finite(owner, node, key, plain ? plain : parse_multiple_of_pi(text),
                  "write a number of radians or a multiple of pi such as -pi/2");
  }

  std::vector<double> numbers(const std::string& owner, const YAML::Node& node,
                              const std::string& key,
                              std::initializer_list<std::size_t> counts) const {
    std::string text;
    for (const std::size_t count : counts) {
      text += (text.empty() ? "" : " or ") + std::to_string(count);
    }
    if (!node.IsSequence() ||
        std::find(counts.begin(), counts.end(), node.size()) == counts.end()) {
      refuse(owner, node,
             key + (node.IsSequence() ? " has " + std::to_string(node.size()) + " numbers"
                                      : std::string(" is not a list")),
             "write a list of " + text + " numbers");
    }
    std::vector<double> values;
    for (const auto& element : node) values.push_back(number(owner, element, key));
    return values;
  }

  Eigen::Vector3d vector(const std::string& owner, const YAML::Node& node,
                         const std::string& key) const {
    return Eigen::Vector3d(numbers(owner, node, key, {3}).data());
  }

  /// These read `map[key]`; the value keeps its default where the key is absent.
  void read_number(const std::string& owner, const YAML::Node& map, const char* key,
                   double& value) const {
    if (const YAML::Node node = map[key]) value = number(owner, node, key);
  }
  void read_angle(const std::string& owner, const YAML::Node& map, const char* key,
                  double& value) const {
    if (const YAML::Node node = map[key]) value = angle(owner, node, key);
  }
  void read_text(const std::string& owner, const YAML::Node& map, const char* key,
                 std::string& value) const {
    if (const YAML::Node node = map[key]) value = scalar(owner, node, key);
  }
  /// A text that must be one of these; the first is the default.
  std::string read_choice(const std::string& owner, const YAML::Node& map, const char* key,
                          const std::vector<std::string>& choices) const {
    std::string value = choices.front();
    read_text(owner, map, key, value);
    if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
      refuse(owner, map[key], std::string(key) + " " + quoted(value) + " is unknown",
             "write " + text::alternatives(choices));
    }
    return value;
  }

  // --- The table ---------------------------------------------------------------------------------

  void read_table(const YAML::Node& table) {
    if (!table.IsMap()) {
      refuse("", table, "is no Denavit–Hartenberg table", "start with 'joints:' or give a URDF");
    }
    check_keys("", table, {"name", "convention", "angles", "gravity", "joints"});
    description_.name = "robot";
    read_text("", table, "name", description_.name);
    (void)read_choice("", table, "convention", {"saha"});
    degrees_ = read_choice("", table, "angles", {"radians", "degrees"}) == "degrees";
    if (const YAML::Node node = table["gravity"]) {
      description_.gravity = vector("", node, "gravity");
    }
    const YAML::Node joints = table["joints"];
    if (!joints || !joints.IsSequence() || joints.size() == 0) {
      refuse("", joints ? joints : table, "has no list of joints", "add 'joints:' with one each");
    }
    // Each row makes two joints of the description.
    if (joints.size() > detail::max_joints / 2) {
      refuse("", joints, "has " + std::to_string(joints.size()) + " joints, more than 512",
             "split it into several models");
    }
    description_.links.push_back({"base", std::nullopt});
    std::size_t i = 0;
    for (const auto& joint : joints) read_joint(joint, std::to_string(++i));
  }

  void read_joint(const YAML::Node& row, const std::string& number_text) {
    JointDescription joint;
    joint.name = "joint" + number_text;
    if (!row.IsMap()) refuse("joint " + number_text, row, "is not a mapping", "write key: value");
    read_text("joint " + number_text, row, "name", joint.name);
    const std::string owner = "joint " + quoted(joint.name);
    check_keys(owner, row,
               {"name", "link", "type", "a", "b", "alpha", "theta", "pitch", "mass", "r", "com",
                "inertia", "damping", "friction", "rotor_inertia", "gear_ratio", "limits"});
    joint.type = read_type(owner, row);
    joint.pitch = read_pitch(owner, row, joint.type);
    joint.axis = Eigen::Vector3d::UnitZ();
    joint.parent = description_.links.back().name;
    joint.child = joint.name + "_axis";
    read_number(owner, row, "damping", joint.damping);
    read_number(owner, row, "friction", joint.friction);
    read_number(owner, row, "rotor_inertia", joint.rotor_inertia);
    read_number(owner, row, "gear_ratio", joint.gear_ratio);
    if (const YAML::Node limits = row["limits"]) {
      joint.limits = read_limits(owner, limits, joint.type);
    }

    LinkDescription link{"link" + number_text, read_inertial(owner, row)};
    read_text(owner, row, "link", link.name);

    JointDescription fixed;
    fixed.name = joint.name + "_frame";
    fixed.parent = joint.child;
    fixed.child = link.name;
    fixed.origin = read_frame(owner, row);

    description_.links.push_back({joint.child, std::nullopt});
    description_.links.push_back(std::move(link));
    description_.joints.push_back(std::move(joint));
    description_.joints.push_back(std::move(fixed));
  }

  JointType read_type(const std::string& owner, const YAML::Node& row) const {
    const std::vector<std::string> names = {"helical", "revolute", "prismatic"};
    if (!row["type"]) refuse(owner, row, "has no type", "write type: " + text::alternatives(names));
    const std::string name = read_choice(owner, row, "type", names);
    return name == "helical"    ? JointType::helical
           : name == "revolute" ? JointType::revolute
                                : JointType::prismatic;
  }

  double read_pitch(const std::string& owner, const YAML::Node& row, JointType type) const {
    const YAML::Node pitch = row["pitch"];
    if (type != JointType::helical) {
      if (pitch) {
        refuse(owner, pitch, "is " + std::string(to_string(type)) + " but has a pitch",
               "remove the pitch or write type: helical");
      }
      return 0.0;
    }
    if (!pitch) {
      refuse(owner, row, "is helical but has no pitch",
             "add it, in metres along the axis per radian");
    }
    return number(owner, pitch, "pitch");
  }

  Pose<double> read_frame(const std::string& owner, const YAML::Node& row) const {
    double a = 0.0;
    double b = 0.0;
    double alpha = 0.0;
    double theta = 0.0;
    read_number(owner, row, "a", a);
    read_number(owner, row, "b", b);
    read_angle(owner, row, "alpha", alpha);
    read_angle(owner, row, "theta", theta);
    return dh_pose(a, b, alpha, theta);
  }

  Limits read_limits(const std::string& owner, const YAML::Node& node, JointType type) const {
    if (!node.IsMap()) {
      refuse(owner, node, "limits is not a mapping", "write {lower: …, upper: …}");
    }
    check_keys(owner, node, {"lower", "upper", "velocity", "effort"});
    Limits limits;
    for (const auto& [key, value] : {std::pair<const char*, double*>{"lower", &limits.lower},
                                     std::pair<const char*, double*>{"upper", &limits.upper}}) {
      if (type == JointType::prismatic) {
        read_number(owner, node, key, *value);
      } else {
        read_angle(owner, node, key, *value);
      }
    }
    read_number(owner, node, "velocity", limits.velocity);
    read_number(owner, node, "effort", limits.effort);
    return limits;
  }

  std::optional<Inertial> read_inertial(const std::string& owner, const YAML::Node& row) const {
    Inertial inertial;
    const YAML::Node com = row["com"];
    const YAML::Node r = row["r"];
    if (com && r) refuse(owner, r, "has both r and com", "remove one");
    if (com) inertial.com = vector(owner, com, "com");
    if (r) inertial.com = -vector(owner, r, "r");
    if (const YAML::Node node = row["inertia"]) inertial.inertia = read_inertia(owner, node);
    if (const YAML::Node mass = row["mass"]) {
      inertial.mass = number(owner, mass, "mass");
      return inertial;
    }
    if (com || r || row["inertia"]) {
      refuse(owner, row, "has a mass centre or an inertia but no mass", "add the mass");
    }
    return std::nullopt;
  }

  Eigen::Matrix3d read_inertia(const std::string& owner, const YAML::Node& node) const {
    const std::vector<double> I = numbers(owner, node, "inertia", {3, 6});
    if (I.size() == 3) return Eigen::Vector3d(I.data()).asDiagonal();
    Eigen::Matrix3d inertia;
    inertia << I[0], I[1], I[2],  //
        I[1], I[3], I[4],         //
        I[2], I[4], I[5];
    return inertia;
  }

  std::string source_;
  bool degrees_ = false;
  RobotDescription description_;
};

}  // namespace

RobotDescription parse_dh(const std::string& text, const std::string& source) {
  detail::check_size(text, source);
  try {
    DhReader reader(text, source);
    return std::move(reader.description());
  } catch (const YAML::Exception& error) {
    const std::string line = line_of(error.mark);
    throw ModelError(source, line.empty() ? "file" : line, "not YAML (" + error.msg + ")",
                     "check that this is a Denavit–Hartenberg table or a URDF");
  }
}

Model load_dh_string(const std::string& text, const ModelOptions& options) {
  return build_model(parse_dh(text), options);
}

Model load_dh(const std::string& path, const ModelOptions& options) {
  return build_model(parse_dh(detail::read_file(path), path), options);
}

}  // namespace dynamics_core
