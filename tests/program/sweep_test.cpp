// SPDX-License-Identifier: Apache-2.0
// gpusched sweep as a user runs it: the csv, resumption after kill -9, and what goes wrong.
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/program/stored_runs.hpp"

namespace gpusched::test {
namespace {

namespace fs = std::filesystem;

// A run of half a minute: every one of thousands of waiting jobs has a reservation.
constexpr const char* slow_base =
    R"("base": {"trace": "synthetic:philly", "cluster": "4x8", "oversize": "drop", "policy": "sjf+conservative{depth=1e6}"})";

class SweepProgram : public StoredRuns {
 protected:
  std::string out() const { return folder_.path() + "/out"; }
  std::string csv() const { return bytes_of(out() + "/runs.csv"); }
  std::string file(const std::string& text) const { return folder_.write("sweep.json", text); }
  std::string small_sweep() const {
    return file(R"({"base": {"trace": ")" + small_trace() +
                R"(", "cluster": "2"}, "grid": {"policy": ["fifo", "sjf"], "load": [0.5, 1, 2]}})");
  }

  // Many runs of a few milliseconds, on a few inputs.
  std::string many_runs() const {
    return file(R"({"base": {"trace": "synthetic:philly:2000", "cluster": "8x8", "oversize": "drop"},
      "grid": {"policy": ["fifo", "las", "srtf"], "load": {"from": 0.5, "to": 1.5, "step": 0.1}, "seed": [1, 2, 3]}})");
  }

  int stored() const { return rows_in(out() + "/sweep.sqlite"); }
};

TEST_F(SweepProgram, ARowARunWithTheFiguresOfReplay) {
  const Outcome outcome = run("sweep " + small_sweep() + " --out " + out());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "6 runs: 6 done\n" + out() + "/runs.csv\n");
  EXPECT_EQ(outcome.err, "");
  const auto rows = rows_of(csv());
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_THAT(csv(), StartsWith("run,id,policy,load,status,jobs,avg_jct_s,"));
  EXPECT_EQ(rows[4].at("run"), "5");
  EXPECT_EQ(rows[4].at("policy"), "sjf");
  EXPECT_EQ(rows[4].at("load"), "1");
  EXPECT_EQ(rows[4].at("status"), "done");
  EXPECT_EQ(rows[0].at("clairvoyant"), "0");
  EXPECT_EQ(rows[4].at("clairvoyant"), "1");
  const json replayed = metrics("replay " + small_trace() + " --cluster 2 --policy sjf")[0]["metrics"];
  for (const auto& [name, value] : replayed.items()) {
    if (name == "sim_seconds" || name == "jobs_per_s" || value.is_null()) continue;
    EXPECT_EQ(std::stod(rows[4].at(name)), value.get<double>()) << name;
  }
  const json manifest = json::parse(bytes_of(out() + "/manifest.json"));
  EXPECT_EQ(manifest["runs"]["done"], 6);
  EXPECT_EQ(manifest["files"][0]["path"], small_trace());
  EXPECT_FALSE(fs::exists(out() + "/sweep.sqlite-wal"));
}

TEST_F(SweepProgram, TheSameBytesForAnyNumberOfProcessesAndTheSecondStartRunsNothing) {
  const std::string sweep = many_runs();
  ASSERT_EQ(run("sweep " + sweep + " --threads 1 --out " + out()).code, 0);
  const std::string once = csv();
  EXPECT_EQ(rows_of(once).size(), 99u);
  ASSERT_EQ(run("sweep " + sweep + " --threads 3 --out " + out() + "3").code, 0);
  EXPECT_EQ(bytes_of(out() + "3/runs.csv"), once);
  const Outcome again = run("sweep " + sweep + " --threads 2 --out " + out());
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.err, "note: 99 runs of 99 stored already\n");
  EXPECT_EQ(csv(), once);
  // A manifest repeats its sweep.
  ASSERT_EQ(run("sweep " + out() + "/manifest.json --threads 2 --out " + out() + "4").code, 0);
  EXPECT_EQ(bytes_of(out() + "4/runs.csv"), once);
}

