// SPDX-License-Identifier: Apache-2.0
// gpusched search: becomes the program gpusched-search (search_main.cpp).
#include <memory>

#include "src/program/commands.hpp"
#include "src/program/search_options.hpp"
#include "src/program/sibling_program.hpp"

namespace gpusched {

void add_search_command(CLI::App& program, int& exit_code) {
  CLI::App* command = program.add_subcommand("search", "Search for policies that are best in several figures");
  const auto arguments = std::make_shared<SearchArguments>();
  add_search_options(*command, *arguments);
  command->callback([arguments, &exit_code] { exit_code = become_program(search_program, words_of(*arguments)); });
}

}  // namespace gpusched
