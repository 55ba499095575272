// SPDX-License-Identifier: Apache-2.0
#include "src/sim/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <type_traits>
#include <variant>

#include "src/base/csv_text.hpp"
#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/text_table.hpp"
#include "src/sim/job_file.hpp"
#include "src/sim/manifest.hpp"
#include "src/sim/metric_table.hpp"
#include "src/sim/optional_text.hpp"
#include "src/sim/power_report.hpp"
#include "src/sim/rated_run.hpp"
#include "src/sim/service_levels.hpp"
#include "src/sim/service_report.hpp"
#include "src/sim/study_report.hpp"
#include "src/sim/trace_events.hpp"

namespace gpusched {
namespace {

Json metrics_json(const Metrics& metrics) {
  Json json = Json::object();
  for (const MetricInfo& metric : metric_table()) {
    std::visit(
        [&](const auto member) {
          const auto& value = metrics.*member;
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, std::optional<double>>) {
            if (value || metric.told == Told::always) json[metric.name] = number_json(value);
          } else {
            json[metric.name] = value;
          }
        },
        metric.member);
  }
  return json;
}

Json saturation_json(const Saturation& s) {
  return {{"offered_load", s.offered_load},
          {"backlog_jobs", s.backlog_jobs},
          {"max_waiting_jobs", s.max_waiting_jobs},
          {"saturated", s.saturated}};
}

Json split_json(const std::vector<SplitRow>& split, const std::optional<PowerAccount>& power) {
  Json rows = Json::array();
  std::vector<Bill> bills;
  for (const SplitRow& row : split) {
    bills.push_back(row.bill);
    rows.push_back({{"key", row.key},
                    {"jobs", row.jobs},
                    {"avg_jct_s", row.avg_jct_s},
                    {"median_jct_s", row.median_jct_s},
                    {"avg_wait_s", row.avg_wait_s},
                    {"avg_bounded_slowdown", row.avg_bounded_slowdown},
                    {"gpu_hours", row.gpu_hours}});
  }
  if (power) add_bills(*power, bills, rows);
  return rows;
}

Json splits_json(const PolicyRun& run) {
  Json all = Json::object();
  for (std::size_t by = 0; by < run.splits.size(); ++by) {
    all[std::string(split_names[by])] = split_json(run.splits[by], run.power);
  }
  return all;
}

// Of the split that --split names.
std::size_t split_index(const Scenario& scenario) {
  return static_cast<std::size_t>(std::find(std::begin(split_names), std::end(split_names), scenario.split) -
                                  std::begin(split_names));
}

// Each value of a device profile that a result was made from.
Json recorded_json(const RecordedWaits& recorded) {
  return {{"jobs", recorded.jobs},
          {"measured_jobs", recorded.measured},
          {"avg_jct_s", recorded.avg_jct_s},
          {"median_jct_s", recorded.median_jct_s},
          {"p95_jct_s", recorded.p95_jct_s},
          {"p99_jct_s", recorded.p99_jct_s},
          {"avg_wait_s", recorded.avg_wait_s},
          {"p99_wait_s", recorded.p99_wait_s},
          {"avg_bounded_slowdown", recorded.avg_bounded_slowdown}};
}

Json manifest_json(const Scenario& scenario, const ReplayInput& input, const std::vector<PolicyRun>& runs,
                   const Execution& execution) {
  Json policies = Json::array();
  for (const PolicyRun& run : runs) {
    Json entry = {{"policy", run.policy}, {"clairvoyant", run.clairvoyant}, {"run_times", run.run_times}};
    if (!run.folder.empty()) {
      char hash[20];
      std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(run.history_hash));
      entry["history_hash"] = hash;
      entry["folder"] = run.folder;
    }
    policies.push_back(std::move(entry));
  }
  Json files = Json::array();
  for (const std::string& path : input.files) files.push_back(file_json(path));
  Json manifest = build_json();
  manifest.update({{"config", Json::parse(scenario_json(scenario, false))},
                   {"trace", trace_json(input.trace.report)},
                   {"cluster", cluster_json(input.cluster)},
                   {"files", std::move(files)},
                   {"seed", scenario.seed},
                   {"measured_jobs",
                    {{"first", input.window.first - input.trace.jobs.in_front()},
                     {"end", input.window.end(input.trace.jobs.size()) - input.trace.jobs.in_front()}}},
                   {"jobs_outside_virtual_clusters", input.jobs_outside_vcs},
                   {"value_sources",
                    {{"submission_and_work", "trace"},
                     {"user_estimates", input.trace.jobs.has_estimates() ? "trace" : "none"},
                     {"rates", rates_json(input.conditions.runtime)},
                     {"preemption_cost", "config"},
                     {"power", power_json(input.conditions.runtime, input.conditions.power.file)}}},
                   {"policies", policies},
                   {"warnings", report_warnings(input, runs)},
                   {"execution", execution_json(execution, scenario.threads, scenario.out)}});
  if (!input.slurm.files().empty()) manifest["slurm"] = slurm_json(input.slurm);
  if (input.recorded) manifest["recorded"] = recorded_json(*input.recorded);
  for (const MissingPolicy& missing : execution.missing) {
    manifest["missing"].push_back({{"policy", missing.policy}, {"why", missing.why}});
  }
  return manifest;
}

