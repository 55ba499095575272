// SPDX-License-Identifier: Apache-2.0
/// ThreadTeam: threads that stay awake between the pieces of a timed run, so that starting them is not what is timed,
/// and whose work is timed in processor time, so that other programs' turns are not timed either.
#pragma once

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace gpusched {

/// Pins the calling thread to one processor while the object lives. Two threads that the system puts on one processor
/// take turns, and each is then faster than on two processors that share a core; so without pinning the same work would
/// have one of two times.
class PinnedThread {
 public:
  explicit PinnedThread(int processor) {
    ::sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(processor, &own);
    ::sched_setaffinity(0, sizeof own, &own);  // where that is not allowed the thread stays as it was
  }
  PinnedThread(const PinnedThread&) = delete;
  PinnedThread& operator=(const PinnedThread&) = delete;
  ~PinnedThread() { ::sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_{};
};

class ThreadTeam {
 public:
  explicit ThreadTeam(std::uint32_t threads)
      : threads_(threads), processors_(allowed_processors()), spent_us_(std::size_t{threads} * spent_stride) {
    for (std::uint32_t id = 1; id < threads; ++id) {
      others_.emplace_back([this, id] {
        const PinnedThread pinned(processor_of(id));
        serve(id);
      });
    }
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

  /// The thread that calls split() belongs on a processor of its own while it is timed.
  [[nodiscard]] PinnedThread pin_caller() const { return PinnedThread(processor_of(0)); }

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
    do_share(0);
    while (busy_.load() > 0) std::this_thread::yield();
    double slowest_us = 0;
    for (std::uint32_t id = 0; id < threads_; ++id) slowest_us = std::max(slowest_us, spent_us_[id * spent_stride]);
    busy_us_ += slowest_us + handover_us_;
  }

  /// Finds what handing work over and waiting for it costs, undisturbed: a low quantile of many empty rounds on the
  /// wall clock. From then on it is part of take_busy_us().
  void measure_handover() {
    constexpr std::size_t rounds = 2000;
    std::vector<double> wall_us;
    for (std::size_t i = 0; i < rounds; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      split(size(), [](std::int64_t, std::int64_t) {});
      wall_us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    }
    const auto low = wall_us.begin() + rounds / 50;
    std::nth_element(wall_us.begin(), low, wall_us.end());
    handover_us_ = *low;
    busy_us_ = 0;
  }

  /// Microseconds of all split() since the last call: of each the processor time of its slowest thread and the
  /// handover.
  double take_busy_us() { return std::exchange(busy_us_, 0); }

 private:
  static constexpr std::size_t spent_stride = 16;  // two cache lines a thread: they write at the same time

  static std::vector<int> allowed_processors() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    ::sched_getaffinity(0, sizeof allowed, &allowed);
    std::vector<int> processors;
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &allowed)) processors.push_back(i);
    }
    return processors.empty() ? std::vector<int>{0} : processors;
  }
  [[nodiscard]] int processor_of(std::uint32_t id) const { return processors_[id % processors_.size()]; }

  static double processor_us() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
  }

  void do_share(std::uint32_t id) {
    const double begin = processor_us();
    task_(id);
    spent_us_[id * spent_stride] = processor_us() - begin;
  }

  void serve(std::uint32_t id) {
    std::uint32_t seen = 0;
    for (;;) {
      // A short wait in user space before the kernel is asked: a wake-up costs more than many kernels take.
      for (int spin = 0; spin < 2000 && round_.load() == seen; ++spin) std::this_thread::yield();
      round_.wait(seen);
      ++seen;
      if (stop_) return;
      do_share(id);
      busy_.fetch_sub(1);
    }
  }

  std::uint32_t threads_;
  std::vector<int> processors_;
  std::function<void(std::uint32_t)> task_;
  std::vector<double> spent_us_;  // by thread, spent_stride apart, of the last split()
  double busy_us_ = 0;
  double handover_us_ = 0;
  std::atomic<std::uint32_t> round_ = 0;
  std::atomic<std::uint32_t> busy_ = 0;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> others_;
};

}  // namespace gpusched
