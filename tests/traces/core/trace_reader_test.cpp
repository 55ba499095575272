// SPDX-License-Identifier: Apache-2.0
// Readers: exact values of every hand-made sample, what all formats have in common, bad input, and the real traces.
#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <sstream>

#include "gpusched/core/rng.hpp"
#include "src/world/cluster_reader.hpp"
#include "src/world/fit_to_cluster.hpp"
#include "tests/support/files.hpp"
#include "tests/traces/core/reading.hpp"
#include "traces/core/trace.hpp"
#include "traces/tools/trace_convert.hpp"
#include "traces/tools/trace_validate.hpp"

namespace gpusched {
namespace {

using test::bytes_of;
using test::Counts;
using test::fixture;
using test::Lines;
using test::real_trace;
using test::TempFolder;
using test::trace_of;

// Everything a table knows of its jobs, one line a job. Parts with default values are left out.
std::vector<std::string> describe(const JobTable& jobs) {
  std::vector<std::string> lines;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    const Shape& shape = jobs.shape(job);
    std::ostringstream line;
    line << jobs.external_id(job) << " at " << jobs.submit(job).us << "us for " << jobs.work(job).us << "us "
         << shape.tasks << "x" << shape.gpu_milli_per_task;
    const auto add = [&](const char* name, const auto& value, const auto& fallback) {
      if (value != fallback) line << ' ' << name << '=' << value;
    };
    add("cpu", shape.cpu_milli_per_task, 0);
    add("mem", shape.memory_mib_per_task, 0);
    add("on", jobs.gpu_specs()[shape.gpu_spec], "");
    add("estimate", jobs.estimate(job).us, Time::max().us);
    add("start", jobs.start(job).us, Time::max().us);
    add("deadline", jobs.deadline(job).us, Time::max().us);
    add("user", jobs.users()[jobs.user(job)], "");
    add("group", jobs.groups()[jobs.group(job)], "");
    add("vc", jobs.vcs()[jobs.vc(job)], "");
    add("name", jobs.names()[jobs.name(job)], "");
    add("family", jobs.families()[jobs.family(job)], "");
    add("status", to_string(jobs.status(job)), "unknown");
    add("priority", jobs.priority(job), 0);
    for (std::uint32_t k = 0; jobs.attempts(job) > 1 && k < jobs.attempts(job); ++k) {
      line << (k == 0 ? " attempts=" : ";") << jobs.attempt_work(job, k).us;
    }
    lines.push_back(line.str());
  }
  return lines;
}

std::vector<std::string> sorted(std::vector<std::string> lines) {
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::map<std::string, std::uint64_t> dropped(const TraceReport& report) {
  std::map<std::string, std::uint64_t> rows;
  for (const DroppedRows& entry : report.dropped) rows[entry.reason] = entry.rows;
  return rows;
}

// A sample of one format, and what reading it gives.
struct Sample {
  std::string format;
  std::string file;
  Lines jobs;
  Counts left_out = {};
  std::uint64_t rows = 0;
  std::string columns = {};
  bool by_name = false;  // nothing in the file tells the format
};

void PrintTo(const Sample& sample, std::ostream* out) { *out << sample.file; }

const std::vector<Sample>& samples() {
  static const std::vector<Sample> all = {
      {"native",
       "native.csv",
       {"a1 at 0us for 3600500000us 4x1000 cpu=8000 mem=65536 on=A100|V100 estimate=7200000000 deadline=90000000000 "
        "user=ann group=vision vc=vc1 name=train, v2 family=resnet50 status=passed priority=3",
        "a2 at 10000001us for 90000000us 1x250 cpu=500 mem=1024 user=bob vc=vc2 name=notebook status=killed "
        "priority=-1",
        "a3 at 20000000us for 300000000us 2x2000 estimate=600000000 user=ann group=vision vc=vc1 name=say \"hi\" "
        "family=bert status=failed attempts=100000000;200000000"},
       {},
       3},
      {"philly-csv",
       "philly_jobs.csv",
       {"0 at 0us for 3613033000000us 1x1000", "1 at 266563000000us for 3222990000000us 8x1000 vc=ee9e8c",
        "2 at 266564000000us for 90000000us 16x1000 vc=6214e9"},
       {},
       3},
      {"philly",
       "cluster_job_log.json",
       {"application_1_0001 at 1507338699000000us for 193256000000us 4x1000 start=1507338729000000 user=ce2f4c "
        "vc=ee9e8c status=passed attempts=74000000;193182000000",
        "application_1_0003 at 1507341540000000us for 10000000us 1x1000 start=1507341600000000 user=aa0001 vc=6214e9 "
        "status=failed"},
       {{"never started", 1}, {"still running at the end of the trace", 1}},
       4},
      {"pai",
       "pai_tables",
       {"job1 at 1000000000us for 670500000us 4x500 cpu=8000 mem=60000 on=T4 start=1025000000 user=user1 group=group1 "
        "family=bert status=passed",
        "job2 at 2000000000us for 93000000us 1x2000 cpu=4000 mem=30000 start=2006000000 user=user2 group=group2 "
        "status=failed",
        "job3 at 3000000000us for 490000000us 3x1000 cpu=6000 mem=30000 on=V100 start=3010000000 user=user1 "
        "group=group1 family=ctr status=passed",
        "job5 at 5000000000us for 80000000us 2x0 cpu=3000 mem=10000 start=5020000000 user=user3 status=passed"},
       {{"pai_job_table: still running at the end of the trace", 1}, {"no row in pai_task_table", 1}},
       6},
      {"pai-sim",
       "pai_sim.csv",
       {"11 at 0us for 120000000us 8x1000 cpu=4000 on=V100 estimate=1000000000 user=u1",
        "12 at 60000000us for 30000000us 2x500 cpu=6000 estimate=25500000 user=u2",
        "13 at 60000000us for 5000000us 1x0 cpu=4000 estimate=5000000 user=u1"},
       {},
       3},
      {"openb",
       "openb_pods.csv",
       {"pod-0 at 0us for 12537496000000us 1x1000 cpu=12000 mem=16384 start=0 group=LS",
        "pod-1 at 427061000000us for 96000000us 1x460 cpu=6000 mem=12288 on=V100M16|V100M32 start=427065000000 "
        "group=LS status=passed",
        "pod-2 at 427100000000us for 700000000us 1x8000 cpu=88000 mem=327680 start=427200000000 group=Burstable "
        "status=failed",
        "pod-4 at 600000000000us for 9000000us 1x0 cpu=4000 mem=1024 start=600001000000 group=BE status=passed"},
       {{"never started", 1}},
       5},
      {"openb-pods",
       "openb_pods.csv",
       {"pod-0 at 0us for 0us 1x1000 cpu=12000 mem=16384 group=LS",
        "pod-1 at 0us for 0us 1x460 cpu=6000 mem=12288 on=V100M16|V100M32 group=LS",
        "pod-2 at 0us for 0us 1x8000 cpu=88000 mem=327680 group=Burstable",
        "pod-3 at 0us for 0us 1x0 cpu=8000 mem=30517 group=BE", "pod-4 at 0us for 0us 1x0 cpu=4000 mem=1024 group=BE"},
       {},
       5,
       "",
       true},
      {"helios",
       "helios_cluster_log.csv",
       {"1425511 at 1591728061000000us for 36848000000us 1x1000 cpu=1000 start=1591728061000000 user=uXBbc vc=vcJkd "
        "status=passed",
        "1425512 at 1591728087000000us for 249000000us 2x8000 cpu=32000 start=1591728097000000 user=uVMrF vc=vchbv "
        "status=failed",
        "1425514 at 1591728120000000us for 60000000us 1x0 cpu=24000 start=1591728120000000 user=uzqls vc=vcpDC "
        "status=failed"},
       {{"never started", 1}},
       4},
      {"acme",
       "acme_trace_kalos.csv",
       {"dlc1 at 1684321258000000us for 18000000us 8x8000 start=1684321268000000 user=uf794 family=Pretrain "
        "status=failed",
        "dlc2 at 1684322922000000us for 82000000us 1x2000 start=1684322934000000 user=uf794 family=Evaluation "
        "status=killed"},
       {{"never started", 1}},
       3},
      {"swf",
       "swf.swf",
       {"1 at 0us for 1451000000us 128x1000 user=1 group=1",
        "2 at 1460000000us for 552210000us 32x1000 estimate=3600000000 start=1470000000 user=7 group=2 vc=3 "
        "status=passed",
        "5 at 1700000000us for 60000000us 4x1000 estimate=60000000 start=1705000000 user=8 group=2 vc=3 status=killed"},
       {{"no run time", 1}, {"no processors", 1}, {"part of a job (another line sums it up)", 1}},
       6},
      {"sacct",
       "sacct.txt",
       {"101 at 1709280000000000us for 7200000000us 2x4000 cpu=32000 mem=262144 on=a100 estimate=86400000000 "
        "start=1709280030000000 user=ann group=ml vc=gpu name=train status=passed",
        "103_4 at 1709280300000000us for 3600000000us 1x3000 cpu=6000 mem=4000 on=a100 estimate=3600000000 "
        "start=1709280360000000 user=bob group=ml vc=gpu name=sweep status=failed",
        "104 at 1709280420000000us for 45000000us 1x0 cpu=16000 mem=32768 start=1709280420000000 user=cyd group=bio "
        "vc=cpu name=align status=failed"},
       {{"step of a job", 1}, {"never started", 1}, {"still running at the end of the trace", 1}},
       6},
      // A requeued job, a heterogeneous one, one that waited for another, MIG slices, a CPU-only one of four nodes, and
      // one whose share of a GPU is unknown. 20 GPUs on nodes of 8, 8 and 4 are tasks of 4.
      {"sacct",
       "sacct_runs.txt",
       {"200 at 1709280000000000us for 5400000000us 1x1000 cpu=8000 mem=32768 on=a100 estimate=7200000000 "
        "start=1709280600000000 user=ann group=ml vc=gpu name=train status=passed attempts=1800000000;3600000000",
        "300 at 1709280060000000us for 7200000000us 5x4000 cpu=16000 mem=131072 on=a100 start=1709283600000000 "
        "user=bob "
        "group=ml vc=gpu name=llm status=passed",
        "500 at 1709280180000000us for 600000000us 2x142 cpu=1000 mem=4096 on=a100_1g.5gb estimate=3600000000 "
        "start=1709280180000000 user=cyd group=bio vc=mig name=fold|in \"2\" parts status=passed",
        "600 at 1709280240000000us for 60000000us 4x0 cpu=128000 mem=16384 start=1709280300000000 user=cyd group=bio "
        "vc=cpu name=\"mpi\" status=passed",
        "400 at 1709294400000000us for 60000000us 1x1000 cpu=4000 mem=16384 on=v100 estimate=7200000000 "
        "start=1709294430000000 user=ann group=ml vc=gpu name=after status=failed"},
       {{"asks for gres/shard or gres/mps: how much of a GPU that is, the log does not tell", 1}},
       8},
      // In the list: a run on two nodes, a task of an array, a job that never ran, an array that waits.
      {"sacct-json",
       "slurm.json",
       {"31 at 1740988810000000us for 3600000000us 2x4000 cpu=32000 on=a100 estimate=7200000000 "
        "start=1740988830000000 user=ana group=lab vc=gpu name=train status=passed",
        "32_4 at 1740989000000000us for 60000000us 1x1000 cpu=4000 start=1740989100000000 user=ben group=lab vc=gpu "
        "name=sweep status=failed"},
       {{"never started", 1}, {"still waiting at the end of the trace (--backlog keeps such jobs)", 1}},
       4},
      // A job that waits, one on two chunks, one deleted before it ran, a task of an array that ran twice, one of
      // Torque.
      {"pbs",
       "pbs.txt",
       {"4001.pbs1 at 1740988800000000us for 3600000000us 2x4000 cpu=8000 mem=65536 on=a100 estimate=7200000000 "
        "start=1740988830000000 user=ana group=big models vc=gpuq name=train status=passed",
        "4003[2].pbs1 at 1740989000000000us for 900000000us 1x1000 cpu=4000 estimate=3600000000 "
        "start=1740989100000000 user=cyd group=bio vc=gpuq name=sweep status=killed attempts=300000000;600000000",
        "4004.torque at 1740989000000000us for 300000000us 2x2000 cpu=8000 estimate=3600000000 "
        "start=1740989060000000 user=eve group=phys vc=batch name=mpi status=failed"},
       {{"never started", 1}, {"still waiting at the end of the trace (--backlog keeps such jobs)", 1}},
       6},
      // A job on two hosts, one killed while it waited (of an older version), a task of an array that was to begin
      // later.
      {"lsf",
       "lsb.acct",
       {"386 at 1740988800000000us for 3600000000us 2x4000 cpu=8000 on=A100 estimate=7200000000 "
        "start=1740988830000000 user=ana group=vision vc=gpuq name=train status=passed",
        "388[7] at 1740989300000000us for 600000000us 1x2000 cpu=4000 start=1740989400000000 user=cyd group=default "
        "vc=normal name=sweep[1-9] status=failed"},
       {{"never started", 1}},
       3},
      {"pods",
       "pods.json",
       {"lab/train-0 at 1740988800000000us for 3600000000us 1x2000 cpu=16000 mem=66048 on=NVIDIA-A100-SXM4-80GB "
        "estimate=7200000000 start=1740988820000000 group=train vc=lab name=train-0 status=passed priority=1000",
        "edu/slice at 1740989100000000us for 60000000us 2x142 cpu=500 on=1g.5gb start=1740989160000000 vc=edu "
        "name=slice status=failed"},
       {{"still running at the end of the trace", 1},
        {"still waiting at the end of the trace (--backlog keeps such jobs)", 1}},
       4},
      {"tiresias",
       "tiresias.csv",
       {"0 at 0us for 164000000us 1x1000 family=vgg19", "1 at 30000000us for 147000000us 8x1000 family=vgg11",
        "2 at 53000000us for 12000000us 2x1000 family=resnet50"},
       {},
       3},
      // Milliseconds; work = iterations x iteration_time x 1.015.
      {"tiresias",
       "muri.csv",
       {"0 at 0us for 336980000us 16x1000 family=vgg16",
        "1 at 27069000us for 1050525000us 1x1000 family=a2c priority=1"},
       {},
       2},
      {"csv",
       "any.csv",
       {"0 at 1709280000000000us for 3600000000us 4x1000 estimate=7200000000 start=1709280600000000 user=ann vc=gold "
        "family=gold",
        "1 at 1709280010000000us for 1500000us 1x500 start=1709280600000000 user=bob vc=iron family=iron"},
       {},
       2,
       "submit=when,gpus=cards,start=began,end=finished,user=who,vc=queue,estimate=limit,family=queue"},
  };
  return all;
}

ReadOptions options_of(const Sample& sample) {
  return {.format = sample.by_name ? sample.format : "auto", .columns = sample.columns};
}

bool is_json(const Sample& sample) {
  return sample.format == "philly" || sample.format == "sacct-json" || sample.format == "pods";
}
bool is_lines(const Sample& sample) { return !is_json(sample) && sample.format != "pai"; }
// Runs of jobs: a row that stands there again is the same run.
bool is_of_runs(const Sample& sample) {
  return sample.format == "sacct" || sample.format == "pbs" || sample.format == "lsf";
}
bool is_file(const Sample& sample) { return sample.format != "pai"; }

// `bytes` packed by one filter of libarchive, alone or as a tar archive of one file.
std::string packed(const std::string& bytes, int filter, bool as_tar = false) {
  std::string out(bytes.size() + (1 << 20), '\0');
  std::size_t used = 0;
  archive* const writer = archive_write_new();
  archive_write_add_filter(writer, filter);
  as_tar ? archive_write_set_format_pax_restricted(writer) : archive_write_set_format_raw(writer);
  archive_write_open_memory(writer, out.data(), out.size(), &used);
  archive_entry* const entry = archive_entry_new();
  archive_entry_set_pathname(entry, "trace");
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_size(entry, static_cast<la_int64_t>(bytes.size()));
  archive_write_header(writer, entry);
  archive_write_data(writer, bytes.data(), bytes.size());
  archive_entry_free(entry);
  archive_write_close(writer);
  archive_write_free(writer);
  out.resize(used);
  return out;
}

std::string with_crlf(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') out += '\r';
    out += c;
  }
  return out;
}

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Reads bytes as a file of the sample's format.
Result<Trace> read_bytes(const TempFolder& folder, const Sample& sample, const std::string& bytes) {
  return read_trace(folder.write("trace", bytes), options_of(sample));
}

std::string whole_error(const Result<Trace>& trace) { return trace ? "no error" : trace.error().to_string(); }

class Samples : public testing::TestWithParam<Sample> {};

INSTANTIATE_TEST_SUITE_P(Formats, Samples, testing::ValuesIn(samples()), [](const auto& sample) {
  const std::string file = sample.param.file.substr(0, sample.param.file.find('.'));
  return sample.param.by_name ? file + "_by_name" : file;
});

TEST_P(Samples, GivesExactlyTheseJobs) {
  const auto trace = read_trace(fixture(GetParam().file), options_of(GetParam()));
  ASSERT_TRUE(trace) << trace.error().to_string();
  EXPECT_EQ(describe(trace->jobs), GetParam().jobs);
  EXPECT_EQ(trace->report.format, GetParam().format);
  EXPECT_EQ(trace->report.rows, GetParam().rows);
  EXPECT_EQ(trace->report.kept, GetParam().jobs.size());
  EXPECT_EQ(dropped(trace->report), GetParam().left_out);
  EXPECT_EQ(trace->report.sha256.size(), is_file(GetParam()) ? 64u : 0u);
}

TEST_P(Samples, ReadTheSameWithCrlfByteOrderMarkAndNoLastLineEnd) {
  if (!is_file(GetParam())) GTEST_SKIP() << "several files";
  const TempFolder folder;
  const std::string text = bytes_of(fixture(GetParam().file));
  for (const std::string& variant :
       {with_crlf(text), "\xEF\xBB\xBF" + text, text.substr(0, text.size() - 1), text + "\n\n"}) {
    const auto trace = read_bytes(folder, GetParam(), variant);
    ASSERT_TRUE(trace) << whole_error(trace);
    EXPECT_EQ(describe(trace->jobs), GetParam().jobs);
    EXPECT_EQ(trace->report.format, GetParam().format);
  }
}

TEST_P(Samples, ReadTheSameCompressed) {
  if (!is_file(GetParam())) GTEST_SKIP() << "several files";
  const TempFolder folder;
  const std::string text = bytes_of(fixture(GetParam().file));
  for (const int filter : {ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_ZSTD, ARCHIVE_FILTER_XZ, ARCHIVE_FILTER_BZIP2}) {
    for (const bool as_tar : {false, true}) {
      const auto trace = read_bytes(folder, GetParam(), packed(text, filter, as_tar));
      ASSERT_TRUE(trace) << whole_error(trace);
      EXPECT_EQ(describe(trace->jobs), GetParam().jobs) << "filter " << filter << " tar " << as_tar;
    }
  }
}

TEST_P(Samples, RefuseATruncatedArchive) {
  if (!is_file(GetParam())) GTEST_SKIP() << "several files";
  const TempFolder folder;
  const std::string whole = packed(bytes_of(fixture(GetParam().file)), ARCHIVE_FILTER_GZIP);
  for (const std::size_t kept : {whole.size() / 2, whole.size() - 9}) {
    const auto trace = read_bytes(folder, GetParam(), whole.substr(0, kept));
    ASSERT_FALSE(trace) << kept << " of " << whole.size();
    EXPECT_NE(trace.error().message.find("damaged archive"), std::string::npos) << whole_error(trace);
  }
}

TEST_P(Samples, AnyOrderOfRowsGivesTheSameJobs) {
  if (!is_lines(GetParam())) GTEST_SKIP() << "not one line a job";
  const TempFolder folder;
  const Lines lines = lines_of(bytes_of(fixture(GetParam().file)));
  const std::size_t first = GetParam().format == "swf" ? 4 : 1;
  std::string reversed;
  for (std::size_t i = 0; i < first; ++i) reversed += lines[i] + "\n";
  for (std::size_t i = lines.size(); i-- > first;) reversed += lines[i] + "\n";
  const auto trace = read_bytes(folder, GetParam(), reversed);
  ASSERT_TRUE(trace) << whole_error(trace);
  if (GetParam().format != "csv") {  // without ids, rows name the jobs
    EXPECT_EQ(sorted(describe(trace->jobs)), sorted(GetParam().jobs));
  }
  const auto& submits = trace->jobs.submits();
  EXPECT_TRUE(std::is_sorted(submits.begin(), submits.end()));
  if (GetParam().format == "openb-pods") return;  // all submitted at 0
  const auto& notes = trace->report.notes;
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("submitted before the row above") != std::string::npos;
  }));
}

