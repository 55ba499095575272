// SPDX-License-Identifier: Apache-2.0
// Targets for files that are no traces: configurations, clusters, device profiles, models, and tables of results. What
// is read must survive being written and read again.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "src/base/csv_text.hpp"
#include "src/base/strict_json.hpp"
#include "src/calibration/profile/calibrated_runtime.hpp"
#include "src/calibration/profile/communication.hpp"
#include "src/calibration/profile/device_profile.hpp"
#include "src/calibration/profile/throughput_table.hpp"
#include "src/policies/learned/rl_policy.hpp"
#include "src/policies/learned/trained_model.hpp"
#include "src/report/csv_rows.hpp"
#include "src/rl/train_config.hpp"
#include "src/sim/evaluate_scenario.hpp"
#include "src/sim/scenario.hpp"
#include "src/world/cluster_reader.hpp"
#include "src/world/elastic_reader.hpp"
#include "src/world/failure_reader.hpp"
#include "src/world/job_change_reader.hpp"
#include "src/world/stage_reader.hpp"
#include "tests/fuzz/fuzz_runs.hpp"
#include "tests/fuzz/fuzz_targets.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "traces/synthetic/trace_model.hpp"
#include "traces/tools/cluster_info.hpp"

namespace gpusched::test {
namespace {

void read_replay_config(std::string_view text) {
  Scenario scenario;
  if (!read_scenario_json(scenario, text, "config")) return;
  (void)check_scenario(scenario);
  const std::string all = scenario_json(scenario, true);
  Scenario again;
  must_hold(read_scenario_json(again, all, "again").has_value(), "a scenario is read again");
  must_hold(scenario_json(again, true) == all, "a scenario read again is the same");
}

void read_evaluate_config(std::string_view text) {
  EvaluateScenario scenario;
  if (!read_evaluate_json(scenario, text, "config")) return;
  (void)check_evaluate_scenario(scenario);
  const std::string all = evaluate_scenario_json(scenario, true);
  EvaluateScenario again;
  must_hold(read_evaluate_json(again, all, "again").has_value(), "an evaluation is read again");
  must_hold(evaluate_scenario_json(again, true) == all, "an evaluation read again is the same");
}

void read_training_config(std::string_view text) {
  const auto config = read_train_config(text, "config");
  if (!config) return;
  const std::string all = train_config_json(*config);
  const auto again = read_train_config(all, "again");
  must_hold(again.has_value(), "a training configuration is read again");
  must_hold(train_config_json(*again) == all, "a training configuration read again is the same");
}

// A configuration of each of the three commands, and what --set takes.
void read_config(std::string_view text) {
  read_replay_config(text);
  read_evaluate_config(text);
  read_training_config(text);
  Scenario scenario;
  (void)apply_setting(scenario, text);
}

// Whether the text may ask for so many nodes that a legal cluster takes seconds and gigabytes.
bool asks_for_many_nodes(std::string_view text) {
  constexpr std::uint64_t many = 20'000, refused = 10'000'000;  // cluster_reader.cpp refuses more
  std::uint64_t before = 1;                                     // the racks of RACKSxNODESxGPUS
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] < '0' || text[at] > '9') {
      ++at;
      continue;
    }
    std::uint64_t number = 0;
    const auto [end, failure] = std::from_chars(text.data() + at, text.data() + text.size(), number);
    if (failure == std::errc() && number > many && number <= refused) return true;
    const bool is_size = text.find_first_not_of("0123456789x") == std::string_view::npos;
    if (is_size && number <= many && number * before > many) return true;
    before = std::clamp<std::uint64_t>(number, 1, many);
    at = static_cast<std::size_t>(end - text.data());
  }
  return false;
}

void check_cluster(const Cluster& cluster) {
  must_hold(!cluster_text(cluster).empty(), "a cluster has text");
  const std::string text = cluster_file_text(cluster);
  const auto again = cluster_from_json(text, "again");
  must_hold(again.has_value(), "a cluster is read again: " + (again ? "" : again.error().to_string()));
  must_hold(cluster_file_text(*again) == text, "a cluster read again is the same");
  run_on(cluster);
}

