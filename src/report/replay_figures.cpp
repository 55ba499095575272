// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "src/base/level_series.hpp"
#include "src/base/number_text.hpp"
#include "src/base/visible_text.hpp"
#include "src/report/figures.hpp"
#include "src/report/gantt.hpp"
#include "src/report/level_figure.hpp"

namespace gpusched {
namespace {

using Runs = std::vector<ReplayRun>;

constexpr std::size_t distribution_points = 500;
constexpr std::size_t most_groups = 20;       // virtual clusters in a figure
constexpr std::size_t most_intervals = 3000;  // of one run in the figure of nodes
constexpr std::size_t most_gantt_runs = 8;
constexpr double least_log_time_s = 1;  // what is shorter is drawn here

// ---- distributions ----

template <class Value>
Figure distribution_figure(const Runs& runs, std::string id, std::string title, const char* of_what, Value value) {
  CsvText csv("run,x,share");
  for (const ReplayRun& run : runs) {
    std::vector<double> values;
    for (const JobRow& job : run.jobs) {
      if (job.averaged) values.push_back(std::max(least_log_time_s, to_seconds(value(job))));
    }
    for (const SharePoint& point : distribution(std::move(values), distribution_points)) {
      csv.cell(run.label).cell(point.x).cell(point.share).end_row();
    }
  }
  return {.id = std::move(id),
          .kind = "distribution",
          .title = std::move(title),
          .caption = std::string("Share of the jobs whose ") + of_what +
                     " is at most so long; further to the left is better. The time axis is logarithmic, what is below "
                     "one second stands at one second. At most " +
                     std::to_string(distribution_points) + " points a run.",
          .settings = {{"x_title", of_what}, {"y_title", "share of jobs"}, {"x_is_time", true}},
          .csv = csv.text()};
}

// ---- over time ----

// A gang is one run on several nodes: consecutive rows of a job with one start.
bool begins_run(const ReplayRun& run, std::size_t i) {
  return i == 0 || run.intervals[i].job != run.intervals[i - 1].job ||
         run.intervals[i].start != run.intervals[i - 1].start;
}

Figure utilization_figure(const Runs& runs) {
  const CsvText csv = level_csv(runs, [](const ReplayRun& run, LevelSeries& series) {
    for (const IntervalRow& row : run.intervals) {
      series.add(row.start, row.end, static_cast<double>(row.gpu_milli) / whole_gpu / std::max(1.0, run.gpus));
    }
  });
  return level_figure(runs,
                      {.id = "utilization",
                       .title = "GPUs in use",
                       .caption = "GPUs that jobs hold, over the GPUs of the cluster.",
                       .y_title = "share of GPUs in use",
                       .is_share = true},
                      csv);
}

Figure queue_figure(const Runs& runs) {
  const CsvText csv = level_csv(runs, [](const ReplayRun& run, LevelSeries& series) {
    for (const JobRow& job : run.jobs) series.add(job.submit, job.end, 1);
    for (std::size_t i = 0; i < run.intervals.size(); ++i) {
      if (begins_run(run, i)) series.add(run.intervals[i].start, run.intervals[i].end, -1);
    }
  });
  return level_figure(
      runs,
      {.id = "queue",
       .title = "Waiting jobs",
       .caption = "Jobs that were submitted and have not ended, without those that run; preempted jobs wait too.",
       .y_title = "waiting jobs"},
      csv);
}

// GPU time that counts over GPU time held: what preemptions leave.
double useful_share(const ReplayRun& run) {
  const double held = run.metric("gpu_allocation").value_or(0);
  return held > 0 ? run.metric("gpu_utilization").value_or(held) / held : 1;
}

std::optional<Figure> goodput_figure(const Runs& runs) {
  bool any_passed = false, differs = false;
  for (const ReplayRun& run : runs) {
    for (const JobRow& job : run.jobs) (job.passed ? any_passed : differs) = true;
    differs |= useful_share(run) < 0.9999;
  }
  if (!differs || (!any_passed && std::all_of(runs.begin(), runs.end(),
                                              [](const ReplayRun& run) { return useful_share(run) >= 0.9999; }))) {
    return std::nullopt;  // the figure of GPUs in use again
  }
  const CsvText csv = level_csv(runs, [&](const ReplayRun& run, LevelSeries& series) {
    const double each = useful_share(run) / whole_gpu / std::max(1.0, run.gpus);
    for (const IntervalRow& row : run.intervals) {
      if (any_passed && !run.jobs[row.job].passed) continue;
      series.add(row.start, row.end, static_cast<double>(row.gpu_milli) * each);
    }
  });
  return level_figure(runs,
                      {.id = "goodput",
                       .title = "Goodput",
                       .caption = std::string("GPUs whose work counts, over the GPUs of the cluster: ") +
                                  (any_passed ? "those of jobs that end with status passed, " : "") +
                                  "less the share of GPU time that preemptions cost the run as a whole.",
                       .y_title = "goodput, share of GPUs",
                       .is_share = true},
                      csv);
}

// ---- groups of jobs ----

const Json* split_of(const ReplayRun& run, const char* by) {
  const auto splits = run.summary.find("splits");
  if (splits == run.summary.end() || !splits->is_object()) return nullptr;
  const auto rows = splits->find(by);
  return rows != splits->end() && rows->is_array() ? &*rows : nullptr;
}

// A row of a split, as far as figures need it.
struct GroupRow {
  std::string key;
  double jobs = 0, wait_s = 0, slowdown = 0, gpu_hours = 0, energy_kwh = 0;
};

std::vector<GroupRow> groups_of(const ReplayRun& run, const char* by) {
  std::vector<GroupRow> groups;
  const Json* const rows = split_of(run, by);
  if (rows == nullptr) return groups;
  for (const Json& row : *rows) {
    if (!row.is_object()) continue;
    const auto number = [&](const char* key) {
      const auto entry = row.find(key);
      return entry != row.end() && entry->is_number() ? entry->get<double>() : 0.0;
    };
    const auto key = row.find("key");
    groups.push_back({.key = key != row.end() && key->is_string() ? visible_line(key->get<std::string>()) : "",
                      .jobs = number("jobs"),
                      .wait_s = number("avg_wait_s"),
                      .slowdown = number("avg_bounded_slowdown"),
                      .gpu_hours = number("gpu_hours"),
                      .energy_kwh = number("energy_kwh")});
    if (groups.back().key.empty()) groups.back().key = "(none)";
  }
  return groups;
}

std::optional<Figure> size_figure(const Runs& runs) {
  CsvText csv("run,gpus,jobs,slowdown,wait_s");
  std::map<double, std::string> sizes;  // by the least number of GPUs
  for (const ReplayRun& run : runs) {
    for (const GroupRow& group : groups_of(run, "gpus")) {
      sizes[std::strtod(group.key.c_str(), nullptr)] = group.key;
      csv.cell(run.label).cell(group.key).cell(group.jobs).cell(group.slowdown).cell(group.wait_s).end_row();
    }
  }
  if (sizes.size() < 2) return std::nullopt;
  Json order = Json::array();
  for (const auto& [least, key] : sizes) order.push_back(key);
  return Figure{.id = "size",
                .kind = "size",
                .title = "Slowdown by job size",
                .caption = "Mean bounded slowdown of the jobs that ask for so many GPUs; 1 is a job that never waits.",
                .settings = {{"sizes", std::move(order)}},
                .csv = csv.text()};
}

// The keys of a split, those that `rank` puts first, and how many there are.
template <class Rank>
std::pair<std::vector<std::string>, std::size_t> largest_groups(const Runs& runs, const char* by, Rank rank) {
  std::map<std::string, double> most;
  for (const ReplayRun& run : runs) {
    for (const GroupRow& group : groups_of(run, by)) most[group.key] = std::max(most[group.key], rank(group));
  }
  std::vector<std::pair<double, std::string>> largest;
  for (const auto& [key, value] : most) largest.emplace_back(-value, key);
  std::sort(largest.begin(), largest.end());
  if (largest.size() > most_groups) largest.resize(most_groups);
  std::vector<std::string> keys;
  for (auto& [value, key] : largest) keys.push_back(std::move(key));
  return {std::move(keys), most.size()};
}

// `cells` writes a group's figures behind the run and its key.
template <class Cells>
CsvText group_csv(const Runs& runs, const char* by, const std::vector<std::string>& keys, std::string_view header,
                  Cells cells) {
  CsvText csv(header);
  for (const ReplayRun& run : runs) {
    for (const GroupRow& group : groups_of(run, by)) {
      if (std::find(keys.begin(), keys.end(), group.key) == keys.end()) continue;
      csv.cell(run.label).cell(group.key);
      cells(csv, group);
      csv.end_row();
    }
  }
  return csv;
}

// "; the largest 20 of 319." or ".".
std::string end_of_caption(std::size_t shown, std::size_t all) {
  if (all == shown) return ".";
  return "; the largest " + std::to_string(shown) + " of " + std::to_string(all) + ".";
}

std::optional<Figure> vc_figure(const Runs& runs) {
  const auto [keys, all] = largest_groups(runs, "vc", [](const GroupRow& group) { return group.gpu_hours; });
  if (all < 2) return std::nullopt;
  const CsvText csv =
      group_csv(runs, "vc", keys, "run,group,jobs,gpu_hours,slowdown,wait_s", [](CsvText& row, const GroupRow& group) {
        row.cell(group.jobs).cell(group.gpu_hours).cell(group.slowdown).cell(group.wait_s);
      });
  return Figure{
      .id = "vc",
      .kind = "groups",
      .title = "Fairness between virtual clusters",
      .caption = "Mean bounded slowdown of each virtual cluster's jobs, the one with the most GPU hours first" +
                 end_of_caption(keys.size(), all),
      .settings = {{"groups", keys}},
      .csv = csv.text()};
}

std::optional<Figure> energy_figure(const Runs& runs) {
  const auto [keys, all] = largest_groups(runs, "user", [](const GroupRow& group) { return group.energy_kwh; });
  const bool known = std::any_of(runs.begin(), runs.end(), [](const ReplayRun& run) {
    const std::vector<GroupRow> groups = groups_of(run, "user");
    return std::any_of(groups.begin(), groups.end(), [](const GroupRow& group) { return group.energy_kwh > 0; });
  });
  if (all < 2 || !known) return std::nullopt;
  const CsvText csv = group_csv(
      runs, "user", keys, "run,group,jobs,gpu_hours,energy_kwh",
      [](CsvText& row, const GroupRow& group) { row.cell(group.jobs).cell(group.gpu_hours).cell(group.energy_kwh); });
  return Figure{
      .id = "energy",
      .kind = "groups",
      .title = "Energy by user",
      .caption = "Energy of each user's jobs, before losses, the largest first" + end_of_caption(keys.size(), all),
      .settings = {{"groups", keys}, {"field", "energy_kwh"}, {"x_title", "energy, kWh"}},
      .csv = csv.text()};
}

std::optional<Figure> user_figure(const Runs& runs) {
  CsvText csv("run,x,share");
  std::size_t most_users = 0;
  for (const ReplayRun& run : runs) {
    std::vector<double> slowdowns;
    for (const GroupRow& group : groups_of(run, "user")) slowdowns.push_back(std::max(1.0, group.slowdown));
    most_users = std::max(most_users, slowdowns.size());
    for (const SharePoint& point : distribution(std::move(slowdowns), distribution_points)) {
      csv.cell(run.label).cell(point.x).cell(point.share).end_row();
    }
  }
  if (most_users < 2) return std::nullopt;
  return Figure{
      .id = "user",
      .kind = "distribution",
      .title = "Fairness between users",
      .caption = "Share of the " + human_count(most_users) +
                 " users whose jobs have at most so large a mean bounded slowdown; every user counts once. The "
                 "steeper the curve, the more alike users fare.",
      .settings = {{"x_title", "mean bounded slowdown"}, {"y_title", "share of users"}, {"x_is_time", false}},
      .csv = csv.text()};
}

// ---- trade-offs ----

// Less is better in both; runs of different folders had other jobs or another cluster.
void mark_front(std::vector<FrontPoint>& points) {
  for (FrontPoint& point : points) {
    point.on_front = std::none_of(points.begin(), points.end(), [&](const FrontPoint& other) {
      return other.group == point.group && other.x <= point.x && other.y <= point.y &&
             (other.x < point.x || other.y < point.y);
    });
  }
}

// What mean completion time is drawn against; less is better.
struct Trade {
  const char *metric, *title, *y_title;
  bool of_one = false;  // what is missing to 1
};
constexpr Trade trades[] = {
    {"worst_decile_slowdown", "Completion time against the worst-treated jobs", "mean slowdown of the worst tenth"},
    {"max_finish_time_ratio", "Completion time against finish-time fairness", "largest finish-time ratio"},
    {"slo_attainment", "Completion time against requests that are late", "share of requests late or lost", true},
    {"energy_kwh", "Completion time against energy", "energy, kWh"},
    {"carbon_kg", "Completion time against carbon", "carbon, kg"},
    {"cost_usd", "Completion time against cost", "cost, $"},
};

std::optional<Figure> front_figure(const Runs& runs, const Trade& trade) {
  std::vector<FrontPoint> points;
  for (const ReplayRun& run : runs) {
    const auto x = run.metric("avg_jct_s");
    auto y = run.metric(trade.metric);
    if (y && trade.of_one) y = 1 - *y;
    if (!run.of_sweep && x && y && *x > 0 && *y > 0) points.push_back({run.folder, run.label, *x, *y});
  }
  return front_figure_of(std::move(points), std::string("front-") + trade.metric, trade.title, trade.y_title);
}

bool has_jobs(const Runs& runs) {
  return std::any_of(runs.begin(), runs.end(), [](const ReplayRun& run) { return !run.jobs.empty(); });
}

std::optional<Figure> load_figure(const Runs& runs) {
  CsvText csv("policy,run,load,jct_s,wait_s,low,high,saturated");
  std::map<std::string, std::set<double>> loads;
  for (const ReplayRun& run : runs) {
    const auto saturation = run.summary.find("saturation");
    if (run.of_sweep || saturation == run.summary.end() || !saturation->is_object()) continue;
    const auto load = saturation->find("offered_load");
    const auto jct = run.metric("avg_jct_s"), wait = run.metric("avg_wait_s");
    if (load == saturation->end() || !load->is_number() || !jct || !wait) continue;
    loads[run.policy].insert(load->get<double>());
    csv.cell(run.policy).cell(run.label).cell(load->get<double>());
    csv.cell(*jct).cell(*wait).cell("").cell("");
    csv.cell(saturation->value("saturated", Json(false)) == Json(true) ? 1.0 : 0.0).end_row();
  }
  if (std::none_of(loads.begin(), loads.end(), [](const auto& entry) { return entry.second.size() > 1; })) {
    return std::nullopt;
  }
  Json policies = Json::array();
  for (const ReplayRun& run : runs) {
    if (std::find(policies.begin(), policies.end(), visible_line(run.policy)) == policies.end()) {
      policies.push_back(visible_line(run.policy));
    }
  }
  return Figure{.id = "load",
                .kind = "load",
                .title = "Load curves",
                .caption =
                    "Mean completion time by offered load: the GPU time that jobs ask for, over what the cluster "
                    "could give while jobs arrive. One point a folder and policy; hollow: the run was saturated.",
                .settings = {{"runs", std::move(policies)}, {"every_run", true}, {"x_title", "offered load"}},
                .csv = csv.text()};
}

// ---- nodes ----

// What was left out of a run, or "".
std::string gantt_note(const ReplayRun& run, const Gantt& gantt) {
  std::string text;
  if (gantt.nodes.size() < run.nodes.size()) {
    text += std::to_string(gantt.nodes.size()) + " of its " + human_count(run.nodes.size()) + " nodes";
  }
  if (gantt.cut)
    text += std::string(text.empty() ? "" : ", ") + "the " + std::to_string(most_intervals) +
            " intervals with the most GPU time";
  return text.empty() ? "" : visible_line(run.label) + ": " + text;
}

Figure node_figure(const Runs& runs) {
  CsvText csv("run,node,row,job,gpus,start_s,end_s,low,high,colour");
  Json labels = Json::array();
  std::string sampled;
  std::size_t most_rows = 1;
  for (std::size_t r = 0; r < std::min(runs.size(), most_gantt_runs); ++r) {
    const ReplayRun& run = runs[r];
    const Gantt gantt = gantt_of(run, most_intervals);
    const Time begin = span_of(run).begin;
    labels.push_back(visible_line(run.label));
    most_rows = std::max(most_rows, gantt.nodes.size());
    for (const GanttBox& box : gantt.boxes) {
      const IntervalRow& row = run.intervals[box.interval];
      const auto share = [&](MilliGpu milli) {
        return static_cast<double>(milli) / static_cast<double>(gantt.node_milli);
      };
      csv.cell(run.label).cell(run.nodes[row.node]).cell(row.node).cell(run.jobs[row.job].name);
      csv.cell(static_cast<double>(row.gpu_milli) / whole_gpu);
      csv.cell(to_seconds(row.start - begin)).cell(to_seconds(row.end - begin));
      csv.cell(share(box.low)).cell(share(box.high)).cell(row.job % 8).end_row();
    }
    if (const std::string note = gantt_note(run, gantt); !note.empty()) sampled += (sampled.empty() ? "" : "; ") + note;
  }
  Json settings = time_settings(runs);
  settings.update({{"gantt_runs", std::move(labels)}, {"rows", most_rows}});
  std::string caption =
      "One row a node, one box for each time that a job held GPUs of it; the height is the share of the node. Files "
      "tell how "
      "many GPUs a job held, not which: boxes lie as low as they can. Colours only tell neighbours apart.";
  if (runs.size() > most_gantt_runs) caption += " The first " + std::to_string(most_gantt_runs) + " runs.";
  if (!sampled.empty()) caption += " Not all is shown (evenly spaced nodes): " + sampled + ".";
  return {.id = "nodes",
          .kind = "nodes",
          .title = "Jobs on nodes",
          .caption = std::move(caption),
          .settings = std::move(settings),
          .csv = csv.text()};
}

}  // namespace

std::optional<Figure> front_figure_of(std::vector<FrontPoint> points, std::string id, std::string title,
                                      const char* y_title) {
  if (points.size() < 2) return std::nullopt;
  mark_front(points);
  std::stable_sort(points.begin(), points.end(), [](const FrontPoint& a, const FrontPoint& b) { return a.x < b.x; });
  CsvText csv("folder,run,x,y,front");
  for (const FrontPoint& point : points)
    csv.cell(point.group).cell(point.run).cell(point.x).cell(point.y).cell(point.on_front).end_row();
  return Figure{.id = std::move(id),
                .kind = "front",
                .title = std::move(title),
                .caption =
                    "One point a run; less is better on both axes. The line joins the runs of a folder that none other "
                    "of it beats "
                    "in both (the Pareto front).",
                .settings = {{"x_title", "mean completion time"}, {"y_title", y_title}},
                .csv = csv.text()};
}

std::vector<Figure> replay_figures(const Runs& runs) {
  std::vector<Figure> figures;
  const auto add = [&](std::optional<Figure> figure) {
    if (figure) figures.push_back(*std::move(figure));
  };
  const auto append = [&](std::vector<Figure> more) {
    figures.insert(figures.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  if (runs.empty()) return figures;
  if (has_jobs(runs)) {
    add(distribution_figure(runs, "jct", "Completion time", "completion time",
                            [](const JobRow& job) { return job.completion; }));
    add(distribution_figure(runs, "wait", "Waiting time", "waiting time", [](const JobRow& job) { return job.wait; }));
    add(utilization_figure(runs));
    add(queue_figure(runs));
    add(goodput_figure(runs));
    add(size_figure(runs));
    add(vc_figure(runs));
    add(user_figure(runs));
  }
  append(service_figures_of(runs));
  append(power_figures_of(runs));
  add(energy_figure(runs));
  for (const Trade& trade : trades) add(front_figure(runs, trade));
  add(load_figure(runs));
  if (has_jobs(runs)) add(node_figure(runs));
  return figures;
}

}  // namespace gpusched
