// SPDX-License-Identifier: Apache-2.0
/// SavedStates: what starting and stopping runs costs: loading, checkpoints, and rolling back to the last of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/engine/run_account.hpp"

namespace gpusched::detail {

/// The part of the Kernel that knows PreemptionCost. Without costs all that a run did is kept, and nothing is loaded.
class SavedStates : public RunAccount {
 public:
  /// A checkpoint that moved is written: a failure no longer loses what was done before it.
  void end_save(JobId job) {
    SavedState& saved = state.saved[index(job)];
    saved.kept_left = std::min(state[job].remaining, saved.after_wait);  // a move may have added a wait
    saved.save_at = std::max(saved.kept_left - saved.interval, Time{});
    JobAccount& account = state.accounts[index(job)];
    account.useful_now += std::exchange(account.at_risk, {}).gpu;
    account.at_risk_before = 0;
  }

  /// What a running job's rate depends on may have changed.
  void adapt_rate(JobId job) {
    const RatePpm rate = rate_of(job);
    const bool has_costs = !state.saved.empty();
    // One that stands still may be told of other nodes, at which it will work at another rate.
    const bool is_alike = rate > 0 || !has_costs || working_rate(job) == state.saved[index(job)].rate;
    if (rate == state[job].rate && is_alike) return;
    settle_now(job);
    if (has_costs) adapt_costs(job);
    replan(job, {}, rate);
  }

  /// The run works at another rate from now on, at which its checkpoints and what is left of its load take as long as
  /// before: another part of its work. Counts checkpoints that were written as if they had always been of that part.
  /// Preconditions: it is settled, and costs are counted.
  void adapt_costs(JobId job) {
    SavedState& saved = state.saved[index(job)];
    const RatePpm now = working_rate(job), before = std::exchange(saved.rate, now);
    if (now == before) return;
    const auto as_long = [&now, &before](Time work) {
      return EngineState::work_done(now, EngineState::time_needed(before, work));
    };
    JobState& run = state[job];
    const bool waited = saved.after_wait != Time::max();
    const Time unserved = waited ? std::max(run.remaining - saved.after_wait, Time{}) : Time{};
    const Time done = saved.passed - (saved.loading - saved.loading_left);
    const Time load = as_long(saved.loading_left) - saved.loading_left;
    saved.loading += load;
    saved.loading_left += load;
    Time change = load;
    if (saved.saving > Time{}) {
      const Time whole = EngineState::work_done(now, state.options.preemption.periodic_checkpoint) - saved.saving;
      const auto of_all = [&whole](std::int64_t count) { return Time{mul_div(whole.us, count, 1)}; };
      const std::int64_t cycle = (saved.interval + saved.saving).us;
      const std::int64_t written = std::min<std::int64_t>(done.us / cycle, saved.saves);
      const Time part{written < saved.saves ? std::max<std::int64_t>(done.us % cycle - saved.interval.us, 0) : 0};
      saved.saving += whole;
      saved.passed += of_all(written);
      change += of_all(saved.saves - written);
      if (part > Time{}) {  // of one that is being written, and is not written before its last moment
        const Time part_now = saved.saving - std::max(as_long(saved.saving - whole - part), Time{1});
        saved.passed += part_now - part;
        change -= part_now - part;
      }
    }
    run.remaining = std::max(run.remaining + change, Time{});
    if (waited) saved.after_wait = unserved > Time{} ? run.remaining - as_long(unserved) : saved.after_wait + change;
  }

 protected:
  /// Adds what a start costs to the work left. `waits`: until the nodes of the run are ready, transfers left out.
  void begin_costs(JobId job, Time waits) {
    if (!state.saved.empty()) begin_saved(job, waits);
  }

  /// Ends a run before its attempt is done: what is left is what the run began with, less what is kept of it. A load
  /// that is interrupted is begun anew by the next run. `saves`: all that was done is kept, else what the last
  /// checkpoint has.
  void roll_back(JobId job, bool saves) {
    const Time passed = settle_run(job);
    JobState& run = state[job];
    ++run.generation;
    if (state.saved.empty()) {
      run.remaining -= passed;
      return;
    }
    const SavedState& saved = state.saved[index(job)];
    const Time done = passed - (saved.loading - saved.loading_left);
    Time kept = saves ? done : Time{};
    if (saved.moves) {
      if (!saves) kept = std::max(run.remaining - saved.loading - saved.kept_left, Time{});
    } else if (saved.interval.us > 0) {
      const std::int64_t cycle = saved.interval.us + saved.saving.us;
      kept = Time{done.us / cycle * saved.interval.us};
      if (saves) kept.us += std::min(done.us % cycle, saved.interval.us);
    }
    run.remaining = run.remaining - saved.loading - saved.all_saving(saved.saves) - kept;
  }

