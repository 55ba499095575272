// SPDX-License-Identifier: Apache-2.0
/// The options of `gpusched train`, which two programs read: gpusched, to show its help and complete it, and
/// gpusched-train, which trains.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/program/option_checks.hpp"

namespace gpusched {

/// Empty: not given.
struct TrainArguments {
  std::string trace, format, columns, where, qos, cluster;
  bool drop_bad_rows = false, backlog = false;
  std::string config, seeds, out, resume, init;
  std::optional<std::uint32_t> threads;
};

inline void add_train_options(CLI::App& command, TrainArguments& arguments) {
  const auto add = [&](const char* names, std::string& value, const char* meaning) {
    return command.add_option(names, value, meaning)->check(not_empty());
  };
  std::vector<CLI::Option*> of_new_runs{
      add("trace,--trace", arguments.trace,
          "trace file, - for standard input, or synthetic:NAME; by default the configuration's"),
      add("--config", arguments.config,
          "JSON file (experiments/rl/*.json), - for standard input; without it, direct search for an order that "
          "preempts; without TRACE too, on a synthetic one, about two minutes on two cores"),
      add("--format", arguments.format, "format of the trace; by default auto, which looks at its first lines"),
      add("--columns", arguments.columns, "columns of a csv: submit=NAME[:UNIT],gpus=NAME,duration=NAME,..."),
      add("--where", arguments.where, "which jobs to read: COLUMN=VALUE[|VALUE...][,...], also != < <= > >="),
      command.add_flag("--drop-bad-rows", arguments.drop_bad_rows,
                       "leave out rows with bad values, counted, instead of refusing the trace"),
      command.add_flag("--backlog", arguments.backlog,
                       "keep jobs that had not ended when the log was written; their time limit is their run time"),
      add("--qos", arguments.qos,
          "priorities by quality of service, which the policies priority and slurm mind: NAME=WEIGHT[,...]"),
      add("--cluster", arguments.cluster,
          "NAME, FILE, NODESxGPUS or GPUS; by default the configuration's, or what the trace states"),
      add("--init", arguments.init,
          "trained model to start from, a folder or rl:FOLDER; by default the configuration's, or none"),
      add("--seeds", arguments.seeds,
          "training seeds, as 1..10 or 1,2,5: a run of each, by default one of the configuration's seed; --threads "
          "of them side by side")};
  of_new_runs.push_back(add(
      "--out", arguments.out,
      "folder of the run; by default runs/NAME-seedN; with --seeds runs/NAME-seeds, with a folder seed-N for each"));
  CLI::Option* resume = add("--resume", arguments.resume,
                            "folder of a run, or of several seeds' runs, to go on with, exactly where it stopped");
  for (CLI::Option* option : of_new_runs) resume->excludes(option);
  command
      .add_option("--threads", arguments.threads,
                  "threads that play episodes, 0: one for each processor; by default what the configuration "
                  "says, or 1; changes no result")
      ->check(number_of_threads());
  command.footer(
      "Examples:\n"
      "  gpusched train\n"
      "  gpusched train jobs.csv --cluster 8x8 --where 'vc=a' --out run\n"
      "  gpusched train --config experiments/rl/lublin.json --out run\n"
      "  gpusched train jobs.csv --cluster 8x8 --seeds 1..10 --threads 0 --out runs\n"
      "  gpusched train --resume run\n"
      "  gpusched replay jobs.csv --cluster 8x8 --policy fifo,rl:run\n");
}

/// The arguments of a training as words of a command line.
inline std::vector<std::string> words_of(const TrainArguments& arguments) {
  std::vector<std::string> words;
  const std::pair<const char*, const std::string&> texts[] = {
      {"--trace", arguments.trace},   {"--format", arguments.format}, {"--columns", arguments.columns},
      {"--where", arguments.where},   {"--qos", arguments.qos},       {"--cluster", arguments.cluster},
      {"--config", arguments.config}, {"--seeds", arguments.seeds},   {"--out", arguments.out},
      {"--resume", arguments.resume}, {"--init", arguments.init}};
  for (const auto& [option, value] : texts) {
    if (!value.empty()) words.push_back(option + ("=" + value));
  }
  if (arguments.drop_bad_rows) words.emplace_back("--drop-bad-rows");
  if (arguments.backlog) words.emplace_back("--backlog");
  if (arguments.threads) words.push_back("--threads=" + std::to_string(*arguments.threads));
  return words;
}

}  // namespace gpusched
