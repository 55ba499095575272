// SPDX-License-Identifier: Apache-2.0
// gpusched help [COMMAND...], gpusched help --man, gpusched completion SHELL: what the program tells about itself.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "src/base/build_info.hpp"
#include "src/base/nearest_name.hpp"
#include "src/program/command_tree.hpp"
#include "src/program/commands.hpp"
#include "src/program/completion.hpp"
#include "src/program/man_page.hpp"
#include "src/program/usage_error.hpp"

namespace gpusched {
namespace {

// The command that `words` name one after the other.
Result<const CLI::App*> find_command(const CLI::App& program, const std::vector<std::string>& words) {
  const CLI::App* command = &program;
  for (const std::string& word : words) {
    std::vector<std::string> names;
    const CLI::App* found = nullptr;
    for (const CLI::App* below : command->get_subcommands([](const CLI::App*) { return true; })) {
      if (below->get_name() == word) found = below;
      names.push_back(below->get_name());
    }
    if (names.empty()) return unexpected("`" + full_name(*command) + "` has no commands below it; got '" + word + "'");
    if (found == nullptr) {
      return unexpected("unknown command '" + word + "'" + suggest_nearest(word, names) + "; `" + full_name(*command) +
                        " --help` lists all");
    }
    command = found;
  }
  return command;
}

}  // namespace

void add_help_command(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("help", "Show the help of a command, or the manual page");
  const auto words = std::make_shared<std::vector<std::string>>();
  const auto man = std::make_shared<bool>(false);
  command->add_option("command", *words, "the command, such as replay or trace info; without it, all commands");
  command->footer("Examples:\n  gpusched help trace info\n  gpusched help --man | man -l -\n");
  command->add_flag("--man", *man, "print the manual page in roff, for man -l -");
  command->callback([&program, words, man, &exit_code] {
    if (*man && !words->empty()) {
      exit_code = complain("--man: prints one page for the whole program; got '" + joined(*words, " ") + "' beside it");
      return;
    }
    if (*man) {
      std::fputs(man_page(command_tree(program), build_info()).c_str(), stdout);
      return;
    }
    const auto found = find_command(program, *words);
    if (found) {
      // App::help() of the program would show the command that was chosen: this one.
      const std::string text =
          (*found)->get_formatter()->make_help(*found, full_name(**found), CLI::AppFormatMode::Normal);
      std::fputs(text.c_str(), stdout);
    } else {
      exit_code = complain(found.error());
    }
  });
}

void add_completion_command(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("completion", "Print a completion script for a shell");
  const auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer(
      "Examples:\n"
      "  source <(gpusched completion bash)\n"
      "  gpusched completion zsh > ~/.zfunc/_gpusched     # in $fpath\n"
      "  gpusched completion fish > ~/.config/fish/completions/gpusched.fish\n");
  command->callback([&program, shell, &exit_code] {
    const CommandInfo tree = command_tree(program);
    const std::string text = *shell == "bash"  ? bash_completion(tree)
                             : *shell == "zsh" ? zsh_completion(tree)
                                               : fish_completion(tree);
    std::fputs(text.c_str(), stdout);
    exit_code = exit_done;
  });
}

}  // namespace gpusched
