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

// Writes `text` into `place`; on an error `errno` says why. A pipe or device has no fsync.
const char* failed_step(const std::string& place, std::string_view text, bool to_disk) {
  std::FILE* file = std::fopen(place.c_str(), "wb");
  if (file == nullptr) return "create";
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0 &&
                       (!to_disk || ::fsync(::fileno(file)) == 0);
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
    const char* failed = failed_step(path, text, false);
    return failed == nullptr ? Result<void>() : cannot(failed, path);
  }
  const std::string place = fs::is_symlink(path, ignored) ? fs::weakly_canonical(path, ignored).string() : path;
  const std::string temporary = place + ".tmp" + std::to_string(::getpid());
  const char* failed = failed_step(temporary, text, true);
  if (failed == nullptr && std::rename(temporary.c_str(), place.c_str()) != 0) failed = "replace";
  if (failed == nullptr) return {};
  const Unexpected error = cannot(failed, path);
  std::remove(temporary.c_str());
  return error;
}

}  // namespace gpusched
