// SPDX-License-Identifier: Apache-2.0
#include "load_common.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <unordered_map>

#include "dynamics_core/load.hpp"
#include "dynamics_core/text.hpp"

namespace dynamics_core {
namespace detail {
namespace {

using text::quoted;
using text::quoted_list;

/// Lists of names grow as large as the file that holds them; messages do not.
constexpr std::size_t max_listed = 6;

using Index = std::unordered_map<std::string, std::size_t>;

template <class Elements>
Index index_by_name(const Elements& elements, const std::string& kind, const std::string& source) {
  Index index;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::string& name = elements[i].name;
    if (name.empty()) {
      throw ModelError(source, kind + " number " + std::to_string(i + 1), "has no name",
                       "give it one");
    }
    if (!index.emplace(name, i).second) {
      throw ModelError(source, kind + " " + quoted(name), "exists twice", "rename one of them");
    }
  }
  return index;
}

std::size_t find_link(const Index& links, const std::string& name, const char* role,
                      const std::string& joint, const std::string& source) {
  const auto found = links.find(name);
  if (found == links.end()) {
    throw ModelError(source, "joint " + quoted(joint),
                     std::string(role) + " link " + quoted(name) + " does not exist",
                     "add the link or correct the name");
  }
  return found->second;
}

constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

/// Which joint leads to each link, `none` at a root.
struct Parents {
  std::vector<std::size_t> joint;
  std::vector<std::size_t> link;
};

Parents find_parents(const RobotDescription& description, const Index& links) {
  const std::size_t n = description.links.size();
  Parents parents{std::vector<std::size_t>(n, none), std::vector<std::size_t>(n, none)};
  for (std::size_t j = 0; j < description.joints.size(); ++j) {
    const JointDescription& joint = description.joints[j];
    const auto parent = find_link(links, joint.parent, "parent", joint.name, description.source);
    const auto child = find_link(links, joint.child, "child", joint.name, description.source);
    if (parent == child) {
      throw ModelError(description.source, "joint " + quoted(joint.name),
                       "connects link " + quoted(joint.child) + " to itself",
                       "correct the parent or the child");
    }
    if (parents.joint[child] != none) {
      throw ModelError(description.source, "link " + quoted(joint.child),
                       "has two parents, through joints " +
                           quoted(description.joints[parents.joint[child]].name) + " and " +
                           quoted(joint.name),
                       "remove one of the joints; a loop is declared beside the tree, not in it");
    }
    parents.joint[child] = j;
    parents.link[child] = parent;
  }
  return parents;
}

/// Names the loop that the ancestors of `link` end in, knowing that they never end in a root.
[[noreturn]] void throw_loop(const RobotDescription& description, const Parents& parents,
                             std::size_t link, const std::string& where) {
  for (std::size_t i = 0; i < description.links.size(); ++i) link = parents.link[link];
  std::vector<std::string> loop;
  std::size_t next = link;
  do {
    loop.push_back(description.links[next].name);
    next = parents.link[next];
  } while (next != link && loop.size() <= max_listed);
  throw ModelError(description.source, "link " + quoted(loop.front()),
                   "is its own ancestor (" + quoted_list(loop, " under ", max_listed) + ")" + where,
                   "remove one joint of the loop");
}

std::size_t find_root(const RobotDescription& description, const Parents& parents) {
  std::vector<std::string> roots;
  std::size_t root = none;
  for (std::size_t i = 0; i < parents.joint.size(); ++i) {
    if (parents.joint[i] != none) continue;
    roots.push_back(description.links[i].name);
    if (root == none) root = i;
  }
  if (roots.empty()) throw_loop(description, parents, 0, "; no link is the root");
  if (roots.size() > 1) {
    throw ModelError(description.source, "robot",
                     "has " + std::to_string(roots.size()) + " root links, " +
                         quoted_list(roots, ", ", max_listed),
                     "connect all but one with joints, or remove them");
  }
  return root;
}

void check_connected(const RobotDescription& description, const Parents& parents,
                     std::size_t root) {
  std::vector<bool> reached(parents.link.size(), false);
  reached[root] = true;
  std::vector<std::size_t> path;
  for (std::size_t i = 0; i < parents.link.size(); ++i) {
    path.clear();
    std::size_t link = i;
    while (!reached[link] && path.size() <= parents.link.size()) {
      path.push_back(link);
      link = parents.link[link];
    }
    if (!reached[link]) {
      throw_loop(description, parents, i,
                 ", detached from the root " + quoted(description.links[root].name));
    }
    for (const std::size_t passed : path) reached[passed] = true;
  }
}

}  // namespace

void check_size(const std::string& text, const std::string& source) {
  if (text.size() > max_bytes) {
    throw ModelError(source, "file", "is larger than 10 MB",
                     "remove what does not describe links and joints");
  }
  if (text.find_first_not_of(" \t\r\n") == text.npos) {
    throw ModelError(source, "file", "is empty", "give a URDF or a Denavit–Hartenberg table");
  }
}

std::string read_file(const std::string& path) {
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  std::string text;
  if (stream) {
    // One byte more than allowed is enough to know; a device may never end.
    text.resize(max_bytes + 1);
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(stream.gcount()));
  }
  if (!stream.eof() && text.size() <= max_bytes) {
    const std::string reason = errno != 0 ? std::strerror(errno) : "unknown reason";
    throw ModelError(path, "file", "cannot be read (" + reason + ")", "check the path");
  }
  check_size(text, path);
  return text;
}

void check_tree(const RobotDescription& description) {
  if (description.links.empty()) {
    throw ModelError(description.source, "robot", "has no links", "add at least one");
  }
  if (description.joints.size() > max_joints) {
    throw ModelError(description.source, "robot",
                     "has " + std::to_string(description.joints.size()) + " joints, more than " +
                         std::to_string(max_joints),
                     "split it into several models");
  }
  index_by_name(description.joints, "joint", description.source);
  const Index links = index_by_name(description.links, "link", description.source);
  const Parents parents = find_parents(description, links);
  check_connected(description, parents, find_root(description, parents));
}

void throw_warning(const std::string& source, const std::string& warning) {
  const std::size_t colon = warning.find(": ");
  if (colon == warning.npos) throw ModelError(source, "robot", warning, "");
  throw ModelError(source, warning.substr(0, colon), warning.substr(colon + 2), "");
}

}  // namespace detail

RobotDescription parse_file(const std::string& path) {
  const std::string text = detail::read_file(path);
  const std::size_t begin = text.rfind("\xEF\xBB\xBF", 0) == 0 ? 3 : 0;
  const std::size_t first = text.find_first_not_of(" \t\r\n", begin);
  const bool xml = first != text.npos && text[first] == '<';
  return xml ? parse_urdf(text, path) : parse_dh(text, path);
}

Model load_model(const std::string& path, const ModelOptions& options) {
  return build_model(parse_file(path), options);
}

}  // namespace dynamics_core
