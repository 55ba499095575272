// SPDX-License-Identifier: Apache-2.0
/// What tests that touch files share: where fixtures and real traces lie, and files written for one test.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace gpusched::test {

/// The folder of this repository's source. Compiled once (source_dir.cpp), so that no other file depends on its place.
std::string source_dir();

/// A hand-made sample of traces/fixtures.
inline std::string fixture(const std::string& name) {
  return source_dir() + "/traces/fixtures/" + name;
}

/// A real trace in $GPUSCHED_TRACES, else in shared/traces beside the repository; empty when it is not there.
inline std::string real_trace(const std::string& name) {
  const char* const set = std::getenv("GPUSCHED_TRACES");
  const std::filesystem::path folder =
      set != nullptr ? std::filesystem::path(set) : std::filesystem::path(source_dir()) / "../shared/traces";
  std::error_code ignored;
  return std::filesystem::exists(folder / name, ignored) ? (folder / name).string() : std::string();
}

/// Ends the test with a line that says which real trace it needs.
#define GPUSCHED_NEEDS_TRACE(path, name) \
  if ((path).empty()) GTEST_SKIP() << (name) << " is not here; set GPUSCHED_TRACES"

/// A folder of its own, removed with everything in it at the end of the test.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "gpusched_test_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] std::string path() const { return path_.string(); }
  /// Writes a file of these bytes and returns its path.
  std::string write(const std::string& name, std::string_view bytes) const {
    const std::filesystem::path path = path_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path.string();
  }

 private:
  std::filesystem::path path_;
};

/// The bytes of a file.
inline std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace gpusched::test
