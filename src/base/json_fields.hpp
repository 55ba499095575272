// SPDX-License-Identifier: Apache-2.0
/// Reading a JSON object into variables, strictly: every key must be known, every value of the right type.
/// Compiled parts only: it shows a JSON library's type.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpusched/core/named_value.hpp"
#include "src/base/strict_json.hpp"

namespace gpusched {

/// What is said of a key that nobody asked for: the nearest known one, or all of them where they are few.
std::string unknown_key(std::string_view key, std::span<const std::string> known);

/// The fields of one object. Call read() for each known key, then finish(); the first error is kept, and shared with
/// the readers of nested objects. An error says which value was expected and which was found. `$schema` at the top is
/// for editors and always known.
class JsonFields {
 public:
  /// `path` is the object's JSON path ("" at the top); `file` is for messages only. Borrows `object`.
  JsonFields(const Json& object, std::string file, std::string path = {});
  JsonFields(const JsonFields&) = delete;
  JsonFields& operator=(const JsonFields&) = delete;

  /// Sets `target` when the key is there; else it keeps its value. Numbers must lie in [least, most] and in T.
  template <class T>
  requires std::is_arithmetic_v<T>
  void read(std::string_view key, T& target, double least = 0, double most = most_exact) {
    const Json* value = find(key);
    if (value == nullptr) return;
    if constexpr (std::is_same_v<T, bool>) {
      if (!value->is_boolean()) return refuse(key, "true or false");
      target = value->template get<bool>();
    } else {
      most = std::min(most, static_cast<double>(std::numeric_limits<T>::max()));
      const bool right_type = is_number_for<T>(*value);
      const double number = right_type ? value->template get<double>() : 0;
      if (!right_type || !(number >= least && number <= most)) {
        return refuse(key, range_text(std::is_integral_v<T>, least, most));
      }
      target = value->template get<T>();
    }
  }

  void read(std::string_view key, std::string& target);

  /// A number above 0 and at most `most`.
  void read_above_zero(std::string_view key, double& target, double most);

  /// A list of numbers, of `size` entries unless size is 0.
  template <class T>
  requires std::is_arithmetic_v<T>
  void read(std::string_view key, std::vector<T>& target, std::size_t size) {
    const Json* value = find(key);
    if (value == nullptr) return;
    const bool numbers = value->is_array() && std::all_of(value->begin(), value->end(), is_number_for<T>);
    if (!numbers || (size != 0 && value->size() != size)) {
      return refuse(key, "a list of " + (size == 0 ? "" : std::to_string(size) + " ") + "numbers");
    }
    target = value->template get<std::vector<T>>();
  }

  /// A list of numbers, or one number, which is a list of one.
  template <class T>
  requires std::is_arithmetic_v<T>
  void read_one_or_more(std::string_view key, std::vector<T>& target) {
    const Json* value = find(key);
    if (value == nullptr) return;
    if (is_number_for<T>(*value)) {
      target = {value->template get<T>()};
    } else if (value->is_array() && std::all_of(value->begin(), value->end(), is_number_for<T>)) {
      target = value->template get<std::vector<T>>();
    } else {
      refuse(key, "a number or a list of numbers");
    }
  }

  /// The value of a name in a table of names.
  template <class T, std::size_t N>
  void read_word(std::string_view key, T& target, const std::array<NamedValue<T>, N>& names) {
    const Json* value = find(key);
    if (value == nullptr) return;
    std::vector<std::string> words;
    for (const NamedValue<T>& entry : names) {
      words.emplace_back(entry.name);
      if (value->is_string() && value->get_ref<const std::string&>() == entry.name) {
        target = entry.value;
        return;
      }
    }
    refuse_word(key, words);
  }

  /// The text that one of `words` must be.
  void read_word(std::string_view key, std::string& target, std::span<const std::string> words);

