// SPDX-License-Identifier: Apache-2.0
/// MemoryFile: bytes in memory under a path, for readers that open files by name.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "tests/fuzz/fuzz_targets.hpp"

namespace gpusched::test {

/// An unnamed file of these bytes, gone with the object. Linux (memfd_create).
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : file_(memfd_create("gpusched", MFD_CLOEXEC)) {
    must_hold(file_ >= 0, "a file in memory can be made");
    must_hold(write(file_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "memory is left");
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(file_); }

  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

}  // namespace gpusched::test
