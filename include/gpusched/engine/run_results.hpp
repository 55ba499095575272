// SPDX-License-Identifier: Apache-2.0
/// RunResults: what an Engine tells of its jobs, while it runs and afterwards.
#pragma once

#include <cstdint>

#include "gpusched/engine/kernel.hpp"
#include "gpusched/engine/view.hpp"

namespace gpusched {

/// The part of Engine that is read when a job is done; before that, Time::max() or what was so far.
class RunResults {
 public:
  /// The table that the engine runs.
  [[nodiscard]] const JobTable& jobs() const { return *state().jobs; }
  /// The state as of now; valid until the engine moves.
  [[nodiscard]] OracleView view() const { return OracleView(state()); }
  /// True when every job that is ever submitted has finished.
  [[nodiscard]] bool all_finished() const { return kernel_.all_finished(); }

  /// Instant of submission; of a job that waited for the end of others, the last of these. Waiting counts from here.
  [[nodiscard]] Time submit(JobId job) const { return state().submit(job); }
  /// Instant of the first start.
  [[nodiscard]] Time first_start(JobId job) const { return view().first_start(job); }
  /// Instant at which the job finished.
  [[nodiscard]] Time end(JobId job) const { return state().states.seen(index(job)).end; }
  /// How often the job was preempted.
  [[nodiscard]] std::uint32_t preemptions(JobId job) const { return view().preemptions(job); }
  /// How often a node that went down stopped the job.
  [[nodiscard]] std::uint32_t kills(JobId job) const { return view().kills(job); }

  // ---- where time went ----
  /// Wall time running, overhead and lost work included.
  [[nodiscard]] Time ran(JobId job) const { return view().ran(job); }
  /// The part of ran() that advanced the job, at whatever rate. Precondition: its runs are over.
  [[nodiscard]] Time useful_time(JobId job) const { return ran(job) - overhead(job) - lost(job); }
  /// The part of ran() in which the job started, loaded and saved its state, or did what its policy added, of runs that
  /// are over.
  [[nodiscard]] Time overhead(JobId job) const {
    return state().accounts.empty() ? Time{} : state().accounts[index(job)].overhead;
  }
  /// The part of ran() that no checkpoint kept and that was done again, or in which it stood still, of runs that are
  /// over.
  [[nodiscard]] Time lost(JobId job) const {
    return state().accounts.empty() ? Time{} : state().accounts[index(job)].lost;
  }
  /// Where the GPU time that the job held went so far. What is at risk in a present run counts as useful.
  [[nodiscard]] GpuTime gpu_time(JobId job) const { return kernel_.gpu_time(job); }
  /// True when stopping or starting a job costs something, or nodes can fail.
  [[nodiscard]] bool counts_costs() const { return !state().saved.empty(); }
  /// True when some time of jobs may not be useful: gpu_time() tells.
  [[nodiscard]] bool keeps_accounts() const { return !state().accounts.empty(); }
  /// Where the GPU time of all jobs went within the span of RunInputs::measured. Work that was lost counts as far as it
  /// was done in the span. Preconditions: keeps_accounts(), not all jobs are measured, those that are have ended.
  [[nodiscard]] const GpuTime& measured_gpu_time() const {
    return state().effects.get<detail::AccountWindow>().gpu_time();
  }

  /// True when something may happen besides jobs: failures, power, stages...
  [[nodiscard]] bool has_effects() const { return state().effects.any(); }

  // ---- services ----
  /// True when some rows of the table are replicas.
  [[nodiscard]] bool has_services() const { return state().effects.get<detail::Services>().active(); }
  /// The services, their requests and starts. Precondition: has_services().
  [[nodiscard]] const detail::Services& services() const { return state().effects.get<detail::Services>(); }

  // ---- trials ----
  /// True when some rows of the table are tasks of studies.
  [[nodiscard]] bool has_studies() const { return state().effects.get<detail::Trials>().active(); }
  /// The studies and what they found. Precondition: has_studies().
  [[nodiscard]] const detail::Trials& studies() const { return state().effects.get<detail::Trials>(); }

