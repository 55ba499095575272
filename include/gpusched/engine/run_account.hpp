// SPDX-License-Identifier: Apache-2.0
/// RunAccount: the one home of what a running job does: its rate, the work that passes, when it ends, and the ledger of
/// its time.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/engine/engine_state.hpp"

namespace gpusched::detail {

/// Holds the state of a run. The part of the Kernel below SavedStates.
class RunAccount {
 public:
  EngineState state;  ///< everything that the run changes

  /// The factor product of a running job: 0 while it stands still.
  [[nodiscard]] GPUSCHED_HOT RatePpm rate_of(JobId job) const {
    if (state[job].held) return 0;
    return state.effects.any() && stands_still(job) ? 0 : working_rate(job);
  }

  /// The same when nothing keeps it from working.
  [[nodiscard]] GPUSCHED_HOT RatePpm working_rate(JobId job) const {
    if (!state.effects.any()) return state.runtime == nullptr ? reference_rate : modelled_rate(job);
    return rate_under_effects(job);
  }

  /// Counts the time and the work of a running job up to now.
  void settle_now(JobId job) {
    const Time done = settle(job);
    state[job].remaining -= done;
  }

  /// Gives a running job `change` more work and the rate `rate` from now on. Precondition: it is settled.
  void replan(JobId job, Time change, RatePpm rate) {
    JobState& run = state[job];
    run.remaining += change;
    GPUSCHED_ASSERT(run.remaining.us >= 0, "work left cannot be negative");
    run.rate = rate;
    ++run.generation;
    plan_finish(job);
  }

  /// Plans the end of a run or what comes before: a checkpoint that moves, or a milestone of an effect. The only place
  /// where the end of a run is computed.
  GPUSCHED_HOT void plan_finish(JobId job) {
    const JobState& run = state[job];
    const Time until = state.effects.any() ? std::max(next_save(job), with_saves(job, next_milestone(job))) : Time{};
    const Time work = std::max(run.remaining - until, Time{});
    const Time end = later_by(run.since, EngineState::time_needed(run.rate, work));
    if (end <= end_of_time) state.planned.push(end, EventKind::finish, job, run.generation);
  }

  /// Work left when the job's next checkpoint begins to move; 0: none will.
  [[nodiscard]] Time next_save(JobId job) const {
    return state.saved.empty() ? Time{} : state.saved[index(job)].save_at;
  }

  /// Work left when an effect changes something of the run; 0: none will.
  [[nodiscard]] Time next_milestone(JobId job) const {
    Time next{};
    state.effects.for_each([&next, &job](const auto& effect) {
      if constexpr (requires { effect.next_milestone(job); }) next = std::max(next, effect.next_milestone(job));
    });
    return next;
  }

  /// What is left of a run, checkpoints that take time included, when `left` of its work is left; 0 for 0. A checkpoint
  /// that is due then is not written yet.
  [[nodiscard]] Time with_saves(JobId job, Time left) const {
    if (left == Time{} || state.saved.empty() || state.saved[index(job)].saves == 0) return left;
    const SavedState& saved = state.saved[index(job)];
    const Time begun = state[job].remaining + saved.passed - saved.loading - saved.all_saving(saved.saves);
    const std::int64_t written = std::max<std::int64_t>((begun - left).us - 1, 0) / saved.interval.us;
    return left + saved.all_saving(saved.saves - std::min<std::int64_t>(written, saved.saves));
  }

  // ---- the ledger ----

  /// Where the job's time went so far, the present run included, whose work at risk counts as useful. Where no account
  /// is kept all of it is useful.
  [[nodiscard]] GpuTime gpu_time(JobId job) const {
    const JobState& run = state.states.seen(index(job));
    if (state.accounts.empty()) return {.useful = WideInt{state.ran_now(run).us} * held_milli(job)};
    JobAccount account = state.accounts[index(job)];
    SavedState saved = state.saved.empty() ? SavedState{} : state.saved[index(job)];
    if (run.clock_runs()) book_segment(job, account, saved);
    GpuTime sum = account.booked;
    return sum += of_present_run(account);
  }

  /// Begins a window of the account: what was done before now is not lost in it, whatever becomes of it.
  void mark() {
    state.at_mark = state.booked;
    state.lost_before_mark = 0;
    if (state.accounts.empty()) return;
    for (std::uint32_t at = state.running.first; at != no_index; at = state.states[at].next) {
      const JobId job{at};
      book_until_now(job);
      state.at_mark += of_present_run(state.accounts[at]);
      state.accounts[at].at_risk_before = state.accounts[at].at_risk.gpu;
    }
  }

