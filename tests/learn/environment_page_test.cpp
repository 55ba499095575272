// SPDX-License-Identifier: Apache-2.0
// docs/environment.md against the environment: how many floats there are, and the ranges that each keeps. (That the
// names are those of the code, tests/docs_test.py checks.)
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "gpusched/learn/vector_env.hpp"
#include "tests/learn/learning_support.hpp"
#include "tests/support/changing_signals.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

/// A row of a table: its field and what it may be.
struct DocumentedField {
  std::string name;
  double least = -INFINITY, most = INFINITY;
};

DocumentedField field_of(const std::string& name, const std::string& range) {
  double first = 0, second = 0;
  if (range == "any") return {name};
  if (std::sscanf(range.c_str(), "%lf to %lf", &first, &second) == 2) return {name, first, second};
  if (range == "0 or 1") return {name, 0, 1};
  if (range == "0 or more") return {name, 0, INFINITY};
  if (range == "0 or less") return {name, -INFINITY, 0};
  if (range == "-1 or less") return {name, -INFINITY, -1};
  ADD_FAILURE() << name << " has a range that nobody reads: " << range;
  return {name};
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream rest(line.substr(1));
  for (std::string cell; std::getline(rest, cell, '|');) {
    const std::size_t begin = cell.find_first_not_of(" `"), end = cell.find_last_not_of(" `");
    cells.push_back(begin == std::string::npos ? "" : cell.substr(begin, end + 1 - begin));
  }
  return cells;
}

/// The fields of the page by the heading above them.
std::map<std::string, std::vector<DocumentedField>> documented_fields() {
  std::map<std::string, std::vector<DocumentedField>> tables;
  std::istringstream page(test::bytes_of(test::source_dir() + "/docs/environment.md"));
  std::string heading;
  std::size_t range_column = 0;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("### ")) heading = line.substr(4);
    if (!line.starts_with("| ")) continue;
    const std::vector<std::string> cells = cells_of(line);
    if (cells[0] == "#") {
      for (range_column = 0; range_column < cells.size() && cells[range_column] != "range";) ++range_column;
    } else if (cells[0].find_first_not_of("0123456789") == std::string::npos) {
      tables[heading].push_back(field_of(cells[1], cells.at(range_column)));
    }
  }
  return tables;
}

/// Jobs as some_jobs(), of which every third was tried twice.
JobTable jobs_with_retries() {
  const JobTable jobs = test::some_jobs(11, 600);
  JobTableBuilder builder;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    const Time first{jobs.work(job).us / 3};
    const std::vector<Time> attempts{first, jobs.work(job) - first};
    builder.add({.submit = jobs.submit(job),
                 .work = jobs.work(job),
                 .shape = jobs.shape(job),
                 .user = jobs.users()[jobs.user(job)],
                 .attempts = i % 3 == 0 ? std::span<const Time>(attempts) : std::span<const Time>{}});
  }
  return *std::move(builder).build();
}

class EnvironmentPageTables : public testing::Test {
 protected:
  // `rows` floats of each row lie in the ranges of the table; `columns` of them are there.
  void expect_in_range(const std::string& table, const std::vector<float>& values, std::size_t columns) {
    const auto& fields = documented_.at(table);
    ASSERT_EQ(values.size() % columns, 0u);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t column = i % columns;
      if (column >= fields.size()) {  // tokens of mode preempt use fewer columns than there are
        ASSERT_EQ(values[i], 0) << table << " has a column more than the page";
        continue;
      }
      const auto value = static_cast<double>(values[i]);
      // Single precision: shares are sums.
      ASSERT_GE(value, fields[column].least - 1e-5) << fields[column].name;
      ASSERT_LE(value, fields[column].most + 1e-5) << fields[column].name;
      seen_[fields[column].name] |= value != 0;
    }
  }

  std::map<std::string, std::vector<DocumentedField>> documented_ = documented_fields();
  std::map<std::string, bool> seen_;  // by field: it was once not 0
};

class EnvironmentPage : public EnvironmentPageTables, public testing::WithParamInterface<ActionMode> {};

