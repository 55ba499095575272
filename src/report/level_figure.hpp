// SPDX-License-Identifier: Apache-2.0
/// Figures over time of replayed runs: a quantity as its means in equal parts of each run.
/// Compiled parts only: it shows a JSON library's type.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/base/level_series.hpp"
#include "src/report/figure.hpp"
#include "src/report/run_folder.hpp"

namespace gpusched {

inline constexpr std::size_t time_parts = 300;  ///< of a run, in a figure over time

/// What figures over time show of a run: from its first submission or service to its last end.
struct TimeSpan {
  Time begin = Time::max(), end{};
};
TimeSpan span_of(const ReplayRun& run);

/// The unit, title and extent of the axis that all figures over time of these runs have.
Json time_settings(const std::vector<ReplayRun>& runs);

/// The csv of such a figure: `run,time_s,value`, for each run as many rows as `fill` gave parts, and the last value
/// once more at its end. `fill(run, series)` adds a run's spans to the series.
template <class Fill>
CsvText level_csv(const std::vector<ReplayRun>& runs, Fill fill) {
  CsvText csv("run,time_s,value");
  for (const ReplayRun& run : runs) {
    const TimeSpan span = span_of(run);
    LevelSeries series(span.begin, span.end, time_parts);
    fill(run, series);
    const std::vector<double> means = series.means();
    for (std::size_t i = 0; i <= means.size(); ++i) {
      const double value = means[std::min(i, means.size() - 1)];
      csv.cell(run.label).cell(to_seconds(series.begin_of(i) - span.begin)).cell(value).end_row();
    }
  }
  return csv;
}

/// What a figure over time is called and how its values are written.
struct LevelText {
  std::string id, title, caption, y_title;
  bool is_share = false;  ///< of 1: in percent, up to 100 %
};
Figure level_figure(const std::vector<ReplayRun>& runs, LevelText text, const CsvText& csv);

/// Services and power over time, and who used the energy; a figure that has nothing to show is left out.
std::vector<Figure> service_figures_of(const std::vector<ReplayRun>& runs);
std::vector<Figure> power_figures_of(const std::vector<ReplayRun>& runs);

}  // namespace gpusched