TEST_P(Samples, RefuseARowCutShortNamingItsLine) {
  if (!is_lines(GetParam())) GTEST_SKIP() << "not one line a job";
  const TempFolder folder;
  const std::string text = bytes_of(fixture(GetParam().file));
  const std::size_t lines = lines_of(text).size();
  const std::size_t last = text.rfind('\n', text.size() - 2);
  const auto trace = read_bytes(folder, GetParam(), text.substr(0, last + 9));
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().line, lines);
  EXPECT_EQ(trace.error().field, "row");
  ReadOptions tolerant = options_of(GetParam());
  tolerant.drop_bad_rows = true;
  const auto rest = read_trace(folder.path() + "/trace", tolerant);
  ASSERT_TRUE(rest) << whole_error(rest);
  EXPECT_TRUE(std::any_of(rest->report.dropped.begin(), rest->report.dropped.end(), [&](const DroppedRows& entry) {
    return entry.reason.starts_with("bad row") && entry.rows == 1 && entry.first_line == lines;
  }));
}

// One to three places overwritten, cut out, said twice, or replaced by what readers trip over.
std::string broken(std::string text, Rng rng) {
  static const Lines oddities = {
      "-1",       "1e400", "nan", "9223372036854775808", "18446744073709551615", "0.5", "\"", ",", ";", "\n", " ",
      "\xFF\xFE", "[",     "}"};
  for (std::uint64_t left = 1 + rng.below(3); left > 0; --left) {
    const std::size_t at = rng.below(text.size());
    const std::size_t length = std::min<std::size_t>(rng.below(12), text.size() - at);
    switch (rng.below(4)) {
      case 0: text[at] = static_cast<char>(rng.below(256)); break;
      case 1: text.insert(at, text.substr(at, length)); break;
      case 2: text.replace(at, length, oddities[rng.below(oddities.size())]); break;
      default:
        if (length < text.size()) text.erase(at, length);
    }
  }
  return text;
}

