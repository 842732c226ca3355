// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/model.hpp"

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <map>

#include "dynamics_core/joints.hpp"
#include "dynamics_core/quaternion.hpp"
#include "dynamics_core/text.hpp"
#include "snap.hpp"

namespace dynamics_core {

namespace {

using detail::snap;
using Eigen::Matrix3d;
using Eigen::Vector3d;

/// Axes closer than this to parallel are taken as parallel; the error is of the same size.
constexpr double parallel_tolerance = 1e-12;
/// Below this sine the feet of the common normal run away from the links, and with them the
/// precision; such a pair of axes keeps its own origins and pays for a general transform.
constexpr double well_conditioned_sine = 0.05;

/// A body before its frame is chosen. Its reference frame is the child link's at q = 0.
struct RawBody {
  int parent = -1;
  Pose<double> X_PR = Pose<double>::identity();  ///< reference frame in the parent's, at q = 0
  Vector3d axis = Vector3d::UnitZ();             ///< in the reference frame
  BodyData data;
  int first_child = -1;
  Pose<double> X_RF = Pose<double>::identity();  ///< the final frame in the reference frame
};

/// A link and the body (−1: the base) whose reference frame it is fixed in.
struct Attachment {
  int body = -1;
  Pose<double> X_RL = Pose<double>::identity();
};

[[nodiscard]] bool fixes_frame(const RawBody& b) { return is_floating(b.data.kind); }

[[nodiscard]] Vector3d any_perpendicular(const Vector3d& z) {
  const Vector3d seed = std::abs(z[0]) < 0.9 ? Vector3d::UnitX() : Vector3d::UnitY();
  return (seed - seed.dot(z) * z).normalized();
}

[[nodiscard]] Pose<double> frame_on_axis(const Vector3d& origin, const Vector3d& z,
                                         const Vector3d& x) {
  Matrix3d R;
  R << x, z.cross(x), z;
  return {R, origin};
}

/// The modified Denavit–Hartenberg frame of a body: z on its own axis (through the reference
/// origin), x along the common normal to the axis of its first child, origin at that normal's foot.
[[nodiscard]] Pose<double> choose_frame(const Vector3d& z, const RawBody& child) {
  const Vector3d zc = child.X_PR.R * child.axis;
  const Vector3d& pc = child.X_PR.p;
  const Vector3d normal = z.cross(zc);
  const double sine = normal.norm();
  if (sine < parallel_tolerance) {
    const Vector3d across = pc - pc.dot(z) * z;
    const bool coincide = across.norm() < parallel_tolerance;
    return frame_on_axis(Vector3d::Zero(), z,
                         coincide ? any_perpendicular(z) : Vector3d(across.normalized()));
  }
  const Vector3d x = normal / sine;
  if (sine < well_conditioned_sine) return frame_on_axis(Vector3d::Zero(), z, x);
  const double foot = pc.cross(zc).dot(normal) / (sine * sine);
  return frame_on_axis(foot * z, z, x);
}

/// Rx(α) Rz(θ) with the offsets a and d, if the pose has that form.
[[nodiscard]] bool set_modified_dh(const Pose<double>& X_PF, Transform<double>& X) {
  const Matrix3d& R = X_PF.R;
  const Vector3d& p = X_PF.p;
  X = {R(2, 2), -R(1, 2), p[0], R(0, 0), -R(0, 1), 0.0, 1.0, 0.0, 0.0, 0.0, false};
  const double na = std::hypot(X.ca, X.sa);
  const double nt = std::hypot(X.c, X.s);
  if (std::abs(R(0, 2)) > parallel_tolerance) return false;
  X.ca = snap(X.ca / na);
  X.sa = snap(X.sa / na);
  X.c = snap(X.c / nt);
  X.s = snap(X.s / nt);
  X.d = p[2] * X.ca - p[1] * X.sa;
  const double size = std::max(1.0, p.norm());
  return (X.position() - p).norm() < parallel_tolerance * size;
}

/// The general form Rz(γ) T(a, e, b) Rx(α) Rz(θ).
void set_branch(const Pose<double>& X_PF, Transform<double>& X) {
  X = {1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, true};
  const Eigen::Quaterniond turn(X_PF.R);
  set_rotation<double>({turn.x(), turn.y(), turn.z(), turn.w()}, X);
  for (double* value : {&X.ca, &X.sa, &X.c, &X.s, &X.cg, &X.sg}) *value = snap(*value);
  const Vector3d r = unrotate_z(X.cg, X.sg, X_PF.p);
  X.a = r[0];
  X.e = r[1];
  X.b = r[2];
}

/// Of a joint with one degree of freedom.
[[nodiscard]] JointKind kind_of(JointType type) {
  switch (type) {
    case JointType::prismatic: return JointKind::prismatic;
    case JointType::helical: return JointKind::helical;
    case JointType::revolute:
    case JointType::continuous:
    case JointType::fixed:
    case JointType::planar:
    case JointType::floating: break;
  }
  return JointKind::revolute;
}

/// Lets the body's coordinate begin where its frame is at q = 0.
void place_zero(BodyData& b) {
  const double turn = std::atan2(b.X.s, b.X.c);
  switch (b.kind) {
    case JointKind::revolute: b.offset += turn; return;
    case JointKind::prismatic: b.offset += b.X.d; return;
    case JointKind::helical:
      b.offset += turn;
      b.slide = b.X.d - b.pitch * turn;
      return;
    case JointKind::floating_first:
    case JointKind::floating_angular:
    case JointKind::floating_linear: return;
  }
}

class Compiler {
 public:
  Compiler(const RobotDescription& description, const ModelOptions& options)
      : description_(description), options_(options) {}

