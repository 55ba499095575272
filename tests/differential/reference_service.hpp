// SPDX-License-Identifier: Apache-2.0
/// Rules of the reference simulator that go by attained GPU service, looked at every second. Limits must be multiples
/// of every job's GPUs, so that service reaches them on a whole second.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "tests/differential/reference_simulator.hpp"

namespace gpusched::test {

/// LAS and Tiresias: greedy by level of attained service; within a level by when the job entered it, or by first start
/// with those that never ran last, or by Gittins index; then by id. A job that waits `promote_knob` times what it ran
/// since it last was in level 0 (or since it came) returns there.
struct ReferenceLevels {
  std::int64_t quantum = 0;  ///< LAS: level k begins at k quanta. 0: by the limits
  std::vector<std::int64_t> limits = {};
  bool by_first_start = false;
  std::int64_t promote_knob = 0;
  bool gittins = false;  ///< within a level by falling Gittins index, as of the latest event
  std::int64_t look_ahead = 0;
  std::vector<std::int64_t> samples = {};
  bool learns = true;  ///< from jobs that finish
};

class ReferenceService {
 public:
  explicit ReferenceService(ReferenceLevels how) : how_(std::move(how)) {}

  void operator()(ReferenceSimulator& world) {
    for (const ReferenceJob* job : world.ended()) {
      if (job->end >= 0 && how_.learns) how_.samples.push_back(job->ran * job->gpus);
    }
    if (how_.samples.size() >= next_sample_) take_sample();
    event_ = !world.ended().empty() || !world.came().empty();
    for (ReferenceJob* job : world.list()) update(*job, world.now());
    for (const ReferenceJob* job : world.list()) {
      State& state = states_[job->id];
      if (event_ || !job->running) state.index = index((job->ran - state.ran_before) * job->gpus);
    }
    auto order = world.list();
    std::sort(order.begin(), order.end(), [&](auto* a, auto* b) { return before(*a, *b); });
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
  // Numerator and denominator.
  struct Fraction {
    std::int64_t up = 0, down = 1;
  };
  struct State {
    bool known = false;
    std::size_t level = 0;
    std::int64_t entered = 0;
    std::int64_t ran_before = 0;  // it was last sent back to level 0
    std::int64_t waits_since = -1;
    Fraction index = {0, 1};
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
    event_ = event_ || level != state.level;
    state.level = level;
    if (!job.running && state.waits_since < 0) state.waits_since = now;
    const std::int64_t ran = job.ran - state.ran_before;
    if (how_.promote_knob > 0 && !job.running && level > 0 && now - state.waits_since >= how_.promote_knob * ran) {
      state = {.known = true, .entered = now, .ran_before = job.ran, .waits_since = state.waits_since};
      event_ = true;
    }
  }

  bool before(const ReferenceJob& a, const ReferenceJob& b) {
    const State &of_a = states_[a.id], &of_b = states_[b.id];
    if (of_a.level != of_b.level) return of_a.level < of_b.level;
    if (how_.gittins) {
      const std::int64_t up_a = of_a.index.up * of_b.index.down, up_b = of_b.index.up * of_a.index.down;
      return up_a != up_b ? up_a > up_b : a.id < b.id;
    }
    const auto place = [&](const ReferenceJob& job, const State& state) {
      if (!how_.by_first_start) return state.entered;
      return job.start < 0 ? std::numeric_limits<std::int64_t>::max() : job.start;
    };
    return std::pair(place(a, of_a), a.id) < std::pair(place(b, of_b), b.id);
  }

  // Taken when there is a first service, and then whenever there are half as many more.
  void take_sample() {
    next_sample_ = how_.samples.size() + how_.samples.size() / 2 + 1;
    sample_ = how_.samples;
  }

  // P(done within the look-ahead) / E(min(rest, look-ahead)).
  [[nodiscard]] Fraction index(std::int64_t attained) const {
    std::int64_t done = 0, expected = 0;
    for (const std::int64_t service : sample_) {
      if (service <= attained) continue;
      done += service - attained <= how_.look_ahead ? 1 : 0;
      expected += std::min(service - attained, how_.look_ahead);
    }
    return {done, std::max<std::int64_t>(expected, 1)};
  }

  ReferenceLevels how_;
  std::map<std::int64_t, State> states_;
  bool event_ = false;  // of this second: indices count anew
  std::vector<std::int64_t> sample_;
  std::size_t next_sample_ = 1;
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
