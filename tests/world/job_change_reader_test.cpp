// SPDX-License-Identifier: Apache-2.0
#include "src/world/job_change_reader.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gpusched {
namespace {

// Two of one GPU, one of two tasks of two GPUs, one of half a GPU.
JobTable jobs() {
  JobTableBuilder builder;
  const auto add = [&](const char* id, std::uint32_t tasks, MilliGpu milli) {
    builder.add({.id = id,
                 .submit = whole_seconds(100),
                 .work = whole_seconds(50),
                 .shape = {.tasks = tasks, .gpu_milli_per_task = milli}});
  };
  add("a", 1, whole_gpu);
  add("c", 1, whole_gpu);
  add("wide", 2, 2 * whole_gpu);
  add("part", 1, 500);
  return *std::move(builder).build();
}

Cluster cluster() { return Cluster::homogeneous(2, 4); }

std::string error_of_changes(const std::string& rows) {
  JobTable table = jobs();
  const auto read = job_changes_from_csv("time_s,job,change,value\n" + rows, "changes.csv", table, cluster());
  return read ? "" : read.error().to_string();
}

TEST(JobChangeReader, ReadsRowsInAnyOrderAndColumnsByName) {
  JobTable table = jobs();
  const auto read = job_changes_from_csv("value,note,job,time_s,change\n-3,x,c,200.5,priority\n\n,y, a ,150,cancel\r\n",
                                         "changes.csv", table, cluster());
  ASSERT_TRUE(read.has_value()) << read.error().to_string();
  ASSERT_EQ(read->all().size(), 2u);
  EXPECT_EQ(read->all()[0].time, whole_seconds(150));
  EXPECT_EQ(read->all()[0].job, JobId{0});
  EXPECT_EQ(read->all()[0].kind, JobChange::Kind::cancel);
  EXPECT_EQ(read->all()[1].time, Time{200'500'000});
  EXPECT_EQ(read->all()[1].job, JobId{1});
  EXPECT_EQ(read->all()[1].priority, -3);
  EXPECT_TRUE(read->cancels(JobId{0}));
  EXPECT_FALSE(read->cancels(JobId{1}));
}

TEST(JobChangeReader, SaysWhatIsWrongInOneLine) {
  EXPECT_EQ(error_of_changes("150,d,cancel,\n"), "changes.csv:2: job: no job 'd' is in the trace");
  EXPECT_EQ(error_of_changes("150,a,stop,\n"), "changes.csv:2: change: expected cancel, priority or gpus, not 'stop'");
  EXPECT_EQ(error_of_changes("150,a,cancel,4\n"), "changes.csv:2: value: expected none with cancel, not '4'");
  EXPECT_EQ(error_of_changes("150,a,priority,\n"), "changes.csv:2: value: expected a whole number, not ''");
  EXPECT_EQ(error_of_changes("150,a,priority,99999999999\n"),
            "changes.csv:2: value: expected a whole number, not '99999999999'");
  EXPECT_EQ(error_of_changes("soon,a,cancel,\n"), "changes.csv:2: time_s: expected seconds");
  EXPECT_EQ(error_of_changes("100,a,cancel,\n"),
            "changes.csv:2: time_s: expected a time after the submission of job 'a', at 100.000000 s");
  EXPECT_EQ(error_of_changes("150,a,cancel\n"), "changes.csv:2: expected 4 fields, not 3");
  EXPECT_EQ(error_of_changes("150,a,cancel,\n150,a,cancel,\n"),
            "changes.csv:3: time_s: expected one change of job 'a' at an instant, and this is the second");
  EXPECT_EQ(error_of_changes("150,a,gpus,0\n"), "changes.csv:2: value: expected a number of GPUs from 1, not '0'");
  EXPECT_EQ(error_of_changes("150,a,gpus,9\n"), "changes.csv:2: value: the cluster does not hold 9 GPUs for job 'a'");
  EXPECT_EQ(error_of_changes("150,wide,gpus,3\n"),
            "changes.csv:2: value: expected a number of GPUs from 1, a multiple of the 2 of a task, not '3'");
  EXPECT_EQ(error_of_changes("150,part,gpus,1\n"),
            "changes.csv:2: job: job 'part' does not ask for whole GPUs, so that its size cannot change");
  EXPECT_EQ(error_of_changes("150,\"a,cancel,\n"),
            "changes.csv:2: expected a closing quote before a comma or the line's end");
  EXPECT_EQ(error_of_changes(""), "changes.csv: no change in it");
}

TEST(JobChangeReader, AddsTheSizesThatNoJobAskedFor) {
  JobTable table = jobs();
  const auto shapes = static_cast<std::uint32_t>(table.shapes().size());
  const auto read =
      job_changes_from_csv("time_s,job,change,value\n150,wide,gpus,8\n160,a,gpus,3\n170,c,gpus,3\n180,a,gpus,1\n",
                           "changes.csv", table, cluster());
  ASSERT_TRUE(read.has_value()) << read.error().to_string();
  EXPECT_EQ(table.shapes().size(), shapes + 2);
  EXPECT_EQ(read->all()[0].shape, shapes);
  EXPECT_EQ(table.shapes()[shapes].tasks, 4u);
  EXPECT_EQ(table.shapes()[shapes].gpu_milli_per_task, 2 * whole_gpu);
  EXPECT_EQ(read->all()[1].shape, shapes + 1);
  EXPECT_EQ(read->all()[2].shape, shapes + 1);
  EXPECT_EQ(read->all()[3].shape, table.shape_id(JobId{0}));
}

TEST(JobChangeReader, NeedsAHeader) {
  JobTable table = jobs();
  const auto read = job_changes_from_csv("time_s,job,change\n", "changes.csv", table, cluster());
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().to_string(), "changes.csv:1: value: expected a header with time_s, job, change and value");
}

}  // namespace
}  // namespace gpusched
