// SPDX-License-Identifier: Apache-2.0
/// Tables of fields. A row says where an option stands in a JSON file, its flag, what it means and where its value
/// lives; flags, "path.to.key=value", configuration files, the effective configuration and the JSON Schema all follow
/// from the table.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/core/types.hpp"

namespace gpusched {

/// One field. The pointer is borrowed: it must live as long as the row.
struct Field {
  std::string path;  ///< of a JSON file and of --set, with dots: "preemption.restart_s"
  std::string flag;  ///< of the command line: "--seed"; empty: none
  std::string meaning;
  /// Seconds for a Time.
  std::variant<std::string*, bool*, std::uint64_t*, double*, Time*, std::vector<std::string>*> target;
  std::vector<std::string> words = {};  ///< what a text may be; empty: anything
  bool changes_results = true;          ///< false: where results go and how fast they come
  /// What a whole number or a number may be, ends included; without: 0 or more, and above 0.
  struct Range {
    double least = 0, most = std::numeric_limits<double>::infinity();
  };
  std::optional<Range> range = {};
  /// Of a list: takes one text apart. Without, a text is one entry and the flag may be given again.
  std::function<Result<std::vector<std::string>>(std::string_view)> split = {};

  /// True when the flag may be given again, an entry each time.
  [[nodiscard]] bool repeats() const { return std::holds_alternative<std::vector<std::string>*>(target) && !split; }
};
using FieldTable = std::vector<Field>;

/// The row of `path`, or nullptr.
const Field* find_field(const FieldTable& fields, std::string_view path);

/// Sets the field from text; a list that repeats() to that one entry. Error: not such a value, or not an allowed word.
Result<void> set_field(const Field& field, std::string_view text);

/// Sets the field from JSON. Errors: a value of another type, or not an allowed one; they give the path with slashes.
Result<void> set_field_json(const Field& field, const nlohmann::ordered_json& value);

/// What the field holds, as text for people; entries of a list with commas.
std::string field_text(const Field& field);
/// What the field holds, as set_field_json() takes it.
nlohmann::ordered_json field_json(const Field& field);

/// Carries out "path.to.key=value". Errors: an unknown key (with the nearest), as set_field().
Result<void> apply_setting(const FieldTable& fields, std::string_view setting);
/// Carries out "key=value,key=value". Errors: as apply_setting().
Result<void> apply_settings(const FieldTable& fields, std::string_view settings);

/// Sets what a JSON text gives, or the "config" of a manifest, and leaves the rest; gives the whole document back.
/// `file` is for messages only. Errors: not JSON, a key that does not exist (with its path and the nearest name) or
/// appears twice, a value of another type.
Result<nlohmann::ordered_json> read_fields(const FieldTable& fields, std::string_view text, const std::string& file);

/// A JSON text that read_fields() takes; without fields that change no result unless `all`.
std::string fields_json(const FieldTable& fields, bool all);

/// The JSON Schema (draft 2020-12) of such texts; the fields hold the defaults.
std::string fields_schema(const FieldTable& fields, const std::string& title, const std::string& description);

/// The JSON Schema of one field's value.
nlohmann::ordered_json field_schema(const Field& field);

}  // namespace gpusched
