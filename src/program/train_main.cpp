// SPDX-License-Identifier: Apache-2.0
// gpusched-train: a scheduler learned by PPO or direct search, into a folder that --policy rl:FOLDER runs. A program of
// its own, which `gpusched train` becomes, so that the other commands do not wait for LibTorch and its hundreds of
// libraries to load.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>

#include "src/base/number_text.hpp"
#include "src/base/output_folder.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/text_table.hpp"
#include "src/program/commands.hpp"
#include "src/program/help_formatter.hpp"
#include "src/program/progress_bar.hpp"
#include "src/program/train_options.hpp"
#include "src/program/usage_error.hpp"
#include "src/rl/direct_search.hpp"
#ifdef GPUSCHED_HAS_PPO
#include "src/rl/ppo/ppo_trainer.hpp"
#endif
#include "src/rl/train_config.hpp"
#include "src/rl/trainer.hpp"
#include "src/sim/report.hpp"

namespace gpusched {
namespace {

#ifdef GPUSCHED_HAS_PPO
constexpr TrainingMethod* ppo = train_by_ppo;
#else
constexpr TrainingMethod* ppo = nullptr;  // check_method() says so
#endif

Unexpected both_read_standard_input() {
  return unexpected("--config and --trace: both ask for standard input; give one of them as a file");
}

Result<TrainConfig> read_config(const TrainArguments& arguments) {
  if (!arguments.resume.empty()) {
    const std::string path = arguments.resume + "/config.json";
    const auto text = read_text_file(path);
    return text ? read_train_config(*text, path) : Unexpected{text.error()};
  }
  if (!arguments.config.empty()) {
    if (arguments.config == "-" && arguments.trace == "-") return both_read_standard_input();
    const auto text = read_text_input(arguments.config);
    auto config = text ? read_train_config(*text, arguments.config, arguments.trace) : Unexpected{text.error()};
    if (config && arguments.config == "-" && config->trace == "-") return both_read_standard_input();
    return config;
  }
  TrainConfig config = default_train_config();
  if (arguments.trace.empty()) return config;
  config.trace = arguments.trace;
  config.cluster.clear();  // what the trace states
  return config;
}

// Later wins: file, options.
Result<TrainConfig> load_config(const TrainArguments& arguments) {
  auto config = read_config(arguments);
  if (!config) return config;
  if (!arguments.format.empty()) config->trace_format = arguments.format;
  if (!arguments.columns.empty()) config->trace_columns = arguments.columns;
  if (!arguments.where.empty()) config->trace_where = arguments.where;
  if (!arguments.cluster.empty()) config->cluster = arguments.cluster;
  config->drop_bad_rows = config->drop_bad_rows || arguments.drop_bad_rows;
  if (arguments.threads) config->threads = *arguments.threads;
  if (arguments.init.empty()) return config;
  config->init = model_folder(arguments.init);
  return config;
}

// What a run is called by: its configuration, or its trace.
std::string run_name(const TrainArguments& arguments) {
  const std::string& path = arguments.config.empty() ? arguments.trace : arguments.config;
  if (path.empty()) return "synthetic";
  if (path == "-") return "stdin";
  return std::filesystem::path(path.substr(path.find(':') + 1)).stem().string();  // of synthetic:NAME, NAME
}

// Without --out: runs/NAME-SEED, the first that is not there yet.
std::string new_folder(const TrainArguments& arguments, const TrainConfig& config) {
  if (!arguments.resume.empty()) return arguments.resume;
  if (!arguments.out.empty()) return arguments.out;
  const std::string base = "runs/" + run_name(arguments) + "-seed" + std::to_string(config.seed);
  std::string folder = base;
  for (int number = 2; std::filesystem::exists(folder); ++number) folder = base + "-" + std::to_string(number);
  return folder;
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
    std::string line = "iteration " + std::to_string(progress.iteration) + "/" + std::to_string(progress.iterations) +
                       "  " + losses(progress) + formatted("  %.0f steps/s", progress.steps_per_s);
    if (!std::isnan(progress.validation)) {
      line += formatted("  validation %.4g", progress.validation) + formatted(" (%.4g)", progress.validation_heuristic);
    }
    std::fprintf(stderr, "%s  %s left\n", line.c_str(), human_duration(left).c_str());
  }

