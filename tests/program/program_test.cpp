// SPDX-License-Identifier: Apache-2.0
// The program as its users meet it: exit codes, one clear line for bad input, the same bytes every time, and published
// figures through the command line.
#include "tests/program/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "src/policies/learned/score_network.hpp"
#include "src/policies/learned/trained_model.hpp"

namespace gpusched::test {
namespace {

std::string rounded(const json& value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value.get<double>());
  return text;
}

TEST_F(Program, HelpsWithoutArguments) {
  const Outcome outcome = run("");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("gpusched replay synthetic:philly -c 40x8 -p fifo,fifo+easy,srtf -o now\n"));
  EXPECT_THAT(run("--help").out, HasSubstr("replay"));
  EXPECT_THAT(run("replay --help").out, HasSubstr("--policy"));
  EXPECT_THAT(run("--version").out, StartsWith("gpusched "));
  EXPECT_EQ(run("-V").out, run("--version").out);
}

TEST_F(Program, WithoutACudaDeviceCalibrationSaysSoInOneLine) {
  ASSERT_EQ(::setenv("CUDA_VISIBLE_DEVICES", "-1", 1), 0);
  const Outcome outcome = run("calibrate --backend cuda --out " + folder_.path() + "/none.json");
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, StartsWith("gpusched: "));
  EXPECT_THAT(outcome.err, HasSubstr("CUDA"));
  EXPECT_THAT(outcome.err, HasSubstr("--backend cpu measures the processor"));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/none.json"));
}

// A first build makes the program that replays alone.
TEST_F(Program, SaysHowToBuildTheProgramsBesideIt) {
  const std::string alone = folder_.path() + "/alone";
  std::filesystem::create_directory(alone);
  std::filesystem::copy_file(GPUSCHED_PROGRAM, alone + "/gpusched");
  const auto said = [&](const std::string& arguments) {
    const std::string err = folder_.path() + "/err";
    const int status = std::system((alone + "/gpusched " + arguments + " 2>" + err).c_str());
    EXPECT_EQ(WEXITSTATUS(status), 1) << arguments;
    return bytes_of(err);
  };
  const std::string calibrate = "calibrate --out " + folder_.path() + "/profile.json";
  EXPECT_EQ(said(calibrate),
            "gpusched: " + alone + "/gpusched-calibrate cannot be started: No such file or directory\n");
  folder_.write("alone/CMakeCache.txt", "");
  const std::string build = " is not built yet; build it: cmake --build " + alone + " --target ";
  EXPECT_EQ(said(calibrate), "gpusched: gpusched-calibrate" + build + "gpusched_calibrate\n");
  EXPECT_EQ(said("train"), "gpusched: gpusched-train" + build + "gpusched_train\n");
  EXPECT_EQ(said("search none.json"), "gpusched: gpusched-search" + build + "gpusched_search_program\n");
}

TEST_F(Program, FitsItsHelpIntoEightyColumns) {
  for (const std::string arguments :
       {"--help", "replay --help", "evaluate --help", "trace --help", "trace validate --help", "trace generate --help",
        "policies qssf", "policies slurm", "policies tiresias@code"}) {
    std::istringstream text(run(arguments).out);
    for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 80u) << arguments << ": " << line;
  }
}

TEST_F(Program, PrintsATable) {
  const Outcome outcome = run("replay --trace " + small_trace() + " --cluster 2x2 --policy fifo,srtf");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("3 jobs of small.csv on 2x2 (4 GPUs on 2 nodes)"));
  EXPECT_THAT(outcome.out, HasSubstr("srtf*"));
  EXPECT_EQ(outcome.err, "");
}

TEST_F(Program, JsonIsOneObjectWithTheKeysThatScriptsRelyOn) {
  const Outcome outcome = run("replay --json --trace " + small_trace() + " --cluster 2x2 --policy fifo,srtf");
  const json report = json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << outcome.out;
  EXPECT_EQ(report.size(), 2u);
  EXPECT_EQ(report["manifest"]["trace"]["kept"], 3);
  EXPECT_EQ(report["manifest"]["trace"]["sha256"].get<std::string>().size(), 64u);
  ASSERT_EQ(report["runs"].size(), 2u);
  const json& run = report["runs"][1];
  EXPECT_EQ(run.size(), 4u);
  EXPECT_EQ(run["policy"], "srtf");
  EXPECT_EQ(run["cluster"], "2x2");
  for (const char* key : {"jobs",
                          "avg_jct_s",
                          "median_jct_s",
                          "p95_jct_s",
                          "p99_jct_s",
                          "avg_wait_s",
                          "p99_wait_s",
                          "avg_bounded_slowdown",
                          "worst_decile_slowdown",
                          "makespan_s",
                          "last_end_s",
                          "gpu_utilization",
                          "gpu_allocation",
                          "preemptions",
                          "energy_kwh",
                          "gpu_fragmentation",
                          "jain_fairness",
                          "max_finish_time_ratio",
                          "events",
                          "sim_seconds",
                          "jobs_per_s"}) {
    EXPECT_TRUE(run["metrics"].contains(key)) << key;
  }
  EXPECT_EQ(run["metrics"].size(), 32u);
}

TEST_F(Program, WritesTheFilesOfEachPolicy) {
  const std::string out = folder_.path() + "/new/results";
  ASSERT_EQ(run("replay --trace " + small_trace() + " --cluster 2x2 --policy fifo --out " + out).code, 0);
  EXPECT_EQ(bytes_of(out + "/fifo/jobs.csv"),
            "job_id,user,group,gpus,submit_s,first_start_s,end_s,run_s,wait_s,jct_s,preemptions,status,"
            "vc,class,gpu_type,requested_s,measured,estimate_s\n"
            "a,,,2,0,0,10,10,0,10,0,unknown,x,,GPU,,true,\n"
            "b,,,1,2,2,6,4,0,4,0,unknown,y,,GPU,,true,\n"
            "c,,,0.5,4,4,34.5,30.5,0,30.5,0,unknown,x,,GPU,,true,\n");
  EXPECT_THAT(bytes_of(out + "/fifo/intervals.csv"), StartsWith("job_id,node,gpus,start_s,end_s\na,0,2,0,10\n"));
  EXPECT_TRUE(json::parse(bytes_of(out + "/fifo/summary.json"), nullptr, false).is_object());
  EXPECT_TRUE(json::parse(bytes_of(out + "/manifest.json"), nullptr, false).is_object());
}

TEST_F(Program, ANewRunTakesTheFilesOfAnEarlierOneAwayAndNoOthers) {
  const std::string out = folder_.path() + "/out", common = " --cluster 2x2 --out " + out + " " + small_trace();
  ASSERT_EQ(run("replay --policy fifo,sjf,srtf" + common).code, 0);
  folder_.write("out/srtf/notes", "mine");
  ASSERT_EQ(run("replay --policy sjf" + common).code, 0);
  EXPECT_FALSE(std::filesystem::exists(out + "/fifo"));
  EXPECT_FALSE(std::filesystem::exists(out + "/srtf/jobs.csv"));
  EXPECT_EQ(bytes_of(out + "/srtf/notes"), "mine");
  EXPECT_TRUE(std::filesystem::exists(out + "/sjf/jobs.csv"));
  ASSERT_EQ(run("evaluate --policy fifo,sjf --window-jobs 3" + common).code, 0);
  EXPECT_FALSE(std::filesystem::exists(out + "/sjf"));
  EXPECT_TRUE(std::filesystem::exists(out + "/windows.csv"));
  folder_.write("out/manifest.json", R"({"program": "npm"})");
  expect_refused("replay --policy sjf" + common, "manifest.json: is no manifest of gpusched; expected");
  EXPECT_TRUE(std::filesystem::exists(out + "/windows.csv"));
}

TEST_F(Program, WritesTheSameBytesAgainAndOnTwoThreads) {
  const auto files = [&](const std::string& name, const std::string& more) {
    const std::string out = folder_.path() + "/" + name;
    EXPECT_EQ(run("replay --trace " + small_trace() + " --cluster 1x2 --placement random --seed 3" +
                  " --policy fifo,srtf,srsf --split vc --out " + out + more)
                  .code,
              0);
    std::string all;
    for (const char* policy : {"fifo", "srtf", "srsf"}) {
      for (const char* file : {"/summary.json", "/jobs.csv", "/intervals.csv"}) {
        all += bytes_of(out + "/" + policy + file);
      }
    }
    json manifest = json::parse(bytes_of(out + "/manifest.json"));
    manifest.erase("execution");
    return all + manifest.dump();
  };
  const std::string first = files("one", "");
  EXPECT_GT(first.size(), 2000u);
  EXPECT_EQ(files("two", ""), first);
  EXPECT_EQ(files("three", " --threads 3"), first);
}