  /// Where the time of all jobs went since mark(), or since the begin. Precondition: accounts are kept.
  [[nodiscard]] GpuTime since_mark() {
    GpuTime sum = state.booked;
    for (std::uint32_t at = state.running.first; at != no_index; at = state.states[at].next) {
      book_until_now(JobId{at});
      sum += of_present_run(state.accounts[at]);
    }
    sum.useful += state.lost_before_mark - state.at_mark.useful;
    sum.overhead -= state.at_mark.overhead;
    sum.lost -= state.lost_before_mark + state.at_mark.lost;
    return sum;
  }

  /// Keeps accounts from now on, where all time was useful so far: a policy adds work, or holds jobs.
  GPUSCHED_RARE void keep_accounts() {
    if (!state.accounts.empty()) return;
    state.accounts.resize(state.jobs->size());
    for (std::uint32_t i = 0; i < state.arrived; ++i) {
      JobAccount& account = state.accounts[i];
      const JobState& run = state.states.seen(i);
      const HeldTime past{run.ran, WideInt{run.ran.us} * held_milli(JobId{i})};
      if (run.clock_runs()) {
        account.at_risk = past;
      } else {
        account.booked.useful = past.gpu;
        state.booked.useful += past.gpu;
      }
    }
  }

 protected:
  /// Counts the time that a running job ran up to now, and returns the work that passed in it.
  Time settle(JobId job) {
    JobState& run = state[job];
    const Time span = state.now - run.since;
    const Time done = EngineState::work_done(run.rate, span);
    if (!state.accounts.empty()) {
      book_until_now(job);
      JobAccount& account = state.accounts[index(job)];
      account.segment_span = account.segment_work = {};
    }
    run.ran += span;
    run.since = state.now;
    if (!state.saved.empty()) {
      Time& passed = state.saved[index(job)].passed;
      passed = later_by(passed, done);
    }
    return done;
  }

  /// The same for the whole run, which is over: `remaining` is then what the run began with.
  Time settle_run(JobId job) {
    if (state.saved.empty()) return settle(job);
    Time& passed = state.saved[index(job)].passed;
    JobState& run = state[job];
    run.remaining = later_by(run.remaining, passed);
    settle(job);
    return std::exchange(passed, {});
  }

  /// Closes the account of a run that is over and settled. `saves`: what was at risk is kept.
  void close_account(JobId job, bool saves) {
    if (!state.accounts.empty()) close_kept_account(job, saves);
  }

  /// GPUs of the present run, or of the last one.
  [[nodiscard]] MilliGpu held_milli(JobId job) const {
    return state.sizes().active() ? state.sizes()[job].milli : state.jobs->shape(job).gpu_milli();
  }

 private:
  GPUSCHED_RARE void close_kept_account(JobId job, bool saves) {
    JobAccount& account = state.accounts[index(job)];
    if (saves) {
      account.useful_now += account.at_risk.gpu;
    } else {
      account.lost_now += account.at_risk;
      state.lost_before_mark += account.at_risk_before;
    }
    account.at_risk = {};
    account.at_risk_before = 0;
    account.extra_left = {};
    const GpuTime run = of_present_run(account);
    account.booked += run;
    state.booked += run;
    account.overhead += std::exchange(account.overhead_now, {}).wall;
    account.lost += std::exchange(account.lost_now, {}).wall;
    account.useful_now = 0;
    account.ran_before = state[job].ran;
  }

  [[nodiscard]] GPUSCHED_RARE bool stands_still(JobId job) const {
    bool still = false;
    state.effects.for_each([this, &still, &job](const auto& effect) {
      if constexpr (requires { effect.stands_still(state, job); }) still = still || effect.stands_still(state, job);
    });
    return still;
  }

  [[nodiscard]] GPUSCHED_RARE RatePpm rate_under_effects(JobId job) const {
    std::optional<RatePpm> rate;
    state.effects.for_each([this, &rate, &job](const auto& effect) {
      if constexpr (requires { effect.rate(state, job); }) rate = rate ? rate : effect.rate(state, job);
    });
    RatePpm product = rate ? *rate : state.runtime == nullptr ? reference_rate : modelled_rate(job);
    state.effects.for_each([this, &product, &job](const auto& effect) {
      if constexpr (requires { effect.factor(state, job); }) product = scaled_rate(product, effect.factor(state, job));
    });
    return product;
  }

