// SPDX-License-Identifier: Apache-2.0
// --columns: which column is what, in which unit, of files of many forms.
#include <gtest/gtest.h>

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

Result<Trace> csv(const std::string& text, const std::string& columns, bool drop_bad_rows = false) {
  return trace_of(text, {.columns = columns, .drop_bad_rows = drop_bad_rows});
}

TEST(Columns, HaveUnits) {
  struct Case {
    const char *submit, *duration, *submit_unit, *duration_unit, *job;
  };
  for (const Case& one : {Case{"0.5", "4.1625", "h", "h", "0 1800 14985 2"},
                          Case{"1740988800123", "1500", "ms", "ms", "0 1740988800.123 1.5 2"},
                          Case{"1740988800123456", "1500000", "us", "us", "0 1740988800.123456 1.5 2"},
                          Case{"1740988800123456789", "1500000000", "ns", "ns", "0 1740988800.123456 1.5 2"},
                          Case{"2", "90", "d", "min", "0 172800 5400 2"}, Case{"2", "1.5", "s", "d", "0 2 129600 2"}}) {
    const std::string text = std::string("t,d,n\n") + one.submit + "," + one.duration + ",2\n";
    EXPECT_EQ(short_jobs(csv(
                  text, std::string("submit=t:") + one.submit_unit + ",duration=d:" + one.duration_unit + ",gpus=n")),
              (Lines{one.job}));
  }
}

TEST(Columns, OfOneColumnHaveOneUnit) {
  const std::string log = "t,n,d\n2,1,2\n4,1,3\n";
  const auto both = trace_of(log, {.columns = "submit=t,gpus=n,duration=d:h,estimate=d"});
  EXPECT_NE(error_of(both).find("duration=d:h and estimate=d: expected one unit for a column"), std::string::npos)
      << error_of(both);
  EXPECT_TRUE(trace_of(log, {.columns = "submit=t,gpus=n,duration=d:h,estimate=d:h"}));
}

// One column in milliseconds beside another in seconds.
TEST(Columns, AStartCenturiesBehindItsSubmissionIsBad) {
  const auto mixed = trace_of("t,s,d,n\n1704067200,1704067200500,10,1\n1704067300,1704067300500,10,1\n",
                              {.columns = "submit=t,start=s,duration=d,gpus=n"});
  EXPECT_NE(error_of(mixed).find("expected a start within ten years of the submission"), std::string::npos)
      << error_of(mixed);
}

TEST(Columns, SpansSayTheirUnitsThemselves) {
  const std::string text = "t,d,w,n\n0,\"1 day, 6:00:16\",16:00:00,2\n1,PT1H,,1\n2,90 min,1-00:00:00,1\n3,60,60,1\n";
  const auto trace = csv(text, "submit=t,duration=d,estimate=w,gpus=n");
  EXPECT_EQ(short_jobs(trace), (Lines{"0 0 108016 2", "1 1 3600 1", "2 2 5400 1", "3 3 60 1"}));
  EXPECT_EQ(trace->jobs.estimate(JobId{0}), whole_seconds(57600));
  EXPECT_EQ(trace->jobs.estimate(JobId{1}), Time::max());
  EXPECT_EQ(trace->jobs.estimate(JobId{2}), whole_seconds(86400));
  EXPECT_EQ(error_of(csv("t,d,n\n0,16:00,1\n", "submit=t,duration=d,gpus=n")).substr(0, 8), ":2: d: e");
}

TEST(Columns, TheOrderOfADateIsSaid) {
  const std::string text = "t,d,n\n11/12/2023 18:15:46,60,2\n";
  const std::string unsaid = error_of(csv(text, "submit=t,duration=d,gpus=n"));
  EXPECT_NE(unsaid.find("submit=COLUMN:mdy or :dmy"), std::string::npos) << unsaid;
  EXPECT_EQ(short_jobs(csv(text, "submit=t:mdy,duration=d,gpus=n")), (Lines{"0 1699812946 60 2"}));
  EXPECT_EQ(short_jobs(csv(text, "submit=t:dmy,duration=d,gpus=n")), (Lines{"0 1702318546 60 2"}));
}

TEST(Columns, AColumnWhoseNameHoldsAColonIsItself) {
  const std::string text = "t:ms,d,n\n5,60,2\n";
  EXPECT_EQ(short_jobs(csv(text, "submit=t:ms,duration=d,gpus=n")), (Lines{"0 5 60 2"}));
  EXPECT_EQ(short_jobs(csv(text, "submit=t:ms:h,duration=d,gpus=n")), (Lines{"0 18000 60 2"}));
}

TEST(Columns, OtherQuantitiesHaveUnitsToo) {
  const std::string text = "t,d,n,c,m,g,k\n0,60,500,1500,2097152,16,1\n";
  const auto trace = csv(text, "submit=t,duration=d,gpus=n:milli,cpu=c:milli,memory=m:kib,gpu_memory=g,tasks=k");
  ASSERT_TRUE(trace) << error_of(trace);
  const Shape& shape = trace->jobs.shape(JobId{0});
  EXPECT_EQ(shape.gpu_milli_per_task, 500);
  EXPECT_EQ(shape.cpu_milli_per_task, 1500);
  EXPECT_EQ(shape.memory_mib_per_task, 2048);
}

