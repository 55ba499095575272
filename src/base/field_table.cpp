// SPDX-License-Identifier: Apache-2.0
#include "src/base/field_table.hpp"

#include <algorithm>
#include <optional>
#include <sstream>
#include <type_traits>
#include <utility>

#include "src/base/field_parser.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/strict_json.hpp"

namespace gpusched {
namespace {

constexpr double most_seconds = to_seconds(end_of_time);

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

std::string slashed(std::string path) {
  std::replace(path.begin(), path.end(), '.', '/');
  return "/" + path;
}

Unexpected bad_value(const std::string& where, const std::string& expected) {
  return Unexpected{Error{.message = "expected " + expected, .field = where}};
}

// "1 to 1000000000" or "1 or more".
std::string range_text(const Field::Range& range) {
  const auto plain = [](double number) {
    std::ostringstream text;
    text.precision(15);
    text << number;
    return text.str();
  };
  return plain(range.least) +
         (range.most < std::numeric_limits<double>::infinity() ? " to " + plain(range.most) : std::string(" or more"));
}

std::string expectation(const Field& field) {
  return std::visit(
      Overloaded{
          [&](const std::string*) {
            if (field.words.empty()) return std::string("a text");
            return "one of " + joined(field.words, "|");
          },
          [](const bool*) { return std::string("true or false"); },
          [&](const std::uint64_t*) { return "a whole number, " + range_text(field.range.value_or(Field::Range{})); },
          [&](const double*) {
            return field.range ? "a number from " + range_text(*field.range) : std::string("a number above 0");
          },
          [](const Time*) { return std::string("seconds from 0 to 4.6e12"); },
          [](const std::vector<std::string>*) { return std::string("a list of texts"); }},
      field.target);
}

std::optional<double> allowed(const Field& field, std::optional<double> number) {
  if (!number) return number;
  const bool within = field.range ? *number >= field.range->least && *number <= field.range->most
                                  : *number > 0 && *number < most_seconds;
  return within ? number : std::nullopt;
}

std::optional<std::uint64_t> allowed(const Field& field, std::optional<std::uint64_t> number) {
  if (!number || !field.range) return number;
  const auto value = static_cast<double>(*number);
  return value >= field.range->least && value <= field.range->most ? number : std::nullopt;
}

std::optional<Time> span_from(std::optional<double> seconds) {
  if (!seconds || !(*seconds >= 0 && *seconds < most_seconds)) return std::nullopt;
  return from_seconds(*seconds);
}

Result<void> set_word(const Field& field, std::string* target, std::string text, const std::string& where) {
  if (!field.words.empty() && std::find(field.words.begin(), field.words.end(), text) == field.words.end()) {
    return bad_value(where, expectation(field) + ", not '" + text + "'" + suggest_nearest(text, field.words));
  }
  *target = std::move(text);
  return {};
}

template <class T, class Value>
Result<void> store(T* target, const std::optional<Value>& value, const Field& field, const std::string& where,
                   const std::string& given) {
  if (!value) return bad_value(where, expectation(field) + ", not " + given);
  *target = *value;
  return {};
}

// The names that may stand directly under `prefix`.
std::vector<std::string> keys_under(const FieldTable& fields, const std::string& prefix) {
  std::vector<std::string> keys;
  for (const Field& field : fields) {
    if (!field.path.starts_with(prefix)) continue;
    std::string key = field.path.substr(prefix.size());
    key = key.substr(0, key.find('.'));
    if (keys.empty() || keys.back() != key) keys.push_back(key);
  }
  return keys;
}

Unexpected unknown_key(const FieldTable& fields, const std::string& prefix, const std::string& key) {
  return Unexpected{Error{.message = "unknown key" + suggest_nearest(key, keys_under(fields, prefix)),
                          .field = slashed(prefix + key)}};
}

Result<void> read_object(const FieldTable& fields, const Json& object, const std::string& prefix) {
  if (!object.is_object()) {
    return bad_value(prefix.empty() ? "/" : slashed(prefix.substr(0, prefix.size() - 1)), "an object");
  }
  for (const auto& [key, value] : object.items()) {
    const std::string path = prefix + key;
    Result<void> done;
    if (prefix.empty() && key == "$schema") continue;  // editors look for it
    if (const Field* field = find_field(fields, path); field != nullptr) {
      done = set_field_json(*field, value);
    } else if (!keys_under(fields, path + ".").empty()) {
      done = read_object(fields, value, path + ".");
    } else {
      done = unknown_key(fields, prefix, key);
    }
    if (!done) return done;
  }
  return {};
}

// The object that `path` stands in, and the last part of `path`.
std::pair<Json*, std::string> place_of(Json& root, const std::string& path, const std::string& between) {
  Json* object = &root;
  std::size_t begin = 0;
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', begin)) {
    if (!between.empty()) object = &(*object)[between];
    object = &(*object)[path.substr(begin, dot - begin)];
    begin = dot + 1;
  }
  return {object, path.substr(begin)};
}

}  // namespace

