// SPDX-License-Identifier: Apache-2.0
/// OneTimeStream: bytes that can be read only once (standard input, a pipe), readable from any place again.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "gpusched/core/result.hpp"

namespace gpusched {

/// Copies what it reads into a file without a name ($TMPDIR, or /tmp), from which earlier places are read again. The
/// copy grows only as far as somebody read.
class OneTimeStream {
 public:
  /// The stream behind `path` ("-": standard input), the same one whenever its file is the same: a process reads a
  /// stream once, however often it opens it. None when the file can be opened again and again. Errors: it cannot be
  /// opened; no copy can be made.
  static Result<std::shared_ptr<OneTimeStream>> find(const std::string& path);

  OneTimeStream(int source, int copy) : source_(source), copy_(copy) {}
  OneTimeStream(const OneTimeStream&) = delete;
  OneTimeStream& operator=(const OneTimeStream&) = delete;
  ~OneTimeStream();

  /// As pread(2): the number of bytes from `offset` on that were put into `block`, 0 at the end, or -1 and errno.
  /// Precondition: `offset` is not beyond what was read before. From any thread.
  std::int64_t read_at(std::uint64_t offset, std::span<char> block);

 private:
  std::mutex mutex_;
  int source_, copy_;
  std::uint64_t copied_ = 0;
};

}  // namespace gpusched
