// SPDX-License-Identifier: Apache-2.0
#include "src/conditions/run_conditions.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "gpusched/data/job_limits.hpp"
#include "src/base/number_text.hpp"
#include "src/world/elastic_reader.hpp"
#include "src/world/failure_reader.hpp"
#include "src/world/job_change_reader.hpp"
#include "src/world/run_input.hpp"
#include "src/world/service_reader.hpp"
#include "src/world/stage_reader.hpp"
#include "src/world/study_reader.hpp"

namespace gpusched {
namespace {

// `lacks`: what the nodes of a pool could do, if it had any.
Result<void> check_nodes(const char* path, const std::string& lacks, const Cluster& cluster,
                         const std::string& placement) {
  if (placement == count_placement) {
    return bad_option(path, "expected another --placement than count, which knows no nodes that " + lacks);
  }
  const auto is_pool = [](const Node& node) { return node.counts_only; };
  if (std::any_of(cluster.nodes.begin(), cluster.nodes.end(), is_pool)) {
    return bad_option(path, "expected a cluster of nodes, as 75x8; a pool of GPUs has no nodes that " + lacks);
  }
  return {};
}

Result<void> load_stages(const ConditionOptions& options, const JobTable& jobs, const Cluster& cluster,
                         RunConditions& conditions) {
  if (options.stages.empty()) return {};
  if (auto done = check_nodes("stages", "could keep anything", cluster, options.placement); !done) return done;
  auto stages = read_stages(options.stages, jobs);
  if (!stages) return Unexpected{stages.error()};
  conditions.stages = std::move(stages->model);
  conditions.notes.insert(conditions.notes.end(), stages->notes.begin(), stages->notes.end());
  return {};
}

// A checkpoint's rule, interval and time need each other.
Result<void> check_checkpoints(const ConditionOptions& options, const StageModel& stages) {
  const PreemptionCost& cost = options.preemption;
  const bool takes_time = cost.periodic_checkpoint > Time{}, moves = stages.checkpoint_bytes_per_gpu > 0;
  if (takes_time && moves) {
    return bad_option("preemption.checkpoint_write_s", "expected none beside checkpoint_gib_per_gpu of --stages");
  }
  if (cost.rule == CheckpointRule::fixed) {
    if ((takes_time || moves) && cost.checkpoint_interval == Time{}) {
      return bad_option(moves ? "stages" : "preemption.checkpoint_write_s",
                        "expected --checkpoint-interval or --checkpoint-rule with " +
                            std::string(moves ? "its checkpoint_gib_per_gpu" : "it"));
    }
    return {};
  }
  const std::string rule(name_of(checkpoint_rule_names, cost.rule));
  if (options.failures.empty()) return bad_option("failures.checkpoint_rule", "expected --failures with " + rule);
  if (!takes_time && !moves) {
    return bad_option("failures.checkpoint_rule", "expected --checkpoint-write above 0 with " + rule);
  }
  if (cost.checkpoint_interval > Time{}) {
    return bad_option("preemption.checkpoint_interval_s", "expected no fixed interval with --checkpoint-rule " + rule);
  }
  return {};
}

Result<void> load_failures(const ConditionOptions& options, const JobTable& jobs, const Cluster& cluster,
                           std::uint64_t seed, RunConditions& conditions) {
  if (options.failures.empty()) return {};
  if (auto done = check_nodes("failures.file", "could fail", cluster, options.placement); !done) return done;
  auto failures = read_failures(options.failures, cluster, jobs.size() == 0 ? Time{} : jobs.trace_begin(), seed);
  if (!failures) return Unexpected{failures.error()};
  conditions.failures = *std::move(failures);
  const CheckpointRule rule = options.preemption.rule;
  if (rule != CheckpointRule::fixed && conditions.failures.units().empty()) {
    return bad_option("failures.checkpoint_rule", "expected failures by a law (mtbf_h) with " +
                                                      std::string(name_of(checkpoint_rule_names, rule)) +
                                                      ", not a log of outages alone");
  }
  return {};
}

Result<void> load_changes(const ConditionOptions& options, JobTable& jobs, const Cluster& cluster,
                          RunConditions& conditions) {
  if (options.changes.empty()) return {};
  auto changes = read_job_changes(options.changes, jobs, cluster);
  if (!changes) return Unexpected{changes.error()};
  conditions.changes = *std::move(changes);
  return {};
}

// First of all: its replicas become rows of the table.
Result<void> load_services(const ConditionOptions& options, JobTable& jobs, const Cluster& cluster, std::uint64_t seed,
                           RunConditions& conditions) {
  if (options.services.empty()) return {};
  auto services = read_services(options.services, jobs, cluster, seed);
  if (!services) return Unexpected{services.error()};
  conditions.services = *std::move(services);
  return {};
}

// Behind the replicas.
Result<void> load_studies(const ConditionOptions& options, JobTable& jobs, const Cluster& cluster, std::uint64_t seed,
                          RunConditions& conditions) {
  if (options.trials.empty()) return {};
  if (options.kill_at_limit) return bad_option("trials", "expected no --kill-at-limit, which would end trials unheard");
  auto studies = read_studies(options.trials, jobs, cluster, seed);
  if (!studies) return Unexpected{studies.error()};
  conditions.studies = *std::move(studies);
  return {};
}

// Every replica could run alone.
Result<void> check_replicas(const ConditionOptions& options, const JobTable& jobs, const Cluster& cluster) {
  if (jobs.replicas() == 0) return {};
  const JobLimits limits(cluster.limits, jobs);
  for (std::uint32_t row = 0; row < jobs.replicas(); ++row) {
    const JobId replica{row};
    if (limits.allow_alone(replica, jobs.shape(replica))) continue;
    return bad_option("services", "replica '" + jobs.external_id(replica) + "' of " + options.services +
                                      " asks for more than limits of the cluster ever let run; expected less");
  }
  return {};
}

// A user does not change what a service asks for, nor a job to what limits never let run.
Result<void> check_changes(const ConditionOptions& options, const JobTable& jobs, const Cluster& cluster,
                           const RunConditions& conditions) {
  if (conditions.changes.is_empty()) return {};
  const JobLimits limits(cluster.limits, jobs);
  for (const JobChange& change : conditions.changes.all()) {
    if (change.kind != JobChange::Kind::size || limits.allow_alone(change.job, jobs.shapes()[change.shape])) continue;
    return bad_option("changes", "job '" + jobs.external_id(change.job) +
                                     "' would ask for more than limits of the cluster ever let run; expected less");
  }
  for (const JobChange& change : conditions.changes.all()) {
    if (index(change.job) >= jobs.in_front()) continue;
    const std::string whose = index(change.job) < jobs.replicas()
                                  ? "a replica of " + options.services + ", which its autoscaler starts and ends"
                                  : "a trial of " + options.trials + ", which its search starts and ends";
    return bad_option("changes",
                      "'" + jobs.external_id(change.job) + "' is " + whose + "; expected changes of jobs alone");
  }
  return {};
}

Result<void> load_elastic(const ConditionOptions& options, const JobTable& jobs, RunConditions& conditions) {
  if (options.elastic.empty()) return {};
  auto elastic = read_elastic(options.elastic, jobs);
  if (!elastic) return Unexpected{elastic.error()};
  for (std::uint32_t row = 0; row < jobs.in_front(); ++row) {
    if (elastic->model.curve(jobs, JobId{row}) == nullptr) continue;
    const bool is_replica = row < jobs.replicas();
    return bad_option(is_replica ? "services" : "trials",
                      "'" + jobs.external_id(JobId{row}) + "' would be elastic by " + options.elastic +
                          "; expected a family of " + (is_replica ? "replicas" : "trials") +
                          " that has no curve there");
  }
  for (const JobChange& change : conditions.changes.all()) {
    if (change.kind != JobChange::Kind::size || elastic->model.curve(jobs, change.job) == nullptr) continue;
    return bad_option("changes", "job '" + jobs.external_id(change.job) + "' is elastic by " + options.elastic +
                                     ", whose curve says which sizes it has; expected no change of its gpus");
  }
  conditions.elastic = std::move(elastic->model);
  conditions.notes.insert(conditions.notes.end(), elastic->notes.begin(), elastic->notes.end());
  conditions.notes.push_back(counted(elastic->elastic, "job is", "jobs are") + " elastic by " + options.elastic +
                             (elastic->outside == 0
                                  ? std::string()
                                  : "; " + counted(elastic->outside, "job stays", "jobs stay") +
                                        " rigid, because their family's curve does not hold their size"));
  return {};
}

constexpr const char* draws_power = "could draw power";

// Nothing is apart on a pool.
Result<void> check_spans(const ConditionOptions& options, const Cluster& cluster) {
  constexpr const char* apart = "gangs could be apart on";
  Result<void> done;
  if (!options.speeds.span_speed.empty()) {
    done = check_nodes("fidelity.span_speed", apart, cluster, options.placement);
  }
  if (done && !options.speeds.communication.empty()) {
    done = check_nodes("fidelity.communication", apart, cluster, options.placement);
  }
  return done;
}

// Without a file, of GPUs alone.
Result<void> load_power(const ConditionOptions& options, const JobTable& jobs, const Cluster& cluster,
                        RunConditions& conditions) {
  const PowerModel& measured = conditions.runtime.power;
  if (options.power.empty()) {
    conditions.power = {.model = power_of_gpus(measured, cluster)};
    return {};
  }
  if (auto done = check_nodes("power", draws_power, cluster, options.placement); !done) return done;
  auto power = read_power(options.power, cluster, jobs, measured);
  if (!power) return Unexpected{power.error()};
  conditions.power = *std::move(power);
  return {};
}

// It has more than one value.
bool changes_with_time(const Signal& signal) { return signal.steps().size() > 1; }

// What the trace says of jobs and the run times that they asked for.
struct Overruns {
  std::uint64_t jobs = 0;  // that run for longer
  Time longest{};          // by so much at most
  std::uint64_t zero = 0;  // that asked for 0

