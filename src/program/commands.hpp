// SPDX-License-Identifier: Apache-2.0
/// The program's subcommands. Each adds its options to the parser and says there what to call when it was chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

#include "gpusched/core/result.hpp"
#include "src/base/visible_text.hpp"
#include "src/program/terminal.hpp"

namespace gpusched {

inline constexpr int exit_done = 0;
inline constexpr int exit_failed = 1;     ///< the run failed
inline constexpr int exit_bad_input = 2;  ///< bad usage or input; signals: Interruption::exit_code()

/// One line of a message: nothing that a trace's fields may hold moves the cursor or fills the screen.
inline std::string one_line(const std::string& text) { return visible_line(excerpt(text, 4000)); }

/// Prints a result for programs as it is.
inline void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }
/// Prints a result for people: names and ids from files cannot move a terminal's cursor.
inline void show(const std::string& text) { print(shown(text, result_style())); }

/// Says what is wrong on standard error and gives the exit code to return.
inline int complain(const std::string& message, int code = exit_bad_input) {
  std::fprintf(stderr, "gpusched: %s\n", one_line(message).c_str());
  return code;
}
inline int complain(const Error& error, int code = exit_bad_input) { return complain(error.to_string(), code); }

/// Whether --quiet was given: neither notes nor progress.
inline bool& is_quiet() {
  static bool quiet = false;
  return quiet;
}
/// Adds -q to a command.
inline void add_quiet_option(CLI::App& command) {
  command.add_flag("-q,--quiet", is_quiet(), "no notes and no progress: results and errors alone")
      ->group("Other options");
}

/// What a careful reader should know before using a result.
inline void note(const std::string& message) {
  if (is_quiet()) return;
  std::fprintf(stderr, "note: %s\n", one_line(message).c_str());
}

/// The body of a main(): says what the machine refused (memory, threads) instead of aborting, and that a result did not
/// get to where standard output goes.
template <class Body>
int run_guarded(Body body) noexcept {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is an error of the write, as a full disk is
  try {
    const int code = body();
    const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.flush().good();
    return written || code != exit_done ? code : complain("standard output cannot be written", exit_failed);
  } catch (const std::bad_alloc&) {
    return complain("not enough memory", exit_failed);
  } catch (const std::exception& error) {
    return complain(error.what(), exit_failed);
  }
}

// Each sets `exit_code` when its command was chosen and ran.
void add_replay_command(CLI::App& program, int& exit_code);
void add_trace_command(CLI::App& program, int& exit_code);
void add_trace_generate_command(CLI::App& trace, int& exit_code);  ///< below `trace`
void add_policies_command(CLI::App& program, int& exit_code);
void add_evaluate_command(CLI::App& program, int& exit_code);
void add_compare_command(CLI::App& program, int& exit_code);
void add_explain_command(CLI::App& program, int& exit_code);
void add_federate_command(CLI::App& program, int& exit_code);
void add_report_command(CLI::App& program, int& exit_code);
void add_sweep_command(CLI::App& program, int& exit_code);
void add_search_command(CLI::App& program, int& exit_code);
void add_train_command(CLI::App& program, int& exit_code);
void add_calibrate_command(CLI::App& program, int& exit_code);
void add_profile_command(CLI::App& program, int& exit_code);
void add_cluster_command(CLI::App& program, int& exit_code);
void add_serve_command(CLI::App& program, int& exit_code);
void add_help_command(CLI::App& program, int& exit_code);
void add_completion_command(CLI::App& program, int& exit_code);

}  // namespace gpusched
