// SPDX-License-Identifier: Apache-2.0
#include "src/report/run_folder.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "gpusched/data/names.hpp"
#include "src/base/field_parser.hpp"
#include "src/base/number_text.hpp"
#include "src/base/visible_text.hpp"
#include "src/report/csv_rows.hpp"
#include "src/sim/metric_table.hpp"
#include "src/sim/report.hpp"

namespace gpusched {
namespace {

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

Unexpected wrong_folder(const std::string& folder, std::string message) {
  return {Error{.message = std::move(message), .file = folder}};
}

Result<Json> read_json_file(const std::string& path) {
  const auto text = read_text_file(path);
  if (!text) return Unexpected{text.error()};
  return parse_json_strictly(*text, path);
}

// The text under a key of an object, "" where there is none.
std::string text_at(const Json& json, std::string_view key) {
  if (!json.is_object()) return "";
  const auto entry = json.find(key);
  return entry != json.end() && entry->is_string() ? entry->get<std::string>() : "";
}

const Json& object_at(const Json& json, std::string_view key) {
  static const Json empty = Json::object();
  if (!json.is_object()) return empty;
  const auto entry = json.find(key);
  return entry != json.end() && entry->is_object() ? *entry : empty;
}

double number_at(const Json& json, std::string_view key) {
  const auto entry = json.find(key);
  return entry != json.end() && entry->is_number() ? entry->get<double>() : 0;
}

MilliGpu gpu_milli(double gpus) { return static_cast<MilliGpu>(std::llround(gpus * whole_gpu)); }

Result<void> read_jobs(const std::string& path, ReplayRun& run) {
  std::vector<std::string_view> columns{"job_id",   "submit_s", "end_s", "wait_s", "jct_s",
                                        "measured", "status",   "gpus",  "run_s"};
  const auto names = CsvRows::columns_of(path);
  if (!names) return Unexpected{names.error()};
  const bool some_averaged = std::find(names->begin(), names->end(), "averaged") != names->end();
  if (some_averaged) columns.push_back("averaged");
  auto rows = CsvRows::open(path, columns);
  if (!rows) return Unexpected{rows.error()};
  while (rows->next()) {
    run.jobs.push_back({.name = std::string(rows->at(0)),
                        .submit = rows->seconds(1),
                        .end = rows->seconds(2),
                        .wait = rows->seconds(3),
                        .completion = rows->seconds(4),
                        .measured = rows->at(5) == "true",
                        .averaged = rows->at(5) == "true" && (!some_averaged || rows->at(9) == "true"),
                        .passed = rows->at(6) == "passed",
                        .gpu_milli = gpu_milli(rows->number(7)),
                        .ran = rows->seconds(8)});
  }
  if (rows->failure()) return Unexpected{*rows->failure()};
  const auto measured = static_cast<std::size_t>(
      std::count_if(run.jobs.begin(), run.jobs.end(), [](const JobRow& job) { return job.measured; }));
  const auto expected = static_cast<std::size_t>(run.metric("jobs").value_or(0));
  if (measured == expected && (measured > 0 || !run.services.empty())) return {};
  return Unexpected{Error{.message = "holds " + counted(measured, "measured job") + ", summary.json beside it says " +
                                     human_count(expected) + "; is the file whole?",
                          .file = path}};
}

// Numbers the nodes in natural order of their names.
void sort_nodes(ReplayRun& run) {
  std::vector<std::uint32_t> order(run.nodes.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return natural_less(run.nodes[a], run.nodes[b]); });
  std::vector<std::string> sorted(order.size());
  std::vector<std::uint32_t> place(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    sorted[i] = std::move(run.nodes[order[i]]);
  }
  run.nodes = std::move(sorted);
  for (IntervalRow& interval : run.intervals) interval.node = place[interval.node];
}

// Every job holds its GPUs for as long as it ran: a file that was cut at a line's end shows here.
Result<void> check_gpu_time(const std::string& path, const ReplayRun& run) {
  std::vector<detail::WideInt> open(run.jobs.size());
  for (std::size_t i = 0; i < run.jobs.size(); ++i) {
    open[i] = detail::WideInt{run.jobs[i].gpu_milli} * run.jobs[i].ran.us;
  }
  for (const IntervalRow& row : run.intervals)
    open[row.job] -= detail::WideInt{row.gpu_milli} * (row.end - row.start).us;
  const auto differs = std::find_if(open.begin(), open.end(), [](detail::WideInt left) { return left != 0; });
  if (differs == open.end()) return {};
  const JobRow& job = run.jobs[static_cast<std::size_t>(differs - open.begin())];
  return Unexpected{Error{.message = "its rows of job '" + job.name +
                                     "' do not add up to the GPU time in jobs.csv beside it; is the file whole?",
                          .file = path}};
}

Result<void> read_intervals(const std::string& path, ReplayRun& run) {
  auto rows = CsvRows::open(path, {"job_id", "node", "gpus", "start_s", "end_s"});
  if (!rows) return Unexpected{rows.error()};
  std::unordered_map<std::string_view, std::uint32_t> jobs;
  for (std::uint32_t i = 0; i < run.jobs.size(); ++i) jobs.emplace(run.jobs[i].name, i);
  std::unordered_map<std::string, std::uint32_t> nodes;
  while (rows->next()) {
    const auto job = jobs.find(rows->at(0));
    if (job == jobs.end()) {
      return rows->wrong("job '" + std::string(rows->at(0)) + "' is not in jobs.csv beside it");
    }
    const auto [node, is_new] = nodes.emplace(std::string(rows->at(1)), static_cast<std::uint32_t>(nodes.size()));
    if (is_new) run.nodes.push_back(node->first);
    run.intervals.push_back({.job = job->second,
                             .node = node->second,
                             .gpu_milli = gpu_milli(rows->number(2)),
                             .start = rows->seconds(3),
                             .end = rows->seconds(4)});
  }
  if (rows->failure()) return Unexpected{*rows->failure()};
  sort_nodes(run);
  return check_gpu_time(path, run);
}

// A policy's name from its folder cannot lead out of the replay's folder.
bool stays_inside(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

// Measured jobs that no average or distribution counts.
void note_left_out(const ReplayRun& run, std::vector<std::string>& notes) {
  for (const LeftOutJobs& left_out : left_out_jobs()) {
    const double jobs = run.metric(std::string(left_out.metric)).value_or(0);
    if (jobs == 0) continue;
    notes.push_back(run.folder + ": " + run.policy + ": " + std::string(left_out.reason) + " " +
                    counted(static_cast<std::uint64_t>(jobs), "job") + ", which no average or distribution counts");
  }
}

Result<void> read_replay(const std::string& folder, const Json& manifest, ReportInput& input) {
  const std::string manifest_path = folder + "/" + manifest_name;
  const auto policies = manifest.find("policies");
  if (policies->empty()) return wrong_folder(manifest_path, "no policy of this run finished");
  for (const Json& entry : *policies) {
    const std::string place = text_at(entry, "folder");
    if (!stays_inside(place)) {
      return wrong_folder(manifest_path, "expected the folder of each policy; was it written by replay --out?");
    }
    ReplayRun run{.label = {},
                  .folder = folder,
                  .policy = text_at(entry, "policy"),
                  .run_times = text_at(entry, "run_times"),
                  .clairvoyant = entry.value("clairvoyant", Json(false)) == Json(true),
                  .trace = text_at(object_at(manifest, "trace"), "path"),
                  .cluster = text_at(object_at(manifest, "cluster"), "name"),
                  .gpus = number_at(object_at(manifest, "cluster"), "gpus"),
                  .summary = {},
                  .jobs = {},
                  .nodes = {},
                  .intervals = {}};
    const std::string files = folder + "/" + place + "/";
    auto summary = read_json_file(files + "summary.json");
    if (!summary) return Unexpected{summary.error()};
    run.summary = *std::move(summary);
    auto services = read_service_runs(files);
    if (!services) return Unexpected{services.error()};
    run.services = *std::move(services);
    if (auto done = read_jobs(files + "jobs.csv", run); !done) return done;
    if (auto done = read_intervals(files + "intervals.csv", run); !done) return done;
    auto power = read_power_rows(files);
    if (!power) return Unexpected{power.error()};
    run.power = *std::move(power);
    note_left_out(run, input.notes);
    input.replays.push_back(std::move(run));
  }
  for (const char* const key : {"warnings", "missing"}) {
    const auto list = manifest.find(key);
    if (list == manifest.end() || !list->is_array()) continue;
    for (const Json& entry : *list) {
      input.notes.push_back(folder + ": " +
                            (entry.is_string() ? entry.get<std::string>()
                                               : text_at(entry, "policy") + " is missing: " + text_at(entry, "why")));
    }
  }
  return {};
}

Result<void> read_evaluation(const std::string& folder, ReportInput& input) {
  const std::string path = folder + "/comparison.csv";
  std::vector<std::string_view> columns{
      "trace",   "name",          "clairvoyant",     "run_times",        "figure",   "mean",
      "against", "difference",    "relative_low_95", "relative_high_95", "win_rate", "verdict",
      "p_holm",  "rank_biserial", "p_mean_holm",     "typical",          "why",      "whole_log_difference"};
  auto rows = CsvRows::open(path, columns);
  const bool has_log = rows.has_value();
  for (const std::size_t older : {std::size_t{14}, std::size_t{12}}) {
    if (rows) break;
    columns.resize(older);
    rows = CsvRows::open(path, columns);
  }
  const bool has_tests = columns.size() >= 14;
  if (!rows) return Unexpected{rows.error()};
  const std::size_t first = input.evaluations.size();
  while (rows->next()) {
    EvaluationRow row{.folder = folder,
                      .trace = std::string(rows->at(0)),
                      .name = std::string(rows->at(1)),
                      .run_times = std::string(rows->at(3)),
                      .figure = std::string(rows->at(4)),
                      .against = std::string(rows->at(6)),
                      .verdict = std::string(rows->at(11)),
                      .clairvoyant = rows->at(2) == "true",
                      .mean = rows->number_or_none(5),
                      .relative_difference = {},
                      .relative_low = rows->number_or_none(8),
                      .relative_high = rows->number_or_none(9),
                      .win_rate = rows->number_or_none(10)};
    if (has_tests) {
      row.p_holm = rows->number_or_none(12);
      row.rank_biserial = rows->number_or_none(13);
    }
    if (has_log) {
      row.p_mean = rows->number_or_none(14);
      row.typical = rows->at(15);
      row.why = rows->at(16);
      row.log_difference = rows->number_or_none(17);
    }
    const auto difference = rows->number_or_none(7);
    if (difference && row.mean && *row.mean != *difference) {
      row.relative_difference = *difference / (*row.mean - *difference);
    }
    input.evaluations.push_back(std::move(row));
  }
  if (rows->failure()) return Unexpected{*rows->failure()};
  if (input.evaluations.size() == first) return wrong_folder(path, "holds no policy");
  return {};
}

Result<void> read_effects(const std::string& folder, ReportInput& input) {
  const std::string path = folder + "/effects.csv";
  auto rows =
      CsvRows::open(path, {"trace",       "name",    "run_times", "figure",   "against", "figure_verdict", "grows",
                           "clairvoyant", "batches", "unended",   "effect",   "ours",    "theirs",         "difference",
                           "low_95",      "high_95", "p_holm",    "relative", "verdict", "value"});
  if (!rows) return Unexpected{rows.error()};
  const std::size_t first = input.effects.size();
  while (rows->next()) {
    const auto text = [&](std::size_t column) { return std::string(rows->at(column)); };
    input.effects.push_back({.folder = folder,
                             .trace = text(0),
                             .name = text(1),
                             .run_times = text(2),
                             .figure = text(3),
                             .against = text(4),
                             .figure_verdict = text(5),
                             .grows = text(6),
                             .clairvoyant = rows->at(7) == "true",
                             .batches = rows->number_or_none(8).value_or(0),
                             .unended = rows->number_or_none(9).value_or(0),
                             .effect = text(10),
                             .ours = rows->number_or_none(rows->at(10).empty() ? 19 : 11),
                             .theirs = rows->number_or_none(12),
                             .difference = rows->number_or_none(13),
                             .low = rows->number_or_none(14),
                             .high = rows->number_or_none(15),
                             .p_holm = rows->number_or_none(16),
                             .relative = rows->at(17) == "true",
                             .verdict = text(18)});
  }
  if (rows->failure()) return Unexpected{*rows->failure()};
  if (input.effects.size() == first) return wrong_folder(path, "holds no policy");
  return {};
}

Result<void> read_worlds(const std::string& folder, ReportInput& input) {
  const std::string path = folder + "/compare.csv";
  auto rows = CsvRows::open(path, {"world", "figure", "mode", "verdict", "value", "base", "relative_difference",
                                   "low_95", "high_95", "p_holm", "relative"});
  if (!rows) return Unexpected{rows.error()};
  const std::size_t first = input.worlds.size();
  while (rows->next()) {
    const auto text = [&](std::size_t column) { return std::string(rows->at(column)); };
    input.worlds.push_back({.folder = folder,
                            .world = text(0),
                            .figure = text(1),
                            .mode = text(2),
                            .verdict = text(3),
                            .value = rows->number_or_none(4),
                            .base = rows->number_or_none(5),
                            .difference = rows->number_or_none(6),
                            .low = rows->number_or_none(7),
                            .high = rows->number_or_none(8),
                            .p_holm = rows->number_or_none(9),
                            .relative = rows->at(10) == "true"});
  }
  if (rows->failure()) return Unexpected{*rows->failure()};
  if (input.worlds.size() == first) return wrong_folder(path, "holds no world");
  return {};
}

std::optional<double> ratio_of(std::optional<double> loss, std::optional<double> heuristic) {
  if (!loss || !heuristic || *heuristic == 0) return std::nullopt;
  return *loss / *heuristic;
}

// Searches count generations, PPO iterations.
Result<void> read_training(const std::string& folder, const std::string& label, ReportInput& input) {
  const std::string path = label + "/metrics.csv";
  const std::vector<std::string_view> losses = {"loss", "heuristic_loss", "validation_loss",
                                                "validation_heuristic_loss"};
  const auto columns = [&](std::string_view count) {
    std::vector<std::string_view> all = losses;
    all.push_back(count);
    return all;
  };
  auto rows = CsvRows::open(path, columns("generation"));
  if (!rows && is_file(path)) rows = CsvRows::open(path, columns("iteration"));
  if (!rows) return Unexpected{rows.error()};
  TrainingRun run{.folder = folder, .label = label, .points = {}};
  while (rows->next()) {
    run.points.push_back({.iteration = rows->number(4),
                          .loss = ratio_of(rows->number_or_none(0), rows->number_or_none(1)),
                          .validation = ratio_of(rows->number_or_none(2), rows->number_or_none(3))});
  }
  if (rows->failure()) return Unexpected{*rows->failure()};
  if (run.points.empty()) return wrong_folder(path, "holds no iteration; the training has not begun");
  input.trainings.push_back(std::move(run));
  return {};
}

Result<void> read_training_seeds(const std::string& folder, ReportInput& input) {
  std::vector<std::string> seeds;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("seed-") && is_file(entry.path() / "metrics.csv")) seeds.push_back(name);
  }
  if (seeds.empty()) return wrong_folder(folder, "no training seed has written its metrics.csv yet");
  std::sort(seeds.begin(), seeds.end(), natural_less);
  for (const std::string& seed : seeds) {
    if (auto done = read_training(folder, folder + "/" + seed, input); !done) return done;
  }
  return {};
}

