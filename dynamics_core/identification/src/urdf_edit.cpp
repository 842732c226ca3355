// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/identification/urdf_edit.hpp"

#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <algorithm>
#include <vector>

#include "dynamics_core/dynamics.hpp"
#include "dynamics_core/identification/consistent.hpp"
#include "dynamics_core/regressor.hpp"
#include "dynamics_core/text.hpp"

namespace dynamics_core::identification {

namespace {

using Eigen::Matrix4d;
using text::to_text;

// --- bodies to links -----------------------------------------------------------------------------

/// Points of the link's frame in the body's.
[[nodiscard]] Matrix4d homogeneous(const Pose<double>& X) {
  Matrix4d T = Matrix4d::Identity();
  T.topLeftCorner<3, 3>() = X.R;
  T.topRightCorner<3, 1>() = X.p;
  return T;
}

[[nodiscard]] Matrix4d in_body(const LinkInfo& link) {
  const Inertial& i = link.inertial;
  Matrix4d P;
  const Eigen::Vector3d h = i.mass * i.com;
  P.topLeftCorner<3, 3>() =
      0.5 * i.inertia.trace() * Eigen::Matrix3d::Identity() - i.inertia + h * i.com.transpose();
  P.topRightCorner<3, 1>() = h;
  P.bottomLeftCorner<1, 3>() = h.transpose();
  P(3, 3) = i.mass;
  const Matrix4d T = homogeneous(link.X_BL);
  return T * P * T.transpose();
}

[[nodiscard]] Inertial in_link(const Matrix4d& P_body, const LinkInfo& link) {
  const Matrix4d T = homogeneous(link.X_BL.inverse());
  const Matrix4d P = T * P_body * T.transpose();
  Inertial i;
  i.mass = P(3, 3);
  i.com = P.topRightCorner<3, 1>() / i.mass;
  const Eigen::Matrix3d S = P.topLeftCorner<3, 3>() - i.mass * i.com * i.com.transpose();
  i.inertia = S.trace() * Eigen::Matrix3d::Identity() - S;
  return i;
}

[[nodiscard]] bool positive(const Matrix4d& P, const BodyPrior& scale) {
  const Matrix4d W = scale.L.inverse() * P * scale.L.inverse().transpose();
  return Eigen::SelfAdjointEigenSolver<Matrix4d>(W, Eigen::EigenvaluesOnly).eigenvalues()[0] > 1e-4;
}

// --- text ----------------------------------------------------------------------------------------

/// An element of the file: [begin, end) with its tags, its content in [inner, inner_end).
struct Element {
  std::string tag, name;
  std::size_t begin = 0, inner = 0, inner_end = 0, end = 0;
  bool empty = false;  ///< <tag …/>
};

[[nodiscard]] std::string attribute(const std::string& tag, const std::string& name,
                                    std::size_t* at = nullptr, std::size_t* length = nullptr) {
  std::size_t i = tag.find_first_of(" \t\r\n");
  while (i != tag.npos && i < tag.size()) {
    i = tag.find_first_not_of(" \t\r\n/>", i);
    const std::size_t equals = i == tag.npos ? tag.npos : tag.find('=', i);
    if (equals == tag.npos) break;
    const std::size_t open = tag.find_first_of("\"'", equals);
    const std::size_t close = open == tag.npos ? tag.npos : tag.find(tag[open], open + 1);
    if (close == tag.npos) break;
    if (text::trimmed(tag.substr(i, equals - i)) == name) {
      if (at != nullptr) *at = open + 1;
      if (length != nullptr) *length = close - open - 1;
      return tag.substr(open + 1, close - open - 1);
    }
    i = close + 1;
  }
  return {};
}

/// The elements right below another, comments and the like left out.
[[nodiscard]] std::vector<Element> children(const std::string& xml, std::size_t begin,
                                            std::size_t end) {
  std::vector<Element> found;
  int depth = 0;
  std::size_t i = begin;
  while (i < end) {
    i = xml.find('<', i);
    if (i == xml.npos || i >= end) break;
    const auto skip_past = [&](const char* mark) {
      const std::size_t at = xml.find(mark, i);
      return at == xml.npos ? end : at + std::char_traits<char>::length(mark);
    };
    if (xml.compare(i, 4, "<!--") == 0) {
      i = skip_past("-->");
      continue;
    }
    if (xml.compare(i, 9, "<![CDATA[") == 0) {
      i = skip_past("]]>");
      continue;
    }
    if (xml.compare(i, 2, "<?") == 0 || xml.compare(i, 2, "<!") == 0) {
      i = skip_past(">");
      continue;
    }
    // The tag ends at the first > outside of quotes.
    std::size_t close = i;
    char quote = 0;
    for (; close < end; ++close) {
      const char c = xml[close];
      if (quote != 0) {
        if (c == quote) quote = 0;
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == '>') {
        break;
      }
    }
    const bool closing = xml[i + 1] == '/';
    const bool empty = xml[close - 1] == '/';
    if (closing) {
      --depth;
      if (depth == 0 && !found.empty()) {
        found.back().inner_end = i;
        found.back().end = close + 1;
      }
    } else {
      if (depth == 0) {
        const std::string tag = xml.substr(i, close + 1 - i);
        const std::size_t stop = tag.find_first_of(" \t\r\n/>", 1);
        found.push_back({tag.substr(1, stop - 1), attribute(tag, "name"), i, close + 1, close + 1,
                         close + 1, empty});
      }
      if (!empty) ++depth;
    }
    i = close + 1;
  }
  return found;
}

[[nodiscard]] const Element* first(const std::vector<Element>& elements, const std::string& tag) {
  const auto it = std::find_if(elements.begin(), elements.end(),
                               [&](const Element& e) { return e.tag == tag; });
  return it == elements.end() ? nullptr : &*it;
}

/// The blanks before a place on its line.
[[nodiscard]] std::string indent(const std::string& xml, std::size_t at) {
  const std::size_t line = xml.rfind('\n', at);
  const std::size_t from = line == xml.npos ? 0 : line + 1;
  const std::string before = xml.substr(from, at - from);
  return before.find_first_not_of(" \t") == before.npos ? before : std::string("  ");
}

[[nodiscard]] std::string inertial_text(const Inertial& i, const std::string& in) {
  const auto& I = i.inertia;
  return "<inertial>\n" + in + "  <origin xyz=\"" + to_text(i.com[0]) + " " + to_text(i.com[1]) +
         " " + to_text(i.com[2]) + "\" rpy=\"0 0 0\"/>\n" + in + "  <mass value=\"" +
         to_text(i.mass) + "\"/>\n" + in + "  <inertia ixx=\"" + to_text(I(0, 0)) + "\" ixy=\"" +
         to_text(I(0, 1)) + "\" ixz=\"" + to_text(I(0, 2)) + "\" iyy=\"" + to_text(I(1, 1)) +
         "\" iyz=\"" + to_text(I(1, 2)) + "\" izz=\"" + to_text(I(2, 2)) + "\"/>\n" + in +
         "</inertial>";
}

/// The tag with the attribute set.
[[nodiscard]] std::string with(std::string tag, const std::string& name, double value) {
  std::size_t at = 0;
  std::size_t length = 0;
  (void)attribute(tag, name, &at, &length);
  if (at > 0) return tag.replace(at, length, to_text(value));
  return tag.insert(tag.find_first_of(" \t\r\n/>", 1), " " + name + "=\"" + to_text(value) + "\"");
}

struct Edit {
  std::size_t begin, end;
  std::string replacement;
};

/// Puts `content` where the child was, or where there is none last into the element.
[[nodiscard]] Edit edit(const std::string& xml, const Element& element, const Element* child,
                        const std::string& content) {
  if (child != nullptr) return {child->begin, child->end, content};
  const std::string in = indent(xml, element.begin);
  if (element.empty) {
    const std::string tag = xml.substr(element.begin, element.end - element.begin);
    return {element.begin, element.end,
            tag.substr(0, tag.size() - 2) + ">\n" + in + "  " + content + "\n" + in + "</" +
                element.tag + ">"};
  }
  // Before the blanks that lead to the closing tag.
  const std::size_t last = xml.find_last_not_of(" \t\r\n", element.inner_end - 1) + 1;
  return {last, last, "\n" + in + "  " + content};
}

}  // namespace

std::map<std::string, Inertial> link_inertials(const Model& model, const VectorX<double>& pi) {
  Dynamics<double> robot(model);
  VectorX<double> nominal(robot.regressor().columns());
  (void)robot.regressor().parameters(nominal);
  std::map<std::string, Inertial> inertials;
  Eigen::Index at = 0;
  for (int b = 0; b < model.nb(); ++b) {
    std::vector<const LinkInfo*> links;
    for (const LinkInfo& link : model.links)
      if (link.body == b) links.push_back(&link);
    if (links.empty()) continue;
    const BodyParameters now = pi.segment<10>(at);
    const BodyParameters before = nominal.segment<10>(at);
    at += 10;
    if (now == before) continue;
    const Matrix4d P = pseudo_inertia(now);
    const BodyPrior scale(now);
    // A link moved by a joint stands before those fixed to it.
    const LinkInfo* main = links.front();
    for (const LinkInfo* link : links)
      for (const JointInfo& joint : model.joints)
        if (joint.child == link->name) main = link;
    Matrix4d rest = P;
    Matrix4d sum = Matrix4d::Zero();
    for (const LinkInfo* link : links) {
      sum += in_body(*link);
      if (link != main) rest -= in_body(*link);
    }
    if (positive(rest, scale)) {
      inertials[main->name] = in_link(rest, *main);
      continue;
    }
    for (const LinkInfo* link : links)
      if (link->inertial.mass > main->inertial.mass) main = link;
    // P = A P₀ Aᵀ with A = L L₀⁻¹ makes a body of each part of P₀.
    const Matrix4d L0 = BodyPrior(body_parameters(sum)).L;
    const Matrix4d A = BodyPrior(now).L * L0.inverse();
    Matrix4d left = P;
    for (const LinkInfo* link : links) {
      if (link == main || link->inertial.mass <= 0.0) continue;
      const Matrix4d share = A * in_body(*link) * A.transpose();
      left -= share;
      inertials[link->name] = in_link(share, *link);
    }
    inertials[main->name] = in_link(left, *main);
  }
  return inertials;
}

std::string edited_urdf(const std::string& urdf, const std::map<std::string, Inertial>& inertials,
                        const std::map<std::string, JointDynamics>& dynamics) {
  const std::vector<Element> roots = children(urdf, 0, urdf.size());
  const Element* robot = first(roots, "robot");
  if (robot == nullptr)
    throw ModelError("", "file", "has no <robot> element", "identify a robot given as a URDF");
  std::vector<Edit> edits;
  std::size_t links = 0;
  std::size_t joints = 0;
  for (const Element& element : children(urdf, robot->inner, robot->inner_end)) {
    const std::vector<Element> inside = children(urdf, element.inner, element.inner_end);
    if (element.tag == "link") {
      const auto it = inertials.find(element.name);
      if (it == inertials.end()) continue;
      ++links;
      const Element* old = first(inside, "inertial");
      const std::string in =
          old != nullptr ? indent(urdf, old->begin) : indent(urdf, element.begin) + "  ";
      edits.push_back(edit(urdf, element, old, inertial_text(it->second, in)));
    } else if (element.tag == "joint") {
      const auto it = dynamics.find(element.name);
      if (it == dynamics.end()) continue;
      ++joints;
      const Element* old = first(inside, "dynamics");
      std::string tag = "<dynamics/>";
      if (old != nullptr) tag = urdf.substr(old->begin, old->inner - old->begin);
      tag = with(with(tag, "friction", it->second.friction), "damping", it->second.damping);
      if (old != nullptr) tag += urdf.substr(old->inner, old->end - old->inner);
      edits.push_back(edit(urdf, element, old, tag));
    }
  }
  if (links != inertials.size() || joints != dynamics.size())
    throw ModelError("", "file", "some links or joints were not found in its text",
                     "write each link and joint right below <robot>");
  std::sort(edits.begin(), edits.end(),
            [](const Edit& a, const Edit& b) { return a.begin > b.begin; });
  std::string out = urdf;
  for (const Edit& e : edits) out.replace(e.begin, e.end - e.begin, e.replacement);
  return out;
}

}  // namespace dynamics_core::identification
