// SPDX-License-Identifier: Apache-2.0
// Where arguments may stand, standard input, and what the program tells about itself: help, manual page, completion.
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "tests/program/program.hpp"

namespace gpusched::test {
namespace {

using CommandLine = Program;

std::string shell(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  char block[4096];
  for (std::size_t count; (count = std::fread(block, 1, sizeof block, pipe)) > 0;) text.append(block, count);
  ::pclose(pipe);
  return text;
}

bool is_installed(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

TEST_F(CommandLine, TakesTheTraceAsAnArgument) {
  const std::string trace = small_trace();
  const std::string options = " --cluster 2x2 --policy fifo --window-jobs 3";
  for (const std::string command : {"replay ", "evaluate "}) {
    const std::string rest = command == "replay " ? " --cluster 2x2 --policy fifo" : options;
    const Outcome named = run(command + "--trace " + trace + rest);
    EXPECT_EQ(named.code, 0) << named.err;
    EXPECT_EQ(run(command + trace + rest).out, named.out);
    EXPECT_EQ(run(command + rest + " " + trace).out, named.out);
  }
  for (const std::string command : {"trace info ", "trace validate ", "trace convert --out /dev/stdout "}) {
    const Outcome named = run(command + "--trace " + trace);
    EXPECT_EQ(named.code, 0) << named.err;
    EXPECT_EQ(run(command + trace).out, named.out);
  }
  expect_refused("replay " + trace + " --trace " + trace + " --cluster 4 --policy fifo", "given twice");
  expect_refused("evaluate " + trace + " --trace " + trace + " --cluster 4 --policy fifo", "is given twice");
  EXPECT_EQ(run("trace convert " + trace + " --out -").out, bytes_of(trace));
  expect_refused("replay " + trace + " " + trace + " --cluster 4 --policy fifo", "trace: given more than once");
  expect_refused("replay --policy fifo --cluster 4",
                 "no trace; give a file, - for standard input, or synthetic:philly");
  expect_refused("replay synthetic:philly:50 --columns submit=t --cluster 4 --policy fifo",
                 "synthetic:philly:50: is drawn, not read from a file; expected no columns for it");
  EXPECT_EQ(run("evaluate synthetic:philly:600 --trace " + trace +
                " --format native --cluster 8x8 --policy fifo,sjf "
                "--oversize drop --window-jobs 2")
                .code,
            0);
}

TEST_F(CommandLine, FlagsTakeNoValueAndARenamedOptionIsGivenOnce) {
  expect_refused("policies fifo --json=3", "--json takes no value");
  expect_refused("policies fifo --json=false", "--json takes no value");
  expect_refused("help --man=0", "--man takes no value");
  expect_refused("replay " + small_trace() + " --cluster 2x2 --policy fifo --jobs 2 --threads 2",
                 "--threads and --jobs exclude each other");
}

// The trace was blamed for the policy that --threads had lost.
TEST_F(CommandLine, AnOptionIsNoValueOfAnother) {
  const std::string trace = small_trace();
  expect_refused("replay " + trace + " --threads --policy fifo",
                 "--threads: expected a value behind it, not the option --policy");
  expect_refused("replay " + trace + " --cluster 2 --policy --json",
                 "--policy: expected a value behind it, not the option --json");
  expect_refused("trace info " + trace + " --format --where=a=b", "--format: expected a value behind it");
  expect_refused("train " + trace + " --out --cluster 2x8",
                 "--out: expected a value behind it, not the option --cluster");
  EXPECT_EQ(run("replay --cluster 2 --policy fifo --trace - < " + trace).code, 0);
}

TEST_F(CommandLine, DescribesWaysOfBackfilling) {
  EXPECT_THAT(run("policies").out, HasSubstr("\nconservative "));
  EXPECT_THAT(run("policies easy").out, HasSubstr("--policy 'fifo+easy{"));
  EXPECT_EQ(json::parse(run("policies easy --json").out)["name"], "easy");
  EXPECT_THAT(run("policies rl:x").out, StartsWith("rl:DIR: a scheduler"));
  EXPECT_THAT(run("policies rl:x").out, HasSubstr("'rl:DIR{sample=false}'"));
  std::istringstream lines(run("policies").out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  expect_refused("policies none", "unknown policy 'none'");
}

TEST_F(CommandLine, AnArgumentIsCalledAsTheHelpCallsIt) {
  expect_refused("trace generate " + small_trace() + " --model philly --out x.csv",
                 "--model and TRACE exclude each other");
  for (const std::string option : {"--like-jobs 5", "--like-from 0", "--week-start 9", "--columns a=b", "--no-check"}) {
    expect_refused("trace generate --jobs 50 --out x.csv " + option, option.substr(0, option.find(' ')) + " requires");
  }
}

TEST_F(CommandLine, SaysWhatAPolicyCanBeBackfilledWith) {
  const std::string base = "replay " + small_trace() + " --cluster 2x2 --policy ";
  expect_refused(base + "slurm+conservative", "policy slurm+conservative: slurm takes only none|easy");
  expect_refused(base + "slurm --backfill conservative", "--backfill: slurm takes only none|easy");
  expect_refused(base + "fifo+none{depth=1}", "none takes no parameters");
}

TEST_F(CommandLine, ReadsAClusterFromStandardInput) {
  const std::string nodes = "NodeName=a Gres=gpu:v100:4 CPUTot=8 RealMemory=1024 State=IDLE Partitions=p";
  const std::string program = GPUSCHED_PROGRAM;
  EXPECT_NE(shell("echo '" + nodes + "' | " + program + " cluster import -").find("\"gpus\":4"), std::string::npos);
  EXPECT_NE(shell("echo '{\"nodes\":[{\"count\":2,\"gpus\":8}]}' | " + program + " cluster show -").find("16 GPUs"),
            std::string::npos);
}

TEST_F(CommandLine, ReadsATraceFromStandardInput) {
  const std::string trace = small_trace();
  const std::string packed = folder_.path() + "/small.csv.gz";
  ASSERT_EQ(std::system(("gzip -kn " + trace).c_str()), 0);
  const json from_file = json::parse(run("replay --json --cluster 2x2 --policy fifo " + trace).out);
  const std::string sum = shell("sha256sum " + packed).substr(0, 64);
  const std::string program = GPUSCHED_PROGRAM;
  for (const std::string& fed : {program + " {} < " + trace, "cat " + trace + " | " + program + " {}",
                                 program + " {} < " + packed, "cat " + packed + " | " + program + " {}"}) {
    const auto with = [&](const std::string& arguments) {
      return shell(std::string(fed).replace(fed.find("{}"), 2, arguments));
    };
    const json report = json::parse(with("replay --json - --cluster 2x2 --policy fifo"), nullptr, false);
    ASSERT_TRUE(report.is_object()) << fed;
    EXPECT_EQ(report["runs"][0]["metrics"]["avg_jct_s"], from_file["runs"][0]["metrics"]["avg_jct_s"]);
    EXPECT_EQ(report["manifest"]["trace"]["path"], "-");
    const bool is_packed = fed.find(".gz") != std::string::npos;
    EXPECT_EQ(report["manifest"]["trace"]["sha256"], is_packed ? json(sum) : from_file["manifest"]["trace"]["sha256"]);
    const json windows =
        json::parse(with("evaluate --json - --cluster 2x2 --policy fifo --window-jobs 3"), nullptr, false);
    ASSERT_TRUE(windows.is_object()) << fed;
    EXPECT_EQ(windows["manifest"]["windows"][0]["trace"]["path"], "-");
    EXPECT_THAT(with("trace info -"), HasSubstr("3 of 3 rows"));
    EXPECT_THAT(with("trace validate -"), HasSubstr("3 jobs"));
    EXPECT_EQ(with("trace convert - --out /dev/stdout"), bytes_of(trace));
  }
}

TEST_F(CommandLine, StandardInputMayBeReadTwiceAndIsNamedInErrors) {
  // The lines of a twin id are found by reading again.
  const std::string twins =
      "printf 'job_id,submit_s,work_s,tasks,gpu_milli_per_task\\na,0,1,1,1000\\na,1,1,1,1000\\n' | ";
  const std::string program = std::string(GPUSCHED_PROGRAM) + " ";
  EXPECT_THAT(shell(twins + program + "replay - --cluster 4 --policy fifo 2>&1"),
              HasSubstr("-:3: job_id: job id 'a' is already used at line 2"));
  EXPECT_EQ(shell(": | " + program + "trace info - 2>&1"), "gpusched: -: is empty; expected a trace\n");
  EXPECT_THAT(shell("echo some words | " + program + "trace info - 2>&1"), HasSubstr("format not recognised"));
  EXPECT_THAT(shell("cat " + small_trace() + " | " + program + "trace info - --format philly-csv 2>&1"),
              HasSubstr("-:1:"));
  EXPECT_THAT(shell("cat " + small_trace() + " | TMPDIR=/nowhere " + program + "trace info - 2>&1"),
              HasSubstr("3 of 3 rows"));
}

TEST_F(CommandLine, ReadsAConfigurationFromStandardInput) {
  const std::string trace = small_trace(), program = std::string(GPUSCHED_PROGRAM) + " ";
  const std::string config =
      folder_.write("run.json", R"({"trace": {"path": ")" + trace + R"("}, "cluster": "2x2", "policies": ["srtf"]})");
  const std::string windows = folder_.write("windows.json", R"({"traces": [")" + trace +
                                                                R"("], "clusters": ["2x2"], "policies": ["fifo"], )"
                                                                R"("windows": {"jobs": 3}})");
  EXPECT_EQ(shell(program + "replay --config - < " + config), run("replay --config " + config).out);
  EXPECT_EQ(shell("cat " + config + " | " + program + "replay --config - --policy fifo"),
            run("replay --config " + config + " --policy fifo").out);
  EXPECT_EQ(shell(program + "evaluate --config - < " + windows), run("evaluate --config " + windows).out);
  EXPECT_THAT(shell("echo '{' | " + program + "replay --config - 2>&1"),
              StartsWith("gpusched: -:2: expected well-formed JSON here"));
  EXPECT_EQ(shell(": | " + program + "evaluate --config - 2>&1"), "gpusched: -:1: empty; expected JSON\n");

