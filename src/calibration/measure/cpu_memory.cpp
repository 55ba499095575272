// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/measure/cpu_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "src/calibration/measure/reference.hpp"

namespace gpusched {
namespace {

constexpr std::size_t huge_page = std::size_t{1} << 21;

std::size_t rounded_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

CpuMemory::CpuMemory(std::size_t bytes) : size_(rounded_up(bytes, huge_page)) {
  const std::size_t mapped = size_ + huge_page;  // one more, so that the stretch can begin on a whole page
  for (Stretch* stretch : {&random_, &room_}) {
    void* memory = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      if (random_.mapping != nullptr) ::munmap(random_.mapping, mapped);
      throw std::bad_alloc();
    }
    // Both calls are advice only: without huge pages times vary more; pages shared with a child would be copied when
    // written.
    ::madvise(memory, mapped, MADV_HUGEPAGE);
    ::madvise(memory, mapped, MADV_DONTFORK);
    const std::size_t misplaced = reinterpret_cast<std::uintptr_t>(memory) % huge_page;
    *stretch = {.mapping = memory, .begin = static_cast<std::byte*>(memory) + (huge_page - misplaced) % huge_page};
  }
}

CpuMemory::~CpuMemory() {
  for (const Stretch* stretch : {&random_, &room_}) ::munmap(stretch->mapping, size_ + huge_page);
}

void CpuMemory::restart() {
  random_.used = 0;
  room_.used = 0;
}

void* CpuMemory::take(Stretch& stretch, std::size_t bytes) const {
  if (stretch.used + with_gap(bytes) > size_) throw std::bad_alloc();
  void* place = stretch.begin + stretch.used;
  stretch.used += rounded_up(bytes, 64) + gap;
  return place;
}

std::span<const float> CpuMemory::random_floats(std::size_t count) {
  const auto* floats = static_cast<float*>(take(random_, count * sizeof(float)));
  const std::size_t end = random_.used / sizeof(float);
  if (end > random_ready_) {
    extend_random_floats({reinterpret_cast<float*>(random_.begin), end}, random_ready_, Rng(1).split("cpu memory"));
    random_ready_ = end;
  }
  return {floats, count};
}

}  // namespace gpusched
