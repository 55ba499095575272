// SPDX-License-Identifier: Apache-2.0
// trace_events.json read back: against the interval log and the metrics of the same run.
#include "src/sim/trace_events.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "src/base/number_text.hpp"
#include "src/base/output_folder.hpp"
#include "src/sim/replay.hpp"
#include "src/sim/report.hpp"
#include "tests/support/files.hpp"

namespace gpusched::test {
namespace {

using nlohmann::json;

constexpr const char* job_columns = "job_id,submit_s,work_s,tasks,gpu_milli_per_task,user,vc,attempts_s\n";

// Runs the one policy of the scenario and writes its files into OUT/POLICY of `folder`.
std::string write_run(const TempFolder& folder, const Scenario& scenario, bool with_log) {
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto input = load_replay(scenario, registry);
  if (!input) return "load: " + input.error().to_string();
  ReplayProgress progress;
  const auto runs = run_replay(*input, registry, 1, {.splits = true, .job_files = true, .gpu_log = with_log}, progress);
  if (!runs || !runs->front().why_unfinished.empty()) return "run: " + runs->front().why_unfinished;
  auto out = OutputFolder::open(folder.path() + "/out", manifest_name);
  if (!out) return "open: " + out.error().to_string();
  const auto written = write_policy_files(*out, *input, runs->front());
  return written ? folder.path() + "/out/" + runs->front().folder + "/" : "write: " + written.error().to_string();
}

std::int64_t thousandths(const json& gpus) { return std::llround(gpus.get<double>() * 1000); }

// The file, taken apart.
struct ReadEvents {
  std::map<std::int64_t, std::string> processes, threads;
  std::map<std::int64_t, std::int64_t> process_of_thread;
  std::map<std::string, std::map<std::int64_t, std::int64_t>> counters;  // by name: time to thousandths
  std::vector<json> runs;
};

ReadEvents read_events(const std::string& text) {
  ReadEvents read;
  const json file = json::parse(text);
  for (const json& event : file.at("traceEvents")) {
    const auto process = event.at("pid").get<std::int64_t>();
    const std::string phase = event.at("ph"), name = event.at("name");
    if (phase == "M") {
      if (name == "process_name") {
        RC_ASSERT(read.processes.emplace(process, event.at("args").at("name")).second);
      } else if (name == "thread_name") {
        const auto thread = event.at("tid").get<std::int64_t>();
        RC_ASSERT(read.threads.emplace(thread, event.at("args").at("name")).second);  // one number, one thread
        read.process_of_thread[thread] = process;
      } else {
        RC_ASSERT((name == "process_sort_index" || name == "thread_sort_index" || name == "process_labels"));
      }
    } else if (phase == "C") {
      RC_ASSERT(event.at("args").size() == 1u);
      auto& values = read.counters[name];
      const auto at = event.at("ts").get<std::int64_t>();
      RC_ASSERT((values.empty() || values.rbegin()->first < at));
      values[at] = thousandths(*event.at("args").begin());
    } else {
      RC_ASSERT(phase == "X");
      RC_ASSERT(event.at("dur").get<std::int64_t>() >= 0);
      RC_ASSERT(read.process_of_thread.at(event.at("tid")) == process);
      read.runs.push_back(event);
    }
  }
  return read;
}

// Of the runs on one thread, or on all threads of one GPU: at no time more than `most` thousandths.
void check_at_most(const std::vector<json>& runs, std::int64_t most, bool count_runs) {
  std::map<std::int64_t, std::int64_t> change;
  for (const json& run : runs) {
    const std::int64_t begin = run["ts"], end = begin + run["dur"].get<std::int64_t>();
    const std::int64_t amount = count_runs ? 1 : thousandths(run["args"]["gpus"]);
    change[begin] += amount;
    change[end] -= amount;
  }
  std::int64_t held = 0;
  for (const auto& [at, by] : change) RC_ASSERT((held += by) <= most);
}

using Rows = std::map<std::tuple<std::string, std::string, std::int64_t, std::int64_t>, std::int64_t>;

// What the counters must say, from the interval log and the jobs alone.
std::map<std::string, std::map<std::int64_t, std::int64_t>> expected_levels(const PolicyRun& run) {
  std::map<std::string, std::map<std::int64_t, std::int64_t>> change;
  std::map<JobId, std::set<std::pair<Time, Time>>> runs;
  for (const Interval& interval : run.intervals) runs[interval.job].emplace(interval.start, interval.end);
  const JobTable& jobs = run.engine->jobs();
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    const std::int64_t gpus = jobs.shape(job).gpu_milli();
    const auto wait = [&](Time at, int sign) {
      change["waiting jobs"][at.us] += sign * 1000;
      change["waiting GPUs"][at.us] += sign * gpus;
    };
    wait(jobs.submit(job), 1);
    for (const auto& [start, end] : runs[job]) {
      wait(start, -1);
      change["running jobs"][start.us] += 1000;
      change["GPUs in use"][start.us] += gpus;
      change["running jobs"][end.us] -= 1000;
      change["GPUs in use"][end.us] -= gpus;
      if (end != run.engine->end(job)) wait(end, 1);
    }
  }
  return change;
}

RC_GTEST_PROP(TraceEvents, SayWhatTheIntervalLogAndTheMetricsSay, ()) {
  const TempFolder folder;
  std::string trace = job_columns;
  std::uint64_t retries = 0;
  const auto count = *rc::gen::inRange(1, 30);
  for (int i = 0; i < count; ++i) {
    const auto submit = *rc::gen::inRange(0, 100);
    // Microseconds. A job without work has no interval that is told apart from others.
    const auto work = *rc::gen::inRange(1, 80'000'000), failed = *rc::gen::inRange(0, 2) * work;
    const auto tasks = *rc::gen::inRange(1, 9);
    const auto milli = *rc::gen::element(250, 500, 1000, 2000);
    trace += "j" + std::to_string(i) + "," + std::to_string(submit) + "," + exact_seconds(Time{work + failed}) + "," +
             std::to_string(tasks) + "," + std::to_string(milli) + ",u,v," +
             (failed > 0 ? exact_seconds(Time{failed}) + ";" + exact_seconds(Time{work}) : "") + "\n";
    retries += failed > 0 ? 1 : 0;
  }
  Scenario scenario;
  scenario.trace = folder.write("jobs.csv", trace);
  scenario.cluster = *rc::gen::element<std::string>("4x4", "16");
  scenario.policies = {*rc::gen::element<std::string>("fifo", "srtf", "las{quantum_gpu_s=20}", "gandiva{slice_s=10}")};
  scenario.conditions.preemption.restart = Time{*rc::gen::inRange(0, 2'000'000)};
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto input = load_replay(scenario, registry);
  RC_ASSERT(input.has_value());
  ReplayProgress progress;
  const auto replayed = run_replay(*input, registry, 1, {.job_files = true, .gpu_log = true}, progress);
  RC_ASSERT(replayed.has_value());
  const PolicyRun& done = replayed->front();
  RC_PRE(done.why_unfinished.empty());  // restarts may cost as much as a turn
  std::string text;
  write_trace_events(*done.gpu_log, input->trace.jobs, input->cluster, {done.policy, "t"},
                     [&](std::string_view piece) { text += piece; });
  const ReadEvents read = read_events(text);

  Rows drawn, logged;
  std::map<std::int64_t, std::vector<json>> by_thread;
  std::map<std::pair<std::int64_t, std::string>, std::vector<json>> by_gpu;
  std::map<std::string, std::map<int, std::string>> ends;
  double gpu_s = 0;
  for (const json& run : read.runs) {
    const std::int64_t begin = run["ts"], end = begin + run["dur"].get<std::int64_t>();
    const std::string name = run["name"], thread = read.threads.at(run["tid"]);
    drawn[{name, read.processes.at(run["pid"]), begin, end}] += thousandths(run["args"]["gpus"]);
    by_thread[run["tid"]].push_back(run);
    if (thread.starts_with("GPU")) by_gpu[{run["pid"], thread.substr(0, thread.find(','))}].push_back(run);
    ends[name][run["args"]["run"]] = run["args"]["end"];
    RC_ASSERT(run["cat"] == run["args"]["end"]);
    gpu_s += static_cast<double>(end - begin) * 1e-6 * run["args"]["gpus"].get<double>();
  }
  for (const Interval& interval : done.intervals) {
    logged[{std::string(input->trace.jobs.external_id(interval.job)), "node " + std::to_string(index(interval.node)),
            interval.start.us, interval.end.us}] += interval.gpu_milli;
  }
  RC_ASSERT(drawn == logged);
  for (const auto& [thread, runs] : by_thread) check_at_most(runs, 1, true);
  for (const auto& [gpu, runs] : by_gpu) check_at_most(runs, 1000, false);
  RC_ASSERT(by_gpu.empty() == (scenario.cluster == "16"));

  const double held = done.metrics.gpu_allocation * 16 * done.metrics.makespan_s;
  RC_ASSERT(std::abs(gpu_s - held) <= 1e-6 * std::max(1.0, held));
  std::uint64_t preempted = 0, retried = 0;
  for (const auto& [job, runs] : ends) {
    for (const auto& [number, how] : runs) {
      const bool is_last = number == static_cast<int>(runs.size());
      RC_ASSERT((how == "finished") == is_last);
      preempted += how == "preempted" ? 1 : 0;
      retried += how == "retried" ? 1 : 0;
    }
  }
  RC_ASSERT(ends.size() == static_cast<std::size_t>(count));
  RC_ASSERT(retried == retries);
  RC_ASSERT(preempted == done.metrics.preemptions);

  for (const auto& [name, change] : expected_levels(done)) {
    const auto& values = read.counters.at(name);
    std::int64_t level = 0;
    for (const auto& [at, by] : change) {
      level += by;
      const auto next = values.upper_bound(at);
      RC_ASSERT(next != values.begin());
      RC_ASSERT(std::prev(next)->second == level);
    }
    RC_ASSERT(level == 0);
  }
}

Scenario small_scenario(const TempFolder& folder, const std::string& rows) {
  Scenario scenario;
  scenario.trace = folder.write("jobs.csv", job_columns + rows);
  scenario.cluster = "1x2";
  scenario.policies = {"fifo"};
  return scenario;
}

TEST(TraceEvents, SharesOfAGpuHaveThreadsOfTheirOwnAndTasksWithoutGpusNone) {
  const TempFolder folder;
  const Scenario scenario = small_scenario(folder, "a,0,10,3,500,u,v,\nb,1,2,1,0,u,v,\nc,2,4,1,500,u,v,\n");
  const std::string place = write_run(folder, scenario, true);
  const json file = json::parse(bytes_of(place + "trace_events.json"));
  std::set<std::string> threads;
  std::vector<std::string> runs;
  for (const json& event : file["traceEvents"]) {
    if (event["name"] == "thread_name") threads.insert(event["args"]["name"].get<std::string>());
    if (event["ph"] == "X") {
      runs.push_back(event["name"].get<std::string>() + " " + event["ts"].dump() + " " + event["dur"].dump() + " " +
                     event["args"]["gpus"].dump() + " of " + event["args"]["job_gpus"].dump());
    }
  }
  EXPECT_EQ(threads, (std::set<std::string>{"GPU 0", "GPU 0, share 2", "GPU 1", "GPU 1, share 2"}));
  std::sort(runs.begin(), runs.end());
  const std::string a = "a 0 10000000 0.5 of 1.5";
  EXPECT_EQ(runs, (std::vector<std::string>{a, a, a, "c 2000000 4000000 0.5 of 0.5"}));
}

TEST(TraceEvents, ARunEndsByAResizeAndTellsWhatItHolds) {
  const TempFolder folder;
  Scenario scenario = small_scenario(folder, "a,0,10,1,1000,u,v,\n");
  scenario.conditions.changes = folder.write("changes.csv", "time_s,job,change,value\n4,a,gpus,2\n");
  const json file = json::parse(bytes_of(write_run(folder, scenario, true) + "trace_events.json"));
  std::multiset<std::string> runs;
  for (const json& event : file["traceEvents"]) {
    if (event["ph"] != "X") continue;
    runs.insert(event["args"]["end"].get<std::string>() + " of " + event["args"]["job_gpus"].dump());
  }
  EXPECT_EQ(runs, (std::multiset<std::string>{"finished of 2", "finished of 2", "resized of 1"}));
}

TEST(TraceEvents, NamesAreShownNotObeyed) {
  const TempFolder folder;
  const Scenario scenario =
      small_scenario(folder, "\"a\"\"</script>\\\",0,10,1,1000,u\x01\xff,\xc3\xa9,\nb\x7f,0,1,1,1000,\xe2\x80,v,\n");
  const json file = json::parse(bytes_of(write_run(folder, scenario, true) + "trace_events.json"));
  std::set<std::vector<std::string>> seen;
  for (const json& event : file["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const std::string name = event["name"], user = event["args"]["user"], vc = event["args"]["vc"];
    seen.insert(std::vector<std::string>{name, user, vc});
  }
  EXPECT_EQ(seen, (std::set<std::vector<std::string>>{{"a\"</script>\\", "u\\x01\\xff", "\xc3\xa9"},
                                                      {"b\\x7f", "\\xe2\\x80", "v"}}));
}

TEST(TraceEvents, SameBytesAgainAndAnOlderFileGoesWhereNoneIsAskedFor) {
  const TempFolder folder;
  const Scenario scenario = small_scenario(folder, "a,0,10,2,1000,u,v,\nb,1,2,1,1000,u,v,\n");
  const std::string file = write_run(folder, scenario, true) + "trace_events.json";
  const std::string bytes = bytes_of(file);
  EXPECT_FALSE(bytes.empty());
  write_run(folder, scenario, true);
  EXPECT_EQ(bytes_of(file), bytes);
  EXPECT_NE(write_run(folder, scenario, false), "");
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(TraceEvents, ALargeRunComesInSmallPieces) {
  const TempFolder folder;
  std::string rows;
  for (int i = 0; i < 2000; ++i) rows += std::to_string(i) + "," + std::to_string(i) + ",5,2,1000,u,v,\n";
  const auto input = load_replay(small_scenario(folder, rows), PolicyRegistry::standard());
  ASSERT_TRUE(input);
  ReplayProgress progress;
  const auto runs = run_replay(*input, PolicyRegistry::standard(), 1, {.job_files = true, .gpu_log = true}, progress);
  ASSERT_TRUE(runs);
  std::string text;
  std::size_t largest = 0;
  write_trace_events(*runs->front().gpu_log, input->trace.jobs, input->cluster, {"fifo", "t"},
                     [&](std::string_view piece) {
                       largest = std::max(largest, piece.size());
                       text += piece;
                     });
  EXPECT_GT(text.size(), 500'000u);
  EXPECT_LT(largest, 70'000u);
  EXPECT_TRUE(json::accept(text));
}

TEST(TraceEvents, NeedAFolder) {
  Scenario scenario;
  scenario.trace = "jobs.csv";
  scenario.policies = {"fifo"};
  scenario.trace_events = true;
  const auto checked = check_scenario(scenario);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().to_string(), "output.trace_events: expected --out FOLDER with --trace-events");
  scenario.out = "results";
  EXPECT_TRUE(check_scenario(scenario));
}

}  // namespace
}  // namespace gpusched::test
