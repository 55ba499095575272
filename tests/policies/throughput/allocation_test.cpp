// SPDX-License-Identifier: Apache-2.0
// Gavel's allocations: against the figures of its artifact, and small ones worked out by hand.
#include "src/policies/throughput/allocation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/base/python_random.hpp"
#include "src/policies/throughput/linear_program.hpp"
#include "tests/support/files.hpp"

namespace gpusched::test {
namespace {

// Every test but those of the programme itself needs a solver.
class GavelAllocation : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_lp_solver()) GTEST_SKIP() << "this build has no solver of linear programmes";
  }
};

// The instance of notebooks/figures/evaluation/hierarchical.ipynb: 18 jobs of three entities of weight 1, 2 and 3, six
// jobs each of weight 1 and 2 in turn, on three GPUs of each type.
AllocationProblem eighteen_jobs(const std::vector<std::vector<double>>& throughputs) {
  AllocationProblem problem{.gpus = {3, 3, 3}, .jobs = {}};
  for (std::uint32_t i = 0; i < throughputs.size(); ++i) {
    problem.jobs.push_back({.throughput = throughputs[i], .weight = i % 2 + 1.0, .entity = i / 6});
  }
  return problem;
}

// Normalised throughputs to three decimals, by job.
std::vector<double> water_filled(const AllocationProblem& problem) {
  const Allocation allocation = water_filling(problem, {1, 2, 3});
  std::vector<double> rounded;
  for (std::size_t job = 0; job < problem.jobs.size(); ++job) {
    rounded.push_back(std::round(1000 * normalised_throughput(problem, allocation, job)) / 1000);
  }
  return rounded;
}

// What the jobs of each entity get: (weight 1, weight 2).
std::vector<double> of_entities(const std::array<std::pair<double, double>, 3>& figures) {
  std::vector<double> jobs;
  for (const auto& [light, heavy] : figures) {
    for (int i = 0; i < 3; ++i) jobs.insert(jobs.end(), {light, heavy});
  }
  return jobs;
}

TEST_F(GavelAllocation, WaterFillingGivesTheFiguresOfTheArtifactForRandomThroughputs) {
  PythonRandom random(0);
  std::vector<std::vector<double>> throughputs(18, std::vector<double>(3));
  for (std::vector<double>& row : throughputs) {
    for (double& value : row) value = random.real();
    std::sort(row.begin(), row.end());
  }
  EXPECT_EQ(water_filled(eighteen_jobs(throughputs)), of_entities({{{0.201, 0.402}, {0.402, 0.805}, {0.604, 1.207}}}));
}

// job_table.py of the artifact, in its order.
std::vector<std::string> gavel_models() {
  std::vector<std::string> models;
  const auto add = [&](const std::string& name, const std::vector<int>& batch_sizes) {
    for (const int size : batch_sizes) models.push_back(name + " (batch size " + std::to_string(size) + ")");
  };
  add("ResNet-18", {16, 32, 64, 128, 256});
  add("ResNet-50", {16, 32, 64, 128});
  add("Transformer", {16, 32, 64, 128, 256});
  add("LM", {5, 10, 20, 40, 80});
  add("Recommendation", {512, 1024, 2048, 4096, 8192});
  models.insert(models.end(), {"A3C", "CycleGAN"});
  return models;
}

TEST_F(GavelAllocation, WaterFillingGivesTheFiguresOfTheArtifactForMeasuredThroughputs) {
  const std::string name = "profiles/gavel/gavel_simulation_throughputs.json", path = real_trace(name);
  GPUSCHED_NEEDS_TRACE(path, name);
  const auto measured = nlohmann::json::parse(std::ifstream(path));
  const std::vector<std::string> models = gavel_models();
  PythonRandom random(0);
  std::vector<std::vector<double>> throughputs;
  for (int i = 0; i < 18; ++i) {
    const std::string key = "('" + models[random.below(static_cast<std::uint32_t>(models.size()))] + "', 1)";
    throughputs.emplace_back();
    for (const char* type : {"k80", "p100", "v100"}) throughputs.back().push_back(measured[type][key]["null"]);
  }
  EXPECT_EQ(water_filled(eighteen_jobs(throughputs)), of_entities({{{0.194, 0.387}, {0.387, 0.775}, {0.581, 1.162}}}));
}