  /// The object under `key` (an empty one when absent).
  template <class Read>
  void read_object(std::string_view key, Read read_fields) {
    static const Json empty = Json::object();
    const Json* value = find(key);
    read_nested(key, value == nullptr ? empty : *value, read_fields);
  }

  /// Each object of the list under `key`: read_entry(fields, number).
  template <class Read>
  void read_objects(std::string_view key, Read read_entry) {
    const Json* list = read_array(key);
    if (list == nullptr) return;
    const JsonFields entries(*this, *list, key);
    for (std::size_t i = 0; i < list->size() && good(); ++i) {
      JsonFields fields(entries, (*list)[i], i);
      fields.expect_object();
      read_entry(fields, i);
      fields.refuse_unknown_keys();
    }
  }

  /// Each member of the object under `key`, whose names are the file's own: read_member(members, name, value) with the
  /// reader of that object, of which no key is unknown.
  template <class Read>
  void read_members(std::string_view key, Read read_member) {
    const Json* object = find(key);
    if (object == nullptr) return;
    JsonFields members(*this, *object, key);
    members.expect_object();
    if (!object->is_object()) return;
    for (const auto& [name, value] : object->get_ref<const Json::object_t&>()) {
      if (!good()) return;
      read_member(members, name, value);
    }
  }

  /// The list under `key`, which the caller reads itself; nullptr where it is absent or no list.
  const Json* read_array(std::string_view key);

  /// The fields of `value`, an object that stands at `path` below this one.
  template <class Read>
  void read_nested(std::string_view path, const Json& value, Read read_fields) {
    JsonFields fields(*this, value, path);
    fields.expect_object();
    read_fields(fields);
    fields.refuse_unknown_keys();
  }

  /// Knows a key whose value the caller reads itself; nullptr where it is absent.
  const Json* find(std::string_view key);

  /// Whether the key is there; it is not known thereby.
  [[nodiscard]] bool has(std::string_view key) const;

  /// True while nothing was wrong.
  [[nodiscard]] bool good() const { return !root_->error_; }

  /// Makes a missing key an error, which names the unknown key that was meant for it, if there is one.
  void require(std::string_view key);

  /// Marks the value of `key` as wrong.
  void fail(std::string_view key, std::string message);
  /// The same with "expected `expected`, not " and what stands there. A path below a key may be given too.
  void refuse(std::string_view key, const std::string& expected);

  /// Success, or the first error: a bad value or a key that no read() asked for.
  [[nodiscard]] Result<void> finish();

  /// The object's JSON path; "" at the top.
  [[nodiscard]] std::string path() const;

  /// "an integer from 0 to 10".
  static std::string range_text(bool integer, double least, double most);

  static constexpr double most_exact = 9007199254740992;  ///< 2^53: up to here a double holds every integer

  /// Whether a value is a number, and a whole one where T is.
  template <class T>
  static bool is_number_for(const Json& value) {
    return std::is_integral_v<T> ? value.is_number_integer() : value.is_number();
  }

 private:
  // Below `parent`, which outlives this.
  JsonFields(const JsonFields& parent, const Json& object, std::string_view key)
      : object_(&object), root_(parent.root_), parent_(&parent), key_(key) {}
  JsonFields(const JsonFields& parent, const Json& object, std::size_t number)
      : object_(&object), root_(parent.root_), parent_(&parent), number_(number) {}

  void expect_object();
  void refuse_unknown_keys();
  void refuse_word(std::string_view key, std::span<const std::string> words);

  const Json* object_;
  JsonFields* root_;                    // holds file and error
  const JsonFields* parent_ = nullptr;  // a path is put together when there is something to say
  std::string_view key_ = {};           // of this object in its parent
  std::optional<std::size_t> number_ = {};
  std::vector<std::string> known_ = {};
  std::string missing_ = {};           // whose lack is the error
  std::string file_ = {}, path_ = {};  // of the root
  std::optional<Error> error_ = {};    // of the root
};

}  // namespace gpusched
