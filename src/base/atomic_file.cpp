// SPDX-License-Identifier: Apache-2.0
#include "src/base/atomic_file.hpp"

#include <fcntl.h>
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

// Writes `text` into the open `file` and closes it; false with the reason in errno. A pipe or device has no fsync.
bool write_all(int file, std::string_view text, bool to_disk) {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  int why = text.empty() ? 0 : errno;
  if (why == 0 && to_disk && ::fsync(file) != 0) why = errno;
  if (::close(file) != 0 && why == 0) why = errno;
  errno = why;
  return why == 0;
}

const char* write_device(const std::string& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return "create";
  return write_all(file, text, false) ? nullptr : "write";
}

}  // namespace

const char* write_new_file(const std::string& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file < 0) return "create";
  return write_all(file, text, true) ? nullptr : "write";
}

Result<void> replace_file(const std::string& path, std::string_view text) {
  std::error_code ignored;
  const fs::file_status there = fs::status(path, ignored);
  errno = 0;
  if (fs::exists(there) && !fs::is_regular_file(there) && !fs::is_directory(there)) {
    const char* failed = write_device(path, text);
    return failed == nullptr ? Result<void>() : cannot(failed, path);
  }
  const std::string place = fs::is_symlink(path, ignored) ? fs::weakly_canonical(path, ignored).string() : path;
  const std::string temporary = place + ".tmp" + std::to_string(::getpid());
  std::remove(temporary.c_str());  // of a killed process with this number
  const char* failed = write_new_file(temporary, text);
  if (failed == nullptr && std::rename(temporary.c_str(), place.c_str()) != 0) failed = "replace";
  if (failed == nullptr) return {};
  const Unexpected error = cannot(failed, path);
  std::remove(temporary.c_str());
  return error;
}

}  // namespace gpusched
