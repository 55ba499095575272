// SPDX-License-Identifier: Apache-2.0
// gpusched compare as its users meet it: bases of every form, files, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/program/program.hpp"
#include "tests/support/files.hpp"

namespace gpusched::test {
namespace {

TEST_F(Program, ComparesABaseOfAnyFormWithItsVariations) {
  const std::string options = small_trace() + " --cluster 1x2 --policy fifo";
  const std::string varied = " --vary cluster+=1x2 --vary 'policy=sjf;cluster=1x4'";
  const Outcome plain = run("compare " + options + varied + " --out " + folder_.path() + "/what");
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_THAT(plain.out, HasSubstr("base: fifo on 1x2, 3 jobs of small.csv"));

  const std::string scenario = folder_.write("base.json", run("replay " + options + " --print-config").out);
  EXPECT_EQ(run("compare " + scenario + varied).out, plain.out) << "a scenario";
  ASSERT_EQ(run("replay " + options + " --out " + folder_.path() + "/now").code, 0);
  EXPECT_EQ(run("compare " + folder_.path() + "/now" + varied).out, plain.out) << "the folder of a run";
  EXPECT_EQ(run("compare " + folder_.path() + "/what").out, plain.out) << "a comparison again";

  const Outcome asked = run("compare " + options + varied + " --metrics makespan_s --out " + folder_.path() + "/asked");
  EXPECT_EQ(run("compare " + folder_.path() + "/asked").out, asked.out) << "of the same figures";

  const json result = json::parse(bytes_of(folder_.path() + "/what/compare.json"));
  EXPECT_EQ(result["worlds"].size(), 3u);
  EXPECT_EQ(result["worlds"][2]["cluster"], "1x4");
  EXPECT_EQ(bytes_of(folder_.path() + "/what/table.txt"), plain.out);
  EXPECT_THAT(bytes_of(folder_.path() + "/what/compare.csv"), HasSubstr("cluster+=1x2,avg_wait_s,log,"));
  const json manifest = json::parse(bytes_of(folder_.path() + "/what/manifest.json"));
  EXPECT_EQ(manifest["variations"], json({"cluster+=1x2", "policy=sjf;cluster=1x4"}));
  const json printed = json::parse(run("compare " + options + varied + " --json").out);
  EXPECT_EQ(printed["figures"], result["figures"]);
}

// What is wrong with a world's own settings is told, as replay tells it.
TEST_F(Program, ComparisonsTellWhatIsOddInAWorld) {
  const std::string base = "compare " + small_trace() + " --cluster 1x2 --policy fifo ";
  EXPECT_THAT(run(base + "--vary 'limits=user{users=[nobody],gpus=1}'").err, HasSubstr("no job has 'nobody'"));
  EXPECT_THAT(run(base + "--vary 'limits=job{gpus=1}'").err, HasSubstr("which no average counts"));
}

// Replicas and trials are rows in front of the jobs, which are compared alone.
TEST_F(Program, ComparesJobsBesideServicesAndSearches) {
  const std::string services = folder_.write("services.json", R"({"services": [{"name": "chat", "least": 1, "most": 2,
    "requests": {"rate_per_s": 0.5, "duration_s": 60}, "serves": {"mean_s": 1}, "replica": {"gpus": 1}}]})");
  const std::string trials = folder_.write("trials.json", R"({"studies": [{"name": "asha", "search": "random",
    "trials": 3, "workers": 1, "unit_s": 5, "most_units": 3, "loss": {"law": "falling"}, "task": {"gpus": 1}}]})");
  const std::string beside = " --cluster 1x4 --policy fifo --services " + services + " --trials " + trials;
  const std::string options = small_trace() + beside;
  const Outcome outcome = run("compare " + options + " --vary cluster+=1x2 --vary policy=fifo-skip --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json compared = json::parse(outcome.out), replayed = json::parse(run("replay " + options + " --json").out);
  const json& metrics = replayed["runs"][0]["metrics"];
  ASSERT_EQ(compared["worlds"].size(), 3u);
  for (const char* figure : {"avg_wait_s", "avg_jct_s", "gpu_utilization"}) {
    EXPECT_EQ(compared["worlds"][0]["metrics"][figure], metrics[figure]) << figure;
  }
  EXPECT_THAT(run("compare " + options + " --vary seed=1").out, HasSubstr("base: fifo on 1x4, 3 jobs of small.csv"));
  expect_refused("compare" + beside + " --vary seed=1", "worlds are compared by their jobs");
}

