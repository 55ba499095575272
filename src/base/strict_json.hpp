// SPDX-License-Identifier: Apache-2.0
/// JSON that people write, read strictly: a syntax error has its line, a key that appears twice is an error.
/// Compiled parts only: it shows a JSON library's type.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "gpusched/core/result.hpp"

namespace gpusched {

/// Keeps the order of keys, so that the same value always gives the same bytes.
using Json = nlohmann::ordered_json;

/// `file` is for messages only. Errors: not JSON, a key twice, a number beyond 1.8e308, more than 200 levels.
Result<Json> parse_json_strictly(std::string_view text, const std::string& file);

/// Indented by `indent` blanks (-1: one line), with a line end. Bytes of names that are not valid UTF-8 become U+FFFD,
/// because JSON cannot hold them.
std::string json_text(const Json& json, int indent = 2);

/// The whole file as text. Errors: it cannot be read, is a folder, or is larger than 256 MiB.
Result<std::string> read_text_file(const std::string& path);

/// The whole text of what a user names: a file, or "-" for standard input, which can be read once.
Result<std::string> read_text_input(const std::string& path);

}  // namespace gpusched