TEST_F(Program, BackfillsEachPolicyAsItIsAsked) {
  const std::string base = "--trace synthetic:philly --cluster 8x8 --oversize drop ";
  const std::string out = folder_.path() + "/ways";
  ASSERT_EQ(run("replay " + base + "--policy 'fifo,fifo+easy,sjf+conservative{depth=20}' --out " + out).code, 0);
  const auto average = [&](const std::string& folder) {
    return json::parse(bytes_of(folder + "/summary.json"))["metrics"]["avg_jct_s"].get<double>();
  };
  EXPECT_LT(average(out + "/fifo+easy"), average(out + "/fifo"));
  EXPECT_TRUE(std::filesystem::exists(out + "/sjf+conservative_depth=20_/jobs.csv"));
  const json runs = metrics("replay " + base + "--policy fifo,srtf --backfill easy");
  EXPECT_EQ(runs[0]["policy"], "fifo+easy");
  EXPECT_EQ(runs[1]["policy"], "srtf");
  EXPECT_EQ(runs[0]["metrics"]["avg_jct_s"], average(out + "/fifo+easy"));

  const json evaluated =
      metrics("evaluate " + base + "--window-jobs 200 --from 0.8 --policy fifo,fifo+easy,sjf --against fifo+easy");
  EXPECT_EQ(evaluated[1]["policy"], "fifo+easy");
  EXPECT_LT(evaluated[1]["metrics"]["avg_jct_s"], evaluated[0]["metrics"]["avg_jct_s"]);

  expect_refused("replay " + base + "--policy tiresias --backfill easy",
                 "--backfill: tiresias cannot be backfilled: only list");
  for (const std::string command : {"replay ", "evaluate "}) {
    expect_refused(command + base + "--policy tiresias+easy", "tiresias cannot be backfilled: only list schedulers");
    expect_refused(command + base + "--policy fifo+foo", "behind '+' expected none|easy|conservative|sc20, not 'foo'");
  }
}

TEST_F(Program, APolicyWithNoneStaysPlainBesideADefaultBackfill) {
  const std::string base = "--trace synthetic:philly --cluster 8x8 --oversize drop ";
  const json plain = metrics("replay " + base + "--policy fifo");
  const json runs = metrics("replay " + base + "--policy fifo,fifo+none,tiresias+none --backfill easy");
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0]["policy"], "fifo+easy");
  EXPECT_EQ(runs[1]["policy"], "fifo+none");
  EXPECT_EQ(runs[2]["policy"], "tiresias+none");
  EXPECT_EQ(runs[1]["metrics"]["avg_jct_s"], plain[0]["metrics"]["avg_jct_s"]);
  EXPECT_LT(runs[0]["metrics"]["avg_jct_s"], runs[1]["metrics"]["avg_jct_s"]);
  const json windows =
      metrics("evaluate " + base + "--window-jobs 200 --from 0.9 --policy fifo,fifo+none --backfill easy");
  EXPECT_EQ(windows[1]["policy"], "fifo+none");
  EXPECT_LT(windows[0]["metrics"]["avg_jct_s"], windows[1]["metrics"]["avg_jct_s"]);
  for (const std::string command : {"replay ", "evaluate "}) {
    EXPECT_THAT(run("help " + command).out, HasSubstr("+none"));
    expect_refused(command + base + "--policy tiresias --backfill easy",
                   "--backfill: tiresias cannot be backfilled: only list");
    expect_refused(command + base + "--policy fifo,fifo+easy --backfill easy",
                   "--backfill: makes fifo and fifo+easy the same policy; give one of them");
    expect_refused(command + base + "--policy fifo --backfill ''", "--backfill: expected one way of backfilling");
  }
}

TEST_F(Program, APolicyIsGivenOnce) {
  const std::string trace = small_trace();
  for (const std::string command : {"replay", "evaluate --window-jobs 3"}) {
    expect_refused(command + " --cluster 2 --policy fifo,sjf,fifo --trace " + trace, "--policy: fifo is given twice");
  }
  expect_refused("evaluate --window-jobs 3 --cluster 2 --group a=fifo --group a=sjf --trace " + trace,
                 "--group: the name 'a' is given twice");
  expect_refused("evaluate --window-jobs 3 --cluster 2 --policy fifo --group fifo=sjf --trace " + trace,
                 "--group: the name 'fifo' is given twice");
  EXPECT_EQ(metrics("evaluate --window-jobs 3 --cluster 2 --policy fifo --group a=fifo,sjf --trace " + trace).size(),
            2u);
}

// Both are "rl__..._a_b" where file systems are asked.
TEST_F(Program, PoliciesOfAlikeTextHaveFoldersOfTheirOwn) {
  TrainedModel model;
  model.network = {.kind = NetworkKind::deepsets, .width = 8, .heads = 2, .critic_width = 8};
  model.parameters.resize(layout_of(model.network).size);
  const std::string one = folder_.path() + "/a/b", other = folder_.path() + "/a_b", out = folder_.path() + "/alike";
  ASSERT_TRUE(save_model(model, one));
  ASSERT_TRUE(save_model(model, other));
  const json runs =
      metrics("replay --cluster 2 --policy rl:" + one + ",rl:" + other + " --trace " + small_trace() + " --out " + out);
  ASSERT_EQ(runs.size(), 2u);
  const json manifest = json::parse(bytes_of(out + "/manifest.json"));
  const std::string first = manifest["policies"][0]["folder"], second = manifest["policies"][1]["folder"];
  EXPECT_EQ(second, first + "-2");
  EXPECT_EQ(bytes_of(out + "/" + first + "/jobs.csv"), bytes_of(out + "/" + second + "/jobs.csv"));
}

TEST_F(Program, ShowsTheWaitsOfTheLogBesideThePolicies) {
  const std::string trace = folder_.write(
      "log.csv", "job_id,submit_s,work_s,tasks,gpu_milli_per_task,start_s\na,0,10,1,1000,7\nb,2,4,1,1000,2\n");
  const std::string replay = "replay " + trace + " --cluster 2 --policy fifo";
  EXPECT_THAT(run(replay).out, HasSubstr("\n(recorded)"));
  EXPECT_THAT(run(replay + " --recorded none").out, testing::Not(HasSubstr("recorded")));
  EXPECT_THAT(run("replay " + small_trace() + " --cluster 2 --policy fifo").out, testing::Not(HasSubstr("recorded")));
  const std::string out = folder_.path() + "/out";
  const json report = json::parse(run(replay + " --json --out " + out).out);
  EXPECT_EQ(report["manifest"]["recorded"]["avg_wait_s"], 3.5);
  EXPECT_EQ(json::parse(bytes_of(out + "/manifest.json"))["recorded"], report["manifest"]["recorded"]);
}

TEST_F(Program, PolicyNamesBearBlanksAroundThemAndNoEmptyPath) {
  const std::string replay = "replay --cluster 2 --trace " + small_trace() + " --policy ";
  const json runs = metrics(replay + "' fifo , sjf{ skip = true } + easy ,srtf '");
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0]["policy"], "fifo");
  EXPECT_EQ(runs[1]["policy"], "sjf{skip=true}+easy");
  EXPECT_EQ(runs[2]["policy"], "srtf");
  expect_refused(replay + "rl:", "expected a path behind 'rl:'");
  expect_refused(replay + "'rl:,fifo'", "expected a path behind 'rl:'");
  for (const std::string list : {"''", "' '", "fifo,", ",fifo", "fifo,,sjf"}) {
    expect_refused(replay + list, "expected a policy name");
  }
  expect_refused(replay + "fifo+", "expected a way of backfilling behind '+'");
  expect_refused(replay + "'fifo sjf'", "expected ',' between policies");
}

