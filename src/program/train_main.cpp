// SPDX-License-Identifier: Apache-2.0
// gpusched-train: a scheduler learned by PPO or direct search, into a folder that --policy rl:FOLDER runs. A program of
// its own, which `gpusched train` becomes, so that the other commands do not wait for LibTorch and its hundreds of
// libraries to load.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/atomic_file.hpp"
#include "src/base/build_info.hpp"
#include "src/base/interruption.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"
#include "src/base/output_folder.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/text_table.hpp"
#include "src/policies/burst/router_table.hpp"
#include "src/program/commands.hpp"
#include "src/program/field_options.hpp"
#include "src/program/help_formatter.hpp"
#include "src/program/progress_bar.hpp"
#include "src/program/train_options.hpp"
#include "src/program/usage_error.hpp"
#include "src/rl/failed_run.hpp"
#include "src/rl/ppo/ppo_trainer.hpp"
#include "src/rl/seed_runs.hpp"
#include "src/rl/train_config.hpp"
#include "src/rl/trainer.hpp"
#include "src/rl/training_inputs.hpp"
#include "src/sim/report.hpp"

namespace gpusched {
namespace {

// What was asked for: a configuration, and where each value of it comes from.
using AskedTraining = Asked<TrainConfig>;

// Error: --set of what a run that goes on cannot change.
Result<void> check_resumed_settings(const TrainConfig& config, const std::vector<std::string>& settings) {
  const std::string group = config.method == Method::ppo ? "ppo" : "search";
  const std::vector<std::string> allowed{group + (config.method == Method::ppo ? ".iterations" : ".generations"),
                                         group + ".time_limit_s", "threads"};
  for (const std::string& setting : settings) {
    const std::string key = setting.substr(0, setting.find('='));
    if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
    return Unexpected{
        Error{.message = "'" + key + "' cannot change in a run that goes on; expected one of " + joined(allowed, "|"),
              .field = "--set"}};
  }
  return {};
}

// Of a run that goes on: as it began, but for how long it lasts and the number of threads.
Result<AskedTraining> resumed(const TrainArguments& arguments) {
  const std::string path = arguments.resume + "/config.json";
  const auto text = read_text_file(path);
  if (!text) return Unexpected{text.error()};
  auto config = read_train_config(*text, path);
  if (!config) return Unexpected{config.error()};
  AskedTraining asked{.scenario = *std::move(config), .sources = {.file = path}};
  if (auto may = check_resumed_settings(asked.scenario, arguments.fields.settings); !may) {
    return Unexpected{may.error()};
  }
  const auto lasts = [&asked] {
    const TrainConfig& now = asked.scenario;
    return now.method == Method::ppo ? now.ppo.iterations : now.search.generations;
  };
  const auto before = lasts();
  if (auto set = set_given_fields(train_fields(asked.scenario), arguments.fields); !set) {
    return Unexpected{set.error()};
  }
  if (lasts() < before) {
    return Unexpected{Error{.message = "expected at least the " + std::to_string(before) +
                                       " that the run began with, " + "which lasts longer with more",
                            .field = "--set"}};
  }
  if (auto checked = check_train_config(asked.scenario); !checked) return Unexpected{checked.error()};
  return asked;
}

Result<std::set<std::string>> read_config_file(TrainConfig& config, const std::string& path) {
  const auto text = read_text_input(path);
  if (!text) return Unexpected{text.error()};
  const auto json = read_train_fields(config, *text, path);
  if (!json) return Unexpected{json.error()};
  return given_paths(train_fields(config), config_of(*json));
}

// Later wins: the file, or what `gpusched train` does without one; options.
Result<AskedTraining> load_config(const TrainArguments& arguments) {
  if (!arguments.resume.empty()) return resumed(arguments);
  auto asked = scenario_from<TrainConfig>(arguments.fields, train_fields, read_config_file);
  if (!asked) return asked;
  TrainConfig& config = asked->scenario;
  if (arguments.fields.config.empty()) {
    const bool own_trace = !config.trace.empty();
    config = default_train_config();
    if (own_trace) config.cluster.clear();  // what the trace states
    if (auto set = set_given_fields(train_fields(config), arguments.fields); !set) return Unexpected{set.error()};
  }
  if (auto checked = check_train_config(config); !checked) {
    return Unexpected{named_error(checked.error(), train_fields(config), asked->sources)};
  }
  return asked;
}

// Windows of a trace that nobody gave any for.
Result<void> choose_windows(const TrainArguments& arguments, std::uint32_t trace_jobs, TrainConfig& config) {
  if (!arguments.fields.config.empty() || !arguments.resume.empty()) return {};
  config.windows = default_windows(trace_jobs);
  return set_given_fields(train_fields(config), arguments.fields);
}

// What a run is called by: its configuration, or its trace.
std::string run_name(const TrainArguments& arguments, const TrainConfig& config) {
  const FieldArguments& fields = arguments.fields;
  const bool by_default = fields.config.empty() && !paths_given({}, fields).contains("trace.path");
  if (by_default) return "synthetic";
  const std::string& path = fields.config.empty() ? config.trace : fields.config;
  if (path == "-") return "stdin";
  return std::filesystem::path(path.substr(path.find(':') + 1)).stem().string();  // of synthetic:NAME, NAME
}

// Empty: one run, of the configuration's seed.
Result<Seeds> seeds_of(const TrainArguments& arguments) {
  if (!arguments.resume.empty() && holds_seeds(arguments.resume)) return read_seeds(arguments.resume);
  if (arguments.seeds.empty()) return Seeds();
  auto seeds = parse_seeds(arguments.seeds);
  if (!seeds) return unexpected("--seeds: " + seeds.error().message);
  return seeds;
}

// Without --out: runs/NAME-SEED, the first that is not there yet.
std::string new_folder(const TrainArguments& arguments, const TrainConfig& config) {
  if (!arguments.resume.empty()) return arguments.resume;
  if (!arguments.out.empty()) return arguments.out;
  const std::string base = "runs/" + run_name(arguments, config) +
                           (arguments.seeds.empty() ? "-seed" + std::to_string(config.seed) : "-seeds");
  std::string folder = base;
  for (int number = 2; std::filesystem::exists(folder); ++number) folder = base + "-" + std::to_string(number);
  return folder;
}

// Error: a model in that folder could not be named as rl:FOLDER where policies are read (SpecParser, routed_policy()).
Result<void> check_name(const std::string& folder) {
  if (folder.find_first_of(",{}]") == std::string::npos && routed_policy(folder).router.empty()) return {};
  return Unexpected{Error{.message = "expected a folder that --policy rl:FOLDER can name, without ',', '{', '}', ']' "
                                     "and ' via ', not '" +
                                     folder + "'",
                          .field = "--out"}};
}

// A run, or one of several seeds', that a new run into `folder` would go over; empty: none.
std::string run_in(const std::string& folder, const Seeds& seeds) {
  if (has_checkpoint(folder) || (seeds.empty() && holds_seeds(folder))) return folder;
  std::vector<Seeds> all{seeds};
  if (holds_seeds(folder)) {
    const auto earlier = read_seeds(folder);
    if (!earlier) return folder;
    all.push_back(*earlier);
  }
  for (const Seeds& some : all) {
    for (const std::uint64_t seed : some) {
      if (has_checkpoint(seed_folder(folder, seed))) return seed_folder(folder, seed);
    }
  }
  return "";
}

// Tells how far a run has come: on a terminal in one line that moves, as of other long work, but for each validation,
// whose line stays: the learning curve. Elsewhere each iteration has a line.
class ProgressLines {
 public:
  explicit ProgressLines(const TrainConfig& config)
      : method_(name_of(method_names, config.method)),
        heuristic_(name_of(heuristic_names, config.env.agenda.heuristic)) {}

