// SPDX-License-Identifier: Apache-2.0
#include "traces/tools/trace_info.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gpusched/watch/metrics.hpp"
#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/text_table.hpp"

namespace gpusched {
namespace {

constexpr double us_per_hour = 3600.0 * static_cast<double>(microseconds_per_second);

struct RunBucket {
  const char* name;
  std::int64_t below_s;
};
constexpr RunBucket run_buckets[] = {{"< 1 min", 60},
                                     {"1-10 min", 600},
                                     {"10-60 min", 3600},
                                     {"1-6 h", 6 * 3600},
                                     {"6-24 h", 86400},
                                     {"1-7 d", 7 * 86400},
                                     {"> 7 d", INT64_MAX / microseconds_per_second}};

// Values in `unit` parts of what the spread is in.
Spread spread_of(std::vector<std::int64_t> values, double unit) {
  Spread spread;
  if (values.empty()) return spread;
  const double sum = std::accumulate(values.begin(), values.end(), 0.0, [](double total, std::int64_t value) {
    return total + static_cast<double>(value);
  });
  const auto at = [&](double p) { return detail::percentile(values, p) / unit; };
  spread.mean = sum / static_cast<double>(values.size()) / unit;
  spread.min = at(0);
  spread.p25 = at(0.25);
  spread.median = at(0.5);
  spread.p75 = at(0.75);
  spread.p90 = at(0.9);
  spread.p99 = at(0.99);
  spread.max = at(1);
  return spread;
}

// Names other than "" (unknown), which is entry 0.
std::uint64_t names_in(const NameTable& names) { return names.size() - 1; }

void count(TraceBucket& bucket, double gpu_hours) {
  ++bucket.jobs;
  bucket.gpu_hours += gpu_hours;
}

std::string percent(double part, double whole) { return whole > 0 ? formatted("%.1f %%", 100 * part / whole) : "-"; }

constexpr std::size_t bar_columns = 24;

// The bar of the largest part is bar_columns long; any other that is not zero has at least one mark.
std::string bar(double part, double largest) {
  if (part <= 0 || largest <= 0) return "";
  const auto marks = static_cast<std::size_t>(std::llround(part / largest * bar_columns));
  return std::string(std::max<std::size_t>(marks, 1), '#');
}

std::string bucket_table(const char* title, const std::vector<TraceBucket>& buckets, const TextStyle& style) {
  double jobs = 0, gpu_hours = 0, most = 0;
  for (const TraceBucket& bucket : buckets) {
    jobs += static_cast<double>(bucket.jobs);
    gpu_hours += bucket.gpu_hours;
    most = std::max(most, static_cast<double>(bucket.jobs));
  }
  TextTable table({title, "jobs", "of jobs", "of GPU-hours", ""});
  for (const TraceBucket& bucket : buckets) {
    const auto count_of = static_cast<double>(bucket.jobs);
    std::string marks = bar(count_of, most);
    marks.resize(bar_columns, ' ');
    table.add(
        {bucket.name, human_count(bucket.jobs), percent(count_of, jobs), percent(bucket.gpu_hours, gpu_hours), marks});
  }
  return "\n" + table.text(style);
}

nlohmann::ordered_json spread_json(const Spread& spread) {
  return {{"mean", spread.mean}, {"min", spread.min}, {"p25", spread.p25}, {"median", spread.median},
          {"p75", spread.p75},   {"p90", spread.p90}, {"p99", spread.p99}, {"max", spread.max}};
}

nlohmann::ordered_json buckets_json(const std::vector<TraceBucket>& buckets) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const TraceBucket& bucket : buckets) {
    json.push_back({{"bucket", bucket.name}, {"jobs", bucket.jobs}, {"gpu_hours", bucket.gpu_hours}});
  }
  return json;
}

}  // namespace

