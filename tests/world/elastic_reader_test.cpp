// SPDX-License-Identifier: Apache-2.0
// Files of elastic jobs: what each entry means, and one line for each that is wrong.
#include "src/world/elastic_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/program/run_support.hpp"

namespace gpusched::test {
namespace {

JobTable some_jobs() {
  return table_of(
      {{.submit = 0, .work = 10, .gpus = 2, .family = "resnet"},
       {.submit = 0, .work = 10, .family = "resnet", .shape = {.tasks = 2, .gpu_milli_per_task = 2 * whole_gpu}},
       {.submit = 0, .work = 10, .gpus = 1, .family = "bert"},
       {.submit = 0, .work = 10, .family = "bert", .shape = {.gpu_milli_per_task = 500}},
       {.submit = 0, .work = 10, .gpus = 64, .family = "resnet"}});
}

Result<ElasticJobs> read(const std::string& text) {
  static const JobTable jobs = some_jobs();
  return elastic_from_json(text, "e.json", jobs);
}

std::string error_of_curves(const std::string& text) {
  const auto read_jobs = read(text);
  return read_jobs ? "" : read_jobs.error().to_string();
}

std::vector<RatePpm> rates(const ElasticJobs& made, std::uint32_t job, std::uint32_t phase = 0) {
  const ElasticCurve* const curve = made.model.curve(some_jobs(), JobId{job});
  return curve == nullptr ? std::vector<RatePpm>{} : curve->phases[phase].rates;
}

using Rates = std::vector<RatePpm>;

TEST(ElasticFile, TakesSpeedsRelativeToWhatAJobAsksFor) {
  const auto made = read(R"({"families": {"resnet": {"speedup": [[1, 10], [2, 20], [4, 30], [6, 24]]}}})");
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ(made->elastic, 2u);
  EXPECT_EQ(made->outside, 1u);  // of 64 GPUs
  EXPECT_EQ(rates(*made, 0), (Rates{500'000, 1'000'000, 1'250'000, 1'500'000, 1'350'000, 1'200'000}));
  // Two GPUs a task: 2, 4 or 6 GPUs, relative to 4.
  EXPECT_EQ(rates(*made, 1), (Rates{666'667, 1'000'000, 800'000}));
  EXPECT_EQ(made->model.curve(some_jobs(), JobId{1})->min_tasks, 1u);
  EXPECT_EQ(rates(*made, 2), Rates{});  // bert
  EXPECT_EQ(rates(*made, 4), Rates{});
}

TEST(ElasticFile, LimitsSizesAndKnowsOthers) {
  const auto made = read(R"({"families": {"resnet": {"speedup": [[1, 1], [8, 8]], "min_gpus": 2, "max_gpus": 4}},
                             "others": {"speedup": [[1, 1], [2, 1.5]]}})");
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ(rates(*made, 0), (Rates{1'000'000, 1'500'000, 2'000'000}));
  EXPECT_EQ(rates(*made, 2), (Rates{1'000'000, 1'500'000}));
  EXPECT_EQ(rates(*made, 3), Rates{});  // a share of a GPU
}

TEST(ElasticFile, HasPhases) {
  const auto made = read(R"({"others": {"phases": [{"until": 0.25, "speedup": [[1, 1], [2, 1]]},
                                                   {"until": 1, "speedup": [[1, 1], [2, 2]]}]}})");
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ(rates(*made, 2, 0), (Rates{1'000'000, 1'000'000}));
  EXPECT_EQ(rates(*made, 2, 1), (Rates{1'000'000, 2'000'000}));
  const ElasticCurve& curve = *made->model.curve(some_jobs(), JobId{2});
  EXPECT_EQ(curve.left_after(0, whole_seconds(100)), whole_seconds(75));
  EXPECT_EQ(curve.phase_at(whole_seconds(76), whole_seconds(100)), 0u);
  EXPECT_EQ(curve.phase_at(whole_seconds(75), whole_seconds(100)), 1u);
}

std::string goodput(const std::string& batches, const std::string& noise) {
  return R"({"others": {"max_gpus": 4, "goodput": {)" + batches +
         R"(, "gpus_per_node": 2, "gradient_s": [0.1, 0.001], "sync_s": [0.05, 0.01], "sync_nodes_s": [0.1, 0.02],
             "gamma": 1, "noise_scale": )" +
         noise + "}}}";
}

// One batch size, so that steps alone count: 0.2 s on one GPU, 0.1 + 0.05 + 0.05 on two, 0.1 + 0.1 / 3 + 0.1 + 0.02 on
// three, 0.1 + 0.025 + 0.1 + 0.04 on four.
TEST(ElasticFile, KnowsPolluxsStepTimes) {
  const auto made = read(goodput(R"("initial_batch": 100, "most_batch": 100, "most_batch_per_gpu": 100)", "[[1, 50]]"));
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ(rates(*made, 2), (Rates{1'000'000, 1'000'000, 789'474, 754'717}));
}

