// SPDX-License-Identifier: Apache-2.0
/// One policy on one stretch of a trace, alone on an empty cluster: a window, or the whole log.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/policy/past_jobs.hpp"
#include "gpusched/watch/metrics.hpp"
#include "src/sim/evaluation.hpp"

namespace gpusched {

/// Which jobs run. Nothing arrives after the last of them.
struct TraceStretch {
  std::uint32_t first = 0;    ///< number of the first job in the trace
  std::uint32_t warm_up = 0;  ///< so many jobs, which fill the cluster,
  std::uint32_t jobs = 0;     ///< then so many that are measured
};

/// What each measured job met that nobody cancels, in order of submission.
struct JobLog {
  std::vector<std::uint32_t> job;  ///< its number in the stretch
  std::vector<double> jct_s, wait_s, slowdown;
  std::vector<std::uint32_t> found;  ///< jobs that waited when it was submitted
  std::vector<bool> censored;  ///< it had not ended when the last job was submitted: with more arrivals its values
                               ///< would be no less
};

/// What came of it.
struct StretchRun {
  bool clairvoyant = false;
  std::optional<Metrics> metrics;  ///< nothing where the run did not end
  Saturation saturation = {};
  std::optional<JobLog> jobs = {};  ///< when asked for
  std::uint64_t left_out = 0;       ///< a hash of the measured jobs that no average counts; 0: none
  std::string failure = {};         ///< why there are no metrics: "left 2 jobs waiting for ever"
};

/// StretchRun::left_out where `leaves_out(job)` says which of the jobs from `first` to before `end` they are.
template <class LeavesOut>
std::uint64_t hash_of_left_out(std::uint32_t first, std::uint32_t end, LeavesOut leaves_out) {
  std::uint64_t hash = 0;
  for (std::uint32_t i = first; i < end; ++i) {
    if (leaves_out(JobId{i})) hash = (hash ^ (i - first + 1)) * 0x100000001B3u;  // as in FNV-1a
  }
  return hash;
}

/// How it is run.
struct StretchOptions {
  std::uint64_t seed = 0;                   ///< of the policy's random draws and, where nodes fail, of the failures
  PastJobs past = {};                       ///< what predictions know
  bool keep_jobs = false;                   ///< fills StretchRun::jobs
  const std::atomic<bool>* stop = nullptr;  ///< once true, the run ends as a failure
};

/// The policy as it runs on `jobs`: backfilled by default, and with the parameters of slurm.conf, as `options` say.
PolicySpec contestant_spec(const PolicyRegistry& registry, PolicySpec policy, const EvaluationOptions& options,
                           const JobTable& jobs);

/// Error: a policy that cannot be made.
Result<StretchRun> run_stretch(const JobTable& trace, const Cluster& cluster, const EvaluationOptions& options,
                               const PolicySpec& policy, const PolicyRegistry& registry, const TraceStretch& stretch,
                               const StretchOptions& how);

}  // namespace gpusched
