// SPDX-License-Identifier: Apache-2.0
/// The options of `gpusched search`, which two programs read: gpusched, to show its help and complete it, and
/// gpusched-search, which searches.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/base/parallel.hpp"
#include "src/program/option_checks.hpp"

namespace gpusched {

/// Empty: not given.
struct SearchArguments {
  std::string file;
  std::map<std::string, std::string> options;  ///< by flag, as search_own_fields() takes them
  bool dry_run = false, print_schema = false;
};

inline void add_search_options(CLI::App& command, SearchArguments& arguments) {
  command.add_option("file", arguments.file,
                     "JSON file with base, policies, objectives, compare and windows; - for "
                     "standard input");
  const auto add = [&](const char* flag, const char* meaning) {
    std::string& value = arguments.options[flag];
    return command
        .add_option_function<std::string>(
            flag, [&value](const std::string& text) { value = text; }, meaning)
        ->check(not_empty());
  };
  add("--out", "folder for front.csv, generations.csv, candidates.csv, search.sqlite and manifest.json");
  add("--method", "nsga2, random (each candidate drawn alone, to compare with) or halving (of trainings)");
  add("--population", "candidates of a generation, a multiple of 4");
  add("--generations", "generations behind the first population");
  add("--front", "found policies that are run on the held-out windows, at most");
  add("--seed", "of the search; that of the runs is in base");
  add("--threads", "runs at the same time; 0: one for each processor; changes no result");
  add("--time-limit", "seconds on the clock after which a run is ended and its policy counted as failed; 0: none");
  command.add_flag("--dry-run", arguments.dry_run, "show the windows and what would be run, and stop");
  command.add_flag("--print-schema", arguments.print_schema, "print the JSON Schema of such files and stop");
  command.footer(
      "FILE says what is searched, by which figures and on which windows; options go before what it says:\n"
      "  {\"base\": {\"trace\": \"jobs.csv\", \"cluster\": \"16x8\"},\n"
      "   \"policies\": [{\"policy\": \"weighted+easy\",\n"
      "                 \"parameters\": {\"wait\": {\"from\": 0.001, \"to\": 10, \"log\": true}}}],\n"
      "   \"objectives\": [\"avg_jct_s\", \"p99_wait_s\"], \"compare\": [\"fifo\", \"sjf\"],\n"
      "   \"windows\": {\"jobs\": 500, \"train\": 4, \"held_out\": 4}}\n"
      "\nThe same command goes on where it was interrupted or killed.\n"
      "\nExamples:\n"
      "  gpusched search examples/searches/weights.json --dry-run\n"
      "  gpusched search examples/searches/weights.json --out results --threads 0\n"
      "  gpusched search examples/searches/weights.json --out random --method random\n");
}

/// The arguments of a search as words of a command line.
inline std::vector<std::string> words_of(const SearchArguments& arguments) {
  std::vector<std::string> words;
  for (const auto& [flag, value] : arguments.options) {
    if (!value.empty()) words.push_back(flag + "=" + value);
  }
  if (arguments.dry_run) words.emplace_back("--dry-run");
  if (arguments.print_schema) words.emplace_back("--print-schema");
  if (!arguments.file.empty()) {
    words.emplace_back("--");  // a file may begin with a dash
    words.push_back(arguments.file);
  }
  return words;
}

}  // namespace gpusched
