// SPDX-License-Identifier: Apache-2.0
// What `gpusched trace info|validate|convert` stand on.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "src/base/name_text.hpp"
#include "src/world/cluster_reader.hpp"
#include "tests/support/files.hpp"
#include "traces/tools/trace_convert.hpp"
#include "traces/tools/trace_info.hpp"
#include "traces/tools/trace_validate.hpp"

namespace gpusched {
namespace {

using test::bytes_of;
using test::fixture;
using test::real_trace;
using test::TempFolder;

// Two tables with equal text hold equal jobs: the native csv keeps everything.
std::string native_text(const JobTable& jobs) { return write_native(jobs).text; }

TEST(Convert, TheNativeSampleIsWhatWeWriteOurselves) {
  const Trace trace = *read_trace(fixture("native.csv"));
  const TempFolder folder;
  ASSERT_TRUE(convert_trace(trace.jobs, "native", folder.path() + "/out.csv"));
  const Trace again = *read_trace(folder.path() + "/out.csv");
  EXPECT_EQ(again.report.format, "native");
  EXPECT_EQ(native_text(again.jobs), native_text(trace.jobs));
  EXPECT_EQ(again.jobs.names()[again.jobs.name(JobId{2})], "say \"hi\"");
}

TEST(Convert, EverySampleSurvivesTheNativeForm) {
  const TempFolder folder;
  for (const char* file : {"philly_jobs.csv", "cluster_job_log.json", "pai_tables", "pai_sim.csv", "openb_pods.csv",
                           "helios_cluster_log.csv", "acme_trace_kalos.csv", "swf.swf", "sacct.txt", "tiresias.csv"}) {
    const Trace trace = *read_trace(fixture(file));
    ASSERT_TRUE(convert_trace(trace.jobs, "native", folder.path() + "/out.csv"));
    const auto again = read_trace(folder.path() + "/out.csv");
    ASSERT_TRUE(again) << file << ": " << again.error().to_string();
    EXPECT_EQ(native_text(again->jobs), native_text(trace.jobs)) << file;
  }
}

// A name as reading gives it, of any bytes.
rc::Gen<std::string> word() {
  return rc::gen::map(rc::gen::container<std::string>(rc::gen::element('a', 'Z', '0', ',', '"', ' ', ';', '\'', '|',
                                                                       '\n', '\r', '\x01', '\xc3', '\xa9', '\xff')),
                      [](const std::string& text) { return name_text(text); });
}

RC_GTEST_PROP(Convert, AnyTableSurvivesTheNativeForm, ()) {
  const auto count = *rc::gen::inRange(1, 12);
  JobTableBuilder builder;
  for (int i = 0; i < count; ++i) {
    const std::string id = "j" + std::to_string(i), user = *word(), group = *word(), vc = *word(), name = *word(),
                      spec = *word(), family = *word();
    JobRecord job{.id = id};
    job.submit = {*rc::gen::inRange<std::int64_t>(-2'000'000'000'000'000, 2'000'000'000'000'000)};
    job.shape.tasks = *rc::gen::inRange<std::uint32_t>(1, 2000);
    job.shape.gpu_milli_per_task =
        *rc::gen::oneOf(rc::gen::inRange<MilliGpu>(0, 1000),
                        rc::gen::map(rc::gen::inRange<MilliGpu>(1, 64), [](MilliGpu gpus) { return gpus * 1000; }));
    job.shape.cpu_milli_per_task = *rc::gen::inRange<std::int64_t>(0, 100'000);
    job.shape.memory_mib_per_task = *rc::gen::inRange<std::int64_t>(0, 1'000'000);
    job.user = user;
    job.group = group;
    job.vc = vc;
    job.name = name;
    job.gpu_spec = spec;
    job.family = family;
    job.status = *rc::gen::element(JobStatus::unknown, JobStatus::passed, JobStatus::failed, JobStatus::killed);
    job.priority = *rc::gen::inRange(-1000, 1000);
    if (*rc::gen::arbitrary<bool>()) job.estimate = {*rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000)};
    if (*rc::gen::arbitrary<bool>()) job.deadline = {*rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000)};
    std::vector<Time> attempts;
    for (int k = *rc::gen::inRange(1, 4); k > 0; --k) {
      attempts.push_back({*rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000)});
      job.work += attempts.back();
    }
    if (attempts.size() > 1) job.attempts = attempts;
    builder.add(job);
  }
  const JobTable jobs = *std::move(builder).build();
  const TempFolder folder;
  const auto again = read_trace(folder.write("out.csv", native_text(jobs)));
  RC_ASSERT(again.has_value());
  RC_ASSERT(native_text(again->jobs) == native_text(jobs));
}