TEST_F(SweepProgram, KilledWithSigkillItLosesOnlyRunsInFlight) {
  const std::string sweep = many_runs();
  ASSERT_EQ(run("sweep " + sweep + " --out " + out() + "-whole").code, 0);
  int last = 0;
  for (const int enough : {5, 40}) {
    const pid_t child = start("sweep " + sweep + " --threads 2 --out " + out());
    ASSERT_TRUE(comes_true([&] { return stored() >= enough; }));
    const std::vector<pid_t> workers = children_of(child);
    const int seen = stored();
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    EXPECT_EQ(end_of(child), -1);
    EXPECT_FALSE(workers.empty());
    // Nobody goes on without the program, or it would keep the folder.
    EXPECT_TRUE(comes_true([&] {
      return std::all_of(workers.begin(), workers.end(), [](pid_t worker) {
        return ::kill(worker, 0) != 0 ||
               bytes_of("/proc/" + std::to_string(worker) + "/stat").find(") Z ") != std::string::npos;
      });
    }));
    const int kept = stored();
    EXPECT_GE(kept, seen);
    EXPECT_GE(kept, last);
    EXPECT_LT(kept, 99);
    last = kept;
  }
  const Outcome outcome = run("sweep " + sweep + " --out " + out());
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("note: " + std::to_string(last) + " runs of 99 stored already"));
  EXPECT_EQ(csv(), bytes_of(out() + "-whole/runs.csv"));
}

// runs.csv used to be written at the two ends alone, so that a sweep that runs or was killed had nothing to draw.
TEST_F(SweepProgram, ASweepThatRunsIsDrawnAsFarAsItIsThere) {
  const pid_t child = start("sweep " + many_runs() + " --out " + out());
  ASSERT_TRUE(comes_true([&] { return std::filesystem::exists(out() + "/runs.csv") && !rows_of(csv()).empty(); }));
  EXPECT_EQ(run("report " + out() + " --out " + folder_.path() + "/page.html").code, 0);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  end_of(child);
  EXPECT_EQ(run("report " + out() + " --title 'One & <two>' --out " + folder_.path() + "/page.html").code, 0);
  EXPECT_THAT(bytes_of(folder_.path() + "/page.html"), testing::AllOf(HasSubstr("<title>One &amp; &lt;two&gt;</title>"),
                                                                      HasSubstr("<h1>One &amp; &lt;two&gt;</h1>")));
}

TEST_F(SweepProgram, ASignalEndsItInOrderAndTheNextStartGoesOn) {
  const std::string sweep = many_runs();
  const pid_t child = start("sweep " + sweep + " --out " + out());
  ASSERT_TRUE(comes_true([&] { return stored() >= 3; }));
  ASSERT_EQ(::kill(child, SIGTERM), 0);
  EXPECT_EQ(end_of(child), 143);
  EXPECT_THAT(bytes_of(folder_.path() + "/started.err"),
              HasSubstr("gpusched: SIGTERM: interrupted; what was stored is kept, the same command goes on\n"));
  EXPECT_EQ(static_cast<int>(rows_of(csv()).size()), stored());
  EXPECT_EQ(run("sweep " + sweep + " --out " + out()).code, 0);
  EXPECT_EQ(rows_of(csv()).size(), 99u);
}

