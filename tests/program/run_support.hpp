// SPDX-License-Identifier: Apache-2.0
/// What the tests of the engine and of policies share: jobs written as rows of seconds, and runs read back in seconds.
#pragma once

#include <cstdint>
#include <ostream>
#include <string_view>
#include <vector>

#include "gpusched/policy/simulate.hpp"

namespace gpusched::test {

/// A job in whole seconds. `gpus` makes a gang of one-GPU tasks; a `shape` of other than one default task replaces it.
struct Row {
  std::int64_t submit = 0;
  std::int64_t work = 0;
  std::uint32_t gpus = 1;
  std::string_view user = {};
  std::string_view vc = {};
  std::string_view gpu_spec = {};
  std::string_view family = {};
  Shape shape = {};
  std::vector<std::int64_t> attempts = {};  ///< replaces work
  std::int64_t estimate = -1;               ///< -1 = none
  std::int32_t priority = 0;
  std::int64_t deadline = -1;           ///< -1 = none
  std::int64_t start = -1;              ///< as recorded; -1 = none
  std::vector<std::string> after = {};  ///< rows that must have ended
  std::int64_t delay = 0;               ///< so many seconds ago
};

/// The table of these rows. Precondition: sorted by submit, so that row numbers are job ids.
inline JobTable table_of(const std::vector<Row>& rows) {
  JobTableBuilder builder;
  for (const Row& row : rows) {
    std::vector<Time> attempts;
    Time work = whole_seconds(row.work);
    if (!row.attempts.empty()) {
      work = {};
      for (const std::int64_t s : row.attempts) {
        attempts.push_back(whole_seconds(s));
        work += attempts.back();
      }
    }
    builder.add({.submit = whole_seconds(row.submit),
                 .work = work,
                 .estimate = row.estimate < 0 ? Time::max() : whole_seconds(row.estimate),
                 .start = row.start < 0 ? Time::max() : whole_seconds(row.start),
                 .shape = row.shape == Shape{} ? Shape{.tasks = row.gpus, .gpu_milli_per_task = whole_gpu} : row.shape,
                 .user = row.user,
                 .vc = row.vc,
                 .gpu_spec = row.gpu_spec,
                 .family = row.family,
                 .priority = row.priority,
                 .deadline = row.deadline < 0 ? Time::max() : whole_seconds(row.deadline),
                 .attempts = attempts,
                 .after = row.after,
                 .after_delay = whole_seconds(row.delay)});
  }
  return *std::move(builder).build();
}

/// First start and end in seconds; -1 = never.
struct Span {
  double start = -1;
  double end = -1;
  friend bool operator==(const Span&, const Span&) = default;
};

inline std::ostream& operator<<(std::ostream& out, const Span& span) {
  return out << '[' << span.start << ", " << span.end << ')';
}

inline std::vector<Span> spans_of(const Engine& engine) {
  const auto seconds = [](Time t) { return t == Time::max() ? -1.0 : to_seconds(t); };
  std::vector<Span> spans;
  for (std::uint32_t i = 0; i < engine.jobs().size(); ++i) {
    spans.push_back({seconds(engine.first_start(JobId{i})), seconds(engine.end(JobId{i}))});
  }
  return spans;
}

/// When each job first started and ended.
template <Policy P>
std::vector<Span> run(const JobTable& jobs, const Cluster& cluster, P policy, const EngineOptions& options = {},
                      const RuntimeModel* runtime = nullptr) {
  Engine engine(jobs, cluster, options, {.runtime = runtime});
  simulate(engine, policy);
  return spans_of(engine);
}

}  // namespace gpusched::test