 private:
  using Clock = std::chrono::steady_clock;

  // "ppo: loss 1.234 (fcfs 2.345)"
  [[nodiscard]] std::string losses(const TrainProgress& progress) const {
    return method_ + formatted(": loss %.4g", progress.metric) + " (" + heuristic_ +
           formatted(" %.4g)", progress.heuristic);
  }

  std::string method_, heuristic_;
  Clock::time_point begin_ = Clock::now();
};

int run_training(const TrainArguments& arguments) {
  auto config = load_config(arguments);
  if (!config) return complain(config.error());
  if (auto known = check_method(*config, ppo); !known) return complain(known.error(), exit_failed);
  const bool configured = !arguments.config.empty() || !arguments.resume.empty();
  const auto input = configured ? load_train_input(*config) : load_train_input(*config, InputFieldNames{});
  if (!input) return complain(input.error());
  if (!configured) config->windows = default_windows(input->trace.jobs.size());
  const std::string folder = new_folder(arguments, *config);
  const auto lock = OutputFolder::open(folder, "");  // of this run alone until it ends
  if (!lock) return complain("--out: " + lock.error().to_string());
  const bool used =
      std::filesystem::exists(folder + "/checkpoint.bin") || std::filesystem::exists(folder + "/" + search_state_file);
  if (arguments.resume.empty() && used) {
    return complain("--out: " + folder + " holds a training run already; --resume goes on with it");
  }
  const auto& agenda = config->env.agenda;
  const JobTable& jobs = input->trace.jobs;
  for (const std::string& line : left_out_lines(input->trace.report)) note(line);
  std::fprintf(stderr, "training on %u jobs of %s on %s, %s, run times known: %s; into %s\n", jobs.size(),
               visible_line(config->trace).c_str(), visible_line(input->cluster.name).c_str(),
               std::string(name_of(action_mode_names, agenda.mode)).c_str(),
               std::string(name_of(runtime_knowledge_names, agenda.knowledge)).c_str(), visible_line(folder).c_str());
  std::fprintf(stderr,
               "untrained, the agent's best action is that of its heuristic, %s (in brackets); less is better\n",
               std::string(name_of(heuristic_names, agenda.heuristic)).c_str());
  if (config->test_at_end) {
    std::fprintf(stderr, "at the end it is compared with the plain policies, on jobs that it has not seen\n");
  }
  if (!arguments.resume.empty() && !used) note(folder + " has no checkpoint yet; the run begins anew");
  const auto summary = train(*config, jobs, input->cluster, folder, used, ProgressLines(*config), ppo);
  if (!summary && isatty(2) != 0) std::fputc('\n', stderr);
  if (!summary) {
    const bool input_is_bad = !summary.error().field.empty() || !summary.error().file.empty();
    return complain(summary.error().to_string(), input_is_bad ? exit_bad_input : exit_failed);
  }
  std::printf(
      "%s: %u iterations, %llu steps in %.0f s on %s; best at iteration %u: validation loss %.6g a job, the "
      "heuristic %.6g\n",
      folder.c_str(), summary->iterations, static_cast<unsigned long long>(summary->steps), summary->seconds,
      summary->device.c_str(), summary->best_iteration, summary->best_validation, summary->validation_heuristic);
  for (const BoundReport& bound : summary->bounds) {
    std::printf("%s is %.6g times that of %s in the validation windows; at most %.6g was asked for%s\n",
                std::string(bounded_figure_names[bound.figure]).c_str(), bound.ratio,
                config->constraints.reference.c_str(), bound.most, bound.ratio > bound.most ? ": NOT reached" : "");
  }
  if (summary->held_out) show("\n" + held_out_text(*summary->held_out));
  return exit_done;
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
  return run_training(arguments);
}

}  // namespace
}  // namespace gpusched

int main(int argc, char** argv) {
  return gpusched::run_guarded([&] { return gpusched::run(argc, argv); });
}
