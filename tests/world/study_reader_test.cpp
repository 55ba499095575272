// SPDX-License-Identifier: Apache-2.0
#include "src/world/study_reader.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "src/world/service_reader.hpp"
#include "src/world/trial_losses.hpp"
#include "tests/program/run_support.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

// A study with these members besides a name.
std::string study(const std::string& members) { return R"({"studies": [{"name": "s", )" + members + "}]}"; }

const std::string lasting = R"("loss": {"law": "lasting"})";
const std::string asha = R"("search": "asha-promotion", "trials": 4, "workers": 2, "most_units": 9, "unit_s": 60)";

Result<StudyModel> studies_of(const std::string& text, JobTable& jobs, const std::string& file = "f") {
  return studies_from_json(text, file, jobs, Cluster::homogeneous(2, 4), 7);
}
std::string error_of_studies(const std::string& text, const std::string& file = "f") {
  JobTable jobs = test::table_of({{.submit = 5, .work = 1}});
  const auto model = studies_of(text, jobs, file);
  return model ? "none" : model.error().to_string();
}

TEST(StudyReader, AddsTasksBehindTheReplicas) {
  JobTable jobs = test::table_of({{.submit = 5, .work = 1, .user = "a"}, {.submit = 5, .work = 2, .user = "b"}});
  ASSERT_TRUE(services_from_json(R"({"services": [{"name": "chat", "serves": {"seconds": 1}, "replica": {}, "most": 2,
      "requests": {"rate_per_s": 2, "duration_s": 3, "arrivals": "even"}}]})",
                                 "v", jobs, Cluster::homogeneous(2, 4), 7));
  const auto model =
      studies_of(study(asha + ", " + lasting + R"(, "task": {"tasks": 2, "gpus": 0.5}, "user": "tuner", "priority": 3,
        "requested": 2, "begin_s": 10, "target_loss": 0.2, "stop_at_target": true, "asks": "early")"),
                 jobs);
  ASSERT_TRUE(model) << model.error().to_string();
  ASSERT_EQ(jobs.size(), 2u + 4 * 3 + 2);
  EXPECT_EQ(jobs.replicas(), 2u);
  EXPECT_EQ(jobs.in_front(), 14u);
  const StudySpec& spec = model->studies.front();
  EXPECT_EQ(spec.first_row, 2u);
  EXPECT_EQ(model->end_row(), 14u);
  EXPECT_EQ(jobs.external_id(JobId{4}), "s:0:2");
  EXPECT_EQ(jobs.work(JobId{2}), whole_seconds(60));
  EXPECT_EQ(jobs.work(JobId{4}), whole_seconds(6 * 60));  // from 3 units to 9
  EXPECT_EQ(jobs.estimate(JobId{4}), whole_seconds(12 * 60));
  EXPECT_EQ(jobs.shape(JobId{4}).gpu_milli_per_task, 500);
  EXPECT_EQ(jobs.users()[jobs.user(JobId{4})], "tuner");
  EXPECT_EQ(jobs.priority(JobId{4}), 3);
  EXPECT_EQ(jobs.external_id(JobId{14}), "0");
  EXPECT_EQ(spec.begin, whole_seconds(10));
  EXPECT_EQ(spec.target, 0.2);
  EXPECT_TRUE(spec.stops_at_target);
  EXPECT_FALSE(spec.asks_late);
  EXPECT_EQ(spec.loss(1, 2), 0.919);
  // Again: the rows are there. A part of the jobs has them in front.
  ASSERT_TRUE(studies_of(study(asha + ", " + lasting), jobs));
  EXPECT_EQ(jobs.size(), 16u);
  const JobTable part = jobs.slice(15, 1);
  EXPECT_EQ(part.replicas(), 2u);
  EXPECT_EQ(part.in_front(), 14u);
  EXPECT_EQ(part.external_id(JobId{14}), "1");
}

TEST(StudyReader, KnowsEverySearch) {
  for (const auto& [search, rows] :
       std::map<std::string, std::uint32_t>{{R"("search": "asha-stopping", "trials": 4)", 4},
                                            {R"("search": "random", "trials": 4)", 4},
                                            {R"("search": "halving")", 9 * 3},
                                            {R"("search": "hyperband")", 9 * 3 + 5 * 2 + 3}}) {
    JobTable jobs = test::table_of({{.work = 1}});
    const auto model = studies_of(study(search + R"(, "workers": 2, "most_units": 9, "unit_s": 60, )" + lasting), jobs);
    ASSERT_TRUE(model) << model.error().to_string();
    EXPECT_EQ(jobs.in_front(), rows) << search;
  }
}

