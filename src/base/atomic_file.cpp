// SPDX-License-Identifier: Apache-2.0
#include "src/base/atomic_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace gpusched {
namespace {

namespace fs = std::filesystem;

Unexpected cannot(const char* doing, const std::string& path) {
  return Unexpected{Error{.message = std::string("cannot ") + doing + ": " + std::strerror(errno), .file = path}};
}

enum class Place { device, new_file };

// Writes `text` into `place`; on an error `errno` says why. A pipe or device has no fsync; a new file is one that this
// call makes, through no link.
const char* failed_step(const std::string& place, std::string_view text, Place kind) {
  std::FILE* file = std::fopen(place.c_str(), kind == Place::new_file ? "wbx" : "wb");
  if (file == nullptr) return "create";
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0 &&
                       (kind == Place::device || ::fsync(::fileno(file)) == 0);
  const int write_error = errno;
  const bool closed = std::fclose(file) == 0;
  if (!written) errno = write_error;
  return written && closed ? nullptr : "write";
}

}  // namespace

Result<void> replace_file(const std::string& path, std::string_view text) {
  std::error_code ignored;
  const fs::file_status there = fs::status(path, ignored);
  errno = 0;
  if (fs::exists(there) && !fs::is_regular_file(there) && !fs::is_directory(there)) {
    const char* failed = failed_step(path, text, Place::device);
    return failed == nullptr ? Result<void>() : cannot(failed, path);
  }
  const std::string place = fs::is_symlink(path, ignored) ? fs::weakly_canonical(path, ignored).string() : path;
  const std::string temporary = place + ".tmp" + std::to_string(::getpid());
  std::remove(temporary.c_str());  // of a killed process with this number
  const char* failed = failed_step(temporary, text, Place::new_file);
  if (failed == nullptr && std::rename(temporary.c_str(), place.c_str()) != 0) failed = "replace";
  if (failed == nullptr) return {};
  const Unexpected error = cannot(failed, path);
  std::remove(temporary.c_str());
  return error;
}

}  // namespace gpusched
