// SPDX-License-Identifier: Apache-2.0
#include "src/report/level_figure.hpp"

#include <algorithm>
#include <utility>

namespace gpusched {
namespace {

struct AxisUnit {
  double seconds;
  const char* name;
};

AxisUnit unit_of(double longest_s) {
  if (longest_s > 4 * 86400.0) return {86400, "days"};
  if (longest_s > 2 * 3600.0) return {3600, "hours"};
  if (longest_s > 120) return {60, "minutes"};
  return {1, "seconds"};
}

}  // namespace

TimeSpan span_of(const ReplayRun& run) {
  TimeSpan span;
  for (const JobRow& job : run.jobs) {
    span.begin = std::min(span.begin, job.submit);
    span.end = std::max(span.end, job.end);
  }
  for (const ServiceRun& service : run.services) {
    if (service.parts.empty()) continue;
    span.begin = std::min(span.begin, service.parts.front().begin);
    span.end = std::max(span.end, service.parts.back().end);
  }
  if (span.end <= span.begin) span.end = span.begin + Time{1};
  return span;
}

Json time_settings(const std::vector<ReplayRun>& runs) {
  double longest_s = 0;
  bool has_services = false;
  for (const ReplayRun& run : runs) {
    const TimeSpan span = span_of(run);
    longest_s = std::max(longest_s, to_seconds(span.end - span.begin));
    has_services |= !run.services.empty();
  }
  const AxisUnit unit = unit_of(longest_s);
  return {{"unit_s", unit.seconds},
          {"x_title",
           std::string(unit.name) + " since the first " + (has_services ? "submission or request" : "submission")},
          {"whole", {0, longest_s / unit.seconds}}};
}

Figure level_figure(const std::vector<ReplayRun>& runs, LevelText text, const CsvText& csv) {
  Json settings = time_settings(runs);
  settings["y_title"] = std::move(text.y_title);
  settings["y_format"] = text.is_share ? "%" : ",f";
  settings["most"] = text.is_share ? 1 : 0;
  return {.id = std::move(text.id),
          .kind = "level",
          .title = std::move(text.title),
          .caption = std::move(text.caption) + " Means of " + std::to_string(time_parts) + " equal parts of the run.",
          .settings = std::move(settings),
          .csv = csv.text()};
}

}  // namespace gpusched
