// SPDX-License-Identifier: Apache-2.0
/// Windows: stretches of a trace on which agents are trained and compared. The trace is split by time, so that no test
/// window was trained on.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/policy/runtime_predictor.hpp"

namespace gpusched {

/// One stretch of a trace. Environments borrow it; it must outlive them.
struct Window {
  JobTable jobs;                   ///< warm-up jobs first, then the scored ones
  std::uint32_t first_scored = 0;  ///< earlier jobs fill the cluster under the heuristic and count in no reward
  Time end = Time::max();          ///< the episode is truncated here; max() = it runs until the cluster is empty
  std::uint32_t start = 0;         ///< position of its first scored job in the trace
  RuntimePredictor history;        ///< of the jobs that the trace says had finished when the window begins
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
  bool history = true;               ///< predictors know the jobs that had finished before the window
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

  const auto at = [&](double fraction) {
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
    return fail("windows", "the " + std::string(to_string(split)) + " part has " + std::to_string(end - begin) +
                               " jobs; expected at least the " + std::to_string(length) + " of one window");
  }
  return TracePart{begin, end};
}

/// All windows of one part of a trace, in order of time; warm-up jobs come from the same part. Errors: as jobs_of().
inline Result<std::vector<Window>> make_windows(const JobTable& trace, const WindowOptions& options, Split split) {
  const auto part = jobs_of(trace, options, split);
  if (!part) return Unexpected{part.error()};
  const std::uint32_t length = options.warm_up_jobs + options.jobs;

  // Jobs in order of their end in the trace, for what a predictor may know at a window's beginning.
  std::vector<std::uint32_t> by_end(trace.size());
  std::iota(by_end.begin(), by_end.end(), 0u);
  const auto end_of = [&](std::uint32_t job) { return trace.submit(JobId{job}) + trace.work(JobId{job}); };
  std::stable_sort(by_end.begin(), by_end.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return end_of(a) < end_of(b); });
  RuntimePredictor known;
  std::size_t learned = 0;

  std::vector<Window> windows;
  for (std::uint32_t first = part->begin; first + length <= part->end; first += options.stride) {
    const Time now = trace.submit(JobId{first});
    for (; learned < by_end.size() && end_of(by_end[learned]) <= now; ++learned) {
      const JobId job{by_end[learned]};
      known.learn(trace.vc(job), trace.shape_id(job), trace.user(job), to_seconds(trace.work(job)));
    }
    Window window{.jobs = trace.slice(first, length, options.arrival_scale),
                  .first_scored = options.warm_up_jobs,
                  .start = first + options.warm_up_jobs,
                  .history = options.history ? known : RuntimePredictor{}};
    if (options.truncate) window.end = window.jobs.submit(JobId{length - 1});
    windows.push_back(std::move(window));
  }
  return windows;
}

}  // namespace gpusched
