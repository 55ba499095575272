// SPDX-License-Identifier: Apache-2.0
// gpusched sweep: all replays of a grid, stored as they end, and one csv of them.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "src/base/atomic_file.hpp"
#include "src/base/field_parser.hpp"
#include "src/base/held_folder.hpp"
#include "src/base/interruption.hpp"
#include "src/base/number_text.hpp"
#include "src/base/output_folder.hpp"
#include "src/base/parallel.hpp"
#include "src/base/process_info.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/subprocess.hpp"
#include "src/program/commands.hpp"
#include "src/program/field_options.hpp"
#include "src/program/progress_bar.hpp"
#include "src/sweep/slurm_array.hpp"
#include "src/sweep/slurm_sweep.hpp"
#include "src/sweep/sweep_file.hpp"
#include "src/sweep/sweep_plan.hpp"
#include "src/sweep/sweep_report.hpp"
#include "src/sweep/sweep_run.hpp"
#include "src/sweep/sweep_store.hpp"
#include "src/sweep/sweep_workers.hpp"

namespace gpusched {
namespace {

struct SweepArguments {
  std::string file;
  FieldArguments fields;
  bool dry_run = false, retry = false, print_schema = false;
  bool no_wait = false, gather = false;     // with Slurm
  std::optional<std::uint64_t> array_task;  // this process is that task of a job array
};

bool is_on_slurm(const Sweep& sweep) { return sweep.launcher == "slurm"; }

// What a start would submit.
Result<std::string> submission_text(const SweepPlan& plan, const std::vector<std::uint64_t>& todo) {
  if (todo.empty()) return std::string("nothing to submit\n");
  const std::size_t tasks = split_into_tasks(plan, todo).size();
  SlurmArray array;
  array.name = "gpusched-NAME";
  array.folder = path_in(plan.sweep, std::string(sweep_tasks_name) + "/NUMBER");
  const auto command = sbatch_command(plan, array, tasks);
  if (!command) return Unexpected{command.error()};
  std::string text = "would submit " + counted(todo.size(), "run") + " as " + counted(tasks, "array task") + ":";
  for (const std::string& word : *command) text += " " + shell_quoted(word);
  return text + "\n";
}

int list_runs(const SweepPlan& plan, bool retry) {
  std::unordered_map<std::string, RunStatus> states;
  std::unordered_set<std::string> queued;
  if (!plan.sweep.out.empty()) {
    const auto store = SweepStore::open_existing(path_in(plan.sweep, sweep_database_name));
    if (!store) return complain(store.error(), exit_failed);
    if (*store) {
      auto known = (*store)->states();
      if (!known) return complain(known.error(), exit_failed);
      states = *std::move(known);
    }
  }
  if (!is_on_slurm(plan.sweep)) {
    show(sweep_list(plan, states, {}, result_style()));
    return exit_done;
  }
  auto slurm = SlurmSweep::open(plan);
  if (!slurm) return complain(slurm.error(), exit_failed);
  if (auto asked = slurm->ask(); !asked) return complain(asked.error(), exit_failed);
  queued = slurm->queued();
  const auto submission = submission_text(plan, runs_to_do(plan, states, retry, queued));
  if (!submission) return complain(submission.error());
  show(sweep_list(plan, states, queued, result_style()) + *submission);
  return exit_done;
}

// On this machine with a progress bar, until a signal comes.
Result<void> run_with_progress(const SweepPlan& plan, const PolicyRegistry& registry, SweepStore& store,
                               const std::vector<std::uint64_t>& todo, SweepFiles& files) {
  SweepProgress progress;
  progress.stop = &Interruption::wanted();
  const ProgressBar bar(progress.ended, todo.size(), todo.size(),
                        [&] { return human_count(progress.ended) + " of " + counted(todo.size(), "run"); });
  return run_here(plan, registry, store, todo, files, progress);
}

void tell_failures(const SweepPlan& plan, const SweepOutcome& outcome) {
  for (const RunFailure& failure : outcome.failures) {
    const auto point = plan.sweep.point(failure.number);
    const std::string name = point ? " (" + point_name(plan.sweep, *point) + ")" : "";
    note("run " + std::to_string(failure.number + 1) + name + ": " + failure.message);
  }
  const std::uint64_t others = outcome.failed + outcome.timeouts - outcome.failures.size();
  if (others > 0)
    note("and " + counted(others, "run") + " more without figures; " + std::string(sweep_csv_name) + " says why");
}

void tell_stored(const SweepPlan& plan, std::size_t todo) {
  if (todo == plan.runs.size()) return;
  note(counted(plan.runs.size() - todo, "run") + " of " + human_count(plan.runs.size()) + " stored already");
}

// Tells each reason once for which no task begins, where a person may have to do something.
void tell_reasons(const SlurmTaskCount& count, std::set<std::string>& told) {
  static const std::set<std::string> usual{"None", "Resources", "Priority", "JobArrayTaskLimit", "BeginTime"};
  for (const std::string& reason : count.reasons) {
    if (!usual.contains(reason) && told.insert(reason).second) note("array tasks wait in Slurm: " + reason);
  }
}

// Sleeps, but not through a signal.
void pause(std::chrono::milliseconds time) {
  constexpr std::chrono::milliseconds step(50);
  for (auto slept = std::chrono::milliseconds(0); slept < time && !Interruption::wanted(); slept += step) {
    std::this_thread::sleep_for(step);
  }
}

// Until all tasks have ended. The pauses grow, as a controller serves many users.
Result<void> await_slurm(SlurmSweep& slurm, SweepStore& store) {
  constexpr std::chrono::milliseconds longest(15'000);
  constexpr int most_failures = 40;  // ten minutes of a controller that is being restarted
  std::atomic<std::uint64_t> ended = 0, running = 0;
  const std::size_t total = slurm.queued().size();
  const ProgressBar bar(ended, total, total, [&] {
    return human_count(ended) + " of " + counted(total, "run") + ", " + human_count(running) + " running";
  });
  std::chrono::milliseconds between(250);
  std::set<std::string> told;
  for (int failures = 0; slurm.is_open() && !Interruption::wanted();) {
    pause(between);
    between = std::min(between + between / 4, longest);
    const auto asked = slurm.ask();
    failures = asked ? 0 : failures + 1;
    if (failures > 0 && told.insert(asked.error().message).second) note(asked.error().message + "; asking again");
    if (failures == most_failures) return asked;
    if (auto gathered = slurm.gather(store); !gathered) return gathered;
    ended = total - std::min(total, slurm.queued().size());
    const SlurmTaskCount count = slurm.count();
    running = count.running;
    tell_reasons(count, told);
  }
  return {};
}

// Takes what has come from Slurm, submits what is missing and waits. `left` tells what is still there.
Result<void> run_on_slurm(const SweepPlan& plan, SweepStore& store, const SweepArguments& arguments,
                          std::string& left) {
  auto slurm = SlurmSweep::open(plan);
  if (!slurm) return Unexpected{slurm.error()};
  if (arguments.no_wait || arguments.gather) slurm->do_not_linger();
  if (auto asked = slurm->ask(); !asked) return asked;
  if (auto gathered = slurm->gather(store); !gathered) return gathered;
  const auto states = store.states();
  if (!states) return Unexpected{states.error()};
  const auto queued = slurm->queued();
  const std::vector<std::uint64_t> todo = runs_to_do(plan, *states, arguments.retry, queued);
  tell_stored(plan, todo.size() + queued.size());
  if (!queued.empty()) note(counted(queued.size(), "run") + " in Slurm already, job " + slurm->jobs());
  Result<void> done;
  if (!todo.empty() && !arguments.gather) {
    done = slurm->submit(todo);
    if (done) note(counted(todo.size(), "run") + " submitted; Slurm job " + slurm->jobs());
  }
  if (done && !arguments.no_wait && !arguments.gather) done = await_slurm(*slurm, store);
  if (slurm->is_open()) {
    const std::string jobs = slurm->jobs();
    left = counted(slurm->queued().size(), "run") + " left in Slurm (the same command gathers them, scancel " + jobs +
           " ends them)";
  }
  return done;
}

Result<void> launch(const SweepPlan& plan, const PolicyRegistry& registry, SweepStore& store,
                    const SweepArguments& arguments, SweepFiles& files, std::string& left) {
  if (is_on_slurm(plan.sweep)) return run_on_slurm(plan, store, arguments, left);
  const auto states = store.states();
  if (!states) return Unexpected{states.error()};
  const std::vector<std::uint64_t> todo = runs_to_do(plan, *states, arguments.retry);
  tell_stored(plan, todo.size());
  return run_with_progress(plan, registry, store, todo, files);
}

// The exit code, and what is said last.
int conclude(const SweepOutcome& outcome, const std::string& left) {
  const std::uint64_t bad = outcome.failed + outcome.timeouts;
  const std::string kept = left.empty() ? "what was stored is kept, the same command goes on" : left;
  if (Interruption::wanted() && outcome.missing > 0) {
    return complain(Interruption::name() + ": interrupted; " + kept, Interruption::exit_code());
  }
  const bool lost = left.empty() && outcome.missing > 0;
  const std::string missing = counted(outcome.missing, "run") + " not run; the same command submits them";
  if (bad > 0) {
    const std::string text = counted(bad, "run") + " without figures; --retry runs them again";
    return complain(lost ? missing + "; " + text : text, exit_failed);
  }
  if (!left.empty()) {
    note(left);
    return exit_done;
  }
  return lost ? complain(missing, exit_failed) : exit_done;
}

int run_sweep(const SweepPlan& plan, const PolicyRegistry& registry, const SweepArguments& arguments) {
  const Sweep& sweep = plan.sweep;
  if (sweep.out.empty()) return complain("no folder for the results; give --out FOLDER, or \"out\" in " + sweep.file);
  const auto folder = HeldFolder::open(sweep.out);
  if (!folder) return complain("--out: " + folder.error().to_string());
  auto store = SweepStore::open(path_in(sweep, sweep_database_name));
  if (!store) return complain(store.error(), exit_failed);

  // What stands there before the first run ends: a sweep that is killed leaves a folder that `report` reads.
  SweepFiles files(plan, *store);
  if (const auto begun = files.write(); !begun) {
    return complain(begun.error(), exit_failed);
  }
  const Interruption interruption;
  std::string left;
  const auto ran = launch(plan, registry, *store, arguments, files, left);
  const auto outcome = files.write();
  if (!ran) {
    return complain(
        ran.error().to_string() + "; " + (left.empty() ? "what was stored is kept, the same command goes on" : left),
        exit_failed);
  }
  if (!outcome) return complain(outcome.error(), exit_failed);
  show(outcome_line(*outcome) + "\n" + path_in(sweep, sweep_csv_name) + "\n");
  std::fflush(stdout);  // before the notes
  tell_failures(plan, *outcome);
  return conclude(*outcome, left);
}

// What an array task runs at the same time: as many as it was given processors.
std::uint64_t processors_of_task(const Sweep& sweep) {
  for (const char* const name : {"SLURM_CPUS_PER_TASK", sweep.threads == 0 ? "SLURM_CPUS_ON_NODE" : ""}) {
    const char* const text = std::getenv(name);
    const auto number = parse_exact<std::uint64_t>(text == nullptr ? "" : text);
    if (number && *number > 0) return std::min<std::uint64_t>(*number, most_threads);
  }
  return 1;
}

// The runs of an array task, each result in a file of its own: many nodes that write to one database over a network
// file system would destroy it (https://www.sqlite.org/faq.html#q5).
int run_array_task(const SweepPlan& plan, const PolicyRegistry& registry, std::uint64_t task) {
  const auto array = read_slurm_array(std::filesystem::path(plan.sweep.file).parent_path().string());
  if (!array) return complain(array.error());
  std::vector<std::uint64_t> todo;
  for (std::uint64_t i = 0; i < plan.runs.size(); ++i) {
    const std::string& key = plan.runs[i].key;
    if (task >= array->tasks.size() || array->tasks[task].size() != plan.runs.size() || array->tasks[task][i] != key) {
      return complain("the trace, another file or gpusched itself has changed since this was submitted", exit_failed);
    }
    std::error_code ignored;
    if (!std::filesystem::exists(array->results() + "/" + key + ".json", ignored)) todo.push_back(i);
  }
  const Interruption interruption;
  SweepProgress progress;
  progress.stop = &Interruption::wanted();
  const WorkerOptions options{.workers = processors_of_task(plan.sweep),
                              .time_limit_s = to_seconds(plan.sweep.time_limit),
                              .run_folders = plan.sweep.files ? path_in(plan.sweep, "runs") : "",
                              .begun_marks = array->results()};
  const auto ran =
      run_points(plan, registry, todo, options, progress, [&](std::uint64_t run, const SweepResult& result) {
        const auto point = plan.sweep.point(run);
        if (!point) return Result<void>{Unexpected{point.error()}};
        const SweepRow row{plan.runs[run].key, json_text(sweep_point_json(*point), -1), plan.program};
        return replace_file(array->results() + "/" + row.key + ".json", result_text(row, result));
      });
  if (!ran) return complain(ran.error(), exit_failed);
  if (progress.ended < todo.size()) return complain(Interruption::name() + ": interrupted", Interruption::exit_code());
  show(counted(progress.ended, "run") + " ended\n");
  return exit_done;
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
  if ((arguments.no_wait || arguments.gather) && !is_on_slurm(*sweep)) {
    return complain("--no-wait and --gather are for --launcher slurm");
  }
  if (is_on_slurm(*sweep) && sweep->out.empty()) {
    return complain("no folder for the results; give --out FOLDER, or \"out\" in " + sweep->file);
  }
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto plan = plan_sweep(*std::move(sweep), registry, !arguments.array_task);
  if (!plan) return complain(plan.error());
  if (is_on_slurm(plan->sweep)) {
    if (const auto options = sbatch_command(*plan, {}, 1); !options) return complain(options.error());
  }
  if (arguments.array_task) return run_array_task(*plan, registry, *arguments.array_task);
  return arguments.dry_run ? list_runs(*plan, arguments.retry) : run_sweep(*plan, registry, arguments);
}

}  // namespace

void add_sweep_command(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("sweep", "Replay every point of a grid, with resumption");
  const auto arguments = std::make_shared<SweepArguments>();
  command->add_option("file", arguments->file, "JSON file with base, grid and list; - for standard input");
  Sweep defaults;
  add_row_options(*command, sweep_own_fields(defaults), arguments->fields);
  command->add_flag("--dry-run", arguments->dry_run, "list the runs and which are stored, and stop");
  command->add_flag("--retry", arguments->retry, "run again what is stored without figures");
  command->add_flag("--no-wait", arguments->no_wait, "with slurm: submit and stop; the same command gathers later");
  command->add_flag("--gather", arguments->gather, "with slurm: gather what has ended and stop; nothing is submitted")
      ->excludes("--no-wait");
  command->add_option("--array-task", arguments->array_task, "")->group("");  // how tasks call this program
  command->add_flag("--print-schema", arguments->print_schema, "print the JSON Schema of such files and stop");
  command->footer(
      "FILE holds what every run has and the values that vary:\n"
      "  {\"base\": {\"trace\": \"jobs.csv\"},\n"
      "   \"grid\": {\"policy\": [\"fifo\", \"las\"], \"cluster\": [\"8x8\", \"16x8\"],\n"
      "            \"load\": [0.8, 1], \"seed\": {\"from\": 1, \"to\": 5}}}\n"
      "\nThe same command goes on where it was interrupted or killed.\n"
      "\nExamples:\n"
      "  gpusched sweep sweep.json --dry-run\n"
      "  gpusched sweep sweep.json --out results --threads 0 --time-limit 600\n"
      "  gpusched sweep sweep.json --out /shared/results --launcher slurm --slurm-options \"--time=1:00:00\"\n");
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