TraceSummary summarize(const Trace& trace, const Cluster* cluster) {
  const JobTable& jobs = trace.jobs;
  GPUSCHED_ASSERT(jobs.size() > 0, "a trace without jobs");
  TraceSummary summary;
  summary.report = trace.report;
  summary.jobs = jobs.size();
  summary.first_submit = jobs.submits().front();
  summary.last_submit = jobs.submits().back();
  summary.users = names_in(jobs.users());
  summary.groups = names_in(jobs.groups());
  summary.vcs = names_in(jobs.vcs());
  summary.gpu_types = names_in(jobs.gpu_specs());
  for (const RunBucket& bucket : run_buckets) summary.by_run.push_back({bucket.name});
  for (int hour = 0; hour < 24; ++hour)
    summary.by_hour.push_back({(hour < 10 ? "0" : "") + std::to_string(hour) + ":00"});

  std::vector<std::int64_t> runs, gaps, gpus;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    const Shape& shape = jobs.shape(job);
    const double gpu_hours =
        static_cast<double>(shape.gpu_milli()) / whole_gpu * static_cast<double>(jobs.work(job).us) / us_per_hour;
    summary.gpu_hours += gpu_hours;
    summary.shares += shape.is_share() ? 1 : 0;
    summary.without_gpu += shape.gpu_milli_per_task == 0 ? 1 : 0;
    summary.with_estimate += jobs.estimate(job) != Time::max() ? 1 : 0;
    summary.retried += jobs.attempts(job) > 1 ? 1 : 0;
    ++summary.statuses[std::string(to_string(jobs.status(job)))];

    const std::uint32_t size = detail::gpu_bucket(shape.gpu_milli());
    while (summary.by_gpus.size() <= size) {
      summary.by_gpus.push_back({detail::gpu_bucket_name(static_cast<std::uint32_t>(summary.by_gpus.size()))});
    }
    count(summary.by_gpus[size], gpu_hours);
    const auto length = std::find_if(std::begin(run_buckets), std::end(run_buckets), [&](const RunBucket& bucket) {
      return jobs.work(job) < whole_seconds(bucket.below_s);
    });
    const auto last = std::end(run_buckets) - std::begin(run_buckets) - 1;
    count(summary.by_run[static_cast<std::size_t>(std::min(length - std::begin(run_buckets), last))], gpu_hours);
    constexpr std::int64_t us_per_day = 86400 * microseconds_per_second;
    const std::int64_t of_day = ((jobs.submit(job).us + trace.report.clock.us) % us_per_day + us_per_day) % us_per_day;
    count(summary.by_hour[static_cast<std::size_t>(of_day / (us_per_day / 24))], gpu_hours);

    runs.push_back(jobs.work(job).us);
    gpus.push_back(shape.gpu_milli());
    if (i > 0) gaps.push_back((jobs.submit(job) - jobs.submit(JobId{i - 1})).us);
  }
  std::erase_if(summary.by_gpus, [](const TraceBucket& bucket) { return bucket.jobs == 0; });
  const auto us_per_second = static_cast<double>(microseconds_per_second);
  summary.run_s = spread_of(std::move(runs), us_per_second);
  summary.gap_s = spread_of(std::move(gaps), us_per_second);
  summary.gpus = spread_of(std::move(gpus), whole_gpu);

  summary.cluster_gpus = cluster != nullptr ? cluster->total_gpus() : trace.report.machine_gpus;
  const double span_h = to_seconds(summary.last_submit - summary.first_submit) / 3600;
  if (summary.cluster_gpus > 0 && span_h > 0) {
    summary.offered_load = summary.gpu_hours / (static_cast<double>(summary.cluster_gpus) * span_h);
  }
  return summary;
}