  [[nodiscard]] Model compile() {
    model_.name = description_.name;
    model_.gravity = options_.gravity.value_or(description_.gravity);
    if (!model_.gravity.allFinite()) fail("gravity", "not finite", "give three finite numbers");
    model_.warnings = validate(description_, options_.strict);
    model_.warnings.insert(model_.warnings.begin(), description_.warnings.begin(),
                           description_.warnings.end());
    index();
    check_option_names();
    resolve_locks();
    walk();
    choose_frames();
    finish_bodies();
    finish_links();
    return std::move(model_);
  }

 private:
  [[noreturn]] void fail(const std::string& element, const std::string& problem,
                         const std::string& remedy) const {
    throw ModelError(description_.source, element, problem, remedy);
  }

  void index() {
    for (std::size_t j = 0; j < description_.joints.size(); ++j) {
      joint_index_[description_.joints[j].name] = static_cast<int>(j);
      children_[description_.joints[j].parent].push_back(static_cast<int>(j));
    }
    for (std::size_t l = 0; l < description_.links.size(); ++l)
      link_index_[description_.links[l].name] = static_cast<int>(l);
  }

  [[nodiscard]] const JointDescription& joint(int j) const {
    return description_.joints[static_cast<std::size_t>(j)];
  }

  void check_option_names() const {
    const auto check = [this](const std::string& name, const std::string& what) {
      const auto it = joint_index_.find(name);
      if (it == joint_index_.end())
        fail("joint '" + name + "'", "named in " + what + " but not in the robot",
             "use one of the robot's joint names");
      const JointDescription& j = joint(it->second);
      if (j.type == JointType::fixed || j.mimic)
        fail("joint '" + name + "'", "named in " + what + " but has no coordinate of its own",
             "name a moving joint that mimics no other");
    };
    for (const auto& [name, value] : options_.locked) {
      check(name, "the locked joints");
      const JointType type = joint(joint_index_.at(name)).type;
      if (!std::isfinite(value))
        fail("joint '" + name + "'", "locked at a position that is not finite", "give a number");
      if (!has_one_coordinate(type))
        fail("joint '" + name + "'", "has several coordinates and cannot be locked at one value",
             "leave it free");
    }
    if (options_.joints)
      for (const std::string& name : *options_.joints) check(name, "the joint subset");
    for (const auto& [name, value] : options_.damping) check_override(name, value, "damping");
    for (const auto& [name, value] : options_.friction) check_override(name, value, "friction");
    for (const auto& [name, value] : options_.rotor_inertia)
      check_override(name, value, "rotor_inertia");
    // A gear may turn the motor the other way; only its square counts.
    for (const auto& [name, value] : options_.gear_ratio)
      check_override(name, std::abs(value), "gear_ratio");
  }

  void check_override(const std::string& name, double value, const char* what) const {
    if (joint_index_.count(name) == 0)
      fail("joint '" + name + "'", std::string("named for ") + what + " but not in the robot",
           "use one of the robot's joint names");
    if (!std::isfinite(value) || value < 0.0)
      fail("joint '" + name + "'", std::string(what) + " is " + text::to_short_text(value),
           "give a finite number that is not negative");
  }

