// SPDX-License-Identifier: Apache-2.0
#include "src/sim/service_levels.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpusched/watch/service_figures.hpp"
#include "src/base/csv_text.hpp"
#include "src/base/level_series.hpp"
#include "src/base/number_text.hpp"
#include "src/sim/replay.hpp"

namespace gpusched {
namespace {

constexpr std::size_t most_parts = 300;
constexpr std::size_t most_points = 500;

// Requests that came in one part of the time.
struct Arrivals {
  std::int64_t count = 0, answered = 0, in_time = 0, lost = 0;
  std::vector<std::int64_t> latencies_us = {};
};

// One service of a run.
struct ServiceView {
  const ServiceSpec& spec;
  const RequestLedger& ledger;
  Time begin, end;  // end > begin
};

ServiceView view_of(const Engine& engine, std::uint32_t number) {
  const RequestLedger& ledger = engine.services().requests(number);
  const Time end = std::max(engine.services().closed(number), ledger.begin() + Time{1});
  return {engine.services().model().services[number], ledger, ledger.begin(), end};
}

std::size_t part_of(const ServiceView& service, Time t) {
  const auto passed = static_cast<double>((t - service.begin).us),
             all = static_cast<double>((service.end - service.begin).us);
  return std::min(most_parts - 1, static_cast<std::size_t>(passed / all * static_cast<double>(most_parts)));
}

std::vector<Arrivals> arrivals_by_part(const ServiceView& service) {
  std::vector<Arrivals> parts(most_parts);
  for (std::uint32_t i = 0; i < service.ledger.records().size(); ++i) {
    const RequestRecord& record = service.ledger.records()[i];
    if (record.phase == RequestPhase::coming) continue;
    Arrivals& part = parts[part_of(service, service.ledger.arrival(i))];
    ++part.count;
    if (record.phase == RequestPhase::dropped || record.phase == RequestPhase::timed_out) ++part.lost;
    if (record.phase != RequestPhase::completed) continue;
    ++part.answered;
    part.latencies_us.push_back((record.end - service.ledger.arrival(i)).us);
    if (service.spec.promise && detail::in_time(service.ledger, service.spec, i)) ++part.in_time;
  }
  return parts;
}

std::vector<double> waiting_by_part(const ServiceView& service) {
  LevelSeries series(service.begin, service.end, most_parts);
  for (std::uint32_t i = 0; i < service.ledger.records().size(); ++i) {
    const RequestRecord& record = service.ledger.records()[i];
    if (record.phase == RequestPhase::coming) continue;
    series.add(service.ledger.arrival(i), std::min(record.start, record.end), 1);
  }
  return series.means();
}

std::vector<double> replicas_by_part(const PolicyRun& run, const ServiceView& service) {
  LevelSeries series(service.begin, service.end, most_parts);
  const Interval* last = nullptr;
  for (const Interval& interval : run.intervals) {
    const std::uint32_t row = index(interval.job);
    if (row < service.spec.first_row || row >= service.spec.first_row + service.spec.most) continue;
    // A gang on several nodes has an interval for each, one behind the other.
    if (last == nullptr || last->job != interval.job || last->start != interval.start) {
      series.add(interval.start, interval.end, 1);
    }
    last = &interval;
  }
  return series.means();
}

// Mean and 99th percentile, or nothing.
void append_latencies(std::string& text, std::vector<std::int64_t>& latencies_us) {
  if (latencies_us.empty()) {
    text += ",,";
    return;
  }
  double sum_us = 0;
  for (const std::int64_t us : latencies_us) sum_us += static_cast<double>(us);
  text += formatted(",%.6f", sum_us / 1e6 / static_cast<double>(latencies_us.size()));
  text += formatted(",%.6f", detail::percentile_s(latencies_us, 0.99));
}

void append_levels(std::string& text, const PolicyRun& run, const ServiceView& service) {
  std::vector<Arrivals> parts = arrivals_by_part(service);
  const std::vector<double> waiting = waiting_by_part(service), replicas = replicas_by_part(run, service);
  const LevelSeries clock(service.begin, service.end, most_parts);
  for (std::size_t i = 0; i < most_parts; ++i) {
    append_csv_field(text, service.spec.name);
    append_seconds(text += ',', clock.begin_of(i));
    append_seconds(text += ',', clock.begin_of(i + 1));
    append_integer(text += ',', parts[i].count);
    append_integer(text += ',', parts[i].answered);
    text += ',';
    if (service.spec.promise) append_integer(text, parts[i].in_time);
    append_integer(text += ',', parts[i].lost);
    append_latencies(text, parts[i].latencies_us);
    text += formatted(",%.6f", waiting[i]);
    text += formatted(",%.6f\n", replicas[i]);
  }
}

}  // namespace

std::string service_levels_csv(const PolicyRun& run) {
  std::string text =
      "service,begin_s,end_s,arrivals,answered,in_time,lost,mean_latency_s,p99_latency_s,waiting,replicas\n";
  const std::size_t services = run.engine->services().model().services.size();
  for (std::uint32_t i = 0; i < services; ++i) append_levels(text, run, view_of(*run.engine, i));
  return text;
}

std::string latencies_csv(const PolicyRun& run) {
  std::string text = "service,share,latency_s\n";
  const ServiceModel& model = run.engine->services().model();
  for (std::uint32_t i = 0; i < model.services.size(); ++i) {
    std::vector<double> latencies_s;
    for (const std::int64_t us : detail::latencies_us(run.engine->services().requests(i))) {
      latencies_s.push_back(static_cast<double>(us) / 1e6);
    }
    for (const SharePoint& point : distribution(std::move(latencies_s), most_points)) {
      append_csv_field(text, model.services[i].name);
      text += formatted(",%.6f", point.share);
      text += formatted(",%.6f\n", point.x);
    }
  }
  return text;
}

}  // namespace gpusched