// The best of many batch sizes, by the formulas themselves; a noisier gradient makes more GPUs worth more.
TEST(ElasticFile, KnowsPolluxsGoodput) {
  const auto made =
      read(goodput(R"("initial_batch": 100, "most_batch": 1600, "most_batch_per_gpu": 400)", "[[0.5, 50], [1, 5000]]"));
  ASSERT_TRUE(made) << made.error().to_string();
  const auto best = [](double gpus, double noise) {
    double most = 0;
    for (double batch = 100; batch <= std::min(1600.0, 400 * gpus); batch += 0.25) {
      const double sync = gpus == 1 ? 0 : gpus <= 2 ? 0.05 + 0.01 * (gpus - 2) : 0.1 + 0.02 * (gpus - 2);
      most = std::max(most, batch / (0.1 + 0.001 * batch / gpus + sync) * (noise + 100) / (noise + batch));
    }
    return most;
  };
  for (std::uint32_t phase = 0; phase < 2; ++phase) {
    const double noise = phase == 0 ? 50 : 5000;
    for (std::uint32_t gpus = 1; gpus <= 4; ++gpus) {
      EXPECT_NEAR(rates(*made, 2, phase)[gpus - 1], 1e6 * best(gpus, noise) / best(1, noise), 300) << gpus;
    }
  }
  EXPECT_GT(rates(*made, 2, 1)[3], 1.5 * rates(*made, 2, 0)[3]);
}

// Where the initial batch does not fit one GPU, the job needs two.
TEST(ElasticFile, KnowsHowManyGpusABatchNeeds) {
  const JobTable jobs = table_of({{.submit = 0, .work = 1, .gpus = 3}});
  const auto made = elastic_from_json(
      goodput(R"("initial_batch": 100, "most_batch": 100, "most_batch_per_gpu": 50)", "[[1, 50]]"), "e.json", jobs);
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ(made->model.curve(jobs, JobId{0})->min_tasks, 2u);
}

// One file may serve many traces and parts of them.
TEST(ElasticFile, NotesFamiliesThatNoJobHas) {
  const auto made =
      read(R"({"families": {"resnt": {"speedup": [[1, 1], [2, 2]]}}, "others": {"speedup": [[1, 1], [2, 2]]}})");
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ(made->notes, std::vector<std::string>{"e.json: /families: no job has 'resnt' (did you mean 'resnet'?)"});
}

// Also where the trace has none of them: all its jobs are rigid then.
TEST(ElasticFile, NotesThatNoJobHasAnyOfItsFamilies) {
  const auto made = read(R"({"families": {"resnt": {"speedup": [[1, 1], [2, 2]]}}})");
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ(made->elastic, 0u);
  EXPECT_TRUE(made->model.is_empty());
  EXPECT_EQ(made->notes, std::vector<std::string>{"e.json: /families: no job has 'resnt' (did you mean 'resnet'?)"});
}

TEST(ElasticFile, ThatIsWrongIsOneLine) {
  EXPECT_EQ(error_of_curves("[]"), "e.json: expected an object, not []");
  EXPECT_EQ(error_of_curves("{}"), "e.json: expected families, or others");
  EXPECT_EQ(
      error_of_curves(R"({"families": {"resnt": {"speedup": [[1, 1]]}, "resnet": {"speedup": [[300, 1]]}}})"),
      "e.json: no job of the trace is elastic by it: families differ, gangs lie outside the curves, or tasks hold no "
      "whole GPUs; /families: no job has 'resnt' (did you mean 'resnet'?)");
  EXPECT_EQ(error_of_curves(R"({"families": {"resnet": {"speedup": []}}})"),
            "e.json: /families/resnet/speedup: expected at least one point: [GPUs, speed], both above 0, GPUs "
            "ascending, not []");
  EXPECT_EQ(error_of_curves(R"({"others": {"speedup": [[1, 1], [1, 2]]}})"),
            "e.json: /others/speedup/1: expected [GPUs, speed], both above 0, GPUs ascending, not [1,2]");
  EXPECT_EQ(error_of_curves(R"({"others": {"speedup": [[1, -1]]}})"),
            "e.json: /others/speedup/0: expected [GPUs, speed], both above 0, GPUs ascending, not [1,-1]");
  EXPECT_EQ(error_of_curves(R"({"others": {"speedup": 3}})"), "e.json: /others/speedup: expected a list, not 3");
  EXPECT_EQ(error_of_curves(R"({"others": {}})"), "e.json: /others: expected one of speedup, phases and goodput");
  EXPECT_EQ(error_of_curves(R"({"others": {"speedup": [[1, 1]], "speed": 1}})"),
            "e.json: /others/speed: unknown key (did you mean 'speedup'?)");
  EXPECT_EQ(error_of_curves(R"({"others": {"speedup": [[4, 1], [8, 2]], "max_gpus": 2}})"),
            "e.json: /others/min_gpus: expected a range that the points hold");
  EXPECT_EQ(error_of_curves(R"({"others": {"phases": [{"until": 0.5, "speedup": [[1, 1]]}]}})"),
            "e.json: /others/phases: expected shares of the work that ascend to 1");
  EXPECT_EQ(error_of_curves(R"({"others": {"speedup": [[300, 1], [400, 2]]}})").substr(0, 42),
            "e.json: no job of the trace is elastic by ");
  EXPECT_EQ(
      error_of_curves(goodput(R"("initial_batch": 100, "most_batch": 50, "most_batch_per_gpu": 100)", "[[1, 50]]"))
          .substr(0, 41),
      "e.json: /others/goodput/most_batch: expec");
}

}  // namespace
}  // namespace gpusched::test