const Field* find_field(const FieldTable& fields, std::string_view path) {
  const auto place = std::find_if(fields.begin(), fields.end(), [&](const Field& field) { return field.path == path; });
  return place == fields.end() ? nullptr : &*place;
}

Result<void> set_field(const Field& field, std::string_view text) {
  const std::string where = field.path;
  const std::string given = "'" + std::string(text) + "'";
  return std::visit(
      Overloaded{[&](std::string* target) { return set_word(field, target, std::string(text), where); },
                 [&](bool* target) {
                   const auto flag = text == "true" || text == "false" ? std::optional(text == "true") : std::nullopt;
                   return store(target, flag, field, where, given);
                 },
                 [&](std::uint64_t* target) {
                   return store(target, allowed(field, parse_exact<std::uint64_t>(text)), field, where, given);
                 },
                 [&](double* target) { return store(target, allowed(field, parse_number(text)), field, where, given); },
                 [&](Time* target) { return store(target, span_from(parse_number(text)), field, where, given); },
                 [&](std::vector<std::string>* target) -> Result<void> {
                   if (field.repeats()) {
                     *target = {std::string(text)};
                     return {};
                   }
                   auto texts = field.split(text);
                   if (!texts) return Unexpected{texts.error()};
                   *target = std::move(*texts);
                   return {};
                 }},
      field.target);
}

Result<void> set_field_json(const Field& field, const Json& value) {
  const std::string where = slashed(field.path);
  const std::string given = value.dump();
  return std::visit(
      Overloaded{[&](std::string* target) -> Result<void> {
                   if (!value.is_string()) return bad_value(where, expectation(field) + ", not " + given);
                   return set_word(field, target, value.get<std::string>(), where);
                 },
                 [&](bool* target) {
                   const auto flag = value.is_boolean() ? std::optional(value.get<bool>()) : std::nullopt;
                   return store(target, flag, field, where, given);
                 },
                 [&](std::uint64_t* target) {
                   const auto number =
                       value.is_number_unsigned() ? std::optional(value.get<std::uint64_t>()) : std::nullopt;
                   return store(target, allowed(field, number), field, where, given);
                 },
                 [&](double* target) {
                   const auto number = value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
                   return store(target, allowed(field, number), field, where, given);
                 },
                 [&](Time* target) {
                   const auto number = value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
                   return store(target, span_from(number), field, where, given);
                 },
                 [&](std::vector<std::string>* target) -> Result<void> {
                   std::vector<std::string> texts;
                   if (!value.is_array()) return bad_value(where, expectation(field) + ", not " + given);
                   for (const Json& entry : value) {
                     if (!entry.is_string()) return bad_value(where, expectation(field) + ", not " + given);
                     texts.push_back(entry.get<std::string>());
                   }
                   *target = std::move(texts);
                   return {};
                 }},
      field.target);
}

