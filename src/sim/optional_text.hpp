// SPDX-License-Identifier: Apache-2.0
/// Numbers and intervals that may be absent, as JSON and in csv files.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "src/base/number_text.hpp"
#include "src/base/statistics.hpp"
#include "src/base/strict_json.hpp"

namespace gpusched {

/// null for nothing.
inline Json number_json(const std::optional<double>& value) { return value ? Json(*value) : Json(); }
inline Json interval_json(const std::optional<ConfidenceInterval>& interval) {
  return interval ? Json{interval->low, interval->high} : Json();
}

/// In full precision; nothing for nothing.
inline void append_value(std::string& text, const std::optional<double>& value) {
  if (value) text += exact_number(*value);
}

}  // namespace gpusched
