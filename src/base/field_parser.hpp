// SPDX-License-Identifier: Apache-2.0
/// Text to values, exactly and independent of the locale. Every function returns nothing unless the whole text is such
/// a value.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// Without leading and trailing blanks.
constexpr std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// A number as std::from_chars reads it: no blanks, no plus sign, of doubles also "inf" and "nan".
template <class T>
std::optional<T> parse_exact(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, value);
  return status == std::errc{} && stop == end ? std::optional(value) : std::nullopt;
}

/// A decimal integer, optionally signed. "8.0" is one too: several published traces write counts as floats.
inline std::optional<std::int64_t> parse_integer(std::string_view text) {
  text = trim(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, value);
  if (status != std::errc{} || stop == text.data()) return std::nullopt;
  const std::string_view rest(stop, static_cast<std::size_t>(end - stop));
  if (rest.empty()) return value;
  if (rest.front() == '.' && rest.find_first_not_of('0', 1) == std::string_view::npos) return value;
  return std::nullopt;
}

/// A finite decimal number.
inline std::optional<double> parse_number(std::string_view text) {
  text = trim(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto value = parse_exact<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

/// Seconds as a decimal number, exact to the microsecond (further digits are rounded); |seconds| < 4.6e12, the end of
/// time (types.hpp).
inline std::optional<Time> parse_seconds(std::string_view text) {
  text = trim(text);
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  std::int64_t whole = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, whole);
  if (status != std::errc{} || stop == text.data() || *text.data() == '-') return std::nullopt;
  constexpr std::int64_t most = end_of_time.us / microseconds_per_second;
  if (whole >= most) return std::nullopt;
  std::int64_t us = whole * microseconds_per_second;
  if (stop != end) {
    if (*stop != '.') {  // an exponent: rare, so through double
      const auto value = parse_number(text);
      if (!value || std::abs(*value) >= static_cast<double>(most)) return std::nullopt;
      us = from_seconds(*value).us;
      return Time{negative ? -us : us};
    }
    std::int64_t digit_value = microseconds_per_second / 10;
    for (const char* at = stop + 1; at != end; ++at) {
      if (*at < '0' || *at > '9') {
        const auto value = parse_number(text);
        if (!value || std::abs(*value) >= static_cast<double>(most)) return std::nullopt;
        us = from_seconds(*value).us;
        break;
      }
      if (digit_value > 0) {
        us += (*at - '0') * digit_value;
      } else if (at == stop + 7 && *at >= '5') {
        ++us;
      }
      digit_value /= 10;
    }
  }
  return Time{negative ? -us : us};
}

/// In which order a date of numbers stands.
enum class DateOrder : std::uint8_t {
  ymd,  ///< 2017-10-07, or 2017/10/07
  mdy,  ///< 10/07/2017, as in the United States
  dmy,  ///< 07.10.2017
};

/// An instant as a calendar says it.
struct CalendarTime {
  Time time{};         ///< since 1970-01-01 UTC; without a zone, as if the clock showed UTC
  bool zoned = false;  ///< the text names its offset from UTC
};

/// "2017-10-07 01:12:09" (also with 'T', with '/' or '.' between the numbers of the date, a fraction, without seconds,
/// with "AM" or "PM", and with a zone "Z", "UTC", "+08:00" or "+0800"). Not a date alone.
std::optional<CalendarTime> parse_calendar_time(std::string_view text, DateOrder order = DateOrder::ymd);

/// The same of a date in the order year, month, day; a time without zone is taken as UTC.
std::optional<Time> parse_calendar(std::string_view text);

/// Slurm's spans: "[days-]hours:minutes:seconds", "minutes:seconds" or "minutes".
std::optional<Time> parse_slurm_span(std::string_view text);

/// A span that says its units itself: "16:00:00", "1-06:00:16", "1 day, 6:00:16", "0 days 00:03:00.5", "P1DT6H",
/// "1h30m", "90 min". Not a number alone, and not "16:00", which may be hours or minutes.
std::optional<Time> parse_span(std::string_view text);

}  // namespace gpusched
