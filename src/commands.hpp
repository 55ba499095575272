// SPDX-License-Identifier: Apache-2.0
/// The program's subcommands. Each adds its options to the parser and says there what to call when it was chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "gpusched/result.hpp"

namespace gpusched {

inline constexpr int exit_done = 0;
inline constexpr int exit_failed = 1;     ///< the run failed
inline constexpr int exit_bad_input = 2;  ///< bad usage or input

/// Says what is wrong on standard error and gives the exit code to return.
inline int complain(const std::string& message, int code = exit_bad_input) {
  std::fprintf(stderr, "gpusched: %s\n", message.c_str());
  return code;
}
inline int complain(const Error& error) { return complain(error.to_string()); }

/// CLI11 reports --help as an error with code 0; every real one is bad usage.
inline int report_parse_error(const CLI::App& program, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return program.exit(error);
  return complain(std::string(error.what()) + " (see --help)");
}

/// The body of a main(): says what the machine refused (memory, threads) instead of aborting.
template <class Body>
int run_guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpusched: %s\n", error.what());
    return exit_failed;
  }
}

// Each sets `exit_code` when its command was chosen and ran.
void add_replay_command(CLI::App& program, int& exit_code);
void add_trace_command(CLI::App& program, int& exit_code);
void add_trace_generate_command(CLI::App& trace, int& exit_code);  ///< below `trace`
void add_policies_command(CLI::App& program, int& exit_code);
void add_evaluate_command(CLI::App& program, int& exit_code);
void add_train_command(CLI::App& program, int& exit_code);
void add_calibrate_command(CLI::App& program, int& exit_code);
void add_profile_command(CLI::App& program, int& exit_code);

}  // namespace gpusched