TEST_F(Program, TheSc20ProtocolBackfillsByItsOwnRuleAlone) {
  const std::string csv = folder_.path() + "/log.csv", swf = folder_.path() + "/jobs.swf";
  ASSERT_EQ(run("trace generate --jobs 12000 --out " + csv).code, 0);
  ASSERT_EQ(run("trace convert " + csv + " --to swf --out " + swf).code, 0);
  const std::string log = folder_.write("log.swf", "; MaxProcs: 128\n" + bytes_of(swf));
  const std::string evaluate = "evaluate --protocol sc20 " + log + " --policy ";
  const auto slowdowns = [&](const std::string& policies) {
    const json rows = json::parse(run(evaluate + policies + " --json").out, nullptr, false)["runs"];
    std::vector<double> means;
    for (const json& row : rows) means.push_back(row["metrics"]["avg_bounded_slowdown"]);
    return means;
  };
  const std::vector<double> plain = slowdowns("fifo"), both = slowdowns("fifo,fifo+none --backfill sc20");
  ASSERT_EQ(both.size(), 2u);
  EXPECT_LT(both[0], both[1]);
  EXPECT_EQ(both[1], plain.at(0));
  expect_refused(evaluate + "fifo+easy", "policy fifo+easy: --protocol sc20 backfills only by --backfill sc20");
  expect_refused(evaluate + "fifo+sc20", "policy fifo+sc20: --protocol sc20 backfills only by --backfill sc20");
  expect_refused(evaluate + "fifo --backfill easy", "--backfill: expected none or sc20");
}

TEST_F(Program, RefusesBadUsageInOneLine) {
  const std::string trace = " --trace " + small_trace();
  expect_refused("bogus", "unknown command 'bogus'");
  expect_refused("reply", "did you mean 'replay'?");
  expect_refused("replay --policy fifo", "no trace");
  expect_refused("replay --cluster 4" + trace, "no policy");
  expect_refused("replay --cluster 4 --policy fifoo" + trace, "did you mean 'fifo'?");
  expect_refused("replay --cluster 4 --policy 'fifo{x=1}'" + trace, "no parameter 'x'");
  expect_refused("replay --cluster 4 --policy 'fifo{'" + trace, "expected a parameter name");
  expect_refused("replay --cluster phily --policy fifo" + trace, "did you mean 'philly'?");
  expect_refused("replay --policy fifo" + trace, "--cluster");
  expect_refused("replay --cluster 4 --policy fifo --placement worst" + trace, "--placement: expected one of");
  expect_refused("replay --cluster 4 --policy fifo --seed -1" + trace, "--seed: expected a whole number");
  expect_refused("replay --cluster 4 --policy fifo --set sed=1" + trace, "did you mean 'seed'?");
  expect_refused("replay --cluster 4 --policy fifo --warmup-jobs 3" + trace, "no job is left to measure");
  expect_refused("replay --cluster 4 --policy fifo --frobnicate" + trace, "--frobnicate");
  expect_refused("policies fifoo", "did you mean 'fifo'?");
  const std::string config = folder_.write("run.json", R"({"policies": ["fifo"], "clutser": "4"})");
  expect_refused("replay --config " + config + trace, "/clutser: unknown key (did you mean 'cluster'?)");
  expect_refused("replay --cluster 4 --policy fifo --out " + config + trace, "is not a folder");
}

// What is wrong with a value is found after the file was read; it is the file that the user must change.
TEST_F(Program, AWrongValueInAConfigurationIsToldWithItsFileAndKey) {
  const auto refused = [&](const std::string& command, const std::string& json, const std::string& line) {
    const std::string config = folder_.write("values.json", json);
    expect_refused(command + " --config " + config + " --trace " + small_trace(), config + ": " + line);
  };
  const std::string outages = folder_.write("outages.csv", "time_s,node,event\n3,0,down\n");
  refused("replay", R"({"policies": ["fifoo"], "cluster": "4"})", "/policies: unknown policy 'fifoo'");
  refused("replay", R"({"policies": ["fifo{x=1}"], "cluster": "4"})", "/policies: policy fifo has no parameter 'x'");
  refused("replay", R"({"policies": ["fifo", "fifo"], "cluster": "4"})", "/policies: fifo is given twice");
  refused("replay --policy fifo", R"({"cluster": "phily"})", "/cluster: cluster 'phily' is no known name");
  refused("replay --policy fifo --cluster 4", R"({"backfill": "easi"})", "/backfill: ");
  refused("replay --policy fifo --cluster 4", R"({"trace": {"format": "swv"}})", "/trace/format: expected one of");
  refused("replay --policy fifo --cluster 4", R"({"history_jobs": 99})", "/history_jobs: expected fewer than");
  refused("replay --policy fifo --cluster 4", R"({"output": {"timeline": true}})", "/output/timeline: expected --out");
  refused("replay --policy fifo --cluster 4", R"({"placement": "count", "failures": {"file": ")" + outages + R"("}})",
          "/failures/file: expected another --placement than count");
  refused("replay --policy fifo --cluster 4", R"({"fidelity": {"span_speed": "nodes"}})", "/fidelity/span_speed: ");
  refused("evaluate --policy fifo,sjf --cluster 4", R"({"beside": ["p99"]})", "/beside: no figure is called 'p99'");
  refused("evaluate --policy fifo,sjf --cluster 4", R"({"against": "saf"})", "/against: saf is not among");
  refused("evaluate --policy fifo,sjf --cluster 4", R"({"windows": {"from": 0.9, "to": 0.1}})", "/windows/from: ");
  refused("evaluate --policy fifo", R"({"clusters": ["phily"]})", "/clusters: cluster 'phily' is no known name");
  // What an option gives in its place is the option's.
  const std::string config = folder_.write("values.json", R"({"policies": ["fifo"], "cluster": "4"})");
  expect_refused("replay --config " + config + " --cluster phily --trace " + small_trace(),
                 "gpusched: --cluster: cluster 'phily' is no known name");
  expect_refused("replay --config " + config + " --set history_jobs=99 --trace " + small_trace(),
                 "gpusched: --history-jobs: expected fewer than");
}

TEST_F(Program, EvaluateShowsFiguresBesideTheComparedOne) {
  const std::string evaluate = "evaluate " + small_trace() + " --cluster 4 --window-jobs 3 --policy fifo,sjf ";
  const Outcome outcome = run(evaluate + "--beside p99_wait_s,worst_tenth:worst_decile_slowdown");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("p99_wait_s  worst_tenth:worst_decile_slowdown\n"));
  const json runs = json::parse(run(evaluate + "--json --beside avg_wait_s").out, nullptr, false)["runs"];
  EXPECT_TRUE(runs[0]["beside"]["avg_wait_s"]["relative_difference"].is_null());
  EXPECT_EQ(runs[1]["beside"]["avg_wait_s"]["mean"], runs[1]["metrics"]["avg_wait_s"]);
  expect_refused(evaluate + "--beside avg_wait_s,p99_wiat_s",
                 "--beside: no figure is called 'p99_wiat_s' (did you mean 'p99_wait_s'?)");
  expect_refused(evaluate + "--beside avg_wait_s,", "--beside: no figure is called ''");
  expect_refused(evaluate + "--beside avg_wait_s,avg_wait_s", "--beside: avg_wait_s is given twice");
  expect_refused(evaluate + "--beside worst_tenth:energy_kwh", "--beside: energy_kwh is not known here");
  const Outcome unknown = run(evaluate + "--figure kills");  // of failures, and there are none
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("kills is not known in any window of "));
  expect_refused(evaluate + "--figure deadline_miss_rate",
                 "--figure: deadline_miss_rate is not known here: no job of " + small_trace() + " has a deadline");
  expect_refused("evaluate x.swf --protocol sc20 --policy fifo --beside avg_wait_s",
                 "takes no --profile, --throughputs, --span-speed, --communication or --beside");
}

TEST_F(Program, SaysWhichOptionIsWrongAndWhatItTakes) {
  const std::string replay = "replay --cluster 4 --trace " + small_trace() + " ";
  expect_refused(replay + "--polcy fifo", "unknown option '--polcy' (did you mean '--policy'?)");
  expect_refused(replay + "--policy fifo extra", "--trace: given twice, as '");
  expect_refused(replay + "--policy fifo --policy fifo", "--policy: fifo is given twice");
  expect_refused(replay + "--cluster 4 --cluster 8 --policy fifo", "--cluster: given more than once");
  expect_refused(replay + "--policy", "--policy: expected a value behind it");
  expect_refused(replay + "--policy srft", "did you mean 'srtf'?");
  expect_refused(replay + "--policy FIFO", "did you mean 'fifo'?");
  expect_refused(replay + "--policy fifo --format swv", "--format: expected one of auto|native|");
  expect_refused("--jsn", "unknown option '--jsn'");
  expect_refused("trace infos", "did you mean 'info'?); `gpusched trace --help` lists all");
  expect_refused("trace generate --jobs 1e3 --out x", "--jobs: expected a whole number, 0 or more, not '1e3'");
  expect_refused("calibrate --out x --backend cud",
                 "--backend: expected one of cuda|cpu|analytic, not 'cud' (did you mean 'cuda'?)");
  expect_refused("trace generate --like x --model pai --out y", "exclude each other");
  expect_refused("replay --policy fifo --cluster 1000000x1000000 --trace " + small_trace(),
                 "1,000,000,000 GPUs in all");
}

