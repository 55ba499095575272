// SPDX-License-Identifier: Apache-2.0
// gpusched sweep: all replays of a grid, stored as they end, and one csv of them.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "src/base/atomic_file.hpp"
#include "src/base/number_text.hpp"
#include "src/base/output_folder.hpp"
#include "src/base/parallel.hpp"
#include "src/base/process_info.hpp"
#include "src/program/commands.hpp"
#include "src/program/field_options.hpp"
#include "src/program/held_folder.hpp"
#include "src/program/interruption.hpp"
#include "src/program/progress_bar.hpp"
#include "src/sweep/sweep_file.hpp"
#include "src/sweep/sweep_plan.hpp"
#include "src/sweep/sweep_report.hpp"
#include "src/sweep/sweep_store.hpp"
#include "src/sweep/sweep_workers.hpp"

namespace gpusched {
namespace {

struct SweepArguments {
  std::string file;
  FieldArguments fields;
  bool dry_run = false, retry = false, print_schema = false;
};

std::string path_in(const Sweep& sweep, const std::string& name) { return sweep.out + "/" + name; }

// What is not stored; with `retry`, what gave no figures too. A run that is to have files has them.
std::vector<std::uint64_t> runs_to_do(const SweepPlan& plan, const std::unordered_map<std::string, RunStatus>& states,
                                      bool retry) {
  std::vector<std::uint64_t> todo;
  for (std::uint64_t i = 0; i < plan.runs.size(); ++i) {
    const auto state = states.find(plan.runs[i].key);
    bool stored = state != states.end() && (!retry || state->second == RunStatus::done);
    if (stored && plan.sweep.files && state->second == RunStatus::done) {
      std::error_code ignored;
      const std::string folder = path_in(plan.sweep, "runs/" + run_folder_name(plan.runs[i]));
      stored = std::filesystem::exists(folder + "/" + manifest_name, ignored);
    }
    if (!stored) todo.push_back(i);
  }
  return todo;
}

int list_runs(const SweepPlan& plan) {
  std::unordered_map<std::string, RunStatus> states;
  if (!plan.sweep.out.empty()) {
    const auto store = SweepStore::open_existing(path_in(plan.sweep, sweep_database_name));
    if (!store) return complain(store.error(), exit_failed);
    if (*store) {
      auto known = (*store)->states();
      if (!known) return complain(known.error(), exit_failed);
      states = *std::move(known);
    }
  }
  show(sweep_list(plan, states));
  return exit_done;
}

// Runs what is to do and stores each result at once.
Result<void> run_all(const SweepPlan& plan, const PolicyRegistry& registry, SweepStore& store,
                     const std::vector<std::uint64_t>& todo) {
  SweepProgress progress;
  progress.stop = &Interruption::wanted();
  const WorkerOptions options{.workers = plan.sweep.threads == 0 ? thread_count(0) : plan.sweep.threads,
                              .time_limit_s = to_seconds(plan.sweep.time_limit),
                              .run_folders = plan.sweep.files ? path_in(plan.sweep, "runs") : ""};
  const ProgressBar bar(progress.ended, todo.size(), todo.size(),
                        [&] { return human_count(progress.ended) + " of " + counted(todo.size(), "run"); });
  return run_points(plan, registry, todo, options, progress, [&](std::uint64_t number, const SweepResult& result) {
    const auto point = plan.sweep.point(number);
    if (!point) return Result<void>{Unexpected{point.error()}};
    return store.put({plan.runs[number].key, json_text(sweep_point_json(*point), -1), plan.program}, result);
  });
}

Result<SweepOutcome> write_results(const SweepPlan& plan, const SweepStore& store, Execution execution,
                                   std::chrono::steady_clock::time_point begin) {
  SweepOutcome outcome;
  const auto csv = sweep_csv(plan, store, outcome);
  if (!csv) return Unexpected{csv.error()};
  if (auto done = replace_file(path_in(plan.sweep, sweep_csv_name), *csv); !done) return Unexpected{done.error()};
  execution.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  execution.peak_memory_bytes = peak_memory_bytes();
  const std::string manifest = sweep_manifest(plan, outcome, execution);
  if (auto done = replace_file(path_in(plan.sweep, manifest_name), manifest); !done) return Unexpected{done.error()};
  return outcome;
}

void tell_failures(const SweepPlan& plan, const SweepOutcome& outcome) {
  for (const RunFailure& failure : outcome.failures) {
    const auto point = plan.sweep.point(failure.number);
    const std::string name = point ? " (" + point_name(plan.sweep, *point) + ")" : "";
    note("run " + std::to_string(failure.number + 1) + name + ": " + failure.message);
  }
}

int run_sweep(const SweepPlan& plan, const PolicyRegistry& registry, bool retry) {
  const Sweep& sweep = plan.sweep;
  const Execution execution{.started = utc_now()};
  const auto begin = std::chrono::steady_clock::now();
  if (sweep.out.empty()) return complain("no folder for the results; give --out FOLDER, or \"out\" in " + sweep.file);
  const auto folder = HeldFolder::open(sweep.out);
  if (!folder) return complain("--out: " + folder.error().to_string());
  auto store = SweepStore::open(path_in(sweep, sweep_database_name));
  if (!store) return complain(store.error(), exit_failed);
  const auto states = store->states();
  if (!states) return complain(states.error(), exit_failed);
  const std::vector<std::uint64_t> todo = runs_to_do(plan, *states, retry);
  if (todo.size() < plan.runs.size()) {
    note(counted(plan.runs.size() - todo.size(), "run") + " of " + human_count(plan.runs.size()) + " stored already");
  }

  const Interruption interruption;
  const auto ran = run_all(plan, registry, *store, todo);
  const auto outcome = write_results(plan, *store, execution, begin);
  if (!ran)
    return complain(ran.error().to_string() + "; what was stored is kept, the same command goes on", exit_failed);
  if (!outcome) return complain(outcome.error(), exit_failed);
  show(outcome_line(*outcome) + "\n" + path_in(sweep, sweep_csv_name) + "\n");
  std::fflush(stdout);  // before the notes
  tell_failures(plan, *outcome);
  if (Interruption::wanted() && outcome->missing > 0) {
    return complain(Interruption::name() + ": interrupted; what was stored is kept, the same command goes on",
                    Interruption::exit_code());
  }
  if (outcome->failed + outcome->timeouts == 0) return exit_done;
  return complain(counted(outcome->failed + outcome->timeouts, "run") + " without figures; --retry runs them again",
                  exit_failed);
}

Result<Sweep> sweep_from(const SweepArguments& arguments) {
  auto sweep = read_sweep_file(arguments.file);
  if (!sweep) return sweep;
  if (auto done = set_given_fields(sweep_own_fields(*sweep), arguments.fields); !done) return Unexpected{done.error()};
  return sweep;
}

int sweep_command(const SweepArguments& arguments) {
  auto sweep = sweep_from(arguments);
  if (!sweep) return complain(sweep.error());
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto plan = plan_sweep(*std::move(sweep), registry);
  if (!plan) return complain(plan.error());
  return arguments.dry_run ? list_runs(*plan) : run_sweep(*plan, registry, arguments.retry);
}

// An option or a flag for each own field of a sweep; the file is no option here.
void add_own_options(CLI::App& command, SweepArguments& arguments) {
  Sweep defaults;
  for (const Field& field : sweep_own_fields(defaults)) {
    if (std::holds_alternative<bool*>(field.target)) {
      command.add_flag(field.flag, arguments.fields.switches[field.path], field.meaning);
      continue;
    }
    std::vector<std::string>& given = arguments.fields.flags[field.path];
    command
        .add_option_function<std::string>(
            field.flag, [&given](const std::string& text) { given = {text}; }, field.meaning)
        ->default_str(field_text(field));
  }
}

}  // namespace

void add_sweep_command(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("sweep", "Replay every point of a grid, with resumption");
  const auto arguments = std::make_shared<SweepArguments>();
  command->add_option("file", arguments->file, "JSON file with base, grid and list; - for standard input");
  add_own_options(*command, *arguments);
  command->add_flag("--dry-run", arguments->dry_run, "list the runs and which are stored, and stop");
  command->add_flag("--retry", arguments->retry, "run again what is stored without figures");
  command->add_flag("--print-schema", arguments->print_schema, "print the JSON Schema of such files and stop");
  command->footer(
      "FILE holds what every run has and the values that vary:\n"
      "  {\"base\": {\"trace\": \"jobs.csv\"},\n"
      "   \"grid\": {\"policy\": [\"fifo\", \"las\"], \"cluster\": [\"8x8\", \"16x8\"],\n"
      "            \"load\": [0.8, 1], \"seed\": {\"from\": 1, \"to\": 5}}}\n"
      "\nThe same command goes on where it was interrupted or killed.\n"
      "\nExamples:\n"
      "  gpusched sweep sweep.json --dry-run\n"
      "  gpusched sweep sweep.json --out results --threads 0 --time-limit 600\n");
  command->callback([arguments, &exit_code] {
    if (arguments->print_schema) {
      std::fputs(sweep_schema().c_str(), stdout);
    } else if (arguments->file.empty()) {
      exit_code = complain("FILE is required (see `gpusched sweep --help`)");
    } else {
      exit_code = sweep_command(*arguments);
    }
  });
}

}  // namespace gpusched
