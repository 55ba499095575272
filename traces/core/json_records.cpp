// SPDX-License-Identifier: Apache-2.0
#include "traces/core/json_records.hpp"

#include <istream>
#include <utility>

#include "src/base/field_parser.hpp"

namespace gpusched {
namespace {

constexpr std::size_t most_levels = 200;

// Receives the parser's events, builds each record and hands it over.
class RecordEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  RecordEvents(FileBytes& bytes, std::string_view list,
               const std::function<void(const JsonRecord&, std::uint64_t)>& take)
      : bytes_(bytes), list_(list), take_(take) {}

  [[nodiscard]] const std::string& error() const { return error_; }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return true; }
  bool key(string_t& name) override {
    key_ = name;
    return true;
  }

  bool start_object(std::size_t) override {
    if (open_.empty() && !in_list_) begin_record();  // a record, or what holds the list of records
    if (open_.empty() && in_list_ && skipped_ == 0) begin_record();
    return open(JsonRecord::object());
  }
  bool end_object() override {
    if (skipped_ > 0) return --skipped_, true;
    if (open_.empty()) return in_list_ = false, true;  // of what held the list
    JsonRecord object = close();
    if (!open_.empty()) return true;
    take_(object, line_);
    return true;
  }
  bool start_array(std::size_t) override {
    if (open_.empty() && !in_list_) return in_list_ = list_alone_ = true;
    if (open_.size() == 1 && !in_list_ && key_ == list_) {
      // The object is no record, but holds them.
      open_.clear();
      path_.clear();
      return in_list_ = true;
    }
    return open(JsonRecord::array());
  }
  bool end_array() override {
    if (skipped_ > 0) return --skipped_, true;
    if (open_.empty()) {
      // What stands behind the list in its object is skipped.
      if (list_alone_) {
        in_list_ = list_alone_ = false;
      } else {
        behind_list_ = true;
      }
      return true;
    }
    close();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return fail(bytes_.record_is_too_long() ? "a record is longer than 64 MiB" : "is not valid JSON here");
  }

 private:
  bool fail(const char* message) {
    error_ = message;
    return false;
  }
  void begin_record() {
    line_ = bytes_.line();
    bytes_.begin_record();
  }
  bool open(JsonRecord container) {
    if (behind_list_) return ++skipped_ <= most_levels || fail("expected at most 200 levels of lists and objects");
    if (open_.size() >= most_levels) return fail("expected at most 200 levels of lists and objects");
    open_.push_back(std::move(container));
    path_.push_back(key_);
    return true;
  }
  // Puts the innermost container into the one around it, or gives it.
  JsonRecord close() {
    JsonRecord done = std::move(open_.back());
    open_.pop_back();
    key_ = std::move(path_.back());
    path_.pop_back();
    if (open_.empty()) return done;
    put(std::move(done));
    return {};
  }
  void put(JsonRecord value) {
    JsonRecord& around = open_.back();
    if (around.is_array()) {
      around.push_back(std::move(value));
    } else {
      around[key_] = std::move(value);
    }
  }
  template <class Value>
  bool add(Value&& value) {
    if (skipped_ > 0 || behind_list_) return true;
    if (!open_.empty()) {
      put(JsonRecord(std::forward<Value>(value)));
      return true;
    }
    return fail(in_list_ ? "expected a record here" : "expected records in JSON");
  }

  FileBytes& bytes_;
  std::string list_;
  const std::function<void(const JsonRecord&, std::uint64_t)>& take_;
  std::vector<JsonRecord> open_;   // containers of the record at hand, outermost first
  std::vector<std::string> path_;  // the key of each
  std::string key_;
  bool in_list_ = false, list_alone_ = false, behind_list_ = false;
  std::size_t skipped_ = 0;  // containers that are open behind the list
  std::uint64_t line_ = 0;
  std::string error_;
};

}  // namespace

FileBytes::int_type FileBytes::underflow() {
  if (record_is_too_long()) return traits_type::eof();
  lines_before_ += count_lines(eback(), egptr());
  const std::string_view block = file_.next_block();
  record_bytes_ += block.size();
  // The parser only reads; streambuf wants a pointer to mutable bytes.
  auto* const first = const_cast<char*>(block.data());
  setg(first, first, first + block.size());
  return block.empty() ? traits_type::eof() : traits_type::to_int_type(*first);
}

Result<void> for_each_json_record(InputFile& file, std::string_view list,
                                  const std::function<void(const JsonRecord&, std::uint64_t)>& take) {
  FileBytes bytes(file);
  std::istream stream(&bytes);
  do {
    RecordEvents events(bytes, list, take);
    const bool parsed = nlohmann::json::sax_parse(stream, &events, nlohmann::json::input_format_t::json, false);
    if (file.failure()) return Unexpected{*file.failure()};
    if (!parsed) {
      const std::string message = events.error().empty() ? "is not valid JSON here" : events.error();
      return Unexpected{Error{.message = message, .file = file.path(), .line = bytes.line()}};
    }
    stream.clear();
  } while (!(stream >> std::ws).eof());
  return {};
}

const JsonRecord* find_json(const JsonRecord& record, std::string_view path) {
  const JsonRecord* value = &record;
  while (!path.empty()) {
    const std::string_view key = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(key.size() + 1, path.size()));
    if (!value->is_object()) return nullptr;
    const auto place = value->find(key);
    if (place == value->end()) return nullptr;
    value = &*place;
  }
  return value;
}

std::string json_word(const JsonRecord& record, std::string_view path) {
  const JsonRecord* const value = find_json(record, path);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

std::optional<std::int64_t> json_count(const JsonRecord& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return number <= INT64_MAX ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt;
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_string()) return parse_integer(value.get<std::string>());
  if (!value.is_object()) return std::nullopt;
  const JsonRecord* const set = find_json(value, "set");
  const JsonRecord* const infinite = find_json(value, "infinite");
  const JsonRecord* const number = find_json(value, "number");
  const bool is_set = (set == nullptr || set->is_boolean()) && (set == nullptr || set->get<bool>());
  const bool is_infinite = infinite != nullptr && infinite->is_boolean() && infinite->get<bool>();
  return is_set && !is_infinite && number != nullptr && !number->is_object() ? json_count(*number) : std::nullopt;
}

std::optional<std::int64_t> json_count(const JsonRecord& record, std::string_view path) {
  const JsonRecord* const value = find_json(record, path);
  return value != nullptr ? json_count(*value) : std::nullopt;
}

}  // namespace gpusched