// The second job finds its faster device taken; the third needs more memory than the GPU has, the fourth more than all.
TEST_F(Program, JobsRunOnTheFasterFreeDeviceThatHasTheMemory) {
  const std::string cluster = folder_.write(
      "edge.json",
      R"({"gpu_types": {"U50": {"kind": "fpga", "memory_gib": 8}, "T4": {"memory_gib": 16}, "A100": {"memory_gib": 40}},
          "nodes": [{"gpus": 1, "gpu_type": "U50"}, {"gpus": 1, "gpu_type": "T4"}, {"gpus": 1, "gpu_type": "A100"}]})");
  const std::string speeds =
      folder_.write("speeds.csv", "family,gpu_type,throughput\nfilter,T4,1\nfilter,U50,4\nfilter,A100,2\n");
  const std::string rows =
      "id,at,n,d,type,gib,f\na,0,1,100,kind:fpga|T4,,filter\nb,1,1,100,kind:fpga|T4,8,filter\n"
      "c,2,1,100,,16.5,filter\n";
  const std::string columns = " --columns id=id,submit=at,gpus=n,duration=d,gpu_type=type,gpu_memory=gib,family=f ";
  const std::string rest = " --cluster " + cluster + columns + "--throughputs " + speeds +
                           " --placement fastest --policy fifo --out " + folder_.path() + "/out";
  ASSERT_EQ(run("replay " + folder_.write("jobs.csv", rows) + rest).code, 0);
  const std::string jobs = bytes_of(folder_.path() + "/out/fifo/jobs.csv");
  EXPECT_THAT(jobs, HasSubstr("\na,,,1,0,0,25,"));
  EXPECT_THAT(jobs, HasSubstr("\nb,,,1,1,1,101,"));
  EXPECT_THAT(jobs, HasSubstr("\nc,,,1,2,2,52,"));
  for (const char* device : {",U50,", ",T4,", ",A100,"}) EXPECT_THAT(jobs, HasSubstr(device));
  expect_refused("replay " + folder_.write("more.csv", rows + "d,3,1,1,A100,41,filter\n") + rest,
                 "job 'd' asks for 1 GPUs of type A100@41984MiB");
}

TEST_F(Program, ClusterFilesAreCheckedAndGrouped) {
  const std::string list = folder_.write(
      "nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\nn1,4000,4096,2,T4\nn2,4000,4096,0,\nn3,4000,4096,2,T4\n");
  const std::string file = folder_.path() + "/cluster.json";
  ASSERT_EQ(run("cluster import " + list + " --group --out " + file).code, 0);
  EXPECT_EQ(
      bytes_of(file),
      "{\"name\": \"nodes\",\n \"nodes\": [{\"gpus\":2,\"gpu_type\":\"T4\",\"cpus\":4,\"memory_gib\":4,\"count\":2},\n"
      "           {\"gpus\":0,\"cpus\":4,\"memory_gib\":4}]}\n");
  EXPECT_EQ(run("cluster validate " + file).out, file + ": valid: 3 nodes, 4 GPUs (T4 4)\n");
  expect_refused("cluster validate " + folder_.write("bad.json", R"({"nodes": [{"gpus": 1, "gpux": 2}]})"),
                 "/bad.json: /nodes/0/gpux: unknown key");
}

TEST_F(Program, AFullDiskUnderStandardOutputIsAFailedRun) {
  const std::string trace = small_trace();
  for (const std::string& arguments :
       {std::string("policies"), std::string("policies fifo"), std::string("--help"), std::string("replay --help"),
        std::string("--version"), std::string("replay --print-schema"), std::string("profile show A100"),
        "trace info " + trace, "trace info --json " + trace, "trace validate " + trace,
        "replay --cluster 4 --policy fifo --trace " + trace,
        "replay --cluster 4 --policy fifo --json --trace " + trace}) {
    const Outcome full = run_into("/dev/full", arguments);
    EXPECT_EQ(full.code, 1) << arguments;
    EXPECT_EQ(full.err, "gpusched: standard output cannot be written\n") << arguments;
  }
}

TEST_F(Program, AFileThatCannotBeWrittenIsAFailedRun) {
  const std::string trace = small_trace();
  for (const std::string& arguments :
       {"trace convert " + trace + " --out ", std::string("trace generate --jobs 9 --out "),
        std::string("trace generate --model-out ")}) {
    EXPECT_EQ(run(arguments + folder_.path() + "/none/x").code, 1) << arguments;
    const Outcome full = run(arguments + "/dev/full");
    EXPECT_EQ(full.code, 1) << arguments;
    EXPECT_THAT(full.err, HasSubstr("/dev/full: cannot write: No space left on device"));
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/full")) << arguments;
  }
  EXPECT_EQ(run("trace convert " + trace + " --to sfw --out x").code, 2);
  EXPECT_THAT(run("trace convert " + trace + " --out /dev/stdout").out, StartsWith("job_id,submit_s,"));
}

TEST_F(Program, ShowsWhatIsNoTextAsEscapes) {
  const std::string columns = " --cluster 4 --policy fifo --columns submit=t,gpus=g,duration=d,user=u";
  const std::string raw = folder_.write("raw.csv", "t,g,d,\x1b[31m\n0,1,2,x\n");
  expect_refused("replay --trace " + raw + columns, "the header has t,g,d,\\x1b[31m");
  // Names need not be UTF-8, and JSON that holds them must be.
  const std::string latin = folder_.write("latin.csv", "t,g,d,u\n0,1,2,\xe9\n");
  const std::string out = folder_.path() + "/latin";
  ASSERT_EQ(run("replay --split user --trace " + latin + columns + " --out " + out).code, 0);
  const json summary = json::parse(bytes_of(out + "/fifo/summary.json"), nullptr, false);
  ASSERT_TRUE(summary.is_object());
  EXPECT_EQ(summary["splits"]["user"][0]["key"], "\\xe9");
}

TEST_F(Program, JsonHasTheSplitThatWasAskedFor) {
  const std::string command = "replay --cluster 2x2 --policy fifo --json --trace " + small_trace();
  const json split = json::parse(run(command + " --split vc").out, nullptr, false);
  ASSERT_TRUE(split.is_object());
  EXPECT_EQ(split["runs"][0]["splits"].size(), 1u);
  EXPECT_EQ(split["runs"][0]["splits"]["vc"][0]["key"], "x");
  EXPECT_EQ(split["runs"][0]["splits"]["vc"][0]["jobs"], 2);
  EXPECT_FALSE(json::parse(run(command).out, nullptr, false)["runs"][0].contains("splits"));
}

TEST_F(Program, RunsAManifestAgain) {
  const std::string trace = small_trace(),
                    cluster = folder_.write("lab.json", R"({"nodes": [{"gpus": 2, "count": 2}]})");
  const std::string first = folder_.path() + "/first", second = folder_.path() + "/second";
  const std::string replay = "replay --policy 'srtf,sjf{skip=true}' --seed 7 ";
  ASSERT_EQ(run(replay + "--trace " + trace + " --cluster " + cluster + " --out " + first).code, 0);
  const Outcome again = run("replay --config " + first + "/manifest.json --out " + second);
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.err, "");
  json manifests[] = {json::parse(bytes_of(first + "/manifest.json"), nullptr, false),
                      json::parse(bytes_of(second + "/manifest.json"), nullptr, false)};
  for (json& manifest : manifests) manifest.erase("execution");
  EXPECT_EQ(manifests[0], manifests[1]);
  ASSERT_EQ(manifests[0]["files"].size(), 1u);
  EXPECT_EQ(manifests[0]["files"][0]["path"], cluster);
  EXPECT_EQ(manifests[0]["files"][0]["sha256"].get<std::string>().size(), 64u);
  const std::string folder = manifests[0]["policies"][1]["folder"];
  EXPECT_TRUE(std::filesystem::exists(first + "/" + folder + "/jobs.csv"));

  folder_.write("small.csv", "job_id,submit_s,work_s,tasks,gpu_milli_per_task\na,0,1,1,1000\n");
  EXPECT_THAT(run("replay --config " + first + "/manifest.json").err, HasSubstr("its SHA-256 differs"));
  const std::string wrong = folder_.write("wrong.json", R"({"program": "gpusched", "config": {"sed": 1}})");
  expect_refused("replay --config " + wrong, "wrong.json: /config/sed: unknown key (did you mean 'seed'?)");
}

