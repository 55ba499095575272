// SPDX-License-Identifier: Apache-2.0
#include "src/base/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace gpusched {

std::uint32_t thread_count(std::uint32_t threads) {
  return threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
}

void for_each_index(std::size_t count, std::uint64_t threads, const std::function<void(std::size_t)>& work) {
  if (threads == 0) threads = thread_count(0);
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto take_turns = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    try {
      for (std::uint64_t i = 1; i < std::min<std::uint64_t>(threads, count); ++i) helpers.emplace_back(take_turns);
    } catch (const std::system_error&) {  // no more threads
    }
    take_turns();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace gpusched
