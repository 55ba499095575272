// SPDX-License-Identifier: Apache-2.0
// The one check of times, alone and in every reader.
#include "traces/core/job_times.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/base/field_parser.hpp"
#include "tests/traces/core/reading.hpp"
#include "traces/tools/trace_validate.hpp"

namespace gpusched {
namespace {

using test::Counts;
using test::error_of;
using test::has_note;
using test::left_out;
using test::Lines;
using test::short_jobs;
using test::trace_of;

Time at(const char* text) { return parse_calendar(text).value(); }
constexpr Time seconds(std::int64_t s) { return whole_seconds(s); }

JobFate fate(const LoggedTimes& times) { return judge_times(times).fate; }

// No allocation and no time.
TEST(JobTimes, WhoHeldNothingForNoTimeNeverRan) {
  const LoggedTimes cancelled{
      .submit = seconds(100), .start = seconds(900), .end = seconds(900), .elapsed = Time{}, .held_nothing = true};
  EXPECT_EQ(fate(cancelled), JobFate::never_ran);
  LoggedTimes short_one = cancelled;
  short_one.held_nothing = false;
  EXPECT_EQ(fate(short_one), JobFate::ran);
  short_one.cancelled = true;
  EXPECT_EQ(fate(short_one), JobFate::never_ran);
  LoggedTimes with_time = cancelled;
  with_time.elapsed = seconds(1);
  EXPECT_EQ(fate(with_time), JobFate::ran);
}

TEST(JobTimes, WithoutAStartAJobRanOnlyIfTheLogSaysForHowLong) {
  EXPECT_EQ(fate({.submit = seconds(100), .end = seconds(900)}), JobFate::never_ran);
  EXPECT_EQ(fate({.submit = seconds(100), .start = Time{}, .end = seconds(900)}), JobFate::never_ran);
  EXPECT_EQ(fate({.submit = seconds(100), .elapsed = Time{}}), JobFate::never_ran);
  const JudgedTimes ran = judge_times({.submit = seconds(100), .start = Time{}, .elapsed = seconds(60)});
  EXPECT_EQ(ran.fate, JobFate::ran);
  EXPECT_EQ(ran.work, seconds(60));
  EXPECT_EQ(ran.start, Time::max());
  // A log without starts: from the submission to the end.
  const JudgedTimes whole = judge_times({.submit = seconds(100), .end = seconds(900), .has_start = false});
  EXPECT_EQ(whole.work, seconds(800));
  EXPECT_EQ(fate({.submit = seconds(100), .elapsed = Time{}, .has_start = false}), JobFate::ran);
}

TEST(JobTimes, WhatDatabasesWriteForNoTimeIsNone) {
  const Time now = at("2025-03-03 08:00:00");
  EXPECT_TRUE(is_unset_time(Time{}, now));
  EXPECT_TRUE(is_unset_time(at("1970-01-01 01:00:00"), now));
  EXPECT_TRUE(is_unset_time(seconds(4294967295), now));
  EXPECT_TRUE(is_unset_time(seconds(-1), now));
  EXPECT_FALSE(is_unset_time(Time{}, Time{}));  // a log that counts from its first job
  EXPECT_FALSE(is_unset_time(seconds(3600), seconds(60)));
  EXPECT_FALSE(is_unset_time(now, now));
}

TEST(JobTimes, AStartBeforeTheSubmissionAndAnEndBeforeTheStartAreBad) {
  const JudgedTimes early = judge_times({.submit = seconds(100), .start = seconds(95), .end = seconds(200)});
  EXPECT_EQ(early.fate, JobFate::bad);
  EXPECT_EQ(early.wrong, LoggedTime::start);
  const JudgedTimes late = judge_times({.submit = seconds(100), .start = seconds(150), .end = seconds(149)});
  EXPECT_EQ(late.fate, JobFate::bad);
  EXPECT_EQ(late.wrong, LoggedTime::end);
}

// In the last night of October the clock shows 02:00 to 03:00 twice.
TEST(JobTimes, AClockThatWasPutBackExplainsLessThanAnHour) {
  const LoggedTimes waited{.submit = at("2024-10-27 02:50:00"),
                           .start = at("2024-10-27 02:05:00"),
                           .end = at("2024-10-27 04:05:00"),
                           .local = true};
  const JudgedTimes judged = judge_times(waited);
  EXPECT_EQ(judged.fate, JobFate::ran);
  EXPECT_TRUE(judged.clock_moved);
  EXPECT_EQ(judged.start, waited.submit);
  EXPECT_EQ(judged.work, seconds(7200));

  const JudgedTimes ran = judge_times({.submit = at("2024-10-27 02:40:00"),
                                       .start = at("2024-10-27 02:40:10"),
                                       .end = at("2024-10-27 02:10:10"),
                                       .local = true});
  EXPECT_EQ(ran.fate, JobFate::ran);
  EXPECT_EQ(ran.work, seconds(1800));

  // Nothing of it with a zone, on another day, or over more than an hour.
  LoggedTimes zoned = waited;
  zoned.local = false;
  EXPECT_EQ(fate(zoned), JobFate::bad);
  LoggedTimes weekday = waited;
  for (Time* time : {&weekday.submit, &weekday.start, &weekday.end}) *time += seconds(86400);
  EXPECT_EQ(fate(weekday), JobFate::bad);
  LoggedTimes longer = waited;
  longer.start = at("2024-10-27 01:45:00");
  EXPECT_EQ(fate(longer), JobFate::bad);
}

// The stated run time tells an hour more than the clock: that is evidence on any day.
TEST(JobTimes, AStatedRunTimeTellsThatAClockWasPutBack) {
  const LoggedTimes times{.submit = at("2024-11-03 01:00:00"),
                          .start = at("2024-11-03 01:50:00"),
                          .end = at("2024-11-03 01:20:00"),
                          .elapsed = seconds(1800),
                          .local = true};
  EXPECT_EQ(judge_times(times).work, seconds(1800));
  EXPECT_TRUE(judge_times(times).clock_moved);
  LoggedTimes other = times;
  other.elapsed = seconds(1900);
  other.start += seconds(86400 * 2);
  other.end += seconds(86400 * 2);
  EXPECT_EQ(fate(other), JobFate::bad);
}

TEST(JobTimes, FarOutsideAreTimesTenYearsFromTheMiddleOfMost) {
  const auto spans = [](const std::vector<std::int64_t>& submits) {
    std::vector<JobSpan> jobs;
    for (const std::int64_t submit : submits) jobs.push_back({.first = seconds(submit), .last = seconds(submit + 60)});
    return jobs;
  };
  const TimeWindow window = window_of(spans({1'600'000'000, 1'600'000'100, 5, 1'600'000'200}));
  EXPECT_TRUE(window.holds(seconds(1'600'000'000), seconds(1'600'000'300)));
  EXPECT_FALSE(window.holds(seconds(5), seconds(65)));
  // Neither of two is the odd one, and a log of forty years has its own measure.
  EXPECT_TRUE(window_of(spans({5, 1'600'000'000})).holds(seconds(5), seconds(1'600'000'000)));
  EXPECT_TRUE(window_of(spans({0, 400'000'000, 800'000'000, 1'200'000'000})).holds(Time{}, seconds(1'300'000'000)));
}

// ---- in the readers ----

const std::string sacct_columns = "JobID|State|Submit|Start|End|ElapsedRaw|AllocTRES|NNodes\n";

// It counted as a job of two hours' wait.
TEST(JobTimes, ACancelledJobOfSlurmNeverRanWhateverItsStart) {
  const std::string ran = "1|COMPLETED|2025-03-03T08:00:00|2025-03-03T08:00:10|2025-03-03T09:00:10|3600|gres/gpu=2|1\n";
  for (const char* start : {"2025-03-03T10:20:00", "None", "Unknown", "NA", ""}) {
    const auto trace = trace_of(sacct_columns + ran + "2|CANCELLED by 4021|2025-03-03T08:20:00|" + start +
                                "|2025-03-03T10:20:00|0||1\n");
    EXPECT_EQ(short_jobs(trace), (Lines{"1 1740988800+10 3600 2"})) << start;
    EXPECT_EQ(left_out(trace), (Counts{{"never started", 1}})) << start;
  }
}

TEST(JobTimes, ACancelledJobOfAnyLogNeverRan) {
  const std::string helios =
      "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
      "1,u,v,1,1,1,COMPLETED,2020-06-09 18:00:00,2020-06-09 18:00:00,2020-06-09 18:01:00,60,0\n"
      "2,u,v,1,1,1,CANCELLED,2020-06-09 18:00:00,2020-06-09 19:00:00,2020-06-09 19:00:00,0,3600\n";
  EXPECT_EQ(left_out(trace_of(helios)), (Counts{{"never started", 1}}));
  const std::string swf = "1 0 5 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1\n2 5 60 0 0 -1 -1 4 200 -1 5 1 1 1 1 1 -1 -1\n";
  EXPECT_EQ(short_jobs(trace_of(swf)), (Lines{"1 0+5 100 4"}));
  const std::string csv = "id,t,s,e,n,st\n1,100,110,170,1,COMPLETED\n2,100,,500,1,CANCELLED\n3,100,0,500,1,4\n";
  const auto trace = trace_of(csv, {.columns = "id=id,submit=t,start=s,end=e,gpus=n,status=st"});
  EXPECT_EQ(short_jobs(trace), (Lines{"1 100+10 60 1"}));
  EXPECT_EQ(left_out(trace), (Counts{{"never started", 2}}));
  const std::string native =
      "job_id,submit_s,work_s,tasks,gpu_milli_per_task,start_s,status\na,100,60,1,1000,110,passed\n"
      "b,100,0,1,1000,3600,killed\n";
  EXPECT_EQ(left_out(trace_of(native)), (Counts{{"never started", 1}}));
}

TEST(JobTimes, AJobThatRanWithoutARecordedStartIsKeptAndNoted) {
  const auto trace = trace_of("id,t,n,s,d\na,1000,2,0,60\nb,1100,2,1200,60\n",
                              {.columns = "id=id,submit=t,gpus=n,start=s,duration=d"});
  EXPECT_EQ(short_jobs(trace), (Lines{"a 1000 60 2", "b 1100+100 60 2"}));
  EXPECT_TRUE(has_note(trace, "1 job ran, but its start is not set"));
}

// One rule: named, counted, and left out where the user says so.
TEST(JobTimes, BadRowsAreNamedAndCountedInEveryReader) {
  struct Case {
    std::string text, columns, error;
  };
  const std::vector<Case> cases = {
      {sacct_columns + "51|COMPLETED|2025-03-03T08:00:05|2025-03-03T08:00:00|2025-03-03T09:00:00|3600|gres/gpu=2|1\n"
                       "52|COMPLETED|2025-03-03T08:00:00|2025-03-03T08:10:00|2025-03-03T08:09:00|60|gres/gpu=2|1\n"
                       "53|COMPLETED|2025-03-03T08:00:00|2025-03-03T08:10:00|2025-03-03T08:19:00|540|gres/gpu=2|1\n",
       "", ":2: Start: expected a start not before Submit"},
      {"job_id,submit_s,work_s,tasks,gpu_milli_per_task,start_s\n1,100,5,1,1000,90\n2,100,5,1,1000,91\n"
       "3,100,5,1,1000,110\n",
       "", ":2: start_s: expected a start not before submit_s"},
      {"id,t,s,e,n\n1,100,90,200,1\n2,100,150,149,1\n3,100,110,170,1\n", "id=id,submit=t,start=s,end=e,gpus=n",
       ":2: s: expected a start not before t"},
      {"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
       "a,1,1,1,1000,,LS,Failed,100,200,90\nb,1,1,1,1000,,LS,Failed,100,120,150\nc,1,1,1,1000,,LS,Failed,100,200,110\n",
       "", ":2: scheduled_time: expected a start not before creation_time"},
  };
  for (const Case& one : cases) {
    ReadOptions options{.columns = one.columns};
    const auto refused = trace_of(one.text, options);
    EXPECT_EQ(error_of(refused).substr(0, one.error.size()), one.error);
    EXPECT_NE(error_of(refused).find("; 2 rows are bad, which --drop-bad-rows leaves out"), std::string::npos)
        << error_of(refused);
    options.drop_bad_rows = true;
    const auto rest = trace_of(one.text, options);
    ASSERT_TRUE(rest) << error_of(rest);
    EXPECT_EQ(rest->jobs.size(), 1u);
    std::uint64_t bad = 0;
    for (const auto& [reason, rows] : left_out(rest)) bad += reason.starts_with("bad ") ? rows : 0;
    EXPECT_EQ(bad, 2u);
  }
}

TEST(JobTimes, ARowThatOnlyAClockMovedIsNotBad) {
  const auto trace =
      trace_of(sacct_columns +
               "1|COMPLETED|2024-10-27T02:50:00|2024-10-27T02:05:00|2024-10-27T02:10:00|300|gres/gpu=1|1\n"
               "2|COMPLETED|2024-10-27T02:30:00|2024-10-27T02:31:00|2024-10-27T02:11:00|2400|gres/gpu=1|1\n");
  ASSERT_TRUE(trace) << error_of(trace);
  EXPECT_EQ(trace->jobs.size(), 2u);
  EXPECT_TRUE(has_note(trace, "2 jobs have times that a clock moved"));
}

TEST(JobTimes, ARowFarOutsideTheLogIsBad) {
  const std::string header = "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n";
  std::string rows;
  for (int i = 0; i < 20; ++i) rows += std::to_string(i) + "," + std::to_string(1'612'180'000 + i) + ",60,1,1000\n";
  const std::string odd = "20,7,60,1,1000\n";
  for (const std::string& text : {header + rows + odd, header + odd + rows}) {
    const auto trace = trace_of(text);
    EXPECT_NE(error_of(trace).find("times: expected times near those of the other jobs"), std::string::npos)
        << error_of(trace);
    const auto rest = trace_of(text, {.drop_bad_rows = true});
    ASSERT_TRUE(rest) << error_of(rest);
    EXPECT_EQ(rest->jobs.size(), 20u);
    EXPECT_EQ(rest->report.rows, 21u);
  }
  EXPECT_EQ(error_of(trace_of(header + odd + rows)).substr(0, 10), ":2: times:");
}

// The last of two rows is bad, and the file breaks off behind it: what comes first is told.
TEST(JobTimes, WhatIsWrongFirstIsTold) {
  const std::string bad = "1,0,-5,1,1000\n", open = "2,1,5,1,1000,\"x\n";
  const std::string header = "job_id,submit_s,work_s,tasks,gpu_milli_per_task,name\n";
  EXPECT_EQ(error_of(trace_of(header + "1,0,-5,1,1000,a\n" + open)).substr(0, 10), ":2: work_s");
}

TEST(JobTimes, ALogWithoutJobsIsInvalid) {
  const test::TempFolder folder;
  const auto validation = validate_trace(folder.write("trace", sacct_columns));
  ASSERT_TRUE(validation);
  EXPECT_EQ(validation->refusals, 1u);
  EXPECT_NE(validation_text(*validation).find("no job: 1"), std::string::npos);
}

// ---- backlog ----

TEST(Backlog, KeepsJobsThatHadNotEnded) {
  const std::string log =
      "JobID|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqTRES|NNodes\n"
      "1|COMPLETED|2025-03-03T08:00:00|2025-03-03T08:00:10|2025-03-03T08:10:10|600|120|gres/gpu=2|1\n"
      "2|PENDING|2025-03-03T08:10:00|2025-03-05T08:00:00|Unknown|0|60|gres/gpu=1|1\n"
      "3_[4-6,9%2]|PENDING|2025-03-03T08:20:00|Unknown|Unknown|0|30|gres/gpu=1|1\n"
      "4|RUNNING|2025-03-03T08:30:00|2025-03-03T08:31:00|Unknown|7200|60|gres/gpu=4|1\n"
      "5|PENDING|2025-03-03T08:40:00|Unknown|Unknown|0|UNLIMITED|gres/gpu=1|1\n";
  EXPECT_EQ(short_jobs(trace_of(log)), (Lines{"1 1740988800+10 600 2"}));
  EXPECT_EQ(left_out(trace_of(log)),
            (Counts{{"still waiting at the end of the trace (--backlog keeps such jobs)", 2},
                    {"still waiting at the end of the trace", 1},
                    {"still running at the end of the trace (--backlog keeps such jobs)", 1}}));
  const auto kept = trace_of(log, {.backlog = true});
  EXPECT_EQ(short_jobs(kept),
            (Lines{"1 1740988800+10 600 2", "2 1740989400 3600 1", "3_4 1740990000 1800 1", "3_5 1740990000 1800 1",
                   "3_6 1740990000 1800 1", "3_9 1740990000 1800 1", "4 1740990600+60 7200 4", "5 1740991200 1800 1"}));
  EXPECT_TRUE(has_note(kept, "6 jobs had not ended when the log was written"));
  EXPECT_TRUE(has_note(kept, "1 job of the backlog has no time limit: their run time is the median"));
}

// What ran for longer than the median runs for that long; arrays that Slurm cuts, and jobs whose demand the log does
// not tell, are no jobs.
TEST(Backlog, AJobRunsNoShorterThanItHas) {
  const std::string log =
      "JobID|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocTRES|NNodes\n"
      "1|COMPLETED|2025-03-03T08:00:00|2025-03-03T08:00:10|2025-03-03T08:10:10|600|120|gres/gpu=2|1\n"
      "2|PENDING|2025-03-03T08:10:00|Unknown|Unknown|0|60||4\n"
      "3|RUNNING|2025-03-03T08:30:00|2025-03-03T08:31:00|Unknown|864000|UNLIMITED|gres/gpu=4|1\n"
      "4_[1,3,5,...]|PENDING|2025-03-03T08:40:00|Unknown|Unknown|0|60|gres/gpu=1|1\n";
  const auto kept = trace_of(log, {.backlog = true});
  EXPECT_EQ(short_jobs(kept), (Lines{"1 1740988800+10 600 2", "3 1740990600+60 864000 4"}));
  EXPECT_EQ(left_out(kept)["waits, and without ReqTRES the log does not say for how many GPUs"], 2u);
  const std::string cut = log.substr(0, log.find("2|PENDING")) +
                          "4_[1,3,5,...]|PENDING|2025-03-03T08:40:00|Unknown|Unknown|0|60|gres/gpu=1|1\n";
  EXPECT_EQ(left_out(trace_of(cut)).count("step of a job"), 0u);
}

// Tasks that ran had the limit too; that of an array without jobs is nobody's.
TEST(Backlog, TellsThatAnArrayRanSoManyTasksAtOnce) {
  const std::string header = "JobID|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqTRES|NNodes\n";
  const auto waiting = [](const std::string& id) {
    return id + "|PENDING|2025-03-03T08:10:00|Unknown|Unknown|0|60|gres/gpu=1|1\n";
  };
  const std::string ran =
      "4711_1|COMPLETED|2025-03-03T08:00:00|2025-03-03T08:00:10|2025-03-03T08:10:10|600|120|gres/gpu=2|1\n";
  const std::string two = header + ran + waiting("4711_[2-20%4]") + waiting("4712_[1-3%2]") + waiting("4713_[1-3]");
  const std::string note = " tasks at once (%N), which is not kept";
  EXPECT_TRUE(has_note(trace_of(two), "1 job array ran at most N" + note));
  EXPECT_TRUE(has_note(trace_of(two, {.backlog = true}), "2 job arrays ran at most N" + note));
  EXPECT_FALSE(has_note(trace_of(header + ran + waiting("4711_[2-20]"), {.backlog = true}), note));
}

TEST(Backlog, OfAJobThatWasPutBackIsWhatItAsksForLast) {
  const std::string log =
      "JobID|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqTRES|NNodes\n"
      "1|REQUEUED|2025-03-03T08:00:00|2025-03-03T08:00:10|2025-03-03T08:10:10|600|120|gres/gpu=2|1\n"
      "1|PENDING|2025-03-03T08:10:10|Unknown|Unknown|0|120|gres/gpu=2|1\n"
      "2|COMPLETED|2025-03-03T08:00:00|2025-03-03T08:00:10|2025-03-03T08:10:10|600|120|gres/gpu=2|1\n";
  EXPECT_EQ(short_jobs(trace_of(log)), (Lines{"2 1740988800+10 600 2"}));
  EXPECT_EQ(short_jobs(trace_of(log, {.backlog = true})), (Lines{"2 1740988800+10 600 2", "1 1740989410 7200 2"}));
}

}  // namespace
}  // namespace gpusched
