// SPDX-License-Identifier: Apache-2.0
/// ThreadTeam: threads that stay awake between the pieces of a timed run, so that starting them is not what is timed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace gpusched {

class ThreadTeam {
 public:
  explicit ThreadTeam(std::uint32_t threads) : threads_(threads) {
    for (std::uint32_t id = 1; id < threads; ++id) others_.emplace_back([this, id] { serve(id); });
  }
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;
  ~ThreadTeam() {
    stop_ = true;
    round_.fetch_add(1);
    round_.notify_all();
    for (std::thread& thread : others_) thread.join();
  }

  [[nodiscard]] std::uint32_t size() const { return threads_; }

  /// Calls work(first, last) on each thread with its share of [0, count); returns when all are done.
  template <class Work>
  void split(std::int64_t count, Work work) {
    const std::int64_t share = (count + threads_ - 1) / threads_;
    task_ = [&](std::uint32_t id) {
      const std::int64_t first = share * id;
      const std::int64_t last = first + share < count ? first + share : count;
      if (first < last) work(first, last);
    };
    busy_ = threads_ - 1;
    round_.fetch_add(1);
    round_.notify_all();
    task_(0);
    while (busy_.load() > 0) std::this_thread::yield();
  }

 private:
  void serve(std::uint32_t id) {
    std::uint32_t seen = 0;
    for (;;) {
      // A short wait in user space before the kernel is asked: a wake-up costs more than many kernels take.
      for (int spin = 0; spin < 2000 && round_.load() == seen; ++spin) std::this_thread::yield();
      round_.wait(seen);
      ++seen;
      if (stop_) return;
      task_(id);
      busy_.fetch_sub(1);
    }
  }

  std::uint32_t threads_;
  std::function<void(std::uint32_t)> task_;
  std::atomic<std::uint32_t> round_ = 0;
  std::atomic<std::uint32_t> busy_ = 0;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> others_;
};

}  // namespace gpusched
