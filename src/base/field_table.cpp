// SPDX-License-Identifier: Apache-2.0
#include "src/base/field_table.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>
#include <type_traits>
#include <utility>

#include "src/base/field_parser.hpp"
#include "src/base/json_fields.hpp"
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

std::string expected_text(const Field& field) {
  if (!field.expected.empty()) return field.expected;
  return field.words.empty() ? "a text" : "one of " + joined(field.words, "|");
}

std::string expected_number(const Field& field) {
  return field.range ? "a number from " + range_text(*field.range) : std::string("a number above 0");
}

std::string expected_seconds(const Field& field) {
  return "seconds from " + (field.range ? range_text(*field.range) : std::string("0 to 4.6e12"));
}

std::string expected_count(const Field& field) {
  return "a whole number, " + range_text(field.range.value_or(Field::Range{}));
}

std::string expectation(const Field& field) {
  return std::visit(
      Overloaded{[&](const std::string*) { return expected_text(field); },
                 [&](const TextTarget&) { return expected_text(field); },
                 [](const bool*) { return std::string("true or false"); },
                 [&](const std::uint32_t*) { return expected_count(field); },
                 [&](const std::uint64_t*) { return expected_count(field); },
                 [&](const double*) { return expected_number(field); },
                 [&](const Time*) { return expected_seconds(field); },
                 [&](const LimitTarget&) { return expected_seconds(field); },
                 [](const std::vector<std::string>*) { return std::string("a list of texts"); },
                 [&](const std::vector<double>*) { return expected_number(field) + ", or a list of such"; }},
      field.target);
}

bool within(const std::optional<Field::Range>& range, double value) {
  return !range || (value >= range->least && value <= range->most);
}

std::optional<double> allowed(const Field& field, std::optional<double> number) {
  if (!number) return number;
  const bool good = field.range ? within(field.range, *number) : *number > 0 && *number < most_seconds;
  return good ? number : std::nullopt;
}

template <class Whole>
std::optional<Whole> allowed(const Field& field, std::optional<std::uint64_t> number) {
  if (!number || *number > std::numeric_limits<Whole>::max()) return std::nullopt;
  return within(field.range, static_cast<double>(*number)) ? std::optional(static_cast<Whole>(*number)) : std::nullopt;
}

std::optional<Time> span_from(const Field& field, std::optional<double> seconds) {
  if (!seconds || !(*seconds >= 0 && *seconds < most_seconds) || !within(field.range, *seconds)) return std::nullopt;
  return from_seconds(*seconds);
}

Time limit_of(Time span) { return span == Time{} ? Time::max() : span; }
Time span_of(Time limit) { return limit == Time::max() ? Time{} : limit; }

// What is wrong with a text that stands for nothing.
Unexpected bad_word(const Field& field, const std::string& text, const std::string& where) {
  return bad_value(where, expectation(field) + ", not '" + text + "'" + suggest_nearest(text, field.words));
}

Result<void> set_word(const Field& field, std::string* target, std::string text, const std::string& where) {
  const bool known =
      field.words.empty() || std::find(field.words.begin(), field.words.end(), text) != field.words.end();
  if (!known) return bad_word(field, text, where);
  *target = std::move(text);
  return {};
}

Result<void> set_meant(const Field& field, const TextTarget& target, const std::string& text,
                       const std::string& where) {
  if (!target.set(text)) return bad_word(field, text, where);
  return {};
}

template <class T, class Value>
Result<void> store(T* target, const std::optional<Value>& value, const Field& field, const std::string& where,
                   const std::string& given) {
  if (!value) return bad_value(where, expectation(field) + ", not " + given);
  *target = *value;
  return {};
}

Result<void> store_limit(const LimitTarget& target, const std::optional<Time>& span, const Field& field,
                         const std::string& where, const std::string& given) {
  return store(target.time, span ? std::optional(limit_of(*span)) : span, field, where, given);
}

