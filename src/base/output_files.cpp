// SPDX-License-Identifier: Apache-2.0
#include "src/base/output_files.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace gpusched {
namespace {

namespace fs = std::filesystem;

std::string temporary_name(const std::string& path) { return path + ".partial"; }

Unexpected cannot(const std::string& what, const std::string& path, const std::error_code& why) {
  return Unexpected{Error{.message = "cannot " + what + ": " + why.message(), .file = path}};
}

}  // namespace

OutputFiles::~OutputFiles() {
  std::error_code ignored;
  for (const std::string& path : paths_) fs::remove(temporary_name(path), ignored);
  // Innermost first; a folder that another process has put files into is not empty and stays.
  std::for_each(folders_.rbegin(), folders_.rend(), [&](const std::string& folder) { fs::remove(folder, ignored); });
}

Result<void> OutputFiles::make_folders(const std::string& folder) {
  std::vector<fs::path> missing;
  std::error_code why;
  for (fs::path at = folder; !at.empty() && !fs::exists(at, why); at = at.parent_path()) missing.push_back(at);
  std::reverse(missing.begin(), missing.end());
  for (const fs::path& path : missing) {
    if (fs::create_directory(path, why)) folders_.push_back(path.string());
    if (why) return cannot("make the folder", path.string(), why);
  }
  if (!folder.empty() && !fs::is_directory(folder, why)) {
    return Unexpected{Error{.message = "is not a folder", .file = folder}};
  }
  return {};
}

Result<void> OutputFiles::write(const std::string& path, std::string_view content) {
  if (auto made = make_folders(fs::path(path).parent_path().string()); !made) return made;
  paths_.push_back(path);
  std::ofstream stream(temporary_name(path), std::ios::binary | std::ios::trunc);
  stream.write(content.data(), static_cast<std::streamsize>(content.size()));
  stream.close();
  if (!stream) return cannot("write", path, std::error_code(errno, std::generic_category()));
  return {};
}

Result<void> OutputFiles::commit() {
  std::error_code why;
  while (!paths_.empty()) {
    fs::rename(temporary_name(paths_.back()), paths_.back(), why);
    if (why) return cannot("rename to", paths_.back(), why);
    paths_.pop_back();
  }
  folders_.clear();
  return {};
}

}  // namespace gpusched
