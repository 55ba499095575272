// SPDX-License-Identifier: Apache-2.0
/// Rules of the reference simulator that go by attained GPU service, looked at every second. Limits must be multiples
/// of every job's GPUs, so that service reaches them on a whole second.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/differential/reference_simulator.hpp"

namespace gpusched::test {

/// LAS and Tiresias: greedy by level of attained service; within a level by when the job entered it, or by first start
/// with those that never ran last; then by id. A job that waits `promote_knob` times what it ran since it last was in
/// level 0 (or since it came) returns there.
struct ReferenceLevels {
  std::int64_t quantum = 0;  ///< LAS: level k begins at k quanta. 0: by the limits
  std::vector<std::int64_t> limits = {};
  bool by_first_start = false;
  std::int64_t promote_knob = 0;
  bool gittins = false;  ///< levels in falling order of the index of the service at which they begin
  std::vector<std::int64_t> samples = {};
};

class ReferenceService {
 public:
  explicit ReferenceService(ReferenceLevels how) : how_(std::move(how)) {}

  void operator()(ReferenceSimulator& world) {
    for (const ReferenceJob* job : world.ended()) {
      if (job->end >= 0) how_.samples.push_back(job->ran * job->gpus);
    }
    if (how_.gittins && how_.samples.size() >= next_ranking_) rank_levels();
    for (ReferenceJob* job : world.list()) update(*job, world.now());
    auto order = world.list();
    std::sort(order.begin(), order.end(), [&](auto* a, auto* b) { return place(*a) < place(*b); });
    std::int64_t free = world.gpus();
    std::vector<ReferenceJob*> chosen;
    for (ReferenceJob* job : order) {
      if (job->gpus > free) continue;
      free -= job->gpus;
      chosen.push_back(job);
    }
    world.run_only(chosen);
    for (const ReferenceJob* job : world.list()) {
      std::int64_t& since = states_[job->id].waits_since;
      since = job->running ? -1 : since < 0 ? world.now() : since;
    }
    world.wake_at(world.now() + 1);
  }

 private:
  struct State {
    bool known = false;
    std::size_t level = 0;
    std::int64_t entered = 0;
    std::int64_t ran_before = 0;  // it was last sent back to level 0
    std::int64_t waits_since = -1;
  };

  [[nodiscard]] std::size_t level_of(std::int64_t service) const {
    if (how_.quantum > 0) return static_cast<std::size_t>(service / how_.quantum);
    return static_cast<std::size_t>(
        std::count_if(how_.limits.begin(), how_.limits.end(), [&](std::int64_t limit) { return service >= limit; }));
  }

  void update(const ReferenceJob& job, std::int64_t now) {
    State& state = states_[job.id];
    if (!state.known) state = {.known = true, .entered = now};
    const std::size_t level = level_of((job.ran - state.ran_before) * job.gpus);
    if (level != state.level) state.entered = now;
    state.level = level;
    if (!job.running && state.waits_since < 0) state.waits_since = now;
    const std::int64_t ran = job.ran - state.ran_before;
    if (how_.promote_knob > 0 && !job.running && level > 0 && now - state.waits_since >= how_.promote_knob * ran) {
      state = {.known = true, .entered = now, .ran_before = job.ran, .waits_since = state.waits_since};
    }
  }

  [[nodiscard]] std::tuple<std::size_t, std::int64_t, std::int64_t> place(const ReferenceJob& job) {
    const State& state = states_[job.id];
    const std::size_t rank = how_.gittins && !ranks_.empty() ? ranks_[state.level] : state.level;
    const std::int64_t never = std::numeric_limits<std::int64_t>::max();
    return {rank, how_.by_first_start ? (job.start < 0 ? never : job.start) : state.entered, job.id};
  }

  // Ranked when the first sample is there, and then whenever there are half as many more.
  void rank_levels() {
    next_ranking_ = how_.samples.size() + how_.samples.size() / 2 + 1;
    ranks_.assign(how_.limits.size() + 1, 0);
    for (std::size_t level = 0; level < ranks_.size(); ++level) {
      for (std::size_t other = 0; other < ranks_.size(); ++other) {
        const bool first = better(begin(other), begin(level)) || (!better(begin(level), begin(other)) && other < level);
        if (other != level && first) ++ranks_[level];
      }
    }
  }
  [[nodiscard]] std::int64_t begin(std::size_t level) const { return level == 0 ? 0 : how_.limits[level - 1]; }

  [[nodiscard]] bool better(std::int64_t attained, std::int64_t than) const {
    const auto [up_a, down_a] = index(attained);
    const auto [up_b, down_b] = index(than);
    return up_a * down_b > up_b * down_a;
  }

  // The Gittins index as a fraction: of all further services d, the greatest of P(done within d) / E(min(rest, d)).
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> index(std::int64_t attained) const {
    std::pair<std::int64_t, std::int64_t> best{0, 1};
    for (const std::int64_t sample : how_.samples) {
      const std::int64_t further = sample - attained;
      std::int64_t done = 0, expected = 0;
      for (const std::int64_t other : how_.samples) {
        if (other <= attained) continue;
        done += other - attained <= further ? 1 : 0;
        expected += std::min(other - attained, further);
      }
      if (further > 0 && done * best.second > best.first * expected) best = {done, expected};
    }
    return best;
  }

  ReferenceLevels how_;
  std::map<std::int64_t, State> states_;
  std::vector<std::size_t> ranks_;
  std::size_t next_ranking_ = 1;
};

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

  void operator()(ReferenceSimulator& world) const {
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