TEST(Convert, SwfKeepsWhatItCanAndSaysWhatItCannot) {
  const Trace trace = *read_trace(fixture("openb_pods.csv"));
  const TempFolder folder;
  const std::string path = folder.path() + "/out.swf";
  const auto notes = convert_trace(trace.jobs, "swf", path);
  ASSERT_TRUE(notes);
  EXPECT_EQ(notes->notes, (std::vector<std::string>{"ids are not distinct positive numbers; jobs are renumbered from 1",
                                                    "1 job asks for no GPU, left out",
                                                    "1 job asks for a share of a GPU, rounded up to a whole processor",
                                                    "1 job has tasks of several GPUs, which become single processors",
                                                    "1 job asks for a GPU type, which SWF cannot express",
                                                    "3 jobs have a demand of CPU, which SWF cannot express"}));
  const Trace again = *read_trace(path);
  EXPECT_EQ(again.report.format, "swf");
  ASSERT_EQ(again.jobs.size(), 3u);
  EXPECT_EQ(again.jobs.shape(JobId{1}).tasks, 1u);
  EXPECT_EQ(again.jobs.shape(JobId{2}).tasks, 8u);
  EXPECT_EQ(again.jobs.submit(JobId{1}), whole_seconds(427061));
  EXPECT_EQ(again.jobs.work(JobId{1}), whole_seconds(96));
  EXPECT_EQ(again.jobs.status(JobId{2}), JobStatus::failed);
  EXPECT_EQ(again.report.machine_gpus, 0);
  ASSERT_TRUE(convert_trace(trace.jobs, "swf", path, 240));
  EXPECT_EQ(read_trace(path)->report.machine_gpus, 240);
}

TEST(Convert, ToSwfCountsFromTheSecondOfTheFirstJobAlsoBefore1970) {
  const TempFolder folder;
  const std::string path = folder.write("jobs.csv",
                                        "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n"
                                        "1,-1.5,3,1,1000\n2,10,3,1,1000\n");
  ASSERT_TRUE(convert_trace(read_trace(path)->jobs, "swf", folder.path() + "/out.swf"));
  const auto again = read_trace(folder.path() + "/out.swf");
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(again->jobs.submit(JobId{0}), Time{500'000});
  EXPECT_EQ(again->jobs.submit(JobId{1}), whole_seconds(12));
}

TEST(Convert, ToSwfRenumbersJobsWhoseIdsAreTooLargeToBeRead) {
  const TempFolder folder;
  const std::string path = folder.write("jobs.csv",
                                        "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n"
                                        "4600000000001,0,3,1,1000\n7,10,3,1,1000\n");
  const auto notes = convert_trace(read_trace(path)->jobs, "swf", folder.path() + "/out.swf");
  ASSERT_TRUE(notes);
  EXPECT_EQ(notes->notes.size(), 1u);
  const auto again = read_trace(folder.path() + "/out.swf");
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(again->jobs.external_id(JobId{1}), "2");
}

TEST(Convert, ToSwfKeepsRecordedStarts) {
  const TempFolder folder;
  const std::string path = folder.write("jobs.csv",
                                        "job_id,submit_s,work_s,tasks,gpu_milli_per_task,start_s\n"
                                        "1,100,3,1,1000,400\n2,110,3,1,0,\n3,120,3,1,1000,\n");
  const auto written = convert_trace(read_trace(path)->jobs, "swf", folder.path() + "/out.swf");
  ASSERT_TRUE(written);
  EXPECT_EQ(written->jobs, 2u);
  const auto again = read_trace(folder.path() + "/out.swf");
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(again->jobs.start(JobId{0}), whole_seconds(300));
  EXPECT_EQ(again->jobs.start(JobId{1}), Time::max());
}

// The fields of each job of a swf text, from 1.
std::vector<std::vector<std::string>> swf_rows(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(';')) continue;
    std::istringstream fields("0 " + line);
    rows.emplace_back(std::istream_iterator<std::string>(fields), std::istream_iterator<std::string>());
  }
  return rows;
}

TEST(Convert, ToSwfKeepsNumbersAndMemoryAndSaysWhatElseIsLost) {
  const TempFolder folder;
  const std::string path =
      folder.write("jobs.csv",
                   "job_id,submit_s,work_s,tasks,gpu_milli_per_task,memory_mib_per_task,user,group,vc,name,"
                   "priority,deadline_s\n"
                   "1,0,3,1,2000,5,4,b,7,n,2,90\n2,1,3,1,1000,,3,7,7,n,0,\n");
  const TraceText swf = write_swf(read_trace(path)->jobs);
  const auto rows = swf_rows(swf.text);
  EXPECT_EQ(rows[0][10], "2560");
  EXPECT_EQ(rows[1][10], "-1");
  EXPECT_EQ(rows[0][12], "4");
  EXPECT_EQ(rows[1][12], "3");
  EXPECT_EQ(rows[0][13], "1");
  EXPECT_EQ(rows[1][13], "2");
  EXPECT_EQ(rows[1][15], "7");
  EXPECT_EQ(swf.notes, (std::vector<std::string>{"1 job has tasks of several GPUs, which become single processors",
                                                 "1 job has a priority, which SWF cannot express",
                                                 "1 job has a deadline, which SWF cannot express",
                                                 "2 jobs have a name, which SWF cannot express"}));
}