// A cluster file, or the size that --cluster takes.
void read_cluster_text(std::string_view text) {
  if (asks_for_many_nodes(text)) return;
  if (text.size() < 30 && text.find_first_not_of("0123456789x") == std::string_view::npos) {
    if (const auto sized = parse_cluster(std::string(text))) check_cluster(*sized);
    return;
  }
  const MemoryFile file(text);
  if (const auto cluster = read_cluster(file.path())) check_cluster(*cluster);
}

void read_profile(std::string_view text) {
  const auto profile = parse_device_profile(text, "profile");
  if (!profile) return;
  const std::string json = to_json(*profile);
  const auto again = parse_device_profile(json, "again");
  must_hold(again.has_value(), "a profile is read again: " + (again ? "" : again.error().to_string()));
  must_hold(to_json(*again) == json, "a profile read again is the same");
  (void)all_quantities(*profile);
  NameTable families;
  for (const char* family : {"", "resnet50", "bert", "mixed"}) {
    families.intern(family);
    (void)co_location_slowdown(*profile, family, "bert");
  }
  const std::string types[] = {profile->model};
  const TypeProfile given[] = {{.gpu_type = "", .profile = *profile}};
  (void)runtime_model_from_profiles(families, types, given, *profile, {.interference = true});
}

// A job of each of the first rows, on as many of the GPU types.
void read_throughputs(std::string_view text) {
  const MemoryFile file(text);
  const auto table = read_throughput_table(file.path());
  if (!table) return;
  constexpr std::size_t most = 4;
  Cluster cluster = Cluster::homogeneous(static_cast<std::uint32_t>(std::min(table->gpu_types.size(), most)), 1);
  cluster.gpu_types = table->gpu_types;
  for (std::uint32_t node = 0; node < cluster.nodes.size(); ++node) cluster.nodes[node].gpu_type = node;
  JobTableBuilder builder;
  for (const auto& [gang, throughputs] : table->rows) {
    if (builder.size() == most) break;
    builder.add({.shape = {.tasks = std::max(gang.second, 1u), .gpu_milli_per_task = whole_gpu}, .family = gang.first});
  }
  const auto jobs = std::move(builder).build();
  must_hold(jobs.has_value(), "jobs of one submission are in order");
  const auto runtime = runtime_model_from_throughputs(*table, "", *jobs, cluster, ThroughputFallback::datasheet);
  if (!runtime) return;
  const RuntimeModel* const model = &runtime->model;
  for (std::uint32_t job = 0; job < jobs->size(); ++job) {
    for (const RatePpm rate : model->rates(jobs->family(JobId{job}), jobs->shape(JobId{job}))) {
      must_hold(rate > 0, "a rate is positive");
    }
  }
}

// Gangs of the first rows' families and sizes, on two racks of two nodes.
void read_families(std::string_view text) {
  const auto table = communication_from_json(text, "families");
  if (!table) return;
  Cluster cluster = Cluster::homogeneous(4, 4);
  for (std::uint32_t node = 0; node < 4; ++node) cluster.nodes[node].rack = node / 2;
  cluster.links.assign(span_count, {.latency_us = 5, .bandwidth_gb_per_s = 100});
  JobTableBuilder builder;
  for (const auto& [gang, row] : table->rows) {
    if (builder.size() == 4) break;
    const std::uint64_t group = std::uint64_t{row.tensor_gpus} * row.stages;
    const auto tasks = gang.second > 0 ? gang.second : static_cast<std::uint32_t>(std::min<std::uint64_t>(group, 64));
    builder.add({.shape = {.tasks = tasks, .gpu_milli_per_task = whole_gpu}, .family = gang.first});
  }
  const auto jobs = std::move(builder).build();
  must_hold(jobs.has_value(), "jobs of one submission are in order");
  for (const NamedValue<SpanReference>& reference : span_reference_names) {
    const auto model = span_model_of_communication(*table, reference.value, RuntimeModel{}, *jobs, cluster);
    if (!model) continue;
    for (std::uint32_t job = 0; job < jobs->size(); ++job) {
      const auto factor = model->factor(jobs->family(JobId{job}), jobs->shape(JobId{job}), Span::racks);
      must_hold(factor.on(0) > 0, "a factor is positive");
    }
  }
}