TEST_F(Program, RefusesBadTracesInOneLine) {
  const std::string header = "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n";
  const auto refused = [&](const std::string& rows, const std::string& reason) {
    const std::string out = folder_.path() + "/never";
    expect_refused("replay --cluster 4 --policy fifo --out " + out + " --trace " + folder_.write("bad.csv", rows),
                   reason);
    EXPECT_FALSE(std::filesystem::exists(out));
  };
  refused("", "empty");
  refused(header + "1,0,x,1,1000\n", "bad.csv:2: work_s");
  refused(header + "1,0,-5,1,1000\n", "bad.csv:2: work_s");
  refused(header + "1,0,nan,1,1000\n", "bad.csv:2: work_s");
  refused(header + "1,0,5,0,1000\n", "bad.csv:2: tasks");
  refused(header + "1,0,5,1\n", "bad.csv:2");
  refused(header + "1,0,5,1,1000,9\n", "bad.csv:2");
  refused(header + "1,0,5,1,1000\n1,1,5,1,1000\n", "ids must be unique");
  refused(header + "1,0,5,5,1000\n", "1");  // more GPUs than there are
  expect_refused("replay --cluster 4 --policy fifo --trace " + folder_.path(), folder_.path());
  expect_refused("replay --cluster 4 --policy fifo --trace " + folder_.path() + "/none.csv", "none.csv");
}

TEST_F(Program, DropsOrClampsWhatIsTooLarge) {
  const std::string trace = folder_.write("large.csv",
                                          "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n"
                                          "1,0,5,8,1000\n2,0,5,1,1000\n");
  const std::string base = "replay --cluster 4 --policy fifo --trace " + trace;
  expect_refused(base, "job '1' asks for 8 GPUs, which cluster 4 (4 GPUs) can never provide; such jobs: 1; use");
  EXPECT_EQ(metrics(base + " --oversize drop")[0]["metrics"]["jobs"], 1);
  EXPECT_EQ(metrics(base + " --oversize clamp")[0]["metrics"]["jobs"], 2);
  EXPECT_THAT(run(base + " --oversize drop").err, HasSubstr("1 of 2 rows left out"));
}

TEST_F(Program, EvaluatesPoliciesGroupsAndTransfer) {
  const std::string one = "--trace synthetic:philly --cluster 2x8 --window-jobs 200 --oversize drop ";
  const Outcome table = run("evaluate " + one + "--policy fifo,sjf --group 'both=sjf,saf' --from 0.5 --backfill easy");
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("backfilling easy (agents: as trained)\ncompared with fifo"));
  EXPECT_THAT(table.out, HasSubstr("both: interquartile mean of 2 training seeds"));
  EXPECT_THAT(table.err, HasSubstr("rows left out: larger than the cluster"));
  EXPECT_EQ(run("evaluate " + one + "--policy fifo,sjf --group 'both=sjf,saf' --from 0.5 --backfill easy").out,
            table.out);

  const Outcome nobody_waits =
      run("evaluate --trace synthetic:philly --cluster 100000 --policy fifo,sjf --from 0.5 --figure avg_wait_s");
  EXPECT_THAT(nobody_waits.out, AllOf(HasSubstr("+0.0%"), Not(HasSubstr("nan"))));
  const Outcome matrix = run("evaluate " + one + "--trace synthetic:pai --policy fifo,sjf --from 0.5");
  EXPECT_EQ(matrix.code, 0) << matrix.err;
  EXPECT_THAT(matrix.out, HasSubstr("policy  "));
  EXPECT_THAT(matrix.out, HasSubstr("synthetic:pai: "));

  const Outcome few = run("evaluate " + one + "--policy fifo,sjf --from 0.97 --json");
  const json report = json::parse(few.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << few.err;
  EXPECT_EQ(report["runs"][1]["comparison"]["verdict"], "too few windows");
  EXPECT_TRUE(report["runs"][1]["comparison"]["interval_95"].is_null());
}

// `evaluate --placement count` used to be an unknown rule, and its synthetic traces were always those of seed 0.
TEST_F(Program, ReplayAndEvaluateMeanTheSameByTraceClusterAndPlacement) {
  std::string csv = "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n";
  for (int i = 0; i < 60; ++i) {
    csv += std::to_string(i) + "," + std::to_string(i) + "," + std::to_string(5 + i * 7 % 23) + ",1," +
           std::to_string(1000 * (1 + i % 3)) + "\n";
  }
  const std::string trace = "--trace " + folder_.write("gangs.csv", csv) + " --cluster 3x4 ";
  std::vector<double> seen;
  for (const std::string placement : {"count", "best-fit", "worst-fit"}) {
    const std::string input = trace + "--policy sjf,las --placement " + placement;
    const json replayed = metrics("replay " + input);
    const json evaluated = metrics("evaluate " + input + " --window-jobs 60");
    ASSERT_EQ(replayed.size(), 2u) << placement;
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(evaluated[i]["metrics"]["avg_jct_s"], replayed[i]["metrics"]["avg_jct_s"]) << placement;
    }
    seen.push_back(replayed[0]["metrics"]["avg_jct_s"]);
  }
  EXPECT_NE(seen[0], seen[1]);  // tasks of 2 and 3 GPUs leave remnants on nodes of 4
  EXPECT_NE(seen[0], seen[2]);
  expect_refused("evaluate " + trace + "--policy fifo --placement cuont", "--placement: expected one of count|");
}

TEST_F(Program, EvaluatesWithACostOfPreemption) {
  const auto means = [this](const std::string& cost) {
    const Outcome outcome = run("evaluate --trace synthetic:philly --cluster 2x8 --window-jobs 200 --oversize drop " +
                                cost + "--policy las,sjf --from 0.8 --json");
    const json report = json::parse(outcome.out, nullptr, false);
    EXPECT_TRUE(report.is_object()) << outcome.err;
    return std::pair{report["runs"][0]["metrics"]["avg_jct_s"].get<double>(),
                     report["runs"][1]["metrics"]["avg_jct_s"].get<double>()};
  };
  const auto [las, sjf] = means("");
  const auto [restarted_las, restarted_sjf] = means("--restart-cost 60 ");
  EXPECT_GT(restarted_las, las + 100);
  EXPECT_EQ(restarted_sjf, sjf);
  EXPECT_EQ(means("--checkpoint-cost 25 --restart-cost 35 ").first, restarted_las);
}

// Of all metrics that replay reports, evaluate refused energy_kwh.
TEST_F(Program, EvaluatesTheEnergyOfDeviceProfilesAsReplayDoes) {
  std::string csv = "job_id,submit_s,work_s,tasks,gpu_milli_per_task,family\n";
  for (int i = 0; i < 60; ++i) {
    csv += std::to_string(i) + "," + std::to_string(i) + "," + std::to_string(50 + i * 7 % 23) + ",1,1000," +
           (i % 2 == 0 ? "bert" : "resnet50") + "\n";
  }
  const std::string cluster = folder_.write("v100.json", R"({"nodes": [{"gpus": 4, "gpu_type": "V100"}]})");
  const std::string input = "--trace " + folder_.write("families.csv", csv) + " --cluster " + cluster +
                            " --policy fifo,sjf --profile V100 --slowdown 1.5";
  const json replayed = metrics("replay " + input);
  const json evaluated = metrics("evaluate " + input + " --window-jobs 60 --figure energy_kwh");
  ASSERT_EQ(evaluated.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_GT(replayed[i]["metrics"]["energy_kwh"], 0);
    EXPECT_EQ(evaluated[i]["metrics"]["energy_kwh"], replayed[i]["metrics"]["energy_kwh"]);
    EXPECT_EQ(evaluated[i]["metrics"]["avg_jct_s"], replayed[i]["metrics"]["avg_jct_s"]);
  }
}

