// SPDX-License-Identifier: Apache-2.0
/// What options of numbers take. CLI11's own ranges let NaN pass, and its whole numbers wrap below 0.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "src/base/field_parser.hpp"
#include "src/base/parallel.hpp"

namespace gpusched {

inline constexpr std::uint64_t most_whole_number = std::numeric_limits<std::uint64_t>::max();

/// The whole text as a number in [least, most], or nothing.
template <class T>
std::optional<T> number_in(const std::string& text, T least, T most) {
  const auto value = parse_exact<T>(text);
  return value && *value >= least && *value <= most ? value : std::nullopt;
}

/// A number in [least, most].
inline CLI::Validator number_from(double least, double most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    if (number_in(text, least, most)) return "";
    return "expected a number from " + CLI::detail::to_string(least) + " to " + CLI::detail::to_string(most) +
           ", not '" + text + "'";
  };
  return {check, ""};
}

/// A whole number in [least, most], in digits.
inline CLI::Validator whole_number_from(std::uint64_t least, std::uint64_t most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    if (number_in(text, least, most)) return "";
    return "expected a whole number, " + std::to_string(least) +
           (most == most_whole_number ? " or more" : " to " + std::to_string(most)) + ", not '" + text + "'";
  };
  return {check, ""};
}

/// What --threads takes, everywhere.
inline CLI::Validator number_of_threads() { return whole_number_from(0, most_threads); }

/// Any text but none: an empty one would pass for an option that was not given.
inline CLI::Validator not_empty() {
  const auto check = [](const std::string& text) -> std::string {
    return text.empty() ? "expected a value, not ''" : "";
  };
  return {check, ""};
}

}  // namespace gpusched