constexpr std::size_t most_runs_of_sweep = 8;  // that are drawn one by one

// A run of each policy and setting, as far as the sweep kept their files.
Result<void> read_runs_of(const SweepInput& sweep, ReportInput& input) {
  std::set<std::pair<std::string, std::string>> seen;
  std::size_t drawn = 0, kept = 0;
  for (const SweepRunRow& run : sweep.runs) {
    const std::string folder = sweep.folder + "/runs/" + run.id;
    if (!stays_inside(run.id) || !is_file(folder + "/" + manifest_name)) continue;
    ++kept;
    const std::string setting = grid_text(sweep.keys, run.grid.values, GridRole::setting);
    const std::string contestant = grid_contestant(sweep.keys, run.grid.values);
    if (drawn == most_runs_of_sweep || !seen.emplace(setting, contestant).second) continue;
    const auto manifest = read_json_file(folder + "/" + manifest_name);
    if (!manifest) return Unexpected{manifest.error()};
    const auto policies = manifest->find("policies");
    if (!manifest->is_object() || policies == manifest->end() || !policies->is_array() || policies->size() != 1) {
      return wrong_folder(folder + "/" + manifest_name, "is no manifest of a run of a sweep");
    }
    const std::size_t notes = input.notes.size();
    if (auto done = read_replay(folder, *manifest, input); !done) return done;
    input.notes.resize(notes);  // the table of the sweep says what is special about a run
    ReplayRun& read = input.replays.back();
    const std::string repetition = grid_text(sweep.keys, run.grid.values, GridRole::replicate);
    read.label = contestant;
    for (const std::string* part : {&setting, &repetition}) {
      if (!part->empty()) read.label += (read.label.empty() ? "" : ", ") + *part;
    }
    if (read.label.empty()) read.label = read.policy;
    read.folder = sweep.folder + (setting.empty() ? "" : ": " + setting);
    read.of_sweep = true;
    ++drawn;
  }
  if (drawn < kept) {
    input.notes.push_back(sweep.folder + ": figures of single runs show " + std::to_string(drawn) + " of the " +
                          human_count(kept) + " whose files were kept, one for each policy and setting, at most " +
                          std::to_string(most_runs_of_sweep));
  }
  return {};
}

