/// URDF through urdfdom, with a reader in front of it.
///
/// urdfdom by itself prints instead of reporting, keeps links and joints in alphabetical order,
/// accepts detached cycles, reads an `<inertial>` that is broken half-way as far as it got, and
/// recurses as deep as the file is nested. So the XML is read first: names, order and the tree from
/// there, and every number is checked. What describes links and joints is then written into a clean
/// document under plain names, and that document, which holds nothing unexpected, is what urdfdom
/// gets.
///
/// More lenient than urdfdom, where the intention is clear and files are found in the world: a
/// revolute or prismatic joint without `<limit>`, or a limit without effort or velocity, is
/// unlimited (a warning); `<dynamics>` may be empty; what belongs to `<visual>`, `<collision>`,
/// `<safety_controller>`, `<calibration>`, `<transmission>` or `<gazebo>` is not read at all.

#include <console_bridge/console.h>
#include <tinyxml2.h>
#include <urdf_model/model.h>
#include <urdf_parser/urdf_parser.h>

#include <Eigen/Geometry>
#include <array>
#include <cmath>
#include <mutex>
#include <unordered_map>

#include "dynamics_core/load.hpp"
#include "dynamics_core/text.hpp"
#include "load_common.hpp"

namespace dynamics_core {
namespace {

using text::parse_number;
using text::quoted;
using tinyxml2::XMLElement;

/// urdfdom reads no infinity; the largest double stands for it in the clean document.
constexpr const char* unlimited = "1.7976931348623157e308";
constexpr const char* negative_unlimited = "-1.7976931348623157e308";

constexpr std::array<JointType, 6> joint_types = {JointType::revolute,  JointType::continuous,
                                                  JointType::prismatic, JointType::fixed,
                                                  JointType::planar,    JointType::floating};

/// How messages show the place of a value.
std::string tag(const XMLElement& element, const char* attribute, std::string_view value) {
  return "<" + std::string(element.Name()) + " " + attribute + "=\"" + text::shortened(value) +
         "\">";
}

/// The XML side: structure into a RobotDescription, numbers into the clean document.
class UrdfReader {
 public:
  UrdfReader(const std::string& xml, const std::string& source) : source_(source) {
    description_.source = source;
    parse(xml);
    refuse_xacro(*robot_);
    read_robot();
    read_structure();
    detail::check_tree(description_);
    write_clean();
  }

  [[nodiscard]] RobotDescription& description() { return description_; }
  /// Links are named l0, l1, … and joints j0, j1, … in the order of the description.
  [[nodiscard]] std::string clean_xml() const {
    tinyxml2::XMLPrinter printer(nullptr, true);
    clean_.Print(&printer);
    return printer.CStr();
  }

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

  /// Checks the attribute's `count` numbers and copies them. Where the attribute is absent it is
  /// written as `otherwise`; null means that it is needed.
  void copy(const std::string& owner, const XMLElement& from, XMLElement& to, const char* name,
            std::size_t count, const char* otherwise) const {
    if (otherwise != nullptr && attribute(owner, from, name) == nullptr) {
      to.SetAttribute(name, otherwise);
      return;
    }
    const std::string text = required(owner, from, name);
    const std::string where = tag(from, name, text);
    constexpr const char* space = " \t\r\n";
    std::string clean;
    std::size_t found = 0;
    for (std::size_t begin = text.find_first_not_of(space), end; begin != text.npos;
         begin = text.find_first_not_of(space, end)) {
      end = std::min(text.find_first_of(space, begin), text.size());
      check_number(owner, where, text.substr(begin, end - begin));
      clean += (found++ == 0 ? "" : " ") + text.substr(begin, end - begin);
    }
    if (found != count) {
      refuse(owner, where + ": " + std::to_string(found) + " numbers",
             "write " + std::to_string(count));
    }
    to.SetAttribute(name, clean.c_str());
  }

  static XMLElement& add(tinyxml2::XMLNode& parent, const char* name) {
    XMLElement* element = parent.GetDocument()->NewElement(name);
    parent.InsertEndChild(element);
    return *element;
  }

  void write_clean() {
    XMLElement& robot = add(clean_, "robot");
    robot.SetAttribute("name", "r");
    std::unordered_map<std::string, std::string> names;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const std::string& name = description_.links[i].name;
      names[name] = "l" + std::to_string(i);
      XMLElement& link = add(robot, "link");
      link.SetAttribute("name", names[name].c_str());
      write_inertial("link " + quoted(name), *links_[i], link);
    }
    for (std::size_t i = 0; i < joints_.size(); ++i) {
      const JointDescription& joint = description_.joints[i];
      XMLElement& element = add(robot, "joint");
      element.SetAttribute("name", ("j" + std::to_string(i)).c_str());
      element.SetAttribute("type", to_string(joint.type));
      add(element, "parent").SetAttribute("link", names[joint.parent].c_str());
      add(element, "child").SetAttribute("link", names[joint.child].c_str());
      write_joint(i, element);
    }
  }

