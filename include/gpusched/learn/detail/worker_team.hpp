// SPDX-License-Identifier: Apache-2.0
/// WorkerTeam: threads that work on one thing together for some microseconds, again and again.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace gpusched {
namespace detail {

/// Tells the core that this thread spins.
inline void pause_core() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// A counter on a cache line of its own. Waiting spins for some tens of microseconds, about what a step of a batch
/// takes, and only then goes to the kernel, whose wake-up costs as much again.
class alignas(64) SpinCounter {
 public:
  [[nodiscard]] std::uint32_t load() const { return value_.load(std::memory_order_acquire); }
  /// Precondition: no thread waits.
  void store(std::uint32_t value) { value_.store(value, std::memory_order_relaxed); }

  void add_one() {
    ++value_;
    if (asleep_.load() != 0) value_.notify_all();
  }

  /// The value once it differs from `seen`.
  std::uint32_t wait(std::uint32_t seen) {
    constexpr int spins = 2000;
    for (int turn = 0; turn < spins; ++turn) {
      if (const std::uint32_t now = load(); now != seen) return now;
      pause_core();
    }
    ++asleep_;
    value_.wait(seen);
    --asleep_;
    return load();
  }

 private:
  std::atomic<std::uint32_t> value_ = 0, asleep_ = 0;
};

/// Threads that run one function together, each on its part; the caller's thread is part 0.
class WorkerTeam {
 public:
  explicit WorkerTeam(std::uint32_t threads) {
    for (std::uint32_t part = 1; part < threads; ++part) {
      threads_.emplace_back([this, part] { serve(part); });
    }
  }
  WorkerTeam(const WorkerTeam&) = delete;
  WorkerTeam& operator=(const WorkerTeam&) = delete;
  ~WorkerTeam() {
    stop_ = true;
    round_.add_one();
    for (std::thread& thread : threads_) thread.join();
  }

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(threads_.size() + 1); }

  /// Calls work(part) for every part and returns when all are done.
  void run(const std::function<void(std::uint32_t)>& work) {
    const auto others = static_cast<std::uint32_t>(threads_.size());
    if (others == 0) return work(0);
    work_ = &work;
    done_.store(0);
    round_.add_one();
    work(0);
    for (std::uint32_t done = done_.load(); done != others;) done = done_.wait(done);
  }

 private:
  void serve(std::uint32_t part) {
    for (std::uint32_t seen = 0;;) {
      seen = round_.wait(seen);
      if (stop_) return;
      (*work_)(part);
      done_.add_one();
    }
  }

  SpinCounter round_, done_;  // work handed out; parts that are done with it
  const std::function<void(std::uint32_t)>* work_ = nullptr;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace detail

}  // namespace gpusched