  /// True when what a run does is kept when it is killed or preempted. Without periodic checkpoints, whatever was done
  /// is saved at a preemption. A replica has served, whatever ends it.
  [[nodiscard]] bool is_kept_at_end(JobId job, bool is_killed) const {
    if (state.is_replica(job)) return true;
    return !is_killed && (state.saved.empty() || state.saved[index(job)].interval.us == 0 ||
                          state.options.preemption.rule != CheckpointRule::fixed);
  }

  /// A moved job waits for its new nodes, which counts as loading, and no longer for those that it left. `waits_on`: it
  /// waits for what it waited for, too. Precondition: costs are counted.
  void wait_again(JobId job, Time waits, bool waits_on) {
    SavedState& saved = state.saved[index(job)];
    if (waits.us == 0 && saved.after_wait == Time::max()) return;
    settle_now(job);
    JobState& run = state[job];
    Time unserved{};
    if (saved.after_wait != Time::max()) {
      unserved = std::max(run.remaining - saved.after_wait, Time{});
      saved.after_wait = Time::max();
      saved.loading -= unserved;
      saved.loading_left -= unserved;
      run.remaining -= unserved;
    }
    const Time loading = std::max(EngineState::work_done(working_rate(job), waits), waits_on ? unserved : Time{});
    if (loading.us > 0) saved.after_wait = run.remaining;
    saved.loading = later_by(saved.loading, loading);
    saved.loading_left = later_by(saved.loading_left, loading);
    replan(job, loading, run.rate);
  }

  /// So much work of the job's present attempt is left, as somebody believes. What is still to be loaded, and the
  /// checkpoints that the run will write, come besides. Precondition: a job whose clock runs is settled.
  void believe_left(JobId job, Time left) {
    JobState& run = state[job];
    if (!run.clock_runs()) {  // one that was given another size at this instant may run on
      run.remaining = left;
      return;
    }
    Time target = left;
    if (!state.saved.empty()) {
      SavedState& saved = state.saved[index(job)];
      target += saved.loading_left;
      if (saved.saving.us > 0 && saved.interval.us > 0) {
        const Time done = saved.passed - (saved.loading - saved.loading_left);
        const std::int64_t written = done.us / (saved.interval.us + saved.saving.us);
        const std::int64_t coming = left.us > 0 ? (left.us - 1) / saved.interval.us : 0;
        saved.saves = static_cast<std::uint32_t>(std::min<std::int64_t>(written + coming, no_index - 1));
        target += saved.all_saving(saved.saves - std::min<std::int64_t>(written, saved.saves));
      }
      const Time change = target - run.remaining;
      if (saved.after_wait != Time::max()) saved.after_wait = std::max(saved.after_wait + change, Time{});
      if (saved.moves && saved.interval.us > 0) {
        saved.kept_left = std::max(saved.kept_left + change, target);
        saved.save_at = std::max(std::min(saved.kept_left - saved.interval, target), Time{});
      }
    }
    replan(job, target - run.remaining, run.rate);
  }

  /// More or less work, as a policy says: overhead.
  GPUSCHED_RARE void adjust(JobId job, Time change) {
    keep_accounts();
    settle_now(job);
    change = std::max(change, Time{} - state[job].remaining);
    if (!state.saved.empty()) {
      SavedState& saved = state.saved[index(job)];
      if (saved.after_wait != Time::max()) saved.after_wait += change;
      if (saved.save_at > Time{}) saved.save_at = std::max(saved.save_at + change, Time{});
      saved.kept_left = std::max(saved.kept_left + change, Time{});
    }
    add_overhead(state.accounts[index(job)], change);
    replan(job, change, state[job].rate);
  }

  /// The GPUs that the job holds by node, each once.
  std::span<const NodePart> parts_of(JobId job) {
    parts_.clear();
    const Shape& shape = state.held_shape(job);
    for (std::uint32_t at = state[job].grants; at != no_index; at = state.cluster.grant(at).next) {
      const Grant& grant = state.cluster.grant(at);
      const MilliGpu milli = grant.tasks * shape.gpu_milli_per_task;
      const auto known = std::find_if(parts_.begin(), parts_.end(),
                                      [&grant](const NodePart& part) { return part.node == grant.node; });
      if (known == parts_.end()) {
        parts_.push_back({.node = grant.node, .milli = milli});
      } else {
        known->milli += milli;
      }
    }
    return parts_;
  }