  const std::string twice = "both ask for standard input; give one of them as a file\n";
  const std::string reads_trace = R"({"trace": {"path": "-"}, "cluster": "2", "policies": ["fifo"]})";
  // The trace is told apart from a configuration before it is read as one.
  for (const std::string command : {"replay --config - -", "evaluate - --config -", "replay --config - --trace -",
                                    "evaluate --config - --trace x.csv --trace -", "train - --config -"}) {
    EXPECT_EQ(shell(program + command + " 2>&1 < " + trace), "gpusched: --config and --trace: " + twice) << command;
  }
  EXPECT_EQ(shell("echo '" + reads_trace + "' | " + program + "replay --config - 2>&1"),
            "gpusched: --config and --trace: " + twice);
  EXPECT_EQ(shell("echo '" + reads_trace + "' | " + program + "replay --config - --trace " + trace),
            run("replay --cluster 2 --policy fifo " + trace).out);
  for (const std::string command : {"replay", "evaluate", "train"}) {
    expect_refused(command + " --config ''", "--config: expected a value, not ''");
  }
}

TEST_F(CommandLine, ReadsAPackedTraceFromANamedPipe) {
  const std::string trace = small_trace(), pipe = folder_.path() + "/pipe";
  ASSERT_EQ(std::system(("mkfifo " + pipe).c_str()), 0);
  EXPECT_THAT(shell("gzip -c " + trace + " > " + pipe + " & timeout 20 " + GPUSCHED_PROGRAM + " trace info " + pipe),
              HasSubstr("jobs"));
}

TEST_F(CommandLine, TheNumberOfThreadsIsCalledThreads) {
  const std::string replay = "replay " + small_trace() + " --cluster 2x2 --policy fifo,srtf ";
  const Outcome one = run(replay);
  for (const std::string threads : {"--threads 2", "--threads 0", "--threads 1"}) {
    const Outcome many = run(replay + threads);
    EXPECT_EQ(many.out, one.out);
    EXPECT_EQ(many.err, "");
  }
  const Outcome old = run(replay + "--jobs 2");
  EXPECT_EQ(old.out, one.out);
  EXPECT_EQ(old.err, "note: --jobs is called --threads now\n");
  EXPECT_THAT(run("help replay").out, Not(HasSubstr("--jobs")));
  expect_refused(replay + "--threads -1", "--threads: expected a whole number, 0 to 4096");
  expect_refused(replay + "--threads many", "--threads: expected a whole number");
  expect_refused(replay + "--threads 99999999999999999999", "--threads: expected a whole number, 0 to 4096");
  expect_refused(replay + "--jobs", "--jobs: expected a value behind it");
  for (const std::string command : {"replay", "evaluate", "train", "calibrate --out x"}) {
    for (const std::string number : {"x", "-1", "4097"}) {
      expect_refused(command + " --threads " + number,
                     "--threads: expected a whole number, 0 to 4096, not '" + number + "'");
    }
  }
}

TEST_F(CommandLine, HelpTakesTheNameOfACommand) {
  for (const std::string command : {"replay", "trace", "trace info", "policies", "evaluate", "report", "train",
                                    "calibrate", "profile compare", "completion"}) {
    const Outcome help = run("help " + command);
    EXPECT_EQ(help.code, 0) << help.err;
    EXPECT_EQ(help.out, run(command + " --help").out);
    EXPECT_THAT(help.out, HasSubstr("gpusched " + command));
  }
  EXPECT_EQ(run("help").out, run("--help").out);
  expect_refused("help reply", "unknown command 'reply' (did you mean 'replay'?)");
  expect_refused("help trace inf", "unknown command 'inf' (did you mean 'info'?); `gpusched trace --help` lists all");
  expect_refused("help --man nonsense", "--man: prints one page for the whole program; got 'nonsense' beside it");
  expect_refused("policies ''", "''");
  expect_refused("completion ''", "shell: expected one of bash|zsh|fish, not ''");
  expect_refused("help replay info", "`gpusched replay` has no commands below it; got 'info'");
}

TEST_F(CommandLine, HelpSaysOnceWhatIsRequired) {
  for (const std::string command : {"trace info", "trace validate", "trace convert"}) {
    const std::string help = run("help " + command).out;
    EXPECT_THAT(help, HasSubstr("[OPTIONS] TRACE\n"));
    EXPECT_THAT(help, HasSubstr("\n  TRACE (required)          trace file, - for standard input"));
    EXPECT_THAT(help, HasSubstr("\n  --trace TRACE             the same as TRACE\n"));
    expect_refused(command + " --format csv" + (command == "trace convert" ? " --out x" : ""), "TRACE is required");
    expect_refused(command + " ''", "--trace: expected a value, not ''");
  }
  EXPECT_THAT(run("help replay").out, HasSubstr("\n  --trace TRACE             the same as TRACE\n"));
  EXPECT_THAT(run("help replay").out, HasSubstr("seed of everything random (default 0)"));
  EXPECT_THAT(run("help replay").out, HasSubstr("TRACE and --policy are needed"));
  // Examples everywhere, and all within a terminal.
  for (const std::string command :
       {"replay", "evaluate", "report", "train", "trace info", "trace validate", "trace convert", "trace generate",
        "policies", "calibrate", "profile show", "profile validate", "profile compare", "cluster import",
        "cluster show", "help", "completion"}) {
    const std::string help = run("help " + command).out;
    EXPECT_THAT(help, testing::ContainsRegex("\nExamples?:\n  ")) << command;
    std::istringstream text(help);
    for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 80u) << command << ": " << line;
  }
}