TEST_F(SweepProgram, ARunOverItsTimeIsRecordedAndTheOthersAreRun) {
  const std::string sweep = file(std::string("{") + slow_base + R"(, "grid": {"trace": ["synthetic:philly",
      "synthetic:philly:50"]}, "time_limit_s": 2})");
  const Outcome outcome = run("sweep " + sweep + " --out " + out());
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_EQ(outcome.out, "2 runs: 1 done, 1 over the time limit\n" + out() + "/runs.csv\n");
  EXPECT_THAT(outcome.err, HasSubstr("note: run 1 (trace.path synthetic:philly): took longer than 2 s\n"));
  EXPECT_THAT(outcome.err, HasSubstr("1 run without figures; --retry runs them again"));
  const auto rows = rows_of(csv());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at("status"), "timeout");
  EXPECT_EQ(rows[0].at("avg_jct_s"), "");
  EXPECT_EQ(rows[1].at("status"), "done");
  EXPECT_THAT(run("sweep " + sweep + " --out " + out()).err, HasSubstr("2 runs of 2 stored already"));
  EXPECT_THAT(run("sweep " + sweep + " --retry --out " + out()).err, HasSubstr("1 run of 2 stored already"));
}

TEST_F(SweepProgram, ARunThatCrashesIsRecordedAndTheOthersAreRun) {
  const std::string sweep =
      file(std::string("{") + slow_base + R"(, "grid": {"trace": ["synthetic:philly", "synthetic:philly:50"]}})");
  const pid_t child = start("sweep " + sweep + " --out " + out());
  std::vector<pid_t> workers;
  ASSERT_TRUE(comes_true([&] { return !(workers = children_of(child)).empty(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // it is a worker by now, not the program's copy
  ASSERT_EQ(::kill(workers.front(), SIGABRT), 0);
  EXPECT_EQ(end_of(child), 1);
  EXPECT_THAT(bytes_of(folder_.path() + "/started.err"),
              HasSubstr("run 1 (trace.path synthetic:philly): the process of the run was ended by signal 6"));
  const auto rows = rows_of(csv());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at("status"), "failed");
  EXPECT_EQ(rows[1].at("status"), "done");
}

TEST_F(SweepProgram, ACrashTakesOneRunAndNoneThatItsProcessWasSentAhead) {
  const std::string sweep = file(R"({"base": {"trace": "synthetic:philly:2000", "cluster": "8x8", "oversize": "drop",
      "policy": "las"}, "grid": {"preemption.restart_s": {"from": 1, "to": 100}}})");
  const pid_t child = start("sweep " + sweep + " --threads 2 --out " + out());
  ASSERT_TRUE(comes_true([&] { return stored() >= 10; }));
  const std::vector<pid_t> workers = children_of(child);
  ASSERT_EQ(workers.size(), 2u);
  for (const pid_t worker : workers) ASSERT_EQ(::kill(worker, SIGKILL), 0);
  EXPECT_EQ(end_of(child), 1);
  const auto rows = rows_of(csv());
  EXPECT_EQ(rows.size(), 100u);
  EXPECT_EQ(std::count_if(rows.begin(), rows.end(), [](const auto& row) { return row.at("status") == "failed"; }), 2);
  EXPECT_EQ(run("sweep " + sweep + " --retry --out " + out()).code, 0);
  ASSERT_EQ(run("sweep " + sweep + " --out " + out() + "-whole").code, 0);
  EXPECT_EQ(csv(), bytes_of(out() + "-whole/runs.csv"));
}

TEST_F(SweepProgram, ARunThatCannotBeIsRecordedWithItsReason) {
  const std::string sweep = file(R"({"base": {"trace": ")" + small_trace() + R"(", "policy": "fifo", "cluster": "2"},
    "grid": {"cluster": ["1", "2"]}})");
  const Outcome outcome = run("sweep " + sweep + " --out " + out());
  EXPECT_EQ(outcome.code, 1);
  const auto rows = rows_of(csv());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_THAT(rows[0].at("message"), HasSubstr("job 'a' asks for 2 GPUs, which cluster"));
  EXPECT_EQ(rows[1].at("status"), "done");
  EXPECT_THAT(outcome.err, HasSubstr("note: run 1 (cluster 1): "));
}

