// SPDX-License-Identifier: Apache-2.0
// Long work: the line that tells how far it is, and what is kept when it is interrupted or a policy fails.
#include "src/base/interruption.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/program/program.hpp"

namespace gpusched::test {
namespace {

// Policies of which the last takes minutes: every one of thousands of waiting jobs has a reservation.
constexpr const char* slow_replay =
    " replay synthetic:philly --cluster 4x8 --oversize drop --policy 'fifo,sjf,sjf+conservative{depth=1e6}'";

class LongWork : public Program {
 protected:
  // Something to wait for while the program, a process, runs.
  using Event = std::function<bool(pid_t)>;

  // Sends `signal` to the program once `seen`, however long a loaded machine takes to come there.
  Outcome interrupt(const std::string& arguments, int signal, const Event& seen) const {
    const std::string out = folder_.path() + "/stdout", err = folder_.path() + "/stderr";
    const std::string command = "exec " + std::string(GPUSCHED_PROGRAM) + arguments + " >" + out + " 2>" + err;
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(SIGHUP, SIG_DFL);  // also where the tests run under nohup
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    EXPECT_TRUE(comes_true(seen, child)) << arguments;
    EXPECT_EQ(::kill(child, signal), 0);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, bytes_of(out), bytes_of(err)};
  }

  static bool comes_true(Event seen, pid_t child) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(8);
    while (!seen(child)) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return true;
  }

  // Processor time of a process, which does not pass while others have the processor.
  static double busy_s(pid_t child) {
    const std::string stat = bytes_of("/proc/" + std::to_string(child) + "/stat");
    std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 2)));
    std::string skipped;
    for (int i = 3; i < 14; ++i) fields >> skipped;  // proc(5): utime is field 14, stime 15
    double user = 0, system = 0;
    fields >> user >> system;
    return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }

  static Event busy_for(double seconds) {
    return [seconds](pid_t child) { return busy_s(child) >= seconds; };
  }

  // The file is there, and what comes next has begun.
  static Event at_work_after(const std::string& file) {
    return [file, since = -1.0](pid_t child) mutable {
      if (since < 0 && std::filesystem::exists(file)) since = busy_s(child);
      return since >= 0 && busy_s(child) >= since + 0.5;
    };
  }

  // Everything below `folder`, sorted.
  static std::vector<std::string> files_of(const std::string& folder) {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) files.push_back(std::filesystem::relative(entry.path(), folder).string());
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  // What a terminal shows of the first `seconds` of `command`.
  std::string on_terminal(const std::string& arguments, int seconds) const {
    const std::string log = folder_.path() + "/terminal";
    const std::string command = "script -qec \"timeout --foreground -s INT " + std::to_string(seconds) + " " +
                                GPUSCHED_PROGRAM + arguments + "\" /dev/null > " + log + " < /dev/null";
    EXPECT_NE(std::system(command.c_str()), -1);
    return bytes_of(log);
  }
};

// 180 windows that take half a minute together: some are finished and some are not when the signal comes.
TEST_F(LongWork, AnInterruptedEvaluationKeepsTheWindowsThatFinished) {
  const std::string out = folder_.path() + "/out";
  const Outcome outcome = interrupt(
      " evaluate synthetic:philly --cluster 4x8 --oversize drop --policy 'fifo,sjf+conservative' --window-jobs 1000 "
      "--stride 50 "
      "--out " +
          out,
      SIGINT, busy_for(3));
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("SIGINT: interrupted after "));
  EXPECT_THAT(outcome.err, HasSubstr("windows that every policy finished"));
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("fifo"), HasSubstr("windows left out; the run was interrupted")));
  EXPECT_TRUE(std::filesystem::exists(out + "/manifest.json"));
  EXPECT_TRUE(std::filesystem::exists(out + "/windows.csv"));
}

