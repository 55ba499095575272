// SPDX-License-Identifier: Apache-2.0
// gpusched-search: policies that are best in several figures, found by NSGA-II. A program of its own, which
// `gpusched search` becomes, so that the other commands do not wait for pagmo2 and its libraries to load.
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/base/atomic_file.hpp"
#include "src/base/held_folder.hpp"
#include "src/base/interruption.hpp"
#include "src/base/number_text.hpp"
#include "src/base/process_info.hpp"
#include "src/program/commands.hpp"
#include "src/program/help_formatter.hpp"
#include "src/program/search_options.hpp"
#include "src/program/usage_error.hpp"
#include "src/search/policy_search.hpp"
#include "src/search/search_report.hpp"

namespace gpusched {
namespace {

Result<Search> search_from(const SearchArguments& arguments, const PolicyRegistry& registry) {
  auto search = read_search_file(arguments.file, registry);
  if (!search) return search;
  if (auto done = set_given_fields(search_fields(*search), arguments.fields); !done) return Unexpected{done.error()};
  if (auto done = check_search(*search); !done) {
    Error error = done.error();
    error.file = search->file;
    return Unexpected{error};
  }
  return search;
}

std::string windows_text(const char* kind, const std::vector<std::uint32_t>& starts, const Search& search) {
  std::string text = std::string(kind) + " windows, " + human_count(search.window_jobs) + " jobs each after " +
                     human_count(search.warmup_jobs) + " of warm-up, first at jobs";
  for (const std::uint32_t start : starts) text += " " + std::to_string(start);
  return text + "\n";
}

void show_plan(const Search& search, const CandidateRuns& runs) {
  const CandidateSpace space(search.policies);
  show(windows_text("training", runs.windows().train, search) +
       windows_text("held-out", runs.windows().held_out, search));
  const std::uint64_t rounds = search.method == "halving" ? 1 : search.generations + 1;
  show(counted(space.genes().size(), "number") + " to search; at most " +
       human_count((search.population * rounds + runs.heuristics().size()) * runs.windows().train.size()) +
       " runs in training windows, " +
       human_count(((search.front == 0 ? search.population : search.front) + runs.heuristics().size()) *
                   runs.windows().held_out.size()) +
       " in held-out ones\n");
  for (const Candidate& corner : space.corners()) show("  " + space.policy(corner) + "\n");
}

int complain_of_search(const Error& error) {
  if (Interruption::wanted()) {
    return complain(Interruption::name() + ": interrupted; what was stored is kept, the same command goes on",
                    Interruption::exit_code());
  }
  // A file without a field is the store, which is full or locked.
  return complain(error, error.field.empty() ? exit_failed : exit_bad_input);
}

int run_search(const Search& search, CandidateRuns& runs) {
  Execution execution{.started = utc_now()};
  const auto begin = std::chrono::steady_clock::now();
  if (search.out.empty()) return complain("no folder for the results; give --out FOLDER, or \"out\" in " + search.file);
  const auto folder = HeldFolder::open(search.out);
  if (!folder) return complain("--out: " + folder.error().to_string());
  if (auto opened = runs.open_store(); !opened) return complain(opened.error(), exit_failed);
  if (!search.repeatable()) {
    note(std::string(latency_objective) +
         " is a measured time: another run of this search, into another folder, gives "
         "other results");
  }
  const Interruption interruption;
  const SearchContext context{.stop = &Interruption::wanted(), .watch = [](const GenerationReport& report) {
                                std::fprintf(stderr, "%s\n", generation_text(report).c_str());
                              }};
  SearchOutcome outcome;
  const auto searched = search_policies(search, runs, context, outcome);
  if (!searched && !Interruption::wanted()) {
    const bool refused = !searched.error().field.empty() && outcome.candidates.empty();
    if (refused) runs.discard_new_store();
    return complain_of_search(searched.error());
  }
  execution.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  execution.peak_memory_bytes = peak_memory_bytes();
  std::error_code ignored;
  if (!searched) std::filesystem::remove(search.out + "/front.csv", ignored);  // of an earlier, shorter search
  for (const auto& [name, text] : search_files(search, runs, outcome, execution, !searched)) {
    if (auto done = replace_file(search.out + "/" + name, text); !done) return complain(done.error(), exit_failed);
  }
  if (!searched) return complain_of_search(searched.error());
  show(search_text(search, outcome, result_style()) + search.out + "/front.csv\n");
  const std::string failed = why_all_failed(outcome);
  return failed.empty() ? exit_done : complain(failed, exit_failed);
}

int search_command(const SearchArguments& arguments) {
  if (arguments.print_schema) {
    std::fputs(search_schema().c_str(), stdout);
    return exit_done;
  }
  if (arguments.file.empty()) return complain("FILE is required (see `gpusched search --help`)");
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto search = search_from(arguments, registry);
  if (!search) return complain(search.error());
  if (!has_pagmo()) {
    return complain("search needs pagmo2, which was not found: install libpagmo-dev, configure and build again",
                    exit_failed);
  }
  auto runs = CandidateRuns::load(*search, registry);
  if (!runs) return complain(runs.error());
  if (auto checked = check_space(*search, *runs); !checked) return complain(checked.error());
  if (!arguments.dry_run) return run_search(*search, *runs);
  show_plan(*search, *runs);
  return exit_done;
}

int run(int argc, char** argv) {
  CLI::App program("Search for policies that are best in several figures.", "gpusched search");
  program.formatter(std::make_shared<HelpFormatter>());
  SearchArguments arguments;
  add_search_options(program, arguments);
  if (const std::string wrong = missing_value(program, {argv + 1, argv + argc}); !wrong.empty()) return complain(wrong);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_parse_error(program, error);
  }
  return search_command(arguments);
}

}  // namespace
}  // namespace gpusched

int main(int argc, char** argv) {
  return gpusched::run_guarded([&] { return gpusched::run(argc, argv); });
}