TEST_F(CommandLine, PoliciesAreDescribedAsJson) {
  const json all = json::parse(run("policies --json").out, nullptr, false);
  ASSERT_TRUE(all.is_object());
  std::size_t names = 0;
  std::istringstream list(run("policies").out);
  for (std::string line; std::getline(list, line) && !line.empty();) names += line.front() == ' ' ? 0 : 1;
  ASSERT_EQ(all["policies"].size(), names);
  for (const json& policy : all["policies"]) {
    const std::string name = policy["name"];
    for (const char* key : {"aliases", "summary", "source", "cost_of_an_event", "preempts", "work_conserving",
                            "clairvoyant", "can_be_backfilled", "parameters"}) {
      EXPECT_TRUE(policy.contains(key)) << name << " " << key;
    }
    EXPECT_TRUE(policy["clairvoyant"].is_boolean()) << name;
    for (const json& parameter : policy["parameters"]) {
      for (const char* key : {"name", "type", "default", "unit", "meaning"})
        EXPECT_TRUE(parameter.contains(key)) << name;
    }
    if (name == "srtf") {
      EXPECT_EQ(policy["clairvoyant"], true);
    }
    if (name == "fifo") {
      EXPECT_EQ(policy["clairvoyant"], false);
    }
    if (name == "fifo") {
      EXPECT_EQ(policy["can_be_backfilled"], true);
    }
    if (name == "tiresias") {
      const json& limits = policy["parameters"][0];
      EXPECT_EQ(limits["name"], "queue_limits_gpu_s");
      EXPECT_EQ(limits["type"], "list of numbers");
      EXPECT_EQ(limits["unit"], "GPU-seconds");
      EXPECT_EQ(limits["default"], json({3250, 7200}));
      EXPECT_EQ(policy["can_be_backfilled"], false);
      EXPECT_EQ(json::parse(run("policies --json tiresias").out), policy);
    }
  }
  ASSERT_EQ(all["backfill"].size(), 3u);
  EXPECT_EQ(all["backfill"][0]["name"], "easy");
  expect_refused("policies --json fifoo", "did you mean 'fifo'?");
}