  Overruns(const JobTable& table, bool killed) {
    for (std::uint32_t i = 0; i < table.size(); ++i) {
      const JobId job{i};
      const Time asked = table.estimate(job);
      if (asked == Time::max()) continue;
      if (asked.us == 0) ++zero;
      if (asked.us == 0 && killed) continue;  // no limit
      Time over{};
      for (std::uint32_t attempt = 0; attempt < table.attempts(job); ++attempt) {
        over = std::max(over, table.attempt_work(job, attempt) - asked);
      }
      if (over > Time{}) ++jobs;
      longest = std::max(longest, over);
    }
  }
};

Result<void> note_overruns(const ConditionOptions& options, const JobTable& jobs, RunConditions& conditions) {
  if (!jobs.has_estimates()) {
    if (!options.kill_at_limit) return {};
    return bad_option("kill_at_limit", "expected a trace of jobs with a requested run time (estimate_s)");
  }
  const Overruns found(jobs, options.kill_at_limit);
  if (found.jobs > 0) {
    conditions.notes.push_back(
        counted(found.jobs, "job runs", "jobs run") + " in the trace for longer than requested, by " +
        human_duration(to_seconds(found.longest)) + " at most; " +
        (options.kill_at_limit ? "--kill-at-limit ends them there"
                               : "overrun=... says how backfilling takes that, --kill-at-limit would end them there"));
  }
  if (found.zero > 0) {
    const bool one = found.zero == 1;
    conditions.notes.push_back(counted(found.zero, "job requests", "jobs request") + " a run time of 0: plans take " +
                               (one ? "it" : "them") + " to end at once" +
                               (!options.kill_at_limit ? ""
                                : one                  ? ", and it has no limit"
                                                       : ", and they have no limit"));
  }
  return {};
}

}  // namespace

std::vector<std::string> RunConditions::all_notes() const {
  std::vector<std::string> all = runtime.notes;
  for (const auto& more : {power.notes, notes}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

Result<RunConditions> load_conditions_without_speeds(const ConditionOptions& options, JobTable& jobs,
                                                     const Cluster& cluster, std::uint64_t seed) {
  RunConditions conditions{.preemption = options.preemption, .kill_at_limit = options.kill_at_limit};
  auto done = load_services(options, jobs, cluster, seed, conditions);
  if (done) done = load_studies(options, jobs, cluster, seed, conditions);
  if (done) done = load_stages(options, jobs, cluster, conditions);
  if (done) done = check_checkpoints(options, conditions.stages);
  if (done) done = load_failures(options, jobs, cluster, seed, conditions);
  if (done) done = load_changes(options, jobs, cluster, conditions);  // may add shapes, which curves are kept by
  if (done) done = check_replicas(options, jobs, cluster);
  if (done) done = check_changes(options, jobs, cluster, conditions);
  if (done) done = load_elastic(options, jobs, conditions);
  if (done) done = note_overruns(options, jobs, conditions);
  if (!done) return Unexpected{done.error()};
  return conditions;
}

Result<void> check_condition_options(const ConditionOptions& options) {
  const bool on_nodes = options.placement != count_placement;
  if (!on_nodes && !options.failures.empty()) return check_nodes("failures.file", "could fail", {}, options.placement);
  if (!on_nodes && !options.stages.empty()) return check_nodes("stages", "could keep anything", {}, options.placement);
  if (!on_nodes && !options.power.empty()) return check_nodes("power", draws_power, {}, options.placement);
  if (auto done = check_spans(options, {}); !done) return done;
  if (!options.stages.empty()) return {};  // whether checkpoints are transfers stands in that file
  return check_checkpoints(options, {});
}

Result<void> load_speeds_and_power(const ConditionOptions& options, const JobTable& jobs, const Cluster& cluster,
                                   RunConditions& conditions) {
  const auto rule = placement_from_name(options.placement);
  if (auto checked = check_placement(rule.value_or(Placement::consolidate), options.speeds); !checked) return checked;
  if (auto done = check_spans(options, cluster); !done) return done;
  auto runtime = runtime_of(options.speeds, jobs, cluster, conditions.changes);
  if (!runtime) return Unexpected{runtime.error()};
  if (rule && *rule == Placement::fastest && options.speeds.profiles.empty() && options.speeds.throughputs.empty()) {
    runtime->notes.push_back(
        "--placement fastest: without --profile or --throughputs every GPU type is as fast as the others");
  }
  conditions.runtime = *std::move(runtime);
  return load_power(options, jobs, cluster, conditions);
}

Result<RunConditions> load_conditions(const ConditionOptions& options, JobTable& jobs, const Cluster& cluster,
                                      std::uint64_t seed) {
  auto conditions = load_conditions_without_speeds(options, jobs, cluster, seed);
  if (!conditions) return conditions;
  if (auto done = load_speeds_and_power(options, jobs, cluster, *conditions); !done) return Unexpected{done.error()};
  return conditions;
}

Result<void> check_for_windows(const RunConditions& conditions, const ConditionOptions& options, bool moves_arrivals) {
  if (!moves_arrivals) return {};
  if (!conditions.failures.changes().empty()) {
    return Unexpected{
        Error{.message = "expected laws alone with arrivals that are moved; a log of outages stays where it is",
              .file = options.failures}};
  }
  const PowerModel& power = conditions.power.model;
  const bool changes =
      std::any_of(power.places.begin(), power.places.end(),
                  [](const PowerPlace& place) {
                    return changes_with_time(place.carbon_g_per_kwh) || changes_with_time(place.usd_per_mwh);
                  }) ||
      std::any_of(power.caps.begin(), power.caps.end(),
                  [](const PowerCap& cap) { return changes_with_time(cap.watts); });
  if (!changes) return {};
  return Unexpected{
      Error{.message = "expected constants alone with arrivals that are moved; a signal stays where it is",
            .file = options.power}};
}

std::vector<std::string> files_of(const ConditionOptions& options) {
  std::vector<std::string> names = files_of(options.speeds);
  if (!options.failures.empty()) {
    names.push_back(options.failures);
    for (std::string& name : files_of_failures(options.failures)) names.push_back(std::move(name));
  }
  for (const std::string& file : {options.stages, options.elastic, options.changes}) {
    if (!file.empty()) names.push_back(file);
  }
  if (!options.services.empty()) {
    names.push_back(options.services);
    for (std::string& name : files_of_services(options.services)) names.push_back(std::move(name));
  }
  if (!options.trials.empty()) {
    names.push_back(options.trials);
    for (std::string& name : files_of_studies(options.trials)) names.push_back(std::move(name));
  }
  if (!options.power.empty()) {
    for (std::string& name : files_of_power(options.power)) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace gpusched
