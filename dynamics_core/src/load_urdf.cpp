// SPDX-License-Identifier: Apache-2.0
/// URDF through urdfdom, with a reader in front of it.
///
/// urdfdom by itself keeps links and joints in alphabetical order, accepts detached cycles, reads an
/// `<inertial>` that is broken half-way as far as it got, and recurses as deep as the file is
/// nested. It refuses whole files for what does not matter here, and says why on the console only.
/// So the XML is read first, and names, order and the tree are taken from there. What describes
/// links and joints is then written as a URDF of its own, under plain names, and that is what
/// urdfdom gets: it takes nothing but text.
///
/// Every number is read twice. urdfdom reads its value; but it reports a bad number without its
/// place or the remedy, so numbers are checked here beforehand.
///
/// urdfdom finds nothing to complain about in such a text, and prints nothing unless the program
/// asks console_bridge for debugging. So its output, which is the whole program's, need not be
/// silenced, and no lock keeps robots from being read in many threads.
///
/// More lenient than urdfdom, where the intention is clear and files are found in the world: a
/// revolute or prismatic joint without `<limit>`, or a limit without effort or velocity, is
/// unlimited (a warning); `<dynamics>` may be empty; any blanks may stand around numbers; what
/// belongs to `<visual>`, `<collision>`, `<safety_controller>`, `<calibration>`, `<transmission>`
/// or `<gazebo>` is not read at all.

#include <tinyxml2.h>
#include <urdf_model/model.h>
#include <urdf_parser/urdf_parser.h>

#include <Eigen/Geometry>
#include <array>
#include <cmath>
#include <unordered_map>

#include "dynamics_core/load.hpp"
#include "dynamics_core/text.hpp"
#include "load_common.hpp"

namespace dynamics_core {
namespace {

using text::parse_number;
using text::quoted;
using tinyxml2::XMLElement;

/// urdfdom reads no infinity; the largest double stands for it.
constexpr const char* unlimited = "1.7976931348623157e308";

constexpr std::array<JointType, 6> joint_types = {JointType::revolute,  JointType::continuous,
                                                  JointType::prismatic, JointType::fixed,
                                                  JointType::planar,    JointType::floating};

/// Only these have a range: URDF defines none for the others.
bool ranged(JointType type) { return type == JointType::revolute || type == JointType::prismatic; }

/// How messages show the place of a value.
std::string tag(const XMLElement& element, const char* attribute, std::string_view value) {
  return "<" + std::string(element.Name()) + " " + attribute + "=\"" + text::shortened(value) +
         "\">";
}

/// For values that need no escaping.
std::string setting(const std::string& attribute, const std::string& value) {
  return " " + attribute + "=\"" + value + "\"";
}

/// An attribute that holds numbers.
struct Numbers {
  const char* attribute;
  std::size_t count = 1;
  const char* otherwise = nullptr;  ///< where it is absent; null: it is needed
};

/// Where an element begins that has more attributes than any URDF needs, or nowhere. (tinyxml2
/// compares each with all before it.)
[[nodiscard]] std::size_t find_overfull_element(std::string_view xml) {
  constexpr int most = 1000;
  const auto past = [&xml](std::string_view end, std::size_t from) {
    const std::size_t at = xml.find(end, from);
    return at == xml.npos ? xml.size() : at + end.size();
  };
  for (std::size_t at = xml.find('<'); at < xml.size(); at = xml.find('<', at)) {
    if (xml.substr(at, 4) == "<!--" || xml.substr(at, 9) == "<![CDATA[") {
      at = past(xml[at + 2] == '-' ? "-->" : "]]>", at);
      continue;
    }
    const std::size_t element = at;
    for (int attributes = 0; at < xml.size() && xml[at] != '>'; ++at) {
      if (xml[at] == '"' || xml[at] == '\'') at = past(xml.substr(at, 1), at + 1) - 1;
      if (xml[at] == '=' && ++attributes > most) return element;
    }
  }
  return xml.npos;
}

/// The XML side: structure into a RobotDescription, numbers into a plain URDF.
class UrdfReader {
 public:
  UrdfReader(const std::string& xml, const std::string& source) : source_(source) {
    description_.source = source;
    parse(xml);
    refuse_xacro(*robot_);
    read_robot();
    read_structure();
    detail::check_tree(description_);
    write_plain();
  }

  [[nodiscard]] RobotDescription& description() { return description_; }
  /// Links are named l0, l1, … and joints j0, j1, … in the order of the description.
  [[nodiscard]] const std::string& plain_urdf() const { return plain_; }

