// SPDX-License-Identifier: Apache-2.0
#include "src/program/field_options.hpp"

#include <algorithm>
#include <string_view>
#include <variant>

#include "src/base/nearest_name.hpp"
#include "src/program/help_formatter.hpp"
#include "src/program/option_checks.hpp"

namespace gpusched {
namespace {

// What completion and the manual page call a value; "" where the option's name tells (command_tree.cpp).
std::string value_word(const Field& field) {
  if (!field.words.empty()) return joined(field.words, "|");
  if (std::holds_alternative<std::uint64_t*>(field.target)) return "N";
  if (std::holds_alternative<std::uint32_t*>(field.target)) return "N";
  if (std::holds_alternative<double*>(field.target)) return "NUMBER";
  return std::holds_alternative<Time*>(field.target) ? "SECONDS" : "";
}

// A list in several parts, "--policy fifo,sjf --policy las": one list.
Result<void> set_list(const Field& field, const std::vector<std::string>& given) {
  std::vector<std::string> all;
  for (const std::string& text : given) {
    auto part = field.split(text);
    if (!part) return Unexpected{part.error()};
    all.insert(all.end(), part->begin(), part->end());
  }
  *std::get<std::vector<std::string>*>(field.target) = std::move(all);
  return {};
}

Result<void> set_from_flag(const Field& field, const std::vector<std::string>& given) {
  if (field.repeats()) {
    *std::get<std::vector<std::string>*>(field.target) = given;
    return {};
  }
  auto done = field.split ? set_list(field, given) : set_field(field, given.back());
  if (done) return done;
  Error error = done.error();
  if (!error.field.empty()) error.field = field.flag;
  return Unexpected{error};
}

// "-p,--policy": the options that are written most have a letter.
std::string with_letter(const std::string& flag) {
  for (const char* const known : {"--policy", "--cluster", "--out"}) {
    if (flag == known) return std::string("-") + known[2] + "," + flag;
  }
  return flag;
}

// Under which heading of --help options stand, by the first part of their path in JSON files.
struct Heading {
  std::string_view part, title;
};
constexpr Heading headings[] = {
    {"trace", "The trace"},
    {"traces", "The trace"},
    {"formats", "The trace"},
    {"columns", "The trace"},
    {"history_jobs", "The trace"},
    {"limits", "The cluster"},
    {"placement", "The cluster"},
    {"oversize", "The cluster"},
    {"seed", "The cluster"},
    {"preemption", "What happens to jobs"},
    {"failures", "What happens to jobs"},
    {"stages", "What happens to jobs"},
    {"elastic", "What happens to jobs"},
    {"changes", "What happens to jobs"},
    {"kill_at_limit", "What happens to jobs"},
    {"services", "What happens to jobs"},
    {"trials", "What happens to jobs"},
    {"power", "Power, carbon, money"},
    {"fidelity", "How fast jobs run"},
    {"measure", "What is measured"},
    {"windows", "What is measured"},
    {"starts", "What is measured"},
    {"mode", "What is measured"},
    {"protocol", "What is measured"},
    {"figure", "What is measured"},
    {"beside", "What is measured"},
    {"mean", "What is measured"},
    {"against", "What is measured"},
    {"env", "The environment of the agent"},
    {"network", "The agent"},
    {"init", "The agent"},
    {"method", "How it learns"},
    {"search", "How it learns"},
    {"ppo", "How it learns"},
    {"constraints", "How it learns"},
    {"output", "Results"},
    {"split", "Results"},
    {"recorded", "Results"},
};

std::string heading_of(const std::string& path) {
  const std::string_view part = std::string_view(path).substr(0, path.find('.'));
  for (const Heading& heading : headings) {
    if (heading.part == part) return std::string(heading.title);
  }
  return "Other options";
}

// The options that matter most stand first in --help, in a group of their own.
void show_first(CLI::App& command) {
  constexpr const char* group = "Most used";
  if (command.get_help_ptr() != nullptr)
    command.get_help_ptr()->group(group);  // groups stand as their first options do
  for (const char* const name : {"--policy", "--cluster", "--backfill", "--config", "--out"}) {
    if (CLI::Option* const option = command.get_option_no_throw(name)) option->group(group);
  }
}

}  // namespace

void add_row_options(CLI::App& command, const FieldTable& defaults, FieldArguments& arguments, bool show_defaults) {
  for (const Field& field : defaults) {
    if (field.flag.empty()) continue;
    const std::string heading = heading_of(field.path);
    if (std::holds_alternative<bool*>(field.target)) {
      command.add_flag(field.flag, arguments.switches[field.path], field.meaning)->group(heading);
      continue;
    }
    const std::string words = field.words.empty() ? "" : ": " + joined(field.words, "|");
    const CLI::Option* const argument =
        field.path == arguments.positional_path ? command.get_option_no_throw(field.flag.substr(2)) : nullptr;
    const std::string meaning = argument != nullptr ? same_as(argument_name(*argument)) : field.meaning + words;
    std::vector<std::string>& given = arguments.flags[field.path];
    CLI::Option* option = nullptr;
    if (field.repeats()) {
      option = command.add_option(with_letter(field.flag), given, meaning)->allow_extra_args(false);
    } else if (field.split) {
      option =
          command
              .add_option_function<std::vector<std::string>>(
                  with_letter(field.flag), [&given](const std::vector<std::string>& texts) { given = texts; }, meaning)
              ->allow_extra_args(false);
      if (show_defaults) option->default_str(field_text(field));
    } else {
      option = command.add_option_function<std::string>(
          with_letter(field.flag), [&given](const std::string& text) { given = {text}; }, meaning);
      if (show_defaults) option->default_str(field_text(field));
    }
    option->group(heading);
    if (const std::string kind = value_word(field); !kind.empty()) option->type_name(kind);
  }
}

void add_field_options(CLI::App& command, const FieldTable& defaults, FieldArguments& arguments,
                       const std::string& positional, bool show_defaults) {
  if (const Field* field = find_field(defaults, positional)) {
    arguments.positional_path = positional;
    CLI::Option* argument = command.add_option(field->flag.substr(2), arguments.positional, field->meaning);
    if (!field->repeats()) argument->expected(1);
    argument->check(not_empty());
  }
  command.add_option("--config", arguments.config, "JSON file with any of the options below; - for standard input")
      ->check(not_empty());
  add_row_options(command, defaults, arguments, show_defaults);
  constexpr const char* group = "The configuration";
  command.add_option("--set", arguments.settings, "path.to.key=value, as in the JSON file; may be repeated")
      ->allow_extra_args(false)
      ->type_name("SETTING")
      ->group(group);
  show_first(command);
  command.add_flag("--print-config", arguments.print_config, "print the configuration in effect and stop")
      ->group(group);
  command.add_flag("--print-schema", arguments.print_schema, "print the JSON Schema of --config files and stop")
      ->group(group);
}

Result<void> set_given_fields(const FieldTable& fields, const FieldArguments& arguments) {
  for (const Field& field : fields) {
    const auto given = arguments.flags.find(field.path);
    const auto on = arguments.switches.find(field.path);
    std::vector<std::string> texts = given == arguments.flags.end() ? std::vector<std::string>{} : given->second;
    if (field.path == arguments.positional_path) {
      if (!field.repeats() && !texts.empty() && !arguments.positional.empty()) {
        return unexpected(field.flag + ": given twice, as '" + texts.back() + "' and '" + arguments.positional.front() +
                          "'");
      }
      for (const std::string& text : arguments.positional) {
        if (std::find(texts.begin(), texts.end(), text) != texts.end()) {
          return unexpected(field.flag + ": '" + text + "' is given twice");
        }
      }
      texts.insert(texts.end(), arguments.positional.begin(), arguments.positional.end());
    }
    Result<void> done;
    if (!texts.empty()) done = set_from_flag(field, texts);
    if (on != arguments.switches.end() && on->second) done = set_from_flag(field, {"true"});
    if (!done) return done;
  }
  for (const std::string& setting : arguments.settings) {
    if (auto done = apply_setting(fields, setting); !done) {
      return Unexpected{Error{.message = done.error().to_string(), .field = "--set"}};
    }
  }
  return {};
}

std::set<std::string> paths_given(const FieldTable& fields, const FieldArguments& arguments) {
  std::set<std::string> paths;
  for (const auto& [path, texts] : arguments.flags) {
    if (!texts.empty()) paths.insert(path);
  }
  for (const auto& [path, on] : arguments.switches) {
    if (on) paths.insert(path);
  }
  if (!arguments.positional.empty()) paths.insert(arguments.positional_path);
  for (const std::string& setting : arguments.settings) {
    if (const Field* field = find_field(fields, setting.substr(0, setting.find('=')))) paths.insert(field->path);
  }
  return paths;
}

std::vector<std::string> words_of(const FieldArguments& arguments, const FieldTable& fields) {
  std::vector<std::string> words;
  if (!arguments.config.empty()) words.push_back("--config=" + arguments.config);
  for (const Field& field : fields) {
    const auto given = arguments.flags.find(field.path);
    const auto on = arguments.switches.find(field.path);
    if (on != arguments.switches.end() && on->second) words.push_back(field.flag);
    if (given == arguments.flags.end()) continue;
    for (const std::string& text : given->second) words.push_back(field.flag + "=" + text);
  }
  for (const std::string& setting : arguments.settings) words.push_back("--set=" + setting);
  if (arguments.print_config) words.emplace_back("--print-config");
  if (arguments.print_schema) words.emplace_back("--print-schema");
  if (arguments.positional.empty()) return words;
  words.emplace_back("--");  // a file may begin with a dash
  words.insert(words.end(), arguments.positional.begin(), arguments.positional.end());
  return words;
}

Result<void> check_standard_input(const FieldTable& fields, const FieldArguments& arguments) {
  const Field* field = find_field(fields, arguments.positional_path);
  if (arguments.config != "-" || field == nullptr) return {};
  const auto* const list = std::get_if<std::vector<std::string>*>(&field->target);
  const bool is_read =
      list == nullptr ? field_text(*field) == "-" : std::count((*list)->begin(), (*list)->end(), "-") > 0;
  if (!is_read) return {};
  return unexpected("--config and " + field->flag + ": both ask for standard input; give one of them as a file");
}

}  // namespace gpusched