// The figures of --power are those of replay, whoever asks.
TEST_F(Program, EvaluatesAndSweepsPowerAsReplayDoes) {
  const std::string power = folder_.write("power.json", R"({
      "gpus": {"any": {"idle_w": 50, "full_w": 250}}, "nodes": {"base_w": 100}, "pue": 1.5, "carbon": 200,
      "usd_per_mwh": 80, "rent": {"usd_per_gpu_h": 2}, "caps": [{"w": 1500}], "cap_rule": "admit"})");
  const std::string csv = folder_.write(
      "jobs.csv",
      "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n0,0,3600,4,1000\n1,0,1800,4,1000\n2,60,600,1,1000\n");
  const std::string input = "--trace " + csv + " --cluster 2x4 --policy fifo,sjf --power " + power;
  const json replayed = metrics("replay " + input);
  const std::string swept = folder_.path() + "/sweep";
  const std::string file =
      folder_.write("sweep.json", R"({"base": {"trace": ")" + csv + R"(", "cluster": "2x4", "power": ")" + power +
                                      R"("}, "list": [{"policy": "fifo"}, {"policy": "sjf"}]})");
  const Outcome sweep = run("sweep " + file + " --out " + swept);
  ASSERT_EQ(sweep.code, 0) << sweep.err;
  for (const std::string figure : {"energy_kwh", "carbon_kg", "cost_usd", "peak_kw"}) {
    const json evaluated = metrics("evaluate " + input + " --window-jobs 3 --figure " + figure);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_GT(replayed[i]["metrics"][figure], 0) << figure;
      EXPECT_EQ(evaluated[i]["metrics"][figure], replayed[i]["metrics"][figure]) << figure;
    }
  }
  // 1.5 x (8 x 50 + 2 x 100 + 4 x 200) W at most: the cap lets only one of the two gangs run.
  EXPECT_DOUBLE_EQ(replayed[0]["metrics"]["peak_kw"].get<double>(), 1.5 * (0.6 + 0.8));
  EXPECT_DOUBLE_EQ(replayed[0]["metrics"]["carbon_kg"].get<double>(),
                   0.2 * replayed[0]["metrics"]["energy_kwh"].get<double>());
  const std::string one = "evaluate --trace " + csv + " --window-jobs 3 --cluster 2x4 --policy fifo ";
  expect_refused(one + "--figure peak_kw", "--figure: peak_kw is not known here; give power, or device profiles");
  expect_refused(one + "--power frontier --figure carbon_kg", "--figure: carbon_kg is not known here; give power with");
  expect_refused(one + "--power frontier --beside worst_tenth:cost_usd", "--beside: cost_usd is not known here");
  expect_refused("replay --trace " + csv + " --cluster 2x4 --policy fifo --power fronteer", "did you mean 'frontier'");
}

TEST_F(Program, RefusesNonsenseToEvaluate) {
  const std::string one = "evaluate --trace synthetic:philly --window-jobs 200 ";
  expect_refused(one + "--cluster 2x2 --policy fifo", "use --oversize drop or --oversize clamp");
  expect_refused(one + "--oversize drop --cluster 8x8 --cluster 2x2 --policy fifo", "--cluster: given 2 times for 1");
  expect_refused(one + "--policy fifo --backfill eazy", "did you mean 'easy'?");
  expect_refused(one + "--group a", "--group: expected NAME=POLICY,POLICY,... and not 'a'");
  expect_refused(one + "--group a=sjff", "unknown policy 'sjff'");
  expect_refused(one, "nobody to compare: give --policy or --group");
  expect_refused(one + "--policy fifo --against sjf", "--against: sjf is not among the policies and groups");
  expect_refused(one + "--policy fifo --from 0.99", "no window of 200 jobs fits between jobs");
  expect_refused("evaluate t.swf --policy fifo --protocol sc20 --group a=sjf",
                 "--protocol sc20: takes one --trace and no");
  expect_refused(one + "--policy fifo --protocol sc20", "--protocol: expected a log in a file with sc20");
  expect_refused(one + "--policy rl:/nowhere", "/nowhere/model.json");
  expect_refused(one + "--policy fifo --checkpoint-cost nan",
                 "--checkpoint-cost: expected seconds from 0 to 4.6e12, not 'nan'");
  expect_refused(one + "--policy fifo --from nan", "--from: expected a number from 0 to 1, not 'nan'");
  expect_refused(one + "--policy fifo --seed -1", "--seed: expected a whole number, 0 or more, not '-1'");
  expect_refused(one + "--policy fifo --stride x", "--stride: expected a whole number, 0 to 1000000000, not 'x'");
  expect_refused(one + "--policy fifo --set windows.jobs=2000000000",
                 "windows.jobs: expected a whole number, 0 to 1000000000");
  expect_refused(one + "--policy fifo --threads x", "--threads: expected a whole number, 0 to 4096, not 'x'");
  expect_refused(one + "--oversize drop --policy fifo --figure energy_kwh", "--figure: energy_kwh is not known here");
  expect_refused(one + "--policy fifo --mean harmonic", "--mean: expected ");
  expect_refused(one + "--policy fifo --set windows.job=3", "--set: unknown key 'windows.job' (did you mean");
  expect_refused(one + "--policy fifo --windows 3 --stride 5", "exclude each other");
}

// The manifest named the options in a form that no command read again.
// Without an option of windows the log is compared, where it is long enough; windows show the log's value beside.
TEST_F(Program, EvaluatesAWholeLog) {
  const std::string log = "evaluate synthetic:lublin:4000 --cluster 256 --policy fifo+easy,saf+easy ";
  const std::string out = folder_.path() + "/log";
  const Outcome table = run(log + "--beside p99_wait_s --out " + out);
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("4,000 jobs of synthetic:lublin:4000 in one run, on 256\n"));
  EXPECT_THAT(table.out, HasSubstr("compared with fifo+easy by batches of consecutive jobs"));
  EXPECT_THAT(table.out, HasSubstr("better_off"));
  EXPECT_EQ(bytes_of(out + "/table.txt"), table.out);
  EXPECT_THAT(bytes_of(out + "/effects.csv"), HasSubstr(",winsorised_mean,"));
  EXPECT_THAT(bytes_of(out + "/batches.csv"),
              HasSubstr("trace,name,policy,batch,first_job,jobs,mean_value,mean_found\n"));
  const Outcome again = run("evaluate --config " + out + "/manifest.json --threads 2 --out " + out + "2");
  EXPECT_EQ(again.out, table.out) << again.err;
  for (const char* name : {"/effects.csv", "/batches.csv"}) EXPECT_EQ(bytes_of(out + "2" + name), bytes_of(out + name));
  const json runs = json::parse(run(log + "--mode log --json").out, nullptr, false);
  ASSERT_TRUE(runs.is_object());
  EXPECT_EQ(runs["mode"], "log");
  EXPECT_EQ(runs["runs"][1]["comparison"]["effects"].size(), 8u);

  const std::string windows = log + "--windows 12 --window-jobs 200 ";
  const Outcome beside = run(windows);
  EXPECT_THAT(beside.out, HasSubstr("whole log"));
  EXPECT_THAT(run(windows + "--mode windows-only").out, Not(HasSubstr("whole log")));
  const json both = json::parse(run(windows + "--json").out, nullptr, false);
  ASSERT_TRUE(both.is_object());
  EXPECT_EQ(both["mode"], "windows");
  EXPECT_EQ(both["runs"][1]["whole_log"], runs["runs"][1]["runs"][0]["metrics"]["avg_jct_s"]);
  const Outcome of_runs = run(log + "--figure makespan_s --windows 12 --window-jobs 200");
  EXPECT_EQ(of_runs.code, 0) << of_runs.err;
}

TEST_F(Program, RefusesALogThatTellsNothing) {
  const std::string log = "evaluate synthetic:lublin:4000 --cluster 256 --policy fifo,sjf ";
  expect_refused(log + "--mode log --figure makespan_s", "--figure: a log is compared by avg_jct_s, ");
  expect_refused(log + "--mode log --window-jobs 100", "--window-jobs: an option of windows; --mode log has none");
  expect_refused(log + "--starts 0.1,1.2", "--starts: 1.2 lies beyond the end of the log");
  expect_refused(log + "--starts 0", "--starts: 0 is no later start");
  expect_refused(log + "--starts soon", "--starts: expected fractions of the log, as 0.05,0.1, and not 'soon'");
  expect_refused(log + "--mode log --from 0.98", "80 jobs; 20 batches of a log take at least 200");
  expect_refused(log + "--from 0.5 --to 0.5", "no job lies between --from and --to");
  // Too short for both: the values are shown, and why there is no more.
  const Outcome short_log = run(log + "--from 0.98");
  EXPECT_EQ(short_log.code, 0) << short_log.err;
  EXPECT_THAT(short_log.out, HasSubstr("log too short: mean"));
  EXPECT_THAT(short_log.out, HasSubstr("20 batches of so many take"));
}