// Some card is cut as jobs come.
bool has_dynamic_mig(const Cluster& cluster) {
  return std::any_of(cluster.migs.begin(), cluster.migs.end(),
                     [](const MigNode& mig) { return mig.layout != MigLayout::fixed; });
}

Json run_json(const ReplayInput& input, const PolicyRun& run, Json metrics) {
  Json json = {{"policy", run.policy},
               {"trace", input.trace.report.path},
               {"cluster", input.cluster.name},
               {"metrics", std::move(metrics)}};
  if (has_dynamic_mig(input.cluster)) {
    json["mig"] = {{"reconfigurations", run.reconfigurations},
                   {"reconfiguration_gpu_hours", run.reconfiguration_gpu_hours}};
  }
  if (run.power) json["power"] = power_account_json(*run.power);
  if (!run.services.empty()) json["services"] = services_json(run.services, run.power);
  if (!run.studies.empty()) json["studies"] = studies_json(run.studies, input.conditions.studies);
  if (run.waits) json["waits"] = waits_json(*run.waits);
  return json;
}

// None for replicas, which are no jobs.
std::vector<Bill> bills_of(const Engine& engine) {
  std::vector<Bill> bills(engine.jobs().size());
  for (std::uint32_t i = engine.jobs().replicas(); i < bills.size(); ++i) bills[i] = engine.bill(JobId{i});
  return bills;
}

std::string jobs_csv_of(const ReplayInput& input, const PolicyRun& run) {
  const Engine& engine = *run.engine;
  JobFile file{.engine = [&](JobId) -> const Engine& { return engine; },
               .eligible = [&](JobId job) { return engine.submit(job); },
               .window = input.window,
               .estimates = run.estimates};
  file.gpu_types.resize(engine.jobs().size());
  add_gpu_types(input.cluster, run.intervals, file.gpu_types);
  if (run.power) file.bills = bill_columns(*run.power, bills_of(engine));
  return jobs_csv(file);
}

std::string intervals_csv(const Cluster& cluster, const PolicyRun& run, bool of_replicas) {
  const JobTable& jobs = run.engine->jobs();
  std::string text = of_replicas ? "replica,node,gpus,start_s,end_s\n" : "job_id,node,gpus,start_s,end_s\n";
  text.reserve(run.intervals.size() * 48);
  for (const Interval& interval : run.intervals) {
    const std::uint32_t row = index(interval.job);
    if (of_replicas ? row >= jobs.replicas() : row < jobs.in_front()) continue;
    append_csv_field(text, jobs.external_id(interval.job));
    text += ',';
    const std::string& name = cluster.nodes[index(interval.node)].name;
    if (name.empty()) {
      append_integer(text, index(interval.node));
    } else {
      append_csv_field(text, name);
    }
    append_decimal(text += ',', interval.gpu_milli, whole_gpu);
    append_seconds(text += ',', interval.start);
    append_seconds(text += ',', interval.end);
    text += '\n';
  }
  return text;
}

