// SPDX-License-Identifier: Apache-2.0
#include "src/program/man_page.hpp"

#include <sstream>

#include "src/base/nearest_name.hpp"
#include "src/program/help_formatter.hpp"

namespace gpusched {
namespace {

// Text as roff shows it: no line begins with a control character, a dash is that of options, a backslash itself.
std::string roff(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool begins_line = result.empty() || result.back() == '\n';
    if (begins_line && (c == '.' || c == '\'')) result += "\\&";
    switch (c) {
      case '\\': result += "\\e"; break;
      case '-': result += "\\-"; break;
      case '\'': result += "\\(aq"; break;
      case '`': result += "\\(ga"; break;
      case '^': result += "\\(ha"; break;
      case '~': result += "\\(ti"; break;
      case '|': result += "|\\:"; break;  // a list of words may be broken here
      default: result += c;
    }
  }
  return result;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

std::string option_entry(const OptionInfo& option) {
  std::string names;
  for (const std::string& name : option.names) names += (names.empty() ? "" : ", ") + bold(name);
  if (!option.kind.empty() && !names.empty()) names += " " + italic(value_name(option.kind));
  if (!option.argument.empty()) names += (names.empty() ? "" : ", or ") + italic(option.argument);
  std::string meaning = option.meaning;
  if (option.required) meaning += " (required)";
  if (!option.fallback.empty()) meaning += " (default " + option.fallback + ")";
  return ".TP\n" + names + "\n" + roff(meaning) + "\n";
}

// A footer's paragraphs: those of indented lines are shown as they are.
std::string verbatim(const std::string& footer) {
  std::string text;
  bool shown_as_is = false, blank_before = true;
  std::istringstream lines(footer);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) {
      blank_before = true;
      continue;
    }
    const bool indented = line.starts_with("  ");
    if (indented != shown_as_is) text += indented ? ".PP\n.nf\n" : ".fi\n";
    if (!indented && (blank_before || shown_as_is)) text += ".PP\n";
    if (indented && shown_as_is && blank_before) text += ".PP\n";
    text += roff(line) + "\n";
    shown_as_is = indented;
    blank_before = false;
  }
  return text + (shown_as_is ? ".fi\n" : "");
}

std::string command_section(const CommandInfo& command) {
  std::string text = ".SS " + roff("gpusched " + command.path) + "\n" + roff(command.summary) + ".\n";
  for (const OptionInfo& option : command.options) {
    const bool is_help = !option.names.empty() && option.names.back() == "--help";
    if (!is_help) text += option_entry(option);
  }
  return text + verbatim(command.footer);
}

}  // namespace

std::string man_page(const CommandInfo& program, const BuildInfo& build) {
  std::string text =
      ".\\\" Made by `gpusched help --man`.\n.TH GPUSCHED 1 \"" + std::string(build.date) + "\" \"gpusched " +
      std::string(build.version) +
      "\" \"User Commands\"\n.ad l\n.nh\n.SH NAME\ngpusched \\- simulate schedulers of GPU clusters on real job "
      "traces\n.SH SYNOPSIS\n";
  std::string summaries;
  for (const CommandInfo* command : all_commands(program)) {
    if (!command->commands.empty()) continue;
    text += (command == all_commands(program)[1] ? "" : ".br\n") + bold("gpusched " + command->path);
    for (const OptionInfo& option : command->options) {
      if (option.argument.empty()) continue;
      const std::string argument = italic(option.argument);
      text += (option.required ? " " + argument : " [" + argument + "]") + (option.repeated ? "..." : "");
    }
    text += " [" + italic("OPTION") + "]...\n";
  }
  text += ".SH DESCRIPTION\n" + roff(program.summary) + "\n.SH COMMANDS\n";
  for (const CommandInfo* command : all_commands(program)) {
    if (!command->path.empty()) text += command_section(*command);
  }
  return text +
         ".SH EXIT STATUS\n.TP\n0\nDone.\n.TP\n1\nThe run failed.\n.TP\n2\nBad usage or input; one line on standard "
         "error "
         "says what.\n.TP\n129, 130, 143\nInterrupted by SIGHUP, SIGINT or SIGTERM.\n";
}

}  // namespace gpusched
