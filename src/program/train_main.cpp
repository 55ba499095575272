// SPDX-License-Identifier: Apache-2.0
// gpusched-train: a scheduler learned by PPO or direct search, into a folder that --policy rl:FOLDER runs. A program of
// its own, which `gpusched train` becomes, so that the other commands do not wait for LibTorch and its hundreds of
// libraries to load.
#include <unistd.h>

#include <algorithm>
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

Result<TrainConfig> read_config(const std::string& path) {
  const auto text = read_text_file(path);
  if (!text) return Unexpected{text.error()};
  return read_train_config(*text, path);
}

Result<TrainConfig> load_config(const TrainArguments& arguments) {
  const std::string path = !arguments.resume.empty() ? arguments.resume + "/config.json" : arguments.config;
  auto config = path.empty() ? Result<TrainConfig>(default_train_config()) : read_config(path);
  if (config && arguments.threads) config->threads = *arguments.threads;
  return config;
}

// Without --out: runs/CONFIG-SEED, the first that is not there yet.
std::string new_folder(const TrainArguments& arguments, const TrainConfig& config) {
  if (!arguments.resume.empty()) return arguments.resume;
  if (!arguments.out.empty()) return arguments.out;
  const std::string stem =
      arguments.config.empty() ? "synthetic" : std::filesystem::path(arguments.config).stem().string();
  const std::string base = "runs/" + stem + "-seed" + std::to_string(config.seed);
  std::string folder = base;
  for (int number = 2; std::filesystem::exists(folder); ++number) folder = base + "-" + std::to_string(number);
  return folder;
}

// On a terminal one line that moves, but for each validation, which stays: the learning curve.
void print_progress(const TrainProgress& progress) {
  const bool terminal = isatty(2) != 0;
  const auto left = static_cast<long>(std::max(0.0, progress.seconds_left));
  std::fprintf(stderr, "%siteration %u/%u  %.0f steps/s  loss %.4g (heuristic %.4g)", terminal ? "\r\033[K" : "",
               progress.iteration, progress.iterations, progress.steps_per_s, progress.metric, progress.heuristic);
  if (!std::isnan(progress.validation)) {
    std::fprintf(stderr, "  validation %.4g (%.4g)", progress.validation, progress.validation_heuristic);
  }
  std::fprintf(stderr, "  %ld:%02ld left%s", left / 60, left % 60, terminal && !progress.validated ? "" : "\n");
}

void print_held_out(const HeldOut& held_out, Heuristic own) {
  TextTable table({"order", "loss a job", "agent against it", "95% interval", "the agent is"});
  for (const HeldOutRow& row : held_out.rows) {
    const std::string name(name_of(heuristic_names, row.heuristic));
    table.add({name + (row.heuristic == own ? " (where it began)" : ""), formatted("%.4g", row.loss),
               signed_percent_text((held_out.agent - row.loss) / row.loss),
               row.interval ? "[" + signed_percent_text(row.interval->relative.low) + ", " +
                                  signed_percent_text(row.interval->relative.high) + "]"
                            : "",
               row.verdict});
  }
  std::printf("\non %u windows that it has not seen, the agent: loss %.4g a job\n\n%s", held_out.windows,
              held_out.agent, table.text().c_str());
}

int run_training(const TrainArguments& arguments) {
  const auto config = load_config(arguments);
  if (!config) return complain(config.error());
  if (auto known = check_method(*config, ppo); !known) return complain(known.error(), exit_failed);
  const auto input = load_train_input(*config);
  if (!input) return complain(input.error());
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
               config->trace.c_str(), input->cluster.name.c_str(),
               std::string(name_of(action_mode_names, agenda.mode)).c_str(),
               std::string(name_of(runtime_knowledge_names, agenda.knowledge)).c_str(), folder.c_str());
  std::fprintf(stderr,
               "untrained, the agent's best action is that of its heuristic, %s (in brackets); less is better\n",
               std::string(name_of(heuristic_names, agenda.heuristic)).c_str());
  if (!arguments.resume.empty() && !used) note(folder + " has no checkpoint yet; the run begins anew");
  const auto summary = train(*config, jobs, input->cluster, folder, used, print_progress, ppo);
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
  if (summary->held_out) print_held_out(*summary->held_out, agenda.heuristic);
  return exit_done;
}

int run(int argc, char** argv) {
  CLI::App program("Learn a scheduler by PPO, or by direct search over a linear index.", "gpusched train");
  program.formatter(std::make_shared<HelpFormatter>());
  TrainArguments arguments;
  add_train_options(program, arguments);
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