std::string summary_text(const TraceSummary& summary, const TextStyle& style) {
  const TraceReport& report = summary.report;
  std::string text = report.path + " (" + report.format + ")\n";
  const auto line = [&](const std::string& name, const std::string& value) {
    text += "  " + name + std::string(name.size() < 14 ? 14 - name.size() : 1, ' ') + value + "\n";
  };
  line("jobs", human_count(summary.jobs) + " of " + counted(report.rows, "row"));
  for (const DroppedRows& dropped : report.dropped) {
    line("left out",
         human_count(dropped.rows) + ": " + dropped.reason +
             (dropped.first_line == 0 ? "" : " (first on line " + std::to_string(dropped.first_line) + ")"));
  }
  line("submitted", "over " + human_duration(to_seconds(summary.last_submit - summary.first_submit)) +
                        ", from second " + exact_seconds(summary.first_submit) + " to " +
                        exact_seconds(summary.last_submit));
  line("GPU-hours", human_count(static_cast<std::uint64_t>(std::llround(summary.gpu_hours))));
  if (summary.offered_load) {
    line("offered load", formatted("%.3f", *summary.offered_load) + " of " +
                             counted(static_cast<std::uint64_t>(summary.cluster_gpus), "GPU"));
  }
  if (summary.without_gpu > 0) line("without GPU", counted(summary.without_gpu, "job"));
  if (summary.shares > 0) line("GPU shares", counted(summary.shares, "job"));
  if (summary.retried > 0) line("retried", counted(summary.retried, "job"));
  if (summary.with_estimate > 0) line("estimates", "of " + counted(summary.with_estimate, "job"));
  std::string names;
  const auto add_names = [&](std::uint64_t known, const char* what) {
    if (known > 0) names += (names.empty() ? "" : ", ") + human_count(known) + " " + what;
  };
  add_names(summary.users, "users");
  add_names(summary.vcs, "virtual clusters");
  add_names(summary.groups, "groups");
  add_names(summary.gpu_types, "GPU demands by type");
  if (!names.empty()) line("names", names);
  if (summary.statuses.size() > 1 || !summary.statuses.contains("unknown")) {
    std::string ends;
    for (const auto& [status, jobs] : summary.statuses) {
      ends += (ends.empty() ? "" : ", ") + status + " " +
              percent(static_cast<double>(jobs), static_cast<double>(summary.jobs));
    }
    line("ended", ends);
  }
  for (const std::string& note : report.notes) line("note", note);
  if (!report.sha256.empty()) line("sha256", report.sha256);

  TextTable spreads({"", "min", "p25", "median", "p75", "p90", "p99", "max"});
  const auto add_spread = [&](const char* name, const Spread& s, auto show) {
    spreads.add({name, show(s.min), show(s.p25), show(s.median), show(s.p75), show(s.p90), show(s.p99), show(s.max)});
  };
  add_spread("run time", summary.run_s, human_duration);
  add_spread("gap", summary.gap_s, human_duration);
  add_spread("GPUs", summary.gpus, [](double gpus) { return formatted("%.4g", gpus); });
  text += "\n" + spreads.text(style);
  text += bucket_table("GPUs", summary.by_gpus, style);
  text += bucket_table("run time", summary.by_run, style);
  text += bucket_table("submitted at", summary.by_hour, style);
  return text;
}

std::string summary_json(const TraceSummary& summary) {
  const TraceReport& report = summary.report;
  nlohmann::ordered_json dropped = nlohmann::ordered_json::array();
  for (const DroppedRows& rows : report.dropped) {
    dropped.push_back({{"reason", rows.reason}, {"rows", rows.rows}, {"first_line", rows.first_line}});
  }
  nlohmann::ordered_json json = {{"path", report.path},
                                 {"format", report.format},
                                 {"sha256", report.sha256},
                                 {"rows", report.rows},
                                 {"jobs", summary.jobs},
                                 {"dropped", dropped},
                                 {"notes", report.notes},
                                 {"first_submit_s", to_seconds(summary.first_submit)},
                                 {"last_submit_s", to_seconds(summary.last_submit)},
                                 {"users", summary.users},
                                 {"virtual_clusters", summary.vcs},
                                 {"groups", summary.groups},
                                 {"gpu_demands_by_type", summary.gpu_types},
                                 {"jobs_without_gpu", summary.without_gpu},
                                 {"jobs_with_gpu_share", summary.shares},
                                 {"jobs_with_estimate", summary.with_estimate},
                                 {"jobs_retried", summary.retried},
                                 {"statuses", summary.statuses},
                                 {"gpu_hours", summary.gpu_hours},
                                 {"cluster_gpus", nullptr},
                                 {"offered_load", nullptr},
                                 {"run_s", spread_json(summary.run_s)},
                                 {"gap_s", spread_json(summary.gap_s)},
                                 {"gpus", spread_json(summary.gpus)},
                                 {"by_gpus", buckets_json(summary.by_gpus)},
                                 {"by_run", buckets_json(summary.by_run)},
                                 {"by_hour", buckets_json(summary.by_hour)}};
  if (summary.cluster_gpus > 0) json["cluster_gpus"] = summary.cluster_gpus;
  if (summary.offered_load) json["offered_load"] = *summary.offered_load;
  return json_text(json);
}

}  // namespace gpusched