// The same file or folder of files, broken.
std::string broken_copy(const Sample& sample, const TempFolder& folder, const Rng& rng) {
  if (is_file(sample)) return folder.write("trace", broken(bytes_of(fixture(sample.file)), rng));
  for (const auto& entry : std::filesystem::directory_iterator(fixture(sample.file))) {
    const std::string name = entry.path().filename().string();
    folder.write("tables/" + name, broken(bytes_of(entry.path().string()), rng.split(name)));
  }
  return folder.path() + "/tables";
}

// What sanitizers and assertions watch: no bytes do harm, and what is refused is refused by a file's name.
TEST_P(Samples, ReadOrRefuseBrokenBytes) {
  const TempFolder folder;
  const Rng rng = Rng(2026).split(GetParam().file);
  int refused = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::string path = broken_copy(GetParam(), folder, rng.split(i));
    for (const bool by_name : {false, true}) {
      ReadOptions options = options_of(GetParam());
      if (by_name) options.format = GetParam().format;
      options.drop_bad_rows = i % 4 == 3;
      const auto trace = read_trace(path, options);
      if (!trace) {
        ++refused;
        EXPECT_TRUE(trace.error().file.starts_with(path)) << whole_error(trace);
        EXPECT_EQ(whole_error(trace).find('\n'), std::string::npos) << whole_error(trace);
        continue;
      }
      EXPECT_GT(trace->jobs.size(), 0u);
      EXPECT_TRUE(std::is_sorted(trace->jobs.submits().begin(), trace->jobs.submits().end()));
      for (std::uint32_t job = 0; job < trace->jobs.size(); ++job) EXPECT_GE(trace->jobs.work(JobId{job}), Time{});
    }
  }
  EXPECT_GT(refused, 0);
}

