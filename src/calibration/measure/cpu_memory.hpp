// SPDX-License-Identifier: Apache-2.0
/// CpuMemory: where the processor's kernels have their operands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gpusched {

/// Two areas of memory on huge pages, one of random floats and one for everything else, allocated from the front. After
/// restart() the same requests get the same addresses and pages again. Otherwise the cache lines that two operands
/// share, and the pages they lie on, would differ between timings and change the times by more than the effect that is
/// measured. A forked child does not have this memory.
class CpuMemory {
 public:
  /// Reserves addresses; pages come when they are first used. Throws std::bad_alloc where there are none.
  explicit CpuMemory(std::size_t bytes);
  CpuMemory(const CpuMemory&) = delete;
  CpuMemory& operator=(const CpuMemory&) = delete;
  ~CpuMemory();

  /// What a request of `bytes` takes of the size at most.
  static constexpr std::size_t with_gap(std::size_t bytes) { return bytes + 2 * gap; }

  [[nodiscard]] std::size_t size() const { return size_; }

  /// Takes back all that was handed out.
  void restart();

  /// Uniform in [-1, 1).
  std::span<const float> random_floats(std::size_t count);

  /// As they were left.
  template <class T>
  std::span<T> room(std::size_t count) {
    return {static_cast<T*>(take(room_, count * sizeof(T))), count};
  }

 private:
  struct Stretch {
    void* mapping = nullptr;
    std::byte* begin = nullptr;  // the mapping's first huge page
    std::size_t used = 0;
  };
  // Between two requests: keeps operands whose sizes are powers of two from lying on the same sets of the caches.
  static constexpr std::size_t gap = 17 * std::size_t{64};

  void* take(Stretch& stretch, std::size_t bytes) const;

  std::size_t size_;
  Stretch random_, room_;
  std::size_t random_ready_ = 0;  // floats at the front of random_ that have their values
};

}  // namespace gpusched
