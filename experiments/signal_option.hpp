// SPDX-License-Identifier: Apache-2.0
/// What the tables of experiments share: a carbon signal and its forecast as options, and rows of csv.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/signal.hpp"
#include "src/base/csv_text.hpp"
#include "src/base/number_text.hpp"
#include "src/policies/carbon/start_rules.hpp"
#include "src/program/commands.hpp"
#include "src/world/signal_reader.hpp"

namespace gpusched {

/// --carbon and what says how to read it.
struct CarbonOption {
  std::string file;
  SignalOptions read;
  double from_hour = 0;
  std::string forecast = "perfect";
  double sigma = 0.05;
  std::uint64_t seed = 0;

  void add_to(CLI::App& app) {
    app.add_option("--carbon", file, "csv of carbon intensities by time")->required();
    app.add_option("--carbon-column", read.column, "its column of values");
    app.add_option("--carbon-unit", read.unit, "of that column; else as its name says");
    app.add_option("--forecast", forecast, "what is known of the future")
        ->check(CLI::IsMember({"perfect", "persistence", "noisy"}))
        ->capture_default_str();
    app.add_option("--sigma", sigma, "of noisy, as a part of the mean")
        ->check(CLI::Range(0.0, 10.0))
        ->capture_default_str();
    app.add_option("--seed", seed, "of noisy")->capture_default_str();
  }
  /// For tables that begin in the midst of a signal.
  void add_from_hour_to(CLI::App& app) {
    app.add_option("--from-hour", from_hour, "the jobs begin so many hours after the signal")
        ->check(CLI::Range(0.0, 1e7))
        ->capture_default_str();
  }

  /// What is known of its future.
  [[nodiscard]] Forecast known() const {
    return {.kind = *value_from_name(forecast_names, forecast), .sigma = sigma, .seed = seed};
  }

  /// The signal on the clock of jobs that begin at time 0. Prints its notes.
  [[nodiscard]] Result<SignalFile> signal_from_jobs() const {
    SignalOptions moved_to_zero = read;
    moved_to_zero.begins_at = Time{};
    moved_to_zero.from = from_seconds(from_hour * 3600);
    return noted(read_signal(file, moved_to_zero));
  }
  /// The signal on its own clock. Prints its notes.
  [[nodiscard]] Result<SignalFile> signal() const { return noted(read_signal(file, read)); }

  /// Says that jobs may run when the signal has ended.
  void note_end(const SignalFile& signal_file, Time last) const {
    if (last <= signal_file.end) return;
    note(file + " ends " + human_duration(to_seconds(last - signal_file.end)) +
         " before the last job may; its last value holds");
  }

 private:
  static Result<SignalFile> noted(Result<SignalFile> signal_file) {
    if (signal_file) {
      for (const std::string& line : signal_file->notes) note(line);
    }
    return signal_file;
  }
};

/// A row of a table, names quoted where they must be.
inline void print_row(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) {
    if (&cell != &cells.front()) line += ',';
    append_csv_field(line, cell);
  }
  print(line + "\n");
}

}  // namespace gpusched