std::string timeline_csv(std::span<const ClusterLevel> levels) {
  std::string text = "time_s,waiting_jobs,running_jobs,waiting_gpus,used_gpus,up_gpus\n";
  text.reserve(levels.size() * 48);
  for (const ClusterLevel& level : levels) {
    append_seconds(text, level.since);
    append_integer(text += ',', level.waiting_jobs);
    append_integer(text += ',', level.running_jobs);
    append_decimal(text += ',', level.waiting_milli, whole_gpu);
    append_decimal(text += ',', level.used_milli, whole_gpu);
    append_integer(text += ',', level.up_gpus);
    text += '\n';
  }
  return text;
}

std::string percent(double share) { return formatted("%.1f%%", 100 * share); }

std::string describe_cluster(const Cluster& cluster) {
  const std::string gpus = counted(static_cast<std::uint64_t>(cluster.total_gpus()), "GPU");
  if (cluster.nodes.size() == 1) return gpus + " in one pool";
  return gpus + " on " + counted(cluster.nodes.size(), "node");
}

std::string energy_line(const std::vector<PolicyRun>& runs) {
  std::string text = "energy of the GPUs:";
  for (const PolicyRun& run : runs) {
    text +=
        (&run == runs.data() ? " " : ", ") + run.policy + formatted(" %.1f kWh", run.metrics.energy_kwh.value_or(0));
  }
  return text + "\n";
}

std::string mig_line(const std::vector<PolicyRun>& runs) {
  std::string text = "MIG layouts changed:";
  for (const PolicyRun& run : runs) {
    text += (&run == runs.data() ? " " : ", ") + run.policy + " " + human_count(run.reconfigurations) +
            (run.reconfigurations == 1 ? " time" : " times") +
            formatted(" (%.3f GPU-hours)", run.reconfiguration_gpu_hours);
  }
  return text + "\n";
}

// Where the GPU time of the cluster went.
std::string gpu_time_table(const std::vector<PolicyRun>& runs, const TextStyle& style) {
  TextTable table({"policy", "useful", "overhead", "lost", "withheld", "idle", "goodput", "kills"});
  for (const PolicyRun& run : runs) {
    const Metrics& m = run.metrics;
    const double withheld = m.gpu_withheld.value_or(0);
    table.add({run.policy, percent(m.gpu_utilization), percent(m.gpu_overhead.value_or(0)),
               percent(m.gpu_lost.value_or(0)), percent(withheld), percent(1 - m.gpu_allocation - withheld),
               percent(m.goodput.value_or(1)), human_count(static_cast<std::uint64_t>(m.kills.value_or(0)))});
  }
  table.rate(1, Best::most, runs, [](const PolicyRun& run) { return rated(run, run.metrics.gpu_utilization); });
  table.rate(6, Best::most, runs, [](const PolicyRun& run) { return rated(run, run.metrics.goodput); });
  return "\n" + table.text(style) +
         "GPU time of the cluster: useful work, loading and saving (overhead), work done again (lost), nodes out of "
         "service (withheld); goodput: useful of what jobs held; kills: by nodes that went down\n";
}

// What starts found on their nodes.
std::string starts_table(const std::vector<PolicyRun>& runs, const TextStyle& style) {
  TextTable table({"policy", "cold starts", "warm", "fetched GiB"});
  for (const PolicyRun& run : runs) {
    const Metrics& m = run.metrics;
    table.add({run.policy, human_count(static_cast<std::uint64_t>(m.cold_starts.value_or(0))),
               human_count(static_cast<std::uint64_t>(m.warm_starts.value_or(0))),
               human_count(static_cast<std::uint64_t>(std::llround(m.fetched_gib.value_or(0))))});
  }
  return "\n" + table.text(style) +
         "cold: a node of the job had to fetch something first, or to make a container where they are kept\n";
}

std::string deadlines_table(const std::vector<PolicyRun>& runs, const TextStyle& style) {
  TextTable table({"policy", "deadlines missed", "avg tardiness"});
  for (const PolicyRun& run : runs) {
    const Metrics& m = run.metrics;
    table.add(
        {run.policy, m.deadline_miss_rate ? percent(*m.deadline_miss_rate) : "-", duration_cell(m.avg_tardiness_s)});
  }
  table.rate(1, Best::least, runs, [](const PolicyRun& run) { return rated(run, run.metrics.deadline_miss_rate); });
  table.rate(2, Best::least, runs, [](const PolicyRun& run) { return rated(run, run.metrics.avg_tardiness_s); });
  return "\n" + table.text(style) + "of the jobs with a deadline; tardiness: how late they end, 0 for those in time\n";
}

