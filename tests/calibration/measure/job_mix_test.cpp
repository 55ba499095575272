// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/measure/job_mix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "src/calibration/measure/backends.hpp"
#include "src/calibration/measure/processor_use.hpp"
#include "src/calibration/measure/thread_team.hpp"

namespace gpusched {
namespace {

using testing::HasSubstr;

OpenBackend cpu_with(std::uint32_t threads) {
  return [threads]() -> Result<std::unique_ptr<Backend>> { return make_cpu_backend(threads); };
}

/// A profile on which every pair of kernels slows each other by half.
DeviceProfile profile_with_slowdown(double slowdown) {
  DeviceProfile profile = shipped_profile("V100").value();
  profile.process_interference = Interference{.mode = "processes",
                                              .kernels = {"gemm", "dram", "gather", "small"},
                                              .slowdown = std::vector(4, std::vector<double>(4, slowdown))};
  return profile;
}

MixJob mix_job(const char* kind, double submit_s, double predicted_s) {
  return {.kind = kind, .step = {{Kernel::gemm_fp32, 64, 64, 64}}, .submit_s = submit_s, .predicted_s = predicted_s};
}

TEST(JobMix, SimulatedSchedulesAreThoseWorkedOutByHand) {
  const std::vector<MixJob> jobs = {mix_job("a", 0, 3.5), mix_job("b", 0.5, 2.5), mix_job("c", 1, 0.5)};
  const DeviceProfile profile = profile_with_slowdown(1.5);
  const auto ends = [&](MixSchedule schedule) {
    std::vector<double> rounded;
    const auto times = simulate_job_mix(profile, jobs, schedule, 0.5);
    for (const double end : times.value().end_s) rounded.push_back(std::round(1e4 * end) / 1e4);
    return rounded;
  };
  // With half a second to start each: 4, 3 and 1 s.
  EXPECT_EQ(ends(MixSchedule::fifo), (std::vector<double>{4, 7, 8}));
  EXPECT_EQ(ends(MixSchedule::sjf), (std::vector<double>{4, 8, 5}));
  // a alone for 0.5 s, then a and b at 1/1.5 until b is done at 5, then a (0.5 s left) beside c (1 s): a until 5.75,
  // when c has done half, which it ends alone.
  EXPECT_EQ(ends(MixSchedule::packing), (std::vector<double>{5.75, 5, 6.25}));
}

TEST(JobMix, GatesCompareMeansAndTheOrderOfSchedules) {
  const std::vector<MixJob> jobs = {mix_job("a", 0, 1), mix_job("b", 0, 1)};
  const MixTimes fifo{.start_s = {0, 1}, .end_s = {1, 2}};
  const MixTimes fifo_slower{.start_s = {0, 1.05}, .end_s = {1.05, 2.1}};
  const MixTimes packing{.start_s = {0, 0}, .end_s = {1.2, 1.2}};
  const MixTimes packing_worse{.start_s = {0, 0}, .end_s = {2, 2}};
  const std::vector<MixTimes> simulated = {fifo, fifo, packing};
  const auto good = job_mix_gates(jobs, std::vector<MixTimes>{fifo_slower, fifo_slower, packing}, simulated);
  ASSERT_EQ(good.size(), 4U);
  EXPECT_EQ(good[0].name, "job mix fifo");
  EXPECT_EQ(good[0].status, "pass");
  EXPECT_NEAR(good[0].value_ratio, 1 - 1 / 1.05, 1e-9);
  EXPECT_EQ(good[3].status, "pass");
  EXPECT_EQ(good[3].n, 2U);  // fifo and sjf are alike: no order
  EXPECT_THAT(good[3].note, HasSubstr("residual slowdown of jobs alone 5.0 %"));
  const auto bad = job_mix_gates(jobs, std::vector<MixTimes>{fifo, fifo, packing_worse}, simulated);
  EXPECT_EQ(bad[2].status, "fail");
  EXPECT_EQ(bad[3].status, "fail");
}

TEST(JobMix, RunsOnTheProcessorUnderEachSchedule) {
  const auto backend = make_cpu_backend(1);
  DeviceProfile profile = shipped_profile("CPU").value();
  const auto jobs = make_job_mix(*backend, profile, SuiteScale::tiny, 3);
  ASSERT_TRUE(jobs) << jobs.error().to_string();
  ASSERT_EQ(jobs->size(), 4U);
  const auto start_s = measure_job_start_s(cpu_with(1), *jobs);
  ASSERT_TRUE(start_s) << start_s.error().to_string();
  EXPECT_GT(*start_s, 0);
  for (const MixSchedule schedule : mix_schedules) {
    const auto times = run_job_mix(cpu_with(1), *jobs, schedule);
    ASSERT_TRUE(times) << times.error().to_string();
    for (std::size_t i = 0; i < jobs->size(); ++i) {
      EXPECT_GE(times->start_s[i], (*jobs)[i].submit_s) << to_string(schedule);
      EXPECT_GT(times->end_s[i], times->start_s[i]) << to_string(schedule);
      std::size_t beside = 0;  // jobs that run when this one starts, itself among them
      for (std::size_t k = 0; k < jobs->size(); ++k) {
        beside += times->start_s[k] <= times->start_s[i] && times->start_s[i] < times->end_s[k] ? 1 : 0;
      }
      EXPECT_LE(beside, schedule == MixSchedule::packing ? 2U : 1U);
    }
    if (schedule != MixSchedule::sjf) {
      EXPECT_TRUE(std::is_sorted(times->start_s.begin(), times->start_s.end())) << to_string(schedule);
    }
  }
}

TEST(JobMix, AJobWhoseDeviceIsLostIsOneLine) {
  const std::vector<MixJob> jobs = {mix_job("step mlp", 0, 1)};
  const OpenBackend broken = []() -> Result<std::unique_ptr<Backend>> { return unexpected("no device"); };
  const auto times = run_job_mix(broken, jobs, MixSchedule::fifo);
  ASSERT_FALSE(times);
  EXPECT_EQ(times.error().to_string(), "job 'step mlp' ended early");
}

TEST(ProcessPairs, EveryPairHasASlowdown) {
  const std::vector<KernelCall> calls = {{Kernel::fma_fp32, 4096, 64}, {Kernel::triad, 4096}, {Kernel::copy, 65536}};
  const auto slowdown = co_locate_processes(cpu_with(1), calls, 0.01);
  ASSERT_TRUE(slowdown) << slowdown.error().to_string();
  ASSERT_EQ(slowdown->size(), 3U);
  for (const auto& row : *slowdown) {
    ASSERT_EQ(row.size(), 3U);
    for (const double cell : row) {
      EXPECT_TRUE(std::isfinite(cell));
      EXPECT_GT(cell, 0);
    }
  }
  const OpenBackend broken = []() -> Result<std::unique_ptr<Backend>> { return unexpected("no device"); };
  EXPECT_THAT(co_locate_processes(broken, calls, 0.01).error().message, HasSubstr("ended early"));
}

TEST(ThreadTeam, PinsItsCallerOnlyWhileAsked) {
  const ThreadTeam team(2);
  cpu_set_t before;
  cpu_set_t during;
  cpu_set_t after;
  ::sched_getaffinity(0, sizeof before, &before);
  {
    const PinnedThread pinned = team.pin_caller();
    ::sched_getaffinity(0, sizeof during, &during);
  }
  ::sched_getaffinity(0, sizeof after, &after);
  EXPECT_EQ(CPU_COUNT(&during), 1);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(ProcessorUse, OwnWorkIsNotThatOfOthers) {
  const ProcessorUse begin{.all_s = 100, .busy_s = 40, .stolen_s = 1, .own_s = 5};
  const ProcessorUse end{.all_s = 120, .busy_s = 52, .stolen_s = 1.5, .own_s = 15};
  EXPECT_EQ(others_share(begin, end), "10.0 %");
  EXPECT_EQ(stolen_share(begin, end), "2.5 %");
  const auto now = processor_use();
  ASSERT_TRUE(now);  // /proc/stat is there wherever these tests run
  EXPECT_GT(now->all_s, now->busy_s);
  EXPECT_GE(now->busy_s, now->own_s);
}

TEST(ThreadTeam, TimesWorkInProcessorTime) {
  ThreadTeam team(2);
  team.split(2, [](std::int64_t, std::int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(30)); });
  EXPECT_LT(team.take_busy_us(), 10'000);
  double sum = 0;
  team.split(1, [&](std::int64_t, std::int64_t) {
    for (int i = 0; i < 2'000'000; ++i) sum += std::sqrt(i);
  });
  EXPECT_GT(sum, 0);
  EXPECT_GT(team.take_busy_us(), 500);
  EXPECT_EQ(team.take_busy_us(), 0);
}

}  // namespace
}  // namespace gpusched
