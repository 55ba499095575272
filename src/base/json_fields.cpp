// SPDX-License-Identifier: Apache-2.0
#include "src/base/json_fields.hpp"

#include <cmath>

#include "src/base/nearest_name.hpp"

namespace gpusched {
namespace {

// Without ".0" where it is whole.
std::string text_of(double number) {
  const bool whole = std::abs(number) <= JsonFields::most_exact && number == std::trunc(number);
  return whole ? std::to_string(static_cast<std::int64_t>(number)) : Json(number).dump();
}

}  // namespace

std::string unknown_key(std::string_view key, std::span<const std::string> known) {
  constexpr std::size_t few = 12;
  const std::string nearest = suggest_nearest(key, known);
  if (!nearest.empty() || known.empty() || known.size() > few) return "unknown key" + nearest;
  return "unknown key; expected " + std::string(known.size() > 1 ? "one of " : "") + joined(known, "|");
}

JsonFields::JsonFields(const Json& object, std::string file, std::string path)
    : object_(&object), root_(this), file_(std::move(file)), path_(std::move(path)) {
  expect_object();
}

void JsonFields::expect_object() {
  if (!object_->is_object()) fail("", "expected an object, not " + json_excerpt(*object_));
}

std::string JsonFields::path() const {
  if (parent_ == nullptr) return path_;
  return parent_->path() + "/" + (number_ ? std::to_string(*number_) : std::string(key_));
}

void JsonFields::read(std::string_view key, std::string& target) {
  const Json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_string()) return refuse(key, "a text");
  target = value->get<std::string>();
}

void JsonFields::read_above_zero(std::string_view key, double& target, double most) {
  const Json* value = find(key);
  if (value == nullptr) return;
  const double number = value->is_number() ? value->get<double>() : 0;
  if (!(number > 0 && number <= most)) return refuse(key, "a number above 0 and at most " + text_of(most));
  target = number;
}

void JsonFields::read_word(std::string_view key, std::string& target, std::span<const std::string> words) {
  const Json* value = find(key);
  if (value == nullptr) return;
  std::string word = value->is_string() ? value->get<std::string>() : std::string();
  if (!value->is_string() || std::find(words.begin(), words.end(), word) == words.end()) return refuse_word(key, words);
  target = std::move(word);
}

void JsonFields::refuse_word(std::string_view key, std::span<const std::string> words) {
  const Json* value = find(key);
  const bool is_text = value != nullptr && value->is_string();
  fail(key, "expected one of " + joined(words, "|") + ", not " + json_excerpt(*value) +
                (is_text ? suggest_nearest(value->get<std::string>(), words) : std::string()));
}

const Json* JsonFields::read_array(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr || value->is_array()) return value;
  refuse(key, "a list");
  return nullptr;
}

const Json* JsonFields::find(std::string_view key) {
  if (known_.empty()) known_.reserve(16);
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  if (!object_->is_object()) return nullptr;
  const auto entry = object_->find(key);
  return entry == object_->end() ? nullptr : &*entry;
}

bool JsonFields::has(std::string_view key) const { return object_->is_object() && object_->contains(key); }

void JsonFields::fail(std::string_view key, std::string message) {
  if (!good()) return;
  const std::string field = path() + (key.empty() ? "" : "/" + std::string(key));
  root_->error_ = Error{.message = std::move(message), .file = root_->file_, .field = field};
}

void JsonFields::refuse(std::string_view key, const std::string& expected) {
  const Json* value = object_;
  for (std::size_t begin = 0; begin < key.size() && value != nullptr;) {  // "phases/3" is below "phases"
    const std::size_t end = std::min(key.find('/', begin), key.size());
    const std::string part(key.substr(begin, end - begin));
    const bool is_number = part.find_first_not_of("0123456789") == std::string::npos;
    if (value->is_object() && value->contains(part)) {
      value = &(*value)[part];
    } else if (value->is_array() && is_number && std::stoul(part) < value->size()) {
      value = &(*value)[std::stoul(part)];
    } else {
      value = nullptr;
    }
    begin = end + 1;
  }
  fail(key, "expected " + expected + (value == nullptr ? "" : ", not " + json_excerpt(*value)));
}

void JsonFields::require(std::string_view key) {
  if (!object_->is_object() || has(key)) return;
  if (good()) missing_ = key;
  fail(key, "is missing");
}

void JsonFields::refuse_unknown_keys() {
  if ((!good() && missing_.empty()) || !object_->is_object()) return;
  for (const auto& [key, value] : object_->get_ref<const Json::object_t&>()) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    if (parent_ == nullptr && path_.empty() && key == "$schema") continue;
    if (missing_.empty()) return fail(key, unknown_key(key, known_));
    const std::string nearest = suggest_nearest(key, {&missing_, 1});
    if (nearest.empty()) continue;
    root_->error_.reset();
    return fail(key, "unknown key" + nearest);
  }
}

Result<void> JsonFields::finish() {
  refuse_unknown_keys();
  if (root_->error_) return Unexpected{*root_->error_};
  return {};
}

std::string JsonFields::range_text(bool integer, double least, double most) {
  if (least <= -std::numeric_limits<double>::max()) return "a number";
  return std::string(integer ? "an integer" : "a number") + " from " + text_of(least) + " to " + text_of(most);
}

}  // namespace gpusched