void read_synthetic_model(std::string_view text) {
  const auto model = read_trace_model(text, "model");
  if (!model) return;
  const auto again = read_trace_model(write_trace_model(*model), "again");
  must_hold(again.has_value(), "a model is read again: " + (again ? "" : again.error().to_string()));
  must_hold(*again == *model, "a model read again is the same");
  SyntheticOptions options = default_options(*model);
  options.jobs = 200;
  (void)generate_trace(*model, options);
}

void run_trained_model(std::string_view json, std::string_view weights) {
  auto model = parse_model(json, weights, "model");
  if (!model) return;
  const bool oracle = model->agenda.knowledge == RuntimeKnowledge::oracle;
  run_in_small_world([&](const PolicyContext& context) {
    return AnyPolicy(RlPolicy("model", *model, oracle ? context.jobs->works() : std::span<const Time>{}, false, 1));
  });
}

// The model with the checksum that its weights have, which bytes changed at random never hit.
std::string with_checksum(std::string_view json, std::string_view weights) {
  auto model = parse_json_strictly(json, "model");
  if (!model || !model->is_object()) return {};
  (*model)["weights_crc32c"] = crc32c(weights);
  return json_text(*model);
}

// A synthetic model, or model.json of a trained one and, behind a zero byte, its weights.
void read_any_model(std::string_view bytes) {
  const std::string_view json = bytes.substr(0, bytes.find('\0'));
  const std::string_view weights = bytes.substr(std::min(json.size() + 1, bytes.size()));
  read_synthetic_model(json);
  run_trained_model(json, weights);
  run_trained_model(with_checksum(json, weights), weights);
}

// What a report reads back: two columns of a csv that gpusched wrote.
using CsvPairs = std::vector<std::array<std::string, 2>>;

std::optional<CsvPairs> csv_pairs(std::string_view text) {
  const MemoryFile file(text);
  auto rows = CsvRows::open(file.path(), {"run", "value"});
  if (!rows) return std::nullopt;
  CsvPairs pairs;
  while (rows->next()) {
    pairs.push_back({std::string(rows->at(0)), std::string(rows->at(1))});
    if (const auto number = rows->number_or_none(1)) must_hold(std::isfinite(*number), "a number is one");
    (void)rows->seconds(1);  // what is no number is a failure, too, but ends no reading
  }
  return pairs;
}

void read_run_csv(std::string_view text) {
  const auto pairs = csv_pairs(text);
  if (!pairs) return;
  std::string again = "run,value\n";
  for (const auto& [run, value] : *pairs) {
    append_csv_field(again, run);
    append_csv_field(again += ',', value);
    again += '\n';
  }
  const auto read = csv_pairs(again);
  must_hold(read.has_value(), "a csv that was written is read");
  must_hold(*read == *pairs, "a csv read again is the same");
}

// When the nodes of a small cluster fail.
void read_failures_text(std::string_view text) {
  if (text.find("trace") != std::string_view::npos) return;  // it would read whatever file that names
  const MemoryFile file(text);
  run_with_failures([&](const Cluster& cluster) { return read_failures(file.path(), cluster, Time{}, 1); });
}

void read_stages_text(std::string_view text) {
  run_with_stages([&](const JobTable& jobs) -> Result<StageModel> {
    auto read = stages_from_json(text, "stages", jobs);
    if (!read) return Unexpected{read.error()};
    return std::move(read->model);
  });
}

void read_elastic_text(std::string_view text) {
  run_with_elastic_jobs([&](const JobTable& jobs) -> Result<ElasticModel> {
    auto read = elastic_from_json(text, "elastic", jobs);
    if (!read) return Unexpected{read.error()};
    return std::move(read->model);
  });
}

void read_changes_text(std::string_view text) {
  run_with_changes(
      [&](JobTable& jobs, const Cluster& cluster) { return job_changes_from_csv(text, "changes", jobs, cluster); });
}

constexpr std::array<FuzzTarget, 11> targets{{
    {"run_csv", read_run_csv},
    {"config", read_config},
    {"cluster", read_cluster_text},
    {"profile", read_profile},
    {"model", read_any_model},
    {"throughputs", read_throughputs},
    {"communication", read_families},
    {"failures", read_failures_text},
    {"stages", read_stages_text},
    {"elastic", read_elastic_text},
    {"changes", read_changes_text},
}};

}  // namespace

std::span<const FuzzTarget> file_fuzz_targets() { return targets; }

}  // namespace gpusched::test