TEST_F(LongWork, AnInterruptedReplayKeepsThePoliciesThatFinished) {
  const struct {
    int signal, code;
    const char* name;
  } cases[] = {{SIGINT, 130, "SIGINT"}, {SIGTERM, 143, "SIGTERM"}, {SIGHUP, 129, "SIGHUP"}};
  for (const auto& [signal, code, name] : cases) {
    const std::string out = folder_.path() + "/" + name;
    const Outcome outcome =
        interrupt(slow_replay + (" --out " + out), signal, at_work_after(out + "/sjf/intervals.csv"));
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("gpusched: " + std::string(name) +
                                       ": policy sjf+conservative{depth=1e6} was interrupted; the results of fifo, sjf "
                                       "are in " +
                                       out + "\n"));
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("\nfifo "), HasSubstr("\nsjf")));
    for (const std::string file : {"/fifo/jobs.csv", "/fifo/summary.json", "/fifo/intervals.csv", "/sjf/jobs.csv"}) {
      EXPECT_TRUE(std::filesystem::exists(out + file)) << file;
    }
    std::size_t entries = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(out)) ++entries;
    EXPECT_EQ(entries, 3u);  // fifo, sjf, manifest.json
    const json manifest = json::parse(bytes_of(out + "/manifest.json"), nullptr, false);
    ASSERT_TRUE(manifest.is_object());
    EXPECT_EQ(manifest["policies"].size(), 2u);
    EXPECT_EQ(manifest["missing"],
              json::parse(R"([{"policy": "sjf+conservative{depth=1e6}", "why": "was interrupted"}])"));
  }
}

TEST_F(LongWork, AProgramThatDoesNotAnswerIsNotWaitedFor) {
  const std::string out = folder_.path() + "/out";
  const std::string begun = folder_.path() + "/begun";
  const std::string silent = folder_.write("silent.sh", "touch " + begun + "\nexec sleep 1000\n");
  const Event has_begun = [begun](pid_t) { return std::filesystem::exists(begun); };
  for (const std::string command : {" replay ", " evaluate "}) {
    std::filesystem::remove(begun);
    const std::string more = command == " replay " ? " --out " + out : " --window-jobs 1 --mode windows-only";
    const Outcome outcome = interrupt(
        command + small_trace() + " --cluster 2 --policy 'fifo,program:sh " + silent + "'" + more, SIGTERM, has_begun);
    EXPECT_EQ(outcome.code, 143) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("SIGTERM")) << command;
    EXPECT_THAT(outcome.err, testing::Not(HasSubstr("failed at"))) << command;
    if (command == " replay ") EXPECT_THAT(outcome.err, HasSubstr("was interrupted; the results of fifo are in"));
  }
}

TEST_F(LongWork, AKilledReplayLeavesTheFilesOfFinishedPoliciesAndNoOldManifest) {
  const std::string out = folder_.path() + "/out";
  ASSERT_EQ(run("replay " + small_trace() + " --cluster 2 --policy fifo --out " + out).code, 0);
  const std::string old = bytes_of(out + "/fifo/jobs.csv");
  const Outcome outcome =
      interrupt(slow_replay + (" --out " + out), SIGKILL, at_work_after(out + "/sjf/intervals.csv"));
  EXPECT_EQ(outcome.code, -1);
  EXPECT_EQ(files_of(out), (std::vector<std::string>{"fifo/intervals.csv", "fifo/jobs.csv", "fifo/summary.json",
                                                     "sjf/intervals.csv", "sjf/jobs.csv", "sjf/summary.json"}));
  EXPECT_NE(bytes_of(out + "/fifo/jobs.csv"), old);
  EXPECT_FALSE(json::parse(bytes_of(out + "/sjf/summary.json"), nullptr, false).is_discarded());
}

TEST_F(LongWork, AnOldResultStaysWholeWhenNoPolicyFinishes) {
  const std::string out = folder_.path() + "/out";
  ASSERT_EQ(run("replay " + small_trace() + " --cluster 2 --policy fifo --out " + out).code, 0);
  const std::string old = bytes_of(out + "/manifest.json");
  const Outcome outcome = interrupt(
      " replay synthetic:philly --cluster 4x8 --oversize drop "
      "--policy 'sjf+conservative{depth=1e6}' --out " +
          out,
      SIGINT, busy_for(1));
  EXPECT_EQ(outcome.code, 130);
  EXPECT_THAT(outcome.err, HasSubstr("no results were written"));
  EXPECT_EQ(bytes_of(out + "/manifest.json"), old);
}

