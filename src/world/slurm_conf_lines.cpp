// SPDX-License-Identifier: Apache-2.0
#include "src/world/slurm_conf_lines.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>

#include "src/base/field_parser.hpp"
#include "src/base/letter_case.hpp"
#include "src/base/name_text.hpp"
#include "src/base/visible_text.hpp"
#include "src/world/slurm_machines.hpp"
#include "traces/core/input_file.hpp"

namespace gpusched {
namespace {

// Keys whose line describes one thing by all its pairs (slurm.conf(5)).
constexpr std::array<std::string_view, 6> descriptions{"nodename",  "partitionname", "nodeset",
                                                       "downnodes", "frontendname",  "switchname"};

constexpr int most_includes_deep = 16;

Unexpected wrong_conf_line(const std::string& file, std::uint64_t line, std::string field, std::string message) {
  return Unexpected{Error{.message = std::move(message), .file = file, .line = line, .field = std::move(field)}};
}

// Without what follows a '#'; "\#" is the character.
std::string without_comment(std::string_view text) {
  std::string kept;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == '#') {
      kept += text[++i];
    } else if (text[i] == '#') {
      break;
    } else {
      kept += text[i];
    }
  }
  return kept;
}

// Takes an odd backslash, which continues the line, from its end.
bool take_continuation(std::string& text) {
  const std::size_t end = text.find_last_not_of(" \t");
  if (end == std::string::npos || text[end] != '\\') return false;
  std::size_t begin = end;
  while (begin > 0 && text[begin - 1] == '\\') --begin;
  if ((end - begin) % 2 != 0) return false;
  text.resize(end);
  return true;
}

bool is_key_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

// KEY = VALUE [KEY = "VALUE" ...]; nothing: something else stands there, and `text` begins with it.
std::optional<std::vector<SlurmPair>> pairs_of_line(std::string_view& text) {
  std::vector<SlurmPair> pairs;
  while (!(text = trim(text)).empty()) {
    std::string_view rest = text;
    const auto key_end =
        static_cast<std::size_t>(std::find_if_not(rest.begin(), rest.end(), is_key_letter) - rest.begin());
    const std::string_view key = rest.substr(0, key_end);
    rest = trim(rest.substr(key_end));
    if (key.empty() || !rest.starts_with('=')) return std::nullopt;
    rest = trim(rest.substr(1));
    const bool is_quoted = rest.starts_with('"');
    if (is_quoted) rest.remove_prefix(1);
    std::size_t end = is_quoted ? rest.find('"') : std::min(rest.find_first_of(" \t"), rest.size());
    if (end == std::string_view::npos) return std::nullopt;
    pairs.push_back({std::string(key), std::string(rest.substr(0, end))});
    text = rest.substr(end + (is_quoted ? 1 : 0));
  }
  return pairs;
}

class ConfReader {
 public:
  explicit ConfReader(const std::string& path) : folder_(std::filesystem::path(path).parent_path()) {}

  Result<void> read(const std::string& path, int depth) {
    auto file = InputFile::open(path);
    if (!file) return Unexpected{file.error()};
    found_.files.push_back(path);
    std::string_view part;
    std::string text;
    std::uint64_t begins = 0;
    bool goes_on = false;
    while (file->next_line(part)) {
      if (!goes_on) begins = file->line_number();
      text = (goes_on ? text + " " : std::string()) + without_comment(part);
      goes_on = take_continuation(text);
      if (goes_on) continue;
      if (auto taken = take(path, begins, text, depth); !taken) return taken;
    }
    if (file->failure()) return Unexpected{*file->failure()};
    return goes_on ? take(path, begins, text, depth) : Result<void>{};
  }
  SlurmConfLines found() && { return std::move(found_); }

 private:
  Result<void> take(const std::string& path, std::uint64_t line, std::string_view text, int depth) {
    text = trim(text);
    constexpr std::string_view include = "include";
    if (text.size() > include.size() && same_slurm_word(text.substr(0, include.size()), include) &&
        (text[include.size()] == ' ' || text[include.size()] == '\t')) {
      return take_include(path, line, trim(text.substr(include.size())), depth);
    }
    auto pairs = pairs_of_line(text);
    if (!pairs)
      return wrong_conf_line(path, line, "line", "expected KEY=VALUE, found '" + excerpt(std::string(text), 60) + "'");
    if (pairs->empty()) return {};
    const std::string first = lower_case(pairs->front().key);
    if (std::find(descriptions.begin(), descriptions.end(), first) != descriptions.end()) {
      found_.lines.push_back({path, line, *std::move(pairs)});
      return {};
    }
    for (SlurmPair& pair : *pairs) found_.lines.push_back({path, line, {std::move(pair)}});
    return {};
  }

