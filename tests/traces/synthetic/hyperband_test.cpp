// SPDX-License-Identifier: Apache-2.0
// Searches for hyperparameters: their rungs by Algorithm 1 of the Hyperband paper, and what waits for what.
#include "traces/synthetic/hyperband.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "traces/synthetic/trace_model.hpp"

namespace gpusched::test {
namespace {

HyperbandModel model_of(std::string_view settings) { return hyperband_model(settings).value(); }

// R = 81 r and eta = 3, the paper's example: n = ceil(5 / (s + 1) 3^s) for s = 4 .. 0.
TEST(HyperbandRungs, AreThoseOfAlgorithmOne) {
  const std::vector<HyperbandRung> rungs = rungs_of_study(model_of("least_s=1,most_s=81"));
  EXPECT_EQ(rungs, (std::vector<HyperbandRung>{{4, 81, 1},
                                               {4, 27, 3},
                                               {4, 9, 9},
                                               {4, 3, 27},
                                               {4, 1, 81},
                                               {3, 34, 3},
                                               {3, 11, 9},
                                               {3, 3, 27},
                                               {3, 1, 81},
                                               {2, 15, 9},
                                               {2, 5, 27},
                                               {2, 1, 81},
                                               {1, 8, 27},
                                               {1, 2, 81},
                                               {0, 5, 81}}));
}

TEST(HyperbandRungs, OfSuccessiveHalvingAreTheFirstBracket) {
  EXPECT_EQ(rungs_of_study(model_of("eta=2,least_s=10,most_s=45,halving=true")),
            (std::vector<HyperbandRung>{{2, 4, 11.25}, {2, 2, 22.5}, {2, 1, 45}}));
}

// Three jobs of 10 s, then the best goes on for 20 s more.
TEST(HyperbandTrace, OfOneStudyByHand) {
  const JobTable jobs =
      generate_hyperband(model_of("least_s=10,most_s=30,halving=true,speed_sigma=0,gpus=2"), {.jobs = 4}).value();
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(jobs.submit(JobId{i}), Time{});
    EXPECT_EQ(jobs.work(JobId{i}), whole_seconds(i < 3 ? 10 : 20));
    EXPECT_EQ(jobs.shape(JobId{i}).gpu_milli(), 2 * whole_gpu);
    EXPECT_EQ(jobs.dependencies().of(JobId{i}).size(), i < 3 ? 0u : 3u);
  }
  EXPECT_EQ(generate_hyperband(model_of("least_s=10,most_s=30,halving=true,speed_sigma=0,resume=false"), {.jobs = 4})
                ->work(JobId{3}),
            whole_seconds(30));
}

TEST(HyperbandTrace, LetsSomeTrialsOfARungGoOnWithTheirSpeed) {
  const HyperbandModel model = model_of("least_s=10,most_s=270,halving=true,studies_per_hour=100");
  const JobTable jobs = generate_hyperband(model, {.jobs = 4000, .seed = 3}).value();
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> slowness;  // by study and trial
  std::set<std::uint32_t> studies;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    const bool first = jobs.dependencies().of(job).empty();
    studies.insert(jobs.group(job));
    const std::pair key{jobs.group(job), jobs.name(job)};
    if (first) {
      EXPECT_FALSE(slowness.contains(key));
      slowness[key] = to_seconds(jobs.work(job)) / 10;
      continue;
    }
    ASSERT_TRUE(slowness.contains(key));
    const double rungs[] = {20, 60, 180};
    const double ratio = to_seconds(jobs.work(job)) / slowness[key];
    EXPECT_TRUE(std::any_of(std::begin(rungs), std::end(rungs), [&](double run_s) {
      return std::abs(ratio / run_s - 1) < 1e-5;
    })) << ratio;
    for (const JobId other : jobs.dependencies().of(job)) EXPECT_EQ(jobs.group(other), jobs.group(job));
  }
  EXPECT_EQ(studies.size(), 100u);  // of 27 + 9 + 3 + 1 trials
}

TEST(HyperbandTrace, IsTheBeginningOfALongerOne) {
  const HyperbandModel model = model_of("");
  const JobTable brief = generate_hyperband(model, {.jobs = 70, .seed = 5}).value();
  const JobTable longer = generate_hyperband(model, {.jobs = 300, .seed = 5}).value();
  for (std::uint32_t i = 0; i < brief.size(); ++i) {
    EXPECT_EQ(brief.submit(JobId{i}), longer.submit(JobId{i}));
    EXPECT_EQ(brief.work(JobId{i}), longer.work(JobId{i}));
    EXPECT_EQ(brief.dependencies().of(JobId{i}).size(), longer.dependencies().of(JobId{i}).size());
  }
}

TEST(HyperbandTrace, HasTheLoadAskedFor) {
  const JobTable jobs =
      generate_hyperband(model_of(""), {.jobs = 2000, .offered_load = 0.8, .cluster_gpus = 32, .seed = 1}).value();
  EXPECT_NEAR(offered_load(jobs, 32), 0.8, 1e-6);
  EXPECT_EQ(generate_hyperband(model_of(""), {.jobs = 5, .offered_load = 0.8, .cluster_gpus = 32}).error().to_string(),
            "load: the jobs drawn are all of one study; ask for more jobs");
}

TEST(HyperbandTrace, OfALoadForWhichTimesWouldOverflowIsRefused) {
  const SyntheticOptions options{.jobs = 2000, .offered_load = 1e-10, .cluster_gpus = 16};
  const auto jobs = generate_hyperband(model_of(""), options);
  ASSERT_FALSE(jobs);
  EXPECT_EQ(jobs.error().to_string(), "load: expected a trace of at most 1e8 hours");
}

TEST(HyperbandModel, IsNamedWrittenAndReadAgain) {
  const TraceModel named = named_trace_model("hyperband{eta=4,most_s=1e4}").value();
  EXPECT_EQ(std::get<HyperbandModel>(named).eta, 4u);
  EXPECT_EQ(read_trace_model(write_trace_model(named), "m.json").value(), named);
}

TEST(HyperbandModel, ThatCannotBeIsRefused) {
  EXPECT_EQ(hyperband_model("least_s=100,most_s=10").error().to_string(),
            "hyperband: most_s: expected at least least_s");
  EXPECT_EQ(hyperband_model("least_s=1,most_s=2000").error().to_string(),
            "hyperband: most_s: expected at most 1024 times least_s");
  EXPECT_FALSE(hyperband_model("eta=1").has_value());
  EXPECT_FALSE(hyperband_model("etta=3").has_value());
  EXPECT_EQ(read_hyperband(R"({"model": "hyperband", "most_s": 1})", "m.json").error().to_string(),
            "m.json: /most_s: expected at least least_s");
  HyperbandModel wild;
  wild.gpus = 0;
  EXPECT_FALSE(generate_hyperband(wild, {.jobs = 4}).has_value());
}

}  // namespace
}  // namespace gpusched::test
