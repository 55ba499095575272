// SPDX-License-Identifier: Apache-2.0
/// Names and quantities in the JSON form of a cluster.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/json_fields.hpp"

namespace gpusched {

/// Empty when it is absent.
std::string read_name(JsonFields& fields, std::string_view key);

/// One name or a list of them; none when it is absent.
std::vector<std::string> read_names(JsonFields& fields, std::string_view key);

/// A quantity in thousandths (or other parts) of the file's unit; unlimited when it is not given.
std::int64_t read_quantity(JsonFields& fields, std::string_view key, std::int64_t parts);

/// The same the other way; a whole number is written without a fraction.
Json quantity_json(std::int64_t parts, double scale);

}  // namespace gpusched