  /// Which joints hold still, and where.
  void resolve_locks() {
    for (const JointDescription& j : description_.joints) {
      if (j.type == JointType::fixed || j.mimic) continue;
      const auto lock = options_.locked.find(j.name);
      if (lock != options_.locked.end()) {
        locked_[j.name] = lock->second;
      } else if (options_.joints && std::find(options_.joints->begin(), options_.joints->end(),
                                              j.name) == options_.joints->end()) {
        if (!has_one_coordinate(j.type))
          fail("joint '" + j.name + "'", "has several coordinates and cannot be locked",
               "add it to the joints that move");
        locked_[j.name] = 0.0;
      }
    }
  }

  /// The independent joint at the end of a chain of mimics, with the composed multiplier.
  [[nodiscard]] Mimic resolve_mimic(const JointDescription& start) const {
    Mimic chain{start.name, 1.0, 0.0};
    for (const JointDescription* j = &start; j->mimic;
         j = &joint(joint_index_.at(j->mimic->joint))) {
      chain.offset += chain.multiplier * j->mimic->offset;
      chain.multiplier *= j->mimic->multiplier;
      chain.joint = j->mimic->joint;
    }
    return chain;
  }

  [[nodiscard]] double locked_position(const JointDescription& j, bool& is_locked) const {
    const Mimic chain = resolve_mimic(j);
    const auto it = locked_.find(chain.joint);
    is_locked = it != locked_.end();
    return is_locked ? chain.multiplier * it->second + chain.offset : 0.0;
  }

  // --- the walk along the tree: raw bodies, joints, links ---------------------------------------

  void walk() {
    attachments_.resize(description_.links.size());
    const std::string root = find_root();
    Attachment at_root;
    if (options_.floating_base) {
      JointDescription floating;
      floating.name = "floating_base";
      floating.type = JointType::floating;
      floating.parent = "world";
      floating.child = root;
      at_root = add_floating(floating, {});
    }
    // Depth-first with an explicit stack; children are pushed last first.
    std::vector<std::pair<std::string, Attachment>> stack{{root, at_root}};
    while (!stack.empty()) {
      const auto [link, attachment] = stack.back();
      stack.pop_back();
      const auto incoming = incoming_.find(link);
      const Attachment here =
          incoming == incoming_.end() ? attachment : cross(joint(incoming->second), attachment);
      attachments_[static_cast<std::size_t>(link_index_.at(link))] = here;
      const auto found = children_.find(link);
      if (found == children_.end()) continue;
      for (auto it = found->second.rbegin(); it != found->second.rend(); ++it) {
        incoming_[joint(*it).child] = *it;
        stack.emplace_back(joint(*it).child, here);
      }
    }
    for (const JointDescription& j : description_.joints) add_mimic_info(j);
  }

  [[nodiscard]] std::string find_root() const {
    std::map<std::string, bool> is_child;
    for (const JointDescription& j : description_.joints) is_child[j.child] = true;
    for (const LinkDescription& l : description_.links)
      if (is_child.count(l.name) == 0) return l.name;
    fail("robot", "has no root link", "break the cycle of joints");
  }

  /// Goes across a joint: where its child link is attached.
  [[nodiscard]] Attachment cross(const JointDescription& j, const Attachment& parent) {
    bool is_locked = false;
    const double position = locked_position(j, is_locked);
    if (j.type == JointType::fixed) return {parent.body, parent.X_RL * j.origin};
    if (is_locked) return {parent.body, parent.X_RL * j.origin * displacement(j, position)};
    if (j.type == JointType::floating) return add_floating(j, parent);
    if (j.type == JointType::planar) return add_planar(j, parent);
    return {add_single(j, parent), Pose<double>::identity()};
  }

  [[nodiscard]] static Pose<double> displacement(const JointDescription& j, double position) {
    const Vector3d axis = j.axis.normalized();
    if (j.type == JointType::prismatic) return {Matrix3d::Identity(), position * axis};
    return {Eigen::AngleAxisd(position, axis).toRotationMatrix(), j.pitch * position * axis};
  }

