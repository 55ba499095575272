// SPDX-License-Identifier: Apache-2.0
#include "src/base/field_parser.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "src/base/letter_case.hpp"

namespace gpusched {
namespace {

// Takes exactly `digits` digits (or 1 up to `digits` when `upto`) from the front of `text`.
std::optional<std::int64_t> take_digits(std::string_view& text, std::size_t digits, bool upto = false) {
  std::size_t count = 0;
  std::int64_t value = 0;
  while (count < digits && count < text.size() && text[count] >= '0' && text[count] <= '9') {
    value = value * 10 + (text[count++] - '0');
  }
  if (count == 0 || (!upto && count != digits)) return std::nullopt;
  text.remove_prefix(count);
  return value;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// The digits behind a decimal point, as microseconds; further digits are left out.
Time take_fraction(std::string_view& text) {
  Time time;
  std::int64_t digit_value = microseconds_per_second / 10;
  while (const auto digit = take_digits(text, 1)) {
    time.us += *digit * digit_value;
    digit_value /= 10;
  }
  return time;
}

// Midnight of the date at the front of `text`, in seconds since 1970.
std::optional<std::int64_t> take_date(std::string_view& text, DateOrder order) {
  std::array<std::int64_t, 3> numbers{};
  char separator = '-';
  for (std::size_t i = 0; i < 3; ++i) {
    const bool is_year = i == (order == DateOrder::ymd ? 0u : 2u);
    const auto number = take_digits(text, is_year ? 4 : 2, !is_year);
    if (!number) return std::nullopt;
    numbers[i] = *number;
    if (i == 2) break;
    if (i == 0) separator = text.empty() ? '-' : text.front();
    if ((separator != '-' && separator != '/' && separator != '.') || !take(text, separator)) return std::nullopt;
  }
  if (order == DateOrder::dmy) std::swap(numbers[0], numbers[2]);
  if (order == DateOrder::mdy) numbers = {numbers[2], numbers[0], numbers[1]};
  const std::chrono::year_month_day date{std::chrono::year{static_cast<int>(numbers[0])},
                                         std::chrono::month{static_cast<unsigned>(numbers[1])},
                                         std::chrono::day{static_cast<unsigned>(numbers[2])}};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days{date}.time_since_epoch().count() * std::int64_t{86400};
}

// "01:12:09.5", "01:12" or "1:12:09 PM".
std::optional<Time> take_time_of_day(std::string_view& text) {
  auto hour = take_digits(text, 2, true);
  if (!hour || !take(text, ':')) return std::nullopt;
  const auto minute = take_digits(text, 2, true);
  if (!minute) return std::nullopt;
  const bool has_seconds = take(text, ':');
  const auto second = has_seconds ? take_digits(text, 2, true) : std::optional<std::int64_t>(0);
  if (!second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  Time fraction;
  if (has_seconds && (take(text, '.') || take(text, ','))) fraction = take_fraction(text);
  const std::string half = lower_case(trim(text).substr(0, 2));
  if (half == "am" || half == "pm") {
    if (*hour < 1 || *hour > 12) return std::nullopt;
    hour = *hour % 12 + (half == "pm" ? 12 : 0);
    text = trim(text).substr(2);
  }
  return whole_seconds((*hour * 60 + *minute) * 60 + *second) + fraction;
}

// The offset from UTC that stands behind a time; nothing where the text is none.
std::optional<Time> parse_zone(std::string_view text) {
  text = trim(text);
  if (text == "Z" || text == "z" || text == "UTC" || text == "GMT") return Time{};
  const bool east = text.starts_with('+');
  if (!east && !text.starts_with('-')) return std::nullopt;
  text.remove_prefix(1);
  const auto hours = take_digits(text, 2);
  take(text, ':');
  const auto minutes = text.empty() ? std::optional<std::int64_t>(0) : take_digits(text, 2);
  if (!hours || !minutes || !text.empty()) return std::nullopt;
  const Time offset = whole_seconds((*hours * 60 + *minutes) * 60);
  return east ? offset : Time{} - offset;
}

constexpr std::int64_t most_digits_of_a_span = 12;  // seconds of 30,000 years

// "6:00:16.5": hours:minutes:seconds.
std::optional<Time> take_clock_span(std::string_view& text) {
  const auto hours = take_digits(text, most_digits_of_a_span, true);
  if (!hours || !take(text, ':')) return std::nullopt;
  const auto minutes = take_digits(text, 2, true);
  if (!minutes || !take(text, ':')) return std::nullopt;
  const auto seconds = take_digits(text, 2, true);
  if (!seconds || *minutes > 59 || *seconds > 60) return std::nullopt;
  if (*hours > end_of_time.us / microseconds_per_second / 3600 / 2) return std::nullopt;
  const Time whole = whole_seconds((*hours * 60 + *minutes) * 60 + *seconds);
  return take(text, '.') ? whole + take_fraction(text) : whole;
}

// Seconds of the unit at the front of `text`, a word of at most that many letters; 0 where it is none.
std::int64_t take_unit(std::string_view& text, std::size_t most_letters = 8) {
  constexpr std::pair<std::string_view, std::int64_t> units[] = {
      {"s", 1},      {"sec", 1},       {"secs", 1},      {"second", 1},   {"seconds", 1}, {"m", 60},
      {"min", 60},   {"mins", 60},     {"minute", 60},   {"minutes", 60}, {"h", 3600},    {"hr", 3600},
      {"hrs", 3600}, {"hour", 3600},   {"hours", 3600},  {"d", 86400},    {"day", 86400}, {"days", 86400},
      {"w", 604800}, {"week", 604800}, {"weeks", 604800}};
  const std::string lower = lower_case(text.substr(0, most_letters));
  const std::size_t length = std::min(lower.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), lower.size());
  for (const auto& [word, seconds] : units) {
    if (word != std::string_view(lower).substr(0, length)) continue;
    text.remove_prefix(length);
    return seconds;
  }
  return 0;
}

// The parts of "1h 30m" or, behind P, of "1DT6H", added up. Nothing unless all of the text is such parts.
std::optional<Time> parse_parts(std::string_view text, bool iso) {
  double seconds = 0;
  bool in_time = false, any = false;
  while (!(text = trim(text)).empty()) {
    if (iso && !in_time && take(text, 'T')) {
      in_time = true;
      continue;
    }
    if (any && !iso && take(text, ',')) text = trim(text);
    const std::size_t stop = std::min(text.find_first_not_of("0123456789."), text.size());
    const auto number = parse_number(text.substr(0, stop));
    if (!number || text.front() == '.') return std::nullopt;
    text = trim(text.substr(stop));
    const bool is_month = iso && !in_time && text.starts_with('M');  // of no fixed length
    const std::int64_t unit = is_month ? 0 : take_unit(text, iso ? 1 : 8);
    if (unit == 0) return std::nullopt;
    seconds += *number * static_cast<double>(unit);
    any = true;
  }
  const bool fits = any && seconds < to_seconds(end_of_time);
  return fits ? std::optional(from_seconds(seconds)) : std::nullopt;
}

}  // namespace

std::optional<CalendarTime> parse_calendar_time(std::string_view text, DateOrder order) {
  text = trim(text);
  const auto date = take_date(text, order);
  if (!date) return std::nullopt;
  CalendarTime result{.time = whole_seconds(*date)};
  if (!take(text, 'T')) {
    if (!text.starts_with(' ')) return std::nullopt;
    text = trim(text);
  }
  const auto of_day = take_time_of_day(text);
  if (!of_day) return std::nullopt;
  result.time += *of_day;
  if (trim(text).empty()) return result;
  const auto zone = parse_zone(text);
  if (!zone) return std::nullopt;
  return CalendarTime{.time = result.time - *zone, .zoned = true};
}

std::optional<Time> parse_calendar(std::string_view text) {
  const auto instant = parse_calendar_time(text);
  return instant ? std::optional(instant->time) : std::nullopt;
}

std::optional<Time> parse_slurm_span(std::string_view text) {
  text = trim(text);
  std::int64_t days = 0;
  const bool has_days = text.find('-') != std::string_view::npos;
  if (has_days) {
    const auto value = take_digits(text, 6, true);
    if (!value || !take(text, '-')) return std::nullopt;
    days = *value;
  }
  std::int64_t parts[3] = {0, 0, 0};
  int count = 0;
  do {
    const auto value = count < 3 ? take_digits(text, 9, true) : std::nullopt;
    if (!value) return std::nullopt;
    parts[count++] = *value;
  } while (take(text, ':'));
  if (take(text, '.')) {
    while (take_digits(text, 1)) {
    }
  }
  if (!text.empty()) return std::nullopt;
  std::int64_t seconds = 0;
  if (count == 3) {
    seconds = (parts[0] * 60 + parts[1]) * 60 + parts[2];
  } else if (has_days) {
    seconds = (parts[0] * 60 + parts[1]) * 60;  // days-hours[:minutes]
  } else {
    seconds = parts[0] * 60 + parts[1];  // minutes[:seconds]
  }
  return whole_seconds(days * 86400 + seconds);
}

std::optional<Time> parse_span(std::string_view text) {
  text = trim(text);
  if (take(text, 'P')) return parse_parts(text, true);
  const bool is_clock = text.find(':') != std::string_view::npos;
  if (!is_clock) return parse_parts(text, false);
  // Days may stand in front: "1-06:00:16", "1 day, 6:00:16", "1 days 06:00:16".
  std::int64_t days = 0;
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits < text.size() && text[digits] != ':') {
    const auto value = take_digits(text, 7, true);
    if (!value) return std::nullopt;
    days = *value;
    if (!take(text, '-')) {
      text = trim(text);
      if (take_unit(text) != 86400) return std::nullopt;
      take(text, ',');
      text = trim(text);
    }
  }
  const auto clock = take_clock_span(text);
  if (!clock || !text.empty()) return std::nullopt;
  return whole_seconds(days * 86400) + *clock;
}

}  // namespace gpusched