// Of the measured jobs that users cancel, those that had not ended by then.
std::string cancelled_line(const ReplayInput& input, const std::vector<PolicyRun>& runs) {
  std::uint64_t jobs = 0;
  for (std::uint32_t i = input.window.first; i < input.window.end(input.trace.jobs.size()); ++i) {
    if (input.conditions.changes.cancels(JobId{i})) ++jobs;
  }
  if (jobs == 0) return "";
  std::string text = "cancelled before they ended:";
  for (const PolicyRun& run : runs) {
    const auto cancelled = static_cast<std::uint64_t>(run.metrics.cancelled_jobs.value_or(0));
    text += (&run == runs.data() ? " " : ", ") + run.policy + " " + human_count(cancelled);
  }
  return text + " of the " + counted(jobs, "job") + " that users cancel, which no average counts\n";
}

// Measured jobs that a run took no further, of every run; nothing where there is none.
std::string left_out_line(const LeftOutJobs& left_out, const std::vector<PolicyRun>& runs) {
  std::string text;
  double all = 0;
  for (const PolicyRun& run : runs) {
    const double count = (run.metrics.*left_out.jobs).value_or(0);
    text += (text.empty() ? " " : ", ") + run.policy + " " + human_count(static_cast<std::uint64_t>(count));
    all += count;
  }
  return all == 0 ? "" : "jobs that " + std::string(left_out.reason) + ", which no average counts:" + text + "\n";
}

std::vector<NamedWaits> waits_of(const std::vector<PolicyRun>& runs) {
  std::vector<NamedWaits> waits;
  for (const PolicyRun& run : runs) waits.push_back({run.policy, &*run.waits});
  return waits;
}

// By the wall clock: it differs from run to run.
std::string decision_times_table(const std::vector<PolicyRun>& runs, const TextStyle& style) {
  TextTable table({"policy", "decisions", "mean us", "median", "p99", "p99.9", "longest", "of the run"});
  for (const PolicyRun& run : runs) {
    const DecisionTimes& times = *run.decision_times;
    const double seconds = 1e-6 * times.mean_us() * static_cast<double>(times.count());
    std::vector<std::string> cells = {run.policy, human_count(times.count()), formatted("%.2f", times.mean_us())};
    for (const double us :
         {times.quantile_us(0.5), times.quantile_us(0.99), times.quantile_us(0.999), times.longest_us()})
      cells.push_back(formatted("%.2f", us));
    cells.push_back(percent(run.sim_seconds > 0 ? seconds / run.sim_seconds : 0));
    table.add(std::move(cells));
  }
  return "\n" + table.text(style) +
         "microseconds of this machine's clock in each decision of a policy, which comes at every instant at which "
         "something happens; of the run: share of the simulation's time\n";
}

Json decision_times_json(const DecisionTimes& times) {
  return {{"decisions", times.count()},          {"mean_us", times.mean_us()},
          {"median_us", times.quantile_us(0.5)}, {"p99_us", times.quantile_us(0.99)},
          {"p999_us", times.quantile_us(0.999)}, {"longest_us", times.longest_us()}};
}

// The cells from "avg JCT s" to "slowd.", of Metrics or RecordedWaits.
template <class Figures>
std::vector<std::string> time_cells(const Figures& m) {
  const std::optional<double> jct = m.avg_jct_s;
  return {jct ? formatted("%.2f", *jct) : "-", duration_cell(jct),          duration_cell(m.median_jct_s),
          duration_cell(m.p99_jct_s),          duration_cell(m.avg_wait_s), slowdown_cell(m.avg_bounded_slowdown)};
}

// In brackets, as it is no policy. Its log tells neither what its cluster had nor what it preempted.
std::vector<std::string> recorded_row(const RecordedWaits& recorded) {
  std::vector<std::string> cells = {"(recorded)", "-"};
  for (std::string& cell : time_cells(recorded)) cells.push_back(std::move(cell));
  cells.insert(cells.end(), {"-", "-"});
  return cells;
}