TEST_P(EnvironmentPage, HoldsTheFieldsAndRangesOfWhatAnEpisodeShows) {
  ASSERT_EQ(documented_.at("JobFeature").size(), std::size_t{job_features});
  ASSERT_EQ(documented_.at("RankFeature").size(), std::size_t{rank_features});
  ASSERT_EQ(documented_.at("GroupFeature").size(), std::size_t{group_features});
  ASSERT_EQ(documented_.at("GlobalFeature").size(), std::size_t{global_features});
  ASSERT_EQ(documented_.at("PrivilegedFeature").size(), std::size_t{privileged_features});
  ASSERT_EQ(documented_.at("RewardTerm").size(), std::size_t{reward_terms});

  const bool ranks = GetParam() == ActionMode::preempt;
  const JobTable jobs = jobs_with_retries();
  const auto windows = make_windows(jobs, {.jobs = 300, .train_fraction = 1, .validation_fraction = 0}, Split::train);
  const Cluster cluster = Cluster::homogeneous(3, 4);
  EnvOptions options;
  options.agenda.mode = GetParam();
  options.agenda.max_jobs = 8;  // some jobs are hidden
  options.weights[reward_fragmentation] = 1;
  options.engine.preemption = {.restart = whole_seconds(5)};
  VectorEnv env(*windows, {}, cluster, {.env = options, .environments = 3});
  const Batch* batch = &env.reset(5);
  Rng rng(2);
  for (int step = 0; step < 1500; ++step) {
    const Observation& seen = batch->observation;
    ASSERT_EQ(seen.jobs.size(), std::size_t{seen.job_begin.back()} * 12);
    ASSERT_EQ(seen.groups.size(), std::size_t{seen.group_begin.back()} * 4);
    ASSERT_EQ(seen.global.size(), 3u * 14);
    ASSERT_EQ(seen.privileged.size(), 3u * 6);
    expect_in_range(ranks ? "RankFeature" : "JobFeature", seen.jobs, job_features);
    expect_in_range("GroupFeature", seen.groups, group_features);
    expect_in_range("GlobalFeature", seen.global, global_features);
    expect_in_range("PrivilegedFeature", seen.privileged, privileged_features);
    if (HasFatalFailure()) return;
    if (ranks) {
      std::vector<float> scores(seen.prior.size());
      for (float& score : scores) score = static_cast<float>(rng.normal());
      batch = &env.step(scores);
    } else {
      std::vector<std::uint32_t> actions(env.size());
      for (std::uint32_t e = 0; e < env.size(); ++e) {
        do actions[e] = static_cast<std::uint32_t>(rng.below(seen.tokens(e) + 1));
        while (seen.mask[seen.job_begin[e] + e + actions[e]] == 0);
      }
      batch = &env.step(actions);
    }
    for (const RewardVector& totals : batch->episode_totals) {
      for (std::size_t term = 0; term < reward_terms; ++term) {
        const DocumentedField& field = documented_.at("RewardTerm")[term];
        EXPECT_LE(totals[term], field.most) << field.name;
        EXPECT_GE(totals[term], field.least) << field.name;
      }
    }
  }
  // A field that never is anything but 0 would be tested by nothing.
  for (const DocumentedField& field : documented_.at(ranks ? "RankFeature" : "JobFeature")) {
    EXPECT_TRUE(seen_[field.name]) << field.name;
  }
}

// The tokens of a choice of GPU types, on a cluster of two where families differ in speed.
TEST_F(EnvironmentPageTables, HoldTheFieldsAndRangesOfPlaces) {
  ASSERT_EQ(documented_.at("PlaceFeature").size(), std::size_t{place_features});
  const JobTable jobs = test::jobs_of_two_families(400);
  const auto windows = make_windows(jobs, {.jobs = 400, .train_fraction = 1, .validation_fraction = 0}, Split::train);
  const Cluster cluster = test::cluster_of_two_types();
  const RuntimeModel runtime = test::speeds_of_two_families(jobs);
  EnvOptions options;
  options.agenda = {.knowledge = RuntimeKnowledge::oracle, .choose_nodes = true, .node_speeds = true};
  options.inputs.runtime = &runtime;
  Env env(cluster, options);
  Rng rng(2);
  Observation seen;
  for (StepResult result = env.reset(windows->front()); !result.done();) {
    const Agenda& agenda = env.agenda();
    agenda.make_room(seen);
    env.encode(seen.slot(0));
    expect_in_range(agenda.placing() ? "PlaceFeature" : "JobFeature", seen.jobs, job_features);
    if (HasFatalFailure()) return;
    result = env.step(test::random_action(agenda, rng));
  }
  for (const DocumentedField& field : documented_.at("PlaceFeature")) EXPECT_TRUE(seen_[field.name]) << field.name;
}

// Over days of signals that change, with caps.
TEST_F(EnvironmentPageTables, HoldTheFieldsAndRangesOfSignals) {
  ASSERT_EQ(documented_.at("SignalFeature").size(), std::size_t{signal_features});
  const Window window{.jobs = test::some_jobs(4, 400), .history = {}};
  Rng rng(3);
  const auto drawn = [&rng](double least, double most) {
    std::vector<Signal::Step> steps;
    for (std::int64_t hour = -30; hour < 60; ++hour) {
      steps.push_back({whole_seconds(3600 * hour), Signal::to_micro(least + (most - least) * rng.uniform())});
    }
    return Signal(std::move(steps));
  };
  PowerModel power = test::changing_signals();
  power.places = {{.carbon_g_per_kwh = drawn(50, 500), .usd_per_mwh = drawn(-20, 90)}};
  power.caps = {{.watts = drawn(2500, 9000)}};
  EnvOptions options;
  options.agenda.signals = true;
  options.agenda.forecast.kind = Forecast::Kind::perfect;  // a day ago, the value in 24 hours is that of now
  options.inputs.power = &power;
  const Cluster cluster = Cluster::homogeneous(3, 4);
  Env env(cluster, options);
  Observation seen;
  for (StepResult result = env.reset(window); !result.done();) {
    const Agenda& agenda = env.agenda();
    agenda.make_room(seen);
    env.encode(seen.slot(0));
    expect_in_range("SignalFeature", seen.signals, signal_features);
    if (HasFatalFailure()) return;
    result = env.step(test::random_action(agenda, rng));
  }
  for (const DocumentedField& field : documented_.at("SignalFeature")) EXPECT_TRUE(seen_[field.name]) << field.name;
}

INSTANTIATE_TEST_SUITE_P(Modes, EnvironmentPage,
                         testing::ValuesIn({ActionMode::fit_or_wait, ActionMode::select_blocking, ActionMode::backfill,
                                            ActionMode::reserve, ActionMode::inspect, ActionMode::preempt}),
                         [](const auto& test) { return std::string(name_of(action_mode_names, test.param)); });

TEST(EnvironmentPageNames, AreThoseOfConfigurations) {
  const std::string page = test::bytes_of(test::source_dir() + "/docs/environment.md");
  for (std::size_t term = 0; term < reward_terms; ++term) {
    const std::string name(reward_names[term]);
    EXPECT_NE(page.find("| `reward_" + name + "` | `" + name + "` |"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace gpusched
