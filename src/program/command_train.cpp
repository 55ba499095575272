// SPDX-License-Identifier: Apache-2.0
// gpusched train: becomes the program gpusched-train (train_main.cpp).
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "src/program/commands.hpp"
#include "src/program/train_options.hpp"

namespace gpusched {
namespace {

// Returns only when the program beside this one cannot be started.
int become_trainer(std::vector<std::string> arguments) {
  std::error_code why;
  const std::string trainer =
      (std::filesystem::read_symlink("/proc/self/exe", why).parent_path() / "gpusched-train").string();
  arguments.insert(arguments.begin(), trainer);
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execv(trainer.c_str(), pointers.data());
  return complain(trainer + " cannot be started: " + std::strerror(errno), exit_failed);
}

}  // namespace

void add_train_command(CLI::App& program, int& exit_code) {
  CLI::App* command = program.add_subcommand("train", "Learn a scheduler by PPO or direct search");
  const auto arguments = std::make_shared<TrainArguments>();
  add_train_options(*command, *arguments);
  command->callback([arguments, &exit_code] { exit_code = become_trainer(words_of(*arguments)); });
}

}  // namespace gpusched
