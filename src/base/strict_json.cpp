// SPDX-License-Identifier: Apache-2.0
#include "src/base/strict_json.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <vector>

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

}  // namespace

Result<Json> parse_json_strictly(std::string_view text, const std::string& file) {
  if (const std::size_t at = nested_too_deeply(text); at != std::string_view::npos) {
    return Unexpected{
        Error{.message = "expected at most " + std::to_string(most_nested) + " levels of lists and objects",
              .file = file,
              .line = line_of(text, at)}};
  }
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  std::string twice;
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      twice = parsed.get<std::string>();
    }
    return true;
  };
  try {
    Json json = Json::parse(text, watch);
    if (!twice.empty()) return Unexpected{Error{.message = "key '" + twice + "' appears twice", .file = file}};
    return json;
  } catch (const Json::parse_error& error) {
    return Unexpected{Error{.message = text.empty() ? "empty; expected JSON" : "expected well-formed JSON here",
                            .file = file,
                            .line = line_of(text, error.byte == 0 ? 0 : error.byte - 1)}};
  } catch (const Json::out_of_range&) {  // the parser's only other error, and it knows no place
    return Unexpected{
        Error{.message = "holds a number too large for JSON readers; expected at most 1.8e308", .file = file}};
  }
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