TEST_F(LongWork, WithoutFilesTheFinishedPoliciesAreShown) {
  const Outcome outcome = interrupt(std::string(slow_replay) + " --json", SIGINT, busy_for(3));
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("was interrupted; the results of fifo, sjf are kept\n"));
  const json report = json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << outcome.out;
  EXPECT_EQ(report["runs"].size(), 2u);
  EXPECT_EQ(report["manifest"]["missing"].size(), 1u);
}

TEST_F(LongWork, NothingIsWrittenBeforeAPolicyHasFinished) {
  const std::string out = folder_.path() + "/out";
  const Outcome outcome = interrupt(
      " replay synthetic:philly --cluster 4x8 --oversize drop --policy 'sjf+conservative{depth=1e6},fifo' --out " + out,
      SIGINT, busy_for(1));
  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(
      outcome.err,
      "gpusched: SIGINT: policy sjf+conservative{depth=1e6} was interrupted; policy fifo was not begun; no results "
      "were written\n");
  EXPECT_EQ(outcome.out, "");
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(LongWork, ThePoliciesBesideOneThatFailsAreKept) {
  const std::string out = folder_.path() + "/out";
  const Outcome outcome =
      run("replay " + small_trace() +
          " --cluster 2 --policy 'fifo,las{quantum_gpu_s=0.1},sjf' --restart-cost 100 --out " + out);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("gpusched: policy las{quantum_gpu_s=0.1} "));
  EXPECT_THAT(outcome.err, HasSubstr("take turns for ever"));
  EXPECT_THAT(outcome.err, HasSubstr("the results of fifo, sjf are in " + out));
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("\nfifo"), HasSubstr("\nsjf"), Not(HasSubstr("\nlas"))));
  EXPECT_TRUE(std::filesystem::exists(out + "/fifo/jobs.csv"));
  EXPECT_EQ(json::parse(bytes_of(out + "/manifest.json"))["missing"][0]["policy"], "las{quantum_gpu_s=0.1}");
}

TEST(InterruptionDeathTest, ASecondSignalKills) {
  const auto signal_twice = [](int first, int second) {
    const Interruption interruption;
    std::raise(first);
    if (!Interruption::wanted()) ::_exit(3);
    std::raise(second);
    ::_exit(4);
  };
  EXPECT_EXIT(signal_twice(SIGINT, SIGINT), testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(signal_twice(SIGTERM, SIGINT), testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(signal_twice(SIGINT, SIGTERM), testing::KilledBySignal(SIGTERM), "");
}

TEST_F(LongWork, TellsATerminalThePolicyAndTheTimeLeft) {
  if (std::system("command -v script >/dev/null") != 0) GTEST_SKIP() << "script (util-linux) is not installed";
  const std::string replay = on_terminal(slow_replay, 5);
  EXPECT_THAT(replay, testing::ContainsRegex("[0-9] %  sjf\\+conservative\\{depth=1e6\\}  [0-9a-z .:]* left"));
  const std::string evaluation = on_terminal(
      " evaluate synthetic:philly --cluster 2x8 --oversize drop --window-jobs 4000 --stride 500 "
      "--policy 'sjf,sjf+conservative{depth=1e6}'",
      5);
  EXPECT_THAT(evaluation, testing::ContainsRegex("[0-9] %  sjf\\+conservative\\{depth=1e6\\}  [0-9a-z .:]* left"));
  // Nobody watches a file.
  EXPECT_THAT(run("replay " + small_trace() + " --cluster 2 --policy fifo").err, Not(HasSubstr("left")));
}

}  // namespace
}  // namespace gpusched::test