  int add_raw(int parent, const Pose<double>& X_PR, const Vector3d& axis, const BodyData& data) {
    const int i = static_cast<int>(raw_.size());
    RawBody b;
    b.parent = parent;
    b.X_PR = X_PR;
    b.axis = axis;
    b.data = data;
    b.data.parent = parent;
    int& first = parent < 0 ? first_of_base_ : raw_[static_cast<std::size_t>(parent)].first_child;
    if (first < 0) first = i;
    raw_.push_back(b);
    return i;
  }

  static double overridden(const std::map<std::string, double>& map, const std::string& name,
                           double value) {
    const auto it = map.find(name);
    return it == map.end() ? value : it->second;
  }

  /// Adds the coordinates of an independent joint; returns its index in Model::joints.
  int add_joint(const JointDescription& j, int nq, int nv) {
    JointInfo info;
    info.name = j.name;
    info.type = j.type;
    info.parent = j.parent;
    info.child = j.child;
    info.q = model_.nq;
    info.nq = nq;
    info.v = model_.nv;
    info.nv = nv;
    if (j.limits) info.limits = *j.limits;
    if (j.type == JointType::continuous) {
      info.limits.lower = -std::numeric_limits<double>::infinity();
      info.limits.upper = std::numeric_limits<double>::infinity();
    }
    info.damping = overridden(options_.damping, j.name, j.damping);
    info.friction = overridden(options_.friction, j.name, j.friction);
    info.rotor_inertia = overridden(options_.rotor_inertia, j.name, j.rotor_inertia);
    info.pitch = j.pitch;
    info.gear_ratio = overridden(options_.gear_ratio, j.name, j.gear_ratio);
    model_.nq += nq;
    model_.nv += nv;
    model_.joints.push_back(info);
    const int index = static_cast<int>(model_.joints.size()) - 1;
    coordinate_of_[j.name] = index;
    return index;
  }

  [[nodiscard]] double reflected(const JointDescription& j) const {
    const double gear = overridden(options_.gear_ratio, j.name, j.gear_ratio);
    return overridden(options_.rotor_inertia, j.name, j.rotor_inertia) * gear * gear;
  }

  int add_single(const JointDescription& j, const Attachment& parent) {
    BodyData data;
    data.kind = kind_of(j.type);
    data.pitch = j.pitch;
    data.rotor = reflected(j);
    data.mimic = j.mimic.has_value();
    if (data.mimic) {
      const Mimic chain = resolve_mimic(j);
      data.multiplier = chain.multiplier;
      data.offset = chain.offset;
      followers_.emplace_back(static_cast<int>(raw_.size()), chain.joint);
    } else {
      data.joint = add_joint(j, 1, 1);
    }
    if (!data.mimic) {
      data.q = model_.joints[static_cast<std::size_t>(data.joint)].q;
      data.dof = model_.joints[static_cast<std::size_t>(data.joint)].v;
    }
    return add_raw(parent.body, parent.X_RL * j.origin, j.axis.normalized(), data);
  }

  Attachment add_planar(const JointDescription& j, const Attachment& parent) {
    const Vector3d normal = j.axis.normalized();
    const Matrix3d R = rotation_of_z_onto(normal);
    BodyData data;
    data.joint = add_joint(j, 3, 3);
    data.q = model_.joints.back().q;
    data.dof = model_.joints.back().v;
    data.kind = JointKind::prismatic;
    int body = add_raw(parent.body, parent.X_RL * j.origin, R.col(0), data);
    ++data.q;
    ++data.dof;
    body = add_raw(body, Pose<double>::identity(), R.col(1), data);
    ++data.q;
    ++data.dof;
    data.kind = JointKind::revolute;
    body = add_raw(body, Pose<double>::identity(), normal, data);
    return {body, Pose<double>::identity()};
  }

  Attachment add_floating(const JointDescription& j, const Attachment& parent) {
    BodyData data;
    data.joint = add_joint(j, 7, 6);
    data.q = model_.joints.back().q;
    data.dof = model_.joints.back().v;
    int body = parent.body;
    for (int axis = 0; axis < 6; ++axis, ++data.dof) {
      data.axis = axis;
      data.kind = axis == 0  ? JointKind::floating_first
                  : axis < 3 ? JointKind::floating_angular
                             : JointKind::floating_linear;
      data.origin = axis == 0 ? parent.X_RL * j.origin : Pose<double>::identity();
      const Pose<double> X = axis == 0 ? data.origin : Pose<double>::identity();
      body = add_raw(body, X, Vector3d::Unit(axis % 3), data);
    }
    return {body, Pose<double>::identity()};
  }