 private:
  GPUSCHED_RARE void begin_saved(JobId job, Time waits) {
    JobState& run = state[job];
    SavedState& saved = state.saved[index(job)];
    const RatePpm rate = working_rate(job);
    saved = {.rate = rate, .kills = saved.kills, .was_killed = saved.was_killed};
    const bool has_state = !state.is_replica(job);
    if (has_state) plan_checkpoints(job, rate);
    if (!run.must_restart && waits.us == 0) return;
    const PreemptionCost& cost = state.options.preemption;
    Time load = waits;
    if (run.must_restart && has_state) load += saved.was_killed ? cost.restart : cost.checkpoint + cost.restart;
    saved.loading = saved.loading_left = EngineState::work_done(rate, load);
    run.remaining = later_by(run.remaining, saved.loading);
    if (waits.us > 0) saved.after_wait = run.remaining - EngineState::work_done(rate, waits);
    run.must_restart = saved.was_killed = false;
  }

  void plan_checkpoints(JobId job, RatePpm rate) {
    JobState& run = state[job];
    SavedState& saved = state.saved[index(job)];
    const PreemptionCost& cost = state.options.preemption;
    saved.interval = interval_of(job, rate);
    saved.moves = state.effects.get<Stages>().moves_checkpoints();
    if (saved.moves) {
      saved.kept_left = run.remaining;
      if (saved.interval.us > 0) saved.save_at = std::max(run.remaining - saved.interval, Time{});
    } else if (saved.interval.us > 0 && cost.periodic_checkpoint.us > 0 && run.remaining.us > 0) {
      saved.saving = EngineState::work_done(rate, cost.periodic_checkpoint);
      saved.saves =
          static_cast<std::uint32_t>(std::min<std::int64_t>((run.remaining.us - 1) / saved.interval.us, no_index - 1));
      run.remaining = later_by(run.remaining, saved.all_saving(saved.saves));
    }
  }

  // What is taken back was perhaps done already, and then was work; more than that is taken off what is added later.
  static void add_overhead(JobAccount& account, Time change) {
    account.extra_left += change;
    if (account.extra_left >= Time{}) return;
    const HeldTime booked = account.overhead_now;
    const Time done = std::min(booked.wall, Time{} - account.extra_left);
    if (done.us == 0) return;
    account.extra_left += done;
    const WideInt gpu = booked.gpu * done.us / booked.wall.us;
    account.overhead_now = {booked.wall - done, booked.gpu - gpu};
    account.at_risk += {done, gpu};
  }

  // Work between the checkpoints of a run that begins, whose rate is `rate`.
  [[nodiscard]] Time interval_of(JobId job, RatePpm rate) {
    const PreemptionCost& cost = state.options.preemption;
    if (cost.rule == CheckpointRule::fixed) return cost.checkpoint_interval;
    const Outages& outages = state.effects.get<Outages>();
    double rate_per_s = 0;
    if (outages.active()) {
      std::vector<NodeId> nodes;
      for (const NodePart& part : parts_of(job)) nodes.push_back(part.node);
      rate_per_s = outages.rate_per_s(nodes);
    }
    if (rate_per_s == 0) return {};
    const Stages& stages = state.effects.get<Stages>();
    const double write_s =
        stages.moves_checkpoints() ? stages.checkpoint_s(parts_of(job)) : to_seconds(cost.periodic_checkpoint);
    if (write_s == 0) return {};  // there is nothing to write
    const double mean_s = 1 / rate_per_s;
    double interval_s = std::sqrt(2 * write_s * mean_s);
    if (cost.rule == CheckpointRule::daly) {
      const double part = write_s / (2 * mean_s);
      interval_s = part < 1 ? interval_s * (1 + std::sqrt(part) / 3 + part / 9) - write_s : mean_s;
    }
    const Time interval = from_seconds(std::min(interval_s, to_seconds(end_of_time)));
    return std::max(EngineState::work_done(rate, interval), shortest_interval);
  }

  // However often nodes fail: shorter intervals are no use of the formulas, and would take an event each for ever.
  static constexpr Time shortest_interval = whole_seconds(1);

  std::vector<NodePart> parts_;  // of parts_of()
};

}  // namespace gpusched::detail
