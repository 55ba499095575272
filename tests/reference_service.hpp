// SPDX-License-Identifier: Apache-2.0
/// Rules of the reference simulator that run published programs by attained GPU service, step by step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "tests/reference_simulator.hpp"

namespace gpusched::test {

/// `dlas-gpu` of the Tiresias simulator, step by step as golden tables describe it.
class ReferenceTiresiasCode {
 public:
  explicit ReferenceTiresiasCode(std::int64_t promote_knob) : promote_knob_(promote_knob) {}

  void operator()(ReferenceSimulator& world) {
    const bool woken = world.ended().empty() && world.came().empty();
    if (woken && world.now() != next_check_) return;
    for (ReferenceJob* job : world.ended()) {
      std::erase(queues_[states_[job->id].queue], job);
      std::erase(admitted_, job);
    }
    for (ReferenceJob* job : admitted_) update(*job, world.now() - last_event_);
    for (ReferenceJob* job : world.came()) {
      states_[job->id] = {};
      queues_[0].push_back(job);
      admitted_.push_back(job);
    }
    place(world);
    for (auto& queue : queues_) {
      std::stable_partition(queue.begin(), queue.end(), [](const ReferenceJob* job) { return job->running; });
    }
    next_check_ = next_check(world.now());
    if (next_check_ > world.now()) world.wake_at(next_check_);
    last_event_ = world.now();
  }

 private:
  struct State {
    std::size_t queue = 0;
    std::int64_t executed = 0, pending = 0;  // since the start or the last promotion; since the last run
    bool ever_ran = false;
  };
  static constexpr std::int64_t limits_[] = {3250, 7200};

  void update(ReferenceJob& job, std::int64_t span) {
    State& state = states_[job.id];
    if (job.running) {
      state.executed += span;
      if (state.queue < 2 && state.executed * job.gpus >= limits_[state.queue]) move(job, state.queue + 1);
    } else if (state.ever_ran) {
      state.pending += span;
      if (!promotes(state) || state.pending < state.executed * promote_knob_) return;
      move(job, 0);
      state.executed = state.pending = 0;
    }
  }

  [[nodiscard]] bool promotes(const State& state) const {
    return promote_knob_ > 0 && state.queue > 0 && state.executed > 0;
  }

  void move(ReferenceJob& job, std::size_t queue) {
    std::erase(queues_[states_[job.id].queue], &job);
    queues_[queue].push_back(&job);
    states_[job.id].queue = queue;
  }

  void place(ReferenceSimulator& world) {
    std::int64_t free = world.gpus();
    std::vector<ReferenceJob*> chosen;
    for (const auto& queue : queues_) {
      for (ReferenceJob* job : queue) {
        if (job->gpus > free) continue;
        free -= job->gpus;
        chosen.push_back(job);
        State& state = states_[job->id];
        if (!job->running) state.pending = 0;
        state.ever_ran = true;
      }
    }
    world.run_only(chosen);
  }

  [[nodiscard]] std::int64_t next_check(std::int64_t now) {
    std::int64_t next = -1;
    const auto at = [&](std::int64_t second) { next = next < 0 ? second : std::min(next, second); };
    for (const ReferenceJob* job : admitted_) {
      const State& state = states_[job->id];
      if (job->running && state.queue < 2) {
        at(now + std::max<std::int64_t>((limits_[state.queue] - state.executed) / job->gpus, 1));
      }
      const std::int64_t promotion = now + state.executed * promote_knob_ - state.pending;
      if (!job->running && promotes(state) && promotion > now) at(promotion);
    }
    return next;
  }

  std::int64_t promote_knob_;
  std::vector<ReferenceJob*> queues_[3];
  std::vector<ReferenceJob*> admitted_;
  std::map<std::int64_t, State> states_;
  std::int64_t last_event_ = 0;
  std::int64_t next_check_ = -1;
};

/// Tiresias in rounds of a minute: jobs below the limit first, in order of submission, greedy by count. Pollux: 16
/// hours of GPU time, 30 s a start. Lucid: 18,000 GPU-seconds, 40 s (60 s above 8 GPUs) at the start after a
/// preemption.
struct ReferenceRounds {
  bool pollux = true;

  void operator()(ReferenceSimulator& world) {
    constexpr std::int64_t round = 60;
    world.wake_at((world.now() / round + 1) * round);
    if (world.now() % round != 0) return;
    const std::int64_t limit = pollux ? 16 * 3600 : 18'000;
    auto order = world.list();
    std::sort(order.begin(), order.end(), [&](auto* a, auto* b) {
      return std::pair(a->ran * a->gpus >= limit, a->id) < std::pair(b->ran * b->gpus >= limit, b->id);
    });
    std::int64_t free = world.gpus();
    std::vector<ReferenceJob*> chosen;
    for (ReferenceJob* job : order) {
      if (job->gpus > free) continue;
      free -= job->gpus;
      chosen.push_back(job);
    }
    for (ReferenceJob* job : chosen) {
      if (job->running) continue;
      const std::int64_t preempted = job->gpus > 8 ? 60 : 40;
      job->remaining += pollux ? 30 : job->must_restart ? preempted : 0;
    }
    world.run_only(chosen);
  }
};

}  // namespace gpusched::test
