// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/measure/process_pairs.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <new>
#include <thread>

#include "src/calibration/measure/child_process.hpp"

namespace gpusched {
namespace {

/// Where two processes wait for each other. They sleep meanwhile: a spinning wait would disturb the one that runs
/// alone.
class Rendezvous {
 public:
  Rendezvous() {
    void* memory = ::mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) state_ = new (memory) State;
  }
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;
  ~Rendezvous() {
    if (state_ != nullptr) ::munmap(state_, sizeof(State));
  }

  [[nodiscard]] bool usable() const { return state_ != nullptr; }

  /// Returns when both have called it `times` times; false when the other does not come.
  [[nodiscard]] bool wait(std::uint64_t times) const {
    state_->arrivals.fetch_add(1);
    const double deadline = monotonic_s() + most_wait_s;
    while (state_->arrivals.load() < 2 * times) {
      if (monotonic_s() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return true;
  }

 private:
  static constexpr double most_wait_s = 60;
  struct State {
    std::atomic<std::uint64_t> arrivals = 0;
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  State* state_ = nullptr;
};

/// Mean microseconds of a run in a loop of about `seconds`; 0 when the device is lost.
double loop_us(PreparedStep& step, double seconds) {
  const double begin = monotonic_s();
  if (!step.run(1)) return 0;
  // Batches of some milliseconds, so that neither looking at the clock nor asking the process that has the device is a
  // part of short kernels.
  const double once_s = std::max(monotonic_s() - begin, 1e-7);
  const auto batch = static_cast<std::uint64_t>(std::clamp(std::ceil(5e-3 / once_s), 1.0, 1e4));
  std::uint64_t runs = 0;
  const double start = monotonic_s();
  double now = start;
  while (now < start + seconds) {
    if (!step.run(batch)) return 0;
    runs += batch;
    now = monotonic_s();
  }
  return 1e6 * (now - start) / static_cast<double>(runs);
}

/// What process `own` of the two does: for each pair, its call alone while the other waits, then beside the other's.
/// Returns alone and beside of each pair; nothing when something went wrong.
std::vector<double> run_pairs(const OpenBackend& open, std::span<const KernelCall> calls, double turn_s, int own,
                              const Rendezvous& rendezvous) {
  const auto backend = open();
  if (!backend) return {};
  std::vector<std::unique_ptr<PreparedStep>> steps;
  for (const KernelCall& call : calls) {
    auto step = (*backend)->prepare({&call, 1});
    if (!step) return {};
    steps.push_back(*std::move(step));
  }
  std::vector<double> times;
  std::uint64_t meetings = 0;
  for (std::size_t a = 0; a < calls.size(); ++a) {
    for (std::size_t b = a; b < calls.size(); ++b) {
      PreparedStep& step = *steps[own == 0 ? a : b];
      double alone = 0;
      for (int turn = 0; turn < 2; ++turn) {
        if (!rendezvous.wait(++meetings)) return {};
        if (turn == own) alone = loop_us(step, turn_s);
      }
      if (!rendezvous.wait(++meetings)) return {};
      const double beside = loop_us(step, turn_s);
      if (alone <= 0 || beside <= 0) return {};
      times.insert(times.end(), {alone, beside});
    }
  }
  return times;
}

}  // namespace

Result<std::vector<std::vector<double>>> co_locate_processes(const OpenBackend& open, std::span<const KernelCall> calls,
                                                             double seconds) {
  const Rendezvous rendezvous;
  if (!rendezvous.usable()) return unexpected("cannot allocate memory that two processes share");
  const auto start = [&](int own) {
    return ChildProcess::start([&, own] { return run_pairs(open, calls, seconds / 3, own, rendezvous); });
  };
  auto first = start(0);
  if (!first) return Unexpected{first.error()};
  auto second = start(1);
  if (!second) return Unexpected{second.error()};
  const std::size_t pairs = calls.size() * (calls.size() + 1) / 2;
  const auto of_first = first->wait();
  const bool complete = of_first && of_first->size() == 2 * pairs;  // if not, the second waits in vain and is ended
  const auto of_second = complete ? second->wait() : of_first;
  if (!complete || !of_second || of_second->size() != 2 * pairs) {
    return unexpected("one of two processes that share the device ended early");
  }
  std::vector<std::vector<double>> slowdown(calls.size(), std::vector<double>(calls.size(), 1));
  std::size_t pair = 0;
  for (std::size_t a = 0; a < calls.size(); ++a) {
    for (std::size_t b = a; b < calls.size(); ++b, ++pair) {
      slowdown[a][b] = (*of_first)[2 * pair + 1] / (*of_first)[2 * pair];
      const double other = (*of_second)[2 * pair + 1] / (*of_second)[2 * pair];
      slowdown[b][a] = a == b ? 0.5 * (slowdown[a][a] + other) : other;
    }
  }
  return slowdown;
}

}  // namespace gpusched