TEST_F(Program, AnEvaluationIsRepeatedFromItsManifest) {
  const std::string first = folder_.path() + "/first", second = folder_.path() + "/second";
  const Outcome given =
      run("evaluate synthetic:philly synthetic:pai --cluster 3x8 --oversize drop --window-jobs 150 --to 0.4 "
          "--policy fifo,sjf --group 'both=saf,f1' --backfill easy --figure gpu_utilization --seed 5 --out " +
          first);
  ASSERT_EQ(given.code, 0) << given.err;
  const Outcome again = run("evaluate --config " + first + "/manifest.json --threads 3 --out " + second);
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, given.out);
  for (const char* name : {"/windows.csv", "/comparison.csv", "/table.txt"}) {
    EXPECT_EQ(bytes_of(second + name), bytes_of(first + name)) << name;
  }
  EXPECT_EQ(bytes_of(first + "/table.txt"), given.out);
  EXPECT_THAT(bytes_of(first + "/windows.csv"), HasSubstr("synthetic:pai,both,f1,0,0,150,"));
  const json manifest = json::parse(bytes_of(first + "/manifest.json"), nullptr, false);
  const json repeated = json::parse(bytes_of(second + "/manifest.json"), nullptr, false);
  EXPECT_EQ(repeated["config"], manifest["config"]);
  EXPECT_EQ(repeated["execution"]["threads"], 3);
}

TEST_F(Program, AnEvaluationThatNeverEndsIsAFailedRun) {
  const Outcome outcome = run("evaluate --trace " + small_trace() +
                              " --cluster 2 --window-jobs 3 --policy 'las{quantum_gpu_s=0.1}' --restart-cost 100");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("take turns for ever"));
}

TEST_F(Program, EvaluatesAnyCsvAndSaysWhatItRead) {
  const std::string csv = folder_.write("mine.csv", "t,n,d\n0,1,5\n1,2,x\n2,1,7\n3,2,4\n");
  const std::string command =
      "evaluate --columns submit=t,gpus=n,duration=d --cluster 2 --policy fifo,sjf "
      "--window-jobs 3 --json --trace " +
      csv;
  expect_refused(command, "mine.csv:3: d: expected a number of seconds");
  const Outcome outcome = run(command + " --drop-bad-rows --group 'both=sjf,saf' --to 1");
  const json report = json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << outcome.err;
  const json& manifest = report["manifest"];
  EXPECT_EQ(manifest["windows"][0]["trace"]["kept"], 3);
  EXPECT_EQ(manifest["windows"][0]["trace"]["sha256"].get<std::string>().size(), 64u);
  EXPECT_EQ(manifest["windows"][0]["cluster"]["gpus"], 2);
  EXPECT_EQ(manifest["config"]["policies"], json({"fifo", "sjf"}));
  EXPECT_EQ(manifest["config"]["groups"][0], "both=sjf,saf");
  EXPECT_TRUE(manifest.contains("build_type"));
}

TEST_F(Program, DescribesChecksAndConvertsTraces) {
  const std::string trace = small_trace();
  EXPECT_THAT(run("trace info " + trace + " --cluster 2x2").out, HasSubstr("offered load"));
  EXPECT_TRUE(json::parse(run("trace info --json " + trace).out, nullptr, false).is_object());
  EXPECT_EQ(run("trace validate " + trace).code, 0);
  const Outcome bad = run("trace validate " + folder_.write("bad.csv",
                                                            "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n"
                                                            "1,0,x,1,1000\n2,0,-1,1,1000\n"));
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.out, HasSubstr("line 3"));
  const std::string swf = folder_.path() + "/small.swf";
  EXPECT_EQ(run("trace convert " + trace + " --to swf --out " + swf).code, 0);
  EXPECT_EQ(metrics("replay --cluster 4 --policy fifo --trace " + swf)[0]["metrics"]["jobs"], 3);
  expect_refused("trace convert " + trace, "--out");
  expect_refused("trace convert " + trace + " --to sfw --out " + swf, "expected native or swf");
  expect_refused("trace inf", "did you mean 'info'?");
  expect_refused("trace", "expected a command: info|validate|convert|waste|generate");
}

TEST_F(Program, CountsJobsOutsideTheVirtualClusters) {
  const std::string cluster =
      folder_.write("lab.json", R"({"vcs": [{"name": "x"}], "nodes": [{"gpus": 4, "vc": "x"}]})");
  const Outcome outcome = run("replay --trace " + small_trace() + " --policy fifo --cluster " + cluster);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("1 job belongs to no virtual cluster"));
}

TEST_F(Program, NodesOfOneNameStayApart) {
  const std::string trace = folder_.path() + "/four.csv";
  std::ofstream(trace) << "job_id,submit_s,work_s,tasks,gpu_milli_per_task\na,0,9,1,1000\nb,0,9,1,1000\nc,0,9,1,1000\n";
  const std::string cluster = folder_.path() + "/cluster.json", out = folder_.path() + "/named";
  const auto replay = "replay --policy fifo --trace " + trace + " --cluster " + cluster;
  std::ofstream(cluster) << R"({"nodes": [{"count": 2, "gpus": 1, "name": "x"}, {"gpus": 1}]})";
  ASSERT_EQ(run(replay + " --out " + out).code, 0);
  EXPECT_EQ(test::bytes_of(out + "/fifo/intervals.csv"),
            "job_id,node,gpus,start_s,end_s\na,x-0,1,0,9\nb,x-1,1,0,9\nc,2,1,0,9\n");
  std::ofstream(cluster) << R"({"nodes": [{"gpus": 1, "name": "x"}, {"gpus": 2, "name": "x"}]})";
  expect_refused(replay, "/nodes/1/name: another node is named 'x'");
  std::ofstream(cluster) << R"({"nodes": [{"gpus": 1, "name": "1"}, {"gpus": 2}]})";
  expect_refused(replay, "a node is named '1', as reports call node 1, counted from 0, which has no name");
}

TEST_F(Program, TimesAtTheEndOfTimeDoNotWrapAround) {
  const std::string trace = folder_.path() + "/far.csv";
  std::ofstream(trace) << "job_id,submit_s,work_s,tasks,gpu_milli_per_task,user\na,4500000000000,1000,1,1000,u\n"
                          "b,4500000000010,10,1,1000,v\n";
  const std::string replay = "replay --cluster 1x1 --trace " + trace + " --policy ";
  expect_refused(replay + "fifo --warmup-time 9e12", "seconds from 0 to 4.6e12");
  expect_refused(replay + "fifo --warmup-time 4e12", "no job is left to measure");
  EXPECT_EQ(run(replay + "'tiresias{queue_limits_gpu_s=[9e12]},lsf,srtf@muri,srsf@muri'").code, 0);
  const Outcome late = run(replay + "srtf --restart-cost 4e12");
  EXPECT_EQ(late.code, 1);
  EXPECT_THAT(late.err, HasSubstr("waiting for ever"));
}

TEST_F(Program, TakesAConfigurationFile) {
  const std::string trace = small_trace();
  const std::string config =
      folder_.write("run.json", R"({"trace": {"path": ")" + trace + R"("}, "cluster": "1", "policies": ["srtf"]})");
  const json runs = metrics("replay --config " + config + " --cluster 1x2 --set policies=fifo,srsf");
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0]["policy"], "fifo");
  EXPECT_EQ(runs[0]["cluster"], "1x2");
}

// Tiresias simulator, its 60-job example on 4 nodes of 4 GPUs (NSDI'19 artifact).
TEST_F(Program, RepeatsTheTiresiasSimulator) {
  const std::string trace = real_trace("small/tiresias_60_job.csv");
  GPUSCHED_NEEDS_TRACE(trace, "small/tiresias_60_job.csv");
  const json runs = metrics("replay --cluster 4x4 --placement count --policy fifo,fjf,srtf,srsf --trace " + trace);
  ASSERT_EQ(runs.size(), 4u);
  const char* const expected[4][2] = {
      {"200.82", "22.40"}, {"190.68", "12.27"}, {"192.12", "13.70"}, {"195.90", "17.48"}};
  const int makespans[] = {3335, 3271, 3271, 3315};
  const int preemptions[] = {0, 0, 4, 7};
  for (std::size_t i = 0; i < 4; ++i) {
    const json& m = runs[i]["metrics"];
    EXPECT_EQ(rounded(m["avg_jct_s"]), expected[i][0]);
    EXPECT_EQ(rounded(m["avg_wait_s"]), expected[i][1]);
    EXPECT_EQ(m["makespan_s"], makespans[i]);
    EXPECT_EQ(m["preemptions"], preemptions[i]);
  }
}

