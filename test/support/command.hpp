// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Runs the built `dynamics` command as a user would, with files in a directory of its own.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace support {

/// A directory that goes away with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "dynamics-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] std::string path(const std::string& name) const { return (path_ / name).string(); }
  /// Writes a file; returns its path.
  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

 private:
  std::filesystem::path path_;
};

[[nodiscard]] inline std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

struct Outcome {
  int code = -1;  ///< exit code; −1 where the command ended by a signal
  std::string out;
  std::string err;
};

/// `arguments` is a piece of shell command line after the name of the command.
[[nodiscard]] inline Outcome run_dynamics(const std::string& arguments,
                                          const std::string& input = "") {
  const TemporaryDirectory directory;
  const std::string command = "{ " RD_DYNAMICS_EXE " " + arguments + "; } <" +
                              directory.write("in", input) + " >" + directory.path("out") + " 2>" +
                              directory.path("err");
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(directory.path("out")),
          read_file(directory.path("err"))};
}

[[nodiscard]] inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Each line of the output as JSON; throws where a line is none.
[[nodiscard]] inline std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> records;
  for (const std::string& line : lines_of(text)) records.push_back(nlohmann::json::parse(line));
  return records;
}

/// Two thin rods in the vertical xz plane, hinged about y, with their masses at the ends: the
/// textbook arm. Link 1: length 0.5 m, mass 2 kg; link 2: length 0.4 m, mass 1.5 kg.
inline constexpr const char* two_link_arm = R"(<robot name="two_link">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.5 0 0"/><mass value="2"/>
    <inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0.4 0 0"/><mass value="1.5"/>
    <inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial></link>
  <link name="tool"/>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
    <axis xyz="0 1 0"/><limit lower="-2" upper="2" velocity="3" effort="40"/>
    <dynamics damping="0.2" friction="0.1"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/>
    <origin xyz="0.5 0 0"/><axis xyz="0 1 0"/></joint>
  <joint name="flange" type="fixed"><parent link="lower"/><child link="tool"/>
    <origin xyz="0.4 0 0"/></joint>
</robot>
)";

/// A parallelogram in the xz plane once its loop is closed: crank and rocker of 0.5 m, coupler of
/// 0.4 m, all of 1 kg at their ends. The coupler never turns, so all masses move alike.
inline constexpr const char* parallelogram = R"(<robot name="parallelogram">
  <link name="base"/>
  <link name="crank"><inertial><origin xyz="0.5 0 0"/><mass value="1"/>
    <inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial></link>
  <link name="coupler"><inertial><origin xyz="0.4 0 0"/><mass value="1"/>
    <inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial></link>
  <link name="rocker"><inertial><origin xyz="0.5 0 0"/><mass value="1"/>
    <inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial></link>
  <joint name="crank_pin" type="continuous"><parent link="base"/><child link="crank"/>
    <axis xyz="0 1 0"/></joint>
  <joint name="coupler_pin" type="continuous"><parent link="crank"/><child link="coupler"/>
    <origin xyz="0.5 0 0"/><axis xyz="0 1 0"/></joint>
  <joint name="rocker_pin" type="continuous"><parent link="base"/><child link="rocker"/>
    <origin xyz="0.4 0 0"/><axis xyz="0 1 0"/></joint>
</robot>
)";
inline constexpr const char* parallelogram_loops = R"(loops:
  - name: last_pin
    type: revolute
    link_a: coupler
    frame_a: {xyz: [0.4, 0, 0]}
    link_b: rocker
    frame_b: {xyz: [0.5, 0, 0]}
    axis: [0, 1, 0]
)";

/// A slide with a follower that moves twice as far the other way: masses 1 kg and 3 kg.
inline constexpr const char* mimic_gripper = R"(<robot name="gripper">
  <link name="palm"/>
  <link name="left"><inertial><mass value="1"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <link name="right"><inertial><mass value="3"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <joint name="left_slide" type="prismatic"><parent link="palm"/><child link="left"/>
    <axis xyz="0 0 1"/><limit lower="0" upper="1" velocity="1" effort="1"/></joint>
  <joint name="right_slide" type="prismatic"><parent link="palm"/><child link="right"/>
    <axis xyz="0 0 1"/><limit lower="0" upper="1" velocity="1" effort="1"/>
    <mimic joint="left_slide" multiplier="-2" offset="0"/></joint>
</robot>
)";

}  // namespace support
