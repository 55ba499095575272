// SPDX-License-Identifier: Apache-2.0
// gpusched: parse, dispatch, print. What it does lives in the library.
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/build_info.hpp"
#include "src/base/nearest_name.hpp"
#include "src/program/command_tree.hpp"
#include "src/program/commands.hpp"
#include "src/program/help_formatter.hpp"
#include "src/program/usage_error.hpp"

namespace {

constexpr const char* short_help =
    "gpusched simulates schedulers of GPU clusters on real job traces. At once, on\n"
    "jobs that it draws itself:\n"
    "\n"
    "  gpusched replay synthetic:philly -c 40x8 -p fifo,fifo+easy,srtf -o now\n"
    "  gpusched compare now -p fifo --vary cluster+=4x8\n"
    "  gpusched report now                   # report.html: open it in a browser\n"
    "\n"
    "The same with your own: jobs.csv in place of synthetic:philly.\n"
    "`gpusched --help` lists all commands, `gpusched help COMMAND` their options.\n";

std::string version_text() {
  const gpusched::BuildInfo build = gpusched::build_info();
  const auto yes_no = [](bool built_in) { return std::string(built_in ? "yes" : "no"); };
  return "gpusched " + std::string(build.version) + " (commit " + std::string(build.git_commit) + ", " +
         std::string(build.compiler) + ", " + std::string(build.build_type) +
         "; LibTorch: " + yes_no(build.with_torch) + ", CUDA: " + yes_no(build.with_cuda) + ")";
}

// CLI11 would only say that a subcommand is missing.
std::string unknown_command(const CLI::App& program, std::span<char* const> words) {
  if (words.empty() || words.front()[0] == '-') return {};
  const std::string word = words.front();
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == word) return unknown_command(*command, words.subspan(1));
    names.push_back(command->get_name());
  }
  if (names.empty()) return {};  // an argument, not a command
  return "unknown command '" + word + "'" + gpusched::suggest_nearest(word, names) + "; `" +
         gpusched::full_name(program) + " --help` lists all";
}

// A flag has no value: --json=false would print JSON no less than --json=3.
void refuse_values_of_flags(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_max() == 0) option->disable_flag_override();
  }
  for (CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) refuse_values_of_flags(*below);
}

int run(int argc, char** argv) {
  if (argc == 1) {
    std::fputs(short_help, stdout);
    return gpusched::exit_done;
  }
  CLI::App program("Simulates schedulers of GPU clusters on real job traces.", "gpusched");
  program.formatter(std::make_shared<gpusched::HelpFormatter>());
  program.set_version_flag("-V,--version", version_text());
  program.require_subcommand(1);
  program.option_defaults()->always_capture_default();  // for --help
  int exit_code = gpusched::exit_done;
  gpusched::add_replay_command(program, exit_code);
  gpusched::add_trace_command(program, exit_code);
  gpusched::add_policies_command(program, exit_code);
  gpusched::add_evaluate_command(program, exit_code);
  gpusched::add_compare_command(program, exit_code);
  gpusched::add_explain_command(program, exit_code);
  gpusched::add_federate_command(program, exit_code);
  gpusched::add_report_command(program, exit_code);
  gpusched::add_sweep_command(program, exit_code);
  gpusched::add_search_command(program, exit_code);
  gpusched::add_train_command(program, exit_code);
  gpusched::add_calibrate_command(program, exit_code);
  gpusched::add_profile_command(program, exit_code);
  gpusched::add_cluster_command(program, exit_code);
  gpusched::add_serve_command(program, exit_code);
  gpusched::add_help_command(program, exit_code);
  gpusched::add_completion_command(program, exit_code);
  refuse_values_of_flags(program);
  gpusched::name_values(program);
  if (const std::string wrong = unknown_command(program, {argv + 1, argv + argc}); !wrong.empty()) {
    return gpusched::complain(wrong);
  }
  if (const std::string wrong = gpusched::missing_value(program, {argv + 1, argv + argc}); !wrong.empty()) {
    return gpusched::complain(wrong);
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return gpusched::report_parse_error(program, error);
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  return gpusched::run_guarded([&] { return run(argc, argv); });
}