TEST_P(Samples, RefuseATwinIdNamingBothLines) {
  if (!is_lines(GetParam()) || GetParam().format == "csv") GTEST_SKIP() << "no ids, or not one line a job";
  if (is_of_runs(GetParam())) GTEST_SKIP() << "a row that stands there again is the same run";
  const TempFolder folder;
  const std::string text = bytes_of(fixture(GetParam().file));
  const Lines lines = lines_of(text);
  const std::size_t first = GetParam().format == "swf" ? 4 : 1;
  const auto trace = read_bytes(folder, GetParam(), text + lines[first] + "\n");
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().line, lines.size() + 1);
  EXPECT_NE(trace.error().message.find("is already used at line " + std::to_string(first + 1)), std::string::npos)
      << whole_error(trace);
}

TEST_P(Samples, RefuseAFileWithoutJobs) {
  if (!is_lines(GetParam())) GTEST_SKIP() << "not one line a job";
  const TempFolder folder;
  const Lines lines = lines_of(bytes_of(fixture(GetParam().file)));
  const auto trace = read_bytes(folder, GetParam(), lines.front() + "\n");
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message.find("holds no job"), std::string::npos) << whole_error(trace);
}

TEST(TraceFormats, EachHasASample) {
  for (const TraceFormatInfo& format : trace_formats()) {
    EXPECT_TRUE(std::any_of(samples().begin(), samples().end(), [&](const Sample& sample) {
      return sample.format == format.name;
    })) << format.name;
    EXPECT_FALSE(format.summary.empty());
  }
}

TEST(TraceFormats, UnknownNamesGetTheNearest) {
  const auto trace = read_trace(fixture("swf.swf"), {.format = "swff"});
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message.find("did you mean 'swf'"), std::string::npos) << whole_error(trace);
}

TEST(TraceFormats, PaiTablesInOneTarArchiveReadTheSame) {
  // ustar by hand: name at 0, mode at 100, size in octal at 124, checksum at 148, type '0' at 156, magic at 257.
  std::string tar;
  for (const char* name : {"pai_group_tag_table.csv", "pai_instance_table.csv", "pai_job_table.csv",
                           "pai_job_table.header", "pai_task_table.csv"}) {
    const std::string bytes = bytes_of(fixture("pai_tables/" + std::string(name)));
    std::string header(512, '\0');
    const std::string path = "data/" + std::string(name);
    header.replace(0, path.size(), path);
    header.replace(100, 7, "0000644");
    std::ostringstream octal;
    octal << std::oct << bytes.size();
    header.replace(124, 11, std::string(11 - octal.str().size(), '0') + octal.str());
    header[156] = '0';
    header.replace(257, 8,
                   std::string("ustar\0"
                               "00",
                               8));
    header.replace(148, 8, "        ");
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    std::ostringstream check;
    check << std::oct << sum;
    header.replace(148, 7, std::string(6 - check.str().size(), '0') + check.str() + std::string(1, '\0'));
    tar += header + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
  }
  tar += std::string(1024, '\0');
  const TempFolder folder;
  const auto trace = read_trace(folder.write("tables.tar", tar));
  ASSERT_TRUE(trace) << whole_error(trace);
  EXPECT_EQ(describe(trace->jobs), describe(read_trace(fixture("pai_tables"))->jobs));
}

TEST(TraceFormats, PaiTablesAreEnoughWithoutInstancesAndTags) {
  const TempFolder folder;
  for (const char* name : {"pai_job_table.csv", "pai_task_table.csv"}) {
    folder.write(name, bytes_of(fixture("pai_tables/" + std::string(name))));
  }
  const auto trace = read_trace(folder.path());
  ASSERT_TRUE(trace) << whole_error(trace);
  EXPECT_EQ(
      describe(trace->jobs).front(),
      "job1 at 1000000000us for 690000000us 4x500 cpu=8000 mem=60000 on=T4 start=1010000000 user=user1 status=passed");
}

const std::string sacct_header =
    "JobID|User|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|ReqTRES|AllocTRES|NNodes|JobName\n";

// Months that were exported one by one overlap: a job that ran at the end of one stands in both.
TEST(Sacct, ARunThatTwoExportsRepeatCountsOnce) {
  const std::string row =
      "7|ann|gpu|COMPLETED|2024-03-01T08:00:00|2024-03-01T08:00:00|2024-03-01T08:00:10|2024-03-01T08:01:10|60|"
      "cpu=1,gres/gpu=1||1|x\n";
  const auto trace = trace_of(sacct_header + row + row);
  ASSERT_TRUE(trace) << trace.error().to_string();
  EXPECT_EQ(describe(trace->jobs).size(), 1u);
  EXPECT_EQ(to_seconds(trace->jobs.work(JobId{0})), 60);
  EXPECT_EQ(dropped(trace->report), (Counts{{"the same run again", 1}}));
}

TEST(Sacct, AJobThatWasRequeuedAndRunsStillIsLeftOut) {
  const std::string first =
      "7|ann|gpu|REQUEUED|2024-03-01T08:00:00|2024-03-01T08:00:00|2024-03-01T08:00:10|2024-03-01T08:01:10|60|"
      "cpu=1,gres/gpu=1||1|x\n";
  const std::string second =
      "7|ann|gpu|RUNNING|2024-03-01T08:02:00|2024-03-01T08:02:00|2024-03-01T08:03:10|Unknown|60|cpu=1,gres/"
      "gpu=1||1|x\n";
  const std::string other =
      "8|ann|gpu|COMPLETED|2024-03-01T08:00:00|Unknown|2024-03-01T08:00:10|2024-03-01T08:01:10|60|cpu=1,gres/gpu=1||1|y"
      "\n";
  const auto trace = trace_of(sacct_header + first + second + other);
  ASSERT_TRUE(trace) << trace.error().to_string();
  EXPECT_EQ(trace->jobs.size(), 1u);
  EXPECT_EQ(dropped(trace->report), (Counts{{"still running at the end of the trace", 2}}));
}

// The number of another user's later job: ids that are used again are not requeues, but other jobs.
TEST(Sacct, AnIdOfTwoUsersIsTwoJobs) {
  const auto row = [](const std::string& user, const std::string& day) {
    return "7|" + user + "|gpu|COMPLETED|2024-03-" + day + "T08:00:00|Unknown|2024-03-" + day + "T08:00:10|2024-03-" +
           day + "T08:01:10|60|cpu=1,gres/gpu=1||1|x\n";
  };
  const auto trace = trace_of(sacct_header + row("bob", "02") + row("ann", "01"));
  ASSERT_TRUE(trace) << whole_error(trace);
  ASSERT_EQ(trace->jobs.size(), 2u);
  EXPECT_EQ(trace->jobs.external_id(JobId{0}), "7");
  EXPECT_EQ(trace->jobs.external_id(JobId{1}), "7#2");
  EXPECT_EQ(trace->jobs.users()[trace->jobs.user(JobId{1})], "bob");
}

TEST(Csv, AQuotedFieldHoldsLineEnds) {
  const auto trace = trace_of(
      "job_id,submit_s,work_s,tasks,gpu_milli_per_task,name\r\n"
      "1,0,5,1,1000,\"two\r\nlines, \"\"quoted\"\"\"\r\n"
      "2,1,5,1,1000,plain\r\n");
  ASSERT_TRUE(trace) << trace.error().to_string();
  ASSERT_EQ(trace->jobs.size(), 2u);
  EXPECT_EQ(trace->jobs.names()[trace->jobs.name(JobId{0})], "two\\x0alines, \"quoted\"");
}

