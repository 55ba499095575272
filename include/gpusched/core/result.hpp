// SPDX-License-Identifier: Apache-2.0
/// Result<T>: a value or the one-line Error that says why there is none. Bad input is reported this way; nothing in
/// the library throws or prints. The spelling follows std::expected, which C++20 does not have yet.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "gpusched/core/config.hpp"

namespace gpusched {

/// Where input was wrong, and what was expected there. Unknown parts stay empty (or 0).
struct Error {
  std::string message;     ///< what is wrong and what was expected, one line, no final stop
  std::string file = {};   ///< path as the user gave it
  std::uint64_t line = 0;  ///< 1-based; 0 when the input has no lines
  std::string field = {};  ///< column name or JSON path such as /cluster/nodes/0/gpus

  /// "file:line: field: message", leaving out what is unknown.
  [[nodiscard]] std::string to_string() const {
    std::string text;
    if (!file.empty()) {
      text += file;
      if (line != 0) text += ":" + std::to_string(line);
      text += ": ";
    } else if (line != 0) {
      text += "line " + std::to_string(line) + ": ";
    }
    if (!field.empty()) text += field + ": ";
    return text + message;
  }
};

/// Wraps an Error so that it converts to any Result: `return Unexpected{Error{...}};`.
struct Unexpected {
  Error error;  ///< the reason that the Result carries
};

/// Shorthand for an error that has no place in a file.
inline Unexpected unexpected(std::string message) { return {Error{.message = std::move(message)}}; }

/// Either a T or an Error. Reading the wrong one asserts.
template <class T>
class [[nodiscard]] Result {
 public:
  /// A success.
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  /// A failure.
  Result(Unexpected unexpected) : state_(std::in_place_index<1>, std::move(unexpected.error)) {}

  /// True when it holds a value.
  [[nodiscard]] bool has_value() const { return state_.index() == 0; }
  /// has_value(), for `if (result)`.
  explicit operator bool() const { return has_value(); }

  /// The value. Precondition: has_value().
  /// \{
  [[nodiscard]] T& value() & {
    GPUSCHED_ASSERT(has_value(), "Result holds an error");
    return *std::get_if<0>(&state_);
  }
  [[nodiscard]] const T& value() const& {
    GPUSCHED_ASSERT(has_value(), "Result holds an error");
    return *std::get_if<0>(&state_);
  }
  [[nodiscard]] T&& value() && {
    GPUSCHED_ASSERT(has_value(), "Result holds an error");
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  /// \}

  /// The error. Precondition: no value.
  [[nodiscard]] const Error& error() const {
    GPUSCHED_ASSERT(!has_value(), "Result holds a value");
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

/// Success, or the Error of an operation that yields nothing.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  /// A failure.
  Result(Unexpected unexpected) : error_(std::move(unexpected.error)), failed_(true) {}

  /// True when the operation succeeded.
  [[nodiscard]] bool has_value() const { return !failed_; }
  /// has_value(), for `if (result)`.
  explicit operator bool() const { return has_value(); }
  /// The error. Precondition: the operation failed.
  [[nodiscard]] const Error& error() const {
    GPUSCHED_ASSERT(failed_, "Result holds no error");
    return error_;
  }

 private:
  Error error_;
  bool failed_ = false;
};

}  // namespace gpusched
