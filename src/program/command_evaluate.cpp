// SPDX-License-Identifier: Apache-2.0
// gpusched evaluate: policies on a whole log or on the same windows of it, compared pair by pair with intervals.
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/interruption.hpp"
#include "src/base/process_info.hpp"
#include "src/program/commands.hpp"
#include "src/program/field_options.hpp"
#include "src/program/output_option.hpp"
#include "src/program/progress_bar.hpp"
#include "src/sim/evaluate.hpp"
#include "src/sim/evaluate_scenario.hpp"
#include "src/sim/protocols/sc20_evaluation.hpp"

namespace gpusched {
namespace {

using Files = std::vector<std::pair<std::string, std::string>>;
using Clock = std::chrono::steady_clock;

Execution finished(Execution execution, Clock::time_point begin) {
  execution.wall_s = std::chrono::duration<double>(Clock::now() - begin).count();
  execution.peak_memory_bytes = peak_memory_bytes();
  return execution;
}

int deliver(const EvaluateScenario& scenario, std::optional<OutputFolder>& folder, const Files& files,
            const std::string& text) {
  if (folder) {
    if (auto written = write_files(*folder, files); !written) return complain(written.error(), exit_failed);
  }
  scenario.json ? print(text) : show(text);
  return exit_done;
}

int evaluate_windows(const Asked<EvaluateScenario>& asked, Execution execution) {
  const EvaluateScenario& scenario = asked.scenario;
  const auto begin = Clock::now();
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto plan = load_evaluation(scenario, registry);
  if (!plan) return asked.complain_of(plan.error(), evaluate_fields);
  for (const std::string& line : evaluation_notes(*plan)) note(line);
  std::optional<OutputFolder> folder;
  if (const int code = open_folder(scenario.out, folder); code != exit_done) return code;
  const Interruption interruption;
  EvaluationProgress progress;
  progress.stop = &Interruption::wanted();
  const auto outcome = [&] {
    const ProgressBar bar(progress.done, plan->runs(), plan->runs(), [&] {
      const auto running = progress.running.first();
      return running ? plan->lineup.policies[*running].text : "";
    });
    return run_evaluation(*plan, registry, scenario.threads, progress);
  }();
  const bool interrupted = Interruption::wanted();
  if (!outcome && interrupted) {
    return complain(Interruption::name() + ": " + outcome.error().to_string() + "; nothing was kept",
                    Interruption::exit_code());
  }
  if (!outcome) return complain(outcome.error(), exit_failed);
  execution = finished(std::move(execution), begin);
  const int code =
      deliver(scenario, folder, scenario.out.empty() ? Files{} : evaluation_files(scenario, *plan, *outcome, execution),
              scenario.json ? evaluation_json(scenario, *plan, *outcome, execution)
                            : evaluation_text(*plan, *outcome, result_style()));
  if (!interrupted || code != exit_done) return code;
  return complain(Interruption::name() + ": interrupted after " + std::to_string(progress.done) + " of " +
                      std::to_string(plan->runs()) + " runs; the results are of the windows that every policy finished",
                  Interruption::exit_code());
}

int evaluate_sc20(const Asked<EvaluateScenario>& asked, Execution execution) {
  const EvaluateScenario& scenario = asked.scenario;
  const auto begin = Clock::now();
  std::optional<OutputFolder> folder;
  if (const int code = open_folder(scenario.out, folder); code != exit_done) return code;
  EvaluationProgress progress;
  const auto evaluation = [&] {
    const ProgressBar bar(progress.done, scenario.policies.size(), 0, [&] {
      const auto running = progress.running.first();
      return running ? scenario.policies[*running] : "";
    });
    return run_sc20_evaluation(scenario, PolicyRegistry::standard(), progress);
  }();
  if (!evaluation) return asked.complain_of(evaluation.error(), evaluate_fields);
  execution = finished(std::move(execution), begin);
  return deliver(scenario, folder, scenario.out.empty() ? Files{} : sc20_files(scenario, *evaluation, execution),
                 scenario.json ? sc20_json(scenario, *evaluation, execution) : sc20_text(*evaluation));
}

int evaluate(const Asked<EvaluateScenario>& asked) {
  if (auto checked = check_evaluate_scenario(asked.scenario); !checked) {
    return asked.complain_of(checked.error(), evaluate_fields);
  }
  Execution execution{.started = utc_now()};
  return asked.scenario.protocol == "sc20" ? evaluate_sc20(asked, std::move(execution))
                                           : evaluate_windows(asked, std::move(execution));
}

}  // namespace

void add_evaluate_command(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("evaluate", "Compare policies on a log or windows, with intervals");
  const auto arguments = std::make_shared<FieldArguments>();
  EvaluateScenario defaults;
  add_field_options(*command, evaluate_fields(defaults), *arguments, "traces");
  add_quiet_option(*command);
  command->footer(
      "TRACE and --policy or --group are needed, here or in the file of --config.\n"
      "\nExamples:\n"
      "  gpusched evaluate jobs.csv --cluster 8x8 --policy fifo+easy,saf+easy\n"
      "  gpusched evaluate jobs.csv --cluster 8x8 --policy fifo,sjf,saf \\\n"
      "                    --window-jobs 512 --backfill easy --out results\n"
      "  gpusched evaluate --config results/manifest.json --out again\n"
      "  gpusched evaluate jobs.csv --cluster 40x8 --against sjf \\\n"
      "                    --policy sjf --group agent=rl:run1,rl:run2,rl:run3\n"
      "  gpusched evaluate lublin_256.swf --protocol sc20 --policy sjf,f1\n");
  command->callback([arguments, &exit_code] {
    if (arguments->print_schema) {
      std::fputs(evaluate_schema().c_str(), stdout);
      return;
    }
    const auto asked = scenario_from<EvaluateScenario>(*arguments, evaluate_fields, read_evaluate_file);
    if (!asked) {
      exit_code = complain(asked.error());
    } else if (arguments->print_config) {
      std::fputs(evaluate_scenario_json(asked->scenario, true).c_str(), stdout);
    } else {
      exit_code = evaluate(*asked);
    }
  });
}

}  // namespace gpusched
