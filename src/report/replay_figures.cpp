// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "src/base/number_text.hpp"
#include "src/base/visible_text.hpp"
#include "src/report/figures.hpp"
#include "src/report/gantt.hpp"
#include "src/report/series.hpp"

namespace gpusched {
namespace {

using Runs = std::vector<ReplayRun>;

constexpr std::size_t distribution_points = 500;
constexpr std::size_t time_parts = 300;
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
      if (job.measured) values.push_back(std::max(least_log_time_s, to_seconds(value(job))));
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

struct TimeSpan {
  Time begin = Time::max(), end{};
};

TimeSpan span_of(const ReplayRun& run) {
  TimeSpan span;
  for (const JobRow& job : run.jobs) {
    span.begin = std::min(span.begin, job.submit);
    span.end = std::max(span.end, job.end);
  }
  if (span.end <= span.begin) span.end = span.begin + Time{1};
  return span;
}

struct TimeUnit {
  double seconds;
  const char* name;
};

TimeUnit unit_of(double longest_s) {
  if (longest_s > 4 * 86400.0) return {86400, "days"};
  if (longest_s > 2 * 3600.0) return {3600, "hours"};
  if (longest_s > 120) return {60, "minutes"};
  return {1, "seconds"};
}

double longest_span_s(const Runs& runs) {
  double longest = 0;
  for (const ReplayRun& run : runs) {
    const TimeSpan span = span_of(run);
    longest = std::max(longest, to_seconds(span.end - span.begin));
  }
  return longest;
}

Json time_settings(const Runs& runs) {
  const double longest_s = longest_span_s(runs);
  const TimeUnit unit = unit_of(longest_s);
  return {{"unit_s", unit.seconds},
          {"x_title", std::string(unit.name) + " since the first submission"},
          {"whole", {0, longest_s / unit.seconds}}};
}

// `fill` adds a run's spans to the series.
template <class Fill>
CsvText level_csv(const Runs& runs, Fill fill) {
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

Figure level_figure(const Runs& runs, std::string id, std::string title, std::string caption, const char* y_title,
                    bool share, const CsvText& csv) {
  Json settings = time_settings(runs);
  settings["y_title"] = y_title;
  settings["y_format"] = share ? "%" : ",f";
  settings["most"] = share ? 1 : 0;
  return {.id = std::move(id),
          .kind = "level",
          .title = std::move(title),
          .caption = std::move(caption) + " Means of " + std::to_string(time_parts) + " equal parts of the run.",
          .settings = std::move(settings),
          .csv = csv.text()};
}

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
  return level_figure(runs, "utilization", "GPUs in use", "GPUs that jobs hold, over the GPUs of the cluster.",
                      "share of GPUs in use", true, csv);
}

Figure queue_figure(const Runs& runs) {
  const CsvText csv = level_csv(runs, [](const ReplayRun& run, LevelSeries& series) {
    for (const JobRow& job : run.jobs) series.add(job.submit, job.end, 1);
    for (std::size_t i = 0; i < run.intervals.size(); ++i) {
      if (begins_run(run, i)) series.add(run.intervals[i].start, run.intervals[i].end, -1);
    }
  });
  return level_figure(runs, "queue", "Waiting jobs",
                      "Jobs that were submitted and have not ended, without those that run; preempted jobs wait too.",
                      "waiting jobs", false, csv);
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
  return level_figure(runs, "goodput", "Goodput",
                      std::string("GPUs whose work counts, over the GPUs of the cluster: ") +
                          (any_passed ? "those of jobs that end with status passed, " : "") +
                          "less the share of GPU time that preemptions cost the run as a whole.",
                      "goodput, share of GPUs", true, csv);
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
  double jobs = 0, wait_s = 0, slowdown = 0, gpu_hours = 0;
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
                      .gpu_hours = number("gpu_hours")});
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

std::optional<Figure> vc_figure(const Runs& runs) {
  std::map<std::string, double> hours;
  for (const ReplayRun& run : runs) {
    for (const GroupRow& group : groups_of(run, "vc")) hours[group.key] = std::max(hours[group.key], group.gpu_hours);
  }
  if (hours.size() < 2) return std::nullopt;
  std::vector<std::pair<double, std::string>> largest;
  for (const auto& [key, value] : hours) largest.emplace_back(-value, key);
  std::sort(largest.begin(), largest.end());
  if (largest.size() > most_groups) largest.resize(most_groups);
  Json order = Json::array();
  for (const auto& [hour, key] : largest) order.push_back(key);
  CsvText csv("run,group,jobs,gpu_hours,slowdown,wait_s");
  for (const ReplayRun& run : runs) {
    for (const GroupRow& group : groups_of(run, "vc")) {
      const bool shown =
          std::any_of(largest.begin(), largest.end(), [&](const auto& e) { return e.second == group.key; });
      if (!shown) continue;
      csv.cell(run.label).cell(group.key).cell(group.jobs).cell(group.gpu_hours).cell(group.slowdown);
      csv.cell(group.wait_s).end_row();
    }
  }
  return Figure{
      .id = "vc",
      .kind = "groups",
      .title = "Fairness between virtual clusters",
      .caption = "Mean bounded slowdown of each virtual cluster's jobs, the one with the most GPU hours first" +
                 (hours.size() > most_groups
                      ? "; the largest " + std::to_string(most_groups) + " of " + std::to_string(hours.size()) + "."
                      : std::string(".")),
      .settings = {{"groups", std::move(order)}},
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

std::optional<Figure> front_figure(const Runs& runs, const char* metric, std::string title, const char* y_title) {
  std::vector<FrontPoint> points;
  for (const ReplayRun& run : runs) {
    const auto x = run.metric("avg_jct_s"), y = run.metric(metric);
    if (!run.of_sweep && x && y && *x > 0 && *y > 0) points.push_back({run.folder, run.label, *x, *y});
  }
  return front_figure_of(std::move(points), std::string("front-") + metric, std::move(title), y_title);
}

std::optional<Figure> load_figure(const Runs& runs) {
  CsvText csv("policy,run,load,jct_s,wait_s,low,high,saturated");
  std::map<std::string, std::set<double>> loads;
  for (const ReplayRun& run : runs) {
    const auto saturation = run.summary.find("saturation");
    if (run.of_sweep || saturation == run.summary.end() || !saturation->is_object()) continue;
    const auto load = saturation->find("offered_load");
    if (load == saturation->end() || !load->is_number()) continue;
    loads[run.policy].insert(load->get<double>());
    csv.cell(run.policy).cell(run.label).cell(load->get<double>());
    csv.cell(run.metric("avg_jct_s").value_or(0)).cell(run.metric("avg_wait_s").value_or(0)).cell("").cell("");
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
  if (runs.empty()) return figures;
  add(distribution_figure(runs, "jct", "Completion time", "completion time",
                          [](const JobRow& job) { return job.completion; }));
  add(distribution_figure(runs, "wait", "Waiting time", "waiting time", [](const JobRow& job) { return job.wait; }));
  add(utilization_figure(runs));
  add(queue_figure(runs));
  add(goodput_figure(runs));
  add(size_figure(runs));
  add(vc_figure(runs));
  add(user_figure(runs));
  add(front_figure(runs, "worst_decile_slowdown", "Completion time against the worst-treated jobs",
                   "mean slowdown of the worst tenth"));
  add(front_figure(runs, "max_finish_time_ratio", "Completion time against finish-time fairness",
                   "largest finish-time ratio"));
  add(front_figure(runs, "energy_kwh", "Completion time against energy", "energy, kWh"));
  add(load_figure(runs));
  add(node_figure(runs));
  return figures;
}

}  // namespace gpusched
