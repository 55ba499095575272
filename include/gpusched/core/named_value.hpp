// SPDX-License-Identifier: Apache-2.0
/// NamedValue: the names that the values of an enumeration have in files and on the command line.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace gpusched {

/// One row of a table of names.
template <class T>
struct NamedValue {
  std::string_view name;  ///< as written in files and on the command line
  T value;                ///< the value that this name stands for
};

/// The value called `name`, if any.
template <class T, std::size_t N>
constexpr std::optional<T> value_from_name(const std::array<NamedValue<T>, N>& names, std::string_view name) {
  for (const NamedValue<T>& entry : names) {
    if (entry.name == name) return entry.value;
  }
  return std::nullopt;
}

/// The name of `value`. Precondition: it is in the table.
template <class T, std::size_t N>
constexpr std::string_view name_of(const std::array<NamedValue<T>, N>& names, T value) {
  for (const NamedValue<T>& entry : names) {
    if (entry.value == value) return entry.name;
  }
  return {};
}

}  // namespace gpusched
