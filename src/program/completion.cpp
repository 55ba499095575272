// SPDX-License-Identifier: Apache-2.0
#include "src/program/completion.hpp"

#include <algorithm>
#include <vector>

#include "src/base/nearest_name.hpp"

namespace gpusched {
namespace {

// How a shell completes a value. `one` is an entry of a list of policies, `group` such a list behind NAME=; `profiles`
// are words or files, each behind TYPE= where the user says so.
enum class Way { none, words, list, one, group, commands, profiles, words_or_files, files, folders };
constexpr std::string_view way_names[] = {"none",     "words",    "list",           "one",   "group",
                                          "commands", "profiles", "words_or_files", "files", "folders"};

std::string name_of(Way way) { return std::string(way_names[static_cast<std::size_t>(way)]); }

Way way_of(const OptionInfo& option) {
  const auto is = [&](std::string_view kind) { return option.kind == kind; };
  if (is(value_kind::policies)) return Way::list;
  if (is(value_kind::compared)) return Way::one;
  if (is(value_kind::group)) return Way::group;
  if (is(value_kind::command)) return Way::commands;
  if (is(value_kind::profiles)) return Way::profiles;
  if (is(value_kind::trace) || is(value_kind::cluster) || is(value_kind::profile) || is(value_kind::model)) {
    return Way::words_or_files;
  }
  if (is(value_kind::file)) return Way::files;
  if (is(value_kind::folder)) return Way::folders;
  return option.words.empty() ? Way::none : Way::words;
}

bool is_argument(const OptionInfo& option) { return !option.argument.empty(); }

std::vector<std::string> option_names(const CommandInfo& command) {
  std::vector<std::string> names;
  for (const OptionInfo& option : command.options) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

std::vector<std::string> command_names(const CommandInfo& command) {
  std::vector<std::string> names;
  for (const CommandInfo& below : command.commands) names.push_back(below.name);
  return names;
}

// In single quotes, as every one of these shells reads them.
std::string single_quoted(std::string_view text, std::string_view quote) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += quote;
    } else {
      result += c;
    }
  }
  return result + "'";
}
std::string single_quoted(std::string_view text) { return single_quoted(text, "'\\''"); }

// The first sentence or clause of a meaning, short enough for a line beside a name.
std::string in_short(const std::string& meaning) {
  const std::string text = meaning.substr(0, meaning.find_first_of(";\n"));
  if (text.size() <= 60) return text;
  return text.substr(0, std::min(text.rfind(' ', 60), text.find(": "))) + " ...";
}

// Sets `ways` to what may stand behind the '+' of policy $1; for bash and zsh.
std::string backfill_function() {
  std::string text = "# What may stand behind the + of policy $1.\n_gpusched_backfills() {\n  case $1 in\n";
  for (const BackfillChoice& choice : backfill_choices()) {
    text += "    " + joined(choice.policies, "|") + ") ways=" + single_quoted(joined(choice.ways, " ")) + " ;;\n";
  }
  return text + "    *) ways='' ;;\n  esac\n}\n\n";
}

// ---- bash
// ------------------------------------------------------------------------------------------------------------

// Sets `way` and `words` of a value, in a branch of a case statement.
std::string bash_branch(const std::string& pattern, const OptionInfo& option) {
  return "    " + pattern + ") way=" + name_of(way_of(option)) + " words=" + single_quoted(joined(option.words, " ")) +
         " ;;\n";
}

std::string bash_values(const CommandInfo& program) {
  std::string text;
  for (const CommandInfo* command : all_commands(program)) {
    std::size_t place = 0;
    for (const OptionInfo& option : command->options) {
      std::vector<std::string> patterns;
      if (!option.kind.empty()) {
        for (const std::string& name : option.names) patterns.push_back(single_quoted(command->path + " " + name));
      }
      if (is_argument(option)) {
        const std::string number = option.repeated ? "[0-9]*" : std::to_string(++place);
        patterns.push_back(single_quoted(command->path + " argument ") + number);
      }
      if (!patterns.empty()) text += bash_branch(joined(patterns, "|"), option);
    }
  }
  return text;
}

std::string bash_names(const CommandInfo& program, std::vector<std::string> (*names)(const CommandInfo&)) {
  std::string text;
  for (const CommandInfo* command : all_commands(program)) {
    text += "    " + single_quoted(command->path) + ") words=" + single_quoted(joined(names(*command), " ")) + " ;;\n";
  }
  return text;
}

constexpr const char* bash_head = R"sh(# bash completion of gpusched, made by `gpusched completion bash`.

)sh";

constexpr const char* bash_value_head =
    R"sh(# What may stand for a value: $1 is the command and the option, or "argument" and its number.
_gpusched_value() {
  case $1 in
)sh";

constexpr const char* bash_commands = R"sh(    *) return 1 ;;
  esac
}

