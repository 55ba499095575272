// SPDX-License-Identifier: Apache-2.0
// Logs of Slurm: the forms that sacct prints, and which rows are one job.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/traces/core/reading.hpp"

namespace gpusched {
namespace {

using test::Counts;
using test::error_of;
using test::has_note;
using test::left_out;
using test::Lines;
using test::short_jobs;
using test::trace_of;

const std::string cluster_columns = "JobID|Cluster|User|State|Submit|Start|End|ElapsedRaw|AllocTRES|NNodes\n";

// A run of an hour that begins `hour` hours after midnight of that day in March 2025.
std::string row(const std::string& id, const std::string& cluster, const std::string& state, int day, int hour,
                int gpus = 8, const std::string& user = "ana") {
  const auto time = [&](int h) {
    return "2025-03-" + std::string(day < 10 ? "0" : "") + std::to_string(day) + "T" + (h < 10 ? "0" : "") +
           std::to_string(h) + ":00:00";
  };
  return id + "|" + cluster + "|" + user + "|" + state + "|" + time(hour) + "|" + time(hour) + "|" + time(hour + 1) +
         "|3600|cpu=4,gres/gpu=" + std::to_string(gpus) + ",node=1|1\n";
}

std::vector<std::string> ids_of(const Result<Trace>& trace) {
  Lines ids;
  for (const std::string& line : short_jobs(trace)) ids.push_back(line.substr(0, line.find(' ')));
  return ids;
}

std::uint32_t attempts_of_first(const Result<Trace>& trace) { return trace ? trace->jobs.attempts(JobId{0}) : 0; }

TEST(SacctIdentity, HoldsTheCluster) {
  const std::string log = cluster_columns + row("500", "north", "FAILED", 3, 8) +
                          row("500", "south", "COMPLETED", 3, 9) + row("501", "north", "COMPLETED", 3, 10);
  const auto trace = trace_of(log);
  EXPECT_EQ(ids_of(trace), (Lines{"north/500", "south/500", "north/501"}));
  EXPECT_TRUE(has_note(trace, "jobs of 2 clusters (north, south)"));
  EXPECT_EQ(ids_of(trace_of(log, {.where = "Cluster=south"})), (Lines{"500"}));
}

TEST(SacctIdentity, ASecondRunIsAnAttemptOnlyBehindARequeueFailureOrPreemption) {
  for (const char* state : {"REQUEUED", "PREEMPTED", "NODE_FAIL", "FAILED"}) {
    const auto trace = trace_of(cluster_columns + row("7", "c", state, 3, 8) + row("7", "c", "COMPLETED", 3, 9));
    EXPECT_EQ(ids_of(trace), (Lines{"7"})) << state;
    EXPECT_EQ(attempts_of_first(trace), 2u) << state;
  }
  for (const char* state : {"COMPLETED", "CANCELLED by 5"}) {
    const auto trace = trace_of(cluster_columns + row("7", "c", state, 3, 8) + row("7", "c", "COMPLETED", 3, 9));
    EXPECT_EQ(ids_of(trace), (Lines{"7", "7#2"})) << state;
    EXPECT_EQ(attempts_of_first(trace), 1u) << state;
    EXPECT_TRUE(has_note(trace, "1 id is used again")) << state;
  }
}

TEST(SacctIdentity, ASecondRunIsAnAttemptOnlyIfSizeAndTimeFit) {
  const std::string failed = row("7", "c", "FAILED", 3, 8);
  EXPECT_EQ(ids_of(trace_of(cluster_columns + failed + row("7", "c", "COMPLETED", 3, 9, 1))), (Lines{"7", "7#2"}));
  EXPECT_EQ(ids_of(trace_of(cluster_columns + failed + row("7", "c", "COMPLETED", 20, 9))), (Lines{"7", "7#2"}));
  EXPECT_EQ(ids_of(trace_of(cluster_columns + failed + row("7", "c", "COMPLETED", 3, 9, 8, "ben"))),
            (Lines{"7", "7#2"}));
  // It cannot follow a run that was still going on.
  const std::string within =
      "7|c|ana|COMPLETED|2025-03-03T08:10:00|2025-03-03T08:10:00|2025-03-03T08:20:00|600|cpu=4,gres/gpu=8|1\n";
  EXPECT_EQ(ids_of(trace_of(cluster_columns + failed + within)), (Lines{"7", "7#2"}));
}

// Whatever the order of rows, the same jobs have the same names.
TEST(SacctIdentity, DoesNotDependOnTheOrderOfRows) {
  Lines rows = {row("7", "a", "FAILED", 3, 8), row("7", "a", "COMPLETED", 3, 9), row("7", "a", "COMPLETED", 9, 8),
                row("7", "b", "COMPLETED", 3, 8), row("7", "a", "COMPLETED", 4, 8, 8, "ben")};
  std::sort(rows.begin(), rows.end());
  std::vector<std::string> expected;
  do {
    std::string log = cluster_columns;
    for (const std::string& one : rows) log += one;
    Lines jobs = short_jobs(trace_of(log));
    std::sort(jobs.begin(), jobs.end());
    if (expected.empty()) expected = jobs;
    EXPECT_EQ(jobs, expected);
  } while (std::next_permutation(rows.begin(), rows.end()));
  EXPECT_EQ(expected.size(), 4u);
}

// Slurm before 20.11 kept the first submission of a job that was requeued.
TEST(SacctIdentity, RunsMayShareTheirSubmission) {
  const auto run = [](const std::string& state, const std::string& start, const std::string& end, int elapsed) {
    return "7|c|ana|" + state + "|2025-03-03T08:00:00|" + start + "|" + end + "|" + std::to_string(elapsed) +
           "|cpu=4,gres/gpu=8|1\n";
  };
  const std::string first = run("REQUEUED", "2025-03-03T08:00:00", "2025-03-03T09:00:00", 3600);
  const auto twice =
      trace_of(cluster_columns + first + run("COMPLETED", "2025-03-03T09:30:00", "2025-03-03T10:00:00", 1800));
  EXPECT_EQ(short_jobs(twice), (Lines{"7 1740988800+0 5400 8"}));
  const auto waits =
      trace_of(cluster_columns + first + run("PENDING", "Unknown", "Unknown", 0) + row("8", "c", "COMPLETED", 3, 8));
  EXPECT_EQ(ids_of(waits), (Lines{"8"}));
}

// A job that goes on under another size is another job; and one that is put back before it started is no job that
// waits.
TEST(SacctIdentity, AJobOfAnotherSizeIsAnotherJobAndARequeuedOneNeedNotHaveStarted) {
  const auto resized =
      trace_of(cluster_columns +
               "7|c|ana|RESIZING|2025-03-03T08:00:00|2025-03-03T08:05:00|2025-03-03T08:35:00|1800|gres/gpu=16|2\n"
               "7|c|ana|COMPLETED|2025-03-03T08:00:00|2025-03-03T08:35:00|2025-03-03T09:35:00|3600|gres/gpu=8|1\n");
  EXPECT_EQ(short_jobs(resized), (Lines{"7 1740988800+300 1800 16", "7#2 1740990900+0 3600 8"}));
  EXPECT_TRUE(has_note(resized, "changes of a running job's size, behind which it is another job: 1"));

  const std::string columns = "JobID|State|Submit|Start|End|ElapsedRaw|ReqTRES|AllocTRES\n";
  const std::string requeued = "7|REQUEUED|2025-03-03T08:00:00|Unknown|2025-03-03T08:30:00|0|gres/gpu=8|\n";
  const std::string ended =
      "7|COMPLETED|2025-03-03T08:30:00|2025-03-03T09:00:00|2025-03-03T09:05:00|300|gres/gpu=8|gres/gpu=8\n";
  for (const bool backlog : {false, true}) {
    const auto trace = trace_of(columns + requeued + ended, {.backlog = backlog});
    EXPECT_EQ(short_jobs(trace), (Lines{"7 1740990600+1800 300 8"}));
    EXPECT_EQ(left_out(trace), (Counts{{"never started", 1}}));
  }
}

// Of a job that was put back and ended well, both runs count, or none.
TEST(SacctIdentity, ConditionsAreAskedOfTheRunThatAJobEndsWith) {
  const std::string log = cluster_columns + row("500", "north", "REQUEUED", 3, 8) +
                          row("500", "north", "COMPLETED", 3, 9) + row("501", "north", "REQUEUED", 3, 10) +
                          row("501", "north", "FAILED", 3, 11) + row("502", "south", "COMPLETED", 3, 12);
  const auto done = trace_of(log, {.where = "State=COMPLETED"});
  EXPECT_EQ(ids_of(done), (Lines{"north/500", "south/502"}));
  EXPECT_EQ(attempts_of_first(done), 2u);
  EXPECT_EQ(left_out(done), (Counts{{"not what --where asks for", 2}}));
  EXPECT_EQ(ids_of(trace_of(log, {.where = "State=COMPLETED,Cluster=north"})), Lines{"500"});
  EXPECT_FALSE(trace_of(log, {.where = "State=REQUEUED"}));
}

// The part with GPUs says where a heterogeneous job belongs.
TEST(SacctIdentity, AGangIsInThePartitionOfItsGpus) {
  const auto trace = trace_of(
      "JobID|Partition|State|Submit|Start|End|AllocTRES\n"
      "1+0|cpu|COMPLETED|2025-03-03T08:00:00|2025-03-03T08:00:00|2025-03-03T09:00:00|cpu=64,node=1\n"
      "1+1|gpu|COMPLETED|2025-03-03T08:00:00|2025-03-03T08:00:00|2025-03-03T09:00:00|cpu=8,gres/gpu=16,node=2\n");
  ASSERT_TRUE(trace) << error_of(trace);
  EXPECT_EQ(trace->jobs.vcs()[trace->jobs.vc(JobId{0})], "gpu");
}

// --exclusive takes all of a node, whatever was asked for.
TEST(SacctDemand, IsWhatAJobWasGivenWhereThatIsMore) {
  const std::string columns = "JobID|State|Submit|Start|End|ElapsedRaw|ReqTRES|AllocTRES|NNodes\n";
  const auto log = [&](const std::string& asked, const std::string& given) {
    return trace_of(columns + "7|COMPLETED|1000|1000|2000|1000|" + asked + "|" + given + "|1\n");
  };
  const auto exclusive = log("cpu=1,gres/gpu:a100=1,mem=1G", "cpu=64,gres/gpu=8,mem=100G");
  EXPECT_EQ(short_jobs(exclusive), Lines{"7 1000+0 1000 8"});
  EXPECT_EQ(exclusive->jobs.shape(JobId{0}).cpu_milli_per_task, 64'000);
  EXPECT_EQ(exclusive->jobs.gpu_specs()[exclusive->jobs.shape(JobId{0}).gpu_spec], "a100");
  EXPECT_TRUE(has_note(exclusive, "given more GPUs than they asked for (--exclusive), all of which count: 1"));
  EXPECT_EQ(short_jobs(log("cpu=16,gres/gpu=16", "cpu=8,gres/gpu=8")), Lines{"7 1000+0 1000 8"});  // it was shrunk
  const auto equal = log("cpu=1,gres/gpu=2,mem=1G", "cpu=4,gres/gpu=2,gres/gpu:a100=2,mem=2G");
  EXPECT_EQ(equal->jobs.shape(JobId{0}).cpu_milli_per_task, 1'000);
  EXPECT_EQ(equal->jobs.gpu_specs()[equal->jobs.shape(JobId{0}).gpu_spec], "a100");
  EXPECT_FALSE(has_note(equal, "--exclusive"));
}

// A month's export knows a job as waiting or running that the next knows to its end.
TEST(SacctIdentity, TheRowThatKnowsMostCounts) {
  const std::string ended =
      "7|c|ana|COMPLETED|2025-03-03T08:00:00|2025-03-03T08:10:00|2025-03-03T09:00:00|3000|cpu=4,gres/gpu=8|1\n";
  for (const char* earlier :
       {"7|c|ana|PENDING|2025-03-03T08:00:00|Unknown|Unknown|0||1\n",
        "7|c|ana|RUNNING|2025-03-03T08:00:00|2025-03-03T08:10:00|Unknown|60|cpu=4,gres/gpu=8|1\n"}) {
    for (const std::string& log : {earlier + ended, ended + earlier}) {
      const auto trace = trace_of(cluster_columns + log);
      EXPECT_EQ(short_jobs(trace), (Lines{"7 1740988800+600 3000 8"})) << log;
      EXPECT_EQ(left_out(trace), (Counts{{"the same run again", 1}})) << log;
    }
  }
}

// ---- shifted columns ----

const std::string wide_columns = "JobID|State|Submit|Start|End|ElapsedRaw|AllocTRES|SubmitLine|TimelimitRaw|User\n";
const std::string ten_minutes =
    "|COMPLETED|2025-03-03T08:00:00|2025-03-03T08:00:00|2025-03-03T08:10:00|600|gres/gpu=2|";

TEST(SacctRows, MoreFieldsThanTheHeaderAreAnErrorThatNamesTheCause) {
  const std::string log =
      wide_columns + "1" + ten_minutes + "sbatch a.sh|120|ana\n2" + ten_minutes + "env | 5|120|ben\n";
  EXPECT_EQ(error_of(trace_of(log)),
            ":3: row: expected 10 fields, found 11: a '|' in the text of SubmitLine; put such a column last; or export "
            "with another --delimiter; 1 row is bad, which --drop-bad-rows leaves out");
  EXPECT_EQ(short_jobs(trace_of(log, {.drop_bad_rows = true})), (Lines{"1 1740988800+0 600 2"}));
}

TEST(SacctRows, BarsAndLineEndsInAFreeTextAtTheEndBelongToIt) {
  const std::string log = "JobID|State|Submit|Start|End|ElapsedRaw|AllocTRES|NNodes|JobName\n1" + ten_minutes +
                          "1|a|b|c\nand a line\n\nand 2|more\n3" + ten_minutes + "1|x\n";
  const auto trace = trace_of(log);
  EXPECT_EQ(short_jobs(trace), (Lines{"1 1740988800+0 600 2", "3 1740988800+0 600 2"}));
  EXPECT_EQ(trace->jobs.names()[trace->jobs.name(JobId{0})], "a|b|c");
  EXPECT_TRUE(has_note(trace, "2 lines go on with the text of JobName"));
}

// A name in front of the text at the end: which of them holds the bar?
TEST(SacctRows, ABarThatMayStandInTwoTextsIsAnError) {
  const std::string log =
      "JobID|JobName|State|Submit|Start|End|ElapsedRaw|AllocTRES|SubmitLine\n1|a|b" + ten_minutes + "x\n";
  EXPECT_NE(error_of(trace_of(log)).find("found 10: a '|' in the text of JobName or SubmitLine"), std::string::npos)
      << error_of(trace_of(log));
}

TEST(SacctRows, ARowThatBreaksOffIsAnErrorBesideAFreeText) {
  const std::string log =
      "JobID|State|Submit|Start|End|ElapsedRaw|AllocTRES|SubmitLine\n1" + ten_minutes + "x\n2|COMPLETED\n";
  EXPECT_EQ(error_of(trace_of(log)).substr(0, 42), ":3: row: expected 8 fields, found 2; 1 row");
}

// ---- forms ----

TEST(SacctForms, OtherDelimitersAndOneAtTheEndOfRows) {
  const std::string bars =
      "JobID|State|Submit|Start|End|ElapsedRaw|NNodes|AllocTRES\n"
      "31|COMPLETED|2025-03-03T08:00:00|2025-03-03T08:00:00|2025-03-03T09:00:00|3600|1|gres/gpu=2\n";
  const Lines jobs = {"31 1740988800+0 3600 2"};
  for (const char separator : {'|', ';', ',', '\t', '^', '~', '%'}) {
    std::string log = bars;
    std::replace(log.begin(), log.end(), '|', separator);
    EXPECT_EQ(short_jobs(trace_of(log)), jobs) << separator;
    std::string ended;
    for (const char c : log) ended += c == '\n' ? std::string(1, separator) + "\n" : std::string(1, c);
    EXPECT_EQ(short_jobs(trace_of(ended)), jobs) << separator;
  }
  EXPECT_EQ(short_jobs(trace_of("JobID,State,Submit,Start,End,ElapsedRaw,AllocTRES\n31,COMPLETED,2025-03-03T08:00:00,"
                                "2025-03-03T08:00:00,2025-03-03T09:00:00,3600,\"cpu=4,gres/gpu=2,node=1\"\n")),
            jobs);
}

TEST(SacctForms, FixedWidths) {
  const auto line = [](const std::vector<std::string>& fields) {
    constexpr std::size_t widths[] = {12, 19, 19, 19, 10, 20, 10};
    std::string text;
    for (std::size_t i = 0; i < fields.size(); ++i)
      text += std::string(widths[i] - fields[i].size(), ' ') + fields[i] + " ";
    return text + "\n";
  };
  const auto table = [&](const std::string& tres) {
    std::string dashes;
    for (const int width : {12, 19, 19, 19, 10, 20, 10})
      dashes += std::string(static_cast<std::size_t>(width), '-') + " ";
    return line({"JobID", "Submit", "Start", "End", "Elapsed", "AllocTRES", "JobName"}) + dashes + "\n" +
           line({"31", "2025-03-03T08:00:00", "2025-03-03T08:00:10", "2025-03-03T09:00:10", "01:00:00", tres,
                 "my train"}) +
           line({"31.batch", "2025-03-03T08:00:10", "2025-03-03T08:00:10", "2025-03-03T09:00:10", "01:00:00", "",
                 "batch"});
  };
  const auto trace = trace_of(table("cpu=4,gres/gpu=2"));
  EXPECT_EQ(short_jobs(trace), (Lines{"31 1740988800+10 3600 2"}));
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->jobs.names()[trace->jobs.name(JobId{0})], "my train");
  const auto cut = trace_of(table("billing=8,cpu=8,gre+"));
  EXPECT_NE(error_of(cut).find("cut to the width of its column; export with -P"), std::string::npos) << error_of(cut);
  const auto cut_in_a_number = trace_of(table("billing=4+"));
  EXPECT_NE(error_of(cut_in_a_number).find("cut to the width of its column"), std::string::npos);
  const std::string usual =
      "JobID           JobName  Partition      State ExitCode \n------------ ---------- ---------- ---------- -------- "
      "\n"
      "31                train        gpu  COMPLETED      0:0 \n";
  EXPECT_NE(error_of(trace_of(usual)).find("missing column 'Submit'"), std::string::npos);
}

TEST(SacctForms, WithoutAHeaderByTheColumnsThatWereAskedFor) {
  const std::string rows =
      "31|COMPLETED|2025-03-03T08:00:00|2025-03-03T08:00:00|2025-03-03T09:00:00|3600|gres/gpu=2|1\n";
  EXPECT_EQ(short_jobs(trace_of(
                rows, {.format = "sacct", .columns = "JobID,State,Submit,Start,End,ElapsedRaw,AllocTRES,NNodes"})),
            (Lines{"31 1740988800+0 3600 2"}));
}

TEST(SacctForms, RawIdsAlone) {
  const std::string log =
      "JobIDRaw|State|Submit|Start|End|Elapsed|AllocTRES|NNodes\n"
      "21|COMPLETED|2025-03-03T08:00:00|2025-03-03T08:00:05|2025-03-03T08:10:05|00:10:00|gres/gpu=1|1\n"
      "21.batch|COMPLETED|2025-03-03T08:00:05|2025-03-03T08:00:05|2025-03-03T08:10:05|00:10:00|gres/gpu=1|1\n";
  EXPECT_EQ(short_jobs(trace_of(log)), (Lines{"21 1740988800+5 600 1"}));
}

TEST(SacctForms, GpusOfOlderVersionsStandInGres) {
  const std::string log =
      "JobID|State|Submit|Start|End|ElapsedRaw|ReqGRES|AllocGRES|NNodes|NCPUS|ReqMem\n"
      "1|COMPLETED|2019-03-03T08:00:00|2019-03-03T08:00:00|2019-03-03T08:10:00|600|gpu:2|gpu:4|2|16|64Gn\n"
      "2|COMPLETED|2019-03-03T08:00:00|2019-03-03T08:00:00|2019-03-03T08:10:00|600||gpu:tesla:2(S:0-1)|1|4|1000Mc\n"
      "3|COMPLETED|2019-03-03T08:00:00|2019-03-03T08:00:00|2019-03-03T08:10:00|600|||1|4|0\n";
  const auto trace = trace_of(log);
  EXPECT_EQ(short_jobs(trace), (Lines{"1 1551600000+0 600 4", "2 1551600000+0 600 2", "3 1551600000+0 600 0"}));
  EXPECT_EQ(trace->jobs.shape(JobId{0}).tasks, 2u);
  EXPECT_EQ(trace->jobs.shape(JobId{0}).memory_mib_per_task, 64 * 1024);
  EXPECT_EQ(trace->jobs.gpu_specs()[trace->jobs.shape(JobId{1}).gpu_spec], "tesla");
  EXPECT_EQ(trace->jobs.shape(JobId{1}).memory_mib_per_task, 4000);
}

TEST(SacctForms, GresMayBeOfANodeOrOfTheJob) {
  const auto gpus_of = [](const std::string& gres) {
    return short_jobs(
        trace_of("JobID|State|Submit|Start|End|ElapsedRaw|ReqGRES|NNodes\n"
                 "1|COMPLETED|2019-03-03T08:00:00|2019-03-03T08:00:00|2019-03-03T08:10:00|600|" +
                 gres + "|2\n"));
  };
  EXPECT_EQ(gpus_of("PER_NODE:gpu:4"), (Lines{"1 1551600000+0 600 8"}));
  EXPECT_EQ(gpus_of("PER_NODE:gpu:a100:2"), (Lines{"1 1551600000+0 600 4"}));
  EXPECT_EQ(gpus_of("PER_JOB:gpu:a100:2"), (Lines{"1 1551600000+0 600 2"}));
  EXPECT_EQ(gpus_of("gres:gpu:2"), (Lines{"1 1551600000+0 600 4"}));
  EXPECT_NE(gpus_of("PER_TASK:gpu:1").front().find("expected generic resources"), std::string::npos);
}

TEST(SacctForms, ATimeLimitThatIsNoneIsAnError) {
  const auto error = [](const std::string& column, const std::string& limit) {
    return error_of(trace_of("JobID|State|Submit|Start|End|ElapsedRaw|AllocTRES|NNodes|" + column +
                             "\n1|COMPLETED|2019-03-03T08:00:00|2019-03-03T08:00:00|2019-03-03T08:10:00|600|"
                             "gres/gpu=1|1|" +
                             limit + "\n"));
  };
  for (const char* none : {"UNLIMITED", "Partition_Limit", "", "Unknown"}) {
    EXPECT_EQ(error("TimelimitRaw", none), "no error") << none;
    EXPECT_EQ(error("Timelimit", none), "no error") << none;
  }
  EXPECT_NE(error("TimelimitRaw", "1-00:00:00").find(":2: TimelimitRaw: expected a number of minutes"),
            std::string::npos);
  EXPECT_NE(error("Timelimit", "soon").find(":2: Timelimit: expected a span"), std::string::npos);
}

TEST(SacctForms, AColumnThatMayHoldGpusIsNamedWhereItIsNotRead) {
  const std::string log =
      "JobID|State|Submit|Start|End|ElapsedRaw|AllocTRES|TRESUsageInTot\n"
      "1|COMPLETED|2019-03-03T08:00:00|2019-03-03T08:00:00|2019-03-03T08:10:00|600|cpu=4|gres/gpuutil=7\n";
  const auto trace = trace_of(log);
  EXPECT_TRUE(has_note(trace, "columns not used: TRESUsageInTot; of these, GPUs may stand in TRESUsageInTot"));
  EXPECT_TRUE(has_note(trace, "no job has a GPU"));
}

TEST(SacctForms, TimesMayHaveZonesOrBeSeconds) {
  const std::string log =
      "JobID|State|Submit|Start|End|AllocTRES\n"
      "1|COMPLETED|2023-03-26T01:59:00+0100|2023-03-26T03:00:10+0200|2023-03-26T03:10:10+0200|gres/gpu=1\n"
      "2|COMPLETED|1679792340|1679792410|1679793010|gres/gpu=1\n";
  EXPECT_EQ(short_jobs(trace_of(log)), (Lines{"1 1679792340+70 600 1", "2 1679792340+70 600 1"}));
}

TEST(SacctForms, OfSeveralPartitionsTheFirstCounts) {
  const std::string log =
      "JobID|State|Submit|Start|End|AllocTRES|Partition\n"
      "1|COMPLETED|2023-03-26T01:59:00|2023-03-26T01:59:10|2023-03-26T02:10:10|gres/gpu=1|gpu,short\n";
  const auto trace = trace_of(log);
  ASSERT_TRUE(trace) << error_of(trace);
  EXPECT_EQ(trace->jobs.vcs()[trace->jobs.vc(JobId{0})], "gpu");
}

}  // namespace
}  // namespace gpusched
