// SPDX-License-Identifier: Apache-2.0
/// HeldFolder: a folder of results that grows run by run, kept for one program at a time.
#pragma once

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "src/base/output_folder.hpp"

namespace gpusched {

/// Holds the folder against other programs, as OutputFolder does; its database grows there run by run.
class HeldFolder {
 public:
  /// Makes the folder where it is missing. Errors: it cannot be made; another program holds it.
  static Result<HeldFolder> open(const std::string& path) {
    std::error_code why;
    std::filesystem::create_directories(path, why);
    if (why) return Unexpected{Error{.message = "cannot make the folder: " + why.message(), .file = path}};
    // The workers of a program that was killed hold its folder until they see that nobody asks them any more.
    constexpr std::chrono::milliseconds pause(50);
    auto lock = lock_folder(path);
    for (int turn = 0; !lock && turn < 40; ++turn) {
      std::this_thread::sleep_for(pause);
      lock = lock_folder(path);
    }
    if (!lock) return Unexpected{lock.error()};
    return HeldFolder(*lock);
  }
  HeldFolder(HeldFolder&& other) noexcept : lock_(std::exchange(other.lock_, -1)) {}
  HeldFolder& operator=(HeldFolder&&) = delete;
  ~HeldFolder() {
    if (lock_ >= 0) ::close(lock_);
  }

 private:
  explicit HeldFolder(int lock) : lock_(lock) {}
  int lock_;
};

}  // namespace gpusched
