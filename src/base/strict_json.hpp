// SPDX-License-Identifier: Apache-2.0
/// JSON that people write, read strictly: a syntax error has its line, a key that appears twice is an error.
/// JsonFields (json_fields.hpp) reads what an object holds. Compiled parts only: it shows a JSON library's type.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "gpusched/core/result.hpp"

namespace gpusched {

/// Keeps the order of keys, so that the same value always gives the same bytes.
using Json = nlohmann::ordered_json;

/// In time proportional to the text. `file` is for messages only. Errors: not JSON, a key twice, a number beyond
/// 1.8e308, more than 200 levels.
Result<Json> parse_json_strictly(std::string_view text, const std::string& file);

/// Indented by `indent` blanks (-1: one line), with a line end. Bytes of names that are not valid UTF-8 become U+FFFD,
/// because JSON cannot hold them.
std::string json_text(const Json& json, int indent = 2);

/// A value for messages: as JSON where that is short, else its kind and size: `"8x8"`, `[1,2]`, `a list of 40 values`.
std::string json_excerpt(const Json& value);

/// The whole file as text. Errors: it cannot be read, is a folder, or is larger than 256 MiB.
Result<std::string> read_text_file(const std::string& path);

/// The whole text of what a user names: a file, or "-" for standard input, which can be read once.
Result<std::string> read_text_input(const std::string& path);

}  // namespace gpusched
