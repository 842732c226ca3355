// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace dynamics_core::tools {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path) {
  throw std::runtime_error(path + ": cannot be written; is there room, and may you?");
}

/// Where the file is that a link leads to.
[[nodiscard]] fs::path target_of(const std::string& path) {
  std::error_code error;
  const fs::path target = fs::weakly_canonical(path, error);
  return error ? fs::path(path) : target;
}

/// A device or a pipe: nothing can take its place.
[[nodiscard]] bool is_special(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return fs::exists(status) && !fs::is_regular_file(status);
}

[[nodiscard]] bool write(const fs::path& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary);
  out << content;
  out.close();
  return static_cast<bool>(out);
}

/// A file under another name until it is complete; goes away unless it was put in place.
class Part {
 public:
  explicit Part(const OutputFile& file)
      : path_(file.path), target_(target_of(file.path)), part_(target_.string() + ".part") {
    if (write(part_, file.content)) return;
    remove();
    refuse(path_);
  }
  Part(Part&& other) noexcept
      : path_(std::move(other.path_)),
        target_(std::move(other.target_)),
        part_(std::exchange(other.part_, fs::path())) {}
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  Part& operator=(Part&&) = delete;
  ~Part() { remove(); }

  void put_in_place() {
    std::error_code error;
    fs::rename(part_, target_, error);
    if (error) refuse(path_);
    part_.clear();
  }

 private:
  void remove() {
    std::error_code ignored;
    if (!part_.empty()) fs::remove(part_, ignored);
    part_.clear();
  }

  std::string path_;
  fs::path target_, part_;
};

}  // namespace

void check_writable(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error))
    throw std::runtime_error(path + ": is a folder; name a file to write to");
  const fs::path target = target_of(path);
  if (is_special(target)) {
    if (access(target.c_str(), W_OK) != 0) refuse(path);
    return;
  }
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, error))
    throw std::runtime_error(path + ": there is no folder " + folder.string() +
                             "; make it, or choose another");
  if (access(folder.c_str(), W_OK | X_OK) != 0) refuse(path);
}

void check_writable_folder(const std::string& path) {
  std::error_code error;
  fs::path folder = target_of(fs::absolute(path).string());
  while (!fs::exists(folder, error) && folder != folder.parent_path())
    folder = folder.parent_path();
  if (!fs::is_directory(folder, error) || access(folder.c_str(), W_OK | X_OK) != 0)
    throw std::runtime_error(path +
                             ": cannot be made a folder that you may write to; choose another");
}

void write_files(const std::vector<OutputFile>& files) {
  std::vector<Part> parts;
  for (const OutputFile& file : files) {
    check_writable(file.path);
    if (!is_special(target_of(file.path))) parts.emplace_back(file);
  }
  for (const OutputFile& file : files) {
    const fs::path target = target_of(file.path);
    if (is_special(target) && !write(target, file.content)) refuse(file.path);
  }
  for (Part& part : parts) part.put_in_place();
}

}  // namespace dynamics_core::tools