std::string recorded_line(const RecordedWaits& recorded) {
  const std::string what = "(recorded): not simulated; the waits in the trace's log, on the cluster that wrote it";
  if (recorded.jobs == recorded.measured) return what + "\n";
  return what + "\n(recorded) holds " + human_count(recorded.jobs) + " of the " + human_count(recorded.measured) +
         " measured jobs, of which it tells when they could start and did\n";
}

std::string split_table(const Scenario& scenario, const PolicyRun& run, const TextStyle& style) {
  std::vector<std::string> header{scenario.split, "jobs", "avg JCT", "median", "avg wait", "slowdown", "GPU-hours"};
  if (run.power) header.emplace_back("kWh");
  TextTable table(std::move(header));
  for (const SplitRow& row : run.splits[split_index(scenario)]) {
    std::vector<std::string> cells{row.key.empty() ? "(unknown)" : row.key,
                                   human_count(row.jobs),
                                   human_duration(row.avg_jct_s),
                                   human_duration(row.median_jct_s),
                                   human_duration(row.avg_wait_s),
                                   formatted("%.2f", row.avg_bounded_slowdown),
                                   human_count(static_cast<std::uint64_t>(std::llround(row.gpu_hours)))};
    if (run.power) cells.push_back(formatted("%.1f", row.bill.kwh()));
    table.add(std::move(cells));
  }
  return "\n" + run.policy + " by " + scenario.split + "\n" + table.text(style);
}

// Without a log, that of an earlier run in this folder goes.
Result<void> write_gpu_log(OutputFolder& folder, const ReplayInput& input, const PolicyRun& run) {
  const std::string name = run.folder + "/trace_events.json";
  if (!run.gpu_log) {
    folder.leave_out(name);
    return {};
  }
  return folder.write(name, [&](const PieceSink& sink) {
    write_trace_events(*run.gpu_log, run.engine->jobs(), input.cluster, {run.policy, input.trace.report.path}, sink);
  });
}

// Without services, those of an earlier run in this folder go.
Result<void> write_services(OutputFolder& folder, const std::string& place, const ReplayInput& input,
                            const PolicyRun& run) {
  const std::string list = place + "requests.csv";
  const bool lists = input.conditions.services.lists_requests;
  if (!lists) folder.leave_out(list);
  if (run.services.empty()) {
    for (const char* name : {"services.csv", "replicas.csv", "service_levels.csv", "latencies.csv"}) {
      folder.leave_out(place + name);
    }
    return {};
  }
  if (auto done = folder.write(place + "services.csv", services_csv(run.services, run.power)); !done) return done;
  if (auto done = folder.write(place + "replicas.csv", intervals_csv(input.cluster, run, true)); !done) return done;
  if (auto done = folder.write(place + "service_levels.csv", service_levels_csv(run)); !done) return done;
  if (auto done = folder.write(place + "latencies.csv", latencies_csv(run)); !done) return done;
  return lists ? folder.write(list, requests_csv(*run.engine)) : Result<void>{};
}

Result<void> write_timeline(OutputFolder& folder, const PolicyRun& run) {
  const std::string name = run.folder + "/timeline.csv", of_power = run.folder + "/power.csv";
  if (!run.timeline) folder.leave_out(name);
  if (!run.timeline || !run.power) folder.leave_out(of_power);
  if (!run.timeline) return {};
  if (auto done = folder.write(name, timeline_csv(run.timeline->levels())); !done || !run.power) return done;
  return folder.write(of_power, power_csv(*run.engine));
}

}  // namespace

std::vector<MissingPolicy> take_missing(std::vector<PolicyRun>& runs) {
  std::vector<MissingPolicy> missing;
  for (const PolicyRun& run : runs) {
    if (!run.why_unfinished.empty()) missing.push_back({run.policy, run.why_unfinished});
  }
  std::erase_if(runs, [](const PolicyRun& run) { return !run.why_unfinished.empty(); });
  return missing;
}