// A row is split once, not again for each of its lines, and a header's names are compared with their neighbours in
// order.
TEST(Csv, RowsOfManyLinesAndHeadersOfManyColumnsAreRead) {
  std::string many_lines = "job_id,submit_s,work_s,tasks,gpu_milli_per_task,name\n1,0,5,1,1000,\"";
  for (int i = 0; i < 200'000; ++i) many_lines += "\"\"\n";
  const auto tall = trace_of(many_lines + "\"\n2,1,5,1,1000,plain\n");
  ASSERT_TRUE(tall) << tall.error().to_string();
  EXPECT_EQ(tall->jobs.size(), 2u);
  std::string header = "job_id,submit_s,work_s,tasks,gpu_milli_per_task", row = "1,0,5,1,1000";
  for (int i = 0; i < 100'000; ++i) {
    header += ",column" + std::to_string(i);
    row += ',';
  }
  const auto wide = trace_of(header + "\n" + row + "\n");
  ASSERT_TRUE(wide) << wide.error().to_string();
  EXPECT_EQ(wide->jobs.size(), 1u);
}

// ---- names ----

std::string first_user(const Result<Trace>& trace) {
  return trace ? trace->jobs.users()[trace->jobs.user(JobId{0})] : trace.error().to_string();
}
std::string first_family(const Result<Trace>& trace) {
  return trace ? trace->jobs.families()[trace->jobs.family(JobId{0})] : trace.error().to_string();
}

TEST(Names, AreTheSameWhateverTheReader) {
  const std::string native = "job_id,submit_s,work_s,tasks,gpu_milli_per_task,user\n1,0,5,1,1000,";
  EXPECT_EQ(first_user(trace_of(native + "\" ann\r\n\"\n")), "ann");
  EXPECT_EQ(first_user(trace_of(native + "ann\x01\n")), "ann\\x01");
  EXPECT_EQ(first_user(trace_of(native + "j\xf6rg\n")), "j\\xf6rg");
  EXPECT_EQ(first_user(trace_of(native + "jörg\n")), "jörg");
  EXPECT_EQ(
      first_user(trace_of("[{\"jobid\": \"a\", \"user\": \" ann\\u0001\\n\", \"vc\": \"v\",\n"
                          " \"submitted_time\": \"2017-10-07 01:12:09\", \"num_gpus\": 1, \"attempts\": [\n"
                          "  {\"start_time\": \"2017-10-07 01:12:09\", \"end_time\": \"2017-10-07 01:13:09\"}]}]")),
      "ann\\x01");
  EXPECT_EQ(first_family(trace_of("job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
                                  "1,1,0,1,\"vgg\v\",5,1\n")),
            "vgg");
  EXPECT_EQ(first_family(trace_of("job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,duration\n"
                                  "1,u,1,8,96,Eval\x7f,COMPLETED,2023-07-01 00:00:00,2023-07-01 00:00:01,5\n")),
            "Eval\\x7f");
}

TEST(Names, AreComparedAsTheyAreShown) {
  const std::string text =
      "job_id,submit_s,work_s,tasks,gpu_milli_per_task,user\n1,0,5,1,1000,\xff\n2,0,5,1,1000,\xfe\n";
  for (const char* where : {"user=\\xff", "user=\xff"}) {
    const auto trace = trace_of(text, {.where = where});
    ASSERT_TRUE(trace) << trace.error().to_string();
    EXPECT_EQ(trace->jobs.size(), 1u) << where;
  }
}

TEST(Names, OfJobsStayDistinct) {
  const std::string header = "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n";
  EXPECT_TRUE(trace_of(header + "a\x01,0,5,1,1000\na\x02,0,5,1,1000\na,0,5,1,1000\n"));
  const auto twins = trace_of(header + "\"a\n\",0,5,1,1000\na,0,5,1,1000\n");
  ASSERT_FALSE(twins);
  EXPECT_NE(twins.error().message.find("ids must be unique"), std::string::npos) << twins.error().to_string();
}

TEST(Csv, AQuoteThatNeverClosesIsAnErrorOfItsFirstLine) {
  const auto trace =
      trace_of("job_id,submit_s,work_s,tasks,gpu_milli_per_task,name\n1,0,5,1,1000,\"open\n2,1,5,1,1000,x\n");
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().line, 2u);
  EXPECT_NE(trace.error().message.find("a quote is not closed"), std::string::npos);
}

// ---- --where ----

std::vector<std::string> ids_where(const std::string& where, const std::string& file = "native.csv") {
  const auto trace = read_trace(fixture(file), {.where = where});
  if (!trace) return {trace.error().to_string()};
  std::vector<std::string> ids;
  for (std::uint32_t i = 0; i < trace->jobs.size(); ++i) ids.push_back(trace->jobs.external_id(JobId{i}));
  return ids;
}

// class= looked at the family where the column was written otherwise, or there was none.
TEST(Where, ClassIsTheColumnOfThatNameAndFamilyTheFamily) {
  for (const std::string column : {"class", "Class"}) {
    const TempFolder folder;
    const std::string path =
        folder.write("jobs.csv", "job_id,submit_s,work_s,tasks,gpu_milli_per_task,family," + column +
                                     "\n1,0,5,1,1000,train,infer\n2,1,5,1,1000,infer,train\n");
    for (const std::string name : {"class", "Class", "family"}) {
      const auto trace = read_trace(path, {.where = name + "=train"});
      ASSERT_TRUE(trace) << trace.error().to_string();
      ASSERT_EQ(trace->jobs.size(), 1u) << column << " " << name;
      EXPECT_EQ(trace->jobs.external_id(JobId{0}), name == "family" ? "1" : "2") << column << " " << name;
    }
  }
  EXPECT_NE(ids_where("class=bert").front().find("'class' is no column of this trace"), std::string::npos);
}

TEST(Where, KeepsTheJobsThatMeetEveryCondition) {
  EXPECT_EQ(ids_where("user=ann"), (Lines{"a1", "a3"}));
  EXPECT_EQ(ids_where("user!=ann"), (Lines{"a2"}));
  EXPECT_EQ(ids_where("vc=vc1|vc2"), (Lines{"a1", "a2", "a3"}));
  EXPECT_EQ(ids_where("partition=vc1,gpus>=4"), (Lines{"a1", "a3"}));
  EXPECT_EQ(ids_where("gpus<1"), (Lines{"a2"}));
  EXPECT_EQ(ids_where("gpu_type=V100"), (Lines{"a1"}));
  EXPECT_EQ(ids_where("family=bert|resnet50,status=failed"), (Lines{"a3"}));
  EXPECT_EQ(ids_where("duration>100,duration<=300"), (Lines{"a3"}));
  EXPECT_EQ(ids_where(" user = bob , gpus != 1 "), (Lines{"a2"}));
  EXPECT_EQ(ids_where("\"name=train, v2\""), (Lines{"a1"}));
}

TEST(Where, LooksAtAnyColumnOfTheFile) {
  EXPECT_EQ(ids_where("qos=high", "sacct_runs.txt"), (Lines{"400"}));
  EXPECT_EQ(ids_where("ElapsedRaw>=7000", "sacct_runs.txt"), (Lines{"300"}));
  EXPECT_EQ(ids_where("partition=cpu", "sacct_runs.txt"), (Lines{"600"}));
  EXPECT_EQ(ids_where("user=7", "swf.swf"), (Lines{"2"}));
  EXPECT_EQ(ids_where("user=user3", "pai_tables"), (Lines{"job5"}));
  EXPECT_EQ(ids_where("vc=6214e9", "cluster_job_log.json"), (Lines{"application_1_0003"}));
}

TEST(Where, CountsWhatItLeavesOut) {
  const auto trace = read_trace(fixture("native.csv"), {.where = "user=ann"});
  ASSERT_TRUE(trace);
  EXPECT_EQ(dropped(trace->report), (Counts{{"not what --where asks for", 1}}));
  EXPECT_EQ(trace->report.kept, 2u);
}

TEST(Where, FiltersSyntheticTracesToo) {
  const auto all = read_trace("synthetic:philly");
  const auto large = read_trace("synthetic:philly", {.where = "gpus>=8"});
  ASSERT_TRUE(all && large) << large.error().to_string();
  EXPECT_GT(large->jobs.size(), 0u);
  EXPECT_LT(large->jobs.size(), all->jobs.size());
}

