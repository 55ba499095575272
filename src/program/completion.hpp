// SPDX-License-Identifier: Apache-2.0
/// Completion scripts for shells: commands, options, the words that options take, policies in lists, files.
#pragma once

#include <string>

#include "src/program/command_tree.hpp"

namespace gpusched {

/// For bash 4 or later; needs nothing else. To be sourced, or installed under the program's name in
/// share/bash-completion/completions.
std::string bash_completion(const CommandInfo& program);

/// For zsh's completion system: the function _gpusched.
std::string zsh_completion(const CommandInfo& program);

/// For fish 3.
std::string fish_completion(const CommandInfo& program);

}  // namespace gpusched