  void write_origin(const std::string& owner, const XMLElement& from, XMLElement& to) {
    const XMLElement* origin = child(owner, from, "origin");
    if (origin == nullptr) return;
    XMLElement& element = add(to, "origin");
    copy(owner, *origin, element, "xyz", 3, "0 0 0");
    copy(owner, *origin, element, "rpy", 3, "0 0 0");
  }

  void write_inertial(const std::string& owner, const XMLElement& from, XMLElement& to) {
    const XMLElement* inertial = child(owner, from, "inertial");
    if (inertial == nullptr) return;
    XMLElement& element = add(to, "inertial");
    write_origin(owner, *inertial, element);
    for (const char* part : {"mass", "inertia"}) {
      if (child(owner, *inertial, part) == nullptr) {
        refuse(owner, "<inertial> has no <" + std::string(part) + ">",
               "add it, or remove the <inertial>");
      }
    }
    copy(owner, *inertial->FirstChildElement("mass"), add(element, "mass"), "value", 1, nullptr);
    XMLElement& inertia = add(element, "inertia");
    for (const char* moment : {"ixx", "ixy", "ixz", "iyy", "iyz", "izz"}) {
      copy(owner, *inertial->FirstChildElement("inertia"), inertia, moment, 1, nullptr);
    }
  }

  void write_joint(std::size_t i, XMLElement& to) {
    JointDescription& joint = description_.joints[i];
    const XMLElement& from = *joints_[i];
    const std::string owner = "joint " + quoted(joint.name);
    write_origin(owner, from, to);
    if (const XMLElement* axis = child(owner, from, "axis")) {
      copy(owner, *axis, add(to, "axis"), "xyz", 3, nullptr);
    }
    write_limit(owner, from, to, joint);
    if (const XMLElement* dynamics = child(owner, from, "dynamics")) {
      XMLElement& element = add(to, "dynamics");
      copy(owner, *dynamics, element, "damping", 1, "0");
      copy(owner, *dynamics, element, "friction", 1, "0");
    }
    if (joint.mimic) {
      const XMLElement& mimic = *from.FirstChildElement("mimic");
      XMLElement& element = add(to, "mimic");
      element.SetAttribute("joint", "j");  // urdfdom does not look it up
      copy(owner, mimic, element, "multiplier", 1, "1");
      copy(owner, mimic, element, "offset", 1, "0");
    }
  }

  /// Only revolute and prismatic joints have a range: URDF defines none for the others.
  void write_limit(const std::string& owner, const XMLElement& from, XMLElement& to,
                   JointDescription& joint) {
    const bool ranged = joint.type == JointType::revolute || joint.type == JointType::prismatic;
    const XMLElement* limit = child(owner, from, "limit");
    if (limit != nullptr) {
      joint.limits = Limits{};
      for (const char* name : {"effort", "velocity"}) {
        if (joint.type != JointType::fixed && limit->Attribute(name) == nullptr) {
          warn(owner, "<limit> has no " + std::string(name) + "; it is taken as unlimited");
        }
      }
    } else if (ranged) {
      warn(owner, "is " + std::string(to_string(joint.type)) +
                      " but has no <limit>; it is taken as unlimited");
    } else {
      return;
    }
    XMLElement& element = add(to, "limit");
    const XMLElement& given = limit != nullptr ? *limit : element;
    copy(owner, given, element, "lower", 1, limit == nullptr ? negative_unlimited : "0");
    copy(owner, given, element, "upper", 1, limit == nullptr ? unlimited : "0");
    copy(owner, given, element, "effort", 1, unlimited);
    copy(owner, given, element, "velocity", 1, unlimited);
    if (!ranged) {
      element.SetAttribute("lower", negative_unlimited);
      element.SetAttribute("upper", unlimited);
    }
  }

  std::string source_;
  tinyxml2::XMLDocument document_;
  tinyxml2::XMLDocument clean_;
  const XMLElement* robot_ = nullptr;
  std::vector<const XMLElement*> links_;   ///< as in the description
  std::vector<const XMLElement*> joints_;  ///< as in the description
  RobotDescription description_;
};

// --- The urdfdom side ----------------------------------------------------------------------------

/// urdfdom prints; what it has to say reaches the user through ModelError only. Its output is
/// global, hence the lock.
class Silence {
 public:
  Silence() : lock_(mutex()), handler_(console_bridge::getOutputHandler()) {
    console_bridge::noOutputHandler();
  }
  ~Silence() { console_bridge::useOutputHandler(handler_); }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  static std::mutex& mutex() {
    static std::mutex instance;
    return instance;
  }
  std::lock_guard<std::mutex> lock_;
  console_bridge::OutputHandler* handler_;
};

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
    *joint.limits = {limit(from.limits->lower), limit(from.limits->upper),
                     limit(from.limits->velocity), limit(from.limits->effort)};
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
  const Silence silence;
  const urdf::ModelInterfaceSharedPtr model = urdf::parseURDF(reader.clean_xml());
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
