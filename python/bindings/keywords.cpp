// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/keywords.hpp"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <variant>

#include "src/base/json_fields.hpp"
#include "src/base/nearest_name.hpp"

namespace gpusched::python {

void set_keywords(const FieldTable& fields, const std::string& json) {
  const auto given = nlohmann::ordered_json::parse(json);
  for (const auto& [name, value] : given.items()) {
    const Field* field = nullptr;
    std::vector<std::string> known;
    for (const Field& candidate : fields) {
      if (candidate.flag.empty()) continue;
      known.push_back(keyword_of(candidate));
      if (known.back() == name) field = &candidate;
    }
    if (field == nullptr) throw InputError(name + ": no such argument" + suggest_nearest(name, known));
    if (const auto done = set_field_json(*field, value); !done) {
      throw InputError(name + ": " + done.error().message);
    }
  }
}

void refuse_keywords(const std::string& json, const std::map<std::string, std::string>& why) {
  const auto given = nlohmann::json::parse(json);
  for (const auto& [name, value] : given.items()) {
    if (const auto found = why.find(name); found != why.end()) throw InputError(name + ": " + found->second);
  }
}

FieldTable by_keyword(FieldTable fields) {
  for (Field& field : fields) field.path = keyword_of(field);
  return fields;
}

void set_options(const FieldTable& fields, const std::string& json, const std::vector<MovedKey>& moved) {
  const auto given = nlohmann::ordered_json::parse(json);
  JsonFields object(given, "");
  read_table(object, fields, moved);
  const auto done = object.finish();
  if (done) return;
  Error error = done.error();
  if (error.field.starts_with('/')) error.field.erase(0, 1);
  std::replace(error.field.begin(), error.field.end(), '/', '.');
  throw InputError(error.to_string());
}

namespace {

std::string python_type(const Field& field) {
  std::string words;
  for (const std::string& word : field.words) words += (words.empty() ? "\"" : ", \"") + word + "\"";
  if (!words.empty()) return "Literal[" + words + "]";
  if (std::holds_alternative<bool*>(field.target)) return "bool";
  if (std::holds_alternative<std::uint32_t*>(field.target)) return "int";
  if (std::holds_alternative<std::uint64_t*>(field.target)) return "int";
  if (std::holds_alternative<std::vector<std::string>*>(field.target)) return "Sequence[str]";
  if (std::holds_alternative<std::vector<double>*>(field.target)) return "float | Sequence[float]";
  const bool text = std::holds_alternative<std::string*>(field.target);
  return text || std::holds_alternative<TextTarget>(field.target) ? "str | os.PathLike" : "float";
}

}  // namespace

nb::list keywords_of(const FieldTable& fields) {
  const bool any_flag =
      std::any_of(fields.begin(), fields.end(), [](const Field& field) { return !field.flag.empty(); });
  nb::list list;
  for (const Field& field : fields) {
    const std::string name = field.flag.empty() ? field.path : keyword_of(field);
    if (field.flag.empty() && any_flag) continue;
    list.append(nb::make_tuple(name, field.meaning, field_text(field), python_type(field)));
  }
  return list;
}

nb::list option_keywords(FieldTable fields) {
  for (Field& field : fields) field.flag.clear();
  return keywords_of(fields);
}

Field option_row(std::string path, FieldTarget target, double least, double most) {
  return {.path = std::move(path),
          .flag = "",
          .meaning = "",
          .target = std::move(target),
          .range = Field::Range{least, most}};
}

InputError keyword_error(Error error, const FieldTable& fields) {
  const Field* field = error.file.empty() ? find_field(fields, error.field) : nullptr;
  if (field != nullptr && !field->flag.empty()) error.field = keyword_of(*field);
  return InputError(error.to_string());
}

}  // namespace gpusched::python
