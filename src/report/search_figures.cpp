// SPDX-License-Identifier: Apache-2.0
#include "src/report/search_figures.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "src/base/number_text.hpp"
#include "src/base/visible_text.hpp"
#include "src/sim/metric_table.hpp"

namespace gpusched {
namespace {

constexpr const char* found_series = "found";
constexpr const char* compared_series = "compared";
constexpr const char* clairvoyant_series = "compared, knows true run times";

const char* series_of(const SearchPolicyRow& row) {
  if (row.found) return found_series;
  return row.clairvoyant ? clairvoyant_series : compared_series;
}

bool more_is_better(const std::string& objective) {
  const MetricInfo* metric = find_metric(objective);
  return metric != nullptr && metric->better == Better::more;
}

// A point of two objectives.
struct TradePoint {
  const SearchPolicyRow* row = nullptr;
  double x = 0, y = 0;
  bool on_front = true;  // in these two objectives
};

std::vector<TradePoint> points_of(const SearchInput& search, std::size_t objective) {
  std::vector<TradePoint> points;
  for (const SearchPolicyRow& row : search.policies) {
    if (row.held_out[0] && row.held_out[objective])
      points.push_back({&row, *row.held_out[0], *row.held_out[objective]});
  }
  const double x_sign = more_is_better(search.objectives[0]) ? -1 : 1;
  const double y_sign = more_is_better(search.objectives[objective]) ? -1 : 1;
  for (TradePoint& point : points) {
    point.on_front = std::none_of(points.begin(), points.end(), [&](const TradePoint& other) {
      const double dx = x_sign * (other.x - point.x), dy = y_sign * (other.y - point.y);
      return dx <= 0 && dy <= 0 && (dx < 0 || dy < 0);
    });
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const TradePoint& a, const TradePoint& b) { return a.x != b.x ? a.x < b.x : a.y < b.y; });
  return points;
}

// "sjf" of "sjf{estimate=history}+easy"; the whole text where two compared policies would have the same label.
std::map<const SearchPolicyRow*, std::string> labels_of(const SearchInput& search) {
  const auto brief = [](const SearchPolicyRow& row) { return row.policy.substr(0, row.policy.find_first_of("{+")); };
  std::map<std::string, int> count;
  for (const SearchPolicyRow& row : search.policies) count[brief(row)] += row.found ? 0 : 1;
  std::map<const SearchPolicyRow*, std::string> labels;
  for (const SearchPolicyRow& row : search.policies) {
    if (!row.found) labels[&row] = count[brief(row)] == 1 ? brief(row) : row.policy;
  }
  return labels;
}

// Policies that schedule alike have one point: the first of them is labelled with all.
std::string label_at(const std::vector<TradePoint>& points, const TradePoint& point,
                     const std::map<const SearchPolicyRow*, std::string>& labels) {
  std::string text;
  for (const TradePoint& other : points) {
    const auto label = labels.find(other.row);
    if (label == labels.end() || other.x != point.x || other.y != point.y) continue;
    if (text.empty() && other.row != point.row) return "";
    text += (text.empty() ? "" : ", ") + label->second;
  }
  return text;
}

std::string better_text(const std::string& objective) {
  return objective + (more_is_better(objective) ? " (more is better)" : " (less is better)");
}

bool is_time(const std::string& objective) { return objective.ends_with("_s"); }

// A logarithm needs values above 0, and shows nothing but an empty axis where all are equal.
bool is_linear(const std::vector<TradePoint>& points, double TradePoint::*value) {
  const auto [least, most] = std::minmax_element(
      points.begin(), points.end(), [&](const TradePoint& a, const TradePoint& b) { return a.*value < b.*value; });
  return !((*least).*value > 0) || (*least).*value == (*most).*value;
}

std::optional<Figure> trade_figure(const SearchInput& search, std::size_t objective, std::size_t number) {
  const std::vector<TradePoint> points = points_of(search, objective);
  if (points.size() < 2) return std::nullopt;
  const auto labels = labels_of(search);
  Json series = Json::array();
  for (const char* name : {found_series, compared_series, clairvoyant_series}) {
    if (std::any_of(points.begin(), points.end(),
                    [&](const auto& p) { return std::string(series_of(*p.row)) == name; }))
      series.push_back(name);
  }
  CsvText csv("run,policy,label,x,y,front,on_front");
  for (const TradePoint& point : points) {
    csv.cell(series_of(*point.row)).cell(point.row->policy).cell(label_at(points, point, labels));
    csv.cell(point.x).cell(point.y).cell(point.on_front).cell(point.row->on_front).end_row();
  }
  const std::string &x = search.objectives[0], &y = search.objectives[objective];
  Json linear = Json::array();
  if (is_linear(points, &TradePoint::x)) linear.push_back("x");
  if (is_linear(points, &TradePoint::y)) linear.push_back("y");
  std::string caption = search.folder +
                        ": means over the held-out windows. The line joins the policies that no other "
                        "beats in both (the Pareto front).";
  if (search.objectives.size() > 2) {
    caption +=
        " A rim: none beats it in all " + std::to_string(search.objectives.size()) + " objectives of the search.";
  }
  return Figure{.id = numbered("search-front-" + y, number),
                .kind = "trade",
                .title = "Found and compared policies: " + x + " against " + y,
                .caption = std::move(caption),
                .settings = {{"runs", std::move(series)},
                             {"every_run", true},
                             {"x_title", better_text(x)},
                             {"y_title", better_text(y)},
                             {"x_is_time", is_time(x)},
                             {"y_is_time", is_time(y)},
                             {"linear", std::move(linear)}},
                .csv = csv.text()};
}

std::optional<Figure> hypervolume_figure(const SearchInput& search, std::size_t number) {
  if (search.generations.empty()) return std::nullopt;
  constexpr const char *all = "all candidates so far", *alive = "those who live in the generation",
                       *compared = "policies compared";
  CsvText csv("run,generation,hypervolume");
  for (const SearchGeneration& row : search.generations) {
    csv.cell(all).cell(row.generation).cell(row.hypervolume).end_row();
    csv.cell(alive).cell(row.generation).cell(row.population_hypervolume).end_row();
    if (search.compared_hypervolume) {
      csv.cell(compared).cell(row.generation).cell(*search.compared_hypervolume).end_row();
    }
  }
  Json series{all, alive};
  if (search.compared_hypervolume) series.push_back(compared);
  return Figure{.id = numbered("search-hypervolume", number),
                .kind = "hypervolume",
                .title = "Hypervolume by generation",
                .caption = search.folder +
                           ": in the training windows, the share of the box that a front dominates; more is better. "
                           "The box reaches to 1.1 times the largest loss of the policies compared.",
                .settings = {{"runs", std::move(series)}, {"every_run", true}},
                .csv = csv.text()};
}

}  // namespace

