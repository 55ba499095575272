// SPDX-License-Identifier: Apache-2.0
#include "traces/synthetic/trace_fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "src/base/number_text.hpp"
#include "traces/synthetic/calendar.hpp"
#include "traces/synthetic/quantile_table.hpp"

namespace gpusched {

QuantileTable quantile_table(std::vector<double> observed) {
  constexpr std::array points{0.0,  0.005, 0.01,  0.02, 0.05,  0.1,   0.15,  0.2,   0.25,  0.3,    0.35, 0.4,
                              0.45, 0.5,   0.55,  0.6,  0.65,  0.7,   0.75,  0.8,   0.85,  0.9,    0.93, 0.95,
                              0.97, 0.98,  0.985, 0.99, 0.993, 0.995, 0.997, 0.998, 0.999, 0.9995, 1.0};
  std::sort(observed.begin(), observed.end());
  QuantileTable table;
  for (const double p : points) {
    const double place = p * static_cast<double>(observed.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, observed.size() - 1);
    const double value = observed[below] + (place - static_cast<double>(below)) * (observed[above] - observed[below]);
    table.probability.push_back(p);
    // Three decimals: a millisecond, or a thousandth of a job.
    table.value.push_back(std::round(value * 1000) / 1000);
  }
  return table;
}

namespace {

/// Upper ends of the classes where the trace has enough jobs: a share, one GPU, part of a node, a node, more.
constexpr std::array class_ends{0.999, 1.0, 3.0, 7.0, 15.0, 1e6};
constexpr std::size_t least_jobs_a_class = 100;
constexpr std::size_t least_jobs = 100;
constexpr double most_requested_s = 3.2e9;  // a century, as of run times in check_model()

struct FittedJob {
  JobId id{};
  double gpus = 0;
  std::uint32_t vc = 0;
  std::uint32_t job_class = 0;
  std::uint32_t session = 0;
};

double rounded_gpus(MilliGpu milli) {
  if (milli < whole_gpu) return static_cast<double>(milli) / static_cast<double>(whole_gpu);
  return std::ceil(static_cast<double>(milli) / static_cast<double>(whole_gpu));
}

std::vector<FittedJob> gpu_jobs(const JobTable& jobs, const FitOptions& options) {
  std::vector<FittedJob> kept;
  for (std::uint32_t i = 0; i < jobs.size() && kept.size() < options.jobs; ++i) {
    const auto job = JobId{i};
    const MilliGpu milli = jobs.shape(job).gpu_milli();
    if (milli == 0 || (options.from && jobs.submit(job) < *options.from)) continue;
    kept.push_back({.id = job, .gpus = rounded_gpus(milli), .vc = jobs.vc(job)});
  }
  return kept;
}

/// Class ends that leave every class enough jobs: a class with fewer joins the next wider one, the last the one before.
std::vector<double> class_ends_for(const std::vector<FittedJob>& kept) {
  std::vector<double> ends;
  std::size_t counted = 0;
  for (const double end : class_ends) {
    const auto upto = static_cast<std::size_t>(
        std::count_if(kept.begin(), kept.end(), [&](const FittedJob& job) { return job.gpus <= end; }));
    if (upto - counted < least_jobs_a_class) continue;
    ends.push_back(end);
    counted = upto;
  }
  ends.back() = class_ends.back();
  return ends;
}

/// An observation that belongs to a session; ranks count within a group.
struct Observation {
  std::uint32_t session = 0, group = 0;
  double value = 0;
};

/// Joins jobs to sessions and notes what is seen on the way.
struct Sessions {
  std::vector<double> size;              ///< jobs, by session
  std::vector<std::uint32_t> job_class;  ///< by session
  std::vector<Observation> gaps_s;       ///< between jobs of one session; all one group
  std::array<double, 168> starts{};      ///< by hour of the week
};

constexpr std::int64_t hour_us = 3600 * microseconds_per_second;

std::size_t hour_of_week(Time t, Time week_start) {
  const std::int64_t since = (t - week_start).us % (168 * hour_us);
  return static_cast<std::size_t>((since + 168 * hour_us) % (168 * hour_us) / hour_us);
}

Sessions find_sessions(const JobTable& jobs, const FitOptions& options, std::vector<FittedJob>& kept) {
  struct Open {
    std::uint32_t session;
    Time last;
  };
  std::map<std::tuple<std::uint32_t, std::uint32_t, double>, Open> open;  // by vc, user and GPU count
  Sessions sessions;
  for (FittedJob& job : kept) {
    const Time now = jobs.submit(job.id);
    const auto [place, first] = open.try_emplace({job.vc, jobs.user(job.id), job.gpus}, Open{0, now});
    Open& mine = place->second;
    if (first || now - mine.last > options.session_gap) {
      mine.session = static_cast<std::uint32_t>(sessions.size.size());
      sessions.size.push_back(0);
      sessions.job_class.push_back(job.job_class);
      sessions.starts[hour_of_week(now, options.week_start)] += 1;
    } else {
      sessions.gaps_s.push_back({.session = mine.session, .value = to_seconds(now - mine.last)});
    }
    mine.last = now;
    sessions.size[mine.session] += 1;
    job.session = mine.session;
  }
  return sessions;
}

/// Session starts an hour, by hour of day and by day of week: counts over the hours of that kind that the trace covers.
void fit_rhythm(const JobTable& jobs, const FitOptions& options, const std::vector<FittedJob>& kept,
                const Sessions& sessions, SyntheticModel& model) {
  std::array<double, 168> hours{};
  const Time last = jobs.submit(kept.back().id);
  for (Time t = jobs.submit(kept.front().id); t <= last; t += Time{hour_us}) {
    hours[hour_of_week(t, options.week_start)] += 1;
  }
  const auto rate = [&](auto&& belongs) {
    double starts = 0, covered = 0;
    for (std::size_t hour = 0; hour < 168; ++hour) {
      if (!belongs(hour)) continue;
      starts += sessions.starts[hour];
      covered += hours[hour];
    }
    return covered > 0 ? starts / covered : 0;
  };
  for (std::size_t h = 0; h < 24; ++h) {
    model.hour_weights[h] = rate([&](std::size_t hour) { return hour % 24 == h; });
  }
  for (std::size_t d = 0; d < 7; ++d) {
    model.day_weights[d] = rate([&](std::size_t hour) { return hour / 24 == d; });
  }
}

/// Inverse of the normal distribution function, by bisection (a fit is not in a hurry).
double normal_score(double p) {
  double low = -9, high = 9;
  for (int step = 0; step < 60; ++step) {
    const double middle = 0.5 * (low + high);
    (0.5 * std::erfc(-middle * 0.70710678118654752) < p ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

/// Mean product of the normal scores of neighbours in a session, where the score of an observation is that of its rank
/// within its group. Under the model (a Gaussian copula) this is the correlation.
double neighbour_correlation(const std::vector<Observation>& seen) {
  std::vector<std::size_t> order(seen.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair{seen[a].group, seen[a].value} < std::pair{seen[b].group, seen[b].value};
  });
  std::vector<double> score(seen.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && seen[order[end]].group == seen[order[first]].group) ++end;
    for (std::size_t i = first; i < end; ++i) {
      score[order[i]] = normal_score((static_cast<double>(i - first) + 0.5) / static_cast<double>(end - first));
    }
    first = end;
  }
  std::map<std::uint32_t, double> last_score;  // by session
  double sum = 0, pairs = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const auto [place, first] = last_score.try_emplace(seen[i].session, score[i]);
    if (!first) {
      sum += place->second * score[i];
      pairs += 1;
    }
    place->second = score[i];
  }
  return pairs == 0 ? 0 : std::clamp(sum / pairs, 0.0, 1.0);
}

/// Users by virtual cluster, and the exponent that makes their job counts, ranked, most likely.
UserMix fit_users(const JobTable& jobs, const std::vector<FittedJob>& kept) {
  if (!jobs.has_users()) return {};
  std::map<std::uint32_t, std::map<std::uint32_t, double>> counts;  // vc -> user -> sessions
  std::set<std::uint32_t> counted;
  for (const FittedJob& job : kept) {
    if (counted.insert(job.session).second) counts[job.vc][jobs.user(job.id)] += 1;
  }
  std::vector<std::vector<double>> ranked;
  UserMix users;
  for (const auto& [vc, by_user] : counts) {
    auto& column = ranked.emplace_back();
    for (const auto& [user, sessions] : by_user) column.push_back(sessions);
    std::sort(column.rbegin(), column.rend());
    users.count += static_cast<std::uint32_t>(column.size());
  }
  // The derivative of the log-likelihood in the exponent falls; its zero is bisected.
  const auto slope = [&](double exponent) {
    double sum = 0;
    for (const auto& column : ranked) {
      double weight = 0, weighted_log = 0, sessions = 0, seen_log = 0;
      for (std::size_t i = 0; i < column.size(); ++i) {
        const double log_rank = std::log(static_cast<double>(i + 1));
        const double w = std::exp(-exponent * log_rank);
        weight += w;
        weighted_log += w * log_rank;
        sessions += column[i];
        seen_log += column[i] * log_rank;
      }
      sum += sessions * weighted_log / weight - seen_log;
    }
    return sum;
  };
  double low = 0, high = 10;
  for (int step = 0; step < 50; ++step) {
    const double middle = 0.5 * (low + high);
    (slope(middle) > 0 ? low : high) = middle;
  }
  users.zipf_exponent = 0.5 * (low + high);
  return users;
}

JobClass fit_class(const JobTable& jobs, const std::vector<FittedJob>& kept, const Sessions& sessions,
                   std::uint32_t number, double end) {
  JobClass job_class{.max_gpus = end, .run_s = {}, .session_jobs = {}, .attempt_weights = {}, .status_weights = {}};
  std::vector<double> run_s, sizes;
  for (const FittedJob& job : kept) {
    if (job.job_class != number) continue;
    run_s.push_back(to_seconds(jobs.work(job.id)));
    const std::uint32_t attempts = jobs.attempts(job.id);
    if (attempts > job_class.attempt_weights.size()) job_class.attempt_weights.resize(attempts);
    job_class.attempt_weights[attempts - 1] += 1;
    job_class.status_weights[static_cast<std::size_t>(jobs.status(job.id))] += 1;
  }
  for (std::size_t s = 0; s < sessions.size.size(); ++s) {
    if (sessions.job_class[s] == number) sizes.push_back(sessions.size[s]);
  }
  job_class.run_s = quantile_table(std::move(run_s));
  job_class.session_jobs = quantile_table(std::move(sizes));
  return job_class;
}

void fit_mix(const JobTable& jobs, const std::vector<FittedJob>& kept, SyntheticModel& model) {
  std::map<double, std::size_t> column;
  for (const FittedJob& job : kept) column.try_emplace(job.gpus, 0);
  for (auto& [gpus, number] : column) {
    number = model.gpu_counts.size();
    model.gpu_counts.push_back(gpus);
  }
  std::map<std::string, VcMix> mixes;
  for (const FittedJob& job : kept) {
    const std::string& name = jobs.vcs()[job.vc];
    VcMix& mix =
        mixes.try_emplace(name, VcMix{.name = name, .gpu_weights = std::vector<double>(column.size())}).first->second;
    mix.weight += 1;
    mix.gpu_weights[column[job.gpus]] += 1;
  }
  for (auto& [name, mix] : mixes) model.vcs.push_back(std::move(mix));
}

/// The tasks of a job, where they make up the GPUs that it counts by.
Shape kept_shape(const JobTable& jobs, const FittedJob& job) {
  const Shape& asked = jobs.shape(job.id);
  const Shape gang = gang_of_gpus(job.gpus);
  if (asked.gpu_milli() != gang.gpu_milli()) return gang;
  return {.tasks = asked.tasks, .gpu_milli_per_task = asked.gpu_milli_per_task};
}

/// Of each GPU count of which a job has not tasks of one GPU each.
std::vector<TaskSplit> fit_splits(const JobTable& jobs, const std::vector<FittedJob>& kept) {
  std::map<std::pair<double, std::uint32_t>, double> weights;  // by GPUs, then tasks
  std::set<double> split;
  for (const FittedJob& job : kept) {
    const Shape shape = kept_shape(jobs, job);
    weights[{job.gpus, shape.tasks}] += 1;
    if (shape != gang_of_gpus(job.gpus)) split.insert(job.gpus);
  }
  std::vector<TaskSplit> splits;
  for (const auto& [place, weight] : weights) {
    if (split.contains(place.first)) splits.push_back({.gpus = place.first, .tasks = place.second, .weight = weight});
  }
  return splits;
}

std::vector<RequestMix> fit_requests(const JobTable& jobs, const std::vector<FittedJob>& kept) {
  struct Seen {
    double jobs = 0, longest_s = 0;
    std::vector<double> ratios;
  };
  std::map<double, Seen> by_gpus;
  for (const FittedJob& job : kept) {
    Seen& seen = by_gpus[job.gpus];
    seen.jobs += 1;
    if (jobs.estimate(job.id) == Time::max()) continue;
    const double asked_s = std::min(to_seconds(jobs.estimate(job.id)), most_requested_s);
    seen.longest_s = std::max(seen.longest_s, asked_s);
    seen.ratios.push_back(asked_s / std::max(to_seconds(jobs.work(job.id)), 1.0));
  }
  std::vector<RequestMix> requests;
  for (auto& [gpus, seen] : by_gpus) {
    if (seen.ratios.empty()) continue;
    const double share = static_cast<double>(seen.ratios.size()) / seen.jobs;
    requests.push_back(
        {.gpus = gpus, .share = share, .ratio = quantile_table(std::move(seen.ratios)), .longest_s = seen.longest_s});
  }
  return requests;
}

/// The trace's own size, on as many 8-GPU nodes as it keeps busy on average, or larger ones that hold its largest task.
std::string cluster_for(const JobTable& jobs, const std::vector<FittedJob>& kept, double hours) {
  double gpu_seconds = 0, most_gpus = 1;
  std::int64_t node = 8;
  for (const FittedJob& job : kept) {
    gpu_seconds += job.gpus * to_seconds(jobs.work(job.id));
    most_gpus = std::max(most_gpus, job.gpus);
    node = std::max(node, kept_shape(jobs, job).gpu_milli_per_task / whole_gpu);
  }
  const auto gpus = static_cast<double>(node);
  double nodes = std::max({1.0, std::ceil(gpu_seconds / (hours * 3600 * gpus)), std::ceil(most_gpus / gpus)});
  for (const FittedJob& job : kept) {
    const Shape shape = kept_shape(jobs, job);
    const std::int64_t of_node = shape.is_share() ? node * (whole_gpu / shape.gpu_milli_per_task)
                                                  : node / (shape.gpu_milli_per_task / whole_gpu);
    nodes = std::max(nodes, std::ceil(shape.tasks / static_cast<double>(of_node)));
  }
  return std::to_string(std::llround(nodes)) + "x" + std::to_string(node);
}

}  // namespace

JobTable fitted_jobs(const JobTable& jobs, const FitOptions& options) {
  JobTableBuilder builder;
  for (const FittedJob& job : gpu_jobs(jobs, options)) {
    builder.add({.submit = jobs.submit(job.id),
                 .work = jobs.work(job.id),
                 .estimate = jobs.estimate(job.id),
                 .shape = kept_shape(jobs, job),
                 .user = jobs.users()[jobs.user(job.id)],
                 .vc = jobs.vcs()[jobs.vc(job.id)]});
  }
  return *std::move(builder).build();
}

Result<SyntheticModel> fit_model(const JobTable& jobs, const FitOptions& options) {
  std::vector<FittedJob> kept = gpu_jobs(jobs, options);
  if (kept.size() < least_jobs) {
    return unexpected("a fit needs at least " + std::to_string(least_jobs) + " jobs with GPUs, found " +
                      std::to_string(kept.size()));
  }
  const double hours = to_seconds(jobs.submit(kept.back().id) - jobs.submit(kept.front().id)) / 3600;
  if (!(hours > 0)) return unexpected("a fit needs jobs submitted at different times");

  const std::vector<double> ends = class_ends_for(kept);
  for (FittedJob& job : kept) {
    job.job_class = static_cast<std::uint32_t>(std::lower_bound(ends.begin(), ends.end(), job.gpus) - ends.begin());
  }
  const Sessions sessions = find_sessions(jobs, options, kept);

  SyntheticModel model;
  model.name = "fitted";
  model.about = "Fitted to a trace.";
  model.jobs_per_hour = static_cast<double>(kept.size()) / hours;
  fit_rhythm(jobs, options, kept, sessions, model);
  std::vector<double> gaps_s;
  gaps_s.reserve(sessions.gaps_s.size());
  for (const Observation& gap : sessions.gaps_s) gaps_s.push_back(gap.value);
  model.session_gap_s = gaps_s.empty() ? QuantileTable{{0, 1}, {0, 0}} : quantile_table(std::move(gaps_s));
  model.gap_correlation = neighbour_correlation(sessions.gaps_s);
  std::vector<Observation> runs;
  runs.reserve(kept.size());
  for (const FittedJob& job : kept) runs.push_back({job.session, job.job_class, to_seconds(jobs.work(job.id))});
  model.run_correlation = neighbour_correlation(runs);
  model.users = fit_users(jobs, kept);
  fit_mix(jobs, kept, model);
  model.task_splits = fit_splits(jobs, kept);
  model.requests = fit_requests(jobs, kept);
  for (std::uint32_t c = 0; c < ends.size(); ++c) model.classes.push_back(fit_class(jobs, kept, sessions, c, ends[c]));

  std::vector<CalendarInput> course;
  course.reserve(kept.size());
  for (const FittedJob& job : kept) course.push_back({jobs.submit(job.id), job.gpus, to_seconds(jobs.work(job.id))});
  model.calendar = fit_calendar(course);

  model.default_cluster = cluster_for(jobs, kept, hours);
  model.default_jobs = static_cast<std::uint32_t>(kept.size());
  // A trace may hold what the model does not say: run times that are all zero, or weeks between a user's jobs.
  if (auto valid = check_model(model); !valid) return unexpected("no model fits: " + valid.error().to_string());
  return model;
}

std::vector<std::string> missing_in_twins(const JobTable& jobs, const FitOptions& options, bool of_users) {
  const std::vector<FittedJob> kept = gpu_jobs(jobs, options);
  std::vector<std::string> missing;
  const auto add = [&](const char* what, auto has) {
    const auto of = [&](const FittedJob& job) { return has(job.id); };
    if (std::any_of(kept.begin(), kept.end(), of)) missing.emplace_back(what);
  };
  add("CPU", [&](JobId job) { return jobs.shape(job).cpu_milli_per_task > 0; });
  add("memory", [&](JobId job) { return jobs.shape(job).memory_mib_per_task > 0; });
  add("GPU types", [&](JobId job) { return jobs.shape(job).gpu_spec != 0; });
  if (!of_users) {
    add("tasks of several GPUs", [&](JobId job) { return jobs.shape(job).gpu_milli_per_task > whole_gpu; });
    add("shares of GPUs", [&](JobId job) { return jobs.shape(job).is_share(); });
    add("users", [&](JobId job) { return jobs.user(job) != 0; });
    add("virtual clusters", [&](JobId job) { return jobs.vc(job) != 0; });
    add("statuses", [&](JobId job) { return jobs.status(job) != JobStatus::unknown; });
    add("attempts", [&](JobId job) { return jobs.attempts(job) > 1; });
  }
  add("groups", [&](JobId job) { return jobs.group(job) != 0; });
  add("qualities of service", [&](JobId job) { return jobs.qos(job) != 0; });
  add("priorities", [&](JobId job) { return jobs.priority(job) != 0; });
  add("deadlines", [&](JobId job) { return jobs.deadline(job) != Time::max(); });
  add("names", [&](JobId job) { return jobs.name(job) != 0; });
  add("families", [&](JobId job) { return jobs.family(job) != 0; });
  add("waits for other jobs", [&](JobId job) { return !jobs.dependencies().of(job).empty(); });
  std::uint64_t without_gpu = 0;
  const bool are_all = kept.size() < options.jobs;  // those behind the last one, too
  const std::uint32_t end = kept.empty() ? 0 : are_all ? jobs.size() : index(kept.back().id);
  for (std::uint32_t i = 0; i < end; ++i) {
    const bool counts = !options.from || jobs.submit(JobId{i}) >= *options.from;
    without_gpu += counts && jobs.shape(JobId{i}).gpu_milli() == 0 ? 1 : 0;
  }
  if (without_gpu > 0) missing.push_back(counted(without_gpu, "job") + " without a GPU");
  return missing;
}

}  // namespace gpusched