 private:
  [[noreturn]] void refuse(const std::string& element, const std::string& problem,
                           const std::string& remedy) const {
    throw ModelError(source_, element, problem, remedy);
  }
  void warn(const std::string& element, const std::string& problem) {
    description_.warnings.push_back(element + ": " + problem);
  }

  // --- XML ---------------------------------------------------------------------------------------

  void parse(const std::string& xml) {
    if (const std::size_t at = find_overfull_element(xml); at != xml.npos)
      refuse("line " + std::to_string(1 + std::count(xml.begin(),
                                                     xml.begin() + static_cast<std::ptrdiff_t>(at),
                                                     '\n')),
             "an element has more than 1000 attributes", "remove those that a URDF does not know");
    const bool text = xml.find('\0') == xml.npos;
    if (!text || document_.Parse(xml.data(), xml.size()) != tinyxml2::XML_SUCCESS) {
      const std::string reason = text ? document_.ErrorName() : "it holds zero bytes";
      refuse("line " + std::to_string(document_.ErrorLineNum()), "not XML (" + reason + ")",
             "check that this is a URDF and that it is complete");
    }
    robot_ = document_.FirstChildElement("robot");
    if (robot_ == nullptr) {
      const XMLElement* root = document_.RootElement();
      refuse("file",
             root == nullptr ? "has no <robot> element"
                             : "has <" + std::string(root->Name()) + "> where <robot> is expected",
             "give a URDF");
    }
  }

  /// As deep as tinyxml2 lets a document nest.
  void refuse_xacro(const XMLElement& element) const {
    if (std::string_view(element.Name()).substr(0, 6) == "xacro:") {
      refuse("line " + std::to_string(element.GetLineNum()),
             "<" + std::string(element.Name()) + "> is not expanded",
             "run xacro on the file first");
    }
    for (auto* e = element.FirstChildElement(); e != nullptr; e = e->NextSiblingElement()) {
      refuse_xacro(*e);
    }
  }

  /// Null where it is absent.
  const char* attribute(const std::string& owner, const XMLElement& element,
                        const char* name) const {
    const char* value = element.Attribute(name);
    if (value == nullptr) return nullptr;
    const std::string_view text = value;
    if (text.find("${") != text.npos || text.find("$(") != text.npos) {
      refuse(owner, tag(element, name, value) + " is not expanded", "run xacro on the file first");
    }
    return value;
  }

  std::string required(const std::string& owner, const XMLElement& element,
                       const char* name) const {
    const char* value = attribute(owner, element, name);
    if (value == nullptr || *value == '\0') {
      refuse(owner, "<" + std::string(element.Name()) + "> has no " + name, "add it");
    }
    return value;
  }

  /// The first child of that name, null where there is none.
  const XMLElement* child(const std::string& owner, const XMLElement& element, const char* name) {
    const XMLElement* first = element.FirstChildElement(name);
    if (first != nullptr && first->NextSiblingElement(name) != nullptr) {
      warn(owner, "<" + std::string(name) + "> is given more than once; the first one counts");
    }
    return first;
  }

  // --- Structure ---------------------------------------------------------------------------------

  void read_robot() {
    description_.name = required("robot", *robot_, "name");
    const char* version = attribute("robot", *robot_, "version");
    if (version != nullptr && parse_number(version) != 1.0) {
      refuse("robot", "URDF version " + quoted(version) + " is not supported", "use version 1.0");
    }
  }

  std::string read_name(const XMLElement& element) const {
    return required(
        std::string(element.Name()) + " on line " + std::to_string(element.GetLineNum()), element,
        "name");
  }

  void read_structure() {
    for (auto* e = robot_->FirstChildElement("link"); e; e = e->NextSiblingElement("link")) {
      description_.links.push_back({read_name(*e), std::nullopt});
      links_.push_back(e);
    }
    for (auto* e = robot_->FirstChildElement("joint"); e; e = e->NextSiblingElement("joint")) {
      description_.joints.push_back(read_joint(*e));
      joints_.push_back(e);
    }
  }

  JointDescription read_joint(const XMLElement& element) {
    JointDescription joint;
    joint.name = read_name(element);
    const std::string owner = "joint " + quoted(joint.name);
    joint.type = read_type(owner, element);
    joint.parent = read_end(owner, element, "parent");
    joint.child = read_end(owner, element, "child");
    if (const XMLElement* mimic = child(owner, element, "mimic")) {
      joint.mimic = Mimic{required(owner, *mimic, "joint")};
      if (joint.type == JointType::fixed) {
        warn(owner, "is fixed, its <mimic> of " + quoted(joint.mimic->joint) + " is ignored");
        joint.mimic.reset();
      }
    }
    return joint;
  }

