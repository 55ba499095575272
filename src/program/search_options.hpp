// SPDX-License-Identifier: Apache-2.0
/// The options of `gpusched search`, which two programs read: gpusched, to show its help and complete it, and
/// gpusched-search, which searches.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "src/program/field_options.hpp"
#include "src/search/search_settings.hpp"

namespace gpusched {

struct SearchArguments {
  std::string file;       ///< empty: not given
  FieldArguments fields;  ///< of search_fields()
  bool dry_run = false, print_schema = false;
};

inline void add_search_options(CLI::App& command, SearchArguments& arguments) {
  command.add_option("file", arguments.file,
                     "JSON file with base, policies, objectives, compare and windows; - for "
                     "standard input");
  SearchSettings defaults;
  add_row_options(command, search_fields(defaults), arguments.fields, false);
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
  SearchSettings defaults;
  std::vector<std::string> words = words_of(arguments.fields, search_fields(defaults));
  if (arguments.dry_run) words.emplace_back("--dry-run");
  if (arguments.print_schema) words.emplace_back("--print-schema");
  if (!arguments.file.empty()) {
    words.emplace_back("--");  // a file may begin with a dash
    words.push_back(arguments.file);
  }
  return words;
}

}  // namespace gpusched
