// SPDX-License-Identifier: Apache-2.0
/// The evaluation protocol of RLScheduler (SC'20), and a small simulator with that paper's stepping.
///
/// It handles one event a step, arrivals before completions, decides between events of the same instant, and commits
/// to a chosen job until that job fits. Agents (`rl:DIR`, `agenda`) run on the engine instead, which steps alike with
/// EngineOptions::one_event_a_step; with mode=select_blocking the figures are the same. Processors are counted, as one
/// pool.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "src/policies/seam/priority_order.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// First jobs of the ten windows (0-based) and their length, as published.
inline constexpr std::array<std::uint32_t, 10> sc20_window_starts{1981, 2756, 4299, 8850, 3316,
                                                                  2714, 5228, 7762, 4022, 7085};
inline constexpr std::uint32_t sc20_window_jobs = 1024;

/// A job as the protocol reads it.
struct Sc20Job {
  std::int64_t id = 0;  ///< job number in the log
  Time submit{};
  Time requested{};
  Time run{};  ///< for the protocol's own clock; a chooser has no business with it
  std::int64_t processors = 0;
  std::int64_t nodes = 0;  ///< what it takes of the machine: whole nodes
};

/// A log and the machine that it comes from.
struct Sc20Log {
  std::vector<Sc20Job> jobs;  ///< by id
  std::int64_t processors = 0;
  std::int64_t nodes = 0;  ///< as many as processors where the header does not give both numbers
};

/// Most jobs of a log that the protocol looks at.
inline constexpr std::size_t sc20_log_jobs = 10'000;

/// Reads a log in the Standard Workload Format by the protocol's own rules, quirks included: processors are the larger
/// of used and requested; an unknown request is the run time as it stands; then a negative run time becomes 10 s and a
/// job of 0 s is left out. Errors carry file, line and field.
Result<Sc20Log> read_sc20_log(const std::string& path);

/// The instant of a choice.
struct Sc20Moment {
  Time now{};
  std::int64_t free_nodes = 0;
  std::int64_t nodes = 0;
};

/// Arranges the waiting jobs (never empty) so that the chosen one is in front. The arrangement of the others stays as
/// it is left, and arrivals go to the back.
using Sc20Chooser = std::function<void(std::vector<Sc20Job>&, const Sc20Moment&)>;

/// Chooses the smallest score, scores being computed at every choice by a stable sort of the queue.
Sc20Chooser choose_by_score(std::function<double(const JobFacts&)> score);

/// The chooser `policy` of the registry, which must be an order of starting. Its estimator is not used: the protocol's
/// run times are those requested.
Result<Sc20Chooser> make_sc20_chooser(const PolicyRegistry& registry, const PolicySpec& policy);

/// Figures of one window, or means over several.
struct Sc20Result {
  double avg_bounded_slowdown = 0;  ///< mean of max(1, (wait + run) / max(run, 10 s))
  double utilization = 0;  ///< work of all jobs / (processors x time from the first submission to the last START)
};

/// Runs the jobs of `window`, alone on the log's machine. With `backfill`, while a chosen job waits, jobs that fit and
/// should end before its reservation start first, in order of submission. Preconditions: not empty, by submission,
/// every job fits.
Sc20Result run_sc20_window(const Sc20Log& log, std::span<const Sc20Job> window, bool backfill,
                           const Sc20Chooser& choose);

/// Each of the ten published windows. Errors: the log is too short for one, or a job does not fit.
Result<std::vector<Sc20Result>> run_sc20_windows(const Sc20Log& log, bool backfill, const Sc20Chooser& choose);
/// Their mean.
Result<Sc20Result> run_sc20_protocol(const Sc20Log& log, bool backfill, const Sc20Chooser& choose);

/// Each of the ten windows under a policy that makes the choices of an Agenda, on the engine. `jobs` are the log's,
/// `cluster` its processors. Errors: the log is too short, the policy cannot be made, leaves jobs waiting for ever, or
/// preempts.
Result<std::vector<Sc20Result>> run_sc20_agent_windows(const PolicySpec& policy, const PolicyRegistry& registry,
                                                       const JobTable& jobs, const Cluster& cluster);
/// Their mean.
Result<Sc20Result> run_sc20_agent(const PolicySpec& policy, const PolicyRegistry& registry, const JobTable& jobs,
                                  const Cluster& cluster);

/// Mean over windows.
Sc20Result mean_of(std::span<const Sc20Result> windows);

}  // namespace gpusched
