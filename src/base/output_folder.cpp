// SPDX-License-Identifier: Apache-2.0
#include "src/base/output_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "src/base/atomic_file.hpp"

namespace gpusched {
namespace {

namespace fs = std::filesystem;

constexpr const char* staging_prefix = ".gpusched-";

Unexpected cannot(const std::string& what, const std::string& path, int code) {
  return Unexpected{Error{.message = "cannot " + what + ": " + std::strerror(code), .file = path}};
}

// Makes every missing folder of `path`; the names of those that it made go to `made`.
Result<void> make_folders(const fs::path& path, std::vector<std::string>& made) {
  std::error_code why;
  if (path.empty() || fs::is_directory(path, why)) return {};
  // Another program may have made it between these questions.
  if (fs::exists(fs::symlink_status(path, why)) && !fs::is_directory(path, why)) {
    return Unexpected{Error{.message = "is not a folder", .file = path.string()}};
  }
  if (auto above = make_folders(path.parent_path(), made); !above) return above;
  if (::mkdir(path.c_str(), 0777) == 0) {
    made.push_back(path.string());
  } else if (errno != EEXIST) {
    return cannot("make the folder", path.string(), errno);
  }
  return {};
}

void remove_folders(const std::vector<std::string>& made) {
  // Innermost first; a folder that others use by now is not empty and stays.
  std::for_each(made.rbegin(), made.rend(), [](const std::string& folder) { ::rmdir(folder.c_str()); });
}

// True while `descriptor` is the folder that stands at `path`: another writer may have removed and made it anew.
bool is_still_there(int descriptor, const std::string& path) {
  struct stat held {
  }, there{};
  return ::fstat(descriptor, &held) == 0 && ::stat(path.c_str(), &there) == 0 && held.st_dev == there.st_dev &&
         held.st_ino == there.st_ino;
}

}  // namespace

Result<int> lock_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return cannot("open the folder", folder, errno);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return descriptor;
  ::close(descriptor);
  return Unexpected{Error{.message = "another gpusched is writing into this folder", .file = folder}};
}

Result<OutputFolder> OutputFolder::open(const std::string& path, const std::string& seal) {
  for (;;) {
    std::vector<std::string> made;
    if (auto done = make_folders(path, made); !done) {
      remove_folders(made);
      return Unexpected{done.error()};
    }
    const auto lock = lock_folder(path);
    if (!lock) {
      std::error_code ignored;
      if (!fs::exists(path, ignored)) continue;  // removed in between by the writer that made it
      return Unexpected{lock.error()};
    }
    if (is_still_there(*lock, path)) return OutputFolder(path, seal, *lock, std::move(made));
    ::close(*lock);
  }
}

OutputFolder::OutputFolder(OutputFolder&& other) noexcept
    : path_(std::move(other.path_)),
      seal_(std::move(other.seal_)),
      lock_(std::exchange(other.lock_, -1)),
      made_(std::move(other.made_)),
      staging_(std::exchange(other.staging_, {})),
      names_(std::move(other.names_)),
      left_out_(std::move(other.left_out_)) {}

OutputFolder::~OutputFolder() {
  if (lock_ < 0) return;
  std::error_code ignored;
  if (!staging_.empty()) fs::remove_all(staging_, ignored);
  remove_folders(made_);
  ::close(lock_);
}

Result<void> OutputFolder::make_staging() {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, ignored)) {
    // The program that left it is dead: the folder is ours alone.
    if (entry.path().filename().string().starts_with(staging_prefix)) fs::remove_all(entry.path(), ignored);
  }
  std::string name = path_ + "/" + staging_prefix + "XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) return cannot("make a folder", path_, errno);
  staging_ = std::move(name);
  return {};
}

Result<void> OutputFolder::write(const std::string& name, std::string_view content) {
  return write(name, [content](const PieceSink& sink) { sink(content); });
}

Result<void> OutputFolder::write(const std::string& name, const PieceSource& source) {
  if (staging_.empty()) {
    if (auto made = make_staging(); !made) return made;
  }
  std::vector<std::string> made;
  const fs::path place = fs::path(staging_) / name;
  if (auto done = make_folders(place.parent_path(), made); !done) return done;
  if (write_new_file(place.string(), source) != nullptr) {
    return cannot("write", path_ + "/" + name, errno);  // staging is no business of the user
  }
  names_.push_back(name);
  return {};
}

Result<void> OutputFolder::check_places() const {
  const auto in_the_way = [](const char* what, const fs::path& place) {
    return Unexpected{Error{.message = what, .file = place.string()}};
  };
  for (const std::string& name : names_) {
    std::error_code ignored;
    const fs::path place = fs::path(path_) / name;
    for (fs::path folder = fs::path(name).parent_path(); !folder.empty(); folder = folder.parent_path()) {
      const fs::file_status there = fs::symlink_status(fs::path(path_) / folder, ignored);
      if (fs::exists(there) && !fs::is_directory(there)) {
        return in_the_way("is in the way; expected a folder here, or nothing", fs::path(path_) / folder);
      }
    }
    if (fs::is_directory(fs::symlink_status(place, ignored))) {
      return in_the_way("is a folder; expected a file here, or nothing", place);
    }
  }
  return {};
}

Result<void> OutputFolder::publish() {
  if (auto free = check_places(); !free) return free;
  if (::unlink((path_ + "/" + seal_).c_str()) != 0 && errno != ENOENT) {
    return cannot("take the old one away", path_ + "/" + seal_, errno);
  }
  for (const std::string& name : left_out_) {
    const std::string place = path_ + "/" + name;
    if (::unlink(place.c_str()) != 0 && errno != ENOENT && errno != EISDIR && errno != ENOTDIR) {
      return cannot("take the old one away", place, errno);
    }
    if (name.find('/') != std::string::npos) ::rmdir(fs::path(place).parent_path().c_str());  // stays where it is full
  }
  std::stable_partition(names_.begin(), names_.end(), [&](const std::string& name) { return name != seal_; });
  std::vector<std::string> made;
  for (const std::string& name : names_) {
    const std::string place = path_ + "/" + name;
    if (auto done = make_folders(fs::path(place).parent_path(), made); !done) return done;
    if (::rename((staging_ + "/" + name).c_str(), place.c_str()) != 0) return cannot("move a file to", place, errno);
  }
  ::fsync(lock_);
  std::error_code ignored;
  fs::remove_all(staging_, ignored);
  staging_.clear();
  made_.clear();
  names_.clear();
  left_out_.clear();
  return {};
}

}  // namespace gpusched
