// SPDX-License-Identifier: Apache-2.0
/// Numbers as text: for people, rounded, and for files, exact. The same value gives the same bytes on every machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// `value` in printf's `format` for one double, "%.2f" say; less than 64 characters. What is shown as zero has no
/// minus.
std::string formatted(const char* format, double value);

/// A span for people: "12.3 s", "4m 05s", "3h 12m", "1d 03:12".
std::string human_duration(double seconds);
/// The same, "-" for nothing.
std::string duration_cell(const std::optional<double>& seconds);
/// A slowdown, "-" for nothing: "1.35", "12345".
std::string slowdown_cell(const std::optional<double>& slowdown);
/// "12.3 %".
std::string percent_text(double ratio);
/// "+12.3%", for differences; "-0.02%" where a decimal would hide on which side of 0 it is.
std::string signed_percent_text(double ratio);
/// With thousands separated: "80,539".
std::string human_count(std::uint64_t count);
/// A count of things: "1 job", "80,539 jobs". `plural` where it is not the noun with an s.
std::string counted(std::uint64_t count, std::string_view noun, std::string_view plural = {});

/// Exact seconds without trailing zeros: "12", "0.5", "-1.000001".
std::string exact_seconds(Time t);
/// The shortest decimal number that reads back as `value`; "0" for both zeros.
std::string exact_number(double value);

// For long files: the same, at the end of `text`.
void append_integer(std::string& text, std::int64_t value);
/// value / scale, exact and without trailing zeros. Precondition: `scale` is a power of ten.
void append_decimal(std::string& text, std::int64_t value, std::int64_t scale);
void append_seconds(std::string& text, Time t);

}  // namespace gpusched