// An independent strict FIFO written for SimGrid, 600 GPUs.
TEST_F(Program, RepeatsAnIndependentFifo) {
  const std::string trace = real_trace("alibaba/pai2020/philly_in_pai_columns_20k.csv");
  GPUSCHED_NEEDS_TRACE(trace, "alibaba/pai2020/philly_in_pai_columns_20k.csv");
  const json runs = metrics("replay --cluster 600 --policy fifo --trace " + trace);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(rounded(runs[0]["metrics"]["avg_jct_s"]), "9260.79");
  EXPECT_EQ(rounded(runs[0]["metrics"]["avg_wait_s"]), "1089.01");
  EXPECT_EQ(runs[0]["metrics"]["last_end_s"], 1949790);
}

TEST_F(Program, ReplaysPhillyOnItsClusters) {
  const std::string trace = real_trace("philly/philly_jobs.csv");
  GPUSCHED_NEEDS_TRACE(trace, "philly/philly_jobs.csv");
  EXPECT_EQ(metrics("replay --cluster philly --policy fifo,sjf,srtf --threads 2 --trace " + trace).size(), 3u);
  const json runs = metrics("replay --cluster philly-vc --policy fifo --trace " + trace);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0]["metrics"]["jobs"], 80'539);
}

TEST_F(Program, GeneratesATraceThatReplays) {
  const std::string csv = folder_.path() + "/made.csv", twin = folder_.path() + "/twin.csv";
  const std::string options = "trace generate --model philly --jobs 2000 --load 0.7 --cluster 20x8 --seed 5 --out ";
  const Outcome made = run(options + csv);
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("2,000 jobs"));
  EXPECT_THAT(made.out, HasSubstr("offered load 0.70"));
  EXPECT_THAT(made.out, HasSubstr("on 160 GPUs"));
  EXPECT_EQ(run(options + twin).code, 0);
  EXPECT_EQ(bytes_of(csv), bytes_of(twin));
  const json runs = metrics("replay --trace " + csv + " --cluster 20x8 --policy fifo");
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0]["metrics"]["jobs"], 2000);
}

TEST_F(Program, FitsAModelAndDrawsFromItsFile) {
  const std::string csv = folder_.path() + "/made.csv", model = folder_.path() + "/model.json";
  ASSERT_EQ(run("trace generate --jobs 3000 --out " + csv).code, 0);
  const Outcome fitted = run("trace generate --like " + csv + " --model-out " + model);
  EXPECT_EQ(fitted.code, 0) << fitted.err;
  const std::string again = folder_.path() + "/again.csv";
  const Outcome drawn = run("trace generate --model " + model + " --jobs 500 --out " + again);
  EXPECT_EQ(drawn.code, 0) << drawn.err;
  EXPECT_THAT(drawn.out, HasSubstr("500 jobs"));
  EXPECT_EQ(run("replay --trace synthetic:helios --policy fifo").code, 0);
}

TEST_F(Program, DrawsFromTheModelOfLublinAndFitsIt) {
  const std::string csv = folder_.path() + "/rigid.csv", model = folder_.path() + "/lublin.json";
  const Outcome made =
      run("trace generate --model 'lublin{type=all,processors=64}' --jobs 3000 --load 0.7 --out " + csv);
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("3,000 jobs"));
  EXPECT_THAT(made.out, HasSubstr("offered load 0.700 on 64 GPUs"));
  const std::string fit = "trace generate --model lublin --like " + csv + " --cluster 64 --like-jobs 2000 --no-check ";
  const Outcome fitted = run(fit + "--model-out " + model);
  EXPECT_EQ(fitted.code, 0) << fitted.err;
  const json file = json::parse(bytes_of(model));
  EXPECT_EQ(file["model"], "lublin");
  EXPECT_EQ(file["processors"], 64);
  EXPECT_EQ(file["default_jobs"], 2000);
  EXPECT_NEAR(file["serial_prob"], 0.244, 0.04);
  EXPECT_EQ(run("trace generate --model " + model + " --jobs 50 --out " + csv).code, 0);
  EXPECT_EQ(metrics("replay --trace 'synthetic:lublin{processors=32}:200' --policy fifo")[0]["metrics"]["jobs"], 200);
}

// What decisions cost differs from run to run: it is told, and written to no file.
TEST_F(Program, DecisionTimesAreToldAndNotWritten) {
  const std::string replay = "replay " + small_trace() + " --cluster 1x4 --policy fifo,srtf";
  const Outcome table = run(replay + " --decision-times --out " + folder_.path() + "/timed");
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("decisions  mean us"));
  const Outcome plain = run(replay + " --out " + folder_.path() + "/plain");
  EXPECT_EQ(bytes_of(folder_.path() + "/timed/fifo/summary.json"),
            bytes_of(folder_.path() + "/plain/fifo/summary.json"));
  EXPECT_EQ(table.out.substr(0, plain.out.find("\n* knows")), plain.out.substr(0, plain.out.find("\n* knows")));
  const json report = json::parse(run(replay + " --decision-times --json").out);
  for (const json& one : report["runs"]) {
    const json& times = one["decision_times"];
    EXPECT_GE(times["decisions"], 5);
    EXPECT_GT(times["median_us"], 0);
    EXPECT_GE(times["p99_us"], times["median_us"]);
    EXPECT_GE(times["longest_us"], times["p999_us"]);
    EXPECT_LE(times["mean_us"], times["longest_us"]);
  }
}

TEST_F(Program, StagesMakeTheFirstStartOfANodeColdAndShareTheStorage) {
  const std::string trace = folder_.write("stages.csv", "submit,gpus,duration,user\n0,1,10,a\n0,1,10,a\n100,1,10,a\n");
  const std::string columns = " --format csv --columns submit=submit,gpus=gpus,duration=duration,user=user";
  const std::string stages = folder_.write("stages.json", R"({"transfer_gib_per_s": 1, "storage_gib_per_s": 1,
                                                             "images": {"by": "user", "gib": 20, "load_s": 3}})");
  const std::string replay = "replay " + trace + columns + " --cluster 2x1 --policy fifo";
  const Outcome table = run(replay + " --stages " + stages);
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("cold starts"));
  const json metrics = json::parse(run(replay + " --json --stages " + stages).out)["runs"][0]["metrics"];
  EXPECT_EQ(metrics["cold_starts"], 2);
  EXPECT_EQ(metrics["warm_starts"], 1);
  EXPECT_EQ(metrics["fetched_gib"], 40);
  EXPECT_DOUBLE_EQ(metrics["avg_jct_s"].get<double>(), (2 * (40 + 3 + 10) + 3 + 10) / 3.0);
  EXPECT_TRUE(json::parse(run(replay + " --json").out)["runs"][0]["metrics"]["cold_starts"].is_null());
  const std::string saving = folder_.write("saving.json", R"({"transfer_gib_per_s": 1, "checkpoint_gib_per_gpu": 5})");
  const json saves =
      json::parse(run(replay + " --json --checkpoint-interval 4 --stages " + saving).out)["runs"][0]["metrics"];
  EXPECT_DOUBLE_EQ(saves["avg_jct_s"].get<double>(), 10 + 2 * 5);
  expect_refused(replay + " --stages " + saving, "--checkpoint-interval");
}

TEST_F(Program, RefusesToGenerateNonsense) {
  const std::string out = folder_.path() + "/never.csv";
  expect_refused("trace generate", "--out");
  expect_refused("trace generate --model phily --out " + out, "did you mean 'philly'?");
  expect_refused("trace generate --model " + folder_.path() + "/none.json --out " + out, "cannot be opened");
  expect_refused("trace generate --jobs 0 --out " + out, "--jobs");
  expect_refused("trace generate --model lublin{umd=5} --out " + out,
                 "lublin: unknown key 'umd' (did you mean 'umed'?)");
  expect_refused("trace generate --model philly{umed=5} --out " + out, "model philly takes no parameters");
  expect_refused("trace generate --model lublin --like " + small_trace() + " --out " + out, "at least 100 jobs");
  expect_refused("trace generate --model lublin{umed=5} --like x --out " + out, "exclude each other");
  expect_refused("trace generate --load -1 --out " + out, "--load");
  expect_refused("trace generate --load 1e-8 --out " + out, "--load: expected a trace of at most 1e8 hours");
  expect_refused("trace generate --out " + out + " --model-out " + out, "name the same file");
  const std::string log = folder_.write("log.csv", bytes_of(small_trace()));
  expect_refused("trace generate " + log + " --out " + folder_.path() + "/./log.csv", "is the trace itself");
  expect_refused("trace generate --load nan --out " + out, "--load");
  expect_refused("trace generate --jobs many --out " + out, "--jobs");
  expect_refused("trace generate --cluster 0x8 --out " + out, "cluster");
  expect_refused("trace generate --like " + small_trace() + " --out " + out, "at least 100 jobs");
  EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace
}  // namespace gpusched::test