TEST(Where, NamesWhatItDoesNotKnow) {
  const auto message = [](const std::string& where) { return ids_where(where).front(); };
  EXPECT_NE(message("usr=ann").find("--where: 'usr' is no column of this trace (did you mean 'user'?)"),
            std::string::npos)
      << message("usr=ann");
  EXPECT_NE(message("user").find("expected COLUMN=VALUE"), std::string::npos);
  EXPECT_NE(message("gpus>many").find("expected one number behind"), std::string::npos);
  EXPECT_NE(message("user=nobody").find("3 of 3 rows left out: not what --where asks for"), std::string::npos);
  EXPECT_NE(ids_where("colour=red", "swf.swf").front().find("is no column"), std::string::npos);
}

TEST(TraceFormats, ColumnsThatNobodyReadsAreNoted) {
  const auto trace = read_trace(fixture("philly_jobs.csv"));
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->report.notes.front(), "columns not used: run_s");
}

// A sample with one text replaced by another, and the error that this must give. {} stands for the file's path.
struct BadInput {
  std::string file;
  std::string from;
  std::string to;
  std::string error;
  std::string columns = {};
};

void PrintTo(const BadInput& bad, std::ostream* out) { *out << bad.file << " with " << bad.to; }

class BadTraces : public testing::TestWithParam<BadInput> {};

const std::string any_columns = "submit=when,gpus=cards,start=began,end=finished";

INSTANTIATE_TEST_SUITE_P(
    Readers, BadTraces,
    testing::Values(
        // Missing columns.
        BadInput{"philly_jobs.csv", "job_id,", "id,", "{}:1: missing column 'job_id'; the header has id,submit_s"},
        BadInput{"helios_cluster_log.csv", "job_id", "job", "{}:1: missing column 'job_id'"},
        BadInput{"sacct.txt", "ReqTRES|AllocTRES", "ReqMem|AllocCPUS",
                 "{}:1: missing column 'ReqTRES' or 'AllocTRES' or 'AllocGRES' or 'ReqGRES'"},
        BadInput{"any.csv", "cards", "gpus", "{}:1: missing column 'cards'", any_columns},
        BadInput{"any.csv", "when", "who", "{}:1: column 'who' appears twice in the header", any_columns},
        // Text, negative and NaN where a number belongs.
        BadInput{"philly_jobs.csv", ",3613033", ",soon",
                 "{}:2: duration_s: expected a number of seconds >= 0, found 'soon'"},
        BadInput{"philly_jobs.csv", "266563", "-1", "{}:3: submit_s: expected a number of seconds >= 0, found '-1'"},
        BadInput{"philly_jobs.csv", "266563", "nan", "{}:3: submit_s: expected a number of seconds >= 0, found 'nan'"},
        BadInput{"philly_jobs.csv", "3222990", "1e400", "{}:3: duration_s: expected a number of seconds"},
        BadInput{"philly_jobs.csv", "3222990", "99999999999999999999",
                 "{}:3: duration_s: expected a number of seconds"},
        BadInput{"pai_sim.csv", ",120,", ",inf,", "{}:2: duration: expected a number of seconds >= 0, found 'inf'"},
        BadInput{"pai_sim.csv", ",0.5,", ",1.5,", "{}:3: num_gpu: expected a whole number of GPUs, or a share below 1"},
        BadInput{"pai_sim.csv", ",0.5,", ",1000000001,", "{}:3: num_gpu: expected at most 1000000000 GPUs in all"},
        BadInput{"openb_pods.csv", ",460,", ",1460,", "{}:3: gpu_milli: expected 1 to 1000 thousandths of a GPU"},
        BadInput{"tiresias.csv", "1,8,30", "1,8.5,30", "{}:3: num_gpu: expected an integer >= 1, found '8.5'"},
        BadInput{"muri.csv", ",332,83", ",4000000000000,83", "{}:2: iteration_time: expected at most 1e15 ms"},
        BadInput{"swf.swf", " 1460 ", " soon ", "{}:6: field 2: expected a number >= 0, found 'soon'"},
        BadInput{"swf.swf", " 1460 ", " -1 ", "{}:6: field 2: expected a number >= 0, found '-1'"},
        BadInput{"swf.swf", "552.21", "-5", "{}:6: field 4: expected a number >= 0 or -1, found '-5'"},
        BadInput{"sacct.txt", "|7200|1-00", "|two|1-00",
                 "{}:2: ElapsedRaw: expected a number of seconds >= 0, found 'two'"},
        BadInput{"sacct.txt", "gres/gpu=8,mem=512G,node=2|b", "gres/gpu=lots|b",
                 "{}:2: ReqTRES: expected resources like"},
        BadInput{"helios_cluster_log.csv", "2020-06-09 18:41:27", "yesterday",
                 "{}:3: submit_time: expected seconds or a time"},
        BadInput{"native.csv", ",1,250,", ",0,250,", "{}:3: tasks: expected an integer >= 1, found '0'"},
        BadInput{"native.csv", "2,2000", "2,1500",
                 "{}:4: gpu_milli_per_task: expected a share below 1000 or a multiple"},
        BadInput{"native.csv", "100;200", "100;201", "{}:4: attempts_s: expected attempts that add up to work_s"},
        BadInput{"native.csv", "100;200", "4500000000000;4500000000000",
                 "{}:4: attempts_s: expected attempts that add up to work_s"},
        BadInput{"native.csv", "100;200", "100;100", "{}:4: attempts_s: expected attempts that add up to work_s"},
        BadInput{"native.csv", "100;200", "100;-1;201", "{}:4: attempts_s: expected seconds joined by ';'"},
        BadInput{"any.csv", "2024-03-01 09:10:00", "4600000000001", "{}:2: finished: expected seconds or a time",
                 any_columns},
        BadInput{"cluster_job_log.json", "\"2017-10-07 01:11:39\"", "\"noon\"",
                 "{}:2: submitted_time: expected a time like"},
        // End before start.
        BadInput{"helios_cluster_log.csv", "2020-06-09 18:45:46", "2020-06-09 18:41:30",
                 "{}:3: end_time: expected an end"},
        BadInput{"openb_pods.csv", "427161", "427064",
                 "{}:3: deletion_time: expected an end not before scheduled_time"},
        BadInput{"cluster_job_log.json", "01:13:23", "01:12:08",
                 "{}:2: end_time: expected an end not before the start"},
        BadInput{"any.csv", "2024-03-01 09:10:00", "2024-03-01 08:09:59", "{}:2: finished: expected an end",
                 any_columns},
        // Zero and too many GPUs.
        BadInput{"philly_jobs.csv", "0,0,1,", "0,0,0,", "{}:2: num_gpus: expected an integer >= 1, found '0'"},
        BadInput{"philly_jobs.csv", "0,0,1,", "0,0,5000000000,", "{}:2: num_gpus: expected an integer"},
        // Broken text.
        BadInput{"native.csv", "\"train, v2\"", "\"train, v2", "{}:2: row: expected 18 fields, a quote is not closed"},
        BadInput{"philly_jobs.csv", "1,266563", "1,2,266563", "{}:3: row: expected 6 fields, found 7"},
        BadInput{"cluster_job_log.json", "\"Killed\",", "\"Killed\"", "{}:17: is not valid JSON here"},
        BadInput{"any.csv", "when", "at", "{}:1: missing column 'when'", any_columns},
        BadInput{"any.csv", "when", "when",
                 "{}: --columns: expected ROLE=COLUMN, found 'gpu=cards' (did you mean 'gpus'?)",
                 "submit=when,gpu=cards"},
        BadInput{"any.csv", "when", "when", "{}:1: format not recognised"}));

TEST_P(BadTraces, AreRefusedInOneClearLine) {
  const TempFolder folder;
  std::string text = bytes_of(fixture(GetParam().file));
  const std::size_t place = text.find(GetParam().from);
  ASSERT_NE(place, std::string::npos) << GetParam().from;
  text.replace(place, GetParam().from.size(), GetParam().to);
  const std::string path = folder.write("trace", text);
  const auto trace = read_trace(path, {.columns = GetParam().columns});
  ASSERT_FALSE(trace) << GetParam().error;
  const std::string expected = path + GetParam().error.substr(2);
  EXPECT_EQ(whole_error(trace).substr(0, expected.size()), expected);
  EXPECT_EQ(whole_error(trace).find('\n'), std::string::npos);
}

