// SPDX-License-Identifier: Apache-2.0
#include "traces/synthetic/synthetic.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/files.hpp"
#include "traces/core/trace.hpp"
#include "traces/synthetic/calendar.hpp"
#include "traces/synthetic/quantile_table.hpp"
#include "traces/synthetic/trace_fit.hpp"

namespace gpusched {
namespace {

SyntheticModel model_named(const std::string& name) {
  auto model = builtin_model(name);
  EXPECT_TRUE(model) << model.error().to_string();
  return *std::move(model);
}

JobTable drawn(const SyntheticModel& model, SyntheticOptions options) {
  auto jobs = generate_synthetic(model, options);
  EXPECT_TRUE(jobs) << jobs.error().to_string();
  return *std::move(jobs);
}

using Row = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::uint32_t, std::string, std::string, int>;

std::vector<Row> rows_of(const JobTable& jobs) {
  std::vector<Row> rows;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const auto job = JobId{i};
    rows.emplace_back(jobs.submit(job).us, jobs.work(job).us, jobs.shape(job).gpu_milli(), jobs.attempts(job),
                      jobs.users()[jobs.user(job)], jobs.vcs()[jobs.vc(job)], static_cast<int>(jobs.status(job)));
  }
  return rows;
}

double gpus_of(const JobTable& jobs, JobId job) {
  return static_cast<double>(jobs.shape(job).gpu_milli()) / static_cast<double>(whole_gpu);
}

/// Run times in seconds of the jobs with more than `above` and at most `upto` GPUs, ascending.
std::vector<double> run_times(const JobTable& jobs, double above, double upto) {
  std::vector<double> seconds;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const double gpus = gpus_of(jobs, JobId{i});
    if (gpus > above && gpus <= upto) seconds.push_back(to_seconds(jobs.work(JobId{i})));
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

double quantile(const std::vector<double>& ascending, double p) {
  return ascending[static_cast<std::size_t>(p * static_cast<double>(ascending.size() - 1))];
}

TEST(Synthetic, TheSameSeedGivesTheSameTraceAndAnotherSeedAnother) {
  const SyntheticModel model = model_named("philly");
  const auto once = rows_of(drawn(model, {.jobs = 3000, .seed = 7}));
  EXPECT_EQ(once, rows_of(drawn(model, {.jobs = 3000, .seed = 7})));
  EXPECT_NE(once, rows_of(drawn(model, {.jobs = 3000, .seed = 8})));
}

TEST(Synthetic, AShorterTraceIsTheBeginningOfALongerOne) {
  const SyntheticModel model = model_named("philly");
  auto longer = rows_of(drawn(model, {.jobs = 5000, .seed = 1}));
  longer.resize(2000);
  EXPECT_EQ(rows_of(drawn(model, {.jobs = 2000, .seed = 1})), longer);
}

TEST(Synthetic, DrawsExactlyTheAskedNumberOfJobsInOrderWithAttemptsThatSumToTheWork) {
  for (const std::string& name : builtin_model_names()) {
    const SyntheticModel model = model_named(name);
    for (const std::uint32_t count : {1u, 2u, 999u}) {
      const JobTable jobs = drawn(model, {.jobs = count, .seed = 3});
      ASSERT_EQ(jobs.size(), count);
      EXPECT_TRUE(std::is_sorted(jobs.submits().begin(), jobs.submits().end()));
      for (std::uint32_t i = 0; i < count; ++i) {
        Time sum{};
        for (std::uint32_t k = 0; k < jobs.attempts(JobId{i}); ++k) sum += jobs.attempt_work(JobId{i}, k);
        EXPECT_EQ(sum, jobs.work(JobId{i}));
        EXPECT_GT(jobs.shape(JobId{i}).gpu_milli(), 0);
      }
    }
  }
}

// Within 1 % from 1,000 jobs on, as generate_synthetic() promises.
RC_GTEST_PROP(Synthetic, MeetsTheAskedLoad, ()) {
  const auto names = builtin_model_names();
  const SyntheticModel model = model_named(*rc::gen::elementOf(names));
  const double load = *rc::gen::inRange(20, 150) / 100.0;
  const SyntheticOptions options{.jobs = *rc::gen::inRange(1000u, 4000u),
                                 .offered_load = load,
                                 .cluster_gpus = *rc::gen::inRange(256, 4096),
                                 .seed = *rc::gen::arbitrary<std::uint64_t>()};
  const double reached = offered_load(drawn(model, options), options.cluster_gpus);
  RC_ASSERT(std::abs(reached / load - 1) < 0.01);
}

TEST(Synthetic, OfferedLoadCountsGpuSecondsOverTheSubmissionSpan) {
  JobTableBuilder builder;
  builder.add({.id = {},
               .submit = whole_seconds(10),
               .work = whole_seconds(100),
               .shape = {.tasks = 2, .gpu_milli_per_task = 1000}});
  builder.add({.submit = whole_seconds(60), .work = whole_seconds(40), .shape = {.gpu_milli_per_task = 500}});
  const JobTable jobs = *std::move(builder).build();
  EXPECT_DOUBLE_EQ(offered_load(jobs, 4), (2 * 100 + 0.5 * 40) / (50.0 * 4));
}

// Shares of a 200,000-job trace; sessions make neighbours alike, so that the mix is looser than statuses and attempts.
TEST(Synthetic, StatusesAttemptsAndGpuCountsHaveTheSharesOfTheModel) {
  for (const std::string& name : builtin_model_names()) {
    const SyntheticModel model = model_named(name);
    const JobTable jobs = drawn(model, {.jobs = 200'000, .seed = 11});
    for (std::size_t c = 0; c < model.classes.size(); ++c) {
      const JobClass& expected = model.classes[c];
      const double above = c == 0 ? 0 : model.classes[c - 1].max_gpus;
      double count = 0;
      std::array<double, 4> statuses{};
      std::vector<double> attempts(expected.attempt_weights.size());
      for (std::uint32_t i = 0; i < jobs.size(); ++i) {
        const double gpus = gpus_of(jobs, JobId{i});
        if (gpus <= above || gpus > expected.max_gpus) continue;
        count += 1;
        statuses[static_cast<std::size_t>(jobs.status(JobId{i}))] += 1;
        attempts.at(jobs.attempts(JobId{i}) - 1) += 1;
      }
      ASSERT_GT(count, 300) << name << " class " << c;
      const double noise = 4 * std::sqrt(0.25 / count);
      const auto check = [&](const auto& seen, const auto& weights) {
        double sum = 0;
        for (const double weight : weights) sum += weight;
        for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(seen[i] / count, weights[i] / sum, noise);
      };
      check(statuses, expected.status_weights);
      check(attempts, expected.attempt_weights);
    }
  }
}

TEST(Synthetic, TheWeekHasTheRhythmOfTheModel) {
  SyntheticModel model = model_named("philly");
  model.hour_weights.fill(1);
  model.hour_weights[3] = 0;
  model.hour_weights[14] = 5;
  model.day_weights = {1, 1, 1, 1, 1, 0, 0};
  for (JobClass& c : model.classes) c.session_jobs = {{0, 1}, {1, 1}};
  const JobTable jobs = drawn(model, {.jobs = 100'000, .seed = 5});
  std::array<double, 24> hours{};
  std::array<double, 7> days{};
  constexpr std::int64_t hour_us = 3600 * microseconds_per_second;
  const std::int64_t whole_weeks = jobs.submits().back().us / (168 * hour_us);
  const auto counted =
      std::lower_bound(jobs.submits().begin(), jobs.submits().end(), Time{whole_weeks * 168 * hour_us}) -
      jobs.submits().begin();
  for (std::uint32_t i = 0; i < counted; ++i) {
    const auto hour = static_cast<std::size_t>(jobs.submit(JobId{i}).us / hour_us);
    hours[hour % 24] += 1.0 / static_cast<double>(counted);
    days[hour / 24 % 7] += 1.0 / static_cast<double>(counted);
  }
  EXPECT_EQ(hours[3], 0);
  EXPECT_EQ(days[5] + days[6], 0);
  EXPECT_NEAR(hours[14], 5.0 / 27, 0.005);
  EXPECT_NEAR(hours[0], 1.0 / 27, 0.003);
  EXPECT_NEAR(days[0], 0.2, 0.01);
}

TEST(Synthetic, UsersFollowAZipfLawWithinTheirVirtualCluster) {
  SyntheticModel model = model_named("philly");
  model.vcs = {{.name = "a", .weight = 3, .gpu_weights = model.vcs.front().gpu_weights},
               {.name = "b", .weight = 1, .gpu_weights = model.vcs.front().gpu_weights}};
  model.users = {.count = 40, .zipf_exponent = 1.2};
  for (JobClass& c : model.classes) c.session_jobs = {{0, 1}, {1, 1}};
  const JobTable jobs = drawn(model, {.jobs = 100'000, .seed = 9});
  std::map<std::string, std::map<std::string, double>> counts;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    counts[jobs.vcs()[jobs.vc(JobId{i})]][jobs.users()[jobs.user(JobId{i})]] += 1;
  }
  ASSERT_EQ(counts["a"].size(), 30u);
  ASSERT_EQ(counts["b"].size(), 10u);
  EXPECT_NEAR(counts["a"]["user0"] / counts["a"]["user1"], std::pow(2, 1.2), 0.15);
  EXPECT_NEAR(counts["a"]["user0"] / counts["a"]["user9"], std::pow(10, 1.2), 1.5);
}

TEST(Synthetic, RefusesOptionsThatMakeNoTrace) {
  const SyntheticModel model = model_named("philly");
  const auto field = [&](SyntheticOptions options) { return generate_synthetic(model, options).error().field; };
  EXPECT_EQ(field({.jobs = 0}), "jobs");
  EXPECT_EQ(field({.jobs = 10, .offered_load = 0.0, .cluster_gpus = 8}), "load");
  EXPECT_EQ(field({.jobs = 10, .offered_load = NAN, .cluster_gpus = 8}), "load");
  EXPECT_EQ(field({.jobs = 1, .offered_load = 0.5, .cluster_gpus = 8}), "load");
  EXPECT_EQ(field({.jobs = 10, .offered_load = 0.5, .cluster_gpus = 0}), "cluster");
}

TEST(Synthetic, RefusesALoadForWhichTimesWouldOverflow) {
  for (const double load : {1e-8, 1e-300}) {
    const auto jobs = generate_synthetic(model_named("philly"), {.offered_load = load, .cluster_gpus = 320});
    ASSERT_FALSE(jobs) << load;
    EXPECT_EQ(jobs.error().to_string(), "load: expected a trace of at most 1e8 hours");
  }
}

TEST(Synthetic, ALoadNeedsJobsAtDifferentTimes) {
  SyntheticModel model = model_named("philly");
  for (JobClass& c : model.classes) c.session_jobs = {{0, 1}, {50, 50}};
  model.session_gap_s = {{0, 1}, {0, 0}};
  const auto jobs = generate_synthetic(model, {.jobs = 20, .offered_load = 0.5, .cluster_gpus = 8});
  ASSERT_FALSE(jobs);
  EXPECT_EQ(jobs.error().to_string(), "load: the jobs drawn are all submitted at one instant; ask for more jobs");
}

TEST(Synthetic, TheTraceOfANameHasTheDefaultsOfItsModel) {
  const auto trace = read_trace("synthetic:philly");
  ASSERT_TRUE(trace) << trace.error().to_string();
  const SyntheticModel model = model_named("philly");
  EXPECT_EQ(trace->report.path, "synthetic:philly");
  EXPECT_EQ(trace->report.kept, model.default_jobs);
  EXPECT_EQ(trace->jobs.size(), model.default_jobs);
  EXPECT_NEAR(offered_load(trace->jobs, gpus_of_size(model.default_cluster)), *model.default_load,
              0.01 * *model.default_load);
  EXPECT_EQ(trace->report.cluster, model.default_cluster);
  EXPECT_FALSE(read_trace("synthetic:nowhere"));
}

TEST(Synthetic, ANameCanSayHowManyJobs) {
  const auto trace = read_trace("synthetic:philly:500");
  ASSERT_TRUE(trace) << trace.error().to_string();
  EXPECT_EQ(trace->jobs.size(), 500u);
  EXPECT_EQ(trace->report.path, "synthetic:philly:500");
  for (const std::string name : {"philly:", "philly:0", "philly:x", "philly:5x", "philly:-1"}) {
    const auto refused = read_trace("synthetic:" + name);
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().to_string(), "synthetic:" + name + ": expected a number of jobs behind the second colon");
  }
}

TEST(Synthetic, ReadsClusterSizes) {
  EXPECT_EQ(gpus_of_size("40x8"), 320);
  EXPECT_EQ(gpus_of_size("600"), 600);
  for (const char* bad : {"", "x", "40x", "x8", "40x8x2", "-4x8", "4.5x8", "0x8", "philly"})
    EXPECT_EQ(gpus_of_size(bad), 0) << bad;
}

TEST(SyntheticModel, EveryBuiltInModelReadsAndSurvivesWriting) {
  for (const std::string& name : builtin_model_names()) {
    const SyntheticModel model = model_named(name);
    EXPECT_EQ(model.name, name);
    EXPECT_FALSE(model.sources.empty());
    const auto again = read_model(write_model(model), "again.json");
    ASSERT_TRUE(again) << again.error().to_string();
    EXPECT_EQ(*again, model);
  }
}

/// 200,000 jobs in sessions of one, so that shares and means converge.
JobTable drawn_alone(SyntheticModel model) {
  for (JobClass& c : model.classes) c.session_jobs = {{0, 1}, {1, 1}};
  return drawn(model, {.jobs = 200'000, .seed = 4});
}

struct WorkSummary {
  double median_s, p90_s, mean_s, gpu_seconds;
};

WorkSummary work_summary(const JobTable& jobs) {
  const std::vector<double> seconds = run_times(jobs, 0, 1e6);
  WorkSummary summary{quantile(seconds, 0.5), quantile(seconds, 0.9), 0, 0};
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const double work = to_seconds(jobs.work(JobId{i}));
    summary.mean_s += work / jobs.size();
    summary.gpu_seconds += work * gpus_of(jobs, JobId{i}) / jobs.size();
  }
  return summary;
}

// helios_cluster_summary.csv of S-Lab-System-Group/HeliosArtifact 6345d9ff: GPU jobs of the four clusters together. The
// median within 3 %, shares within 0.01, the mean within 5 %; GPU time within 10 %, since wide jobs are few and their
// run times heavy-tailed.
TEST(SyntheticModel, HeliosHasThePublishedFigures) {
  const JobTable jobs = drawn_alone(model_named("helios"));
  const WorkSummary summary = work_summary(jobs);
  EXPECT_NEAR(summary.median_s, 206, 206 * 0.03);
  EXPECT_NEAR(summary.mean_s, 6651.681, 6651.681 * 0.05);
  EXPECT_NEAR(summary.gpu_seconds, 77997765559.0 / 1580464, 77997765559.0 / 1580464 * 0.1);
  std::map<std::string, std::pair<double, double>> clusters;  // jobs, GPUs
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    auto& [count, gpus] = clusters[jobs.vcs()[jobs.vc(JobId{i})]];
    count += 1;
    gpus += gpus_of(jobs, JobId{i});
  }
  const std::map<std::string, std::pair<double, double>> published{
      {"Venus", {125303, 6.736}}, {"Earth", {427148, 2.101}}, {"Saturn", {698896, 4.010}}, {"Uranus", {329117, 4.038}}};
  for (const auto& [name, figures] : published) {
    EXPECT_NEAR(clusters[name].first / jobs.size(), figures.first / 1580464, 0.01) << name;
    EXPECT_NEAR(clusters[name].second / clusters[name].first, figures.second, 0.05 * figures.second) << name;
  }
}

// Weng et al., NSDI'22: median and 90th percentile; mean run time of the authors' 20,000-job simulator log (see
// pai.json).
TEST(SyntheticModel, PaiHasThePublishedFigures) {
  const JobTable jobs = drawn_alone(model_named("pai"));
  const WorkSummary summary = work_summary(jobs);
  EXPECT_NEAR(summary.median_s, 23 * 60, 23 * 60 * 0.03);
  EXPECT_NEAR(summary.p90_s, 4.5 * 3600, 4.5 * 3600 * 0.03);
  EXPECT_NEAR(summary.mean_s, 5988.61 - 949.91, 5038.7 * 0.03);
  std::vector<double> by_user(jobs.users().size());
  for (std::uint32_t i = 0; i < jobs.size(); ++i) by_user[jobs.user(JobId{i})] += 1.0 / jobs.size();
  std::sort(by_user.rbegin(), by_user.rend());
  double top_share = 0;
  for (std::size_t i = 0; i < 65; ++i) top_share += by_user[i];  // 5 % of 1,300 users
  EXPECT_NEAR(top_share, 0.77, 0.01);
}

TEST(SyntheticModel, AnUnknownNameIsAnsweredWithTheNearest) {
  EXPECT_EQ(builtin_model("phily").error().to_string().substr(0, 57),
            "no synthetic model 'phily' (did you mean 'philly'?); ther");
}

TEST(SyntheticModel, EachFaultIsNamedByItsPath) {
  const std::string good = write_model(model_named("philly"));
  const auto error_after = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const auto place = text.find(from);
    EXPECT_NE(place, std::string::npos) << from;
    text.replace(place, from.size(), to);
    const auto model = read_model(text, "m.json");
    return model ? std::string("accepted") : model.error().to_string();
  };
  EXPECT_EQ(error_after("\"name\"", "\"nmae\""), "m.json: /nmae: unknown key (did you mean 'name'?)");
  EXPECT_EQ(error_after("\"about\"", "\"colour\": 1, \"about\""), "m.json: /colour: unknown key");
  EXPECT_EQ(error_after("\"run_s\"", "\"runs\": 1, \"run_s\""),
            "m.json: /classes/0/runs: unknown key (did you mean 'run_s'?)");
  EXPECT_EQ(error_after("\"zipf_exponent\": 1.0", "\"zipf_exponent\": \"steep\""),
            "m.json: /users/zipf_exponent: expected a number, not \"steep\"");
  EXPECT_EQ(error_after("\"passed\": 0.693", "\"passed\": -1"),
            "m.json: /classes/0/status_weights/1: expected a number >= 0");
  EXPECT_EQ(error_after("\"hour_weights\": [", "\"hour_weights\": [1,"),
            "m.json: /hour_weights: expected a list of 24 numbers, not a list of 25 values");
  EXPECT_EQ(error_after("\"run_s\": [[0.0,", "\"run_s\": [[0.1,"),
            "m.json: /classes/0/run_s: expected probabilities from 0 to 1");
  EXPECT_EQ(error_after("\"run_s\": [[0.0,", "\"run_s\": [["),
            "m.json: /classes/0/run_s/0: expected a [probability, value] pair of numbers, not [0.0]");
  EXPECT_EQ(error_after("\"gpu_counts\": [1.0,", "\"gpu_counts\": [1.5,"),
            "m.json: /gpu_counts/0: expected a whole number from 1 to 1000000, or a share from 0.001 to 1");
  EXPECT_EQ(error_after("\"default_cluster\": \"40x8\"", "\"default_cluster\": \"big\""),
            "m.json: /default_cluster: expected NODESxGPUS, such as 40x8");
  EXPECT_EQ(error_after("{", "["), "m.json:2: expected well-formed JSON here");
  EXPECT_EQ(read_model("[]", "m.json").error().to_string(), "m.json: expected an object, not []");
  EXPECT_EQ(read_model("", "m.json").error().to_string(), "m.json:1: empty; expected JSON");
}

// Fitting what a model drew gives the model back. Tolerances: quantiles of run time 10 %, shares of virtual clusters
// and GPU counts 0.02, correlations 0.05, rate 5 %, the Zipf exponent 0.15, hours of the day 15 %.
TEST(TraceFit, RecoversTheModelThatDrewATrace) {
  SyntheticModel truth = model_named("philly");
  truth.users = {.count = 60, .zipf_exponent = 1.1};
  // Short sessions with short gaps: what ends a session is then never in doubt, and the shares converge.
  for (JobClass& c : truth.classes) c.session_jobs = {{0, 0.5, 1}, {1, 2, 6}};
  truth.session_gap_s = {{0, 1}, {1, 100}};
  truth.jobs_per_hour = 30;
  const JobTable jobs = drawn(truth, {.jobs = 300'000, .seed = 21});
  const auto fitted = fit_model(jobs, {.session_gap = whole_seconds(150)});
  ASSERT_TRUE(fitted) << fitted.error().to_string();

  EXPECT_NEAR(fitted->jobs_per_hour / truth.jobs_per_hour, 1, 0.05);
  EXPECT_NEAR(fitted->run_correlation, truth.run_correlation, 0.05);
  EXPECT_NEAR(fitted->gap_correlation, truth.gap_correlation, 0.05);
  EXPECT_NEAR(fitted->users.zipf_exponent, truth.users.zipf_exponent, 0.15);
  EXPECT_NEAR(fitted->users.count, truth.users.count, 6);
  const auto mean = [](const auto& weights) {
    double sum = 0;
    for (const double weight : weights) sum += weight / static_cast<double>(weights.size());
    return sum;
  };
  for (std::size_t h = 0; h < 24; ++h) {
    EXPECT_NEAR(fitted->hour_weights[h] / mean(fitted->hour_weights), truth.hour_weights[h] / mean(truth.hour_weights),
                0.15);
  }
  for (std::size_t d = 0; d < 7; ++d) {
    EXPECT_NEAR(fitted->day_weights[d] / mean(fitted->day_weights), truth.day_weights[d] / mean(truth.day_weights),
                0.15);
  }
  ASSERT_EQ(fitted->classes.size(), truth.classes.size());
  for (std::size_t c = 0; c < truth.classes.size(); ++c) {
    EXPECT_EQ(fitted->classes[c].max_gpus, truth.classes[c].max_gpus);
    const QuantileFunction seen(fitted->classes[c].run_s), expected(truth.classes[c].run_s);
    // Where the distribution is flat (two modes) a quantile is not determined: the probability is compared instead.
    for (const double p : {0.1, 0.25, 0.5, 0.75, 0.9, 0.95}) {
      EXPECT_LE(seen(p), expected(p + 0.03) * 1.1) << c << " at " << p;
      EXPECT_GE(seen(p), expected(p - 0.03) * 0.9) << c << " at " << p;
    }
  }
  double total = 0;
  for (const VcMix& vc : truth.vcs) total += vc.weight;
  for (const VcMix& vc : fitted->vcs) {
    const auto same =
        std::find_if(truth.vcs.begin(), truth.vcs.end(), [&](const VcMix& x) { return x.name == vc.name; });
    ASSERT_NE(same, truth.vcs.end());
    EXPECT_NEAR(vc.weight / jobs.size(), same->weight / total, 0.02) << vc.name;
  }
}

// The calendar of a trace: as many jobs of each GPU count in each period, with the same work, in another order.
TEST(TraceFit, ATwinFollowsTheCalendarOfItsTrace) {
  const JobTable jobs = drawn(model_named("philly"), {.jobs = 3000, .seed = 4});
  const auto model = fit_model(jobs);
  ASSERT_TRUE(model) << model.error().to_string();
  const JobTable twin = drawn(*model, {.jobs = 3000, .seed = 1});
  const Calendar again = fit_model(twin)->calendar;
  const Calendar& calendar = model->calendar;
  EXPECT_EQ(calendar.period_s, 3 * 3600);
  std::uint32_t sum = 0;
  for (const CalendarEntry& entry : calendar.entries) sum += entry.jobs;
  EXPECT_EQ(sum, jobs.size());
  EXPECT_NEAR(again.span_s / calendar.span_s, 1, 0.02);
  EXPECT_NEAR(offered_load(twin, 320) / offered_load(jobs, 320), 1, 0.02);
  std::uint32_t moved = 0;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) moved += twin.work(JobId{i}) != jobs.work(JobId{i}) ? 1 : 0;
  EXPECT_GT(moved, jobs.size() / 2) << "a twin is no copy";
  // Other seeds differ; a longer twin begins with the shorter one and goes round.
  EXPECT_NE(drawn(*model, {.jobs = 3000, .seed = 2}).submits().back(), twin.submits().back());
  const JobTable longer = drawn(*model, {.jobs = 7000, .seed = 1});
  for (std::uint32_t i = 0; i < twin.size(); ++i) {
    ASSERT_EQ(longer.submit(JobId{i}), twin.submit(JobId{i}));
    ASSERT_EQ(longer.work(JobId{i}), twin.work(JobId{i}));
  }
  EXPECT_EQ(*read_model(write_model(*model), "model"), *model);
}

/// 600 jobs of 8 GPUs and 300 of one. Of 8: every third in 8 tasks, where `on_nodes` the others in one; each asks for
/// twice its run time.
JobTable gangs(bool on_nodes) {
  JobTableBuilder builder;
  for (int i = 0; i < 900; ++i) {
    const bool wide = i % 3 != 0, one_task = on_nodes && i % 9 > 2;
    const Time work = whole_seconds(60 + i % 77);
    builder.add({.submit = whole_seconds(i * 40),
                 .work = work,
                 .estimate = on_nodes ? work + work : Time::max(),
                 .shape = !wide      ? gang_of_gpus(1)
                          : one_task ? Shape{.tasks = 1, .gpu_milli_per_task = 8 * whole_gpu}
                                     : gang_of_gpus(8)});
  }
  return *std::move(builder).build();
}

TEST(TraceFit, ATwinKeepsHowGpusStandInTasksAndWhatTimesAreRequested) {
  const auto model = fit_model(gangs(true)), loose = fit_model(gangs(false));
  ASSERT_TRUE(model && loose);
  EXPECT_EQ(write_model(*loose).find("task_splits"), std::string::npos);
  const JobTable twin = drawn(*model, {.jobs = 900, .seed = 1});
  EXPECT_EQ(rows_of(twin), rows_of(drawn(*loose, {.jobs = 900, .seed = 1}))) << "all else is drawn alike";
  double wide = 0, one_task = 0;
  for (std::uint32_t i = 0; i < twin.size(); ++i) {
    const Shape& shape = twin.shape(JobId{i});
    wide += shape.gpu_milli() == 8 * whole_gpu ? 1 : 0;
    one_task += shape.tasks == 1 && shape.gpu_milli_per_task == 8 * whole_gpu ? 1 : 0;
    EXPECT_NEAR(to_seconds(twin.estimate(JobId{i})), std::min(2 * to_seconds(twin.work(JobId{i})), 272.0), 1e-3);
  }
  EXPECT_EQ(wide, 600);
  EXPECT_NEAR(one_task / wide, 2.0 / 3, 0.06);
  EXPECT_EQ(*read_model(write_model(*model), "model"), *model);
  EXPECT_EQ(fitted_jobs(gangs(true)).shape(JobId{4}).tasks, 1u);
}

TEST(TraceFit, SaysWhatATwinHasNot) {
  JobTableBuilder builder;
  for (int i = 0; i < 4; ++i) {
    builder.add({.submit = whole_seconds(i),
                 .shape = {.gpu_milli_per_task = i == 1 ? 0 : whole_gpu, .memory_mib_per_task = i * 5},
                 .user = "ann",
                 .gpu_spec = "A100",
                 .priority = i == 1 ? 3 : 0});
  }
  const JobTable jobs = *std::move(builder).build();
  const std::vector<std::string> of_users{"memory", "GPU types", "1 job without a GPU"};
  EXPECT_EQ(missing_in_twins(jobs, {}, true), of_users);
  const std::vector<std::string> of_lublin{"memory", "GPU types", "users"};
  EXPECT_EQ(missing_in_twins(jobs, {.from = whole_seconds(2)}, false), of_lublin);
}

TEST(TraceFit, JobsOfAPeriodEndWithinIt) {
  const CalendarEntry entry{.gpus = 1, .jobs = 50, .work_s = 500, .run_s = {{0, 1}, {10, 10}}};
  const QuantileFunction size({{0, 1}, {50, 50}}), gap_s({{0, 1}, {1000, 1000}});
  const SessionStyle style{.session_jobs = &size, .gap_s = &gap_s};
  for (const CalendarJob& job : draw_entry(entry, 50, 10'800, style, Rng(1))) {
    EXPECT_LT(from_seconds(job.at_s), whole_seconds(10'800));
  }
}

TEST(TraceFit, ATwinMeetsALoadThatIsAskedFor) {
  const auto model = fit_model(drawn(model_named("philly"), {.jobs = 3000, .seed = 4}));
  ASSERT_TRUE(model) << model.error().to_string();
  for (const double load : {0.3, 0.8, 1.5}) {
    const JobTable twin = drawn(*model, {.jobs = 3000, .offered_load = load, .cluster_gpus = 320, .seed = 1});
    EXPECT_NEAR(offered_load(twin, 320) / load, 1, 0.011) << load;
  }
}

TEST(TraceFit, RefusesTracesThatSayTooLittle) {
  const SyntheticModel model = model_named("philly");
  EXPECT_EQ(fit_model(drawn(model, {.jobs = 99})).error().message, "a fit needs at least 100 jobs with GPUs, found 99");
  JobTableBuilder builder;
  for (int i = 0; i < 200; ++i) builder.add({.work = whole_seconds(5), .shape = {.gpu_milli_per_task = 1000}});
  EXPECT_EQ(fit_model(*std::move(builder).build()).error().message, "a fit needs jobs submitted at different times");
}

/// The real trace from day 50 on, or an empty table when the data is not there.
JobTable real_philly() {
  const std::string path = test::real_trace("philly/philly_jobs.csv");
  JobTableBuilder builder;
  if (path.empty()) return *std::move(builder).build();
  const auto trace = read_trace(path);
  EXPECT_TRUE(trace) << trace.error().to_string();
  const JobTable& all = trace->jobs;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    const auto job = JobId{i};
    if (all.submit(job) < whole_seconds(std::int64_t{50} * 86400)) continue;
    builder.add(
        {.submit = all.submit(job), .work = all.work(job), .shape = all.shape(job), .vc = all.vcs()[all.vc(job)]});
  }
  return *std::move(builder).build();
}

std::vector<double> jobs_by_hour(const JobTable& jobs) {
  std::vector<double> counts;
  for (const Time submit : jobs.submits()) {
    const auto hour = static_cast<std::size_t>((submit - jobs.submits().front()).us / (3600 * microseconds_per_second));
    counts.resize(std::max(counts.size(), hour + 1));
    counts[hour] += 1;
  }
  std::sort(counts.begin(), counts.end());
  return counts;
}

// A trace drawn from the fit against the real one it was fitted to, both of 69,813 jobs. Tolerances: the run time at a
// probability lies between the real ones 0.05 below and above it, widened by 15 %; shares of GPU counts within 0.02;
// the mean rate within 15 %, and the 10 %, 50 % and 90 % hour within a factor 1.6; offered load within 15 %.
TEST(TraceFit, AFittedTraceLooksLikeTheRealPhillyTrace) {
  const JobTable real = real_philly();
  if (real.size() == 0) GTEST_SKIP() << "no philly/philly_jobs.csv in ../shared/traces or GPUSCHED_TRACES";
  // The trace counts seconds from a Monday, 23:27:00.
  const auto model = fit_model(real, {.week_start = whole_seconds(-(23L * 3600 + 27L * 60))});
  ASSERT_TRUE(model) << model.error().to_string();
  const JobTable alike = drawn(*model, {.jobs = real.size(), .seed = 1});

  for (const auto& [above, upto] : {std::pair{0.0, 1.0}, {1.0, 3.0}, {3.0, 7.0}, {7.0, 15.0}, {15.0, 1e6}}) {
    const auto expected = run_times(real, above, upto), seen = run_times(alike, above, upto);
    EXPECT_NEAR(static_cast<double>(seen.size()) / alike.size(), static_cast<double>(expected.size()) / real.size(),
                0.02);
    for (const double p : {0.1, 0.25, 0.5, 0.75, 0.9}) {
      EXPECT_LE(quantile(seen, p), quantile(expected, p + 0.05) * 1.15) << upto << " GPUs at " << p;
      EXPECT_GE(quantile(seen, p), quantile(expected, p - 0.05) / 1.15) << upto << " GPUs at " << p;
    }
  }
  const auto expected = jobs_by_hour(real), seen = jobs_by_hour(alike);
  EXPECT_NEAR(static_cast<double>(seen.size()) / static_cast<double>(expected.size()), 1, 0.15);
  for (const double p : {0.1, 0.5, 0.9}) {
    const double ratio = quantile(seen, p) / quantile(expected, p);
    EXPECT_LT(ratio, 1.6) << p;
    EXPECT_GT(ratio, 1 / 1.6) << p;
  }
  EXPECT_NEAR(offered_load(alike, 2490) / offered_load(real, 2490), 1, 0.15);
}

TEST(SyntheticModel, QueuesHaveNamesAsTracesGiveThem) {
  SyntheticModel model = *builtin_model("philly");
  model.vcs.front().name = " q\x01\n";
  const auto again = read_model(write_model(model), "model");
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(again->vcs.front().name, "q\\x01");
}

}  // namespace
}  // namespace gpusched
