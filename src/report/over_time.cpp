// SPDX-License-Identifier: Apache-2.0
#include "src/report/over_time.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "src/report/csv_rows.hpp"

namespace gpusched {
namespace {

bool is_there(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

// Rows of one service stand together.
ServiceRun& service_of(std::vector<ServiceRun>& services, std::string_view name) {
  if (services.empty() || services.back().name != name) services.push_back({.name = std::string(name)});
  return services.back();
}

Result<void> read_latencies(const std::string& path, std::vector<ServiceRun>& services) {
  auto rows = CsvRows::open(path, {"service", "share", "latency_s"});
  if (!rows) return Unexpected{rows.error()};
  while (rows->next()) {
    const std::string_view name = rows->at(0);
    const auto service =
        std::find_if(services.begin(), services.end(), [&](const ServiceRun& one) { return one.name == name; });
    if (service == services.end()) {
      return rows->wrong("service '" + std::string(name) + "' is not in service_levels.csv beside it");
    }
    service->latencies_s.push_back({.x = rows->number(2), .share = rows->number(1)});
  }
  if (rows->failure()) return Unexpected{*rows->failure()};
  return {};
}

// The least headroom of a row, whose caps begin at column `first`.
std::optional<double> least_headroom(CsvRows& rows, std::size_t first, std::size_t caps) {
  std::optional<double> least;
  for (std::size_t cap = 0; cap < caps; ++cap) {
    const double headroom = rows.number(first + cap);
    least = std::min(least.value_or(headroom), headroom);
  }
  return least;
}

}  // namespace

Result<std::vector<ServiceRun>> read_service_runs(const std::string& files) {
  std::vector<ServiceRun> services;
  const std::string path = files + "service_levels.csv";
  if (!is_there(path)) return services;
  auto rows = CsvRows::open(path, {"service", "begin_s", "end_s", "arrivals", "in_time", "waiting", "replicas"});
  if (!rows) return Unexpected{rows.error()};
  while (rows->next()) {
    ServiceRun& service = service_of(services, rows->at(0));
    service.parts.push_back({.begin = rows->seconds(1),
                             .end = rows->seconds(2),
                             .arrivals = rows->number(3),
                             .in_time = rows->number_or_none(4),
                             .waiting = rows->number(5),
                             .replicas = rows->number(6)});
  }
  if (rows->failure()) return Unexpected{*rows->failure()};
  if (auto done = read_latencies(files + "latencies.csv", services); !done) return Unexpected{done.error()};
  return services;
}

Result<std::vector<PowerRow>> read_power_rows(const std::string& files) {
  std::vector<PowerRow> levels;
  const std::string path = files + "power.csv";
  if (!is_there(path)) return levels;
  const auto names = CsvRows::columns_of(path);
  if (!names) return Unexpected{names.error()};
  const auto has = [&](std::string_view name) { return std::find(names->begin(), names->end(), name) != names->end(); };
  std::vector<std::string> columns{"time_s", "meter_w"};
  const bool has_carbon = has("carbon_kg_per_h"), has_price = has("electricity_usd_per_h");
  if (has_carbon) columns.emplace_back("carbon_kg_per_h");
  if (has_price) columns.emplace_back("electricity_usd_per_h");
  const std::size_t first_cap = columns.size();
  while (has("headroom" + std::to_string(columns.size() - first_cap) + "_w")) {
    columns.push_back("headroom" + std::to_string(columns.size() - first_cap) + "_w");
  }
  auto rows = CsvRows::open(path, {columns.begin(), columns.end()});
  if (!rows) return Unexpected{rows.error()};
  while (rows->next()) {
    PowerRow row{.since = rows->seconds(0), .meter_w = rows->number(1)};
    if (has_carbon) row.carbon_kg_per_h = rows->number(2);
    if (has_price) row.usd_per_h = rows->number(first_cap - 1);
    row.headroom_w = least_headroom(*rows, first_cap, columns.size() - first_cap);
    levels.push_back(row);
  }
  if (rows->failure()) return Unexpected{*rows->failure()};
  return levels;
}

}  // namespace gpusched
