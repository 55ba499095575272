// SPDX-License-Identifier: Apache-2.0
#include "src/base/field_parser.hpp"

#include <chrono>

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

}  // namespace

std::optional<Time> parse_calendar(std::string_view text) {
  text = trim(text);
  const auto year = take_digits(text, 4);
  if (!year || !take(text, '-')) return std::nullopt;
  const auto month = take_digits(text, 2, true);
  if (!month || !take(text, '-')) return std::nullopt;
  const auto day = take_digits(text, 2, true);
  if (!day || (!take(text, ' ') && !take(text, 'T'))) return std::nullopt;
  const auto hour = take_digits(text, 2, true);
  if (!hour || !take(text, ':')) return std::nullopt;
  const auto minute = take_digits(text, 2, true);
  if (!minute || !take(text, ':')) return std::nullopt;
  const auto second = take_digits(text, 2, true);
  if (!second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{static_cast<int>(*year)},
                                         std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  if (!date.ok()) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days{date}.time_since_epoch().count();
  Time time = whole_seconds(((days * 24 + *hour) * 60 + *minute) * 60 + *second);

  if (take(text, '.')) {
    std::int64_t digit_value = microseconds_per_second / 10;
    while (const auto digit = take_digits(text, 1)) {
      time.us += *digit * digit_value;
      digit_value /= 10;
    }
  }
  if (text.empty() || text == "Z" || text == "UTC") return time;
  const bool east = text.front() == '+';
  if (!east && text.front() != '-') return std::nullopt;
  text.remove_prefix(1);
  const auto zone_hours = take_digits(text, 2);
  take(text, ':');
  const auto zone_minutes = text.empty() ? std::optional<std::int64_t>(0) : take_digits(text, 2);
  if (!zone_hours || !zone_minutes || !text.empty()) return std::nullopt;
  const Time offset = whole_seconds((*zone_hours * 60 + *zone_minutes) * 60);
  return east ? time - offset : time + offset;
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

}  // namespace gpusched
