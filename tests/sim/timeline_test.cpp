// SPDX-License-Identifier: Apache-2.0
// timeline.csv of runs small enough to be worked out by hand.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "src/base/output_folder.hpp"
#include "src/sim/replay.hpp"
#include "src/sim/report.hpp"
#include "tests/support/files.hpp"

namespace gpusched::test {
namespace {

// Runs the scenario's one policy on jobs of the given rows and writes its files; gives the path of timeline.csv.
std::string timeline_of(const TempFolder& folder, Scenario scenario, const std::string& rows, bool asked = true) {
  scenario.trace = folder.write("jobs.csv", "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n" + rows);
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto input = load_replay(scenario, registry);
  if (!input) return "load: " + input.error().to_string();
  ReplayProgress progress;
  const auto runs = run_replay(*input, registry, 1, {.job_files = true, .timeline = asked}, progress);
  if (!runs || !runs->front().why_unfinished.empty()) return "run";
  auto out = OutputFolder::open(folder.path() + "/out", manifest_name);
  if (!out) return "open: " + out.error().to_string();
  const auto written = write_policy_files(*out, *input, runs->front());
  return written ? folder.path() + "/out/" + runs->front().folder + "/timeline.csv" : "write";
}

TEST(Timeline, HasARowForEachInstantAtWhichAnAmountChanges) {
  const TempFolder folder;
  Scenario scenario;
  scenario.cluster = "1x2";
  scenario.policies = {"fifo"};
  // b waits for a; c, half a GPU, waits for b; d ends when e is submitted, and changes nothing else.
  const std::string file =
      timeline_of(folder, scenario, "a,0,10,2,1000\nb,4,5,2,1000\nc,6,2,1,500\nd,20,5,1,1000\ne,25,1,1,1000\n");
  EXPECT_EQ(bytes_of(file),
            "time_s,waiting_jobs,running_jobs,waiting_gpus,used_gpus,up_gpus\n"
            "0,0,1,0,2,2\n"
            "4,1,1,2,2,2\n"
            "6,2,1,2.5,2,2\n"
            "10,1,1,0.5,2,2\n"
            "15,0,1,0,0.5,2\n"
            "17,0,0,0,0,2\n"
            "20,0,1,0,1,2\n"
            "26,0,0,0,0,2\n");
}

TEST(Timeline, TellsWhatIsInService) {
  const TempFolder folder;
  Scenario scenario;
  scenario.cluster = "2x2";
  scenario.policies = {"fifo"};
  scenario.conditions.failures = folder.write("outages.csv", "time_s,node,event\n3,1,down\n8,1,up\n");
  EXPECT_EQ(bytes_of(timeline_of(folder, scenario, "a,0,10,4,1000\n")),
            "time_s,waiting_jobs,running_jobs,waiting_gpus,used_gpus,up_gpus\n"
            "0,0,1,0,4,4\n"
            "3,1,0,4,0,2\n"
            "8,0,1,0,4,4\n"
            "18,0,0,0,0,4\n");
}

// a holds what all may hold together. Nothing happens at 2 and 4, when b and c come, nor when b is given up at 7.
TEST(Timeline, CountsJobsThatLimitsHoldBack) {
  const TempFolder folder;
  Scenario scenario;
  scenario.cluster = folder.write("cluster.json", R"({"nodes": [{"gpus": 4}], "limits": [{"gpus": 2}]})");
  scenario.policies = {"fifo"};
  scenario.conditions.changes = folder.write("changes.csv", "time_s,job,change,value\n7,b,cancel,\n");
  EXPECT_EQ(bytes_of(timeline_of(folder, scenario, "a,0,10,2,1000\nb,2,5,2,1000\nc,4,5,1,1000\n")),
            "time_s,waiting_jobs,running_jobs,waiting_gpus,used_gpus,up_gpus\n"
            "0,0,1,0,2,4\n"
            "2,1,1,2,2,4\n"
            "4,2,1,3,2,4\n"
            "7,1,1,1,2,4\n"
            "10,0,1,0,1,4\n"
            "15,0,0,0,0,4\n");
}

TEST(Timeline, AnOlderFileGoesWhereNoneIsAskedFor) {
  const TempFolder folder;
  Scenario scenario;
  scenario.cluster = "1x2";
  scenario.policies = {"fifo"};
  const std::string file = timeline_of(folder, scenario, "a,0,10,2,1000\n");
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(timeline_of(folder, scenario, "a,0,10,2,1000\n", false), file);
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(Timeline, NeedsAFolder) {
  Scenario scenario;
  scenario.trace = "jobs.csv";
  scenario.policies = {"fifo"};
  scenario.timeline = true;
  const auto checked = check_scenario(scenario);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().to_string(), "output.timeline: expected --out FOLDER with --timeline");
}

}  // namespace
}  // namespace gpusched::test