TEST_F(CommandLine, TheManualPageIsSoundRoff) {
  const Outcome page = run("help --man");
  EXPECT_EQ(page.code, 0) << page.err;
  for (const std::string text : {"gpusched replay", "\\-\\-policy", "gpusched trace validate", ".SH EXIT STATUS"}) {
    EXPECT_THAT(page.out, HasSubstr(text));
  }
  const std::string file = folder_.write("gpusched.1", page.out);
  if (is_installed("groff")) {
    EXPECT_EQ(shell("groff -ww -man -Tutf8 -z " + file + " 2>&1"), "");
    EXPECT_THAT(shell("groff -man -Tascii -P-c " + file), HasSubstr("gpusched replay mine.csv --columns"));
  }
  if (is_installed("mandoc")) {
    EXPECT_EQ(shell("mandoc -Tlint -Wwarning " + file + " 2>&1"), "");
  }
  if (!is_installed("groff") && !is_installed("mandoc")) GTEST_SKIP() << "neither groff nor mandoc is installed";
}

// ---- completion
// ------------------------------------------------------------------------------------------------------

// A fixture that completes a line in one shell.
class Completion : public Program {
 protected:
  // What bash would offer behind `line`, of which readline has cut off the piece `piece`.
  std::vector<std::string> bash(const std::string& line, const std::string& piece) const {
    const std::string script = folder_.write(
        "complete.bash", "source " + written("bash") + "\ncd " + folder_.path() + "\nCOMP_LINE=" + quoted(line) +
                             " COMP_POINT=${#COMP_LINE}\nCOMP_WORDS=(gpusched " + quoted(piece) +
                             ") COMP_CWORD=1\n_gpusched\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
    return lines(shell("bash --norc " + script + " 2>&1"));
  }

  std::vector<std::string> fish(const std::string& line) const {
    std::vector<std::string> words =
        lines(shell("cd " + folder_.path() + " && HOME=" + folder_.path() + " fish --no-config -c 'source " +
                    written("fish") + "; complete -C \"" + line + "\"' 2>&1"));
    for (std::string& word : words) word = word.substr(0, word.find('\t'));
    return words;
  }

  // The line that zsh makes of `line` and a tab, when there is one way to go on.
  std::string zsh(const std::string& line) const {
    folder_.write("_gpusched", bytes_of(written("zsh")));
    const std::string script = folder_.write("complete.zsh", R"zsh(
zmodload zsh/zpty
zpty shell zsh -f -i
answer() { local text; zpty -w shell "$1"; zpty -r shell text "*$2*"; print -r -- "$text"; }
answer 'PS1=; unsetopt beep zle_bracketed_paste; fpath=('$PWD' $fpath); autoload -Uz compinit; compinit -u -D; gpusched() { print -r -- "<$*>" }; print rea""dy' ready > /dev/null
zpty -w -n shell "$1"$'\t\n'
zpty -r shell text '*<*>*'
print -r -- "$text"
)zsh");
    const std::string text =
        shell("cd " + folder_.path() + " && timeout 60 zsh -f " + script + " " + quoted(line) + " 2>&1");
    const std::size_t begin = text.rfind('<'), end = text.rfind('>');
    return begin == std::string::npos || end < begin ? text : text.substr(begin + 1, end - begin - 1);
  }

  std::string written(const std::string& name) const {
    const Outcome script = run("completion " + name);
    EXPECT_EQ(script.code, 0) << script.err;
    return folder_.write("script." + name, script.out);
  }

  static std::string quoted(const std::string& text) {
    std::string result = "'";
    for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
    return result + "'";
  }

  static std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> result;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) result.push_back(line);
    return result;
  }
};

