// SPDX-License-Identifier: Apache-2.0
/// Reading a JSON object into variables, strictly: every key must be known, every value of the right type.
/// Compiled parts only: it shows a JSON library's type.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpusched/core/named_value.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/strict_json.hpp"

namespace gpusched {

/// The fields of one object. Call read() for each known key, then finish(); the first error is kept.
class JsonFields {
 public:
  /// `path` is the object's JSON path ("" at the top); `file` is for messages only. Borrows `object`.
  JsonFields(const Json& object, std::string file, std::string path = {})
      : object_(&object), file_(std::move(file)), path_(std::move(path)) {
    if (!object.is_object()) fail("", "expected an object");
  }

  /// Sets `target` when the key is there; else it keeps its value. Numbers must lie in [least, most] and in T.
  template <class T>
  requires std::is_arithmetic_v<T>
  void read(const std::string& key, T& target, double least = 0, double most = most_exact) {
    const Json* value = find(key);
    if (value == nullptr) return;
    if constexpr (std::is_same_v<T, bool>) {
      if (!value->is_boolean()) return fail(key, "expected true or false");
      target = value->template get<bool>();
    } else {
      most = std::min(most, static_cast<double>(std::numeric_limits<T>::max()));
      const bool right_type = is_number_for<T>(*value);
      const double number = right_type ? value->template get<double>() : 0;
      if (!right_type || !(number >= least && number <= most)) {
        return fail(key, std::string("expected ") + (std::is_integral_v<T> ? "an integer" : "a number") + " from " +
                             text_of(least) + " to " + text_of(most));
      }
      target = value->template get<T>();
    }
  }

  void read(const std::string& key, std::string& target) {
    const Json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_string()) return fail(key, "expected a text");
    target = value->get<std::string>();
  }

  /// A list of numbers, of `size` entries unless size is 0.
  template <class T>
  requires std::is_arithmetic_v<T>
  void read(const std::string& key, std::vector<T>& target, std::size_t size) {
    const Json* value = find(key);
    if (value == nullptr) return;
    const bool numbers = value->is_array() && std::all_of(value->begin(), value->end(), is_number_for<T>);
    if (!numbers || (size != 0 && value->size() != size)) {
      return fail(key, "expected a list of " + (size == 0 ? "" : std::to_string(size) + " ") + "numbers");
    }
    target = value->get<std::vector<T>>();
  }

  /// A list of numbers, or one number, which is a list of one.
  template <class T>
  requires std::is_arithmetic_v<T>
  void read_one_or_more(const std::string& key, std::vector<T>& target) {
    const Json* value = find(key);
    if (value == nullptr) return;
    if (is_number_for<T>(*value)) {
      target = {value->template get<T>()};
    } else if (value->is_array() && std::all_of(value->begin(), value->end(), is_number_for<T>)) {
      target = value->template get<std::vector<T>>();
    } else {
      fail(key, "expected a number or a list of numbers");
    }
  }

  /// The value of a name in a table of names.
  template <class T, std::size_t N>
  void read_word(const std::string& key, T& target, const std::array<NamedValue<T>, N>& names) {
    std::string word(name_of(names, target));
    read(key, word);
    if (const auto value = value_from_name(names, word)) {
      target = *value;
      return;
    }
    std::string allowed;
    for (const NamedValue<T>& entry : names) allowed += (allowed.empty() ? "" : "|") + std::string(entry.name);
    fail(key, "expected one of " + allowed);
  }

  /// The object under `key` (an empty one when absent), whose errors come back through finish().
  template <class Read>
  void read_object(const std::string& key, Read read_fields) {
    static const Json empty = Json::object();
    const Json* value = find(key);
    read_nested(key, value == nullptr ? empty : *value, read_fields);
  }

  /// Knows a key whose value the caller reads itself, and which must be a list.
  void read_array(const std::string& key) {
    const Json* value = find(key);
    if (value != nullptr && !value->is_array()) fail(key, "expected a list");
  }

  /// The fields of `value`, an object that stands at `path` below this one.
  template <class Read>
  void read_nested(const std::string& path, const Json& value, Read read_fields) {
    JsonFields fields(value, file_, path_ + "/" + path);
    read_fields(fields);
    if (auto done = fields.finish(); !done && !error_) error_ = done.error();
  }

  /// True while nothing was wrong.
  [[nodiscard]] bool good() const { return !error_; }

  /// Makes a missing key an error.
  void require(const std::string& key) {
    if (object_->is_object() && !object_->contains(key)) fail(key, "is missing");
  }

  /// Marks the value of `key` as wrong.
  void fail(const std::string& key, std::string message) {
    if (error_) return;
    error_ = Error{.message = std::move(message), .file = file_, .field = path_ + (key.empty() ? "" : "/" + key)};
  }

  /// Success, or the first error: a bad value or a key that no read() asked for.
  [[nodiscard]] Result<void> finish() {
    if (error_) return Unexpected{*error_};
    for (const auto& [key, value] : object_->items()) {
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      return Unexpected{
          Error{.message = "unknown key" + suggest_nearest(key, known_), .file = file_, .field = path_ + "/" + key}};
    }
    return {};
  }

 private:
  const Json* find(const std::string& key) {
    known_.push_back(key);
    if (!object_->is_object()) return nullptr;
    const auto entry = object_->find(key);
    return entry == object_->end() ? nullptr : &*entry;
  }

  static constexpr double most_exact = 9007199254740992;  // 2^53: up to here a double holds every integer

  template <class T>
  static bool is_number_for(const Json& value) {
    return std::is_integral_v<T> ? value.is_number_integer() : value.is_number();
  }

  // Without ".0" where it is whole.
  static std::string text_of(double number) {
    const bool whole = std::abs(number) <= most_exact && number == std::trunc(number);
    return whole ? std::to_string(static_cast<std::int64_t>(number)) : Json(number).dump();
  }

  const Json* object_;
  std::string file_, path_;
  std::vector<std::string> known_;
  std::optional<Error> error_;
};

}  // namespace gpusched
