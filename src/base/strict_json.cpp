// SPDX-License-Identifier: Apache-2.0
#include "src/base/strict_json.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <unordered_set>
#include <utility>
#include <vector>

#include "src/base/number_text.hpp"

namespace gpusched {
namespace {

std::uint64_t line_of(std::string_view text, std::size_t byte) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(byte, text.size()));
  return 1 + static_cast<std::uint64_t>(std::count(text.begin(), end, '\n'));
}

constexpr std::size_t most_nested = 200;                    // levels; readers recurse
constexpr std::size_t most_bytes = std::size_t{256} << 20;  // of a whole file in memory

// Where a level too many begins, or npos. What stands in strings is no level.
std::size_t nested_too_deeply(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > most_nested) return at;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return std::string_view::npos;
}

/// Builds the value that the parser reports piece by piece. The JSON library's own builder with a callback looks
/// through all earlier entries of a list at the end of each, which takes seconds for 100,000 objects.
class JsonBuilder final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // no JSON text has any
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (is_known(name)) {
      twice_ = std::move(name);
      return false;
    }
    members().emplace_back(std::move(name), Json());
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    position_ = position;
    is_out_of_range_ = dynamic_cast<const Json::out_of_range*>(&error) != nullptr;
    return false;
  }

  [[nodiscard]] Json take() && { return std::move(root_); }

  /// Why there is no value; call it when the parser gave up.
  [[nodiscard]] Error error(std::string_view text, const std::string& file) const {
    if (position_ == no_position) {
      return {.message = "key '" + twice_ + "' appears twice", .file = file, .field = path_of_open()};
    }
    if (is_out_of_range_) {  // the library says no usable place
      return {.message = "holds a number too large for JSON readers; expected at most 1.8e308", .file = file};
    }
    return {.message = text.empty() ? "empty; expected JSON" : "expected well-formed JSON here",
            .file = file,
            .line = line_of(text, position_ == 0 ? 0 : position_ - 1)};
  }

 private:
  static constexpr std::size_t no_position = static_cast<std::size_t>(-1);
  static constexpr std::size_t many_keys = 16;  // from here on a set is faster than a look at each

  // A list or object whose end is yet to come. The pointer holds: nothing is added beside an open value.
  struct Open {
    Json* value;
    std::unordered_set<std::string> keys = {};  // of an object of many; looked up, never iterated
  };

  [[nodiscard]] Json::object_t& members() const { return open_.back().value->get_ref<Json::object_t&>(); }

  bool is_known(const std::string& name) {
    const Json::object_t& all = members();
    if (all.size() < many_keys) {
      return std::any_of(all.begin(), all.end(), [&](const auto& member) { return member.first == name; });
    }
    auto& keys = open_.back().keys;
    if (keys.empty()) {
      for (const auto& [known, value] : all) keys.insert(known);
    }
    return !keys.insert(name).second;
  }

  // Where the next value stands.
  Json& place() {
    if (open_.empty()) return root_;
    Json& parent = *open_.back().value;
    if (parent.is_object()) return members().back().second;
    return parent.get_ref<Json::array_t&>().emplace_back();
  }

  bool add(Json value) {
    place() = std::move(value);
    return true;
  }
  bool open(Json empty) {
    Json& here = place();
    here = std::move(empty);
    open_.push_back({&here});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  [[nodiscard]] std::string path_of_open() const {
    std::string path;
    for (std::size_t level = 0; level + 1 < open_.size(); ++level) {
      const Json& value = *open_[level].value;
      path += "/" + (value.is_object() ? value.get_ref<const Json::object_t&>().back().first
                                       : std::to_string(value.size() - 1));
    }
    return path;
  }

  Json root_;
  std::vector<Open> open_;
  std::string twice_;
  std::size_t position_ = no_position;
  bool is_out_of_range_ = false;
};

}  // namespace

Result<Json> parse_json_strictly(std::string_view text, const std::string& file) {
  if (const std::size_t at = nested_too_deeply(text); at != std::string_view::npos) {
    return Unexpected{
        Error{.message = "expected at most " + std::to_string(most_nested) + " levels of lists and objects",
              .file = file,
              .line = line_of(text, at)}};
  }
  JsonBuilder builder;
  if (!Json::sax_parse(text, &builder)) return Unexpected{builder.error(text, file)};
  return std::move(builder).take();
}

std::string json_excerpt(const Json& value) {
  constexpr std::size_t most = 60;  // bytes
  if (value.is_structured() && value.size() > most / 2) {
    return value.is_array() ? "a list of " + counted(value.size(), "value")
                            : "an object of " + counted(value.size(), "key");
  }
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() <= most) return text;
  if (value.is_array()) return "a list of " + counted(value.size(), "value");
  if (value.is_object()) return "an object of " + counted(value.size(), "key");
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;  // not within a character
  return text.substr(0, end) + "...";
}

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

// `path` is for messages only.
Result<std::string> read_text(std::istream& stream, const std::string& path) {
  std::string text;
  std::vector<char> block(std::size_t{1} << 16);
  while (stream.read(block.data(), static_cast<std::streamsize>(block.size())), stream.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(stream.gcount()));
    if (text.size() > most_bytes) {
      return Unexpected{Error{.message = "is larger than 256 MiB, which no such file is", .file = path}};
    }
  }
  if (stream.bad()) return Unexpected{Error{.message = "cannot be read", .file = path}};
  return text;
}

}  // namespace

Result<std::string> read_text_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return Unexpected{Error{.message = "is a folder; expected a file", .file = path}};
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return Unexpected{Error{.message = "cannot be opened", .file = path}};
  return read_text(stream, path);
}

Result<std::string> read_text_input(const std::string& path) {
  return path == "-" ? read_text(std::cin, path) : read_text_file(path);
}

}  // namespace gpusched