TEST(Columns, GpusMayBeResources) {
  const std::string text =
      "t,d,g,x\n0,60,gpu:volta:2,\"cpu=4,gres/gpu=2\"\n1,60,NA,\"1=4,2=64000,1001=3\"\n2,60,,cpu=4\n3,60,gpu,\n";
  const auto gres = csv(text, "submit=t,duration=d,gpus=g:gres");
  EXPECT_EQ(short_jobs(gres), (Lines{"0 0 60 2", "1 1 60 0", "2 2 60 0", "3 3 60 1"}));
  EXPECT_EQ(gres->jobs.gpu_specs()[gres->jobs.shape(JobId{0}).gpu_spec], "volta");
  EXPECT_EQ(short_jobs(csv(text, "submit=t,duration=d,gpus=x:tres")),
            (Lines{"0 0 60 2", "1 1 60 3", "2 2 60 0", "3 3 60 0"}));
  // Without the unit, no value is no number.
  EXPECT_EQ(left_out(csv(text, "submit=t,duration=d,gpus=g", true)).begin()->second, 2u);
}

// A share whose part of a GPU is not told is no job without GPUs, and a number is no resource.
TEST(Columns, ResourcesThatAreNoneAreTold) {
  for (const char* gres : {"GPU:4", "gpu=4", "PER_NODE:gpu:4", "gres:gpu:4"}) {
    EXPECT_EQ(short_jobs(csv(std::string("t,d,g\n0,60,") + gres + "\n", "submit=t,duration=d,gpus=g:gres")),
              (Lines{"0 0 60 4"}))
        << gres;
  }
  for (const char* unit : {"gres", "tres"}) {
    EXPECT_NE(error_of(csv("t,d,g\n0,60,4\n", std::string("submit=t,duration=d,gpus=g:") + unit))
                  .find(":2: g: expected resources like"),
              std::string::npos);
  }
  const auto shares = csv("t,d,g\n0,60,shard:4\n1,60,gpu:1\n", "submit=t,duration=d,gpus=g:gres");
  EXPECT_EQ(short_jobs(shares), (Lines{"0 1 60 1"}));
  EXPECT_EQ(left_out(shares).size(), 1u);
}

TEST(Columns, NamesHaveWordsForNoValueToo) {
  const auto trace =
      csv("id,t,n,d,u,a\nx,0,1,60,nan,nan\ny,0,1,60,bob,-\n", "id=id,submit=t,gpus=n,duration=d,user=u,after=a,na=-");
  ASSERT_TRUE(trace) << error_of(trace);
  EXPECT_EQ(trace->jobs.user(JobId{0}), 0u);
  EXPECT_TRUE(trace->jobs.dependencies().is_empty());
}

TEST(Columns, DelimitersAreFoundOrSaid) {
  const std::string text = "id,t,n,d\na,0,2,60\n";
  for (const char separator : {',', ';', '\t', '|'}) {
    std::string other = text;
    std::replace(other.begin(), other.end(), ',', separator);
    EXPECT_EQ(short_jobs(csv(other, "id=id,submit=t,gpus=n,duration=d")), (Lines{"a 0 60 2"})) << separator;
  }
  EXPECT_EQ(short_jobs(csv("id:t:n:d\na:0:2:60\n", "id=id,submit=t,gpus=n,duration=d,delimiter=:")),
            (Lines{"a 0 60 2"}));
  EXPECT_EQ(short_jobs(csv("id;t;n;d\na;0;2;60,5\n", "id=id,submit=t,gpus=n,duration=d,delimiter=semicolon")),
            (Lines{"a 0 60.5 2"}));
  // A thousand, or one?
  EXPECT_NE(error_of(csv("id;t;n;d\na;0;2;1,000\n", "id=id,submit=t,gpus=n,duration=d")).find("found '1,000'"),
            std::string::npos);
}

TEST(Columns, ArePositionsWhereThereIsNoHeader) {
  const std::string rows = "vmA,sub,0,2591700,4\nvmB,sub,300,900,2\n";
  const Lines jobs = {"vmA 0 2591700 4", "vmB 300 600 2"};
  EXPECT_EQ(short_jobs(csv(rows, "id=1,submit=3,end=4,gpus=5")), jobs);
  EXPECT_EQ(short_jobs(csv(rows, "id=1,submit=3:s,end=4,gpus=5,header=no")), jobs);
  const auto headed = csv("vm,subscription,created,deleted,cores\n" + rows, "id=1,submit=3,end=4,gpus=5");
  EXPECT_EQ(short_jobs(headed), jobs);
  EXPECT_TRUE(has_note(headed, "the first line is taken as a header"));
  // Names come first: these are of a table without names.
  EXPECT_EQ(short_jobs(csv("0,1,2\n5,60,2\n", "submit=0,duration=1,gpus=2")), (Lines{"0 5 60 2"}));
  EXPECT_NE(error_of(csv(rows, "id=1,submit=3,end=4,gpus=9")).find("missing column '9'"), std::string::npos);
  EXPECT_NE(error_of(csv(rows, "submit=t,end=e,gpus=n,header=no")).find("columns are positions from 1"),
            std::string::npos);
}