std::vector<std::string> left_out_lines(const TraceReport& report) {
  std::vector<std::string> lines;
  for (const DroppedRows& rows : report.dropped) {
    lines.push_back(human_count(rows.rows) + " of " + counted(report.rows, "row") + " left out: " + rows.reason +
                    (rows.first_line == 0 ? "" : " (first on line " + std::to_string(rows.first_line) + ")"));
  }
  lines.insert(lines.end(), report.notes.begin(), report.notes.end());
  return lines;
}

std::vector<std::string> outside_vcs_lines(const Cluster& cluster, std::uint32_t jobs_outside_vcs) {
  if (jobs_outside_vcs == 0) return {};
  return {counted(jobs_outside_vcs, "job belongs", "jobs belong") + " to no virtual cluster of '" + cluster.name +
          "'; they wait in a queue of their own and may run anywhere"};
}

Json execution_json(const Execution& execution, std::uint64_t threads, const std::string& out) {
  return {{"started", execution.started},
          {"wall_s", execution.wall_s},
          {"peak_memory_bytes", execution.peak_memory_bytes},
          {"threads", threads},
          {"out", out}};
}

Result<void> write_files(OutputFolder& folder, const std::vector<std::pair<std::string, std::string>>& files) {
  for (const auto& [name, content] : files) {
    if (auto done = folder.write(name, content); !done) return done;
  }
  return folder.publish();
}

std::vector<std::string> report_warnings(const ReplayInput& input, const std::vector<PolicyRun>& runs) {
  std::vector<std::string> lines = left_out_lines(input.trace.report);
  for (std::string& line : input.conditions.all_notes()) lines.push_back(std::move(line));
  for (const auto& more : {input.slurm.unused_lines(), input.slurm.notes}) {
    lines.insert(lines.end(), more.begin(), more.end());
  }
  for (std::string& line : outside_vcs_lines(input.cluster, input.jobs_outside_vcs)) lines.push_back(std::move(line));
  for (const PolicyRun& run : runs) {
    if (!run.power) continue;
    for (std::string& line : cap_warnings(run.policy, *run.power)) lines.push_back(std::move(line));
  }
  for (const PolicyRun& run : runs) {
    if (!run.saturation.saturated) continue;
    lines.push_back(
        run.policy + ": the queue grows for as long as jobs arrive (" + counted(run.saturation.backlog_jobs, "job") +
        " had not started at the last submission, offered load " + formatted("%.2f", run.saturation.offered_load) +
        "): averages depend on the length of the trace more than on the policy");
  }
  return lines;
}