// The names that may stand directly under `prefix`.
std::vector<std::string> keys_under(const FieldTable& fields, const std::string& prefix) {
  std::vector<std::string> keys;
  for (const Field& field : fields) {
    if (!field.path.starts_with(prefix)) continue;
    std::string key = field.path.substr(prefix.size());
    key = key.substr(0, key.find('.'));
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  return keys;
}

void set_from(JsonFields& object, const std::string& key, const Field& field, const Json& value) {
  if (auto done = set_field_json(field, value); !done) object.fail(key, done.error().message);
}

void refuse_moved(JsonFields& object, const FieldTable& fields, const std::string& prefix,
                  const std::vector<MovedKey>& moved) {
  for (const MovedKey& entry : moved) {
    if (!entry.path.starts_with(prefix)) continue;
    const std::string key = entry.path.substr(prefix.size());
    if (key.find('.') != std::string::npos || !object.has(key)) continue;
    const bool is_group = !keys_under(fields, entry.path + ".").empty();
    if (is_group && object.find(key)->is_object()) continue;
    object.fail(key, "is called " + slashed(entry.now) + " now");
  }
}

void read_group(JsonFields& object, const FieldTable& fields, const std::string& prefix,
                const std::vector<MovedKey>& moved) {
  refuse_moved(object, fields, prefix, moved);
  for (const std::string& key : keys_under(fields, prefix)) {
    const Json* value = object.find(key);
    if (value == nullptr) continue;
    const std::string path = prefix + key;
    if (const Field* field = find_field(fields, path)) {
      set_from(object, key, *field, *value);
    } else if (const Field* whole = find_field(fields, path + ".path"); whole != nullptr && !value->is_object()) {
      set_from(object, key, *whole, *value);
    } else {
      object.read_nested(key, *value, [&](JsonFields& own) { read_group(own, fields, path + ".", moved); });
    }
  }
  // Keys of which nothing is left: objects of moved ones alone.
  for (const MovedKey& entry : moved) {
    if (!entry.path.starts_with(prefix)) continue;
    const std::string key = entry.path.substr(prefix.size(), entry.path.find('.', prefix.size()) - prefix.size());
    if (key.size() + prefix.size() == entry.path.size() || !keys_under(fields, prefix + key + ".").empty()) continue;
    const Json* value = object.find(key);
    if (value == nullptr || !value->is_object()) continue;
    object.read_nested(key, *value, [&](JsonFields& own) { refuse_moved(own, fields, prefix + key + ".", moved); });
  }
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

std::optional<std::vector<double>> numbers_from(const Field& field, const std::vector<std::optional<double>>& given) {
  std::vector<double> numbers;
  for (const std::optional<double> number : given) {
    const auto good = allowed(field, number);
    if (!good) return std::nullopt;
    numbers.push_back(*good);
  }
  return numbers.empty() ? std::nullopt : std::optional(std::move(numbers));
}

std::optional<std::vector<double>> numbers_of_json(const Field& field, const Json& value) {
  const auto number = [](const Json& entry) {
    return entry.is_number() ? std::optional(entry.get<double>()) : std::nullopt;
  };
  std::vector<std::optional<double>> given;
  if (!value.is_array()) given.push_back(number(value));
  if (value.is_array()) std::transform(value.begin(), value.end(), std::back_inserter(given), number);
  return numbers_from(field, given);
}

// "0.1,1", or as in a JSON file: "[0.1, 1]".
std::optional<std::vector<double>> numbers_of_text(const Field& field, std::string_view text) {
  if (trim(text).starts_with('[')) {
    const auto json = parse_json_strictly(text, "");
    return json ? numbers_of_json(field, *json) : std::nullopt;
  }
  std::vector<std::optional<double>> given;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    given.push_back(parse_number(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return numbers_from(field, given);
}

std::string rounded_text(double number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

}  // namespace

const Field* find_field(const FieldTable& fields, std::string_view path) {
  const auto place = std::find_if(fields.begin(), fields.end(), [&](const Field& field) { return field.path == path; });
  return place == fields.end() ? nullptr : &*place;
}

void append_fields(FieldTable& fields, FieldTable more) {
  for (Field& field : more) fields.push_back(std::move(field));
}

Result<void> set_field(const Field& field, std::string_view text) {
  const std::string where = field.path;
  const std::string given = "'" + std::string(text) + "'";
  const auto whole = [&] { return parse_exact<std::uint64_t>(text); };
  const auto span = [&] { return span_from(field, parse_number(text)); };
  return std::visit(
      Overloaded{
          [&](std::string* target) { return set_word(field, target, std::string(text), where); },
          [&](const TextTarget& target) { return set_meant(field, target, std::string(text), where); },
          [&](bool* target) {
            const auto flag = text == "true" || text == "false" ? std::optional(text == "true") : std::nullopt;
            return store(target, flag, field, where, given);
          },
          [&](std::uint32_t* target) {
            return store(target, allowed<std::uint32_t>(field, whole()), field, where, given);
          },
          [&](std::uint64_t* target) {
            return store(target, allowed<std::uint64_t>(field, whole()), field, where, given);
          },
          [&](double* target) { return store(target, allowed(field, parse_number(text)), field, where, given); },
          [&](Time* target) { return store(target, span(), field, where, given); },
          [&](const LimitTarget& target) { return store_limit(target, span(), field, where, given); },
          [&](std::vector<double>* target) { return store(target, numbers_of_text(field, text), field, where, given); },
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
  const std::string given = json_excerpt(value);
  const auto refuse = [&] { return bad_value(where, expectation(field) + ", not " + given); };
  const auto whole = [&] {
    return value.is_number_unsigned() ? std::optional(value.get<std::uint64_t>()) : std::nullopt;
  };
  const auto number = [&] { return value.is_number() ? std::optional(value.get<double>()) : std::nullopt; };
  return std::visit(
      Overloaded{[&](std::string* target) -> Result<void> {
                   if (!value.is_string()) return refuse();
                   return set_word(field, target, value.get<std::string>(), where);
                 },
                 [&](const TextTarget& target) -> Result<void> {
                   if (!value.is_string()) return refuse();
                   return set_meant(field, target, value.get<std::string>(), where);
                 },
                 [&](bool* target) {
                   const auto flag = value.is_boolean() ? std::optional(value.get<bool>()) : std::nullopt;
                   return store(target, flag, field, where, given);
                 },
                 [&](std::uint32_t* target) {
                   return store(target, allowed<std::uint32_t>(field, whole()), field, where, given);
                 },
                 [&](std::uint64_t* target) {
                   return store(target, allowed<std::uint64_t>(field, whole()), field, where, given);
                 },
                 [&](double* target) { return store(target, allowed(field, number()), field, where, given); },
                 [&](Time* target) { return store(target, span_from(field, number()), field, where, given); },
                 [&](const LimitTarget& target) {
                   return store_limit(target, span_from(field, number()), field, where, given);
                 },
                 [&](std::vector<double>* target) {
                   return store(target, numbers_of_json(field, value), field, where, given);
                 },
                 [&](std::vector<std::string>* target) -> Result<void> {
                   const auto is_text = [](const Json& entry) { return entry.is_string(); };
                   if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_text)) return refuse();
                   *target = value.get<std::vector<std::string>>();
                   return {};
                 }},
      field.target);
}

std::string field_text(const Field& field) {
  return std::visit(
      Overloaded{[](const std::string* value) { return *value; }, [](const TextTarget& target) { return target.get(); },
                 [](const bool* value) { return std::string(*value ? "1" : "0"); },
                 [](const std::uint32_t* value) { return std::to_string(*value); },
                 [](const std::uint64_t* value) { return std::to_string(*value); },
                 [](const double* value) { return rounded_text(*value); },
                 [](const Time* value) { return rounded_text(to_seconds(*value)); },
                 [](const LimitTarget& target) { return rounded_text(to_seconds(span_of(*target.time))); },
                 [](const std::vector<std::string>* value) { return joined(*value, ","); },
                 [](const std::vector<double>* value) {
                   std::vector<std::string> texts;
                   std::transform(value->begin(), value->end(), std::back_inserter(texts), rounded_text);
                   return joined(texts, ",");
                 }},
      field.target);
}

Json field_json(const Field& field) {
  const auto seconds = [](Time span) {
    const bool whole = span.us % microseconds_per_second == 0;
    return whole ? Json(span.us / microseconds_per_second) : Json(to_seconds(span));
  };
  return std::visit(Overloaded{[&](const Time* value) { return seconds(*value); },
                               [&](const LimitTarget& target) { return seconds(span_of(*target.time)); },
                               [](const TextTarget& target) { return Json(target.get()); },
                               [](const auto* value) { return Json(*value); }},
                    field.target);
}

std::string keyword_of(const Field& field) {
  std::string name = field.flag.substr(field.flag.find_first_not_of('-'));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
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

void read_table(JsonFields& object, const FieldTable& fields, const std::vector<MovedKey>& moved) {
  read_group(object, fields, "", moved);
}

Result<Json> read_fields(const FieldTable& fields, std::string_view text, const std::string& file,
                         const std::vector<MovedKey>& moved) {
  auto json = parse_json_strictly(text, file);
  if (!json) return json;
  const Json& config = config_of(*json);
  JsonFields object(config, file, &config == &*json ? "" : "/config");
  read_table(object, fields, moved);
  if (auto done = object.finish(); !done) return Unexpected{done.error()};
  return json;
}

const Json& config_of(const Json& document) {
  const bool is_manifest = document.is_object() && document.contains("program") && document.contains("config");
  return is_manifest ? document["config"] : document;
}

std::set<std::string> given_paths(const FieldTable& fields, const Json& object) {
  std::set<std::string> paths;
  for (const Field& field : fields) {
    const Json* place = &object;
    std::size_t begin = 0;
    while (place != nullptr && begin < field.path.size()) {
      const std::size_t end = std::min(field.path.find('.', begin), field.path.size());
      const auto found = place->is_object() ? place->find(field.path.substr(begin, end - begin)) : place->end();
      const bool is_short = place->is_string() && field.path.substr(begin) == "path";  // of a group given as its path
      if (is_short) break;
      place = place->is_object() && found != place->end() ? &*found : nullptr;
      begin = end + 1;
    }
    if (place != nullptr) paths.insert(field.path);
  }
  return paths;
}

Error in_option(std::string_view path, Error error) {
  if (!error.file.empty() || error.line != 0 || error.field == path) return error;
  return {.message = error.to_string(), .field = std::string(path)};
}

Error named_error(Error error, const FieldTable& fields, const FieldSources& sources) {
  std::string path = error.field.substr(error.field.starts_with('/') ? 1 : 0);
  std::replace(path.begin(), path.end(), '/', '.');
  const auto is_it = [&](const Field& field) {
    return field.path == path || (!field.flag.empty() && field.flag == error.field);
  };
  const auto field = std::find_if(fields.begin(), fields.end(), is_it);
  if (!error.file.empty() || error.field.empty() || field == fields.end()) return error;
  if (sources.from_file.contains(field->path)) {
    error.file = sources.file;
    error.field = slashed(field->path);
  } else if (!field->flag.empty()) {
    error.field = field->flag;
  }
  return error;
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

namespace {

// A number of this type with its bounds; `above`: the bound below is left out of them where no range is given.
Json number_schema(const char* type, const Field& field, bool above) {
  Json schema = {{"type", type}};
  if (!field.range) {
    schema[above ? "exclusiveMinimum" : "minimum"] = 0;
    return schema;
  }
  const auto number = [](double value) {
    return value == std::trunc(value) ? Json(static_cast<std::int64_t>(value)) : Json(value);
  };
  schema["minimum"] = number(field.range->least);
  if (field.range->most < std::numeric_limits<double>::infinity()) schema["maximum"] = number(field.range->most);
  return schema;
}

}  // namespace

Json field_schema(const Field& field) {
  const auto text = [] { return Json{{"type", "string"}}; };
  Json entry =
      std::visit(Overloaded{[&](const std::string*) { return text(); }, [&](const TextTarget&) { return text(); },
                            [](const bool*) {
                              return Json{{"type", "boolean"}};
                            },
                            [&](const std::uint32_t*) { return number_schema("integer", field, false); },
                            [&](const std::uint64_t*) { return number_schema("integer", field, false); },
                            [&](const double*) { return number_schema("number", field, true); },
                            [&](const Time*) { return number_schema("number", field, false); },
                            [&](const LimitTarget&) { return number_schema("number", field, false); },
                            [](const std::vector<std::string>*) {
                              return Json{{"type", "array"}, {"items", {{"type", "string"}}}};
                            },
                            [&](const std::vector<double>*) {
                              const Json number = number_schema("number", field, true);
                              return Json{{"anyOf", {number, {{"type", "array"}, {"minItems", 1}, {"items", number}}}}};
                            }},
                 field.target);
  entry["description"] = field.meaning;
  if (!field.words.empty()) entry["enum"] = field.words;
  entry["default"] = field_json(field);
  if (!field.unit.empty()) entry["x-unit"] = field.unit;
  if (!field.flag.empty()) entry["x-flag"] = field.flag;
  for (const Lack& lack : field.lacks) entry["x-lacking"][lack.who] = lack.why;
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
  for (const Field& field : fields) {  // a group that may be given as its path alone
    if (!field.path.ends_with(".path")) continue;
    const auto [object, key] = place_of(root, field.path.substr(0, field.path.rfind('.')), "properties");
    Json& group = (*object)["properties"][key];
    group = {{"anyOf", {{{"type", "string"}}, std::move(group)}}};
  }
  return json_text(root);
}

}  // namespace gpusched
