// SPDX-License-Identifier: Apache-2.0
// gpusched train: becomes the program gpusched-train (train_main.cpp).
#include <memory>

#include "src/program/commands.hpp"
#include "src/program/sibling_program.hpp"
#include "src/program/train_options.hpp"

namespace gpusched {

void add_train_command(CLI::App& program, int& exit_code) {
  CLI::App* command = program.add_subcommand("train", "Learn a scheduler by PPO or direct search");
  const auto arguments = std::make_shared<TrainArguments>();
  add_train_options(*command, *arguments);
  command->callback([arguments, &exit_code] { exit_code = become_program(train_program, words_of(*arguments)); });
}

}  // namespace gpusched