TEST_F(Completion, OfBash) {
  using testing::Contains;
  using testing::ElementsAre;
  using testing::UnorderedElementsAre;
  small_trace();
  folder_.write("sub/x", "");
  EXPECT_THAT(bash("gpusched re", "re"), ElementsAre("replay", "report"));
  EXPECT_THAT(bash("gpusched trace ", ""), ElementsAre("info", "validate", "convert", "waste", "generate"));
  EXPECT_THAT(bash("gpusched help trace inf", "inf"), ElementsAre("info"));
  EXPECT_THAT(bash("gpusched replay --pol", "--pol"), ElementsAre("--policy"));
  EXPECT_THAT(bash("gpusched replay --", "--"), testing::IsSupersetOf({"--trace", "--cluster", "--threads", "--help"}));
  EXPECT_THAT(bash("gpusched replay --", "--"), testing::Not(Contains("--jobs")));
  EXPECT_THAT(bash("gpusched replay --placement best", "best"), ElementsAre("best-fit"));
  EXPECT_THAT(bash("gpusched replay --policy them", "them"), ElementsAre("themis"));
  EXPECT_THAT(bash("gpusched replay --policy fifo,sjf,them", "fifo,sjf,them"), ElementsAre("fifo,sjf,themis"));
  EXPECT_THAT(bash("gpusched evaluate a.csv --policy 'fifo,them", "'fifo,them"), ElementsAre("fifo,themis"));
  // Readline cuts words at =, @ and :.
  EXPECT_THAT(bash("gpusched replay --policy=them", "them"), ElementsAre("themis"));
  EXPECT_THAT(bash("gpusched replay --policy=", "="), Contains("themis"));
  EXPECT_THAT(bash("gpusched replay --policy fifo,srtf@mu", "mu"), ElementsAre("muri"));
  EXPECT_THAT(bash("gpusched replay synthetic:phi", "phi"), ElementsAre("philly"));
  EXPECT_THAT(bash("gpusched replay sm", "sm"), ElementsAre("small.csv"));
  EXPECT_THAT(bash("gpusched replay --threads 2 sm", "sm"), ElementsAre("small.csv"));
  EXPECT_THAT(bash("gpusched replay --json --trace sm", "sm"), ElementsAre("small.csv"));
  EXPECT_THAT(bash("gpusched evaluate small.csv sm", "sm"), ElementsAre("small.csv"));
  EXPECT_THAT(bash("gpusched replay --out s", "s"), ElementsAre("sub"));
  EXPECT_THAT(bash("gpusched replay --cluster philly-", "philly-"), ElementsAre("philly-vc"));
  EXPECT_THAT(bash("gpusched replay --backfill con", "con"), ElementsAre("conservative"));
  EXPECT_THAT(bash("gpusched policies themi", "themi"), ElementsAre("themis"));
  EXPECT_THAT(bash("gpusched profile compare H100 H20", "H20"), ElementsAre("H200"));
  EXPECT_THAT(bash("gpusched replay --profile H20", "H20"), ElementsAre("H200"));
  EXPECT_THAT(bash("gpusched replay --profile V100=H20", "H20"), ElementsAre("H200"));
  EXPECT_THAT(bash("gpusched replay --profile V100=V100,A=H20", "H20"), ElementsAre("H200"));
  EXPECT_THAT(bash("gpusched replay --profile V100,H20", "V100,H20"), ElementsAre("V100,H200"));
  EXPECT_THAT(bash("gpusched replay --profile V100=sm", "sm"), ElementsAre("small.csv"));
  EXPECT_THAT(bash("gpusched policies eas", "eas"), ElementsAre("easy"));
  EXPECT_THAT(bash("gpusched calibrate --backend a", "a"), ElementsAre("analytic"));
  EXPECT_THAT(bash("gpusched completion f", "f"), ElementsAre("fish"));
  EXPECT_THAT(bash("gpusched train sm", "sm"), ElementsAre("small.csv"));
  EXPECT_THAT(bash("gpusched trace convert small.csv --to ", ""), ElementsAre("native", "swf"));

  // Backfilling behind the policies that take it.
  EXPECT_THAT(bash("gpusched replay --policy fifo+", "fifo+"),
              ElementsAre("fifo+none", "fifo+easy", "fifo+conservative", "fifo+sc20"));
  EXPECT_THAT(bash("gpusched replay --policy fifo,saf+ea", "fifo,saf+ea"), ElementsAre("fifo,saf+easy"));
  EXPECT_THAT(bash("gpusched replay --policy=fifo,saf+ea", "fifo,saf+ea"), ElementsAre("fifo,saf+easy"));
  EXPECT_THAT(bash("gpusched replay --policy wfp3@sc20+ea", "sc20+ea"), ElementsAre("sc20+easy"));
  EXPECT_THAT(bash("gpusched replay --policy tiresias+", "tiresias+"), ElementsAre("tiresias+none"));
  EXPECT_THAT(bash("gpusched replay --policy slurm+", "slurm+"), ElementsAre("slurm+none", "slurm+easy"));
  EXPECT_THAT(bash("gpusched replay --policy fifo+easy,them", "fifo+easy,them"), ElementsAre("fifo+easy,themis"));
  EXPECT_THAT(bash("gpusched replay --policy sjf{skip=true},them", "true},them"), ElementsAre("true},themis"));
  EXPECT_THAT(bash("gpusched replay --policy sjf{skip=true}+ea", "true}+ea"), ElementsAre("true}+easy"));
  EXPECT_THAT(bash("gpusched replay --policy sjf{sk", "sjf{sk"), ElementsAre(""));
  EXPECT_THAT(bash("gpusched evaluate --group agent=them", "them"), ElementsAre("themis"));
  EXPECT_THAT(bash("gpusched evaluate --group agent=fifo,saf+ea", "fifo,saf+ea"), ElementsAre("fifo,saf+easy"));
  EXPECT_THAT(bash("gpusched evaluate --group agent", "agent"), ElementsAre(""));
  EXPECT_THAT(bash("gpusched evaluate --against them", "them"), ElementsAre("themis"));
  EXPECT_THAT(bash("gpusched evaluate --against fifo+ea", "fifo+ea"), ElementsAre("fifo+easy"));

  // What help takes, word by word.
  EXPECT_THAT(bash("gpusched help tra", "tra"), ElementsAre("trace", "train"));
  EXPECT_THAT(bash("gpusched help trace ", ""), ElementsAre("info", "validate", "convert", "waste", "generate"));
  EXPECT_THAT(bash("gpusched help profile ", ""), ElementsAre("show", "validate", "compare"));
  EXPECT_THAT(bash("gpusched help replay ", ""), ElementsAre(""));
  EXPECT_THAT(bash("gpusched help trace info ", ""), ElementsAre(""));
}