TEST(StudyReader, TakesLossesFromATable) {
  test::TempFolder folder;
  folder.write("l.csv", "trial,units,loss,unit_s\n0,1,0.9,10\n0,5,0.5,10\n1,3,0.7,20\n2,1,1,30\n3,1,1,40\n");
  JobTable jobs = test::table_of({{.work = 1}});
  const auto model = studies_of(study(R"("search": "asha-promotion", "trials": 4, "workers": 2, "most_units": 9,
        "loss": {"table": "l.csv"})"),
                                jobs, folder.path() + "/f.json");
  ASSERT_TRUE(model) << model.error().to_string();
  const StudySpec& spec = model->studies.front();
  EXPECT_EQ(spec.loss(0, 0), 0.9);
  EXPECT_EQ(spec.loss(0, 1), 0.9);  // after 3 units
  EXPECT_EQ(spec.loss(0, 2), 0.5);
  EXPECT_EQ(spec.loss(1, 0), 0.7);  // the first one before
  EXPECT_EQ(jobs.work(JobId{5}), whole_seconds(6 * 20));
}

TEST(StudyReader, DrawsLossesThatFallByHalves) {
  JobTable jobs = test::table_of({{.work = 1}});
  const auto model = studies_of(study(R"("search": "random", "trials": 400, "workers": 2, "most_units": 4, "eta": 4,
      "unit_s": 1, "loss": {"law": "drawn", "first": 2, "least": 0, "most": 1, "half_units": [1, 1]})"),
                                jobs);
  ASSERT_TRUE(model) << model.error().to_string();
  const StudySpec& spec = model->studies.front();
  double sum = 0;
  for (std::uint32_t trial = 0; trial < 400; ++trial) {
    const double end = (2 * spec.loss(trial, 0) - 2);  // after one unit: end + (2 - end) / 2
    EXPECT_TRUE(end >= 0 && end <= 1);
    EXPECT_NEAR(spec.loss(trial, 1), end + (2 - end) / 16, 1e-12);
    sum += end;
  }
  EXPECT_NEAR(sum / 400, 0.5, 0.06);
}

TEST(StudyReader, SaysInALineWhatIsWrong) {
  test::TempFolder folder;
  folder.write("short.csv", "trial,units,loss\n0,1,0.5\n");
  folder.write("bad.csv", "trial,units,loss\n0,1,0.5\n0,1,0.4\n");
  folder.write("gap.csv", "trial,units,loss\n0,1,0.5\n2,1,0.4\n");
  const std::string file = folder.path() + "/f.json";
  const auto table = [](const std::string& name) { return asha + R"(, "loss": {"table": ")" + name + R"("})"; };
  for (const auto& [text, line] : std::map<std::string, std::string>{
           {R"({"studies": []})", "/studies: expected at least one study"},
           {study(asha), "/studies/0/loss"},
           {study(asha + R"(, "loss": {})"), "/studies/0/loss/law: expected a law, or a table"},
           {study(asha + R"(, "loss": {"law": "lasts"})"), "/studies/0/loss/law"},
           {study(asha + ", " + lasting + R"(, "searches": 1)"), "searches"},
           {study(asha + ", " + lasting + R"(, "stop_at_target": true)"), "expected a target_loss with it"},
           {study(asha + ", " + lasting + R"(, "report_gpu_hours": [2, 1])"), "in ascending order"},
           {study(asha + ", " + lasting + R"(, "report_gpu_hours": [-1, 1])"), "GPU hours from 0"},
           {study(asha + ", " + lasting + R"(, "task": {"gpus": 1.5})"), "whole GPUs, or thousandths of one"},
           {study(asha + ", " + lasting + R"(, "task": {"tasks": 9})"), "a task of 's' fits nowhere on the cluster"},
           {study(R"("search": "asha", "workers": 1, )" + lasting), "/studies/0/search"},
           {study(R"("search": "random", "workers": 1, "unit_s": 1, )" + lasting), "/studies/0/trials"},
           {study(R"("search": "halving", "trials": 9, "workers": 1, "unit_s": 1, )" + lasting),
            "expected none: its brackets say how many"},
           {study(R"("search": "random", "trials": 1, "workers": 1, "most_units": 10, "unit_s": 1, )" + lasting),
            "expected least_units times a power of eta, which is 3"},
           {study(R"("search": "random", "trials": 1, "workers": 1, )" + lasting), "expected seconds"},
           {study(table("short.csv")), "expected losses of 4 trials, not of 1"},
           {study(table("bad.csv")), "bad.csv:3: units: expected more than in the trial's row above"},
           {study(table("gap.csv")), "expected rows of trial 1"},
           {study(table("none.csv")), "none.csv"}}) {
    const std::string found = error_of_studies(text, file);
    EXPECT_NE(found.find(line), std::string::npos) << text << ": " << found;
    EXPECT_EQ(found.find('\n'), std::string::npos) << found;
  }
}

}  // namespace
}  // namespace gpusched
