// SPDX-License-Identifier: Apache-2.0
/// The program's subcommands. Each adds its options to the parser and says there what to call when it was chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
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

// Each sets `exit_code` when its command was chosen and ran.
void add_replay_command(CLI::App& program, int& exit_code);
void add_trace_command(CLI::App& program, int& exit_code);
void add_policies_command(CLI::App& program, int& exit_code);
void add_train_command(CLI::App& program, int& exit_code);

}  // namespace gpusched
