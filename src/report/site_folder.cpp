// SPDX-License-Identifier: Apache-2.0
#include "src/report/site_folder.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "src/base/level_series.hpp"
#include "src/base/number_text.hpp"
#include "src/report/comparison.hpp"
#include "src/report/csv_rows.hpp"

namespace gpusched {
namespace {

constexpr std::size_t parts_of_time = 300;

struct SiteColumn {
  std::string_view name;  // in sites.csv
  const char* header;
};
constexpr std::array<SiteColumn, 8> site_columns{{{"jobs", "jobs"},
                                                  {"gpu_hours", "GPU h"},
                                                  {"avg_wait_s", "wait s"},
                                                  {"avg_jct_s", "JCT s"},
                                                  {"bytes_in", "bytes in"},
                                                  {"egress_usd", "egress $"},
                                                  {"total_usd", "all $"},
                                                  {"total_carbon_kg", "kg CO2"}}};

Result<void> read_sites_csv(const std::string& path, RouterInput& router) {
  std::vector<std::string_view> columns{"site"};
  for (const SiteColumn& column : site_columns) columns.push_back(column.name);
  auto rows = CsvRows::open(path, columns);
  if (!rows) return Unexpected{rows.error()};
  while (rows->next()) {
    SiteInput site{.name = std::string(rows->at(0)), .cells = {}};
    for (std::size_t i = 0; i < site_columns.size(); ++i) site.cells.push_back(formatted("%.6g", rows->number(i + 1)));
    router.sites.push_back(std::move(site));
  }
  if (rows->failure()) return Unexpected{*rows->failure()};
  if (router.sites.empty()) return rows->wrong("expected a row for each site");
  return {};
}

Result<void> read_timeline(const std::string& path, RouterInput& router) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  auto rows = CsvRows::open(path, {"site", "time_s", "waiting_jobs", "used_gpus"});
  if (!rows) return Unexpected{rows.error()};
  while (rows->next()) {
    const auto site = std::find_if(router.sites.begin(), router.sites.end() - 1,
                                   [&](const SiteInput& known) { return known.name == rows->at(0); });
    if (site == router.sites.end() - 1) return rows->wrong("expected a site of sites.csv");
    site->levels.push_back({.since = rows->seconds(1), .waiting_jobs = rows->number(2), .used_gpus = rows->number(3)});
  }
  if (rows->failure()) return Unexpected{*rows->failure()};
  return {};
}

struct SpanOfSites {
  Time begin = Time::max(), end = Time{} - end_of_time;
};

SpanOfSites span_of_sites(const FederationInput& federation) {
  SpanOfSites span;
  for (const RouterInput& router : federation.routers) {
    for (const SiteInput& site : router.sites) {
      if (site.levels.empty()) continue;
      span.begin = std::min(span.begin, site.levels.front().since);
      span.end = std::max(span.end, site.levels.back().since);
    }
  }
  return span;
}

Figure site_level_figure(const FederationInput& federation, const SpanOfSites& span, std::string id, std::string title,
                         const char* y_title, double SiteLevelRow::*value) {
  const double longest_s = to_seconds(span.end - span.begin);
  const bool in_days = longest_s > 4 * 86400.0;
  const double unit_s = in_days ? 86400 : 3600;
  CsvText csv("run,time_s,value");
  for (const RouterInput& router : federation.routers) {
    for (const SiteInput& site : router.sites) {
      LevelSeries series(span.begin, span.end, parts_of_time);
      for (std::size_t i = 0; i < site.levels.size(); ++i) {
        const Time until = i + 1 < site.levels.size() ? site.levels[i + 1].since : span.end;
        series.add(site.levels[i].since, until, site.levels[i].*value);
      }
      if (site.levels.empty()) continue;
      const std::vector<double> means = series.means();
      for (std::size_t i = 0; i <= means.size(); ++i) {
        csv.cell(router.router + ", " + site.name)
            .cell(to_seconds(series.begin_of(i) - span.begin))
            .cell(means[std::min(i, means.size() - 1)])
            .end_row();
      }
    }
  }
  return {.id = std::move(id),
          .kind = "level",
          .title = std::move(title),
          .caption = "By router and site, means of " + std::to_string(parts_of_time) + " equal parts of the run.",
          .settings = {{"unit_s", unit_s},
                       {"x_title", std::string(in_days ? "days" : "hours") + " since the first submission"},
                       {"whole", {0, longest_s / unit_s}},
                       {"y_title", y_title},
                       {"y_format", ",f"},
                       {"most", 0}},
          .csv = csv.text()};
}

}  // namespace

Result<FederationInput> read_federation_folder(const std::string& folder, const Json& manifest) {
  FederationInput federation{.folder = folder, .routers = {}};
  for (const Json& entry : manifest["routers"]) {
    const bool is_named = entry.is_object() && entry.contains("router") && entry["router"].is_string() &&
                          entry.contains("folder") && entry["folder"].is_string();
    const std::string place = is_named ? entry["folder"].get<std::string>() : "";
    if (place.empty() || place == "." || place == ".." || place.find('/') != std::string::npos) {
      return Unexpected{
          Error{.message = "expected the folder of each router; was it written by federate --out?", .file = folder}};
    }
    RouterInput router{.router = entry["router"].get<std::string>(), .sites = {}};
    const std::string files = folder + "/" + place + "/";
    if (auto done = read_sites_csv(files + "sites.csv", router); !done) return Unexpected{done.error()};
    if (auto done = read_timeline(files + "timeline.csv", router); !done) return Unexpected{done.error()};
    federation.routers.push_back(std::move(router));
  }
  if (federation.routers.empty()) return Unexpected{Error{.message = "no router of this run finished", .file = folder}};
  return federation;
}

ReportTable federation_table(const FederationInput& federation) {
  ReportTable table{.title = "Sites of " + federation.folder,
                    .caption = "Waits and completion times are means; all $: egress, GPUs and electricity.",
                    .header = {"router", "site"},
                    .rows = {}};
  for (const SiteColumn& column : site_columns) table.header.emplace_back(column.header);
  for (const RouterInput& router : federation.routers) {
    for (const SiteInput& site : router.sites) {
      std::vector<std::string> cells{router.router, site.name};
      cells.insert(cells.end(), site.cells.begin(), site.cells.end());
      table.rows.push_back(std::move(cells));
    }
  }
  return table;
}

std::vector<Figure> federation_figures(const FederationInput& federation, std::size_t number) {
  const SpanOfSites span = span_of_sites(federation);
  if (span.end <= span.begin) return {};
  std::vector<Figure> figures;
  figures.push_back(site_level_figure(federation, span, numbered("site-gpus", number), "GPUs in use by site",
                                      "GPUs in use", &SiteLevelRow::used_gpus));
  figures.push_back(site_level_figure(federation, span, numbered("site-queue", number), "Waiting jobs by site",
                                      "waiting jobs", &SiteLevelRow::waiting_jobs));
  return figures;
}

}  // namespace gpusched
