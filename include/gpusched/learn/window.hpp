// SPDX-License-Identifier: Apache-2.0
/// Windows: stretches of a trace on which agents are trained and compared. The trace is split by time, so that no test
/// window was trained on.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/job_changes.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/learn/job_history.hpp"
#include "gpusched/policy/past_jobs.hpp"

namespace gpusched {

struct EnvWorld;

/// One stretch of a trace. Environments borrow it; it must outlive them.
struct Window {
  JobTable jobs;                    ///< warm-up jobs first, then the scored ones
  std::uint32_t first_scored = 0;   ///< earlier jobs fill the cluster under the heuristic and count in no reward
  Time end = Time::max();           ///< the episode is truncated here; max() = it runs until the cluster is empty
  std::uint32_t start = 0;          ///< position of its first scored job in the trace
  JobHistory history;               ///< of the jobs that the trace says had ended when the window begins
  JobChanges changes = {};          ///< what users do to its jobs
  const EnvWorld* world = nullptr;  ///< where its jobs run (env.hpp), borrowed; null: where its environment says
};

/// The parts of a trace, by job number and so by time.
enum class Split : std::uint8_t { train, validation, test };

/// The word that messages and files use for a part.
constexpr std::string_view to_string(Split split) {
  switch (split) {
    case Split::train: return "train";
    case Split::validation: return "validation";
    case Split::test: break;
  }
  return "test";
}

/// How a trace is cut into windows, and these into parts.
struct WindowOptions {
  std::uint32_t jobs = 1024;         ///< scored jobs of a window
  std::uint32_t warm_up_jobs = 0;    ///< jobs before them that fill the cluster
  std::uint32_t stride = 256;        ///< jobs between the starts of neighbouring windows
  double first_fraction = 0;         ///< share of the trace's jobs that is left out at its start
  double train_fraction = 0.6;       ///< of the jobs used
  double validation_fraction = 0.1;  ///< the next ones; the rest is the test part
  double arrival_scale = 1;          ///< distances between arrivals times this; 0.5 = twice the load
  bool truncate = false;             ///< end at the last submission instead of running until empty
  bool history = true;               ///< predictors know the jobs that had ended before the window (JobEnds)
  bool service_history = false;      ///< so do the predictions of mode preempt: JobHistory::learn()
};

/// Jobs `begin` to `end` - 1 of a trace.
struct TracePart {
  std::uint32_t begin = 0;  ///< first job
  std::uint32_t end = 0;    ///< one past the last job
};

/// The jobs of one part of a trace. An error says how many they are when not even one window fits.
inline Result<TracePart> jobs_of(const JobTable& trace, const WindowOptions& options, Split split) {
  const auto fail = [](std::string field, std::string message) {
    return Unexpected{Error{.message = std::move(message), .field = std::move(field)}};
  };
  const auto is_fraction = [](double x) { return x >= 0 && x <= 1; };
  if (options.jobs == 0) return fail("windows/jobs", "expected at least 1");
  if (options.stride == 0) return fail("windows/stride", "expected at least 1");
  if (!is_fraction(options.first_fraction)) return fail("windows/first_fraction", "expected a number from 0 to 1");
  if (!is_fraction(options.train_fraction) || !is_fraction(options.validation_fraction) ||
      options.train_fraction + options.validation_fraction > 1) {
    return fail("windows/train_fraction", "expected train and validation fractions that add up to at most 1");
  }
  if (!(options.arrival_scale > 0)) return fail("windows/arrival_scale", "expected a positive number");

  const auto at = [&trace, &options](double fraction) {
    const double used = static_cast<double>(trace.size()) * (1 - options.first_fraction);
    return static_cast<std::uint32_t>(
        std::llround(static_cast<double>(trace.size()) * options.first_fraction + used * fraction));
  };
  const double validation_end = options.train_fraction + options.validation_fraction;
  const std::uint32_t begin = split == Split::train        ? at(0)
                              : split == Split::validation ? at(options.train_fraction)
                                                           : at(validation_end);
  const std::uint32_t end = split == Split::train        ? at(options.train_fraction)
                            : split == Split::validation ? at(validation_end)
                                                         : trace.size();
  const std::uint32_t length = options.warm_up_jobs + options.jobs;
  if (end - begin < length) {
    return fail("windows/jobs", "the " + std::string(to_string(split)) + " part has " + std::to_string(end - begin) +
                                    " jobs; expected at least the " + std::to_string(length) + " of one window");
  }
  return TracePart{begin, end};
}

/// All windows of one part of a trace, in order of time; warm-up jobs come from the same part. Errors: as jobs_of().
inline Result<std::vector<Window>> make_windows(const JobTable& trace, const WindowOptions& options, Split split) {
  const auto part = jobs_of(trace, options, split);
  if (!part) return Unexpected{part.error()};
  const std::uint32_t length = options.warm_up_jobs + options.jobs;

  const JobEnds ends(trace);
  JobHistory known;
  std::size_t learned = 0;

  std::vector<Window> windows;
  for (std::uint32_t first = part->begin; first + length <= part->end; first += options.stride) {
    if (options.history) {
      const PastJobs past = ends.before(JobId{first});
      for (; learned < past.jobs.size(); ++learned) {
        known.learn(trace, JobId{past.jobs[learned]}, options.service_history);
      }
    }
    Window window{.jobs = trace.slice(first, length, options.arrival_scale),
                  .first_scored = options.warm_up_jobs,
                  .start = first + options.warm_up_jobs,
                  .history = known};
    if (options.truncate) window.end = window.jobs.submit(JobId{length - 1});
    windows.push_back(std::move(window));
  }
  return windows;
}

}  // namespace gpusched