Result<void> read_sweep(const std::string& folder, const Json& manifest, ReportInput& input) {
  auto sweep = read_sweep_folder(folder, manifest);
  if (!sweep) return Unexpected{sweep.error()};
  if (auto done = read_runs_of(*sweep, input); !done) return done;
  input.sweeps.push_back(*std::move(sweep));
  return {};
}

Result<void> read_search(const std::string& folder, const Json& manifest, ReportInput& input) {
  auto search = read_search_folder(folder, manifest);
  if (!search) return Unexpected{search.error()};
  input.searches.push_back(*std::move(search));
  return {};
}

Result<void> read_federation(const std::string& folder, const Json& manifest, ReportInput& input) {
  auto federation = read_federation_folder(folder, manifest);
  if (!federation) return Unexpected{federation.error()};
  input.federations.push_back(*std::move(federation));
  return {};
}

Result<void> read_one(const std::string& folder, ReportInput& input) {
  std::error_code ignored;
  if (!std::filesystem::exists(folder, ignored)) return wrong_folder(folder, "no such folder");
  if (!std::filesystem::is_directory(folder, ignored)) {
    return wrong_folder(
        folder,
        "expected the folder of a run (--out of replay, evaluate, compare, sweep, search or train), not a file");
  }
  const std::string manifest_path = folder + "/" + manifest_name;
  if (is_file(manifest_path)) {
    const auto manifest = read_json_file(manifest_path);
    if (!manifest) return Unexpected{manifest.error()};
    if (!manifest->is_object()) return wrong_folder(manifest_path, "expected an object");
    const auto policies = manifest->find("policies");
    if (policies != manifest->end() && policies->is_array()) return read_replay(folder, *manifest, input);
    if (manifest->contains("routers") && (*manifest)["routers"].is_array())
      return read_federation(folder, *manifest, input);
    if (text_at(object_at(*manifest, "config"), "protocol") == "sc20") {
      return wrong_folder(folder, "evaluate --protocol sc20 wrote it, whose windows have no intervals to show");
    }
    if (manifest->contains("columns") && (*manifest)["columns"].is_array()) return read_sweep(folder, *manifest, input);
    if (manifest->contains("hypervolume")) return read_search(folder, *manifest, input);
    if (manifest->contains("variations")) return read_worlds(folder, input);
    if (is_file(folder + "/effects.csv")) return read_effects(folder, input);
    if (manifest->contains("windows")) return read_evaluation(folder, input);
    return wrong_folder(manifest_path, "is no manifest of replay, evaluate, compare, sweep or search");
  }
  if (is_file(folder + "/sweep.sqlite")) {
    return wrong_folder(folder, "holds a sweep without manifest.json; the same gpusched sweep command writes it");
  }
  if (is_file(folder + "/search.sqlite")) {
    return wrong_folder(folder, "holds a search without manifest.json; the same gpusched search command writes it");
  }
  if (is_file(folder + "/seeds.json")) return read_training_seeds(folder, input);
  if (is_file(folder + "/config.json")) return read_training(folder, folder, input);
  return wrong_folder(folder,
                      "no run is here: expected manifest.json (replay, evaluate, compare, sweep, search) or "
                      "config.json (train); a run that was "
                      "stopped before its end has none");
}