TEST_F(Program, RefusesVariationsThatAreNone) {
  const std::string base = "compare " + small_trace() + " --cluster 1x2 --policy fifo ";
  expect_refused(base, "--vary: expected at least one");
  expect_refused(base + "--vary polcy=sjf", "--vary: 'polcy=sjf': unknown key 'polcy' (did you mean 'policy'?)");
  expect_refused(base + "--vary policy=sfj", "did you mean 'sjf'?");
  expect_refused(base + "--vary cluster+=8", "expected NODESxGPUS[:TYPE] behind the plus");
  expect_refused(base + "--vary cluster=1x1", "asks for 2 GPUs");
  expect_refused(base + "--vary seed=1 --metrics avg_wait", "did you mean 'avg_wait_s'?");
  expect_refused(base + "--vary seed=1 --metrics energy_kwh", "is not known here; give power");
  expect_refused(base + "--vary seed=1 --mode windows", "--mode: windows:");
  expect_refused(base + "--vary seed=1 --split user", "unknown option '--split'");
  expect_refused("compare " + folder_.path() + "/none.json --vary seed=1", "none.json: no such file");
  const std::string never = base + "--vary policy=none";
  expect_refused(never, "unknown policy 'none'");
}

// ---- letters, lists in parts, quiet ----

TEST_F(Program, TakesLettersListsInPartsAndQuiet) {
  const std::string trace = small_trace();
  const std::string whole = run("replay " + trace + " --cluster 1x2 --policy fifo,sjf,srtf").out;
  EXPECT_EQ(run("replay " + trace + " -c 1x2 -p fifo,sjf -p srtf").out, whole);
  EXPECT_EQ(run("replay " + trace + " -c 1x2 --policy=fifo --policy=sjf -p srtf -o " + folder_.path() + "/o").out,
            whole);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/o/srtf/jobs.csv"));
  const std::string short_queue = folder_.write("grows.csv",
                                                "job_id,submit_s,work_s,tasks,gpu_milli_per_task,unknown\n"
                                                "a,0,10,2,1000,1\n");
  const Outcome loud = run("replay " + short_queue + " -c 1x2 -p fifo"),
                quiet = run("replay " + short_queue + " -c 1x2 -p fifo -q");
  EXPECT_THAT(loud.err, HasSubstr("note: "));
  EXPECT_EQ(quiet.err, "");
  EXPECT_EQ(quiet.out, loud.out);
  const std::string help = run("replay --help").out;
  EXPECT_LT(help.find("\n  -p,--policy "), help.find("\n  --format ")) << "what matters first";
  EXPECT_LT(help.find("\nMost used:\n"), help.find("\nThe trace:\n"));
  EXPECT_LT(help.find("\nWhat happens to jobs:\n"), help.find("\n  --failures FILE "));
  EXPECT_LT(help.find("\n  --restart-cost SECONDS"), help.find("\nResults:\n"));
  EXPECT_THAT(help, HasSubstr("\n  --recorded WORD "));
  EXPECT_THAT(help, HasSubstr("\n  -o,--out FOLDER "));
  EXPECT_EQ(help.find("\nOptions:\n"), std::string::npos) << "each stands under a heading that says what it is for";
  EXPECT_EQ(run("evaluate " + trace + " -c 1x2 -p fifo -p fifo -q").code, 2) << "given twice";
}

// ---- explain, and the waits of operators ----