TEST(Convert, ToSwfNamesTheLastOfSeveralToEnd) {
  const auto converted = [](const std::string& start_of_2) {
    const TempFolder folder;
    return write_swf(read_trace(folder.write("jobs.csv",
                                             "job_id,submit_s,work_s,tasks,gpu_milli_per_task,start_s,after\n"
                                             "1,0,90,1,1000,5,\n2,1,3,1,1000," +
                                                 start_of_2 + ",\n3,2,3,1,1000,,1;2\n"))
                         ->jobs);
  };
  const TraceText known = converted("60"), unknown = converted("");
  EXPECT_EQ(swf_rows(known.text)[2][17], "1");
  EXPECT_EQ(known.notes, std::vector<std::string>{"1 job waits for the end of several others, of which SWF names one"});
  EXPECT_EQ(swf_rows(unknown.text)[2][17], "-1");
  EXPECT_EQ(unknown.notes,
            std::vector<std::string>{"1 job waits for the end of others that SWF cannot name; no wait is written"});
}

TEST(Convert, SwfToSwfLosesNothing) {
  const Trace trace = *read_trace(fixture("swf.swf"));
  const TempFolder folder;
  const auto notes = convert_trace(trace.jobs, "swf", folder.path() + "/out.swf");
  ASSERT_TRUE(notes);
  EXPECT_TRUE(notes->notes.empty());
  EXPECT_EQ(write_swf(read_trace(folder.path() + "/out.swf")->jobs).text, bytes_of(folder.path() + "/out.swf"));
}

