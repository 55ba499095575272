// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/measure/checkpoint_speed.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>

#include "src/calibration/measure/child_process.hpp"

namespace gpusched {

double checkpoint_bytes(SuiteScale scale) {
  switch (scale) {
    case SuiteScale::tiny: return 1 << 23;
    case SuiteScale::quick: return 1 << 28;
    case SuiteScale::full: break;
  }
  return 1 << 30;
}

Result<void> check_room(const std::string& folder, double bytes) {
  std::error_code failed;
  const auto space = std::filesystem::space(folder, failed);
  if (failed) return Unexpected{Error{.message = "cannot write a checkpoint to this folder", .file = folder}};
  if (static_cast<double>(space.available) > bytes) return {};
  const auto mib = [](double size) { return std::to_string(static_cast<std::uint64_t>(size / 1048576)) + " MiB"; };
  return Unexpected{Error{.message = "a checkpoint of " + mib(bytes) + " does not fit on this disk: " +
                                     mib(static_cast<double>(space.available)) + " are free",
                          .file = folder}};
}

Result<std::vector<double>> time_checkpoint(const std::string& folder, double bytes) {
  const std::string path = folder + "/gpusched-checkpoint-" + std::to_string(::getpid()) + ".tmp";
  const std::vector<char> block(1 << 22, 'x');
  const auto failed = [&] {
    std::remove(path.c_str());
    return Unexpected{Error{.message = "cannot write and read a checkpoint here", .file = folder}};
  };
  const int file = ::open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR, 0600);
  if (file < 0) return failed();
  const auto blocks = static_cast<std::int64_t>(bytes / static_cast<double>(block.size()));
  const double begin = monotonic_s();
  bool sound = true;
  for (std::int64_t i = 0; i < blocks && sound; ++i)
    sound = ::write(file, block.data(), block.size()) == static_cast<ssize_t>(block.size());
  sound = sound && ::fsync(file) == 0;
  const double written = monotonic_s();
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  std::vector<char> back(block.size());
  sound = sound && ::lseek(file, 0, SEEK_SET) == 0;
  for (std::int64_t i = 0; i < blocks && sound; ++i)
    sound = ::read(file, back.data(), back.size()) == static_cast<ssize_t>(back.size());
  const double read = monotonic_s();
  ::close(file);
  if (!sound) return failed();
  std::remove(path.c_str());
  const double total = static_cast<double>(blocks) * static_cast<double>(block.size());
  return std::vector<double>{total / (written - begin) / 1e9, total / (read - written) / 1e9};
}

}  // namespace gpusched
