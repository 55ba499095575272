// SPDX-License-Identifier: Apache-2.0
/// Runs under policies that choose policies, and what these noted.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/history_hash.hpp"
#include "gpusched/watch/metrics.hpp"
#include "tests/policies/contestants.hpp"
#include "tests/support/changing_signals.hpp"

namespace gpusched::test {

struct PortfolioRun {
  bool finished = false;
  std::uint64_t history = 0;
  double jct_s = 0;
  std::string notes = {};
  Time end{};
};

inline PortfolioRun portfolio_run(const std::string& text, const JobTable& jobs, const Cluster& cluster,
                                  const EngineOptions& options = {}) {
  const auto specs = parse_policies(registry(), text);
  EXPECT_TRUE(specs) << specs.error().to_string();
  const PolicyContext context{.jobs = &jobs, .cluster = &cluster, .seed = 1, .power = &signals_of_tests()};
  auto policy = make_policy(registry(), specs->front(), context);
  EXPECT_TRUE(policy) << policy.error().to_string();
  Engine engine(jobs, cluster, options);
  HistoryHash history;
  PortfolioRun outcome;
  outcome.finished = simulate(engine, *policy, history);
  outcome.history = history.value();
  outcome.notes = policy->notes();
  for (std::uint32_t i = 0; i < jobs.size() && outcome.finished; ++i) {
    outcome.jct_s += to_seconds(engine.end(JobId{i}) - engine.submit(JobId{i})) / jobs.size();
    outcome.end = std::max(outcome.end, engine.end(JobId{i}));
  }
  return outcome;
}

inline std::string portfolio_error(const std::string& text) {
  JobTableBuilder builder;
  builder.add({.submit = {}, .work = whole_seconds(1)});
  const JobTable jobs = *std::move(builder).build();
  const auto policy = make(text, jobs, Cluster::pool(4));
  return policy ? "" : policy.error().to_string();
}

inline std::vector<std::map<std::string, std::string>> rows_of_notes(const std::string& csv) {
  std::vector<std::map<std::string, std::string>> rows;
  std::vector<std::string> names;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> fields(1);
    bool quoted = false;
    for (const char c : line) {
      if (c == '"') quoted = !quoted;
      if (c == ',' && !quoted) fields.emplace_back();
      if (c != '"' && (c != ',' || quoted)) fields.back() += c;
    }
    if (names.empty()) {
      names = fields;
      continue;
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (i == 0) rows.emplace_back();
      rows.back()[names[i]] = fields[i];
    }
  }
  return rows;
}

inline JobTable table_of_asked(const std::vector<JobRecord>& rows) {
  JobTableBuilder builder;
  for (const JobRecord& row : rows) builder.add(row);
  return *std::move(builder).build();
}

inline JobRecord asked(std::int64_t submit_s, std::int64_t work_s, std::uint32_t gpus, std::int64_t estimate_s = -1) {
  return {.submit = whole_seconds(submit_s),
          .work = whole_seconds(work_s),
          .estimate = estimate_s < 0 ? Time::max() : whole_seconds(estimate_s),
          .shape = {.tasks = gpus, .gpu_milli_per_task = whole_gpu}};
}

}  // namespace gpusched::test