void expect_near(const Allocation& allocation, const Allocation& expected) {
  ASSERT_EQ(allocation.size(), expected.size());
  for (std::size_t job = 0; job < expected.size(); ++job) {
    for (std::size_t type = 0; type < expected[job].size(); ++type) {
      EXPECT_NEAR(allocation[job][type], expected[job][type], 1e-6) << "job " << job << ", type " << type;
    }
  }
}

// Nobody can be better off than each on a GPU of its own, and only the first job cares which.
TEST_F(GavelAllocation, MaxMinLetsJobsHaveWhatTheyAreFastOn) {
  const AllocationProblem problem{.gpus = {1, 1}, .jobs = {{.throughput = {2, 1}}, {.throughput = {1, 1}}}};
  const Allocation allocation = max_min_fair(problem);
  expect_near(allocation, {{1, 0}, {0, 1}});
  EXPECT_NEAR(normalised_throughput(problem, allocation, 0), 2 / 1.5, 1e-6);
}

// A gang of two GPUs gets half the time of a job of one: they hold as much.
TEST_F(GavelAllocation, MaxMinIsFairInGpuTime) {
  const AllocationProblem problem{.gpus = {2},
                                  .jobs = {{.throughput = {1}, .gpus = 2}, {.throughput = {1}, .count = 2}}};
  expect_near(max_min_fair(problem), {{1. / 3}, {2. / 3}});
}

// The first job needs 5 s of the fast GPU whatever the others do.
TEST_F(GavelAllocation, MakespanGivesTheLongestJobTheFastGpu) {
  const AllocationProblem problem{
      .gpus = {1, 1}, .jobs = {{.throughput = {2, 1}, .remaining = 10}, {.throughput = {2, 1}, .remaining = 4}}};
  expect_near(least_makespan(problem), {{1, 0}, {0, 1}});
}

// Together the GPUs do 3 of work a second: 3 s for the 9 of three jobs.
TEST_F(GavelAllocation, MakespanSharesGpus) {
  const AllocationProblem problem{.gpus = {1, 1}, .jobs = {{.throughput = {2, 1}, .count = 3, .remaining = 3}}};
  expect_near(least_makespan(problem), {{1. / 3, 1. / 3}});
}

// Two jobs of one entity and one of another: they rise as 1:1:2 until the third has a GPU, then the others go on.
TEST_F(GavelAllocation, WaterFillingGoesOnWhereAJobIsStuck) {
  const AllocationProblem problem{
      .gpus = {2.5},
      .jobs = {{.throughput = {1}, .entity = 0}, {.throughput = {1}, .entity = 0}, {.throughput = {1}, .entity = 1}}};
  expect_near(water_filling(problem, {1, 1}), {{0.75}, {0.75}, {1}});
  expect_near(water_filling(problem, {1, 3}), {{0.75}, {0.75}, {1}});
  expect_near(water_filling(problem, {2, 1}), {{5. / 6}, {5. / 6}, {5. / 6}});
}

double ratio(const AllocationJob& job, double throughput) {
  return (job.elapsed + job.remaining / throughput) / job.isolated;
}

// Both need 20 s on half of the GPU, and the first lost 10 s: 1 / (2 R - 1) + 1 / (2 R) = 1 for the ratio R of both.
TEST_F(GavelAllocation, FinishTimeFairnessMakesUpForWaiting) {
  const AllocationProblem problem{.gpus = {1},
                                  .jobs = {{.throughput = {1}, .remaining = 10, .elapsed = 10, .isolated = 20},
                                           {.throughput = {1}, .remaining = 10, .isolated = 20}}};
  const Allocation allocation = finish_time_fair(problem);
  const double golden = (std::sqrt(5.0) - 1) / 2;
  EXPECT_NEAR(allocation[0][0], golden, 1e-5);
  EXPECT_NEAR(allocation[1][0], 1 - golden, 1e-5);
  EXPECT_NEAR(ratio(problem.jobs[0], allocation[0][0]), (3 + std::sqrt(5.0)) / 4, 1e-5);
}

