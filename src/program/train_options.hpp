// SPDX-License-Identifier: Apache-2.0
/// The options of `gpusched train`, which two programs read: gpusched, to show its help and complete it, and
/// gpusched-train, which trains.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "src/program/field_options.hpp"
#include "src/program/option_checks.hpp"
#include "src/rl/train_config.hpp"

namespace gpusched {

/// Empty: not given.
struct TrainArguments {
  FieldArguments fields;  ///< of train_fields()
  std::string seeds, out, resume;
};

inline void add_train_options(CLI::App& command, TrainArguments& arguments) {
  TrainConfig defaults;
  add_field_options(command, train_fields(defaults), arguments.fields, "trace.path", false);
  const auto add = [&](const char* name, std::string& value, const char* meaning) {
    return command.add_option(name, value, meaning)->check(not_empty());
  };
  add("--seeds", arguments.seeds,
      "training seeds, as 1..10 or 1,2,5: a run of each, by default one of --seed; --threads of them side by side");
  add("--out", arguments.out,
      "folder of the run; by default runs/NAME-seedN; with --seeds runs/NAME-seeds, with a folder seed-N for each");
  const std::vector<CLI::Option*> of_new_runs = command.get_options([](const CLI::Option* option) {
    const std::string name = option->get_single_name();
    return name != "help" && name != "threads" && name != "set" && !name.starts_with("print-");
  });
  CLI::Option* resume =
      add("--resume", arguments.resume,
          "folder of a run, or of several seeds' runs, to go on with, exactly where it stopped; --set "
          "lengthens it: search.generations, ppo.iterations, their time_limit_s");
  for (CLI::Option* option : of_new_runs) resume->excludes(option);
  command.footer(
      "Without --config: direct search for an order that preempts; without TRACE too,\n"
      "on a synthetic one, about two minutes on two cores. Every key of a\n"
      "configuration can be given by --set.\n"
      "\nExamples:\n"
      "  gpusched train\n"
      "  gpusched train jobs.csv --cluster 8x8 --where 'vc=a' --out run\n"
      "  gpusched train --config experiments/rl/lublin.json --out run\n"
      "  gpusched train jobs.csv --cluster 8x8 --failures laws.json --restart-cost 60\n"
      "  gpusched train jobs.csv --cluster 8x8 --seeds 1..10 --threads 0 --out runs\n"
      "  gpusched train --resume run\n"
      "  gpusched train --resume run --set search.generations=80\n"
      "  gpusched replay jobs.csv --cluster 8x8 --policy fifo,rl:run\n");
}

/// The arguments of a training as words of a command line.
inline std::vector<std::string> words_of(const TrainArguments& arguments) {
  TrainConfig defaults;
  std::vector<std::string> words;
  const std::pair<const char*, const std::string&> texts[] = {
      {"--seeds", arguments.seeds}, {"--out", arguments.out}, {"--resume", arguments.resume}};
  for (const auto& [option, value] : texts) {
    if (!value.empty()) words.push_back(option + ("=" + value));
  }
  const std::vector<std::string> of_fields = words_of(arguments.fields, train_fields(defaults));
  words.insert(words.end(), of_fields.begin(), of_fields.end());
  return words;
}

}  // namespace gpusched