TEST_F(Completion, OfZsh) {
  if (!is_installed("zsh")) GTEST_SKIP() << "zsh is not installed";
  small_trace();
  EXPECT_EQ(zsh("gpusched repl"), "replay");
  EXPECT_EQ(zsh("gpusched trace inf"), "trace info");
  EXPECT_EQ(zsh("gpusched trace info smal"), "trace info small.csv");
  EXPECT_EQ(zsh("gpusched replay --placement best"), "replay --placement best-fit");
  EXPECT_EQ(zsh("gpusched replay --policy fifo,them"), "replay --policy fifo,themis");
  EXPECT_EQ(zsh("gpusched replay synthetic:phi"), "replay synthetic:philly");
  EXPECT_EQ(zsh("gpusched calibrate --back"), "calibrate --backend");
  EXPECT_EQ(zsh("gpusched replay --policy fifo,saf+ea"), "replay --policy fifo,saf+easy");
  EXPECT_EQ(zsh("gpusched replay --policy=saf+ea"), "replay --policy=saf+easy");
  EXPECT_EQ(zsh("gpusched replay --policy tiresias+"), "replay --policy tiresias+none");
  EXPECT_EQ(zsh("gpusched replay --policy fifo+easy,them"), "replay --policy fifo+easy,themis");
  EXPECT_EQ(zsh("gpusched evaluate --group agent=fifo,them"), "evaluate --group agent=fifo,themis");
  EXPECT_EQ(zsh("gpusched evaluate --against them"), "evaluate --against themis");
  EXPECT_EQ(zsh("gpusched replay --profile A=V100,B=H20"), "replay --profile A=V100,B=H200");
  EXPECT_EQ(zsh("gpusched help trace inf"), "help trace info");
  EXPECT_EQ(zsh("gpusched help repl"), "help replay");
  EXPECT_EQ(zsh("gpusched help replay inf"), "help replay inf");
  EXPECT_EQ(zsh("gpusched train smal"), "train small.csv");
}

