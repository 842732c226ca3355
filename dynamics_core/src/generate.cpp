// SPDX-License-Identifier: Apache-2.0
#include "dynamics_core/generate.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "code_writer.hpp"
#include "dynamics_core/config_error.hpp"
#include "dynamics_core/joint_selection.hpp"
#include "dynamics_core/simplification.hpp"
#include "dynamics_core/text.hpp"
#include "recording.hpp"

namespace dynamics_core {

namespace {

using text::quoted;

constexpr std::array<const char*, 76> keywords = {
    "alignas",  "alignof",  "and",      "asm",      "auto",   "bitand",  "bitor",     "bool",
    "break",    "case",     "catch",    "char",     "class",  "compl",   "const",     "constexpr",
    "continue", "decltype", "default",  "delete",   "do",     "double",  "else",      "enum",
    "explicit", "export",   "extern",   "false",    "float",  "for",     "friend",    "goto",
    "if",       "inline",   "int",      "long",     "main",   "mutable", "namespace", "new",
    "noexcept", "not",      "nullptr",  "operator", "or",     "private", "protected", "public",
    "register", "restrict", "return",   "short",    "signed", "sizeof",  "static",    "std",
    "struct",   "switch",   "template", "this",     "throw",  "true",    "try",       "typedef",
    "typeid",   "typename", "union",    "unsigned", "using",  "virtual", "void",      "volatile",
    "while",    "xor",      "concept",  "requires"};

/// A name of any kind as an identifier of C and C++.
[[nodiscard]] std::string identifier(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const bool fits =
        std::isalnum(static_cast<unsigned char>(c)) != 0 && static_cast<unsigned char>(c) < 128;
    if (fits)
      out += c;
    else if (!out.empty() && out.back() != '_')
      out += '_';
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  if (out.empty()) out = "robot";
  if (std::isdigit(static_cast<unsigned char>(out.front())) != 0) out = "robot_" + out;
  const bool keyword =
      std::any_of(keywords.begin(), keywords.end(), [&](const char* word) { return out == word; });
  return keyword ? out + "_robot" : out;
}

[[nodiscard]] std::string moving_links(const Model& model) {
  std::vector<std::string> names;
  for (const LinkInfo& link : model.links)
    if (link.body >= 0) names.push_back(link.name);
  return text::joined(names);
}

[[nodiscard]] int find_link(const Model& model, const std::string& option, const std::string& name,
                            bool moves) {
  const int link = model.find_link(name);
  if (link < 0 || (moves && model.links[static_cast<std::size_t>(link)].body < 0))
    throw ConfigError(option, quoted(name),
                      std::string(link < 0 ? "there is no such link" : "this link does not move") +
                          "; moving links are " + moving_links(model));
  return link;
}

[[nodiscard]] std::vector<std::string> checked_functions(const std::vector<std::string>& wanted) {
  std::vector<std::string> known = generated_functions();
  if (wanted.empty()) return known;
  std::vector<std::string> out;
  for (const std::string& name : wanted) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw ConfigError("functions", quoted(name),
                        "there is no such function; known are " + text::joined(known));
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  }
  return out;
}

[[nodiscard]] generation::Request checked_request(const Model& model,
                                                  const GenerateOptions& options) {
  generation::Request request;
  request.gravity = options.gravity;
  for (const std::string& name : options.payload_links) {
    const int link = find_link(model, "payload", name, true);
    const auto& named = request.payload_links;
    if (std::find(named.begin(), named.end(), link) != named.end())
      throw ConfigError("payload", quoted(name), "this link is named twice; name it once");
    request.payload_links.push_back(link);
  }
  request.link =
      options.link.empty() ? tip_link(model) : find_link(model, "link", options.link, false);
  return request;
}

[[nodiscard]] std::vector<GeneratedCode::Array> arrays(const std::vector<generation::Array>& from) {
  std::vector<GeneratedCode::Array> out;
  out.reserve(from.size());
  for (const generation::Array& array : from)
    out.push_back({array.name, array.rows, array.columns});
  return out;
}

[[nodiscard]] std::runtime_error failure(const std::string& path, const std::string& what) {
  return std::runtime_error(path + ": " + what);
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  const std::string temporary = path.string() + ".part" + std::to_string(getpid());
  std::ofstream file(temporary, std::ios::binary);
  file << text;
  file.close();
  const bool complete = !file.fail();
  std::error_code error;
  if (complete) std::filesystem::rename(temporary, path, error);
  if (complete && !error) return;
  std::error_code ignored;
  std::filesystem::remove(temporary, ignored);
  throw failure(path.string(),
                "cannot be written" + (error ? ": " + error.message() : std::string()));
}

}  // namespace

std::vector<std::string> generated_functions() { return generation::function_names(); }

GeneratedCode generate(const Model& model, const GenerateOptions& options) {
  const std::vector<std::string> names = checked_functions(options.functions);
  const generation::Request request = checked_request(model, options);
  generation::Style style;
  style.scalar = options.scalar;
  style.language = options.language;
  style.name = identifier(options.name.empty() ? model.name : options.name);
  style.robot = model.name;
  style.version = options.version;
  for (const JointInfo& joint : model.joints) style.joints.push_back(joint.name);
  style.nq = model.nq;
  style.nv = model.nv;

  std::vector<generation::Recording> recordings;
  GeneratedCode code;
  for (const std::string& name : names) {
    recordings.push_back(generation::record(name, model, request));
    const generation::Recording& made = recordings.back();
    code.functions.push_back({made.name, made.method, arrays(made.inputs), arrays(made.outputs),
                              count(made.graph), made.difference});
  }
  code.header = {header_name(style), header_text(style, recordings)};
  code.source = {source_name(style), source_text(style, recordings)};
  return code;
}

void write(const GeneratedCode& code, const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw failure(directory, "cannot be made: " + error.message());
  write_file(std::filesystem::path(directory) / code.source.name, code.source.text);
  write_file(std::filesystem::path(directory) / code.header.name, code.header.text);
}

}  // namespace dynamics_core
