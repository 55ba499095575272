// SPDX-License-Identifier: Apache-2.0
// What files, names and the machine do to the program at worst: one clear line, nothing half-written, no memory without
// bound, no escape sequence on the terminal.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/program/program.hpp"

namespace gpusched::test {
namespace {

namespace fs = std::filesystem;

class HostileInput : public Program {
 protected:
  // Runs with at most this much memory, in MiB of address space.
  Outcome run_in(std::size_t mebibytes, const std::string& arguments) const {
    const std::string out = folder_.path() + "/stdout", err = folder_.path() + "/stderr";
    const std::string command = "ulimit -v " + std::to_string(mebibytes << 10) + "; exec " + GPUSCHED_PROGRAM + " " +
                                arguments + " >" + out + " 2>" + err;
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, bytes_of(out), bytes_of(err)};
  }

  // One short line, and no signal.
  static void expect_one_line(const Outcome& outcome, int code) {
    EXPECT_EQ(outcome.code, code) << outcome.err.substr(0, 1000);
    EXPECT_THAT(outcome.err, StartsWith("gpusched: "));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err.substr(0, 1000);
    EXPECT_LT(outcome.err.size(), 5000u);
  }

  pid_t start(const std::string& arguments) const {
    const std::string command = "exec " + std::string(GPUSCHED_PROGRAM) + " " + arguments + " >/dev/null 2>&1";
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    return child;
  }
};

TEST_F(HostileInput, EscapesInNamesDoNotReachTheScreen) {
  const std::string trace = folder_.write("esc.csv",
                                          "job_id,submit_s,work_s,tasks,gpu_milli_per_task,user\n"
                                          "\x1b[2Ja,0,10,1,1000,\x1b]0;owned\x07\n"
                                          "b,0,0,1,1000,\xc2\x9b"
                                          "31m\n");
  for (const std::string& arguments :
       {"replay --cluster 2 --policy fifo --split user " + trace, "trace validate " + trace, "trace info " + trace,
        "evaluate --cluster 2 --policy fifo,sjf --window-jobs 2 " + trace}) {
    const Outcome outcome = run(arguments);
    for (const std::string& text : {outcome.out, outcome.err}) {
      EXPECT_EQ(text.find('\x1b'), std::string::npos) << arguments;
      EXPECT_EQ(text.find('\x07'), std::string::npos) << arguments;
      EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos) << arguments;
    }
  }
  EXPECT_THAT(run("replay --cluster 2 --policy fifo --split user " + trace).out, HasSubstr("\\x1b]0;owned\\x07"));
  const std::string cluster =
      folder_.write("esc.json", R"({"name": "\u001b[2Jc", "nodes": [{"gpus": 2, "vc": "\u001b[31mv"}],
                                                           "vcs": [{"name": "\u001b[31mv"}]})");
  for (const std::string& arguments :
       {"cluster show " + cluster, "cluster import " + cluster, "cluster import " + cluster + " --out " + cluster + "2",
        "replay --policy fifo --cluster " + cluster + " " + small_trace()}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << outcome.err;
    EXPECT_EQ((outcome.out + outcome.err).find('\x1b'), std::string::npos) << arguments;
  }
}

TEST_F(HostileInput, JsonNestedWithoutEndIsRefused) {
  const std::string deep = folder_.write("deep.json", std::string(200'000, '[') + std::string(200'000, ']'));
  const std::string objects = [] {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += "{\"a\":";
    return text;
  }();
  const std::string deep_objects = folder_.write("objects.json", objects);
  for (const std::string& file : {deep, deep_objects}) {
    expect_one_line(run("replay --config " + file), 2);
    expect_one_line(run("replay --policy fifo --cluster " + file + " " + small_trace()), 2);
    expect_one_line(run("evaluate --config " + file), 2);
    expect_one_line(run("trace generate --out /dev/null --model " + file), 2);
    expect_one_line(run("profile show " + file), 2);
  }
  EXPECT_THAT(run("replay --config " + deep).err, HasSubstr("deep.json:1: expected at most 200 levels"));
  // Brackets in texts are no levels.
  const std::string text = folder_.write("text.json", "{\"policies\": [\"" + std::string(500, '[') + "\"]}");
  EXPECT_THAT(run("replay --config " + text).err, Not(HasSubstr("levels")));
}

TEST_F(HostileInput, FilesWithoutEndAreRefused) {
  const std::string trace = small_trace();
  expect_one_line(run_in(2048, "replay --config /dev/zero"), 2);
  expect_one_line(run_in(2048, "trace generate --out /dev/null --model /dev/zero"), 2);
  expect_one_line(run_in(2048, "replay --cluster 4 --policy fifo --columns submit=a,gpus=b,duration=c /dev/zero"), 2);
  fs::create_directory(folder_.path() + "/agent");
  fs::create_symlink("/dev/zero", folder_.path() + "/agent/model.json");
  expect_one_line(run_in(2048, "replay --cluster 4 --policy rl:" + folder_.path() + "/agent " + trace), 2);
}

TEST_F(HostileInput, ALineWithoutEndInASmallArchiveIsRefused) {
  const std::string packed = folder_.path() + "/line.csv.gz";
  ASSERT_EQ(
      std::system(("(printf 'job_id,submit_s,work_s,tasks,gpu_milli_per_task\\na'; head -c 600000000 /dev/zero) | "
                   "gzip -1 > " +
                   packed)
                      .c_str()),
      0);
  const Outcome outcome = run_in(1024, "trace info " + packed);
  expect_one_line(outcome, 2);
  EXPECT_THAT(outcome.err, HasSubstr("line.csv.gz:2: a line is longer than 64 MiB"));
}

TEST_F(HostileInput, AStringWithoutEndInAPhillyTraceIsRefused) {
  const std::string packed = folder_.path() + "/jobs.json.gz";
  ASSERT_EQ(
      std::system(
          ("(printf '[\\n{\"jobid\": \"'; head -c 600000000 /dev/zero | tr '\\0' x) | gzip -1 > " + packed).c_str()),
      0);
  const Outcome outcome = run_in(1024, "trace info --format philly " + packed);
  expect_one_line(outcome, 2);
  EXPECT_THAT(outcome.err, HasSubstr("jobs.json.gz:2: a job is longer than 64 MiB"));
}

TEST_F(HostileInput, TooLittleMemoryOrTooFewThreadsIsSaidInOneLine) {
  const std::string replay =
      "replay synthetic:philly --oversize drop --cluster 40x8 --policy fifo,sjf,srtf,las,saf,ljf,srsf,tiresias "
      "--threads "
      "8 ";
  const Outcome outcome = run_in(90, replay);
  if (outcome.code != 0) expect_one_line(outcome, 1);
  const std::string err = folder_.path() + "/stderr";
  const int status = std::system(
      ("ulimit -p 1; exec " + std::string(GPUSCHED_PROGRAM) + " " + replay + " >/dev/null 2>" + err).c_str());
  EXPECT_TRUE(WIFEXITED(status)) << bytes_of(err);
  EXPECT_THAT(bytes_of(err), Not(HasSubstr("terminate called")));
}

TEST_F(HostileInput, MessagesStayShort) {
  const std::string header = "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n";
  const std::string value = folder_.write("value.csv", header + "a,0," + std::string(3'000'000, 'x') + ",1,1000\n");
  expect_one_line(run("replay --cluster 4 --policy fifo " + value), 2);
  const std::string id(3'000'000, 'i');
  const std::string twins = folder_.write("twins.csv", header + id + ",0,1,1,1000\n" + id + ",0,1,1,1000\n");
  expect_one_line(run("replay --cluster 4 --policy fifo " + twins), 2);
  EXPECT_LT(run("trace validate " + twins).out.size(), 5000u);
  expect_one_line(run("replay --cluster 4 --policy " + std::string(100'000, 'p') + " " + small_trace()), 2);
}

TEST_F(HostileInput, DamagedRowsAreCountedByAFewReasons) {
  std::string rows = "job_id,submit_s,work_s,tasks,gpu_milli_per_task\na,0,1,1,1000\n";
  for (int i = 0; i < 3000; ++i) rows += "b" + std::to_string(i) + ",0,1,1,1000" + std::string(i % 400 + 1, ',') + "\n";
  const std::string trace = folder_.write("damaged.csv", rows);
  const Outcome outcome = run("replay --cluster 4 --policy fifo --drop-bad-rows " + trace);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_LT(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 30);
}

TEST_F(HostileInput, TheSecondFileOfAnArchiveIsNotIgnoredSilently) {
  const std::string folder = folder_.path();
  small_trace();
  folder_.write("more.csv", "job_id,submit_s,work_s,tasks,gpu_milli_per_task\nz,0,1,1,1000\n");
  ASSERT_EQ(
      std::system(("cd " + folder + " && tar czf two.tar.gz small.csv more.csv && tar czf one.tgz small.csv").c_str()),
      0);
  const Outcome two = run("replay --cluster 4 --policy fifo " + folder + "/two.tar.gz");
  EXPECT_EQ(two.code, 0) << two.err;
  EXPECT_THAT(two.err, HasSubstr("read small.csv, the first file of the archive; 1 further file not read: more.csv"));
  EXPECT_EQ(run("replay --cluster 4 --policy fifo " + folder + "/one.tgz").err, "");
}

TEST_F(HostileInput, ConvertWritesOnlyWhatItReadsBack) {
  const std::string large = folder_.write("large.csv",
                                          "job_id,submit_s,work_s,tasks,gpu_milli_per_task,memory_mib_per_task\n"
                                          "a,4000000000000,10,1,20000000000,900000000\n");
  for (const std::string format : {"native", "swf"}) {
    const std::string out = folder_.path() + "/again." + format;
    ASSERT_EQ(run("trace convert --to " + format + " --out " + out + " " + large).code, 0);
    const Outcome again = run("trace info " + out);
    EXPECT_EQ(again.code, 0) << format << ": " << again.err;
  }
}

TEST_F(HostileInput, GenerateRefusesNonsense) {
  const std::string out = folder_.path() + "/never.csv";
  const std::string generate = "trace generate --jobs 10 --out " + out + " ";
  expect_refused(generate + "--seed -1", "--seed: expected a whole number, 0 or more, not '-1'");
  expect_refused(generate + "--seed 18446744073709551616", "--seed: expected a whole number");
  expect_refused(generate + "--like-from nan", "--like-from: expected a number");
  expect_refused(generate + "--week-start inf", "--week-start: expected a number");
  EXPECT_FALSE(fs::exists(out));
  EXPECT_EQ(run(generate + "--seed 18446744073709551615").code, 0);
}

TEST_F(HostileInput, ALongPolicyTextHasAFolderAllTheSame) {
  std::string limits = "1";
  for (int i = 2; i < 200; ++i) limits += "," + std::to_string(i * 1000);
  const std::string out = folder_.path() + "/out";
  const Outcome outcome =
      run("replay --cluster 4 --policy 'tiresias{queue_limits_gpu_s=[" + limits + "]},tiresias{queue_limits_gpu_s=[" +
          limits + ",999999]}' --out " + out + " " + small_trace());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json manifest = json::parse(bytes_of(out + "/manifest.json"));
  const std::string first = manifest["policies"][0]["folder"], second = manifest["policies"][1]["folder"];
  EXPECT_NE(first, second);
  EXPECT_LT(first.size(), 200u);
  EXPECT_TRUE(fs::exists(out + "/" + first + "/jobs.csv"));
  EXPECT_TRUE(fs::exists(out + "/" + second + "/jobs.csv"));
}

// The same folder, from a program killed at moments all over the run.
TEST_F(HostileInput, AManifestNeverStandsOverFilesOfAnotherRun) {
  const std::string out = folder_.path() + "/out";
  const std::string trace = folder_.path() + "/some.csv";
  ASSERT_EQ(run("trace generate --jobs 20000 --seed 1 --out " + trace).code, 0);
  std::uint32_t sealed = 0;
  for (int round = 0; round < 25; ++round) {
    const pid_t child = start("replay " + trace + " --cluster 60x8 --placement random --seed " + std::to_string(round) +
                              " --policy fifo,sjf --out " + out);
    std::this_thread::sleep_for(std::chrono::milliseconds(100 + 37 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!fs::exists(out + "/manifest.json")) continue;
    ++sealed;
    const json manifest = json::parse(bytes_of(out + "/manifest.json"), nullptr, false);
    ASSERT_TRUE(manifest.is_object());
    const std::string again = folder_.path() + "/again";
    ASSERT_EQ(run("replay --config " + out + "/manifest.json --out " + again).code, 0);
    for (const std::string file : {"/fifo/jobs.csv", "/fifo/intervals.csv", "/sjf/jobs.csv", "/sjf/summary.json"}) {
      ASSERT_EQ(bytes_of(out + file), bytes_of(again + file)) << file << " in round " << round;
    }
  }
  RecordProperty("sealed", static_cast<int>(sealed));
  ASSERT_EQ(run("replay " + trace + " --cluster 60x8 --policy fifo --out " + out).code, 0);
  for (const auto& entry : fs::directory_iterator(out)) EXPECT_FALSE(entry.path().filename().string().starts_with("."));
}

TEST_F(HostileInput, ASecondReplayIntoOneFolderIsToldAtOnce) {
  const std::string out = folder_.path() + "/out";
  const pid_t first = start(
      "replay synthetic:philly --cluster 4x8 --oversize drop --policy 'sjf+conservative{depth=1e6}' --out " + out);
  for (int i = 0; i < 200 && !fs::exists(out); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  expect_refused("replay --cluster 4 --policy fifo --out " + out + " " + small_trace(),
                 "--out: " + out + ": another gpusched is writing into this folder");
  expect_refused("evaluate --cluster 4 --policy fifo --window-jobs 3 --out " + out + " " + small_trace(),
                 "another gpusched is writing into this folder");
  ::kill(first, SIGKILL);
  int status = 0;
  ::waitpid(first, &status, 0);
  EXPECT_EQ(run("replay --cluster 4 --policy fifo --out " + out + " " + small_trace()).code, 0);
}

TEST_F(HostileInput, AFolderInTheWayOfOneFileLeavesTheOthersAlone) {
  const std::string out = folder_.path() + "/out", trace = small_trace();
  ASSERT_EQ(run("replay --cluster 4 --policy fifo --out " + out + " " + trace).code, 0);
  const std::string before = bytes_of(out + "/manifest.json");
  fs::remove(out + "/fifo/jobs.csv");
  fs::create_directory(out + "/fifo/jobs.csv");
  const Outcome outcome = run("replay --cluster 2 --policy fifo --out " + out + " " + trace);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("fifo/jobs.csv: is a folder; expected a file here, or nothing"));
  EXPECT_EQ(bytes_of(out + "/manifest.json"), before);
}

}  // namespace
}  // namespace gpusched::test
