// SPDX-License-Identifier: Apache-2.0
#include "gpusched/data/job_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace gpusched {
namespace {

JobRecord job(std::string_view id, std::int64_t submit_s, std::int64_t work_s) {
  return {.id = id, .submit = whole_seconds(submit_s), .work = whole_seconds(work_s)};
}

TEST(JobTable, SortsBySubmissionAndThenById) {
  JobTableBuilder builder;
  for (const JobRecord& record : {job("late", 9, 1), job("second", 3, 4), job("first", 3, 2)}) builder.add(record);
  const JobTable jobs = *std::move(builder).build();
  ASSERT_EQ(jobs.size(), 3u);
  EXPECT_EQ(jobs.external_id(JobId{0}), "first");
  EXPECT_EQ(jobs.external_id(JobId{1}), "second");
  EXPECT_EQ(jobs.external_id(JobId{2}), "late");
  EXPECT_EQ(jobs.work(JobId{1}), whole_seconds(4));
}

std::vector<std::string> ids_of(const JobTable& jobs) {
  std::vector<std::string> ids;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) ids.push_back(jobs.external_id(JobId{i}));
  return ids;
}

// Numbers by value, and so the numbers within text.
TEST(JobTable, SortsIdsAsPeopleCount) {
  const auto sorted = [](const std::vector<std::string_view>& ids) {
    JobTableBuilder builder;
    for (const std::string_view id : ids) builder.add(job(id, 0, 1));
    return ids_of(*std::move(builder).build());
  };
  EXPECT_EQ(sorted({"10", "9", "-3", "100"}), (std::vector<std::string>{"-3", "9", "10", "100"}));
  EXPECT_EQ(sorted({"a10", "a9", "b", "a9.2", "a09", "a", "a9.10"}),
            (std::vector<std::string>{"a", "a09", "a9", "a9.2", "a9.10", "a10", "b"}));
}

// Not a number of a name or shape remembers which row came first.
TEST(JobTable, DoesNotDependOnTheOrderOfRows) {
  std::vector<JobRecord> rows = {job("a", 5, 1), job("b", 5, 2), job("c", 0, 3), job("d", 7, 4)};
  const Time attempts[] = {whole_seconds(1), whole_seconds(3)};
  const std::vector<std::string> after = {"b", "c"};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].shape = {.tasks = static_cast<std::uint32_t>(4 - i), .gpu_milli_per_task = whole_gpu};
    rows[i].user = i < 2 ? "ann" : "bob";
    rows[i].gpu_spec = i == 3 ? "V100" : "T4";
  }
  rows[3].attempts = attempts;
  rows[3].after = after;
  const auto table = [](const std::vector<JobRecord>& records) {
    JobTableBuilder builder;
    for (const JobRecord& record : records) builder.add(record);
    return *std::move(builder).build();
  };
  const JobTable first = table(rows);
  std::sort(rows.begin(), rows.end(), [](const JobRecord& a, const JobRecord& b) { return a.id < b.id; });
  do {
    const JobTable jobs = table(rows);
    ASSERT_EQ(ids_of(jobs), (std::vector<std::string>{"c", "a", "b", "d"}));
    ASSERT_EQ(jobs.users().names(), (std::vector<std::string>{"", "bob", "ann"}));
    ASSERT_EQ(jobs.gpu_specs().names(), (std::vector<std::string>{"", "T4", "V100"}));
    ASSERT_EQ(jobs.shapes(), first.shapes());
    for (std::uint32_t i = 0; i < 4; ++i) {
      ASSERT_EQ(jobs.shape_id(JobId{i}), i);
      ASSERT_EQ(jobs.user(JobId{i}), first.user(JobId{i}));
    }
    ASSERT_EQ(jobs.attempt_work(JobId{3}, 1), whole_seconds(3));
    ASSERT_EQ(jobs.dependencies().of(JobId{3}).size(), 2u);
    ASSERT_EQ(jobs.dependencies().of(JobId{3}).front(), JobId{0});
  } while (std::next_permutation(rows.begin(), rows.end(),
                                 [](const JobRecord& a, const JobRecord& b) { return a.id < b.id; }));
}

// Names that the table began with keep their numbers.
TEST(JobTable, KeepsTheNumbersOfAnotherTable) {
  JobTableBuilder other;
  for (const std::string_view user : {"zoe", "ann"}) {
    JobRecord record = job(user, 0, 1);
    record.user = user;
    other.add(record);
  }
  const JobTable like = *std::move(other).build();
  ASSERT_EQ(like.users().names(), (std::vector<std::string>{"", "ann", "zoe"}));
  JobTableBuilder builder(like);
  for (const std::string_view user : {"new", "zoe"}) {
    JobRecord record = job(user, user == "new" ? 9 : 3, 1);
    record.user = user;
    builder.add(record);
  }
  const JobTable jobs = *std::move(builder).build();
  EXPECT_EQ(jobs.users().names(), (std::vector<std::string>{"", "ann", "zoe", "new"}));
  EXPECT_EQ(jobs.user(JobId{0}), 2u);
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
  const std::vector<std::string> written = {"17", "3", "007", "-5", "0", "x9"};
  for (std::size_t i = 0; i < written.size(); ++i) builder.add(job(written[i], static_cast<std::int64_t>(i), 1));
  EXPECT_EQ(ids_of(*std::move(builder).build()), written);
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