TEST(Convert, NothingIsLeftBehindWhenItFails) {
  const Trace trace = *read_trace(fixture("swf.swf"));
  const TempFolder folder;
  EXPECT_FALSE(convert_trace(trace.jobs, "native", folder.path() + "/none/out.csv"));
  const auto unknown = convert_trace(trace.jobs, "natve", folder.path() + "/out.csv");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("did you mean 'native'"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

std::vector<std::string> oddities(const TraceValidation& validation) {
  std::vector<std::string> lines;
  for (const TraceOddity& oddity : validation.oddities)
    lines.push_back(std::to_string(oddity.line) + " " + oddity.kind);
  return lines;
}

// A job without an id has that of its row, which another may name.
TEST(Validate, SeesAnIdThatTheReaderGave) {
  const TempFolder folder;
  const auto validation = validate_trace(
      folder.write("ids.csv", "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n,0,5,1,1000\n0,0,5,1,1000\n"));
  ASSERT_TRUE(validation) << validation.error().to_string();
  EXPECT_EQ(oddities(*validation), (std::vector<std::string>{"0 twin id"}));
  EXPECT_EQ(validation->refusals, 1u);
}

TEST(Validate, ListsEveryOddityWithItsLine) {
  const TempFolder folder;
  const auto validation = validate_trace(folder.write("odd.csv",
                                                      "job_id,submit_s,work_s,tasks,gpu_milli_per_task,estimate_s\n"
                                                      "a,10,5,1,1000,\n"
                                                      "b,20,0,1,1000,\n"
                                                      "c,15,7,1,1000,\n"
                                                      "a,30,5,1,1000,\n"
                                                      "d,40,-5,1,1000,\n"
                                                      "e,50,9,1,1000,8.5\n"));
  ASSERT_TRUE(validation) << validation.error().to_string();
  EXPECT_EQ(oddities(*validation), (std::vector<std::string>{"3 no work", "4 out of order", "5 twin id", "6 bad value",
                                                             "7 work above estimate"}));
  EXPECT_EQ(validation->refusals, 2u);
  const std::string text = validation_text(*validation);
  EXPECT_NE(text.find("line 6: work_s: expected a number of seconds >= 0, found '-5'"), std::string::npos) << text;
  EXPECT_NE(text.find("line 5: job id 'a' is already used at line 2"), std::string::npos) << text;
  EXPECT_NE(text.find("2 irregularities prevent a replay"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(validation_json(*validation));
  EXPECT_EQ(json["refusals"], 2);
  EXPECT_EQ(json["oddities"].size(), 5u);
  EXPECT_EQ(json["oddities"][0]["line"], 3);
}

TEST(Validate, KnowsTheMachineAndTheRowsLeftOut) {
  const TempFolder folder;
  std::string swf = bytes_of(fixture("swf.swf"));
  swf += "    9     1900      5     60  200     -1    -1  200     60    -1  1   8   2  -1  3 -1 -1 -1\n";
  const auto validation = validate_trace(folder.write("log.swf", swf));
  ASSERT_TRUE(validation);
  EXPECT_EQ(oddities(*validation),
            (std::vector<std::string>{"7 left out", "8 left out", "10 left out", "11 larger than the machine"}));
  EXPECT_EQ(validation->refusals, 0u);
  EXPECT_NE(validation_text(*validation).find("it can be replayed"), std::string::npos);
}

TEST(Validate, StopsOnlyWhereReadingCannotGoOn) {
  const TempFolder folder;
  EXPECT_FALSE(validate_trace(folder.path() + "/none"));
  EXPECT_FALSE(validate_trace(folder.write("x.csv", "submit_s,num_gpus,duration_s\n1,1,1\n")));  // no job_id
  const std::string header = "job_id,submit_s,num_gpus,duration_s\n";
  EXPECT_FALSE(validate_trace(folder.write("y.csv", header + "0,0,1,4e12\n1,0,1,4e12\n")));  // nor would replay
  EXPECT_TRUE(validate_trace(fixture("cluster_job_log.json")));
}

TEST(Info, CountsWhatIsThere) {
  const Trace trace = *read_trace(fixture("sacct.txt"));
  const Cluster cluster = *parse_cluster("2x8");
  const TraceSummary summary = summarize(trace, &cluster);
  EXPECT_EQ(summary.jobs, 3u);
  EXPECT_EQ(summary.users, 3u);
  EXPECT_EQ(summary.vcs, 2u);
  EXPECT_EQ(summary.groups, 2u);
  EXPECT_EQ(summary.without_gpu, 1u);
  EXPECT_EQ(summary.with_estimate, 2u);
  EXPECT_DOUBLE_EQ(summary.gpu_hours, 8 * 2.0 + 3 * 1.0);
  EXPECT_EQ(summary.statuses, (std::map<std::string, std::uint64_t>{{"passed", 1}, {"failed", 2}}));
  EXPECT_DOUBLE_EQ(summary.run_s.median, 3600);
  EXPECT_DOUBLE_EQ(summary.run_s.max, 7200);
  EXPECT_DOUBLE_EQ(summary.gap_s.mean, 210);  // 300 s, then 120 s
  EXPECT_DOUBLE_EQ(*summary.offered_load, 19.0 / (16 * 420.0 / 3600));
  ASSERT_EQ(summary.by_gpus.size(), 3u);  // 0, 3-4, 5-8
  EXPECT_EQ(summary.by_gpus[1].name, "3-4");
  EXPECT_EQ(summary.by_hour[8].jobs, 3u);
  for (const auto* buckets : {&summary.by_gpus, &summary.by_run, &summary.by_hour}) {
    std::uint64_t jobs = 0;
    double gpu_hours = 0;
    for (const TraceBucket& bucket : *buckets) {
      jobs += bucket.jobs;
      gpu_hours += bucket.gpu_hours;
    }
    EXPECT_EQ(jobs, 3u);
    EXPECT_DOUBLE_EQ(gpu_hours, 19);
  }
}

TEST(Info, TextFitsATerminalAndJsonSaysTheSame) {
  const Trace trace = *read_trace(fixture("swf.swf"));
  const TraceSummary summary = summarize(trace, nullptr);
  EXPECT_EQ(summary.cluster_gpus, 128);
  const std::string text = summary_text(summary);
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);  // the path
  while (std::getline(lines, line)) EXPECT_LE(line.size(), 80u) << line;
  const auto json = nlohmann::json::parse(summary_json(summary));
  EXPECT_EQ(json["jobs"], 3);
  EXPECT_EQ(json["cluster_gpus"], 128);
  EXPECT_EQ(json["dropped"].size(), 3u);
  EXPECT_EQ(json["by_run"].size(), summary.by_run.size());
}

TEST(Info, RealPhilly) {
  const std::string path = real_trace("philly/philly_jobs.csv");
  GPUSCHED_NEEDS_TRACE(path, "philly/philly_jobs.csv");
  const Cluster cluster = *parse_cluster("philly");
  const TraceSummary summary = summarize(*read_trace(path), &cluster);
  EXPECT_EQ(summary.jobs, 80539u);
  EXPECT_EQ(summary.vcs, 13u);
  EXPECT_EQ(summary.cluster_gpus, 2816);
  EXPECT_EQ(summary.without_gpu, 0u);
}

}  // namespace
}  // namespace gpusched
