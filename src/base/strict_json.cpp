// SPDX-License-Identifier: Apache-2.0
#include "src/base/strict_json.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

namespace gpusched {
namespace {

std::uint64_t line_of(std::string_view text, std::size_t byte) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(byte, text.size()));
  return 1 + static_cast<std::uint64_t>(std::count(text.begin(), end, '\n'));
}

}  // namespace

Result<Json> parse_json_strictly(std::string_view text, const std::string& file) {
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

Result<std::string> read_text_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return Unexpected{Error{.message = "is a folder; expected a file", .file = path}};
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return Unexpected{Error{.message = "cannot be opened", .file = path}};
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

}  // namespace gpusched