std::string field_text(const Field& field) {
  std::ostringstream text;
  std::visit(
      [&](const auto* value) {
        using Value = std::remove_cvref_t<decltype(*value)>;
        if constexpr (std::is_same_v<Value, Time>) {
          text << to_seconds(*value);
        } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
          text << joined(*value, ",");
        } else {
          text << *value;
        }
      },
      field.target);
  return text.str();
}

Json field_json(const Field& field) {
  return std::visit(Overloaded{[](const Time* value) {
                                 const bool whole = value->us % microseconds_per_second == 0;
                                 return whole ? Json(value->us / microseconds_per_second) : Json(to_seconds(*value));
                               },
                               [](const auto* value) { return Json(*value); }},
                    field.target);
}

Result<void> apply_setting(const FieldTable& fields, std::string_view setting) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string_view::npos) {
    return unexpected("expected path.to.key=value, not '" + std::string(setting) + "'");
  }
  const std::string path(setting.substr(0, equals));
  const Field* field = find_field(fields, path);
  if (field == nullptr) {
    std::vector<std::string> known(fields.size());
    std::transform(fields.begin(), fields.end(), known.begin(), [](const Field& f) { return f.path; });
    return unexpected("unknown key '" + path + "'" + suggest_nearest(path, known));
  }
  return set_field(*field, setting.substr(equals + 1));
}

Result<void> apply_settings(const FieldTable& fields, std::string_view settings) {
  while (!settings.empty()) {
    const std::size_t comma = std::min(settings.find(','), settings.size());
    if (auto done = apply_setting(fields, settings.substr(0, comma)); !done) return done;
    settings.remove_prefix(std::min(comma + 1, settings.size()));
  }
  return {};
}

Result<Json> read_fields(const FieldTable& fields, std::string_view text, const std::string& file) {
  auto json = parse_json_strictly(text, file);
  if (!json) return json;
  const bool is_manifest = json->is_object() && json->contains("program") && json->contains("config");
  const auto done = read_object(fields, is_manifest ? (*json)["config"] : *json, "");
  if (done) return json;
  Error error = done.error();
  error.file = file;
  if (is_manifest) error.field = "/config" + error.field;
  return Unexpected{error};
}

std::string fields_json(const FieldTable& fields, bool all) {
  Json root = Json::object();
  for (const Field& field : fields) {
    if (!all && !field.changes_results) continue;
    const auto [object, key] = place_of(root, field.path, "");
    (*object)[key] = field_json(field);
  }
  return json_text(root);
}

Json field_schema(const Field& field) {
  Json entry = std::visit(Overloaded{[](const std::string*) {
                                       return Json{{"type", "string"}};
                                     },
                                     [](const bool*) {
                                       return Json{{"type", "boolean"}};
                                     },
                                     [](const std::uint64_t*) {
                                       return Json{{"type", "integer"}, {"minimum", 0}};
                                     },
                                     [](const double*) {
                                       return Json{{"type", "number"}, {"exclusiveMinimum", 0}};
                                     },
                                     [](const Time*) {
                                       return Json{{"type", "number"}, {"minimum", 0}};
                                     },
                                     [](const std::vector<std::string>*) {
                                       return Json{{"type", "array"}, {"items", {{"type", "string"}}}};
                                     }},
                          field.target);
  entry["description"] = field.meaning;
  if (!field.words.empty()) entry["enum"] = field.words;
  entry["default"] = field_json(field);
  return entry;
}

std::string fields_schema(const FieldTable& fields, const std::string& title, const std::string& description) {
  Json root = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
               {"title", title},
               {"description", description},
               {"type", "object"},
               {"additionalProperties", false}};
  root["properties"]["$schema"] = {{"type", "string"}};
  for (const Field& field : fields) {
    const auto [object, key] = place_of(root, field.path, "properties");
    if (object != &root) {
      (*object)["type"] = "object";
      (*object)["additionalProperties"] = false;
    }
    (*object)["properties"][key] = field_schema(field);
  }
  return json_text(root);
}

}  // namespace gpusched
