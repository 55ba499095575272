// SPDX-License-Identifier: Apache-2.0
#include "src/sweep/sweep_trial.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "src/conditions/run_conditions.hpp"
#include "src/sim/replay.hpp"
#include "src/sweep/sweep_plan.hpp"
#include "src/sweep/sweep_point_run.hpp"

namespace gpusched {
namespace {

template <class Wanted>
std::string values_of(const Json& values, Wanted wanted) {
  std::string text;
  for (const auto& [path, value] : values.items()) {
    if (wanted(path)) text += path + " " + value.dump() + "\n";
  }
  return text;
}

// A drawn trace has other jobs with another seed.
bool says_which_jobs(const std::string& path) {
  return path == "seed" || path.starts_with("trace.") || path == "cluster" || path == "limits" || path == "oversize" ||
         path == "placement";
}

bool says_which_part(const std::string& path) {
  return path.starts_with("window.") || path.starts_with("measure.") || path == "history_jobs" || path == "load";
}

bool takes_a_part(const SweepPoint& point) {
  const Scenario& run = point.run;
  return point.first_job > 0 || point.jobs > 0 || run.history_jobs > 0 || run.warmup_jobs > 0 || run.measure_jobs > 0 ||
         run.warmup > Time{} || run.measure > Time{} || (point.load != 1 && !run.conditions.changes.empty());
}

// Of the jobs and cluster of `fitted`. Without `conditions` the part of the trace alone is tried.
Result<void> try_run(const RunInput& fitted, SweepPoint point, bool conditions, const PolicyRegistry& registry) {
  auto jobs = part_of_jobs(fitted.trace.jobs, point);
  if (!jobs) return Unexpected{jobs.error()};
  RunInput input{.trace = {.jobs = *std::move(jobs), .report = fitted.trace.report},
                 .cluster = fitted.cluster,
                 .placement = fitted.placement,
                 .slurm = fitted.slurm};
  point.run.recorded = "none";
  if (!conditions) point.run.conditions = {};
  const auto ready = prepare_replay(point.run, registry, std::move(input));
  return ready ? Result<void>{} : Result<void>{Unexpected{ready.error()}};
}

}  // namespace

SweepTrial::SweepTrial() : defaults_(sweep_point_json({})) {
  ConditionOptions options;
  for (const Field& field : condition_table(options)) paths_.insert(field.path);
}

std::string SweepTrial::conditions_of(const Json& values, bool costs) const {
  std::string text;
  auto usual = defaults_.begin();  // the same paths in the same order; parameters come behind them
  for (auto value = values.begin(); value != values.end() && usual != defaults_.end(); ++value, ++usual) {
    if (*value == *usual || !paths_.contains(value.key())) continue;
    if (costs || !value.key().starts_with("preemption.")) text += value.key() + " " + value->dump() + "\n";
  }
  return text;
}

Result<void> SweepTrial::note(const SweepPoint& point, const Json& values, std::uint64_t number) {
  const ConditionOptions& conditions = point.run.conditions;
  if (const std::string all = conditions_of(values, true); !all.empty() && options_.insert(all).second) {
    if (auto checked = check_condition_options(conditions); !checked) return checked;
  }
  if (!point.sites.empty()) return {};  // whose jobs are at their sites
  // Costs of preemption are numbers alone, which stages may exclude.
  const std::string of_conditions = conditions_of(values, !conditions.stages.empty());
  const bool is_part = takes_a_part(point);
  if (of_conditions.empty() && !is_part) return {};
  const std::string input = values_of(values, says_which_jobs);
  const bool is_new_condition = !of_conditions.empty() && conditions_.insert(input + of_conditions).second;
  const bool is_new_part = is_part && parts_.insert(input + values_of(values, says_which_part)).second;
  if (!is_new_condition && !is_new_part) return {};
  auto place = std::find_if(inputs_.begin(), inputs_.end(), [&](const OfInput& one) { return one.input == input; });
  if (place == inputs_.end()) place = inputs_.insert(place, OfInput{.input = input, .runs = {}});
  place->runs.push_back({number, is_new_condition});
  return {};
}

Result<void> SweepTrial::carry_out(const Sweep& sweep, const PolicyRegistry& registry) const {
  for (const OfInput& one : inputs_) {
    std::optional<RunInput> fitted;
    for (const Noted& noted : one.runs) {
      const auto point = sweep.point(noted.number);
      if (!point) return Unexpected{point.error()};
      if (!fitted) {
        auto read = load_input(input_request(point->run));
        if (!read) break;
        fitted.emplace(*std::move(read));
      }
      const auto tried = try_run(*fitted, *point, noted.conditions, registry);
      if (!tried) return unexpected(point_name(sweep, *point) + ": " + tried.error().to_string());
    }
  }
  return {};
}

}  // namespace gpusched
