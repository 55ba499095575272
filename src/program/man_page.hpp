// SPDX-License-Identifier: Apache-2.0
/// The manual page of the program, made from what --help says.
#pragma once

#include <string>

#include "src/base/build_info.hpp"
#include "src/program/command_tree.hpp"

namespace gpusched {

/// roff with the macros of man(7), section 1.
std::string man_page(const CommandInfo& program, const BuildInfo& build);

}  // namespace gpusched
