// SPDX-License-Identifier: Apache-2.0
// gpusched compare: a scenario and worlds beside it that differ in any of its keys, compared with intervals.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/interruption.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/process_info.hpp"
#include "src/base/strict_json.hpp"
#include "src/program/commands.hpp"
#include "src/program/field_options.hpp"
#include "src/program/option_checks.hpp"
#include "src/program/output_option.hpp"
#include "src/program/progress_bar.hpp"
#include "src/sim/compare.hpp"
#include "src/sim/compare_report.hpp"

namespace gpusched {
namespace {

struct CompareArguments {
  FieldArguments fields;
  std::vector<std::string> variations;
  std::string metrics;
  CompareOptions options;
};

// Options of replay that make no sense of worlds side by side.
FieldTable compare_fields(Scenario& scenario) {
  FieldTable fields = scenario_fields(scenario);
  std::erase_if(fields, [](const Field& field) {
    constexpr const char* not_here[] = {"history_jobs",        "split",           "recorded",
                                        "output.trace_events", "output.timeline", "output.decision_times"};
    return field.path.starts_with("measure.") ||
           std::find(std::begin(not_here), std::end(not_here), field.path) != std::end(not_here);
  });
  for (Field& field : fields) {
    if (field.path == "output.folder") field.meaning = "folder for compare.csv, compare.json, table.txt, manifest.json";
    if (field.path == "threads") field.meaning = "worlds that run at the same time; 0: one for each processor";
    if (field.path == "policies") field.meaning = "the base's policy, with its backfilling: NAME[{...}][+BACKFILL]";
    if (field.path == "trace.path") {
      field.meaning = "the base: a scenario or manifest (JSON), the folder of a run, or a trace with the options below";
    }
  }
  return fields;
}

// A scenario's file, or the manifest in a run's folder; nothing where the word is a trace.
std::optional<std::string> scenario_file(const std::string& word) {
  std::error_code ignored;
  const std::string manifest = word + "/" + manifest_name;
  if (std::filesystem::is_regular_file(manifest, ignored)) return manifest;
  if (!word.ends_with(".json") || !std::filesystem::is_regular_file(word, ignored)) return std::nullopt;
  const auto text = read_text_file(word);
  const std::size_t first = text ? text->find_first_not_of(" \t\r\n") : std::string::npos;
  return first != std::string::npos && (*text)[first] == '{' ? std::optional(word) : std::nullopt;
}

// Takes the base from the word in front where that is a file of settings; without variations, those of a comparison's
// manifest, and how it compared where that is not given.
Result<void> find_base(CompareArguments& arguments, const CLI::App& command) {
  FieldArguments& fields = arguments.fields;
  if (fields.positional.size() == 1) {
    std::error_code ignored;
    const std::string& word = fields.positional.front();
    if (word.ends_with(".json") && !std::filesystem::exists(word, ignored)) return unexpected(word + ": no such file");
    if (auto file = scenario_file(fields.positional.front())) {
      if (!fields.config.empty()) return unexpected("--config and the scenario in front exclude each other");
      fields.config = *std::move(file);
      fields.positional.clear();
    }
  }
  if (!arguments.variations.empty() || fields.config.empty() || fields.config == "-") return {};
  const auto text = read_text_file(fields.config);
  if (!text) return {};
  ToldComparison told = comparison_of_manifest(*text);
  if (told.variations.empty()) return {};
  arguments.variations = std::move(told.variations);
  if (command.count("--metrics") == 0) arguments.metrics = joined(told.options.metrics, ",");
  if (command.count("--mode") == 0) arguments.options.mode = told.options.mode;
  if (command.count("--window-jobs") == 0) arguments.options.window_jobs = told.options.window_jobs;
  return {};
}

std::vector<std::string> split_names_of(const std::string& list) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; !list.empty() && begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    names.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

int deliver(const ComparePlan& plan, const CompareOutcome& outcome, const Execution& execution,
            std::optional<OutputFolder>& folder) {
  if (folder) {
    const auto written = write_files(*folder, compare_files(plan, outcome, execution));
    if (!written) return complain(written.error(), exit_failed);
  }
  const bool json = plan.worlds.front().world.scenario.json;
  json ? print(compare_json(plan, outcome, execution)) : show(compare_table(plan, outcome, result_style()));
  std::fflush(stdout);
  std::string missing;
  for (std::size_t w = 0; w < outcome.failures.size(); ++w) {
    if (outcome.failures[w].empty()) continue;
    missing += (missing.empty() ? "" : "; ") + ("world '" + plan.worlds[w].world.name + "' " + outcome.failures[w]);
  }
  return missing.empty() ? exit_done : complain(missing, exit_failed);
}

std::vector<std::string> lines_of(const ReplayInput& input) {
  std::vector<std::string> all;
  for (const auto& lines : {left_out_lines(input.trace.report), input.slurm.unused_lines(), input.slurm.notes}) {
    all.insert(all.end(), lines.begin(), lines.end());
  }
  return all;
}

// What was noted of the base's input, and of others what was not noted of that.
void note_inputs(const ComparePlan& plan, const CompareOutcome& outcome) {
  const std::vector<std::string> of_base = lines_of(plan.worlds.front().input);
  for (const std::string& line : of_base) note(line);
  for (std::size_t w = 0; w < plan.worlds.size(); ++w) {
    const LoadedWorld& world = plan.worlds[w];
    for (const std::string& line : lines_of(world.input)) {
      if (std::find(of_base.begin(), of_base.end(), line) == of_base.end()) note(world.world.name + ": " + line);
    }
    const double refused = outcome.metrics[w] ? outcome.metrics[w]->refused_jobs.value_or(0) : 0;
    if (refused > 0) {
      note(world.world.name + ": limits refuse " + counted(static_cast<std::uint64_t>(refused), "job") +
           ", which no average counts");
    }
  }
}

int compare_worlds(const Asked<Scenario>& asked, const CompareArguments& arguments) {
  const auto refuse = [&](const Error& error) { return asked.complain_of(error, scenario_fields); };
  Execution execution{.started = utc_now()};
  const auto begin = std::chrono::steady_clock::now();
  if (arguments.variations.empty()) return complain("--vary: expected at least one, as --vary 'cluster+=8x8'");
  auto worlds = worlds_of(asked.scenario, arguments.variations);
  if (!worlds) return refuse(worlds.error());
  const PolicyRegistry registry = PolicyRegistry::standard();
  CompareOptions options = arguments.options;
  options.threads = asked.scenario.threads;
  options.metrics = split_names_of(arguments.metrics);
  auto plan = load_comparison(*std::move(worlds), options, registry);
  if (!plan) return refuse(plan.error());
  std::optional<OutputFolder> folder;
  if (const int code = open_folder(asked.scenario.out, folder); code != exit_done) return code;
  const Interruption interruption;
  EvaluationProgress progress;
  progress.stop = &Interruption::wanted();
  const auto outcome = [&] {
    const ProgressBar bar(progress.done, plan->runs(), plan->runs(), [&] {
      const auto running = progress.running.first();
      return running ? plan->worlds[*running].world.name.substr(0, 30) : "";
    });
    return run_comparison(*plan, registry, progress);
  }();
  if (!outcome && Interruption::wanted()) {
    return complain(Interruption::name() + ": " + outcome.error().to_string() + "; nothing was kept",
                    Interruption::exit_code());
  }
  if (!outcome) return complain(outcome.error(), exit_failed);
  execution.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  execution.peak_memory_bytes = peak_memory_bytes();
  for (const LoadedWorld& world : plan->worlds) {
    for (const std::string& line : world.options.conditions.all_notes()) note(world.world.name + ": " + line);
    if (!world.same_jobs) note(world.world.name + ": its jobs are not those of the base, so that nothing is paired");
  }
  note_inputs(*plan, *outcome);
  return deliver(*plan, *outcome, execution, folder);
}

}  // namespace

void add_compare_command(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("compare", "Compare settings: other nodes, policies, limits");
  const auto arguments = std::make_shared<CompareArguments>();
  Scenario defaults;
  add_field_options(*command, compare_fields(defaults), arguments->fields, "trace.path");
  add_quiet_option(*command);
  command
      ->add_option("--vary", arguments->variations,
                   "a world beside the base: KEY=VALUE[;KEY=VALUE...]; KEY+=VALUE adds nodes or a number. Keys are "
                   "those of the scenario's file, or names of options; may be repeated, one world each")
      ->allow_extra_args(false);
  command->add_option("--metrics", arguments->metrics,
                      "figures compared, separated by commas, as evaluate --figure takes them; default: waits, "
                      "completion time, slowdown, utilisation and, where known, energy, carbon and cost");
  command
      ->add_option(
          "--mode", arguments->options.mode,
          "how intervals are made: log: batches of the run's jobs; windows: the jobs in windows, each of which "
          "begins empty; auto: log where it is long enough")
      ->check(CLI::IsMember({"auto", "log", "windows"}));
  command->add_option("--window-jobs", arguments->options.window_jobs, "jobs of a window")
      ->check(whole_number_from(1, most_window_jobs));
  command->footer(
      "The worlds are compared with the base as evaluate compares policies.\n"
      "\nExamples:\n"
      "  gpusched compare run.json --vary cluster+=8x8 --vary policy=fifo+easy\n"
      "  gpusched compare results --vary 'cluster=16x8;policy=sjf' --out what-if\n"
      "  gpusched compare jobs.csv --cluster 8x8 --policy fifo \\\n"
      "                   --vary cluster+=2x8:H100 --vary placement=first-fit\n"
      "  gpusched compare what-if --out again\n");
  command->callback([arguments, command, &exit_code] {
    if (arguments->fields.print_schema) {
      std::fputs(scenario_schema().c_str(), stdout);
      return;
    }
    if (const auto found = find_base(*arguments, *command); !found) {
      exit_code = complain(found.error());
      return;
    }
    const auto asked = scenario_from<Scenario>(arguments->fields, scenario_fields, read_scenario_file);
    if (!asked) {
      exit_code = complain(asked.error());
    } else if (arguments->fields.print_config) {
      std::fputs(scenario_json(asked->scenario, true).c_str(), stdout);
    } else {
      exit_code = compare_worlds(*asked, *arguments);
    }
  });
}

}  // namespace gpusched