std::string comparison_table(const Scenario& scenario, const ReplayInput& input, const std::vector<PolicyRun>& runs,
                             const TextStyle& style) {
  const Metrics& first = runs.front().metrics;
  std::string text = counted(first.jobs, "job");
  if (!input.measures_all()) {
    text += " measured of " + human_count(input.trace.jobs.size() - input.trace.jobs.in_front());
  }
  text += " of " + std::filesystem::path(input.trace.report.path).filename().string() + " on " + input.cluster.name +
          " (" + describe_cluster(input.cluster) + "), placement " + scenario.conditions.placement;
  if (scenario.history_jobs > 0) {
    text += "; predictions know " + human_count(input.history.ended.size()) + " that had ended, of " +
            counted(input.history.jobs.size(), "job") + " before";
  }
  text += "\n\n";
  TextTable table({"policy", "run times", "avg JCT s", "=", "median", "p99 JCT", "wait", "slowd.", "used", "preempt"});
  bool any_clairvoyant = false;
  for (const PolicyRun& run : runs) {
    const Metrics& m = run.metrics;
    any_clairvoyant |= run.clairvoyant;
    std::vector<std::string> cells = {run.policy + (run.clairvoyant ? "*" : ""), run.run_times};
    for (std::string& cell : time_cells(m)) cells.push_back(std::move(cell));
    cells.push_back(percent(m.gpu_utilization));
    cells.push_back(human_count(m.preemptions));
    table.add(std::move(cells));
  }
  if (input.recorded) table.add(recorded_row(*input.recorded));
  table.set_important({2, 3, 6, 7, 8, 4});
  const auto rate = [&](std::size_t column, Best best, auto Metrics::*figure) {
    table.rate(column, best, runs, [&](const PolicyRun& run) { return rated(run, run.metrics.*figure); });
  };
  rate(2, Best::least, &Metrics::avg_jct_s);
  rate(3, Best::least, &Metrics::avg_jct_s);
  rate(4, Best::least, &Metrics::median_jct_s);
  rate(5, Best::least, &Metrics::p99_jct_s);
  rate(6, Best::least, &Metrics::avg_wait_s);
  rate(7, Best::least, &Metrics::avg_bounded_slowdown);
  rate(8, Best::most, &Metrics::gpu_utilization);
  text += table.text(style) +
          "run times: what the policy knew of them; JCT: completion time; wait and slowd. (bounded slowdown) are "
          "means; used: GPU time\n";
  if (input.recorded) text += recorded_line(*input.recorded);
  if (runs.front().power) {
    text += power_table(runs, style);
  } else if (!input.conditions.power.model.is_empty()) {
    text += energy_line(runs);
  }
  if (has_dynamic_mig(input.cluster)) text += mig_line(runs);
  if (!input.conditions.failures.is_empty() || !input.conditions.stages.is_empty()) text += gpu_time_table(runs, style);
  if (!input.conditions.stages.is_empty()) text += starts_table(runs, style);
  if (input.trace.jobs.has_deadlines()) text += deadlines_table(runs, style);
  text += cancelled_line(input, runs);
  for (const LeftOutJobs& left_out : left_out_jobs()) text += left_out_line(left_out, runs);
  if (!runs.front().services.empty()) text += services_table(runs, style);
  if (!runs.front().studies.empty()) text += studies_table(runs, style);
  if (scenario.waits) text += waits_tables(waits_of(runs), style);
  if (scenario.decision_times) text += decision_times_table(runs, style);
  if (any_clairvoyant) text += "* knows true run times, which no real scheduler does\n";
  if (scenario.split != "none") {
    for (const PolicyRun& run : runs) text += split_table(scenario, run, style);
  }
  return text;
}

std::string json_report(const Scenario& scenario, const ReplayInput& input, const std::vector<PolicyRun>& runs,
                        const Execution& execution) {
  Json list = Json::array();
  for (const PolicyRun& run : runs) {
    Json metrics = metrics_json(run.metrics);
    metrics["sim_seconds"] = run.sim_seconds;
    metrics["jobs_per_s"] = run.jobs_per_s;
    list.push_back(run_json(input, run, std::move(metrics)));
    if (run.decision_times) list.back()["decision_times"] = decision_times_json(*run.decision_times);
    if (scenario.split != "none") {
      list.back()["splits"][scenario.split] = split_json(run.splits[split_index(scenario)], run.power);
    }
  }
  const Json report = {{"manifest", manifest_json(scenario, input, runs, execution)}, {"runs", std::move(list)}};
  return json_text(report);
}

Result<void> write_policy_files(OutputFolder& folder, const ReplayInput& input, const PolicyRun& run) {
  const std::string place = run.folder + "/";
  Json summary = run_json(input, run, metrics_json(run.metrics));
  summary["saturation"] = saturation_json(run.saturation);
  summary["splits"] = splits_json(run);
  if (auto done = folder.write(place + "summary.json", json_text(summary)); !done) return done;
  if (auto done = folder.write(place + "jobs.csv", jobs_csv_of(input, run)); !done) return done;
  if (auto done = folder.write(place + "intervals.csv", intervals_csv(input.cluster, run, false)); !done) return done;
  if (!run.log_file.name.empty()) {
    if (auto done = folder.write(place + run.log_file.name, run.log_file.text); !done) return done;
  }
  if (auto done = write_services(folder, place, input, run); !done) return done;
  if (auto done = write_studies(folder, place, input.conditions.studies, run); !done) return done;
  if (auto done = write_gpu_log(folder, input, run); !done) return done;
  if (auto done = write_timeline(folder, run); !done) return done;
  return folder.publish();
}

Result<void> write_manifest(OutputFolder& folder, const Scenario& scenario, const ReplayInput& input,
                            const std::vector<PolicyRun>& runs, const Execution& execution) {
  return write_files(folder, {{manifest_name, json_text(manifest_json(scenario, input, runs, execution))}});
}

}  // namespace gpusched
