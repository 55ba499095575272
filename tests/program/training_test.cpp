// SPDX-License-Identifier: Apache-2.0
// gpusched train as its users meet it: what it trains on, full disks, kills, and two runs into one folder. By direct
// search, which every build has.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/program/program.hpp"

namespace gpusched::test {
namespace {

namespace fs = std::filesystem;

class Training : public Program {
 protected:
  void SetUp() override {
    trace_ = folder_.path() + "/jobs.csv";
    ASSERT_EQ(run("trace generate --jobs 600 --seed 3 --out " + trace_).code, 0);
  }

  // A search of so many generations and candidates; without a trace.
  std::string config(std::uint32_t generations, std::uint32_t population, std::uint32_t validate_every = 1) const {
    return folder_.write("search.json", R"({"cluster": "4x8", "method": "cma_es", "network": {"kind": "index"},
          "env": {"mode": "select_blocking", "heuristic": "fcfs"},
          "windows": {"jobs": 40, "stride": 20, "train_fraction": 0.6, "validation_fraction": 0.3},
          "search": {"generations": )" + std::to_string(generations) +
                                            R"(, "population": )" + std::to_string(population) +
                                            R"(, "windows": 4, "validate_every": )" + std::to_string(validate_every) +
                                            "}}");
  }

  // Begins a run and returns once its folder holds config.json; the run goes on.
  pid_t begin(const std::string& arguments, const std::string& out, const std::string& err = "/dev/null") const {
    const std::string command = "exec " + std::string(GPUSCHED_PROGRAM) + " " + arguments + " >/dev/null 2>" + err;
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (!fs::exists(out + "/config.json") && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return child;
  }

  static void kill_and_wait(pid_t child) {
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
  }

  std::string trace_;
};

TEST_F(Training, TakesTheTraceAsReplayDoes) {
  const std::string out = folder_.path() + "/run", options = "--config " + config(2, 4);
  const Outcome named = run("train --trace " + trace_ + " " + options + " --out " + out);
  ASSERT_EQ(named.code, 0) << named.err;
  EXPECT_THAT(named.err, HasSubstr("training on 600 jobs of " + trace_ + " on 4x8"));
  const std::string weights = bytes_of(out + "/weights.bin");
  const std::string program = GPUSCHED_PROGRAM;
  ASSERT_EQ(run("train " + trace_ + " " + options + " --out " + out + "2").code, 0);
  ASSERT_EQ(
      std::system((program + " train - " + options + " --out " + out + "3 < " + trace_ + " >/dev/null 2>&1").c_str()),
      0);
  ASSERT_EQ(std::system(
                (program + " train " + trace_ + " --config - --out " + out + "4 < " + config(2, 4) + " >/dev/null 2>&1")
                    .c_str()),
            0);
  for (const std::string number : {"2", "3", "4"})
    EXPECT_EQ(bytes_of(out + number + "/weights.bin"), weights) << number;
  EXPECT_EQ(metrics("replay " + trace_ + " --cluster 4x8 --policy rl:" + out).size(), 1u);

  const Outcome part = run("train " + trace_ + " --where 'gpus<=4' " + options + " --out " + out + "5");
  ASSERT_EQ(part.code, 0) << part.err;
  EXPECT_THAT(part.err, HasSubstr("not what --where asks for"));
  EXPECT_EQ(json::parse(bytes_of(out + "5/config.json"))["trace"]["where"], "gpus<=4");

  expect_refused("train " + options, "--trace: is missing");
  const std::string bare = folder_.write("bare.json", R"({"method": "cma_es", "network": {"kind": "index"}})");
  expect_refused("train " + trace_ + " --config " + bare,
                 "--cluster: not given, and " + trace_ + " does not state its machine");
  expect_refused("train " + trace_ + " --where gpu=1 " + options, "gpu");
  expect_refused("train " + trace_ + " " + trace_, "trace: given more than once");
  expect_refused("train " + trace_ + " --resume " + out, "exclude each other");
  expect_refused("train --out x --resume " + out, "exclude each other");
  expect_refused("train ''", "expected a value, not ''");
  expect_refused("train /nowhere.csv " + options, "/nowhere.csv");
}

// Files of at most so many blocks of 512 bytes, as on a disk that fills up; a pipe is no file.
TEST_F(Training, AFullDiskIsAFailedRun) {
  const std::string err = folder_.path() + "/err", out = folder_.path() + "/run";
  const auto train_within = [&](int blocks) {
    const std::string limited = "(trap '' XFSZ; ulimit -f " + std::to_string(blocks) + "; " + GPUSCHED_PROGRAM +
                                " train " + trace_ + " --config " + config(2, 4) + " --out " + out +
                                " 2>&1 >/dev/null; echo exit $?) | tail -n 2 | cat > " + err;
    EXPECT_EQ(std::system(limited.c_str()), 0);
    return bytes_of(err);
  };
  const std::string full = "cannot write: File too large\nexit 1\n";
  EXPECT_EQ(train_within(1), "gpusched: " + out + "/config.json: " + full);
  EXPECT_EQ(train_within(8), "gpusched: " + out + "/weights.bin: " + full);
}

TEST_F(Training, ResumesARunThatWasKilledBeforeItsFirstCheckpoint) {
  const std::string out = folder_.path() + "/run", arguments = "train " + trace_ + " --config " + config(1, 600);
  kill_and_wait(begin(arguments + " --out " + out, out));
  ASSERT_TRUE(fs::exists(out + "/config.json"));
  ASSERT_FALSE(fs::exists(out + "/search.json"));
  const Outcome resumed = run("train --resume " + out);
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("note: " + out + " has no checkpoint yet; the run begins anew"));
  ASSERT_EQ(run(arguments + " --out " + out + "2").code, 0);
  EXPECT_EQ(bytes_of(out + "/weights.bin"), bytes_of(out + "2/weights.bin"));
  expect_refused("train --resume " + folder_.path() + "/none", "none/config.json: cannot be opened");
  EXPECT_FALSE(fs::exists(folder_.path() + "/none"));
}

TEST_F(Training, ASecondRunIntoOneFolderIsRefused) {
  const std::string out = folder_.path() + "/run", arguments = "train " + trace_ + " --config " + config(100'000, 12);
  const pid_t first = begin(arguments + " --out " + out, out);
  expect_refused(arguments + " --out " + out, "--out: " + out + ": another gpusched is writing into this folder");
  expect_refused("train --resume " + out, out + ": another gpusched is writing into this folder");
  while (!fs::exists(out + "/search.json")) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  kill_and_wait(first);
  expect_refused(arguments + " --out " + out, out + " holds a training run already; --resume goes on with it");
}

TEST_F(Training, ResumesOnTheInputsThatItBeganWithAlone) {
  const std::string out = folder_.path() + "/run", resume = "train --resume " + out;
  ASSERT_EQ(run("train " + trace_ + " --config " + config(1, 4) + " --out " + out).code, 0);
  const std::string before = bytes_of(trace_);
  folder_.write("jobs.csv", before.substr(0, before.rfind('\n', before.size() - 2) + 1));  // without its last job
  expect_refused(resume, trace_ + ": is not what the run " + out + " began with (its SHA-256 differs)");
  folder_.write("jobs.csv", before);
  EXPECT_EQ(run(resume).code, 0);
  fs::remove(out + "/inputs.json");  // as an earlier version left it
  const Outcome unknown = run(resume);
  EXPECT_EQ(unknown.code, 0);
  EXPECT_THAT(unknown.err, HasSubstr("note: " + out + " is of an earlier version, which kept no hashes"));

  const std::string runs = folder_.path() + "/runs";
  ASSERT_EQ(run("train " + trace_ + " --config " + config(1, 4) + " --seeds 1..2 --out " + runs).code, 0);
  folder_.write("jobs.csv", before.substr(0, before.rfind('\n', before.size() - 2) + 1));
  expect_refused("train --resume " + runs, trace_ + ": is not what");
  expect_refused("train --resume " + runs + "/seed-2", trace_ + ": is not what");
}

TEST_F(Training, AResumedRunMayLastLonger) {
  const std::string out = folder_.path() + "/run", begin = "train " + trace_ + " --config ";
  ASSERT_EQ(run(begin + config(2, 4) + " --out " + out).code, 0);
  const Outcome longer = run("train --resume " + out + " --set search.generations=4");
  ASSERT_EQ(longer.code, 0) << longer.err;
  EXPECT_THAT(longer.out, HasSubstr(": 4 iterations, "));
  ASSERT_EQ(run(begin + config(4, 4) + " --out " + out + "4").code, 0);
  for (const char* name : {"/weights.bin", "/model.json", "/config.json", "/inputs.json"}) {
    EXPECT_EQ(bytes_of(out + name), bytes_of(out + "4" + name)) << name;
  }
  for (const std::string key : {"seed", "ppo.iterations", "search.population"}) {
    expect_refused("train --resume " + out + " --set " + key + "=8",
                   "--set: '" + key +
                       "' cannot change in a run that goes on; expected one of "
                       "search.generations|search.time_limit_s|threads");
  }
}

TEST_F(Training, AFolderThatNoListOfPoliciesCanNameIsRefused) {
  const std::string begin = "train " + trace_ + " --config " + config(1, 4) + " --out ";
  for (const std::string name : {"my run,1", "a{b", "a}", "a]", "a via b"}) {
    expect_refused(begin + "'" + folder_.path() + "/" + name + "'", "--out: expected a folder that --policy rl:FOLDER");
    EXPECT_FALSE(fs::exists(folder_.path() + "/" + name)) << name;
  }
  EXPECT_EQ(run(begin + "'" + folder_.path() + "/my run'").code, 0);
  EXPECT_EQ(metrics("replay " + trace_ + " --cluster 4x8 --policy 'rl:" + folder_.path() + "/my run'").size(), 1u);
}

TEST_F(Training, TrainsSeedsSideBySide) {
  const std::string out = folder_.path() + "/runs", options = "train " + trace_ + " --config " + config(2, 4);
  const Outcome outcome = run(options + " --seeds 1..2,9 --threads 2 --out " + out);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("run times known: predicted; seeds 1,2,9, into " + out));
  EXPECT_THAT(outcome.err, HasSubstr("seed 9  iteration 2/2  cma_es: loss "));
  EXPECT_THAT(outcome.out, HasSubstr("validation loss a job of 3 seeds: mean "));
  EXPECT_THAT(bytes_of(out + "/aggregate.csv"), testing::StartsWith("seed,best_iteration,"));
  const std::string aggregate = bytes_of(out + "/aggregate.json"), weights = bytes_of(out + "/seed-9/weights.bin");
  EXPECT_EQ(json::parse(aggregate)["seeds"].size(), 3u);
  ASSERT_EQ(run(options + " --out " + out + "1").code, 0);  // of seed 1
  EXPECT_EQ(bytes_of(out + "/seed-1/weights.bin"), bytes_of(out + "1/weights.bin"));

  fs::remove_all(out + "/seed-9");
  const Outcome resumed = run("train --resume " + out);
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(bytes_of(out + "/aggregate.json"), aggregate);
  EXPECT_EQ(bytes_of(out + "/seed-9/weights.bin"), weights);
  EXPECT_EQ(run("train --resume " + out + "/seed-2").code, 0);

  expect_refused("replay " + trace_ + " --cluster 4x8 --policy rl:" + out,
                 "holds the runs of training seeds 1,2,9: give one, rl:" + out + "/seed-1, or");
  expect_refused(options + " --seeds 3 --out " + out, "holds a training run already");
  expect_refused(options + " --out " + out, "holds a training run already");
  expect_refused(options + " --seeds 3 --out " + out + "1", out + "1 holds a training run already");
  expect_refused("train --seeds 3 --resume " + out, "exclude each other");
  expect_refused(options + " --seeds 4..2", "--seeds: the range 4..2 goes down");
  expect_refused(options + " --seeds ''", "--seeds: expected a value");
  expect_refused(options + " --seeds 1..5000", "--seeds: more than 1,000 seeds");
}

TEST_F(Training, AFailedSeedIsToldAndTheOthersAreKept) {
  const std::string out = folder_.path() + "/runs";
  fs::create_directories(out);
  folder_.write("runs/seed-2", "in the way");
  const Outcome outcome = run("train " + trace_ + " --config " + config(1, 4) + " --seeds 1..3 --out " + out);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("seed 2 failed: "));
  EXPECT_THAT(outcome.err, HasSubstr("gpusched: 1 of 3 seeds failed, of which the table says why"));
  EXPECT_TRUE(fs::exists(out + "/seed-3/weights.bin"));
  fs::remove(out + "/seed-2");
  EXPECT_EQ(run("train --resume " + out).code, 0);
}

TEST_F(Training, InterruptedRunsSayHowTheyGoOn) {
  for (const std::string seeds : {" --seeds 1..2", ""}) {  // one run once ended by the signal, without a line
    const std::string out = folder_.path() + (seeds.empty() ? "/run" : "/runs"), err = folder_.path() + "/err";
    const pid_t child =
        begin("train " + trace_ + " --config " + config(100'000, 12) + seeds + " --out " + out, out, err);
    const std::string begun = out + (seeds.empty() ? "/search.json" : "/seed-1/search.json");
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (!fs::exists(begun) && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ::kill(child, SIGINT);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 130) << status;
    EXPECT_THAT(bytes_of(err),
                HasSubstr("gpusched: SIGINT: interrupted; gpusched train --resume " + out + " goes on\n"));
    for (const auto& entry : fs::recursive_directory_iterator(out)) {
      EXPECT_EQ(entry.path().string().find(".tmp"), std::string::npos) << entry.path();
    }
  }
}

TEST_F(Training, TellsATerminalWhatRunsAndTheTimeLeft) {
  if (std::system("command -v script >/dev/null") != 0) GTEST_SKIP() << "script (util-linux) is not installed";
  const std::string log = folder_.path() + "/terminal";
  const std::string command = "script -qec \"timeout --foreground -s INT 60 " + std::string(GPUSCHED_PROGRAM) +
                              " train " + trace_ + " --config " + config(40, 12, 20) + " --out " + folder_.path() +
                              "/run\" /dev/null > " + log + " < /dev/null";
  EXPECT_NE(std::system(command.c_str()), -1);
  const std::string loss = "cma_es: loss [0-9.e+-]+ \\(fcfs [0-9.e+-]+\\)  ", left = "[0-9a-z .:]+ left";
  EXPECT_THAT(bytes_of(log), testing::ContainsRegex("\\[#* *\\] +[0-9]+ %  " + loss + left));
  EXPECT_THAT(bytes_of(log),
              testing::ContainsRegex("iteration 20/40  " + loss + "[0-9]+ steps/s  validation [^\r\n]* " + left));
}

}  // namespace
}  // namespace gpusched::test