TEST(BadFiles, AreRefusedInOneClearLine) {
  const TempFolder folder;
  const std::string missing = folder.path() + "/none.csv";
  EXPECT_EQ(whole_error(read_trace(missing)), missing + ": cannot open: No such file or directory");
  EXPECT_EQ(whole_error(read_trace(folder.path())), folder.path() + ": is a folder; expected a file");
  const std::string empty = folder.write("empty.csv", "");
  EXPECT_EQ(whole_error(read_trace(empty)), empty + ": is empty; expected a trace");
  const std::string hollow = folder.write("empty.csv.gz", packed("", ARCHIVE_FILTER_GZIP));
  EXPECT_EQ(whole_error(read_trace(hollow)), hollow + ": is empty; expected a trace");
  const std::string binary = folder.write("noise", std::string("\x7f"
                                                               "ELF\0\1\2\3",
                                                               8));
  EXPECT_EQ(whole_error(read_trace(binary)).substr(0, binary.size() + 25), binary + ":1: format not recognised");
}

// Such times wrapped around, and the replay told of jobs that ended before they came.
TEST(BadFiles, WithTimesThatNoClockCountsAreRefused) {
  const TempFolder folder;
  const auto error = [&](const std::string& rows) {
    return whole_error(
        read_trace(folder.write("jobs.csv", "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n" + rows)));
  };
  const std::string refused =
      folder.path() +
      "/jobs.csv: submissions and run times together exceed 146,000 years, the range of a clock in "
      "microseconds";
  EXPECT_EQ(error("0,0,4500000000000,1,1000\n"), "no error");
  EXPECT_EQ(error("0,0,4500000000000,1,1000\n1,0,4500000000000,1,1000\n"), refused);
  EXPECT_EQ(error("0,-2250000000000,1,1,1000\n1,2250000000000,1,1,1000\n"), "no error");
  EXPECT_EQ(error("0,-4500000000000,1,1,1000\n1,4500000000000,1,1,1000\n"), refused);  // SWF counts from the first
  EXPECT_EQ(error("0,-4500000000000,500000000000,1,1000\n1,1,1,1,1000\n"), refused);
}

TEST(BadFiles, WithGangsThatNoNumberCountsAreRefused) {
  const auto error = whole_error(
      trace_of("job_id,submit_s,work_s,tasks,gpu_milli_per_task\n0,0,1,1000000000,1000\n1,0,1,1000000000,2000\n"));
  EXPECT_NE(error.find(":3: gpu_milli_per_task: expected at most 1000000000 GPUs in all"), std::string::npos) << error;
}

// The numbers of cards of several types, or of nodes of several components, together were 2^32, which 32 bits call 0.
TEST(Sacct, AJobOfMoreTasksThanAreCountedIsLeftOut) {
  const std::string header = "JobID|Submit|ElapsedRaw|AllocTRES|NNodes\n";
  const std::string kept = "9|0|5|gres/gpu=1|1\n";
  std::string types;
  for (const char* type : {"a", "b", "c", "d"}) types += std::string("gres/gpu:") + type + "=1000000000,";
  auto trace = trace_of(header + "1|0|5|" + types + "gres/gpu:e=294967296|\n" + kept);
  ASSERT_TRUE(trace) << whole_error(trace);
  EXPECT_EQ(dropped(trace->report), (Counts{{"asks for more than 1,000,000,000 GPUs or nodes", 1}}));
  std::string components;
  for (const char* id : {"1+0", "1+1", "1+2", "1+3"}) components += std::string(id) + "|0|5|cpu=1|1000000000\n";
  trace = trace_of(header + components + "1+4|0|5|cpu=1|294967296\n" + kept);
  ASSERT_TRUE(trace) << whole_error(trace);
  EXPECT_EQ(dropped(trace->report), (Counts{{"asks for more than 1,000,000,000 GPUs or nodes", 5}}));
}

TEST(Sacct, AJobOfMoreThanAnyMachineHasIsLeftOut) {
  const auto trace = trace_of(
      "JobID|Submit|ElapsedRaw|AllocTRES\n1|0|5|cpu=1000000000,gres/gpu=1\n2|0|5|mem=9000T,gres/gpu=1\n"
      "3|0|5|cpu=4,mem=2T,gres/gpu=1\n");
  ASSERT_TRUE(trace) << whole_error(trace);
  EXPECT_EQ(dropped(trace->report), (Counts{{"asks for more cores or memory a node than any machine has", 2}}));
}

// Such sums wrapped around, and a negative run time ended the program.
TEST(BadFiles, OfAttemptsLongerThanAnyClockAreRefused) {
  const std::string row = "|4500000000000|gres/gpu=1\n";
  const std::string sacct = "JobID|Submit|ElapsedRaw|AllocTRES\n1|0" + row + "1|1" + row + "1|2" + row;
  EXPECT_NE(whole_error(trace_of(sacct)).find("exceed 146,000 years"), std::string::npos);
  std::string attempts;
  for (int i = 0; i < 31; ++i) {
    attempts += std::string(i == 0 ? "" : ",") + R"({"start_time": "2018-01-01 00:00:00",
      "end_time": "9999-12-31 23:59:59", "detail": [{"ip": "m", "gpus": ["g"]}]})";
  }
  const std::string philly = R"([{"jobid": "a", "vc": "v", "user": "u", "status": "Pass",
    "submitted_time": "2017-10-07 01:11:39", "attempts": [)" +
                             attempts + "]}]";
  EXPECT_NE(whole_error(trace_of(philly)).find("exceed 146,000 years"), std::string::npos);
}

TEST(Pai, RefusesMoreThanAnyMachineHas) {
  const auto error = [](const std::string& cpu, const std::string& memory) {
    const TempFolder folder;
    folder.write("pai_job_table.csv", "j,i,u,Terminated,1,5\n");
    folder.write("pai_task_table.csv", "j,t,2,Terminated,1,5," + cpu + "," + memory + ",100,T4\n");
    return whole_error(read_trace(folder.path()));
  };
  EXPECT_EQ(error("600", "29"), "no error");
  EXPECT_NE(error("1e15", "29").find("plan_cpu: expected a number >= 0 and <= 1e+08"), std::string::npos);
  EXPECT_NE(error("600", "1e15").find("plan_mem: expected a number >= 0 and <= "), std::string::npos);
}

constexpr const char* flow_columns = "job_id,submit_s,work_s,tasks,gpu_milli_per_task,after\n";

TEST(Native, JobsWaitForOthersByTheirIds) {
  const TempFolder folder;
  const std::string rows = "b,0,1,1,1000, a ; c\na,5,1,1,1000,\nc,1,1,1,1000,a\n";
  const auto trace = read_trace(folder.write("flow.csv", flow_columns + rows));
  ASSERT_TRUE(trace) << whole_error(trace);
  const JobTable& jobs = trace->jobs;  // b, c, a
  ASSERT_EQ(jobs.dependencies().of(JobId{0}).size(), 2u);
  EXPECT_EQ(jobs.dependencies().of(JobId{0})[0], JobId{1});
  EXPECT_EQ(jobs.dependencies().of(JobId{0})[1], JobId{2});
  EXPECT_EQ(jobs.dependencies().of(JobId{1})[0], JobId{2});

  const std::string again = folder.path() + "/again.csv";
  ASSERT_TRUE(convert_trace(jobs, "native", again));
  const auto same = read_trace(again);
  ASSERT_TRUE(same) << whole_error(same);
  for (std::uint32_t i = 0; i < 3; ++i) {
    const auto one = jobs.dependencies().of(JobId{i}), other = same->jobs.dependencies().of(JobId{i});
    EXPECT_TRUE(std::equal(one.begin(), one.end(), other.begin(), other.end()));
  }
}

