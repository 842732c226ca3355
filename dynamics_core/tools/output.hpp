// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Files that are written as a whole or not at all.

#include <string>
#include <vector>

namespace dynamics_core::tools {

struct OutputFile {
  std::string path;
  std::string content;
};

/// Before a long computation: throws std::runtime_error where the file cannot be written.
void check_writable(const std::string& path);
/// The same for a folder, which may still have to be made.
void check_writable_folder(const std::string& path);

/// Writes each beside its place and then puts all in place; where one cannot be written, the old files
/// stay. What is no regular file, as a device, is written into; a link leads to what is written.
/// Throws std::runtime_error.
void write_files(const std::vector<OutputFile>& files);

}  // namespace dynamics_core::tools