  JointType read_type(const std::string& owner, const XMLElement& element) const {
    const std::string name = required(owner, element, "type");
    for (const JointType type : joint_types) {
      if (name == to_string(type)) return type;
    }
    refuse(owner, "unknown type " + quoted(name),
           "use revolute, continuous, prismatic, fixed, planar or floating");
  }

  std::string read_end(const std::string& owner, const XMLElement& element, const char* role) {
    const XMLElement* end = child(owner, element, role);
    if (end == nullptr) {
      refuse(owner, "has no <" + std::string(role) + ">",
             "add <" + std::string(role) + " link=\"…\"/>");
    }
    return required(owner, *end, "link");
  }

  // --- Numbers -----------------------------------------------------------------------------------

  void check_number(const std::string& owner, const std::string& where,
                    const std::string& word) const {
    const std::optional<double> value = parse_number(word);
    if (!value) {
      const bool comma = word.find(',') != word.npos;
      refuse(owner, where + ": " + quoted(word) + " is not a number",
             comma ? "use a decimal point, and spaces between numbers" : "write a number");
    }
    if (!std::isfinite(*value)) {
      refuse(owner, where + ": " + quoted(word) + " is not finite", "write a finite number");
    }
  }

  /// The attribute's numbers, checked, with single spaces between them.
  std::string read_numbers(const std::string& owner, const XMLElement& from,
                           const Numbers& numbers) const {
    const char* const name = numbers.attribute;
    if (numbers.otherwise != nullptr && attribute(owner, from, name) == nullptr) {
      return numbers.otherwise;
    }
    const std::string given = required(owner, from, name);
    const std::string where = tag(from, name, given);
    const std::vector<std::string> words = text::words(given);
    for (const std::string& word : words) check_number(owner, where, word);
    if (words.size() != numbers.count) {
      refuse(owner, where + ": " + std::to_string(words.size()) + " numbers",
             "write " + std::to_string(numbers.count));
    }
    return text::joined(words, " ");
  }

  // --- The plain URDF ----------------------------------------------------------------------------

  void write_plain() {
    plain_ = "<robot name=\"r\">";
    std::unordered_map<std::string, std::string> names;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const std::string& name = description_.links[i].name;
      names[name] = "l" + std::to_string(i);
      plain_ += "<link" + setting("name", names[name]) + ">";
      write_inertial("link " + quoted(name), *links_[i]);
      plain_ += "</link>";
    }
    for (std::size_t i = 0; i < joints_.size(); ++i) {
      JointDescription& joint = description_.joints[i];
      plain_ += "<joint" + setting("name", "j" + std::to_string(i)) +
                setting("type", to_string(joint.type)) + ">";
      plain_ += "<parent" + setting("link", names[joint.parent]) + "/>";
      plain_ += "<child" + setting("link", names[joint.child]) + "/>";
      write_joint(joint, *joints_[i]);
      plain_ += "</joint>";
    }
    plain_ += "</robot>";
  }

  /// Nothing where there is no such element. `settings` are attributes that are no numbers.
  void write(const std::string& owner, const XMLElement* from,
             std::initializer_list<Numbers> attributes, const std::string& settings = "") {
    if (from == nullptr) return;
    plain_ += "<" + std::string(from->Name()) + settings;
    for (const Numbers& numbers : attributes) {
      plain_ += setting(numbers.attribute, read_numbers(owner, *from, numbers));
    }
    plain_ += "/>";
  }

  void write_origin(const std::string& owner, const XMLElement& from) {
    write(owner, child(owner, from, "origin"), {{"xyz", 3, "0 0 0"}, {"rpy", 3, "0 0 0"}});
  }

  void write_inertial(const std::string& owner, const XMLElement& from) {
    const XMLElement* inertial = child(owner, from, "inertial");
    if (inertial == nullptr) return;
    plain_ += "<inertial>";
    write_origin(owner, *inertial);
    for (const char* part : {"mass", "inertia"}) {
      if (child(owner, *inertial, part) == nullptr) {
        refuse(owner, "<inertial> has no <" + std::string(part) + ">",
               "add it, or remove the <inertial>");
      }
    }
    write(owner, inertial->FirstChildElement("mass"), {{"value"}});
    write(owner, inertial->FirstChildElement("inertia"),
          {{"ixx"}, {"ixy"}, {"ixz"}, {"iyy"}, {"iyz"}, {"izz"}});
    plain_ += "</inertial>";
  }

  void write_joint(JointDescription& joint, const XMLElement& from) {
    const std::string owner = "joint " + quoted(joint.name);
    write_origin(owner, from);
    write(owner, child(owner, from, "axis"), {{"xyz", 3}});
    write_limit(owner, from, joint);
    write(owner, child(owner, from, "dynamics"), {{"damping", 1, "0"}, {"friction", 1, "0"}});
    if (joint.mimic) {
      write(owner, from.FirstChildElement("mimic"), {{"multiplier", 1, "1"}, {"offset", 1, "0"}},
            setting("joint", "j"));  // urdfdom does not look it up
    }
  }

