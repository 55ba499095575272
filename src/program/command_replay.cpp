// SPDX-License-Identifier: Apache-2.0
// gpusched replay: a trace through one policy or several, side by side.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/interruption.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/process_info.hpp"
#include "src/base/wrapped_text.hpp"
#include "src/program/commands.hpp"
#include "src/program/field_options.hpp"
#include "src/program/output_option.hpp"
#include "src/program/progress_bar.hpp"
#include "src/sim/replay.hpp"
#include "src/sim/report.hpp"
#include "src/sim/scenario.hpp"
#include "src/world/cluster_reader.hpp"

namespace gpusched {
namespace {

// The policies without a result and why, and what became of the others: one line.
std::string missing_line(const std::vector<MissingPolicy>& missing, const std::vector<PolicyRun>& kept,
                         const std::string& folder) {
  std::string line;
  for (const MissingPolicy& policy : missing) {
    line += (line.empty() ? "policy " : "; policy ") + policy.policy + " " + policy.why;
  }
  if (kept.empty()) return line + "; no results were written";
  std::vector<std::string> names;
  for (const PolicyRun& run : kept) names.push_back(run.policy);
  return line + "; the results of " + joined(names, ", ") + (folder.empty() ? " are kept" : " are in " + folder);
}

// The files of each policy, written as soon as it has finished: whatever ends the program later, they are kept.
class PolicyFiles {
 public:
  PolicyFiles(OutputFolder& folder, const ReplayInput& input) : folder_(&folder), input_(&input) {}

  // False once something could not be written.
  bool write(PolicyRun& run) {
    {
      const std::lock_guard lock(mutex_);
      if (written_) written_ = write_policy_files(*folder_, *input_, run);
      if (!written_) return false;
    }
    run.engine.reset();  // the files hold what they were kept for
    run.intervals = {};
    run.estimates = {};
    run.gpu_log.reset();
    run.timeline.reset();
    run.log_file = {};
    return true;
  }
  [[nodiscard]] const Result<void>& written() const { return written_; }