// Policies that several folders ran are told apart by their folder, those that one folder ran twice by their number.
void label_runs(std::vector<ReplayRun>& runs) {
  std::map<std::string, std::vector<std::string>> folders;
  for (const ReplayRun& run : runs) {
    if (!run.of_sweep) folders[run.policy].push_back(run.folder);
  }
  std::map<std::string, int> used;
  for (ReplayRun& run : runs) {
    const std::vector<std::string>& all = folders[run.policy];
    if (run.of_sweep && used[run.label] == 0) {
      ++used[run.label];
      continue;
    }
    const bool one_folder =
        !run.of_sweep && std::all_of(all.begin(), all.end(), [&](const auto& folder) { return folder == all[0]; });
    if (!run.of_sweep) run.label = one_folder ? run.policy : run.policy + " (" + run.folder + ")";
    if (const int count = ++used[run.label]; count > 1) run.label += " #" + std::to_string(count);
  }
}

}  // namespace

std::optional<double> ReplayRun::metric(std::string_view name) const {
  const Json& metrics = object_at(summary, "metrics");
  const auto entry = metrics.find(name);
  if (entry == metrics.end() || !entry->is_number()) return std::nullopt;
  return entry->get<double>();
}

Result<ReportInput> read_run_folders(const std::vector<std::string>& folders) {
  ReportInput input;
  std::set<std::string> seen;
  for (const std::string& named : folders) {
    std::string folder = named;
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    if (!seen.insert(folder).second) return wrong_folder(folder, "named twice");
    if (auto done = read_one(folder, input); !done) return Unexpected{done.error()};
  }
  label_runs(input.replays);
  return input;
}

}  // namespace gpusched