  void add_mimic_info(const JointDescription& j) {
    if (!j.mimic) return;
    const Mimic chain = resolve_mimic(j);
    if (locked_.count(chain.joint) == 0)
      model_.mimics.push_back({j.name, chain.joint, chain.multiplier, chain.offset});
  }

  // --- frames -----------------------------------------------------------------------------------

  void choose_frames() {
    for (RawBody& b : raw_) {
      if (fixes_frame(b)) {  // z is the motion's axis, the others follow cyclically
        const int k = b.data.axis;
        b.X_RF.R << Vector3d::Unit((k + 1) % 3), Vector3d::Unit((k + 2) % 3), Vector3d::Unit(k % 3);
      } else if (b.first_child >= 0 && !fixes_frame(raw(b.first_child))) {
        b.X_RF = choose_frame(b.axis, raw(b.first_child));
      } else {
        b.X_RF = frame_on_axis(Vector3d::Zero(), b.axis, any_perpendicular(b.axis));
      }
    }
    if (first_of_base_ >= 0 && !fixes_frame(raw(first_of_base_))) {
      // The base frame shares axis and origin with the first body: its transform is a pure turn.
      const RawBody& first = raw(first_of_base_);
      model_.X_WB = first.X_PR * first.X_RF;
    }
  }

  [[nodiscard]] RawBody& raw(int i) { return raw_[static_cast<std::size_t>(i)]; }

  [[nodiscard]] Pose<double> frame_of(int body) { return body < 0 ? model_.X_WB : raw(body).X_RF; }

  void finish_bodies() {
    for (const auto& [body, name] : followers_) {
      const JointInfo& leader = model_.joints[static_cast<std::size_t>(coordinate_of_.at(name))];
      raw(body).data.joint = coordinate_of_.at(name);
      raw(body).data.q = leader.q;
      raw(body).data.dof = leader.v;
    }
    for (std::size_t i = 0; i < raw_.size(); ++i) {
      RawBody& b = raw_[i];
      if (b.data.kind == JointKind::floating_first)
        b.data.origin = frame_of(b.parent).inverse() * b.data.origin;
      const Pose<double> X_PF = frame_of(b.parent).inverse() * b.X_PR * b.X_RF;
      const bool general = fixes_frame(b) || !set_modified_dh(X_PF, b.data.X);
      if (general) set_branch(X_PF, b.data.X);
      place_zero(b.data);
      model_.bodies.push_back(b.data);
    }
  }

  void finish_links() {
    for (std::size_t l = 0; l < attachments_.size(); ++l) {
      const Attachment& at = attachments_[l];
      const LinkDescription& from = description_.links[l];
      LinkInfo link;
      link.name = from.name;
      link.body = at.body;
      link.X_BL = frame_of(at.body).inverse() * at.X_RL;
      link.inertial = from.inertial.value_or(Inertial{});
      model_.links.push_back(link);
    }
  }

  const RobotDescription& description_;
  const ModelOptions& options_;
  Model model_;
  std::map<std::string, int> joint_index_;
  std::map<std::string, int> link_index_;
  std::map<std::string, std::vector<int>> children_;  ///< joints by parent link
  std::map<std::string, int> incoming_;               ///< joint by child link
  std::map<std::string, double> locked_;
  std::map<std::string, int> coordinate_of_;            ///< Model::joints by name
  std::vector<std::pair<int, std::string>> followers_;  ///< mimic bodies and their leaders
  std::vector<RawBody> raw_;
  std::vector<Attachment> attachments_;  ///< by link
  int first_of_base_ = -1;
};

}  // namespace

int Model::find_link(const std::string& link_name) const noexcept {
  for (std::size_t i = 0; i < links.size(); ++i)
    if (links[i].name == link_name) return static_cast<int>(i);
  return -1;
}

int Model::find_joint(const std::string& joint_name) const noexcept {
  for (std::size_t i = 0; i < joints.size(); ++i)
    if (joints[i].name == joint_name) return static_cast<int>(i);
  return -1;
}

VectorX<double> Model::neutral() const {
  VectorX<double> q = VectorX<double>::Zero(nq);
  for (const JointInfo& j : joints)
    if (j.type == JointType::floating) q[j.q + 6] = 1.0;
  return q;
}

Model build_model(const RobotDescription& description, const ModelOptions& options) {
  return Compiler(description, options).compile();
}

}  // namespace dynamics_core
