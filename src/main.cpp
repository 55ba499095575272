// SPDX-License-Identifier: Apache-2.0
// gpusched: parse, dispatch, print. What it does lives in the library.
#include <cstdio>
#include <string>

#include "src/commands.hpp"
#include "src/sim/build_info.hpp"

namespace {

constexpr const char* short_help =
    "gpusched simulates schedulers of GPU clusters on real job traces.\n"
    "\n"
    "  gpusched replay --trace jobs.csv --cluster 352x8 --policy fifo,sjf,srtf\n"
    "  gpusched policies                     every policy there is\n"
    "\n"
    "`gpusched --help` lists all commands, `gpusched COMMAND --help` their options.\n";

std::string version_text() {
  const gpusched::BuildInfo build = gpusched::build_info();
  const auto yes_no = [](bool built_in) { return std::string(built_in ? "yes" : "no"); };
  return "gpusched " + std::string(build.version) + " (commit " + std::string(build.git_commit) + ", " +
         std::string(build.compiler) + ", " + std::string(build.build_type) +
         "; PPO training: " + yes_no(build.with_torch) + ", CUDA: " + yes_no(build.with_cuda) + ")";
}

// CLI11 reports --help as an error with code 0; every real one is bad usage.
int report_parse_error(const CLI::App& program, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return program.exit(error);
  return gpusched::complain(std::string(error.what()) + " (see --help)");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) {
    std::fputs(short_help, stdout);
    return gpusched::exit_done;
  }
  CLI::App program("Simulates schedulers of GPU clusters on real job traces.", "gpusched");
  program.set_version_flag("--version", version_text());
  program.require_subcommand(1);
  int exit_code = gpusched::exit_done;
  gpusched::add_replay_command(program, exit_code);
  gpusched::add_policies_command(program, exit_code);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_parse_error(program, error);
  }
  return exit_code;
}