_gpusched_commands() {
  case $1 in
)sh";

constexpr const char* bash_options = R"sh(    *) words='' ;;
  esac
}

_gpusched_options() {
  case $1 in
)sh";

// Bash cuts words at =, : and @, and puts a reply in place of the last piece. So the word is cut at blanks here, and
// replies lose what bash keeps in front of its piece.
constexpr const char* bash_tail = R"sh(    *) words='' ;;
  esac
}

# Policies, or backfilling behind their +, in the list, group (NAME=LIST) or entry of one (one) that is in cur: sets
# words, and begun to what stands before them. Nothing is offered within braces and behind them.
_gpusched_policies_behind() {
  local plain=$cur last ways
  if [[ $1 == group ]]; then
    [[ $cur == *=* ]] || words=''
    plain=${cur#*=}
  fi
  while [[ $plain == *\{*\}* ]]; do plain=${plain%%\{*}${plain#*\}}; done
  last=$plain
  [[ $1 != one ]] && last=${plain##*,}
  if [[ $last == *+* ]]; then
    _gpusched_backfills "${last%%+*}"
    words=$ways
    last=${last#*+}
  fi
  [[ $plain != *\{* && $cur == *"$last" ]] || words=''
  begun=${cur%"$last"}
}

_gpusched() {
  local line=${COMP_LINE:0:COMP_POINT} cur piece kept path='' previous='' way=none words='' word begun='' place=0 i
  local arguments=''
  local -a given
  read -ra given <<< "$line"
  case $line in
    *[[:blank:]]) cur='' ;;
    *) cur=${given[${#given[@]}-1]}; unset "given[${#given[@]}-1]" ;;
  esac
  cur=${cur#[\'\"]}
  for (( i = 1; i < ${#given[@]}; ++i )); do
    word=${given[i]}
    _gpusched_commands "$path"
    if [[ $word == -?* ]]; then
      previous=''
      [[ $word != *=* ]] && _gpusched_value "$path $word" && previous=$word
    elif [[ -n $previous ]]; then
      previous=''
    elif [[ " $words " == *" $word "* ]]; then
      path=${path:+$path }$word
    else
      (( ++place ))
      arguments=${arguments:+$arguments }$word
    fi
  done
  if [[ $cur == --*=* && -z $previous ]]; then
    previous=${cur%%=*}
    cur=${cur#*=}
    cur=${cur#[\'\"]}
  fi

  way=none words=''
  if [[ -n $previous ]]; then
    _gpusched_value "$path $previous"
  elif [[ $cur == -* ]]; then
    _gpusched_options "$path"
    way=words
  else
    _gpusched_commands "$path"
    if [[ -n $words ]]; then
      way=words
    else
      _gpusched_value "$path argument $(( place + 1 ))"
    fi
  fi
  case $way in
    list|one|group)
      _gpusched_policies_behind $way
      compopt -o nospace 2> /dev/null
      way=words ;;
    commands)
      _gpusched_commands "$arguments"
      way=words ;;
    profiles)
      [[ $cur == *[=,]* ]] && begun=${cur%"${cur##*[=,]}"}
      way=words_or_files ;;
  esac

  COMPREPLY=()
  case $way in
    words|words_or_files)
      while IFS= read -r word; do COMPREPLY+=( "$begun$word" ); done < <(compgen -W "$words" -- "${cur#"$begun"}") ;;
  esac
  case $way in
    files|words_or_files)
      compopt -o filenames 2> /dev/null
      while IFS= read -r word; do COMPREPLY+=( "$begun$word" ); done < <(compgen -f -- "${cur#"$begun"}") ;;
    folders)
      compopt -o filenames 2> /dev/null
      while IFS= read -r word; do COMPREPLY+=( "$word" ); done < <(compgen -d -- "$cur") ;;
  esac

  piece=${COMP_WORDS[COMP_CWORD]}
  piece=${piece#[\'\"]}
  case $piece in =|:|@) piece='' ;; esac
  kept=''
  [[ $cur == *"$piece" ]] && kept=${cur%"$piece"}
  for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#"$kept"}; done
}

complete -F _gpusched gpusched
)sh";

// ---- zsh
// -------------------------------------------------------------------------------------------------------------

std::string zsh_escaped(const std::string& text, std::string_view special) {
  std::string escaped;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// What _arguments does with a value: ":what it is:how to complete it".
std::string zsh_value(const OptionInfo& option) {
  const std::string words = zsh_escaped(joined(option.words, " "), ":");
  switch (way_of(option)) {
    case Way::none: return ":value: ";
    case Way::words: return ":value:(" + words + ")";
    case Way::list:
    case Way::one:
    case Way::group: return ":policies: _gpusched_policies_behind " + name_of(way_of(option)) + " " + words;
    case Way::commands: return ":command: _gpusched_command_names";
    case Way::profiles: return ":profiles: _gpusched_profiles " + words;
    case Way::words_or_files: return ":value: _gpusched_words_or_files " + words;
    case Way::files: return ":file:_files";
    case Way::folders: return ":folder:_files -/";
  }
  return {};
}

std::string zsh_function(const CommandInfo& command) {
  std::string name = "_gpusched" + (command.path.empty() ? "" : "_" + command.path);
  std::replace(name.begin(), name.end(), ' ', '_');
  std::string text = name + "() {\n";
  if (!command.commands.empty()) {
    text += "  local -a commands=(\n";
    for (const CommandInfo& below : command.commands) {
      text += "    " + single_quoted(below.name + ":" + zsh_escaped(in_short(below.summary), ":")) + "\n";
    }
    text += "  )\n";
  }
  text += "  _arguments -S -C";
  for (const OptionInfo& option : command.options) {
    for (const std::string& option_name : option.names) {
      const bool flag = option.kind.empty();
      text += " \\\n    " +
              single_quoted("*" + option_name + (flag ? "" : "=") + "[" +
                            zsh_escaped(in_short(option.meaning), "[]:\\") + "]" + (flag ? "" : zsh_value(option)));
    }
    if (is_argument(option)) text += " \\\n    " + single_quoted((option.repeated ? "*" : ":") + zsh_value(option));
  }
  if (!command.commands.empty()) {
    text += " \\\n    '1:command:->command' '*::argument:->argument' && return\n  case $state in\n";
    text += "    command) _describe command commands ;;\n    argument)\n      case $words[1] in\n";
    for (const CommandInfo& below : command.commands) {
      text += "        " + below.name + ") " + name + "_" + below.name + " ;;\n";
    }
    text += "      esac ;;\n  esac\n";
  }
  return text + (command.commands.empty() ? "\n}\n\n" : "}\n\n");
}

// What `help` takes behind the commands that stand there.
std::string zsh_command_names(const CommandInfo& program) {
  std::string text = "_gpusched_command_names() {\n  local -a names\n  case ${(j: :)${words[2,CURRENT-1]:#-*}} in\n";
  for (const CommandInfo* command : all_commands(program)) {
    if (command->commands.empty()) continue;
    text += "    " + single_quoted(command->path) + ") names=(" + joined(command_names(*command), " ") + ") ;;\n";
  }
  return text + "  esac\n  compadd -- $names\n}\n\n";
}

constexpr const char* zsh_head = R"sh(#compdef gpusched
# zsh completion of gpusched, made by `gpusched completion zsh`.

# Policies, or backfilling behind their +, in a list, group (NAME=LIST) or entry of one (one): $1 says which, the others
# are the policies. Nothing is offered within braces and behind them.
_gpusched_policies_behind() {
  local way=$1 plain=$PREFIX last ways="${@[2,-1]}"
  if [[ $way == group ]]; then
    [[ $plain == *=* ]] || return 1
    plain=${plain#*=}
  fi
  while [[ $plain == *\{*\}* ]]; do plain=${plain%%\{*}${plain#*\}}; done
  last=$plain
  [[ $way == one ]] || last=${plain##*,}
  if [[ $last == *+* ]]; then
    _gpusched_backfills ${last%%+*}
    last=${last#*+}
  fi
  [[ $plain != *\{* && $PREFIX == *"$last" ]] || return 1
  compset -p $(( ${#PREFIX} - ${#last} ))
  compadd -S '' -q -- ${=ways}
}

_gpusched_words_or_files() {
  compadd -- "$@"
  _files
}

# Behind TYPE= and behind a comma too.
_gpusched_profiles() {
  compset -P '*[,=]'
  _gpusched_words_or_files "$@"
}

)sh";

// ---- fish
// ------------------------------------------------------------------------------------------------------------

std::string fish_quoted(std::string_view text) { return single_quoted(text, "\\'"); }

std::string fish_value(const OptionInfo& option) {
  const std::string words = joined(option.words, " ");
  switch (way_of(option)) {
    case Way::none: return " -x";
    case Way::words: return " -x -a " + fish_quoted(words);
    case Way::list:
    case Way::one:
    case Way::group:
      return " -x -a " + fish_quoted("(__gpusched_policies_behind " + name_of(way_of(option)) + " " + words + ")");
    case Way::commands: return " -x -a '(__gpusched_command_names)'";
    case Way::profiles: return " -r -F -a " + fish_quoted("(__gpusched_profiles " + words + ")");
    case Way::words_or_files: return " -r -F -a " + fish_quoted(words);
    case Way::files: return " -r -F";
    case Way::folders: return " -x -a '(__fish_complete_directories)'";
  }
  return {};
}

std::string fish_lines(const CommandInfo& command) {
  const std::string here = "complete -c gpusched -n " +
                           fish_quoted((command.path.empty() ? "__gpusched_at" : "__gpusched_in ") + command.path);
  std::string text;
  for (const CommandInfo& below : command.commands) {
    text += "complete -c gpusched -n " + fish_quoted("__gpusched_at " + command.path) + " -f -a " + below.name +
            " -d " + fish_quoted(in_short(below.summary)) + "\n";
  }
  for (const OptionInfo& option : command.options) {
    if (!option.names.empty()) {
      text += here;
      for (const std::string& name : option.names) {
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      text +=
          (option.kind.empty() ? " -f" : fish_value(option)) + " -d " + fish_quoted(in_short(option.meaning)) + "\n";
    }
    if (!is_argument(option)) continue;
    const Way way = way_of(option);
    const bool files = way == Way::files || way == Way::words_or_files;
    text += here + (files ? " -F" : " -f");
    if (way == Way::commands) text += " -a '(__gpusched_command_names)'";
    if (!option.words.empty()) text += " -a " + fish_quoted(joined(option.words, " "));
    text += "\n";
  }
  return text;
}

constexpr const char* fish_head = R"sh(# fish completion of gpusched, made by `gpusched completion fish`.

# Below the command that the arguments name, or exactly there.
function __gpusched_in
    set -l words (commandline -opc)
    set -e words[1]
    set -l depth (count $argv)
    test (count $words) -ge $depth; and test "$words[1..$depth]" = "$argv"
end
function __gpusched_at
    set -l words (commandline -opc)
    set -e words[1]
    test "$words" = "$argv"
end

# Policies, or backfilling behind their +, in a list, group (NAME=LIST) or entry of one (one): the first argument says
# which, the others are the policies. Nothing is offered within braces and behind them.
function __gpusched_policies_behind
    set -l way $argv[1]
    set -l names $argv[2..-1]
    set -l token (commandline -ct | string replace -r '^--[a-z-]+=' '')
    set -l plain "$token"
    if test $way = group
        string match -q '*=*' -- "$plain"; or return
        set plain (string replace -r '^[^=]*=' '' -- "$plain")
    end
    set plain (string replace -ra '\{[^}]*\}' '' -- "$plain")
    string match -q '*{*' -- "$plain"; and return
    set -l last "$plain"
    test $way = one; or set last (string replace -r '.*,' '' -- "$plain")
    if string match -q '*+*' -- "$last"
        set names (__gpusched_backfills (string replace -r '\+.*' '' -- "$last"))
        set last (string replace -r '^[^+]*\+' '' -- "$last")
    end
    set -l kept (math (string length -- "$token") - (string length -- "$last"))
    test (string sub -s (math $kept + 1) -- "$token") = "$last"; or return
    set -l begun (string sub -l $kept -- "$token")
    for name in $names
        echo "$begun$name"
    end
end

# Device profiles, behind TYPE= and behind a comma too.
function __gpusched_profiles
    set -l token (commandline -ct | string replace -r '^--[a-z-]+=' '')
    set -l begun (string match -r '^.*[=,]' -- "$token")
    for name in $argv
        echo "$begun$name"
    end
end

complete -c gpusched -f
)sh";

// What may stand behind a policy's '+', and what `help` takes.
std::string fish_functions(const CommandInfo& program) {
  std::string text = "\nfunction __gpusched_backfills\n    switch $argv[1]\n";
  for (const BackfillChoice& choice : backfill_choices()) {
    text += "        case " + joined(choice.policies, " ") + "\n            printf '%s\\n' " +
            joined(choice.ways, " ") + "\n";
  }
  text +=
      "    end\nend\n\nfunction __gpusched_command_names\n    set -l path\n    for word in (commandline "
      "-opc)[3..-1]\n        string match -q -- '-*' $word; or set -a path $word\n    end\n    switch \"$path\"\n";
  for (const CommandInfo* command : all_commands(program)) {
    if (command->commands.empty()) continue;
    text += "        case " + fish_quoted(command->path) + "\n            printf '%s\\n' " +
            joined(command_names(*command), " ") + "\n";
  }
  return text + "    end\nend\n\n";
}

}  // namespace

std::string bash_completion(const CommandInfo& program) {
  return bash_head + backfill_function() + bash_value_head + bash_values(program) + bash_commands +
         bash_names(program, command_names) + bash_options + bash_names(program, option_names) + bash_tail;
}

std::string zsh_completion(const CommandInfo& program) {
  std::string text = zsh_head + backfill_function() + zsh_command_names(program);
  for (const CommandInfo* command : all_commands(program)) text += zsh_function(*command);
  return text + "_gpusched \"$@\"\n";
}

std::string fish_completion(const CommandInfo& program) {
  std::string text = fish_head + fish_functions(program);
  for (const CommandInfo* command : all_commands(program)) text += fish_lines(*command);
  return text;
}

}  // namespace gpusched
