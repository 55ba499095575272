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

// Returns why not all of `text` was written, a value of errno, or 0.
int write_text(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return text.empty() ? 0 : errno;
}

// Writes all pieces into the open `file` and closes it; false with the reason in errno. A pipe or device has no fsync.
bool write_all(int file, const PieceSource& source, bool to_disk) {
  int why = 0;
  source([&](std::string_view piece) {
    if (why == 0) why = write_text(file, piece);
  });
  if (why == 0 && to_disk && ::fsync(file) != 0) why = errno;
  if (::close(file) != 0 && why == 0) why = errno;
  errno = why;
  return why == 0;
}

PieceSource whole(std::string_view text) {
  return [text](const PieceSink& sink) { sink(text); };
}

const char* write_device(const std::string& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return "create";
  return write_all(file, whole(text), false) ? nullptr : "write";
}

// Shared by all replacements at work.
std::shared_mutex replacements;

}  // namespace

std::unique_lock<std::shared_mutex> hold_replacements() { return std::unique_lock(replacements); }

const char* write_new_file(const std::string& path, std::string_view text) { return write_new_file(path, whole(text)); }

const char* write_new_file(const std::string& path, const PieceSource& source) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file < 0) return "create";
  return write_all(file, source, true) ? nullptr : "write";
}

Result<void> write_output(const std::string& path, std::string_view text) {
  if (path != "-") return replace_file(path, text);
  std::fflush(stdout);
  errno = write_text(STDOUT_FILENO, text);
  return errno == 0 ? Result<void>() : cannot("write", "standard output");
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
  const std::shared_lock at_work(replacements);
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