  // A gang runs at the rate of its slowest task. Precondition: there is a runtime model.
  [[nodiscard]] RatePpm modelled_rate(JobId job) const {
    const SpanFactor span = state.span_factor(job);
    const std::span<const RatePpm> speeds = state.speeds(job);
    RatePpm slowest = ~RatePpm{0};
    for (std::uint32_t at = state[job].grants; at != no_index; at = state.cluster.grant(at).next) {
      const Grant& grant = state.cluster.grant(at);
      const std::uint32_t type = state.cluster.node_gpu_type(grant.node);
      RatePpm alone = type < speeds.size() ? speeds[type] : reference_rate;
      if (grant.slice != 0) {
        alone = state.runtime->slice_rate(state.jobs->family(job), type, mig_instance(grant.slice).profile);
      }
      slowest = std::min(slowest, scaled_rate(alone, span.on(type)));
    }
    return slowest;
  }

  // Standing still counts as overhead, not as lost.
  [[nodiscard]] bool waits(JobId job) const {
    bool found = false;
    state.effects.for_each([this, &found, &job](const auto& effect) {
      if constexpr (requires { effect.waits(state, job); }) found = found || effect.waits(state, job);
    });
    return found;
  }

  [[nodiscard]] static GpuTime of_present_run(const JobAccount& account) {
    return {.useful = account.useful_now + account.at_risk.gpu,
            .overhead = account.overhead_now.gpu,
            .lost = account.lost_now.gpu};
  }

  /// Books what passed so far, at the size that the run has.
  GPUSCHED_RARE void book_until_now(JobId job) {
    SavedState none;
    book_segment(job, state.accounts[index(job)], state.saved.empty() ? none : state.saved[index(job)]);
  }

  // Books what passed since the present segment, at one rate, was booked last.
  void book_segment(JobId job, JobAccount& account, SavedState& saved) const {
    const JobState& run = state[job];
    const Time whole_span = state.now - run.since, whole_work = EngineState::work_done(run.rate, whole_span);
    const Time span = whole_span - account.segment_span, work = whole_work - account.segment_work;
    const MilliGpu milli = held_milli(job);
    if (run.rate == 0) {
      (waits(job) ? account.overhead_now : account.lost_now) += {span, WideInt{span.us} * milli};
    } else {
      book_work(account, saved, run.rate, milli, span, work);
    }
    account.segment_span = whole_span;
    account.segment_work = whole_work;
  }

  // `work` passed in `span` on `milli`: first what is loaded and what a policy added, then work and its periodic
  // checkpoints.
  static void book_work(JobAccount& account, SavedState& saved, RatePpm rate, MilliGpu milli, Time span, Time work) {
    const auto held = [milli](Time part) { return HeldTime{part, WideInt{part.us} * milli}; };
    const auto take = [&work, &span, &rate](Time part) {  // the first `part` of the work, which takes so long
      const Time passes = part == work ? span : std::min(span, EngineState::time_needed(rate, part));
      span -= passes;
      work -= part;
      return passes;
    };
    // Of this run before the segment, without loading.
    const Time before = later_by(saved.passed, account.segment_work) - (saved.loading - saved.loading_left);
    for (Time* const left : {&saved.loading_left, &account.extra_left}) {
      const Time part = std::min(work, *left);
      if (part.us <= 0) continue;
      *left -= part;
      account.overhead_now += held(take(part));
    }
    if (saved.interval.us == 0 || saved.moves) {
      account.at_risk += held(span);
      return;
    }
    // A cycle is an interval of work and then a checkpoint.
    const std::int64_t interval = saved.interval.us, cycle = interval + saved.saving.us;
    std::int64_t at = before.us % cycle;
    const auto written = [&interval](std::int64_t place) { return std::max<std::int64_t>(place - interval, 0); };
    if (const std::int64_t cycles = (at + work.us) / cycle; cycles > 0) {
      const Time part{cycles * cycle - at};
      const Time passes = take(part);
      const Time writing{mul_div(passes.us, cycles * saved.saving.us - written(at), part.us)};
      account.useful_now += account.at_risk.gpu + held(passes - writing).gpu;
      account.overhead_now += held(writing);
      account.at_risk = {};
      account.at_risk_before = 0;
      at = 0;
    }
    const Time writing{work.us == 0 ? 0 : mul_div(span.us, written(at + work.us) - written(at), work.us)};
    account.overhead_now += held(writing);
    account.at_risk += held(span - writing);
  }
};

}  // namespace gpusched::detail
