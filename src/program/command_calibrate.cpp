// SPDX-License-Identifier: Apache-2.0
// gpusched calibrate: becomes the program gpusched-calibrate (calibrate_main.cpp).
#include <memory>

#include "src/program/calibrate_options.hpp"
#include "src/program/commands.hpp"
#include "src/program/sibling_program.hpp"

namespace gpusched {

void add_calibrate_command(CLI::App& program, int& exit_code) {
  CLI::App* command = program.add_subcommand("calibrate", "Measure this device and write its profile");
  const auto arguments = std::make_shared<CalibrateArguments>();
  add_calibrate_options(*command, *arguments);
  command->callback([arguments, &exit_code] { exit_code = become_program(calibrate_program, words_of(*arguments)); });
}

}  // namespace gpusched