  void operator()(const TrainProgress& progress) const {
    const double left = std::max(0.0, progress.seconds_left);
    const bool terminal = isatty(STDERR_FILENO) != 0;
    if (terminal) std::fputs("\r\033[K", stderr);
    if (terminal && !progress.validated) {
      const double spent = std::chrono::duration<double>(Clock::now() - begin_).count();
      std::fputs(progress_line(spent / std::max(spent + left, 1e-9), losses(progress), left).c_str(), stderr);
      return;
    }
    std::fprintf(stderr, "%s\n", line_of(progress).c_str());
  }

  /// Of one seed's run among several: its validations alone.
  void operator()(std::uint64_t seed, const TrainProgress& progress) const {
    if (progress.validated) {
      std::fprintf(stderr, "seed %llu  %s\n", static_cast<unsigned long long>(seed), line_of(progress).c_str());
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] std::string line_of(const TrainProgress& progress) const {
    std::string line = "iteration " + std::to_string(progress.iteration) + "/" + std::to_string(progress.iterations) +
                       "  " + losses(progress) + formatted("  %.0f steps/s", progress.steps_per_s);
    if (!std::isnan(progress.validation)) {
      line += formatted("  validation %.4g", progress.validation) + formatted(" (%.4g)", progress.validation_heuristic);
    }
    return line + "  " + human_duration(std::max(0.0, progress.seconds_left)) + " left";
  }

  // "ppo: loss 1.234 (fcfs 2.345)"
  [[nodiscard]] std::string losses(const TrainProgress& progress) const {
    return method_ + formatted(": loss %.4g", progress.metric) + " (" + heuristic_ +
           formatted(" %.4g)", progress.heuristic);
  }

  std::string method_, heuristic_;
  Clock::time_point begin_ = Clock::now();
};

// What is trained on, and into which folder.
struct Training {
  TrainConfig config;
  RunInput input;
  Seeds seeds;  // empty: one run, of config.seed
  std::string folder;
  bool resume = false;
};

void introduce(const Training& training) {
  const auto& agenda = training.config.env.agenda;
  for (const std::string& line : left_out_lines(training.input.trace.report)) note(line);
  const std::string of_seeds = training.seeds.empty() ? "" : "seeds " + seeds_text(training.seeds) + ", ";
  std::fprintf(stderr, "training on %u jobs of %s on %s, %s, run times known: %s; %sinto %s\n",
               training.input.trace.jobs.size(), visible_line(training.config.trace).c_str(),
               visible_line(training.input.cluster.name).c_str(),
               std::string(name_of(action_mode_names, agenda.mode)).c_str(),
               std::string(name_of(runtime_knowledge_names, agenda.knowledge)).c_str(), of_seeds.c_str(),
               visible_line(training.folder).c_str());
  std::fprintf(stderr,
               "untrained, the agent's best action is that of its heuristic, %s (in brackets); less is better\n",
               std::string(name_of(heuristic_names, agenda.heuristic)).c_str());
  if (training.config.test_at_end) {
    std::fprintf(stderr, "at the end it is compared with the plain policies, on jobs that it has not seen\n");
  }
}

int complain_of_run(const Error& error) {
  const bool input_is_bad = !error.field.empty() || !error.file.empty();
  return complain(error.to_string(), input_is_bad ? exit_bad_input : exit_failed);
}

// A new run keeps what its inputs are; one that goes on must have the same.
Result<void> keep_inputs(const Training& training) {
  const std::vector<TrainingInput> inputs = training_inputs(training.config, training.input.trace.report);
  if (!training.resume) {
    auto written = write_training_inputs(training.folder, inputs);
    return written ? written : failed_run(written.error());
  }
  if (knows_training_inputs(training.folder)) return check_training_inputs(training.folder, inputs);
  note(training.folder + " is of an earlier version, which kept no hashes of its input files: they may have changed");
  return {};
}

// The first SIGINT, SIGTERM or SIGHUP ends the program at once, with a line: whatever the runs were doing, they can go
// on.
class EndsWithALine {
 public:
  explicit EndsWithALine(const std::string& folder)
      : watcher_([folder](const std::stop_token& done) {
          while (!done.stop_requested()) {
            if (Interruption::wanted()) {
              const auto held = hold_replacements();
              complain(Interruption::name() + ": interrupted; gpusched train --resume " + folder + " goes on",
                       Interruption::exit_code());
              std::_Exit(Interruption::exit_code());
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
          }
        }) {}

 private:
  Interruption interruption_;
  std::jthread watcher_;
};

int run_one(const Training& training) {
  const TrainConfig& config = training.config;
  const bool begun = has_checkpoint(training.folder);
  if (training.resume && !begun) note(training.folder + " has no checkpoint yet; the run begins anew");
  const auto summary = [&] {
    const EndsWithALine interruption(training.folder);
    return train(config, training.input.trace.jobs, training.input.cluster, training.folder, begun,
                 ProgressLines(config), train_by_ppo);
  }();
  if (!summary && isatty(2) != 0) std::fputc('\n', stderr);
  if (!std::filesystem::exists(training.folder + "/config.json")) forget_training_inputs(training.folder);
  if (!summary) return complain_of_run(summary.error());
  std::printf(
      "%s: %u iterations, %llu steps in %.0f s on %s; best at iteration %u: validation loss %.6g a job, the "
      "heuristic %.6g\n",
      training.folder.c_str(), summary->iterations, static_cast<unsigned long long>(summary->steps), summary->seconds,
      summary->device.c_str(), summary->best_iteration, summary->best_validation, summary->validation_heuristic);
  for (const ScaleReport& on : summary->scales) {
    std::printf("on %g times the cluster its validation loss is %.6g times the heuristic's\n", on.scale, on.ratio);
  }
  for (const BoundReport& bound : summary->bounds) {
    std::printf("%s is %.6g times that of %s in the validation windows; at most %.6g was asked for%s\n",
                bound.figure.c_str(), bound.ratio, config.constraints.reference.c_str(), bound.most,
                bound.ratio > bound.most ? ": NOT reached" : "");
  }
  if (summary->held_out) show("\n" + held_out_text(*summary->held_out, result_style()));
  return exit_done;
}

// Its end: the table, the files, and a line on the seeds that failed.
int deliver(const SeedRuns& runs) {
  const std::size_t ended = runs.losses().size();
  if (ended == 0) return complain_of_run(runs.runs.front().summary.error());
  auto written = replace_file(runs.folder + "/aggregate.csv", seeds_csv(runs));
  if (written) written = replace_file(runs.folder + "/aggregate.json", seeds_json(runs));
  if (!written) return complain(written.error(), exit_failed);
  show(seed_table(runs, result_style()));
  if (runs.held_out && !*runs.held_out) return complain(runs.held_out->error(), exit_failed);
  if (ended == runs.runs.size()) return exit_done;
  return complain(std::to_string(runs.runs.size() - ended) + " of " + counted(runs.runs.size(), "seed") +
                      " failed, of which the table says why; gpusched train --resume " + runs.folder +
                      " tries them again",
                  exit_failed);
}

int run_seeds(const Training& training) {
  // Whose runs these are first: without it a resumed folder would be that of one run.
  auto kept = training.resume ? Result<void>() : write_seeds(training.folder, training.seeds);
  if (kept) kept = replace_file(training.folder + "/config.json", train_config_json(training.config));
  if (!kept) return complain(kept.error(), exit_failed);
  const ProgressLines lines(training.config);
  const auto runs = [&] {
    const EndsWithALine interruption(training.folder);
    return train_seeds(training.config, training.seeds, training.input.trace.jobs, training.input.cluster,
                       training.folder, training.resume, lines, train_by_ppo);
  }();
  return deliver(runs);
}

int run_training(const TrainArguments& arguments) {
  auto seeds = seeds_of(arguments);
  if (!seeds) return complain(seeds.error());
  auto asked = load_config(arguments);
  if (!asked) return complain(asked.error());
  if (arguments.fields.print_config) {
    print(train_config_json(asked->scenario));
    return exit_done;
  }
  TrainConfig& config = asked->scenario;
  const auto refuse = [&](const Error& error) { return asked->complain_of(error, train_fields); };
  if (auto known = check_method(config, build_info().with_torch); !known) return complain(known.error(), exit_failed);
  const std::string path = new_folder(arguments, config);
  if (arguments.resume.empty()) {
    if (auto named = check_name(path); !named) return complain(named.error());
  }
  auto input = load_train_input(config);
  if (!input) return refuse(input.error());
  if (auto chosen = choose_windows(arguments, input->trace.jobs.size(), config); !chosen) {
    return complain(chosen.error());
  }
  if (auto good = check_training(config, input->trace.jobs, input->cluster); !good) return refuse(good.error());
  const Training training{.config = config,
                          .input = *std::move(input),
                          .seeds = *std::move(seeds),
                          .folder = path,
                          .resume = !arguments.resume.empty()};
  const auto lock = OutputFolder::open(path, "");  // of this run alone until it ends
  if (!lock) return complain("--out: " + lock.error().to_string());
  if (const std::string run = run_in(path, training.seeds); !training.resume && !run.empty()) {
    return complain("--out: " + run + " holds a training run already; --resume goes on with it");
  }
  if (auto kept = keep_inputs(training); !kept) return complain_of_run(kept.error());
  introduce(training);
  return training.seeds.empty() ? run_one(training) : run_seeds(training);
}

int run(int argc, char** argv) {
  CLI::App program("Learn a scheduler by PPO, or by direct search over a linear index.", "gpusched train");
  program.formatter(std::make_shared<HelpFormatter>());
  TrainArguments arguments;
  add_train_options(program, arguments);
  if (const std::string wrong = missing_value(program, {argv + 1, argv + argc}); !wrong.empty()) return complain(wrong);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_parse_error(program, error);
  }
  if (arguments.fields.print_schema) {
    print(train_schema());
    return exit_done;
  }
  return run_training(arguments);
}

}  // namespace
}  // namespace gpusched

int main(int argc, char** argv) {
  return gpusched::run_guarded([&] { return gpusched::run(argc, argv); });
}
