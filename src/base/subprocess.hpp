// SPDX-License-Identifier: Apache-2.0
/// Runs another program and takes what it prints.
#pragma once

#include <string>
#include <vector>

#include "gpusched/core/result.hpp"

namespace gpusched {

/// How a program ended.
struct ProgramOutput {
  int exit_code = 0;  ///< 128 and its number for a signal, as shells do
  std::string out, err;
};

/// Runs `command`, its first entry found through PATH, without a shell, without standard input and in a process group
/// of its own, so that Ctrl-C does not stop it half-way. Errors: no such program; the system's reason why it cannot
/// start.
Result<ProgramOutput> run_program(const std::vector<std::string>& command);

/// Splits a text into words as a POSIX shell does: at blanks, with '...', "..." and backslashes as quotes. Nothing is
/// expanded. Error: a quote that is not closed.
Result<std::vector<std::string>> split_words(const std::string& text);

/// The word in quotes, where a POSIX shell would not take it as it is.
std::string shell_quoted(const std::string& word);

/// The path of the program that runs now; `otherwise` where the system does not tell.
std::string program_path(const std::string& otherwise);

}  // namespace gpusched