  Result<void> take_include(const std::string& path, std::uint64_t line, std::string_view name, int depth) {
    if (depth == most_includes_deep) {
      return wrong_conf_line(path, line, "Include", "expected files that do not include each other in a circle");
    }
    const std::filesystem::path file{std::string(name)};
    auto read_it = read(file.is_absolute() ? file.string() : (folder_ / file).string(), depth + 1);
    if (read_it || read_it.error().line != 0) return read_it;
    return wrong_conf_line(path, line, "Include", read_it.error().to_string());
  }

  std::filesystem::path folder_;
  SlurmConfLines found_;
};

// "[01-03,7]" behind a prefix: its numbers as they are written, with the zeros of the first.
Result<std::vector<std::string>> host_numbers(std::string_view list) {
  constexpr std::int64_t most_names = 1'000'000;
  std::vector<std::string> numbers;
  for (;;) {
    const std::size_t stop = std::min(list.find(','), list.size());
    const std::string_view range = list.substr(0, stop);
    const std::size_t dash = range.find('-');
    const std::string_view first = range.substr(0, dash);
    const std::string_view last = dash == std::string_view::npos ? first : range.substr(dash + 1);
    const auto from = parse_exact<std::int64_t>(first), to = parse_exact<std::int64_t>(last);
    if (!from || !to || *from < 0 || *to < *from || *to - *from >= most_names || first.size() > 18) {
      return unexpected("expected numbers like 01-16,20 in brackets, found '" + std::string(range) + "'");
    }
    for (std::int64_t number = *from; number <= *to; ++number) {
      const std::string digits = std::to_string(number);
      numbers.push_back(std::string(first.size() > digits.size() ? first.size() - digits.size() : 0, '0') + digits);
    }
    if (stop == list.size()) return numbers;
    list.remove_prefix(stop + 1);
  }
}

// One name, whose brackets multiply it: "rack[1-2]n[1-4]".
Result<std::vector<std::string>> host_names_of(std::string_view entry) {
  constexpr std::size_t most_names = 1'000'000;
  std::vector<std::string> names{""};
  while (!entry.empty()) {
    const std::size_t open = std::min(entry.find('['), entry.size());
    for (std::string& name : names) name += entry.substr(0, open);
    if (open == entry.size()) break;
    const std::size_t close = entry.find(']', open);
    if (close == std::string_view::npos) return unexpected("expected a ']' in '" + std::string(entry) + "'");
    const auto numbers = host_numbers(entry.substr(open + 1, close - open - 1));
    if (!numbers) return Unexpected{numbers.error()};
    if (names.size() * numbers->size() > most_names) return unexpected("expected at most a million names");
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const std::string& number : *numbers) longer.push_back(name + number);
    }
    names = std::move(longer);
    entry.remove_prefix(close + 1);
  }
  return names;
}

}  // namespace

bool same_slurm_word(std::string_view a, std::string_view b) { return lower_case(a) == lower_case(b); }

const std::string* SlurmConfLine::find(std::string_view key) const {
  const std::string* found = nullptr;
  for (const SlurmPair& pair : pairs) {
    if (same_slurm_word(pair.key, key)) found = &pair.value;
  }
  return found;
}

Result<SlurmConfLines> read_slurm_conf_lines(const std::string& path) {
  ConfReader reader(path);
  if (auto done = reader.read(path, 0); !done) return Unexpected{done.error()};
  return std::move(reader).found();
}

std::optional<Time> parse_slurm_wall(std::string_view text) {
  constexpr std::string_view words[] = {"unlimited", "infinite", "-1"};
  const bool is_none = std::any_of(std::begin(words), std::end(words),
                                   [&](std::string_view word) { return same_slurm_word(word, text); });
  return is_none ? Time::max() : parse_slurm_span(text);
}

std::vector<std::string> slurm_names(std::string_view list) {
  std::vector<std::string> names;
  if (same_slurm_word(list, "all")) return names;
  for (const std::string_view name : split_at(list, ',')) {
    if (trim(name).empty()) continue;
    names.push_back(name_text(trim(name)));
    if (lower_case(names.back()) != names.back()) names.push_back(lower_case(names.back()));
  }
  return names;
}

Result<std::vector<std::string>> slurm_host_names(std::string_view list) {
  std::vector<std::string> all;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']') --depth;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    const auto names = host_names_of(trim(list.substr(begin, i - begin)));
    if (!names) return names;
    if (names->front().empty()) return unexpected("expected names like node[01-16], found '" + std::string(list) + "'");
    all.insert(all.end(), names->begin(), names->end());
    begin = i + 1;
  }
  return all;
}

}  // namespace gpusched