// The only job cannot have less than its time at full speed, though it waited for ages.
TEST_F(GavelAllocation, FinishTimeFairnessOfOneJobIsItsFastestGpu) {
  const AllocationProblem problem{.gpus = {1, 1},
                                  .jobs = {{.throughput = {1, 3}, .remaining = 1e-6, .elapsed = 1e9, .isolated = 5}}};
  expect_near(finish_time_fair(problem), {{0, 1}});
}

// Against all allocations of two jobs to two GPUs in steps of a hundredth.
TEST_F(GavelAllocation, FinishTimeFairnessIsTheLeastGreatestRatio) {
  PythonRandom random(1);
  const auto number = [&](double low, double high) { return low + (high - low) * random.real(); };
  for (int trial = 0; trial < 20; ++trial) {
    AllocationProblem problem{.gpus = {1, 1}, .jobs = {}};
    for (int i = 0; i < 2; ++i) {
      AllocationJob job{.throughput = {number(0.1, 1), number(0.1, 1)}, .remaining = number(1, 100)};
      job.elapsed = number(0, 50);
      job.isolated = number(0, 50) + job.remaining / isolated_throughput(problem.gpus, job, 2);
      problem.jobs.push_back(std::move(job));
    }
    const auto greatest = [&](const Allocation& allocation) {
      double worst = 0;
      for (std::size_t i = 0; i < 2; ++i) {
        const AllocationJob& job = problem.jobs[i];
        const std::vector<double>& fractions = allocation[i];
        worst = std::max(worst, ratio(job, fractions[0] * job.throughput[0] + fractions[1] * job.throughput[1]));
      }
      return worst;
    };
    double best = std::numeric_limits<double>::infinity();
    for (int fast = 0; fast <= 100; ++fast) {
      for (int slow = 0; slow <= 100 - fast; ++slow) {
        const double a = fast / 100., b = slow / 100.;  // nothing is left over: the other job takes what it can
        for (const double other : {std::max(0., 1 - a - (1 - b)), 1 - a}) {
          best = std::min(best, greatest({{a, b}, {other, std::min(1 - b, 1 - other)}}));
        }
      }
    }
    const double ours = greatest(finish_time_fair(problem));
    EXPECT_LE(ours, best * (1 + 1e-5)) << "trial " << trial;
    EXPECT_GE(ours, best * 0.95) << "trial " << trial;
  }
}

TEST_F(GavelAllocation, AJobAloneOnItsShareHasAtMostAllOfItsTime) {
  const AllocationJob job{.throughput = {1, 4}, .gpus = 2};
  EXPECT_DOUBLE_EQ(isolated_throughput({6, 2}, job, 8), 0.5 * (6 * 1 + 2 * 4) / 8);  // one GPU of two is half the time
  EXPECT_DOUBLE_EQ(isolated_throughput({6, 2}, job, 2), (6 * 1 + 2 * 4) / 8.);
}

TEST_F(GavelAllocation, AJobStaysWhereItCanRun) {
  const AllocationProblem problem{.gpus = {1, 1}, .jobs = {{.throughput = {0, 1}}, {.throughput = {4, 3}}}};
  for (const Allocation& allocation : {max_min_fair(problem), water_filling(problem, {1})}) {
    EXPECT_EQ(allocation[0][0], 0);
    EXPECT_NEAR(allocation[0][1], 1, 1e-6);
    EXPECT_NEAR(allocation[1][0], 1, 1e-6);
  }
}

TEST(LinearProgram, FindsAnOptimumOrThatThereIsNone) {
  if (!has_lp_solver()) GTEST_SKIP() << "this build has no solver of linear programmes";
  LinearProgram program;  // 3 x + 2 y, x + y <= 4, x + 3 y <= 6, x <= 3
  const int sum = program.add_row(-LinearProgram::unbounded, 4);
  const int other = program.add_row(-LinearProgram::unbounded, 6);
  program.add_column(3, 3);
  program.put(sum, 1);
  program.put(other, 1);
  program.add_column(2);
  program.put(sum, 1);
  program.put(other, 3);
  const auto optimum = program.solve();
  ASSERT_TRUE(optimum.has_value());
  EXPECT_NEAR((*optimum)[0], 3, 1e-9);
  EXPECT_NEAR((*optimum)[1], 1, 1e-9);
  program.bound_row(other, 100, LinearProgram::unbounded);
  EXPECT_FALSE(program.solve().has_value());
}

}  // namespace
}  // namespace gpusched::test
