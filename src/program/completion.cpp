// SPDX-License-Identifier: Apache-2.0
#include "src/program/completion.hpp"

#include <algorithm>
#include <vector>

#include "src/base/nearest_name.hpp"

namespace gpusched {
namespace {

// How a shell completes a value.
enum class Way { none, words, list, words_or_files, files, folders };

Way way_of(const OptionInfo& option) {
  const auto is = [&](std::string_view kind) { return option.kind == kind; };
  if (is(value_kind::policies)) return Way::list;
  if (is(value_kind::trace) || is(value_kind::cluster) || is(value_kind::profile)) return Way::words_or_files;
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

// ---- bash
// ------------------------------------------------------------------------------------------------------------

// Sets `way` and `words` of a value, in a branch of a case statement.
std::string bash_branch(const std::string& pattern, const OptionInfo& option) {
  static constexpr std::string_view names[] = {"none", "words", "list", "words_or_files", "files", "folders"};
  return "    " + pattern + ") way=" + std::string(names[static_cast<std::size_t>(way_of(option))]) +
         " words=" + single_quoted(joined(option.words, " ")) + " ;;\n";
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

# What may stand for a value: $1 is the command and the option, or "argument" and its number.
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

_gpusched() {
  local line=${COMP_LINE:0:COMP_POINT} cur piece kept path='' previous='' way=none words='' word begun='' place=0 i
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
  if [[ $way == list ]]; then
    [[ $cur == *,* ]] && begun=${cur%,*},
    compopt -o nospace 2> /dev/null
    way=words
  fi

  COMPREPLY=()
  case $way in
    words|words_or_files)
      COMPREPLY=( $(compgen -P "$begun" -W "$words" -- "${cur#"$begun"}") ) ;;
  esac
  case $way in
    files|words_or_files)
      compopt -o filenames 2> /dev/null
      while IFS= read -r word; do COMPREPLY+=( "$word" ); done < <(compgen -f -- "$cur") ;;
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
    case Way::list: return ":list: _gpusched_list " + words;
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

constexpr const char* zsh_head = R"sh(#compdef gpusched
# zsh completion of gpusched, made by `gpusched completion zsh`.

# Names behind what a comma list holds already.
_gpusched_list() {
  compset -P '*,'
  compadd -S '' -q -- "$@"
}

_gpusched_words_or_files() {
  compadd -- "$@"
  _files
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
    case Way::list: return " -x -a " + fish_quoted("(__gpusched_list " + words + ")");
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

# Names behind what a comma list holds already.
function __gpusched_list
    set -l begun (commandline -ct | string replace -r '^--[a-z-]+=' '' | string replace -r '[^,]*$' '')
    for name in $argv
        echo $begun$name
    end
end

complete -c gpusched -f
)sh";

}  // namespace

std::string bash_completion(const CommandInfo& program) {
  return bash_head + bash_values(program) + bash_commands + bash_names(program, command_names) + bash_options +
         bash_names(program, option_names) + bash_tail;
}

std::string zsh_completion(const CommandInfo& program) {
  std::string text = zsh_head;
  for (const CommandInfo* command : all_commands(program)) text += zsh_function(*command);
  return text + "_gpusched \"$@\"\n";
}

std::string fish_completion(const CommandInfo& program) {
  std::string text = fish_head;
  for (const CommandInfo* command : all_commands(program)) text += fish_lines(*command);
  return text;
}

}  // namespace gpusched
