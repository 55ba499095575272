// SPDX-License-Identifier: Apache-2.0
/// Tables of fields. A row says where an option stands in a JSON file, its flag, what it means and where its value
/// lives; flags, "path.to.key=value", configuration files, the effective configuration, Python's keywords and the JSON
/// Schema all follow from the table.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gpusched/core/named_value.hpp"
#include "gpusched/core/result.hpp"
#include "gpusched/core/types.hpp"

namespace gpusched {

class JsonFields;

/// A text that stands for something else, such as the name of a rule.
struct TextTarget {
  std::function<std::string()> get;
  std::function<bool(std::string_view)> set;  ///< false, and nothing changes, where the text stands for nothing
};

/// A limit in seconds, Time::max() where there is none, which files and flags write as 0.
struct LimitTarget {
  Time* time = nullptr;
};

/// Where a value lives; borrowed. Seconds for a Time.
using FieldTarget = std::variant<std::string*, bool*, std::uint32_t*, std::uint64_t*, double*, Time*, LimitTarget,
                                 std::vector<std::string>*, std::vector<double>*, TextTarget>;

/// Somebody who does not take an option that others take, and why.
struct Lack {
  std::string who, why;
};

/// One field. What it points to must live as long as the row.
struct Field {
  std::string path;  ///< of a JSON file and of --set, with dots: "preemption.restart_s"
  std::string flag;  ///< of the command line: "--seed"; empty: none
  std::string meaning;
  FieldTarget target;
  std::vector<std::string> words = {};  ///< what a text may be; empty: anything
  bool changes_results = true;          ///< false: where results go and how fast they come
  /// What a number, each of a list, or a span in seconds may be, ends included. Without: a whole number 0 or more, a
  /// number above 0, a span as long as a Time can be.
  struct Range {
    double least = 0, most = std::numeric_limits<double>::infinity();
  };
  std::optional<Range> range = {};
  /// Of a list of texts: takes one text apart. Without, a text is one entry and the flag may be given again.
  std::function<Result<std::vector<std::string>>(std::string_view)> split = {};
  std::string expected = {};     ///< of a TextTarget without words: what it takes
  std::string unit = {};         ///< of a number, where it is not seconds and the path does not end in it
  std::vector<Lack> lacks = {};  ///< commands that do not take it, of those that share the table

  /// True when the flag may be given again, an entry each time.
  [[nodiscard]] bool repeats() const { return std::holds_alternative<std::vector<std::string>*>(target) && !split; }
};
using FieldTable = std::vector<Field>;

/// A row whose value is written as one of `names`.
template <class T, std::size_t N>
Field word_field(std::string path, std::string flag, std::string meaning, T& value,
                 const std::array<NamedValue<T>, N>& names) {
  Field field{.path = std::move(path), .flag = std::move(flag), .meaning = std::move(meaning), .target = TextTarget{}};
  for (const NamedValue<T>& entry : names) field.words.emplace_back(entry.name);
  field.target = TextTarget{.get = [&value, &names] { return std::string(name_of(names, value)); },
                            .set =
                                [&value, &names](std::string_view text) {
                                  const auto found = value_from_name(names, text);
                                  if (found) value = *found;
                                  return found.has_value();
                                }};
  return field;
}

/// A key that was given another path.
struct MovedKey {
  std::string path, now;
};

/// The row of `path`, or nullptr.
const Field* find_field(const FieldTable& fields, std::string_view path);

/// Puts `more` at the end of `fields`.
void append_fields(FieldTable& fields, FieldTable more);

/// Sets the field from text; a list that repeats() to that one entry. Error: not such a value, or not an allowed word.
Result<void> set_field(const Field& field, std::string_view text);

/// Sets the field from JSON. Errors: a value of another type, or not an allowed one; they give the path with slashes.
Result<void> set_field_json(const Field& field, const nlohmann::ordered_json& value);

/// What the field holds, as text for people; entries of a list with commas.
std::string field_text(const Field& field);
/// What the field holds, as set_field_json() takes it.
nlohmann::ordered_json field_json(const Field& field);

/// The name of a field in Python: checkpoint_cost of --checkpoint-cost. Precondition: it has a flag.
std::string keyword_of(const Field& field);

/// Carries out "path.to.key=value". Errors: an unknown key (with the nearest), as set_field().
Result<void> apply_setting(const FieldTable& fields, std::string_view setting);
/// Carries out "key=value,key=value". Errors: as apply_setting().
Result<void> apply_settings(const FieldTable& fields, std::string_view settings);

/// Sets what an object gives, and knows its keys: the reader of a file calls it beside what it reads itself. A group
/// with a row "GROUP.path" may be given as that path alone. `moved`: keys of earlier versions, errors that say where
/// they are now.
void read_table(JsonFields& object, const FieldTable& fields, const std::vector<MovedKey>& moved = {});

/// Sets what a JSON text gives, or the "config" of a manifest, and leaves the rest; gives the whole document back.
/// `file` is for messages only. Errors: not JSON, a key that does not exist (with its path and the nearest name) or
/// appears twice, a value of another type.
Result<nlohmann::ordered_json> read_fields(const FieldTable& fields, std::string_view text, const std::string& file,
                                           const std::vector<MovedKey>& moved = {});

/// The "config" of a manifest, or the document itself.
const nlohmann::ordered_json& config_of(const nlohmann::ordered_json& document);

/// The paths of the fields that an object of read_fields() gives.
std::set<std::string> given_paths(const FieldTable& fields, const nlohmann::ordered_json& object);

/// What is wrong with the value of an option; `path` is that of its row.
inline Unexpected bad_option(std::string_view path, std::string message) {
  return {Error{.message = std::move(message), .field = std::string(path)}};
}

/// The same of whatever found it; an error that names a file stays what it is.
Error in_option(std::string_view path, Error error);

/// Where the values of a table come from, for messages.
struct FieldSources {
  std::string file;                      ///< of the configuration; empty: none
  std::set<std::string> from_file = {};  ///< paths of the fields that it set, and nothing after it
};

/// An error whose field is the path or flag of a row, as the user knows it: file and key where the value comes from
/// there, else the flag. Other errors stay what they are.
Error named_error(Error error, const FieldTable& fields, const FieldSources& sources = {});

/// A JSON text that read_fields() takes; without fields that change no result unless `all`.
std::string fields_json(const FieldTable& fields, bool all);

/// The JSON Schema (draft 2020-12) of such texts; the fields hold the defaults.
std::string fields_schema(const FieldTable& fields, const std::string& title, const std::string& description);

/// The JSON Schema of one field's value.
nlohmann::ordered_json field_schema(const Field& field);

}  // namespace gpusched
