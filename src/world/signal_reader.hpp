// SPDX-License-Identifier: Apache-2.0
/// Reads signals from csv files: what a kilowatt-hour emits or costs, a power budget, a rate of requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/data/signal.hpp"

namespace gpusched {

/// What a signal measures, and the unit of its values once read.
enum class SignalKind : std::uint8_t {
  carbon,  ///< g/kWh: grams of CO2 (or its equivalent) a kilowatt-hour
  price,   ///< USD/MWh; may be negative
  power,   ///< W
  rate,    ///< 1/s
};

/// What to take from a file.
struct SignalOptions {
  SignalKind kind = SignalKind::carbon;
  /// The column of values; empty: the first that by its name holds values of this kind, or that the file has besides
  /// its times where `unit` is given.
  std::string column = {};
  /// The column's unit: g/kWh, kg/MWh, kg/kWh, t/MWh, lb/MWh; USD/MWh, USD/kWh; W, kW, MW; 1/s, 1/min, 1/h. Empty: as
  /// the column's name says it (gco2_per_kwh, usd_per_mwh, cap_w, requests_per_s, carbon_intensity).
  std::string unit = {};
  /// Where the instant `from` after the file's first is to lie on the signal's clock, say when the first job comes;
  /// what was before stays known. Nothing: the file's own clock.
  std::optional<Time> begins_at = {};
  Time from{};  ///< see begins_at
  /// The time of day at second 0 of the clock that the signal is to be on (JobTable::midnight_to_zero): hours and
  /// minutes of a file count from midnight, seconds from second 0.
  Time midnight_to_zero{};
};

/// A signal, and what its file says about it.
struct SignalFile {
  Signal signal;
  std::string column;
  bool is_utc = false;  ///< the file's times are dates; where begins_at moved none, since 1970-01-01 UTC
  Time step{};          ///< between most of its times; 0 where no span is the usual one
  Time end{};           ///< of the last value, if that holds as long as the others; on the signal's clock
  std::vector<std::string> notes = {};  ///< values that are missing, a choice between columns: a line each
};

/// Reads a csv with a header, whose first column has the times: seconds (of any origin), minutes or hours by its name
/// (ending in _min, _h or hour), hours of a year (hour_of_2022), or dates: "2023-01-31", with a time of day to the
/// minute or finer after a blank or T, with a zone or in UTC; years first with - or /, or 31.01.2023. Times ascend. A
/// value that is missing (empty, nan, or no row where the others have one) is that before it, and a note counts them.
/// Errors: file, line and field, and what was expected there.
Result<SignalFile> read_signal(const std::string& path, const SignalOptions& options);
/// The same from the text itself; `file` is for messages only.
Result<SignalFile> signal_from_csv(std::string_view text, const std::string& file, const SignalOptions& options);

/// The signal `by` later.
Signal moved(const Signal& signal, Time by);
/// Its value at each multiple of `step` from `begin` on, which holds until the next. Precondition: step > 0; O(steps).
Signal sampled(const Signal& signal, Time begin, Time end, Time step);

/// "2023-01-31 13:00" in UTC, for messages.
std::string utc_text(Time since_1970);

}  // namespace gpusched
