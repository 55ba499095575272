// SPDX-License-Identifier: Apache-2.0
/// Replay: loads what a Scenario names and runs every policy over it, several at a time if asked. What comes back is
/// data; report.hpp writes it down.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/policy/past_jobs.hpp"
#include "gpusched/watch/interval_log.hpp"
#include "gpusched/watch/metrics.hpp"
#include "src/conditions/run_conditions.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/sim/decision_times.hpp"
#include "src/sim/gpu_log.hpp"
#include "src/sim/power_report.hpp"
#include "src/sim/recorded.hpp"
#include "src/sim/running_work.hpp"
#include "src/sim/scenario.hpp"
#include "src/sim/wait_figures.hpp"
#include "src/sim/wait_log.hpp"
#include "src/world/run_input.hpp"
#include "traces/core/trace.hpp"

namespace gpusched {

/// The first jobs of a trace, which are not run.
struct History {
  JobTable jobs;                          ///< all of them
  std::vector<std::uint32_t> ended = {};  ///< those that had ended before the first that is run, in order of their ends

  /// What predictions know. Borrows this.
  [[nodiscard]] PastJobs past() const { return {.trace = &jobs, .jobs = ended}; }
};

/// The input of every run of a scenario: read once, shared by all policies.
struct ReplayInput {
  Trace trace;  ///< the jobs that are run
  History history = {};
  Cluster cluster;  ///< pooled() already when the placement is "count"
  EngineOptions options;
  RunConditions conditions;  ///< of the scenario
  MeasureWindow window;
  std::vector<PolicySpec> specs;               ///< each with its backfilling
  std::vector<std::string> files = {};         ///< read besides the trace: cluster, device profiles, trained policies
  std::optional<RecordedWaits> recorded = {};  ///< of the trace's own log, where it has them and the scenario asks
  SlurmSite slurm = {};                        ///< what the files of its Slurm cluster say
  std::uint32_t jobs_outside_vcs = 0;  ///< whose virtual cluster the machines do not have: they may run anywhere

  /// The trace's table has jobs, besides what is in front of them.
  [[nodiscard]] bool has_jobs() const { return trace.jobs.size() > trace.jobs.in_front(); }
  /// Every job is measured.
  [[nodiscard]] bool measures_all() const {
    return window.first == trace.jobs.in_front() && window.end(trace.jobs.size()) == trace.jobs.size();
  }
};

/// Reads trace and cluster and resolves every name. Errors are the user's: bad input or usage.
Result<ReplayInput> load_replay(const Scenario& scenario, const PolicyRegistry& registry);

/// What load_replay() reads of a scenario.
InputRequest input_request(const Scenario& scenario);

/// load_replay() from a trace and a cluster that were read already: those of input_request(), or a part of them.
Result<ReplayInput> prepare_replay(const Scenario& scenario, const PolicyRegistry& registry, RunInput loaded);

/// Makes `input` that of another scenario, which differs only in policies, backfilling, seed, costs of preemption,
/// failures and the measured jobs. `input.recorded` and `input.files` stay what they were. Errors as load_replay();
/// then `input` is not to be used.
Result<void> change_runs(ReplayInput& input, const Scenario& scenario, const PolicyRegistry& registry);

/// What one policy did.
struct PolicyRun {
  std::string policy;  ///< as written
  bool clairvoyant = false;
  std::string run_times = {};       ///< what it knew of them, as known_run_times() says
  std::uint32_t unfinished = 0;     ///< jobs that never end
  std::string why_unfinished = {};  ///< "left 2 jobs waiting for ever", "was interrupted"; if so, what follows is not
                                    ///< filled in
  Metrics metrics;
  Saturation saturation;
  std::uint64_t reconfigurations = 0;         ///< of MIG cards (Engine::reconfigurations)
  double reconfiguration_gpu_hours = 0;       ///< of them (Engine::reconfiguration_gpu_time)
  std::optional<PowerAccount> power = {};     ///< with --power
  std::vector<ServiceFigures> services = {};  ///< with --services
  std::vector<StudyFigures> studies = {};     ///< with --trials
  double sim_seconds = 0;                     ///< wall time of the simulation alone
  double jobs_per_s = 0;                      ///< all jobs of the trace / sim_seconds
  std::uint64_t history_hash = 0;
  std::vector<std::vector<SplitRow>> splits;  ///< by SplitBy; filled when asked for
  std::vector<Interval> intervals;            ///< filled when asked for
  /// By job, the run time that the policy expected when the job was submitted; filled when asked for, empty where the
  /// policy looks at none (known_estimator()).
  std::vector<Time> estimates = {};
  struct LogFile {
    std::string name, text;
  };
  std::string folder = {};  ///< of its files, below --out: the policy's text without what file systems and shells
                            ///< dislike, numbered when two are alike; filled when files are asked for
  std::optional<GpuLog> gpu_log = {};                ///< when asked for
  std::optional<ClusterLevelLog> timeline = {};      ///< when asked for
  std::optional<DecisionTimes> decision_times = {};  ///< when asked for
  std::optional<WaitFigures> waits = {};             ///< when asked for
  std::vector<WaitSpan> explained = {};              ///< of the job that was asked for
  LogFile log_file;                ///< what the policy itself has to tell (PolicyLog), if it has; when asked for
  std::unique_ptr<Engine> engine;  ///< the finished engine, kept when asked for
};

/// How far all runs have come, readable from another thread, and a wish to stop.
struct ReplayProgress {
  std::atomic<std::uint64_t> finished_jobs = 0;
  RunningWork running;                            ///< policies, by their number in the list
  const std::atomic<bool>* stop = nullptr;        ///< once true, policies that have not finished end without a result
  std::atomic<bool> failed = false;               ///< the same, of one's own accord: a result cannot be written, say
  std::function<void(PolicyRun&)> finished = {};  ///< called with each result at once, on the thread that made it
};

/// What to keep besides metrics.
struct ReplayDetail {
  bool splits = false;          ///< every split
  bool job_files = false;       ///< engine, intervals, history hash and the policy's own log, for the files of a policy
  bool gpu_log = false;         ///< with job_files: for trace_events.json too
  bool timeline = false;        ///< with job_files: for timeline.csv too, and power.csv
  bool decision_times = false;  ///< how long decisions took
  bool waits = false;           ///< PolicyRun::waits
  JobId explained = no_job;     ///< with job_files: PolicyRun::explained of this job
};

/// Runs every policy of `input`, up to `threads` at a time (0: one for each processor); the results do not depend on
/// that number and come in the order of the list. Errors: a policy refuses its parameters or this input.
Result<std::vector<PolicyRun>> run_replay(const ReplayInput& input, const PolicyRegistry& registry,
                                          std::uint64_t threads, ReplayDetail detail, ReplayProgress& progress);

}  // namespace gpusched