TEST_F(Completion, OfFish) {
  using testing::Contains;
  using testing::ElementsAre;
  if (!is_installed("fish")) GTEST_SKIP() << "fish is not installed";
  small_trace();
  EXPECT_THAT(fish("gpusched re"), ElementsAre("replay", "report"));
  EXPECT_THAT(fish("gpusched trace in"), ElementsAre("info"));
  EXPECT_THAT(fish("gpusched replay --pol"), ElementsAre("--policy"));
  EXPECT_THAT(fish("gpusched replay --placement best"), ElementsAre("best-fit"));
  EXPECT_THAT(fish("gpusched replay --policy fifo,them"), ElementsAre("fifo,themis"));
  EXPECT_THAT(fish("gpusched replay --policy=fifo,them"), ElementsAre("--policy=fifo,themis"));
  EXPECT_THAT(fish("gpusched trace info smal"), ElementsAre("small.csv"));
  EXPECT_THAT(fish("gpusched replay --trace smal"), ElementsAre("small.csv"));
  EXPECT_THAT(fish("gpusched policies themi"), ElementsAre("themis"));
  EXPECT_THAT(fish("gpusched replay --policy fifo+"),
              testing::UnorderedElementsAre("fifo+none", "fifo+easy", "fifo+conservative", "fifo+sc20"));
  EXPECT_THAT(fish("gpusched replay --policy fifo,saf+ea"), ElementsAre("fifo,saf+easy"));
  EXPECT_THAT(fish("gpusched replay --policy=fifo,saf+ea"), ElementsAre("--policy=fifo,saf+easy"));
  EXPECT_THAT(fish("gpusched replay --policy tiresias+"), ElementsAre("tiresias+none"));
  EXPECT_THAT(fish("gpusched replay --policy fifo+easy,them"), ElementsAre("fifo+easy,themis"));
  EXPECT_THAT(fish("gpusched evaluate --group agent=fifo,them"), ElementsAre("agent=fifo,themis"));
  EXPECT_THAT(fish("gpusched evaluate --against them"), ElementsAre("themis"));
  EXPECT_THAT(fish("gpusched replay --profile A=V100,B=H20"), ElementsAre("A=V100,B=H200"));
  EXPECT_THAT(fish("gpusched help trace "),
              testing::UnorderedElementsAre("info", "validate", "convert", "waste", "generate"));
  EXPECT_THAT(fish("gpusched help tra"), testing::UnorderedElementsAre("trace", "train"));
  EXPECT_THAT(fish("gpusched help replay "), ElementsAre());
  EXPECT_THAT(fish("gpusched train smal"), ElementsAre("small.csv"));
}

}  // namespace
}  // namespace gpusched::test
