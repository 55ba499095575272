// SPDX-License-Identifier: Apache-2.0
#include "traces/core/one_time_stream.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

namespace gpusched {
namespace {

Unexpected cannot(const std::string& what, const std::string& path) {
  return Unexpected{Error{.message = "cannot " + what + ": " + std::strerror(errno), .file = path}};
}

// A new file that is gone with its descriptor.
int open_nameless_file() {
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(ignored);
  std::string name = ((ignored ? std::filesystem::path("/tmp") : folder) / "gpusched-XXXXXX").string();
  const int copy = ::mkostemp(name.data(), O_CLOEXEC);
  if (copy >= 0) ::unlink(name.c_str());
  return copy;
}

bool write_whole(int file, std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

// Devices such as /dev/zero may be opened again, terminals not.
bool can_be_read_once_only(const struct stat& info, bool is_standard_input) {
  if (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)) return true;
  if (!is_standard_input) return false;
  return S_ISCHR(info.st_mode) || ::lseek(STDIN_FILENO, 0, SEEK_CUR) != 0;
}

}  // namespace

OneTimeStream::~OneTimeStream() {
  ::close(source_);
  ::close(copy_);
}

Result<std::shared_ptr<OneTimeStream>> OneTimeStream::find(const std::string& path) {
  // The streams of a process are as few and as global as its descriptors.
  static std::mutex mutex;
  static std::map<std::pair<dev_t, ino_t>, std::shared_ptr<OneTimeStream>> streams;
  const bool is_standard_input = path == "-";
  struct stat info {};
  if ((is_standard_input ? ::fstat(STDIN_FILENO, &info) : ::stat(path.c_str(), &info)) != 0) {
    return cannot("open", path);
  }
  if (!can_be_read_once_only(info, is_standard_input)) return std::shared_ptr<OneTimeStream>();
  const std::lock_guard lock(mutex);
  std::shared_ptr<OneTimeStream>& stream = streams[{info.st_dev, info.st_ino}];
  if (stream != nullptr) return stream;
  const int source =
      is_standard_input ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (source < 0) return cannot("open", path);
  const int copy = open_nameless_file();
  if (copy < 0) {
    const Unexpected error = cannot("keep a copy of it in $TMPDIR or /tmp", path);
    ::close(source);
    return error;
  }
  stream = std::make_shared<OneTimeStream>(source, copy);
  return stream;
}

std::int64_t OneTimeStream::read_at(std::uint64_t offset, std::span<char> block) {
  const std::lock_guard lock(mutex_);
  if (offset < copied_) {
    const std::uint64_t there = std::min<std::uint64_t>(block.size(), copied_ - offset);
    return ::pread(copy_, block.data(), there, static_cast<off_t>(offset));
  }
  ssize_t count = 0;
  do {
    count = ::read(source_, block.data(), block.size());
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return count;
  if (!write_whole(copy_, block.first(static_cast<std::size_t>(count)))) return -1;
  copied_ += static_cast<std::uint64_t>(count);
  return count;
}

}  // namespace gpusched