std::vector<std::string> search_notes(const SearchInput& search) {
  std::vector<std::string> notes;
  const auto failed = std::count_if(search.policies.begin(), search.policies.end(), [](const SearchPolicyRow& row) {
    return std::none_of(row.held_out.begin(), row.held_out.end(), [](const auto& value) { return value.has_value(); });
  });
  if (failed > 0) {
    notes.push_back(search.folder + ": " + human_count(static_cast<std::uint64_t>(failed)) + " of " +
                    counted(search.policies.size(), "policy", "policies") +
                    " failed in a held-out window and has no point; front.csv says why");
  }
  if (!search.repeatable) {
    notes.push_back(search.folder + ": decision_latency_us is measured, so that another search finds other policies");
  }
  return notes;
}

ReportTable search_table(const SearchInput& search) {
  ReportTable table{.title = "Policies found by search",
                    .caption = search.folder +
                               ": means over the held-out windows, which the search did not see. On the "
                               "front: no policy here beats it in all objectives. * knows true run times.",
                    .header = {"policy", "kind"},
                    .rows = {}};
  for (const std::string& objective : search.objectives) table.header.push_back(objective);
  table.header.insert(table.header.end(), {"on the front", "dominated"});
  for (const SearchPolicyRow& row : search.policies) {
    std::vector<std::string> cells{row.policy + (row.clairvoyant ? " *" : ""), row.found ? "found" : "compared"};
    for (const auto& value : row.held_out) cells.push_back(value ? formatted("%.6g", *value) : "-");
    cells.emplace_back(row.on_front ? "yes" : "no");
    const std::string dominated = row.found ? "by a compared one" : "by a found one";  // front.csv says by which
    cells.push_back(!row.message.empty() ? row.message : row.dominated_by.empty() ? "" : dominated);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::vector<Figure> search_page_figures(const SearchInput& search, std::size_t number) {
  std::vector<Figure> figures;
  for (std::size_t objective = 1; objective < search.objectives.size(); ++objective) {
    if (auto figure = trade_figure(search, objective, number)) figures.push_back(*std::move(figure));
  }
  if (auto figure = hypervolume_figure(search, number)) figures.push_back(*std::move(figure));
  return figures;
}

}  // namespace gpusched
