// SPDX-License-Identifier: Apache-2.0
/// WorkerTeam: threads that work on one thing together for some microseconds, again and again.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#if __has_include(<unistd.h>)
#include <unistd.h>
#endif

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

/// Number of the process; 0 where processes do not fork.
inline long process_number() {
#if __has_include(<unistd.h>)
  return ::getpid();
#else
  return 0;
#endif
}

/// Threads that run one function together, each on its part; the caller's thread is part 0. A process that was forked
/// has none of its parent's threads: its team makes its own when it is first used.
class WorkerTeam {
 public:
  explicit WorkerTeam(std::uint32_t threads) : size_(std::max(1u, threads)) { gather(); }
  WorkerTeam(const WorkerTeam&) = delete;
  WorkerTeam& operator=(const WorkerTeam&) = delete;
  ~WorkerTeam() {
    leave_to_parent();
    if (!others_) return;
    others_->stop = true;
    others_->round.add_one();
    for (std::thread& thread : others_->threads) thread.join();
  }

  [[nodiscard]] std::uint32_t size() const { return size_; }

  /// Calls work(part) for every part and returns when all are done.
  void run(const std::function<void(std::uint32_t)>& work) {
    if (size_ == 1) return work(0);
    if (leave_to_parent()) gather();
    others_->work = &work;
    others_->done.store(0);
    others_->round.add_one();
    work(0);
    for (std::uint32_t done = others_->done.load(); done + 1 != size_;) done = others_->done.wait(done);
  }

  /// Calls work(i) for each i below `count`; each part has neighbours.
  template <class Work>
  void for_each(std::uint32_t count, Work work) {
    const std::uint32_t parts = size_;
    const std::function<void(std::uint32_t)> run_part = [&count, &parts, &work](std::uint32_t part) {
      const auto begin = static_cast<std::uint32_t>(std::uint64_t{count} * part / parts);
      const auto end = static_cast<std::uint32_t>(std::uint64_t{count} * (part + 1) / parts);
      for (std::uint32_t i = begin; i < end; ++i) work(i);
    };
    run(run_part);
  }

 private:
  struct Others {
    SpinCounter round, done;  // work handed out; parts that are done with it
    const std::function<void(std::uint32_t)>* work = nullptr;
    std::atomic<bool> stop = false;
    std::vector<std::thread> threads;

    void serve(std::uint32_t part) {
      for (std::uint32_t seen = 0;;) {
        seen = round.wait(seen);
        if (stop) return;
        (*work)(part);
        done.add_one();
      }
    }
  };

  void gather() {
    if (size_ == 1) return;
    process_ = process_number();
    others_ = std::make_unique<Others>();
    Others* const others = others_.get();
    for (std::uint32_t part = 1; part < size_; ++part)
      others->threads.emplace_back([others, part] { others->serve(part); });
  }

  // In a forked process the parent's threads cannot be joined, nor their handles destroyed: the memory stays.
  bool leave_to_parent() {
    if (!others_ || process_ == process_number()) return false;
    static_cast<void>(others_.release());
    return true;
  }

  std::uint32_t size_;
  long process_ = 0;
  std::unique_ptr<Others> others_;  // none in a team of one
};

}  // namespace detail

}  // namespace gpusched
