// SPDX-License-Identifier: Apache-2.0
/// Options of an environment or an agent, which come from Python as one JSON object: each value checked, an InputError
/// names the key and what was expected.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "gpusched/core/named_value.hpp"
#include "python/bindings/common.hpp"

namespace gpusched::python {

using Json = nlohmann::json;

template <class Value, std::size_t size>
Value named(const Json& options, const char* key, const std::array<NamedValue<Value>, size>& names, Value fallback) {
  if (!options.contains(key)) return fallback;
  const std::string word = options[key].is_string() ? options[key].get<std::string>() : options[key].dump();
  std::string known;
  for (const auto& entry : names) {
    if (word == entry.name) return entry.value;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw InputError(std::string(key) + ": expected one of " + known + ", not '" + word + "'");
}

inline double number(const Json& options, const char* key, double fallback, double least, double most) {
  if (!options.contains(key)) return fallback;
  const double value = options[key].is_number() ? options[key].get<double>() : std::nan("");
  if (!(value >= least && value <= most)) {
    throw InputError(std::string(key) + ": expected a number from " + Json(least).dump() + " to " + Json(most).dump() +
                     ", not " + options[key].dump());
  }
  return value;
}

inline std::uint32_t whole(const Json& options, const char* key, std::uint32_t fallback, std::uint32_t least,
                           std::uint32_t most) {
  const double value = number(options, key, fallback, least, most);
  if (value != std::floor(value)) throw InputError(std::string(key) + ": expected a whole number");
  return static_cast<std::uint32_t>(value);
}

inline bool flag(const Json& options, const char* key, bool fallback) {
  if (!options.contains(key)) return fallback;
  if (!options[key].is_boolean()) throw InputError(std::string(key) + ": expected True or False");
  return options[key].get<bool>();
}

}  // namespace gpusched::python
