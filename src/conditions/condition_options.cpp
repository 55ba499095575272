// SPDX-License-Identifier: Apache-2.0
#include "src/conditions/condition_options.hpp"

#include <algorithm>
#include <utility>

#include "src/world/power_reader.hpp"
#include "src/world/run_input.hpp"

namespace gpusched {
namespace {

// Why `serve` lacks what happens to jobs and nodes of the host.
constexpr const char* host_fails = "the host says which nodes go down and come back";
constexpr const char* of_whole_trace = "its windows begin at any time, and requests and trials come at theirs";
constexpr const char* host_runs = "the host runs the jobs, and says when they end";

Field lacking(Field field, const char* who, const char* why) {
  field.lacks.push_back({who, why});
  return field;
}

std::string ready_power_words() {
  std::string words;
  for (const ReadyPower& ready : ready_powers()) words += (words.empty() ? "" : ", ") + std::string(ready.name);
  return words;
}

// ---- a condition is one row here ----

FieldTable all_rows(ConditionOptions& options) {
  const auto served = [](Field field, const char* why) { return lacking(std::move(field), "serve", why); };
  PreemptionCost& cost = options.preemption;
  SpeedOptions& speeds = options.speeds;
  return {
      {"placement", "--placement", "how nodes are chosen; count: no nodes, only GPUs", &options.placement,
       placement_words()},
      served({"preemption.checkpoint_s", "--checkpoint-cost", "seconds to save a job's state when it is preempted",
              &cost.checkpoint},
             host_runs),
      served({"preemption.restart_s", "--restart-cost", "seconds to load it again", &cost.restart}, host_runs),
      served(
          {"preemption.checkpoint_interval_s", "--checkpoint-interval",
           "seconds of work between checkpoints; what follows the last one is lost; 0: a preemption loses nothing, a "
           "failure of a node the whole run",
           &cost.checkpoint_interval},
          host_runs),
      served({"preemption.checkpoint_write_s", "--checkpoint-write",
              "seconds to write each checkpoint of an interval, while the job's work rests", &cost.periodic_checkpoint},
             host_runs),
      served({"failures.file", "--failures",
              "when nodes fail and come back: laws of nodes, GPUs and racks (JSON), or a csv of time_s, node and event",
              &options.failures},
             host_fails),
      served(word_field("failures.checkpoint_rule", "--checkpoint-rule",
                        "how much work lies between periodic checkpoints: fixed, as --checkpoint-interval says, or by "
                        "what --checkpoint-write takes and how often the job's nodes fail, after Young or Daly",
                        cost.rule, checkpoint_rule_names),
             host_runs),
      served({"stages", "--stages",
              "JSON of what runs go through before they work: containers, images and weights with caches, shared "
              "storage",
              &options.stages},
             host_runs),
      served({"elastic", "--elastic",
              "JSON of which jobs may run on fewer or more GPUs than they ask for, and how fast they are then",
              &options.elastic},
             "its messages start jobs at the size that they ask for"),
      lacking(
          served({"changes", "--changes",
                  "csv of what users do to jobs that they submitted: cancel them, or change their priority or their "
                  "number of GPUs",
                  &options.changes},
                 "the host says which jobs are cancelled, and submits a changed job anew"),
          "search", "its windows are parts of the trace, and the file names jobs of all of it"),
      served({"power", "--power",
              "JSON of what nodes draw, emit and cost, and caps on that; or a ready model: " + ready_power_words(),
              &options.power},
             "the host runs the jobs, and meters what its nodes draw"),
      lacking(lacking(served({"services", "--services",
                              "JSON of services beside the jobs: the requests they get, their replicas, which are "
                              "placed as jobs are, and what sets how many there are",
                              &options.services},
                             host_runs),
                      "train", of_whole_trace),
              "VectorEnv", of_whole_trace),
      lacking(lacking(served({"trials", "--trials",
                              "JSON of searches for hyperparameters beside the jobs: their trials are placed as jobs "
                              "are, and results say which comes next",
                              &options.trials},
                             host_runs),
                      "train", of_whole_trace),
              "VectorEnv", of_whole_trace),
      served(
          {"kill_at_limit", "--kill-at-limit",
           "a job ends, as under Slurm, when it has run for the time that it asked for; no request, or 0, is no limit",
           &options.kill_at_limit},
          host_runs),
      served({"fidelity.profiles", "--profile",
              "device profiles that set how fast each job family runs on each GPU type: [TYPE=]FILE_OR_NAME[,...]",
              &speeds.profiles},
             host_runs),
      served({"fidelity.reference", "--reference-profile",
              "profile of the device that the trace's durations are of; by default the first of --profile",
              &speeds.reference_profile},
             host_runs),
      served(
          {"fidelity.throughputs", "--throughputs",
           "measured throughputs, in place of profiles: a csv of family, gpu_type, throughput and, where they "
           "matter, gpus, span and beside; or the JSON of Gavel's artifact; or a folder of step times as in those of "
           "Pollux and Sia",
           &speeds.throughputs},
          host_runs),
      served(
          {"fidelity.reference_type", "--reference-type",
           "GPU type of --throughputs that the trace's durations are of; by default its first", &speeds.reference_type},
          host_runs),
      served({"fidelity.throughput_fallback",
              "--throughput-fallback",
              "what stands for throughputs that --throughputs lacks: none (they are an error), or the ratio of memory "
              "bandwidths on data sheets",
              &speeds.throughput_fallback,
              {"none", "datasheet"}},
             host_runs),
      served({"fidelity.slowdown", "--slowdown", "factor on every modelled duration, for what the model leaves out",
              &speeds.slowdown},
             host_runs),
      served({"fidelity.span_speed", "--span-speed",
              "speed of gangs on several islands of a node, nodes of a rack, racks of a site, or sites, as a part of "
              "that on one node: nodes=0.9,racks=0.7,...; or throughputs: as --throughputs measured",
              &speeds.span_speed},
             host_runs),
      served({"fidelity.communication", "--communication",
              "the same from how job families communicate (JSON) over the links of the cluster file",
              &speeds.communication},
             host_runs),
      served({"fidelity.reference_span",
              "--reference-span",
              "where the trace's durations were measured: gangs on one node, or as near together as the cluster has "
              "room",
              &speeds.reference_span,
              {"node", "narrowest"}},
             host_runs),
      served({"fidelity.interference",
              "--interference",
              "how much jobs that share a GPU slow each other: as the profiles say, as --throughputs measured, or not",
              &speeds.interference,
              {"profile", "throughputs", "none"}},
             host_runs),
  };
}

}  // namespace

FieldTable condition_table(ConditionOptions& options) { return all_rows(options); }

FieldTable condition_fields(ConditionOptions& options, std::string_view taker) {
  FieldTable fields = condition_table(options);
  std::erase_if(fields, [&](const Field& field) {
    return std::any_of(field.lacks.begin(), field.lacks.end(), [&](const Lack& lack) { return lack.who == taker; });
  });
  return fields;
}

std::vector<MovedKey> moved_training_conditions() {
  return {{"throughputs", "fidelity.throughputs"},
          {"reference_type", "fidelity.reference_type"},
          {"failures", "failures.file"},
          {"env.placement", "placement"},
          {"env.checkpoint_cost_s", "preemption.checkpoint_s"},
          {"env.restart_cost_s", "preemption.restart_s"},
          {"env.checkpoint_interval_s", "preemption.checkpoint_interval_s"},
          {"env.checkpoint_write_s", "preemption.checkpoint_write_s"},
          {"env.checkpoint_rule", "failures.checkpoint_rule"}};
}

}  // namespace gpusched