TEST(Columns, NoValueHasManyWords) {
  std::string text = "id,t,n,d,e\n";
  for (const char* none : {"", "NA", "N/A", "nan", "NaN", "None", "NULL", "null", "<NA>", "-"}) {
    text += std::string(none == std::string("-") ? "dash" : none) + "x,0,1,60," + none + "\n";
  }
  const auto trace = csv(text, "id=id,submit=t,gpus=n,duration=d,estimate=e,na=-");
  ASSERT_TRUE(trace) << error_of(trace);
  EXPECT_FALSE(trace->jobs.has_estimates());
  EXPECT_NE(error_of(csv(text, "id=id,submit=t,gpus=n,duration=d,estimate=e")).find("found '-'"), std::string::npos);
}

TEST(Columns, AHashInFrontOfTheHeaderIsNoPartOfAName) {
  EXPECT_EQ(short_jobs(csv("#job id,arrival time (sec),size,duration (sec)\n7,0.5,2,3\n",
                           "id=job id,submit=arrival time (sec),gpus=size,duration=duration (sec)")),
            (Lines{"7 0.5 3 2"}));
}

TEST(Columns, TakeDeadlinesAndPredecessors) {
  const auto trace =
      csv("id,t,n,d,due,pre\na,0,1,60,500,\nb,1,1,60,,a\n", "id=id,submit=t,gpus=n,duration=d,deadline=due,after=pre");
  ASSERT_TRUE(trace) << error_of(trace);
  EXPECT_EQ(trace->jobs.deadline(JobId{0}), whole_seconds(500));
  EXPECT_EQ(trace->jobs.dependencies().of(JobId{1}).size(), 1u);
}

TEST(Columns, WhatIsWrongIsNamed) {
  const auto error = [](const std::string& columns) { return error_of(csv("t,d,n\n0,60,1\n", columns)); };
  EXPECT_NE(error("submit=t:hours,duration=d,gpus=n")
                .find("submit: unknown unit 'hours'; expected one of s|ms|us|ns|"
                      "min|h|d|ymd|mdy|dmy"),
            std::string::npos)
      << error("submit=t:hours,duration=d,gpus=n");
  EXPECT_NE(error("submit=t,duration=d,gpus=n,user=n:h").find("missing column 'n:h'"), std::string::npos);
  EXPECT_NE(error("submit=t,submit=d,duration=d,gpus=n").find("submit is given twice"), std::string::npos);
  EXPECT_NE(error("submit=t,duration=d,gpus=n,delimiter=long").find("delimiter: expected one character"),
            std::string::npos);
  EXPECT_NE(error("submit=t,duration=d,gpus=n,header=maybe").find("header: expected yes or no"), std::string::npos);
  EXPECT_NE(error("submit=t,duration=d,gpus=n,delimeter=;").find("did you mean 'delimiter'"), std::string::npos);
  EXPECT_NE(error("submit=t,duration=d,gpu=n").find("did you mean 'gpus'"), std::string::npos);
}

// ---- what can hardly be meant ----

TEST(Plausibility, IsToldInAReportOfEveryTrace) {
  const auto notes = [](const std::string& rows, const std::string& columns = "submit=t,duration=d,gpus=n") {
    const auto trace = csv("t,d,n\n" + rows, columns);
    std::string text;
    if (trace) {
      for (const std::string& note : trace->report.notes) text += note + "\n";
    }
    return text;
  };
  EXPECT_EQ(notes("0,60,1\n60,3600,2\n"), "");
  EXPECT_EQ(notes("0,60,0\n60,3600,0\n"), "no job has a GPU\n");
  EXPECT_EQ(notes("5,60,1\n5,3600,1\n"), "all jobs are submitted at the same instant\n");
  EXPECT_EQ(notes("0,4.2,1\n60,1,1\n120,0.5,1\n"),
            "the median run time is 1.0 s: are the run times in minutes or hours, not in seconds?\n");
  EXPECT_EQ(notes("0,3600000,1\n60000,7200000,1\n"),
            "the median run time is 83d 08:00: are the run times in milliseconds, not in seconds?\n");
  EXPECT_EQ(notes("0,60,1\n1000000000,60,1\n"),
            "submissions span 32 years: are the times in another unit than seconds?\n");
  EXPECT_EQ(notes("0,0,1\n1,0,1\n"), "no job takes any time\n");
  EXPECT_NE(notes("0,60,1\n1,1612180000,1\n").find("the longest job runs for 51 years"), std::string::npos);
}

}  // namespace
}  // namespace gpusched