TEST(Native, DelaysBehindOthersGoThereAndBack) {
  const TempFolder folder;
  const std::string header = "job_id,submit_s,work_s,tasks,gpu_milli_per_task,after,after_delay_s\n";
  const auto trace =
      read_trace(folder.write("flow.csv", header + "1,0,1,1,1000,,\n2,1,1,1,1000,1,90.5\n3,2,1,1,1000,1;2,7\n"));
  ASSERT_TRUE(trace) << whole_error(trace);
  for (const std::string format : {"native", "swf"}) {
    const auto notes = convert_trace(trace->jobs, format, folder.path() + "/again");
    ASSERT_TRUE(notes);
    EXPECT_EQ(notes->notes.size(), format == "swf" ? 1u : 0u);  // job 3 waits for two
    const auto again = read_trace(folder.path() + "/again");
    ASSERT_TRUE(again) << whole_error(again);
    EXPECT_EQ(again->jobs.dependencies().delay(JobId{1}), from_seconds(90.5)) << format;
    EXPECT_EQ(again->jobs.dependencies().delay(JobId{2}), whole_seconds(format == "swf" ? 0 : 7));
  }
  const std::string alone = folder.write("a.csv", header + "1,0,1,1,1000,,5\n");
  EXPECT_EQ(whole_error(read_trace(alone)), alone +
                                                ":2: after_delay_s: expected no delay where the job waits for no "
                                                "other, found '5'; 1 row is bad, which --drop-bad-rows leaves out");
}

TEST(Native, DependenciesThatCannotBeAreOneLine) {
  const TempFolder folder;
  const std::string unknown = folder.write("u.csv", std::string(flow_columns) + "a,0,1,1,1000,z\n");
  EXPECT_EQ(whole_error(read_trace(unknown)),
            unknown + ":2: after: job 'a' waits for job 'z', which is not in the table");
  const std::string ring = folder.write("r.csv", std::string(flow_columns) + "a,0,1,1,1000,b\nb,0,1,1,1000,a\n");
  EXPECT_EQ(whole_error(read_trace(ring)),
            ring + ":2: after: jobs wait for each other: job 'a' for job 'b' for job 'a'");
  const auto validation = validate_trace(ring, {});
  ASSERT_TRUE(validation);
  EXPECT_EQ(validation->refusals, 1u);
}

// Nobody waits for a row that is left out.
TEST(Native, JobsThatAreLeftOutHoldNobodyBack) {
  const TempFolder folder;
  const std::string path =
      folder.write("f.csv", std::string(flow_columns) + "a,0,1,1,1000,\nb,0,1,2,1000,a\nc,0,1,1,1000,a;b\n");
  const auto small = read_trace(path, {.where = "tasks=1"});
  ASSERT_TRUE(small) << whole_error(small);
  EXPECT_EQ(small->jobs.dependencies().of(JobId{1}).size(), 1u);
  const auto fitting = fit_to_cluster(*read_trace(path), *parse_cluster("1x1"), Oversize::drop);
  ASSERT_TRUE(fitting) << whole_error(fitting);
  EXPECT_EQ(fitting->jobs.size(), 2u);
  EXPECT_EQ(fitting->jobs.dependencies().of(JobId{1}).size(), 1u);
}

TEST(Sacct, ANegativeTimeLimitIsNone) {
  const TempFolder folder;
  const std::string rows = "1|2024-01-01T00:00:00|60|10|gres/gpu=1\n2|2024-01-01T00:00:01|60|-10|gres/gpu=1\n";
  const auto trace = read_trace(folder.write("jobs.txt", "JobID|Submit|ElapsedRaw|TimelimitRaw|ReqTRES\n" + rows));
  ASSERT_TRUE(trace) << whole_error(trace);
  EXPECT_EQ(trace->jobs.estimate(JobId{0}), whole_seconds(600));
  EXPECT_EQ(trace->jobs.estimate(JobId{1}), Time::max());
}

TEST(FitToCluster, RefusesDropsOrClampsWhatIsTooLarge) {
  const Trace trace = *read_trace(fixture("philly_jobs.csv"));  // 1, 8 and 16 GPUs
  const Cluster small = *parse_cluster("1x8");
  const auto refused = fit_to_cluster(trace, small, Oversize::refuse);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("job '2' asks for 16 GPUs, which cluster 1x8 (8 GPUs)"), std::string::npos);
  const Trace fewer = *fit_to_cluster(trace, small, Oversize::drop);
  EXPECT_EQ(fewer.jobs.size(), 2u);
  EXPECT_EQ(fewer.report.kept, 2u);
  EXPECT_EQ(dropped(fewer.report), (Counts{{"larger than the cluster", 1}}));
  const Trace clamped = *fit_to_cluster(trace, small, Oversize::clamp);
  ASSERT_EQ(clamped.jobs.size(), 3u);
  EXPECT_EQ(clamped.jobs.shape(JobId{2}).tasks, 8u);
  EXPECT_EQ(clamped.jobs.external_id(JobId{2}), "2");
  EXPECT_EQ(describe(fit_to_cluster(trace, *parse_cluster("2x8"), Oversize::refuse)->jobs), describe(trace.jobs));
}

TEST(FitToCluster, KeepsVirtualClustersToTheirNodes) {
  const Trace trace = *read_trace(fixture("philly_jobs.csv"));  // 16 GPUs in 6214e9
  const Cluster cluster = *cluster_from_json(
      R"({"vcs": [{"name": "6214e9"}, {"name": "ee9e8c"}],
          "nodes": [{"gpus": 8, "vc": "6214e9"}, {"count": 4, "gpus": 8, "vc": "ee9e8c"}]})",
      "vcs.json");
  EXPECT_FALSE(fit_to_cluster(trace, cluster, Oversize::refuse));
}

// The real traces: how many rows, and a few values looked up by hand in the files.
struct RealTrace {
  std::string file;
  std::string format;
  std::uint64_t rows;
  std::uint64_t kept;
};

void PrintTo(const RealTrace& real, std::ostream* out) { *out << real.file; }

class RealTraces : public testing::TestWithParam<RealTrace> {};

INSTANTIATE_TEST_SUITE_P(Shared, RealTraces,
                         testing::Values(RealTrace{"philly/philly_jobs.csv", "philly-csv", 80539, 80539},
                                         RealTrace{"philly/philly_attempts_4plus_gpus.json", "philly", 2037, 2037},
                                         RealTrace{"philly/muri_trace1.csv", "tiresias", 1494, 1494},
                                         RealTrace{"philly/muri_trace2.csv", "tiresias", 5755, 5755},
                                         RealTrace{"small/tiresias_60_job.csv", "tiresias", 60, 60},
                                         RealTrace{"alibaba/openb2023/openb_pod_list_default.csv", "openb", 8152, 7255},
                                         RealTrace{"alibaba/pai2020/philly_in_pai_columns_20k.csv", "pai-sim", 20000,
                                                   20000},
                                         RealTrace{"swf/NASA-iPSC-1993-3.1-cln.swf.gz", "swf", 18239, 18239},
                                         RealTrace{"swf/hpc2n_head_alea.swf", "swf", 3170, 3145},
                                         RealTrace{"swf/lublin_256.swf", "swf", 10000, 10000}),
                         [](const auto& real) {
                           std::string name = std::filesystem::path(real.param.file).stem().string();
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
                           return name;
                         });

TEST_P(RealTraces, ReadWhole) {
  const std::string path = real_trace(GetParam().file);
  GPUSCHED_NEEDS_TRACE(path, GetParam().file);
  const auto trace = read_trace(path);
  ASSERT_TRUE(trace) << whole_error(trace);
  EXPECT_EQ(trace->report.format, GetParam().format);
  EXPECT_EQ(trace->report.rows, GetParam().rows);
  EXPECT_EQ(trace->report.kept, GetParam().kept);
  std::uint64_t left_out = 0;
  for (const DroppedRows& entry : trace->report.dropped) left_out += entry.rows;
  EXPECT_EQ(trace->report.rows, trace->report.kept + left_out);
}

TEST(RealPhilly, HasTheValuesOfTheFileAndItsChecksum) {
  const std::string path = real_trace("philly/philly_jobs.csv");
  GPUSCHED_NEEDS_TRACE(path, "philly/philly_jobs.csv");
  const Trace trace = *read_trace(path);
  EXPECT_EQ(trace.jobs.work(JobId{0}), whole_seconds(3613033));
  EXPECT_EQ(trace.jobs.submit(JobId{2}), whole_seconds(266564));
  EXPECT_EQ(trace.jobs.vcs().size(), 14u);
  EXPECT_EQ(trace.jobs.shape(JobId{0}), (Shape{.tasks = 1, .gpu_milli_per_task = whole_gpu}));
}

}  // namespace
}  // namespace gpusched