// As under evaluate: job 6 comes six hours after the trace's first, when the signal has stepped up.
TEST_F(SweepProgram, WindowsKeepTheClockThatSignalsAreOn) {
  std::string jobs = "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n";
  for (int i = 0; i < 12; ++i) jobs += std::to_string(i) + "," + std::to_string(3600 * i) + ",3600,1,1000\n";
  const std::string trace = folder_.write("jobs.csv", jobs);
  folder_.write("s.csv", "time_s,g\n0,100\n21600,700\n");
  const std::string power = folder_.write("p.json", R"({"gpus": {"any": {"idle_w": 0, "full_w": 1000}},
    "carbon": {"file": "s.csv", "column": "g", "unit": "g/kWh", "begins": "with_jobs"}})");
  const std::string sweep = file(R"({"base": {"trace": ")" + trace + R"(", "policy": "fifo", "cluster": "1x1",
    "power": ")" + power + R"(", "window": {"jobs": 6}}, "grid": {"window.first_job": [0, 6]}})");
  EXPECT_EQ(run("sweep " + sweep + " --out " + out()).code, 0);
  const auto rows = rows_of(csv());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_DOUBLE_EQ(std::stod(rows[0].at("carbon_kg")), 0.6);
  EXPECT_DOUBLE_EQ(std::stod(rows[1].at("carbon_kg")), 4.2);
}

TEST_F(SweepProgram, ATraceThatCannotBeReadFailsItsRunsAlone) {
  const std::string bad = folder_.write("bad.csv", "job_id,submit_s,work_s,tasks,gpu_milli_per_task\na,x,1,1,1000\n");
  const std::string sweep = file(R"({"base": {"policy": "fifo", "cluster": "2"}, "grid": {"trace": [")" + bad +
                                 R"(", ")" + small_trace() + R"("], "seed": [1, 2]}})");
  EXPECT_EQ(run("sweep " + sweep + " --out " + out()).code, 1);
  const auto rows = rows_of(csv());
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_THAT(rows[0].at("message"), HasSubstr("bad.csv:2: submit_s"));
  EXPECT_EQ(rows[1].at("status"), "failed");
  EXPECT_EQ(rows[2].at("status"), "done");
  EXPECT_EQ(rows[3].at("status"), "done");
}

TEST_F(SweepProgram, ADryRunListsAndMakesNothing) {
  const Outcome before = run("sweep " + small_sweep() + " --dry-run --out " + out());
  EXPECT_EQ(before.code, 0);
  EXPECT_THAT(before.out, StartsWith("run  policy  load   state\n"));
  EXPECT_THAT(before.out, HasSubstr("5       sjf     1  to run\n"));
  EXPECT_THAT(before.out, HasSubstr("6 runs, 0 stored, 6 to run\n"));
  EXPECT_FALSE(fs::exists(out()));
  ASSERT_EQ(run("sweep " + small_sweep() + " --out " + out()).code, 0);
  EXPECT_THAT(run("sweep " + small_sweep() + " --dry-run --out " + out()).out,
              HasSubstr("6 runs, 6 stored, 0 to run\n"));
}

TEST_F(SweepProgram, FilesAreThoseOfAReplay) {
  ASSERT_EQ(run("sweep " + small_sweep() + " --out " + out()).code, 0);
  const std::string once = csv();
  ASSERT_EQ(run("sweep " + small_sweep() + " --files --out " + out()).code, 0);
  EXPECT_EQ(csv(), once);
  const std::string run_folder = out() + "/runs/" + rows_of(once)[1].at("id");
  ASSERT_EQ(run("replay " + small_trace() + " --cluster 2 --policy fifo --out " + out() + "-replay").code, 0);
  for (const std::string name : {"summary.json", "jobs.csv", "intervals.csv"}) {
    EXPECT_EQ(bytes_of(run_folder + "/fifo/" + name), bytes_of(out() + "-replay/fifo/" + name)) << name;
  }
  EXPECT_TRUE(fs::exists(run_folder + "/manifest.json"));
}

