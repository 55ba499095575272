// SPDX-License-Identifier: Apache-2.0
#include "src/base/number_text.hpp"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>

namespace gpusched {

namespace {

// Nothing but zeros is left of the number, whose exponent does not count.
bool shows_zero(std::string_view text) {
  const std::string_view digits = text.substr(0, text.find_first_of("eE"));
  return digits.find('0') != std::string_view::npos && digits.find_first_of("123456789") == std::string_view::npos;
}

}  // namespace

// The program never changes the C locale, so that the decimal separator is a point.
std::string formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  if (std::signbit(value) && shows_zero(text)) std::snprintf(text, sizeof text, format, 0.0);
  return text;
}

std::string human_duration(double seconds) {
  if (seconds < 59.95) return formatted("%.1f s", seconds);
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  const auto two = [](std::uint64_t value) { return (value < 10 ? "0" : "") + std::to_string(value); };
  if (whole < 3600) return std::to_string(whole / 60) + "m " + two(whole % 60) + "s";
  const std::uint64_t minutes = whole / 60;
  constexpr std::uint64_t minutes_per_day = 1440;
  if (minutes < minutes_per_day) return std::to_string(minutes / 60) + "h " + two(minutes % 60) + "m";
  return std::to_string(minutes / minutes_per_day) + "d " + two(minutes / 60 % 24) + ":" + two(minutes % 60);
}

std::string duration_cell(const std::optional<double>& seconds) { return seconds ? human_duration(*seconds) : "-"; }

std::string slowdown_cell(const std::optional<double>& slowdown) {
  return slowdown ? formatted(*slowdown < 1000 ? "%.2f" : "%.0f", *slowdown) : "-";
}

std::string percent_text(double ratio) { return formatted("%.1f %%", 100 * ratio); }

std::string signed_percent_text(double ratio) {
  const bool hides_sign = std::abs(ratio) >= 1e-6 && std::abs(ratio) < 0.0005;  // below that it may be of rounding
  return formatted(hides_sign ? "%+.1g%%" : "%+.1f%%", 100 * ratio);
}

std::string human_count(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

std::string counted(std::uint64_t count, std::string_view noun, std::string_view plural) {
  const std::string several = plural.empty() ? std::string(noun) + "s" : std::string(plural);
  return human_count(count) + " " + (count == 1 ? std::string(noun) : several);
}

std::string exact_number(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value == 0 ? 0 : value).ptr};
}

std::string exact_seconds(Time t) {
  std::string text;
  append_seconds(text, t);
  return text;
}

void append_integer(std::string& text, std::int64_t value) {
  char digits[24];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void append_decimal(std::string& text, std::int64_t value, std::int64_t scale) {
  if (value < 0) text += '-';
  const std::int64_t magnitude = value < 0 ? -value : value;
  append_integer(text, magnitude / scale);
  std::int64_t rest = magnitude % scale;
  if (rest == 0) return;
  text += '.';
  for (std::int64_t place = scale / 10; rest > 0; place /= 10) {
    text += static_cast<char>('0' + rest / place);
    rest %= place;
  }
}

void append_seconds(std::string& text, Time t) { append_decimal(text, t.us, microseconds_per_second); }

}  // namespace gpusched
