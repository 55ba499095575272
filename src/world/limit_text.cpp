// SPDX-License-Identifier: Apache-2.0
#include "src/world/limit_text.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "src/base/field_parser.hpp"
#include "src/world/limit_json.hpp"

namespace gpusched {
namespace {

// What commas outside braces and brackets separate.
std::vector<std::string_view> parts_of_limits(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' || text[i] == '[') ++depth;
    if (text[i] == '}' || text[i] == ']') --depth;
    if (text[i] != ',' || depth != 0) continue;
    parts.push_back(trim(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  parts.push_back(trim(text.substr(begin)));
  return parts;
}

Json value_of_limit(std::string_view key, std::string_view text) {
  const auto number = parse_number(text);
  if (names_jobs(key) && text.starts_with('[') && text.ends_with(']')) {
    Json names = Json::array();
    const std::string_view inside = trim(text.substr(1, text.size() - 2));
    if (inside.empty()) return names;  // refused as in a file
    for (const std::string_view name : parts_of_limits(inside)) names.push_back(std::string(name));
    return names;
  }
  if (names_jobs(key) || !number) return std::string(text);
  const auto whole = parse_integer(text);
  return whole ? Json(*whole) : Json(*number);
}

// The object that a file would have; nothing where the text has no such form.
std::optional<Json> limit_object(std::string_view text) {
  const std::size_t open = std::min(text.find('{'), text.size());
  Json object = {{"per", std::string(trim(text.substr(0, open)))}};
  if (open == text.size()) return object;
  if (!text.ends_with('}')) return std::nullopt;
  for (const std::string_view part : parts_of_limits(text.substr(open + 1, text.size() - open - 2))) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string key(trim(part.substr(0, equals)));
    if (object.contains(key)) return std::nullopt;
    object[key] = value_of_limit(key, trim(part.substr(equals + 1)));
  }
  return object;
}

}  // namespace

Result<std::vector<LimitRule>> parse_limits(std::string_view text) {
  std::vector<LimitRule> rules;
  if (trim(text).empty()) return rules;
  for (const std::string_view part : parts_of_limits(text)) {
    const auto object = limit_object(part);
    if (!object) {
      return unexpected("expected a limit such as user{gpus=16,jobs=4}, each key once, not '" + std::string(part) +
                        "'");
    }
    JsonFields fields(*object, "");
    LimitRule rule = read_limit(fields);
    if (auto done = fields.finish(); !done) {
      return unexpected("'" + std::string(part) + "': " + done.error().to_string());
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace gpusched
