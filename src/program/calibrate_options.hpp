// SPDX-License-Identifier: Apache-2.0
/// The options of `gpusched calibrate`, which two programs read: gpusched, to show its help and complete it, and
/// gpusched-calibrate, which measures.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "src/program/option_checks.hpp"

namespace gpusched {

struct CalibrateArguments {
  std::string backend = "cpu";
  std::string out;
  std::string checkpoint_folder;  ///< empty: not given
  std::uint64_t seed = 1;
  std::uint32_t threads = 0;
  bool quick = false;
  bool job_mix = false;
};

inline void add_calibrate_options(CLI::App& command, CalibrateArguments& arguments) {
  command.add_option("--backend", arguments.backend, "cuda, cpu, or analytic (a made-up device of known truth)")
      ->check(CLI::IsMember({"cuda", "cpu", "analytic"}))
      ->capture_default_str();
  command.add_option("--out", arguments.out, "the profile (JSON); raw samples go to FILE.samples.csv")->required();
  command.add_flag("--quick", arguments.quick, "under a minute instead of under five");
  command.add_flag("--job-mix", arguments.job_mix,
                   "also run 16 jobs as processes under three schedules and compare with the simulator");
  command.add_option("--checkpoint-folder", arguments.checkpoint_folder, "also time checkpoints in this folder")
      ->check(CLI::ExistingDirectory);
  command
      .add_option("--threads", arguments.threads,
                  "threads of the cpu backend, at most one for each processor; 0: so many")
      ->check(number_of_threads());
  command.add_option("--seed", arguments.seed, "seed of sizes, data and resampling")
      ->check([](const std::string& text) {
        return text.starts_with('-') ? "expected a whole number, 0 or more, not '" + text + "'" : std::string();
      })
      ->capture_default_str();
  command.footer(
      "Ctrl-C keeps what was measured; the same command goes on from there.\n"
      "\nExamples:\n"
      "  gpusched calibrate --backend cpu --quick --out this-machine.json\n"
      "  gpusched calibrate --backend cuda --out this-gpu.json \\\n"
      "                     --checkpoint-folder /scratch\n"
      "  gpusched profile show this-machine.json\n");
}

/// The same arguments as words of a command line.
inline std::vector<std::string> words_of(const CalibrateArguments& arguments) {
  std::vector<std::string> words{"--backend=" + arguments.backend, "--out=" + arguments.out,
                                 "--threads=" + std::to_string(arguments.threads),
                                 "--seed=" + std::to_string(arguments.seed)};
  if (!arguments.checkpoint_folder.empty()) words.push_back("--checkpoint-folder=" + arguments.checkpoint_folder);
  if (arguments.quick) words.emplace_back("--quick");
  if (arguments.job_mix) words.emplace_back("--job-mix");
  return words;
}

}  // namespace gpusched
