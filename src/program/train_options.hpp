// SPDX-License-Identifier: Apache-2.0
/// The options of `gpusched train`, which two programs read: gpusched, to show its help and complete it, and
/// gpusched-train, which trains.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/program/option_checks.hpp"

namespace gpusched {

struct TrainArguments {
  std::string config, out, resume;
  std::optional<std::uint32_t> threads;
};

inline void add_train_options(CLI::App& command, TrainArguments& arguments) {
  auto* config =
      command.add_option("--config", arguments.config,
                         "JSON file (experiments/rl/*.json); without it, a synthetic trace on a small cluster, "
                         "for about four minutes");
  command.add_option("--out", arguments.out, "folder of the run; default runs/NAME-seedN");
  command.add_option("--resume", arguments.resume, "folder of a run to go on with, exactly where it stopped")
      ->excludes(config);
  command
      .add_option("--threads", arguments.threads,
                  "threads that play episodes, instead of what the configuration says; changes no result")
      ->check(whole_number_from(1, 1024));
}

/// The same arguments as words of a command line.
inline std::vector<std::string> words_of(const TrainArguments& arguments) {
  std::vector<std::string> words;
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  add("--config", arguments.config);
  add("--out", arguments.out);
  add("--resume", arguments.resume);
  add("--threads", arguments.threads ? std::to_string(*arguments.threads) : "");
  return words;
}

}  // namespace gpusched
