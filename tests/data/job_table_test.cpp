// SPDX-License-Identifier: Apache-2.0
#include "gpusched/data/job_table.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace gpusched {
namespace {

JobRecord job(std::string_view id, std::int64_t submit_s, std::int64_t work_s) {
  return {.id = id, .submit = whole_seconds(submit_s), .work = whole_seconds(work_s)};
}

TEST(JobTable, SortsBySubmissionAndKeepsTheOrderOfEqualOnes) {
  JobTableBuilder builder;
  for (const JobRecord& record : {job("late", 9, 1), job("first", 3, 2), job("second", 3, 4)}) builder.add(record);
  const JobTable jobs = *std::move(builder).build();
  ASSERT_EQ(jobs.size(), 3u);
  EXPECT_EQ(jobs.external_id(JobId{0}), "first");
  EXPECT_EQ(jobs.external_id(JobId{1}), "second");
  EXPECT_EQ(jobs.external_id(JobId{2}), "late");
  EXPECT_EQ(jobs.work(JobId{1}), whole_seconds(4));
}

TEST(JobTable, NumbersJobsWithoutIdsByTheirRowBeforeSorting) {
  JobTableBuilder builder;
  builder.add(job("", 5, 1));
  builder.add(job("", 2, 1));
  const JobTable jobs = *std::move(builder).build();
  EXPECT_EQ(jobs.external_id(JobId{0}), "1");
  EXPECT_EQ(jobs.external_id(JobId{1}), "0");
}

TEST(JobTable, KeepsIdsAsWritten) {
  JobTableBuilder builder;
  for (const std::string_view id : {"17", "3", "007", "-5", "0", "x9"}) builder.add(job(id, 0, 1));
  const JobTable jobs = *std::move(builder).build();
  std::vector<std::string> ids;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) ids.push_back(jobs.external_id(JobId{i}));
  EXPECT_EQ(ids, (std::vector<std::string>{"17", "3", "007", "-5", "0", "x9"}));
}

TEST(JobTable, RefusesAnIdThatAppearsTwice) {
  for (const std::string_view twin : {"4", "a"}) {
    JobTableBuilder builder;
    for (const std::string_view id : {std::string_view("9"), twin, std::string_view("7"), twin}) {
      builder.add(job(id, 0, 1));
    }
    const auto jobs = std::move(builder).build();
    ASSERT_FALSE(jobs);
    EXPECT_EQ(jobs.error().field, "job_id");
    EXPECT_NE(jobs.error().message.find("'" + std::string(twin) + "' appears twice"), std::string::npos);
  }
}

TEST(JobTable, ColumnsThatNobodyFilledAreAbsentAndReadAsDefaults) {
  JobTableBuilder builder;
  builder.add(job("", 0, 1));
  const JobTable jobs = *std::move(builder).build();
  EXPECT_FALSE(jobs.has_users() || jobs.has_groups() || jobs.has_vcs() || jobs.has_names() || jobs.has_estimates() ||
               jobs.has_statuses() || jobs.has_attempts() || jobs.has_priorities() || jobs.has_deadlines());
  EXPECT_EQ(jobs.users()[jobs.user(JobId{0})], "");
  EXPECT_EQ(jobs.estimate(JobId{0}), Time::max());
  EXPECT_EQ(jobs.attempts(JobId{0}), 1u);
  EXPECT_EQ(jobs.attempt_work(JobId{0}, 0), whole_seconds(1));
}

TEST(JobTable, ColumnsThatStartLateReadAsDefaultsBefore) {
  JobTableBuilder builder;
  const Time attempts[] = {whole_seconds(2), whole_seconds(3)};
  JobRecord full = job("", 1, 5);
  full.user = "ann";
  full.group = "g";
  full.vc = "vc1";
  full.name = "train";
  full.family = "resnet";
  full.estimate = whole_seconds(60);
  full.deadline = whole_seconds(600);
  full.status = JobStatus::killed;
  full.priority = -2;
  full.attempts = attempts;
  builder.add(job("", 2, 1));
  builder.add(full);
  builder.add(job("", 3, 7));
  const JobTable jobs = *std::move(builder).build();  // the full one comes first
  EXPECT_EQ(jobs.users()[jobs.user(JobId{0})], "ann");
  EXPECT_EQ(jobs.groups()[jobs.group(JobId{0})], "g");
  EXPECT_EQ(jobs.vcs()[jobs.vc(JobId{0})], "vc1");
  EXPECT_EQ(jobs.names()[jobs.name(JobId{0})], "train");
  EXPECT_EQ(jobs.families()[jobs.family(JobId{0})], "resnet");
  EXPECT_EQ(jobs.estimate(JobId{0}), whole_seconds(60));
  EXPECT_EQ(jobs.deadline(JobId{0}), whole_seconds(600));
  EXPECT_EQ(jobs.status(JobId{0}), JobStatus::killed);
  EXPECT_EQ(to_string(jobs.status(JobId{0})), "killed");
  EXPECT_EQ(jobs.priority(JobId{0}), -2);
  ASSERT_EQ(jobs.attempts(JobId{0}), 2u);
  EXPECT_EQ(jobs.attempt_work(JobId{0}, 1), whole_seconds(3));
  for (const JobId plain : {JobId{1}, JobId{2}}) {
    EXPECT_EQ(jobs.user(plain), 0u);
    EXPECT_EQ(jobs.deadline(plain), Time::max());
    EXPECT_EQ(jobs.status(plain), JobStatus::unknown);
    EXPECT_EQ(jobs.attempts(plain), 1u);
  }
  EXPECT_EQ(jobs.attempt_work(JobId{2}, 0), whole_seconds(7));
}

TEST(JobTable, SharesEqualShapes) {
  JobTableBuilder builder;
  for (const std::string_view spec : {"A100", "", "A100", "V100|A100"}) {
    JobRecord record = job("", 0, 1);
    record.shape = {.tasks = 2, .gpu_milli_per_task = whole_gpu};
    record.gpu_spec = spec;
    builder.add(record);
  }
  const JobTable jobs = *std::move(builder).build();
  EXPECT_EQ(jobs.shapes().size(), 3u);
  EXPECT_EQ(jobs.shape_id(JobId{0}), jobs.shape_id(JobId{2}));
  EXPECT_EQ(jobs.gpu_specs()[jobs.shape(JobId{3}).gpu_spec], "V100|A100");
  EXPECT_EQ(jobs.gpu_specs()[jobs.shape(JobId{1}).gpu_spec], "");
}

TEST(Shape, KnowsItsGpus) {
  EXPECT_EQ((Shape{.tasks = 3, .gpu_milli_per_task = 2000}).gpu_milli(), 6000);
  EXPECT_FALSE((Shape{.gpu_milli_per_task = 2000}).is_share());
  EXPECT_FALSE((Shape{.gpu_milli_per_task = 0}).is_share());
  EXPECT_TRUE((Shape{.gpu_milli_per_task = 250}).is_share());
}

TEST(NameTable, NumbersInOrderOfFirstAppearance) {
  NameTable names;
  EXPECT_EQ(names.intern("b"), 0u);
  EXPECT_EQ(names.intern("a"), 1u);
  EXPECT_EQ(names.intern("b"), 0u);
  EXPECT_EQ(names.find("a"), 1u);
  EXPECT_EQ(names.find("c"), no_index);
  EXPECT_EQ(names.size(), 2u);
}

}  // namespace
}  // namespace gpusched
