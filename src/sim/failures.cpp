// SPDX-License-Identifier: Apache-2.0
#include "src/sim/failures.hpp"

#include <algorithm>
#include <array>

#include "gpusched/core/named_value.hpp"
#include "src/base/number_text.hpp"
#include "src/world/elastic_reader.hpp"
#include "src/world/failure_reader.hpp"
#include "src/world/job_change_reader.hpp"
#include "src/world/run_input.hpp"
#include "src/world/stage_reader.hpp"

namespace gpusched {
namespace {

Unexpected wrong(const char* flag, std::string message) {
  return {Error{.message = std::move(message), .field = flag}};
}

// `lacks`: what the nodes of a pool could do, if it had any.
Result<void> check_nodes(const char* flag, const std::string& lacks, const Cluster& cluster,
                         const std::string& placement) {
  if (placement == count_placement) {
    return wrong(flag, "expected another --placement than count, which knows no nodes that " + lacks);
  }
  const auto is_pool = [](const Node& node) { return node.counts_only; };
  if (std::any_of(cluster.nodes.begin(), cluster.nodes.end(), is_pool)) {
    return wrong(flag, "expected a cluster of nodes, as 75x8; a pool of GPUs has no nodes that " + lacks);
  }
  return {};
}

Result<StageModel> stages_of(const std::string& file, const JobTable& jobs, const Cluster& cluster,
                             const std::string& placement) {
  if (file.empty()) return StageModel{};
  if (auto done = check_nodes("--stages", "could keep anything", cluster, placement); !done) {
    return Unexpected{done.error()};
  }
  return read_stages(file, jobs);
}

}  // namespace

FieldTable failure_fields(FailureOptions& options) {
  std::vector<std::string> rules;
  for (const auto& rule : checkpoint_rule_names) rules.emplace_back(rule.name);
  return {
      {"failures.file", "--failures",
       "when nodes fail and come back: laws of nodes, GPUs and racks (JSON), or a csv of time_s, node and event",
       &options.file},
      {"failures.checkpoint_rule", "--checkpoint-rule",
       "how much work lies between periodic checkpoints: fixed, as --checkpoint-interval says, or by what "
       "--checkpoint-write takes and how often the job's nodes fail, after Young or Daly",
       &options.checkpoint_rule, rules},
      {"stages", "--stages",
       "JSON of what runs go through before they work: containers, images and weights with caches, shared storage",
       &options.stages},
      {"elastic", "--elastic",
       "JSON of which jobs may run on fewer or more GPUs than they ask for, and how fast they are then",
       &options.elastic},
      {"changes", "--changes",
       "csv of what users do to jobs that they submitted: cancel them, or change their priority or their number of "
       "GPUs",
       &options.changes},
  };
}

Result<NodeFailures> failures_of(const FailureOptions& options, const JobTable& jobs, const Cluster& cluster,
                                 const std::string& placement, std::uint64_t seed) {
  if (options.file.empty()) return NodeFailures{};
  if (auto done = check_nodes("--failures", "could fail", cluster, placement); !done) return Unexpected{done.error()};
  return read_failures(options.file, cluster, jobs.size() == 0 ? Time{} : jobs.submit(JobId{0}), seed);
}

Result<PreemptionCost> preemption_of(PreemptionCost cost, const FailureOptions& options, const StageModel& stages) {
  cost.rule = *value_from_name(checkpoint_rule_names, options.checkpoint_rule);
  const bool takes_time = cost.periodic_checkpoint > Time{}, moves = stages.checkpoint_bytes_per_gpu > 0;
  if (takes_time && moves) {
    return wrong("--checkpoint-write", "expected none beside checkpoint_gib_per_gpu of --stages");
  }
  if (cost.rule == CheckpointRule::fixed) {
    if ((takes_time || moves) && cost.checkpoint_interval == Time{}) {
      return wrong(moves ? "--stages" : "--checkpoint-write",
                   "expected --checkpoint-interval or --checkpoint-rule with " +
                       std::string(moves ? "its checkpoint_gib_per_gpu" : "it"));
    }
    return cost;
  }
  const std::string rule = "--checkpoint-rule " + options.checkpoint_rule;
  if (options.file.empty()) return wrong("--checkpoint-rule", "expected --failures with " + options.checkpoint_rule);
  if (!takes_time && !moves) {
    return wrong("--checkpoint-rule", "expected --checkpoint-write above 0 with " + options.checkpoint_rule);
  }
  if (cost.checkpoint_interval > Time{}) {
    return wrong("--checkpoint-interval", "expected no fixed interval with " + rule);
  }
  return cost;
}

Result<RunConditions> conditions_of(const FailureOptions& options, PreemptionCost cost, JobTable& jobs,
                                    const Cluster& cluster, const std::string& placement, std::uint64_t seed) {
  auto stages = stages_of(options.stages, jobs, cluster, placement);
  if (!stages) return Unexpected{stages.error()};
  const auto preemption = preemption_of(cost, options, *stages);
  if (!preemption) return Unexpected{preemption.error()};
  auto failures = failures_of(options, jobs, cluster, placement, seed);
  if (!failures) return Unexpected{failures.error()};
  RunConditions conditions{.failures = *std::move(failures), .preemption = *preemption, .stages = *std::move(stages)};
  if (!options.changes.empty()) {
    auto changes = read_job_changes(options.changes, jobs, cluster);
    if (!changes) return Unexpected{changes.error()};
    const auto resizes = [](const JobChange& change) { return change.kind == JobChange::Kind::size; };
    if (!options.elastic.empty() && std::any_of(changes->all().begin(), changes->all().end(), resizes)) {
      return wrong("--changes", "expected no changes of gpus beside --elastic, whose curves say which sizes a job has");
    }
    conditions.changes = *std::move(changes);
  }
  if (options.elastic.empty()) return conditions;
  auto elastic = read_elastic(options.elastic, jobs);
  if (!elastic) return Unexpected{elastic.error()};
  const auto& curves = elastic->model.curves();
  const bool phases =
      std::any_of(curves.begin(), curves.end(), [](const auto& curve) { return curve.phases.size() > 1; });
  if (phases && preemption->periodic_checkpoint > Time{}) {
    return wrong("--checkpoint-write", "expected none beside the phases of --elastic");
  }
  conditions.elastic = std::move(elastic->model);
  conditions.notes.push_back(counted(elastic->elastic, "job is", "jobs are") + " elastic by " + options.elastic +
                             (elastic->outside == 0
                                  ? std::string()
                                  : "; " + counted(elastic->outside, "job stays", "jobs stay") +
                                        " rigid, because their family's curve does not hold their size"));
  return conditions;
}

std::vector<std::string> files_of(const FailureOptions& options) {
  std::vector<std::string> names;
  if (!options.file.empty()) {
    names = files_of_failures(options.file);
    names.insert(names.begin(), options.file);
  }
  for (const std::string& file : {options.stages, options.elastic, options.changes}) {
    if (!file.empty()) names.push_back(file);
  }
  return names;
}

}  // namespace gpusched
