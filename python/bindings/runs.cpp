// SPDX-License-Identifier: Apache-2.0
// replay(), evaluate(), report() and the tables of fields behind their keyword arguments.
#include <nanobind/stl/map.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "gpusched/engine/engine.hpp"
#include "python/bindings/keywords.hpp"
#include "python/bindings/python_policy.hpp"
#include "python/bindings/trace.hpp"
#include "src/base/field_table.hpp"
#include "src/report/report.hpp"
#include "src/sim/evaluate.hpp"
#include "src/sim/metric_table.hpp"
#include "src/sim/replay.hpp"
#include "src/sim/report.hpp"

namespace gpusched::python {
namespace {

nb::dict metrics_of(const Metrics& metrics) {
  nb::dict values;
  for (const MetricInfo& metric : metric_table()) {
    if (const auto value = metric.value(metrics)) values[metric.name.c_str()] = *value;
  }
  return values;
}

template <class Value>
nb::object each(const JobTable& jobs, Value value) {
  std::vector<decltype(value(JobId{}))> values(jobs.size());
  for (std::uint32_t i = 0; i < jobs.size(); ++i) values[i] = value(JobId{i});
  return column(std::move(values));
}

// What jobs.csv of a replay tells besides the trace's own columns.
nb::dict job_results(const ReplayInput& input, const PolicyRun& run) {
  const Engine& engine = *run.engine;
  const JobTable& jobs = engine.jobs();
  const std::uint32_t end = input.window.end(jobs.size());
  nb::dict columns = job_columns(jobs, true);
  const auto seconds = [&](const char* name, auto time) {
    columns[name] = each(jobs, [&](JobId job) { return seconds_or_nan(time(job)); });
  };
  seconds("first_start_s", [&](JobId job) { return engine.first_start(job); });
  seconds("end_s", [&](JobId job) { return engine.end(job); });
  seconds("run_s", [&](JobId job) { return engine.ran(job); });
  seconds("wait_s", [&](JobId job) { return engine.end(job) - engine.submit(job) - engine.ran(job); });
  seconds("jct_s", [&](JobId job) { return engine.end(job) - engine.submit(job); });
  columns["preemptions"] = each(jobs, [&](JobId job) { return engine.preemptions(job); });
  columns["measured"] = each(jobs, [&](JobId job) {
    return static_cast<std::uint8_t>(index(job) >= input.window.first && index(job) < end ? 1 : 0);
  });
  columns["averaged"] =
      each(jobs, [&](JobId job) { return static_cast<std::uint8_t>(engine.may_be_cancelled(job) ? 0 : 1); });
  std::vector<std::string> ids;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) ids.push_back(jobs.external_id(JobId{i}));
  columns["job_id"] = nb::cast(ids);
  return columns;
}

nb::dict interval_columns(const std::vector<Interval>& intervals) {
  const auto each_interval = [&](auto value) {
    std::vector<decltype(value(Interval{}))> values;
    values.reserve(intervals.size());
    for (const Interval& interval : intervals) values.push_back(value(interval));
    return column(std::move(values));
  };
  nb::dict columns;
  columns["job"] = each_interval([](const Interval& i) { return index(i.job); });
  columns["node"] = each_interval([](const Interval& i) { return index(i.node); });
  columns["gpus"] = each_interval(
      [](const Interval& i) { return static_cast<double>(i.gpu_milli) / static_cast<double>(whole_gpu); });
  columns["start_s"] = each_interval([](const Interval& i) { return to_seconds(i.start); });
  columns["end_s"] = each_interval([](const Interval& i) { return seconds_or_nan(i.end); });
  return columns;
}

nb::dict run_of(const ReplayInput& input, PolicyRun& run, bool tables) {
  nb::dict result;
  result["policy"] = run.policy;
  result["clairvoyant"] = run.clairvoyant;
  result["run_times"] = run.run_times;
  result["metrics"] = metrics_of(run.metrics);
  result["sim_seconds"] = run.sim_seconds;
  result["why_unfinished"] = run.why_unfinished;
  if (tables && run.engine) {
    result["history_hash"] = run.history_hash;
    result["jobs"] = job_results(input, run);
    result["intervals"] = interval_columns(run.intervals);
  }
  return result;
}

nb::dict costs_of(const std::vector<std::unique_ptr<Callable>>& callables) {
  nb::dict costs;
  for (const auto& callable : callables) {
    costs[callable->name.c_str()] =
        nb::make_tuple(callable->calls.load(), static_cast<double>(callable->call_ns.load()) * 1e-9);
  }
  return costs;
}

// Fits a trace that was read already, or reads the scenario's.
Result<ReplayInput> load(const Scenario& scenario, const PolicyRegistry& registry, const PyTrace* trace) {
  if (trace == nullptr) return load_replay(scenario, registry);
  if (!scenario.slurm_qos.empty()) {
    return Unexpected{Error{.message = "expected the path of a trace, whose jobs are read with these priorities",
                            .field = "trace.slurm_qos"}};
  }
  auto fitted = fit_input(input_request(scenario), *trace->trace);
  if (!fitted) return Unexpected{fitted.error()};
  return prepare_replay(scenario, registry, *std::move(fitted));
}

nb::dict replay(const std::string& keywords, const PyTrace* trace, const nb::dict& callables, bool tables,
                const nb::object& told) {
  Scenario scenario;
  set_keywords(scenario_fields(scenario), keywords);
  if (trace != nullptr) scenario.trace = trace->trace->report.path;
  refuse_keywords(keywords,
                  {{"out", "replay() returns tables; write files by the program's --out"},
                   {"json", "replay() returns what it holds"},
                   {"trace_events", "of files alone: use the program's --out"},
                   {"timeline", "of files alone: use the program's --out"},
                   {"waits", "of the program's output alone"},
                   {"decision_times", "Run.decision_us tells it of callables; the program tells it of others"},
                   {"split", "of the program's output alone: group Run.jobs"},
                   {"recorded", "of the program's output alone"}});
  const auto good = [&](const Result<void>& result) {
    if (!result) throw keyword_error(result.error(), scenario_fields(scenario));
  };
  good(check_scenario(scenario));
  PolicyRegistry registry = PolicyRegistry::standard();
  std::atomic<bool> stop = false;
  const auto added = add_callables(registry, callables, stop);
  const std::uint64_t threads = added.empty() ? scenario.threads : 1;  // one at a time holds the interpreter's lock
  std::optional<Result<ReplayInput>> input;
  std::optional<Result<std::vector<PolicyRun>>> runs;
  ReplayProgress progress;
  progress.stop = &stop;
  ToldProgress progress_told(told);
  run_unlocked(
      stop,
      [&] {
        input.emplace(load(scenario, registry, trace));
        if (!*input) return;
        progress_told.follow(progress.finished_jobs, (*input)->trace.jobs.size() * (*input)->specs.size());
        runs.emplace(run_replay(**input, registry, threads, {.splits = false, .job_files = tables}, progress));
      },
      &progress_told);
  for (const auto& callable : added) callable->rethrow();
  good(*input ? Result<void>{} : Unexpected{input->error()});
  good(*runs ? Result<void>{} : Unexpected{runs->error()});
  nb::list list;
  for (PolicyRun& run : **runs) list.append(run_of(**input, run, tables));
  nb::dict result;
  result["runs"] = list;
  std::vector<std::string> notes = left_out_lines((*input)->trace.report);
  const RunConditions& conditions = (*input)->conditions;
  for (const auto& more : {conditions.runtime.notes, conditions.notes}) {
    notes.insert(notes.end(), more.begin(), more.end());
  }
  result["notes"] = nb::cast(notes);
  result["costs"] = costs_of(added);
  return result;
}

// Rows of callables whose own names are no policy names are told under their own.
void rename(EvaluateScenario& scenario, Lineup& lineup, const std::map<std::string, std::string>& shown) {
  const auto change = [&](std::string& name) {
    if (const auto found = shown.find(name); found != shown.end()) name = found->second;
  };
  for (PolicySpec& spec : lineup.policies) change(spec.text);
  for (Lineup::Entry& entry : lineup.entries) change(entry.name);
  for (std::string& policy : scenario.policies) change(policy);
  change(scenario.against);
}

nb::dict evaluate(const std::string& keywords, const nb::dict& callables,
                  const std::map<std::string, std::string>& shown, const nb::object& told) {
  EvaluateScenario scenario;
  set_keywords(evaluate_fields(scenario), keywords);
  if (scenario.protocol != "windows") throw InputError("protocol: evaluate() has windows alone; the program has sc20");
  refuse_keywords(keywords, {{"out", "evaluate() returns tables; write files by the program's --out"},
                             {"json", "Evaluation.data holds it"}});
  const auto good = [&](const Result<void>& result) {
    if (!result) throw keyword_error(result.error(), evaluate_fields(scenario));
  };
  good(check_evaluate_scenario(scenario));
  PolicyRegistry registry = PolicyRegistry::standard();
  std::atomic<bool> stop = false;
  const auto added = add_callables(registry, callables, stop);
  const std::uint64_t threads = added.empty() ? scenario.threads : 1;
  std::optional<Result<EvaluationPlan>> plan;
  std::optional<Result<EvaluationOutcome>> outcome;
  EvaluationProgress progress;
  progress.stop = &stop;
  ToldProgress progress_told(told);
  run_unlocked(
      stop,
      [&] {
        plan.emplace(load_evaluation(scenario, registry));
        if (!*plan) return;
        rename(scenario, (*plan)->lineup, shown);
        progress_told.follow(progress.done, (*plan)->runs());
        outcome.emplace(run_evaluation(**plan, registry, threads, progress));
      },
      &progress_told);
  for (const auto& callable : added) callable->rethrow();
  good(*plan ? Result<void>{} : Unexpected{plan->error()});
  good(*outcome ? Result<void>{} : Unexpected{outcome->error()});
  nb::dict result;
  result["text"] = evaluation_text(**plan, **outcome);
  result["json"] = evaluation_json(scenario, **plan, **outcome, {});
  nb::dict csv;
  for (const auto& [name, text] : evaluation_tables(**plan, **outcome)) csv[name.c_str()] = text;
  result["csv"] = csv;
  result["costs"] = costs_of(added);
  return result;
}

nb::tuple report(const std::vector<std::string>& folders) {
  std::optional<Result<Report>> made;
  {
    const OpenCall open;
    const nb::gil_scoped_release unlocked;
    made.emplace(make_report(folders));
  }
  Report page = value_or_raise(*std::move(made));
  nb::dict csv;
  for (const auto& [name, text] : page.csv) csv[name.c_str()] = text;
  return nb::make_tuple(page.html, csv);
}

nb::list policies() {
  nb::list list;
  const PolicyRegistry registry = PolicyRegistry::standard();
  for (const PolicyInfo& info : registry.rows()) {
    nb::dict parameters, row;
    for (const ParameterInfo& parameter : info.parameters) parameters[parameter.name.c_str()] = parameter.meaning;
    row["name"] = info.name;
    row["summary"] = info.summary;
    row["source"] = info.source;
    row["preemptive"] = info.preemptive;
    row["parameters"] = parameters;
    list.append(row);
  }
  return list;
}

}  // namespace

void bind_runs(nb::module_& module) {
  module.def("replay", &replay, nb::arg("keywords"), nb::arg("trace").none(), nb::arg("callables"), nb::arg("tables"),
             nb::arg("progress").none());
  module.def("replay_keywords", [] {
    Scenario scenario;
    return keywords_of(scenario_fields(scenario));
  });
  module.def("evaluate", &evaluate, nb::arg("keywords"), nb::arg("callables"), nb::arg("shown"),
             nb::arg("progress").none());
  module.def("evaluate_keywords", [] {
    EvaluateScenario scenario;
    return keywords_of(evaluate_fields(scenario));
  });
  module.def("condition_keywords", [] {
    ConditionOptions options;
    return keywords_of(condition_fields(options, "VectorEnv"));
  });
  module.def("report", &report, nb::arg("folders"));
  module.def("policies", &policies);
}

}  // namespace gpusched::python