TEST_F(Program, ExplainsWhyAJobOfAFolderWaited) {
  const std::string trace = folder_.write("queue.csv",
                                          "job_id,submit_s,work_s,tasks,gpu_milli_per_task,user\n"
                                          "a,0,10,6,1000,ann\n"
                                          "wide,1,5,8,1000,bob\n"
                                          "4711,2,3,1,1000,cid\n");
  const std::string now = folder_.path() + "/now";
  ASSERT_EQ(run("replay " + trace + " --cluster 1x8 --policy fifo,fifo-skip --out " + now).code, 0);
  const Outcome words = run("explain " + now + " --job 4711 --policy fifo");
  EXPECT_EQ(words.code, 0) << words.err;
  EXPECT_THAT(words.out, StartsWith("job 4711 under fifo: 1 GPU, user cid\n"
                                    "submitted at 2 s; started at 15 s, after 13.0 s; ended at 18 s\n"
                                    "why it waited: its turn 61.5 %, no free GPUs 38.5 %\n"));
  EXPECT_THAT(words.out, HasSubstr("its turn: 2 GPUs free where it fits, which"));
  EXPECT_THAT(words.out, HasSubstr("1 job ahead of it waits for 8"));
  const json both = json::parse(run("explain " + now + " --job 4711 --json").out);
  ASSERT_EQ(both["runs"].size(), 2u);
  EXPECT_EQ(both["runs"][0]["spans"][0]["cause"], "policy");
  EXPECT_EQ(both["runs"][0]["spans"][0]["ahead_at_begin"]["first"], "wide");
  EXPECT_EQ(both["runs"][1]["wait_s"], 0.0) << "it passes the wide one";

  const std::string recorded = folder_.write("recorded.csv",
                                             "job_id,submit_s,work_s,tasks,gpu_milli_per_task,start_s\n"
                                             "a,0,10,1,1000,30\n");
  ASSERT_EQ(run("replay " + recorded + " --cluster 1x8 --policy as-recorded --out " + folder_.path() + "/log").code, 0);
  EXPECT_THAT(run("explain " + folder_.path() + "/log --job a").out, HasSubstr("its recorded start: 8 GPUs are free"));

  expect_refused("explain " + now + " --job 4712", "--job: no job '4712' is among the 3 jobs");
  expect_refused("explain " + now + " --job 4711 --policy fifo-ski", "(did you mean 'fifo-skip'?)");
  expect_refused("explain " + folder_.path() + "/none --job 1", "no run is here");
  expect_refused("explain " + now, "--job is required");
  folder_.write("queue.csv",
                "job_id,submit_s,work_s,tasks,gpu_milli_per_task,user\n"
                "4711,2,4,1,1000,cid\n");
  expect_refused("explain " + now + " --job 4711", "its SHA-256 differs");
}

TEST_F(Program, TellsWhyGpusWereFreeWhileJobsWaited) {
  const std::string trace = folder_.write("queue.csv",
                                          "job_id,submit_s,work_s,tasks,gpu_milli_per_task,vc\n"
                                          "a,0,3600,6,1000,x\n"
                                          "wide,0,3600,8,1000,x\n"
                                          "late,1800,7200,1,1000,y\n");
  const std::string command = "replay " + trace + " --cluster 1x8 --policy fifo --waits";
  const Outcome table = run(command);
  EXPECT_THAT(table.out, HasSubstr("policy  free GPU-h    kept  limits  fragments   type  queue  nodes  too few"));
  EXPECT_THAT(table.out, HasSubstr("fifo             2  50.0 %   0.0 %      0.0 %"));
  EXPECT_THAT(table.out, HasSubstr("x        fifo     2     50.0 %        1h 00m"));
  const json waits = json::parse(run(command + " --json").out)["runs"][0]["waits"];
  EXPECT_EQ(waits["idle_gpu_hours_while_jobs_waited"], 2.0);
  EXPECT_EQ(waits["idle_gpu_hours_by_cause"]["policy"], 1.0);
  EXPECT_EQ(waits["queues"][0]["under_an_hour"], 0.5);
}

}  // namespace
}  // namespace gpusched::test