TEST_F(SweepProgram, ADatabaseThatAnotherProgramHoldsIsToldAndNothingIsLost) {
  ASSERT_EQ(run("sweep " + small_sweep() + " --out " + out()).code, 0);
  const std::string before = csv();
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open((out() + "/sweep.sqlite").c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  const Outcome outcome = run("sweep " + small_sweep() + " --out " + out());
  sqlite3_close(other);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr(out() + "/sweep.sqlite: cannot write: database is locked by another program\n"));
  EXPECT_EQ(csv(), before);
  EXPECT_EQ(run("sweep " + small_sweep() + " --out " + out()).code, 0);
}

TEST_F(SweepProgram, ADamagedDatabaseIsRefused) {
  const std::string sweep = file(R"({"base": {"trace": "synthetic:philly:50", "cluster": "8x8", "policy": "fifo"},
      "grid": {"seed": {"from": 1, "to": 60}}})");
  ASSERT_EQ(run("sweep " + sweep + " --out " + out()).code, 0);
  const std::string path = out() + "/sweep.sqlite";
  std::string bytes = bytes_of(path);
  constexpr std::size_t page = 4096;
  ASSERT_GT(bytes.size(), 5 * page);
  std::fill_n(bytes.begin() + 3 * page, page, 'x');
  std::ofstream(path, std::ios::binary) << bytes;
  const Outcome outcome = run("sweep " + sweep + " --out " + out());
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("sweep.sqlite: is damaged"));
}

TEST_F(SweepProgram, AFullDiskEndsItAndKeepsWhatWasStored) {
  // A limit on the size of files stands for the disk's.
  const std::string program = GPUSCHED_PROGRAM, sweep = many_runs();
  const std::string limited = "sh -c \"ulimit -f 120; exec " + program + " sweep " + sweep + " --out " + out() +
                              "\" >/dev/null 2>" + folder_.path() + "/full";
  const int status = std::system(limited.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_THAT(
      bytes_of(folder_.path() + "/full"),
      AllOf(HasSubstr("cannot store a result"), HasSubstr("what was stored is kept, the same command goes on")));
  const int kept = stored();
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, 99);
  const Outcome outcome = run("sweep " + sweep + " --out " + out());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(std::to_string(kept) + " runs of 99 stored already"));
  EXPECT_EQ(rows_of(csv()).size(), 99u);
}

TEST_F(SweepProgram, WhatCannotBeginIsRefusedInOneLine) {
  const std::string sweep = small_sweep();
  expect_refused("sweep", "FILE is required");
  expect_refused("sweep " + folder_.path() + "/no.json --out " + out(), "no.json: cannot be opened");
  expect_refused("sweep " + sweep, "no folder for the results");
  expect_refused("sweep " + sweep + " --out /proc/nowhere", "--out: /proc/nowhere: cannot make the folder");
  expect_refused("sweep " + sweep + " --threads 9999 --out " + out(), "--threads: expected a whole number, 0 to 4096");
  expect_refused("sweep " + sweep + " --time-limit x --out " + out(), "--time-limit: expected seconds from 0");
  expect_refused("sweep " + file(R"({"grid": {"polcy": ["fifo"]}})") + " --out " + out(),
                 "/grid/polcy: unknown key (did you mean 'policy'?)");
  EXPECT_FALSE(fs::exists(out()));
}

TEST_F(SweepProgram, AFolderTakesOneSweepAtATime) {
  const std::string sweep = file(std::string("{") + slow_base + "}");
  const pid_t child = start("sweep " + sweep + " --out " + out());
  ASSERT_TRUE(comes_true([&] { return !children_of(child).empty(); }));
  expect_refused("sweep " + sweep + " --out " + out(), "another gpusched is writing into this folder");
  ASSERT_EQ(::kill(child, SIGINT), 0);
  EXPECT_EQ(end_of(child), 130);
}

}  // namespace
}  // namespace gpusched::test