  void write_limit(const std::string& owner, const XMLElement& from, JointDescription& joint) {
    const XMLElement* limit = child(owner, from, "limit");
    if (limit == nullptr) {
      if (!ranged(joint.type)) return;
      warn(owner, "is " + std::string(to_string(joint.type)) +
                      " but has no <limit>; it is taken as unlimited");
      plain_ += "<limit effort=\"0\" velocity=\"0\"/>";  // urdfdom needs one; not read back
      return;
    }
    joint.limits = Limits{};
    for (const char* name : {"effort", "velocity"}) {
      if (joint.type != JointType::fixed && limit->Attribute(name) == nullptr) {
        warn(owner, "<limit> has no " + std::string(name) + "; it is taken as unlimited");
      }
    }
    write(owner, limit,
          {{"lower", 1, "0"},
           {"upper", 1, "0"},
           {"effort", 1, unlimited},
           {"velocity", 1, unlimited}});
  }

  std::string source_;
  tinyxml2::XMLDocument document_;
  const XMLElement* robot_ = nullptr;
  std::vector<const XMLElement*> links_;   ///< as in the description
  std::vector<const XMLElement*> joints_;  ///< as in the description
  RobotDescription description_;
  std::string plain_;
};

// --- The urdfdom side ----------------------------------------------------------------------------

Eigen::Vector3d vector(const urdf::Vector3& u) { return {u.x, u.y, u.z}; }

Pose<double> pose(const urdf::Pose& pose) {
  const urdf::Rotation& q = pose.rotation;
  return {Eigen::Quaterniond(q.w, q.x, q.y, q.z).normalized().toRotationMatrix(),
          vector(pose.position)};
}

double limit(double value) {
  constexpr double largest = std::numeric_limits<double>::max();
  if (std::abs(value) < largest) return value;
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

Inertial inertial(const urdf::Inertial& from) {
  Eigen::Matrix3d about_com;
  about_com << from.ixx, from.ixy, from.ixz,  //
      from.ixy, from.iyy, from.iyz,           //
      from.ixz, from.iyz, from.izz;
  const Pose<double> origin = pose(from.origin);
  const Eigen::Matrix3d turned = origin.R * about_com * origin.R.transpose();
  return {from.mass, origin.p, 0.5 * (turned + turned.transpose())};
}

void fill(JointDescription& joint, const urdf::Joint& from) {
  joint.origin = pose(from.parent_to_joint_origin_transform);
  const bool has_axis = joint.type != JointType::fixed && joint.type != JointType::floating;
  if (has_axis) joint.axis = vector(from.axis);
  if (joint.limits) {
    if (ranged(joint.type)) {
      joint.limits->lower = limit(from.limits->lower);
      joint.limits->upper = limit(from.limits->upper);
    }
    joint.limits->velocity = limit(from.limits->velocity);
    joint.limits->effort = limit(from.limits->effort);
  }
  if (from.dynamics) {
    joint.damping = from.dynamics->damping;
    joint.friction = from.dynamics->friction;
  }
  if (joint.mimic) {
    joint.mimic->multiplier = from.mimic->multiplier;
    joint.mimic->offset = from.mimic->offset;
  }
}

void fill(RobotDescription& description, const urdf::ModelInterface& model) {
  for (std::size_t i = 0; i < description.links.size(); ++i) {
    const auto& from = model.links_.at("l" + std::to_string(i))->inertial;
    if (from) description.links[i].inertial = inertial(*from);
  }
  for (std::size_t i = 0; i < description.joints.size(); ++i) {
    fill(description.joints[i], *model.joints_.at("j" + std::to_string(i)));
  }
}

}  // namespace

RobotDescription parse_urdf(const std::string& xml, const std::string& source) {
  detail::check_size(xml, source);
  UrdfReader reader(xml, source);
  const urdf::ModelInterfaceSharedPtr model = urdf::parseURDF(reader.plain_urdf());
  if (!model) {
    throw ModelError(source, "robot", "is refused by urdfdom", "see what check_urdf says about it");
  }
  fill(reader.description(), *model);
  return std::move(reader.description());
}

Model load_urdf_string(const std::string& xml, const ModelOptions& options) {
  return build_model(parse_urdf(xml), options);
}

Model load_urdf(const std::string& path, const ModelOptions& options) {
  return build_model(parse_urdf(detail::read_file(path), path), options);
}

}  // namespace dynamics_core
