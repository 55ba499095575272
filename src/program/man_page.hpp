// SPDX-License-Identifier: Apache-2.0
/// The manual page of the program, made from what --help says.
#pragma once

#include <string>
#include <string_view>

#include "src/program/command_tree.hpp"

namespace gpusched {

/// roff with the macros of man(7), section 1. `version`: "0.1.0".
std::string man_page(const CommandInfo& program, std::string_view version);

}  // namespace gpusched