  // ---- energy, carbon, money ----
  /// True when the run counts them.
  [[nodiscard]] bool knows_power() const { return state().power().active(); }
  /// What the job came to so far, as of the last change of its draw; all, when the run is over.
  [[nodiscard]] const Bill& bill(JobId job) const { return state().power().bill(job); }
  /// The bills of the measured span, or of the whole run, and its caps. Preconditions: knows_power(), the span is over.
  [[nodiscard]] const detail::Power& power() const { return state().power(); }

  // ---- jobs that change, elastic jobs, cold starts, MIG ----
  /// True when users change jobs.
  [[nodiscard]] bool has_changes() const { return state().changes().active(); }
  /// True when its user or a decision cancelled the job before it ended; end() is that instant, and first_start() may
  /// be Time::max().
  [[nodiscard]] bool is_cancelled(JobId job) const { return state()[job].is_cancelled(); }
  /// True when a decision did it.
  [[nodiscard]] bool is_cancelled_by_policy(JobId job) const {
    return state()[job].cancelled_by == detail::Canceller::policy;
  }
  /// True when users cancel the job at some time, or a limit refused it, or a decision cancelled it. Whether it ends
  /// before its user cancels it, its policy decides: averages over jobs leave it out, so that they are of the same jobs
  /// under all policies that cancel none themselves.
  [[nodiscard]] bool may_be_cancelled(JobId job) const {
    return state().changes().cancels(job) || is_cancelled(job) || is_refused(job);
  }
  /// True when limits hold (Cluster::limits).
  [[nodiscard]] bool has_limits() const { return state().limits().active(); }
  /// True when the job's submission exceeded a limit; end() is that instant, and it never ran.
  [[nodiscard]] bool is_refused(JobId job) const { return refused_by(job) != no_index; }
  /// The limit that refused it: the number of its rule in Cluster::limits; no_index: none did.
  [[nodiscard]] std::uint32_t refused_by(JobId job) const { return state().limits().refused_by(job); }
  /// True when jobs are ended at the run times that they asked for.
  [[nodiscard]] bool has_time_limits() const { return state().effects.get<detail::TimeLimits>().active(); }
  /// True when the job was ended so.
  [[nodiscard]] bool is_ended_at_limit(JobId job) const { return state().effects.get<detail::TimeLimits>().ended(job); }
  /// A host gives a job up at `time`; no effect if it has ended by then. Preconditions: `time` is not before now and
  /// after the job's submission; the last decision was applied.
  void cancel_at(JobId job, Time time) {
    GPUSCHED_ASSERT(!(time < state().now), "a job is cancelled in the past");
    kernel_.state.effects.get<detail::Changes>().add({.time = time, .job = job}, jobs());
    kernel_.state.effects.refresh();
  }
  /// True when some job may run at another size than it asks for.
  [[nodiscard]] bool has_elastic_jobs() const { return state().sizes().active(); }
  /// True when runs have stages.
  [[nodiscard]] bool has_stages() const { return state().effects.get<detail::Stages>().active(); }
  /// What the job's starts found on their nodes. Nothing where runs have no stages.
  [[nodiscard]] StartCounts starts(JobId job) const {
    return has_stages() ? state().effects.get<detail::Stages>().counts(job) : StartCounts{};
  }
  /// How often the layout of a MIG card was changed for a job so far.
  [[nodiscard]] std::uint64_t reconfigurations() const { return state().effects.get<detail::MigLayouts>().changes(); }
  /// GPU time of these changes, in which the slices (of compute; a GPU that leaves MIG mode: the whole) serve nobody.
  /// Counted in full when a change begins. A job's ran() contains its own.
  [[nodiscard]] Time reconfiguration_gpu_time() const { return state().effects.get<detail::MigLayouts>().gpu_time(); }

 protected:
  /// At the beginning of a run; what it is given must outlive it.
  RunResults(const JobTable& jobs, const Cluster& cluster, const EngineOptions& options, const RunInputs& inputs)
      : kernel_(jobs, cluster, options, inputs) {}
  /// From a state, which is copied.
  explicit RunResults(const detail::EngineState& from) : kernel_(from) {}
  /// Everything that the run changes.
  [[nodiscard]] const detail::EngineState& state() const { return kernel_.state; }

  detail::Kernel kernel_;  ///< what Engine moves
};

}  // namespace gpusched