 private:
  OutputFolder* folder_;
  const ReplayInput* input_;
  std::mutex mutex_;
  Result<void> written_;
};

// Runs every policy; a signal ends those that have not finished.
Result<std::vector<PolicyRun>> run_policies(const Scenario& scenario, const ReplayInput& input,
                                            const PolicyRegistry& registry, std::optional<PolicyFiles>& files) {
  const bool to_files = files.has_value();
  ReplayProgress progress;
  progress.stop = &Interruption::wanted();
  if (to_files) {
    progress.finished = [&](PolicyRun& run) {
      if (!files->write(run)) progress.failed = true;
    };
  }
  const std::uint64_t jobs = input.trace.jobs.size();
  // Policies differ much in speed: the time left is that of the one at hand, where they run one by one.
  const std::uint64_t stretch = scenario.threads == 1 || input.specs.size() == 1 ? jobs : 0;
  const ProgressBar bar(progress.finished_jobs, jobs * input.specs.size(), stretch, [&] {
    const auto running = progress.running.first();
    return running ? input.specs[*running].text : "";
  });
  return run_replay(input, registry, scenario.threads,
                    {.splits = to_files || scenario.split != "none",
                     .job_files = to_files,
                     .gpu_log = scenario.trace_events,
                     .timeline = scenario.timeline,
                     .decision_times = scenario.decision_times,
                     .waits = scenario.waits},
                    progress);
}

// The results to standard output, and what they were made from.
int report(const Scenario& scenario, const ReplayInput& input, const std::vector<PolicyRun>& runs,
           const Execution& execution, std::optional<OutputFolder>& folder) {
  if (folder) {
    if (auto written = write_manifest(*folder, scenario, input, runs, execution); !written) {
      return complain(written.error().to_string(), exit_failed);
    }
  }
  const std::string text = scenario.json ? json_report(scenario, input, runs, execution)
                                         : comparison_table(scenario, input, runs, result_style());
  scenario.json ? print(text) : show(text);
  std::fflush(stdout);  // before the notes
  for (const std::string& line : report_warnings(input, runs)) note(line);
  return exit_done;
}

int replay(const Asked<Scenario>& asked) {
  const Scenario& scenario = asked.scenario;
  const auto refuse = [&](const Error& error) { return asked.complain_of(error, scenario_fields); };
  Execution execution{.started = utc_now()};
  const auto begin = std::chrono::steady_clock::now();
  const PolicyRegistry registry = PolicyRegistry::standard();
  if (auto checked = check_scenario(scenario); !checked) return refuse(checked.error());
  auto input = load_replay(scenario, registry);
  if (!input) return refuse(input.error());
  std::optional<OutputFolder> folder;
  if (const int code = open_folder(scenario.out, folder); code != exit_done) return code;

  const Interruption interruption;
  std::optional<PolicyFiles> files;
  if (folder) files.emplace(*folder, *input);
  auto runs = run_policies(scenario, *input, registry, files);
  if (!runs) return refuse(in_option("policies", runs.error()));
  if (files && !files->written()) return complain(files->written().error(), exit_failed);
  execution.missing = take_missing(*runs);
  execution.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  execution.peak_memory_bytes = peak_memory_bytes();
  const int code = runs->empty() ? exit_done : report(scenario, *input, *runs, execution, folder);
  if (code != exit_done || execution.missing.empty()) return code;
  const std::string line = missing_line(execution.missing, *runs, scenario.out);
  if (!Interruption::wanted()) return complain(line, exit_failed);
  return complain(Interruption::name() + ": " + line, Interruption::exit_code());
}

std::string names_for_help() {
  std::string text = "TRACE and --policy are needed, here or in the file of --config.\n\nClusters by name:\n";
  for (const BuiltinCluster& cluster : builtin_clusters()) text += "  " + cluster.name + "  " + cluster.summary + "\n";
  std::vector<std::string> formats;
  for (const TraceFormatInfo& format : trace_formats()) formats.push_back(format.name);
  text += "Trace formats:\n  " + wrapped(joined(formats, " "), terminal_columns - 2, 2);
  return text +
         "\nExamples:\n"
         "  gpusched replay jobs.csv --cluster 352x8 --policy fifo,sjf,srtf\n"
         "  gpusched replay log.swf.gz --policy fifo,fifo+easy --json > result.json\n"
         "  ssh lab cat jobs.csv.gz | gpusched replay - --cluster 8x8 --policy fifo\n"
         "  gpusched replay --config run.json --set seed=7 --out results\n"
         "  gpusched replay --config results/manifest.json --out again\n"
         "  gpusched replay mine.csv --columns submit=t,gpus=n,duration=d \\\n"
         "                  --cluster 64 --policy srtf\n";
}

}  // namespace

void add_replay_command(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("replay", "Run a trace through policies and compare them");
  const auto arguments = std::make_shared<FieldArguments>();
  Scenario defaults;
  add_field_options(*command, scenario_fields(defaults), *arguments, "trace.path");
  add_quiet_option(*command);
  const auto renamed = [arguments](const std::string& text) { arguments->flags["threads"] = {text}; };
  auto* jobs = command->add_option_function<std::string>("--jobs", renamed);
  jobs->group("");  // hidden
  const auto* threads = command->get_option("--threads");
  command->footer(names_for_help());
  command->callback([arguments, jobs, threads, &exit_code] {
    if (jobs->count() > 0 && threads->count() > 0) {
      exit_code = complain("--threads and --jobs exclude each other");
      return;
    }
    if (jobs->count() > 0) note("--jobs is called --threads now");
    if (arguments->print_schema) {
      std::fputs(scenario_schema().c_str(), stdout);
      return;
    }
    const auto asked = scenario_from<Scenario>(*arguments, scenario_fields, read_scenario_file);
    if (!asked) {
      exit_code = complain(asked.error());
    } else if (arguments->print_config) {
      std::fputs(scenario_json(asked->scenario, true).c_str(), stdout);
    } else {
      exit_code = replay(*asked);
    }
  });
}

}  // namespace gpusched
