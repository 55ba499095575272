// SPDX-License-Identifier: Apache-2.0
// Services and power over time.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "src/base/number_text.hpp"
#include "src/base/visible_text.hpp"
#include "src/report/level_figure.hpp"

namespace gpusched {
namespace {

using Runs = std::vector<ReplayRun>;

constexpr std::size_t most_services = 4;  // that have figures of their own

// ---- services ----

const ServiceRun* service_of(const ReplayRun& run, const std::string& name) {
  const auto found =
      std::find_if(run.services.begin(), run.services.end(), [&](const ServiceRun& one) { return one.name == name; });
  return found == run.services.end() ? nullptr : &*found;
}

double arrivals_of(const ServiceRun& service) {
  double sum = 0;
  for (const ServicePart& part : service.parts) sum += part.arrivals;
  return sum;
}

// Those of all runs, the ones with the most requests first, and how many there are.
std::pair<std::vector<std::string>, std::size_t> service_names(const Runs& runs) {
  std::map<std::string, double> requests;
  for (const ReplayRun& run : runs) {
    for (const ServiceRun& one : run.services) requests[one.name] = std::max(requests[one.name], arrivals_of(one));
  }
  std::vector<std::string> names;
  for (const auto& [name, count] : requests) names.push_back(name);
  std::stable_sort(names.begin(), names.end(),
                   [&](const auto& a, const auto& b) { return requests.at(a) > requests.at(b); });
  if (names.size() > most_services) names.resize(most_services);
  return {std::move(names), requests.size()};
}

// One service in a figure: its number among those shown, and what its title adds.
struct ServiceTitle {
  std::string name, suffix, note;
  std::size_t number = 0;
};

std::string service_figure_id(const char* id, const ServiceTitle& service) { return numbered(id, service.number); }

std::optional<Figure> latency_figure(const Runs& runs, const ServiceTitle& service) {
  CsvText csv("run,x,share");
  for (const ReplayRun& run : runs) {
    const ServiceRun* const one = service_of(run, service.name);
    if (one == nullptr) continue;
    for (const SharePoint& point : one->latencies_s) {
      csv.cell(run.label).cell(std::max(1e-6, point.x)).cell(point.share).end_row();
    }
  }
  if (csv.empty()) return std::nullopt;
  return Figure{
      .id = service_figure_id("latency", service),
      .kind = "distribution",
      .title = "Latency" + service.suffix,
      .caption =
          "Share of the answered requests whose time from arrival to answer is at most so long; further to the "
          "left is better. The time axis is logarithmic." +
          service.note,
      .settings = {{"x_title", "latency"}, {"y_title", "share of answered requests"}, {"x_is_time", true}},
      .csv = csv.text()};
}

// `value` gives a part's level, or nothing: then that of the part before goes on.
template <class Value>
std::optional<Figure> part_figure(const Runs& runs, const ServiceTitle& service, LevelText text, Value value) {
  CsvText csv("run,time_s,value");
  for (const ReplayRun& run : runs) {
    const ServiceRun* const one = service_of(run, service.name);
    if (one == nullptr) continue;
    const Time begin = span_of(run).begin;
    std::optional<double> last;
    for (const ServicePart& part : one->parts) {
      const std::optional<double> level = value(part);
      if (!level) continue;
      csv.cell(run.label).cell(to_seconds(part.begin - begin)).cell(*level).end_row();
      last = level;
    }
    if (last) csv.cell(run.label).cell(to_seconds(one->parts.back().end - begin)).cell(*last).end_row();
  }
  if (csv.empty()) return std::nullopt;
  text.id = service_figure_id(text.id.c_str(), service);
  text.title += service.suffix;
  Figure figure = level_figure(runs, std::move(text), csv);
  figure.caption += service.note;
  return figure;
}

std::optional<Figure> in_time_figure(const Runs& runs, const ServiceTitle& service) {
  return part_figure(
      runs, service,
      {.id = "in-time",
       .title = "Answered as promised",
       .caption = "Share of the requests, by when they came, that were answered within the promised times; "
                  "those that left count as late.",
       .y_title = "share of requests",
       .is_share = true},
      [](const ServicePart& part) -> std::optional<double> {
        if (!part.in_time || part.arrivals == 0) return std::nullopt;
        return *part.in_time / part.arrivals;
      });
}

std::optional<Figure> replica_figure(const Runs& runs, const ServiceTitle& service) {
  return part_figure(runs, service,
                     {.id = "replicas",
                      .title = "Replicas",
                      .caption = "Replicas that hold GPUs, those that start included.",
                      .y_title = "replicas"},
                     [](const ServicePart& part) { return std::optional(part.replicas); });
}

std::optional<Figure> request_figure(const Runs& runs, const ServiceTitle& service) {
  return part_figure(runs, service,
                     {.id = "requests",
                      .title = "Waiting requests",
                      .caption = "Requests that came and that no replica serves yet.",
                      .y_title = "waiting requests"},
                     [](const ServicePart& part) { return std::optional(part.waiting); });
}

// ---- power ----

// `value` gives what holds from a row on.
template <class Value>
std::optional<Figure> power_figure(const Runs& runs, LevelText text, Value value) {
  Runs known;
  for (const ReplayRun& run : runs) {
    if (!run.power.empty() && value(run.power.front())) known.push_back(run);
  }
  if (known.empty()) return std::nullopt;
  const CsvText csv = level_csv(known, [&](const ReplayRun& run, LevelSeries& series) {
    for (std::size_t i = 0; i < run.power.size(); ++i) {
      const Time until = i + 1 < run.power.size() ? run.power[i + 1].since : span_of(run).end;
      series.add(run.power[i].since, until, *value(run.power[i]));
    }
  });
  return level_figure(runs, std::move(text), csv);
}

std::optional<Figure> draw_figure(const Runs& runs) {
  return power_figure(
      runs, {.id = "draw", .title = "Power", .caption = "What the meter of all nodes shows.", .y_title = "power, kW"},
      [](const PowerRow& row) { return std::optional(row.meter_w / 1e3); });
}

std::optional<Figure> headroom_figure(const Runs& runs) {
  return power_figure(runs,
                      {.id = "headroom",
                       .title = "Headroom below the power cap",
                       .caption = "The cap less what the nodes below it draw; of several caps, the least.",
                       .y_title = "headroom, kW"},
                      [](const PowerRow& row) -> std::optional<double> {
                        if (!row.headroom_w) return std::nullopt;
                        return *row.headroom_w / 1e3;
                      });
}

std::optional<Figure> carbon_figure(const Runs& runs) {
  return power_figure(runs,
                      {.id = "carbon",
                       .title = "Carbon",
                       .caption = "What the power at the meter emits, by the signal of carbon intensity.",
                       .y_title = "carbon, kg an hour"},
                      [](const PowerRow& row) { return row.carbon_kg_per_h; });
}

std::optional<Figure> price_figure(const Runs& runs) {
  return power_figure(runs,
                      {.id = "electricity",
                       .title = "Electricity",
                       .caption = "What the power at the meter costs, by the signal of its price.",
                       .y_title = "electricity, $ an hour"},
                      [](const PowerRow& row) { return row.usd_per_h; });
}

void add(std::vector<Figure>& figures, std::optional<Figure> figure) {
  if (figure) figures.push_back(*std::move(figure));
}

}  // namespace

std::vector<Figure> service_figures_of(const Runs& runs) {
  std::vector<Figure> figures;
  const auto [names, all] = service_names(runs);
  for (std::size_t i = 0; i < names.size(); ++i) {
    ServiceTitle service{.name = names[i], .suffix = ": " + visible_line(names[i]), .note = {}, .number = i + 1};
    if (all > names.size()) {
      service.note = " The " + std::to_string(names.size()) + " of " + human_count(all) +
                     " services with the most requests have figures.";
    }
    add(figures, latency_figure(runs, service));
    add(figures, in_time_figure(runs, service));
    add(figures, replica_figure(runs, service));
    add(figures, request_figure(runs, service));
  }
  return figures;
}

std::vector<Figure> power_figures_of(const Runs& runs) {
  std::vector<Figure> figures;
  add(figures, draw_figure(runs));
  add(figures, headroom_figure(runs));
  add(figures, carbon_figure(runs));
  add(figures, price_figure(runs));
  return figures;
}

}  // namespace gpusched
