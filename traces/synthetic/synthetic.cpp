// SPDX-License-Identifier: Apache-2.0
#include "traces/synthetic/synthetic.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <queue>
#include <span>
#include <utility>

#include "gpusched/core/rng.hpp"
#include "src/base/field_table.hpp"
#include "traces/synthetic/calendar.hpp"
#include "traces/synthetic/quantile_table.hpp"

namespace gpusched {
namespace {

constexpr double hours_per_week = 168;
constexpr double seconds_per_hour = 3600;
constexpr double most_hours = 1e8;  // no trace is longer (11,000 years), so that times stay far from their limit

/// Draws an index with probability proportional to its weight.
class WeightedIndex {
 public:
  explicit WeightedIndex(std::span<const double> weights) {
    double sum = 0;
    for (const double weight : weights) upto_.push_back(sum += weight);
  }
  [[nodiscard]] std::uint32_t draw(Rng& rng) const {
    const double x = rng.uniform() * upto_.back();
    const auto place = std::upper_bound(upto_.begin(), upto_.end() - 1, x);
    return static_cast<std::uint32_t>(place - upto_.begin());
  }

 private:
  std::vector<double> upto_;
};

/// Turns "weighted hours" (hours in which every hour counts as much as it is busy) into hours of the week's clock.
class WeeklyRhythm {
 public:
  explicit WeeklyRhythm(const SyntheticModel& model) {
    double sum = 0;
    for (std::size_t hour = 0; hour < 168; ++hour) {
      sum += model.day_weights[hour / 24] * model.hour_weights[hour % 24];
      upto_[hour + 1] = sum;
    }
    for (double& x : upto_) x *= hours_per_week / sum;
  }
  [[nodiscard]] double clock_hours(double weighted_hours) const {
    const double weeks = std::floor(weighted_hours / hours_per_week);
    const double rest = weighted_hours - weeks * hours_per_week;
    const auto above = std::upper_bound(upto_.begin() + 1, upto_.end() - 1, rest);
    const auto hour = static_cast<std::size_t>(above - upto_.begin()) - 1;
    return weeks * hours_per_week + static_cast<double>(hour) + (rest - upto_[hour]) / (upto_[hour + 1] - upto_[hour]);
  }

 private:
  std::array<double, 169> upto_{};
};

/// One drawn job; indices point into the model.
struct Draw {
  Time submit{};
  Time work{};
  std::uint32_t vc = 0, gpu_count = 0, job_class = 0, user = 0;
  Rng* outcome = nullptr;  ///< the session's stream for status and attempts
};

struct Session {
  Time next{};  ///< next submission
  std::uint64_t number = 0;
  double jobs_left = 0;
  std::uint32_t vc = 0, gpu_count = 0, job_class = 0, user = 0;
  double run_score = 0, gap_score = 0;  ///< the session's part of the normal scores of its run times and gaps
  Rng gaps, run_times, outcomes;
};

bool later(const Session& a, const Session& b) {
  return std::pair{a.next.us, a.number} > std::pair{b.next.us, b.number};
}

double total(std::span<const double> weights) { return std::accumulate(weights.begin(), weights.end(), 0.0); }

/// Mean session size of a class: the quantile function at midpoints, rounded as the generator rounds it.
double session_size(const QuantileFunction& jobs, double p) { return std::max(1.0, std::round(jobs(p))); }
double mean_session_size(const QuantileFunction& jobs) {
  constexpr int steps = 4096;
  double sum = 0;
  for (int i = 0; i < steps; ++i) sum += session_size(jobs, (i + 0.5) / steps);
  return sum / steps;
}

/// A uniform number whose normal score has correlation `rho` with those that share `common` (a Gaussian copula).
double correlated(double rho, double common, Rng& rng) {
  const double score = std::sqrt(rho) * common + std::sqrt(1 - rho) * rng.normal();
  return 0.5 * std::erfc(-score * 0.70710678118654752);
}

std::uint32_t class_of(const SyntheticModel& model, double gpus) {
  const auto place = std::find_if(model.classes.begin(), model.classes.end() - 1,
                                  [&](const JobClass& c) { return gpus <= c.max_gpus; });
  return static_cast<std::uint32_t>(place - model.classes.begin());
}

/// The model in the form that drawing needs.
class Sampler {
 public:
  explicit Sampler(const SyntheticModel& model) : model_(model), rhythm_(model), gap_s_(model.session_gap_s) {
    for (const JobClass& c : model.classes) {
      run_s_.emplace_back(c.run_s);
      session_jobs_.emplace_back(c.session_jobs);
      statuses_.emplace_back(c.status_weights);
      attempts_.emplace_back(c.attempt_weights);
    }
    std::vector<double> class_mean;
    for (const QuantileFunction& jobs : session_jobs_) class_mean.push_back(mean_session_size(jobs));
    for (const double gpus : model.gpu_counts) class_of_count_.push_back(class_of(model, gpus));
    weigh_cells(class_mean);
    number_users();
  }

  /// Calls sink(Draw) for `jobs` jobs in order of submission.
  template <class Sink>
  void walk(std::uint64_t seed, std::uint32_t jobs, double jobs_per_hour, Sink&& sink) const {
    if (model_.calendar.entries.empty()) {
      walk_sessions(seed, jobs, jobs_per_hour, sink);
    } else {
      walk_calendar(seed, jobs, jobs_per_hour / model_.jobs_per_hour, sink);
    }
  }

  template <class Sink>
  void walk_sessions(std::uint64_t seed, std::uint32_t jobs, double jobs_per_hour, Sink&& sink) const {
    const Rng root(seed);
    Rng starts = root.split("session starts");
    const Rng shapes = root.split("session shapes"), gaps = root.split("gaps");
    const Rng run_times = root.split("run times"), outcomes = root.split("outcomes");
    const double weighted_hours_per_session = mean_session_jobs_ / jobs_per_hour;
    double weighted_hours = 0;
    std::uint64_t number = 0;
    const auto next_start = [&] {
      weighted_hours += starts.exponential(weighted_hours_per_session);
      return from_seconds(rhythm_.clock_hours(weighted_hours) * seconds_per_hour);
    };
    std::vector<Session> active;  // a heap, the session that submits next on top
    Time start = next_start();
    for (std::uint32_t job = 0; job < jobs; ++job) {
      while (active.empty() || start <= active.front().next) {
        active.push_back(draw_session(number, start, shapes.split(number), gaps.split(number), run_times.split(number),
                                      outcomes.split(number)));
        std::push_heap(active.begin(), active.end(), later);
        ++number;
        start = next_start();
      }
      std::pop_heap(active.begin(), active.end(), later);
      Session& session = active.back();
      sink(submit_job(session));
      if (session.jobs_left < 1) {
        active.pop_back();
      } else {
        std::push_heap(active.begin(), active.end(), later);
      }
    }
  }

  /// Each entry of the calendar with `scale` times its jobs, period by period, from the start again at the end.
  template <class Sink>
  void walk_calendar(std::uint64_t seed, std::uint32_t jobs, double scale, Sink&& sink) const {
    const Calendar& calendar = model_.calendar;
    const std::vector<CalendarEntry>& entries = calendar.entries;
    const Rng root = Rng(seed).split("calendar");
    std::uint32_t left = jobs;
    for (std::uint64_t cycle = 0; left > 0; ++cycle) {
      const double cycle_start = static_cast<double>(cycle) * calendar.periods() * calendar.period_s;
      for (std::size_t first = 0, end = 0; first < entries.size() && left > 0; first = end) {
        std::vector<PeriodJob> drawn;
        std::vector<std::vector<Rng>> outcomes;  // by entry of the period, then session
        for (end = first; end < entries.size() && entries[end].period == entries[first].period; ++end) {
          outcomes.push_back(draw_period_entry(end, cycle_start, scale, root.split(cycle).split(end), drawn));
        }
        std::stable_sort(drawn.begin(), drawn.end(),
                         [](const PeriodJob& a, const PeriodJob& b) { return a.draw.submit < b.draw.submit; });
        for (PeriodJob& job : drawn) {
          if (left == 0) break;
          job.draw.outcome = &outcomes[job.entry - first][job.session];
          sink(job.draw);
          --left;
        }
      }
    }
  }

  [[nodiscard]] JobStatus draw_status(std::uint32_t job_class, Rng& rng) const {
    return static_cast<JobStatus>(statuses_[job_class].draw(rng));
  }

  /// The work of each attempt: the last takes a uniform share of the work, the one before a uniform share of the rest,
  /// and so on to the first. `works` is reused storage.
  void draw_attempts(std::uint32_t job_class, Time work, Rng& rng, std::vector<Time>& works) const {
    works.assign(attempts_[job_class].draw(rng) + 1, Time{});
    Time rest = work;
    for (std::size_t k = works.size() - 1; k > 0; --k) {
      works[k] = Time{std::llround(rng.uniform() * static_cast<double>(rest.us))};
      rest -= works[k];
    }
    works.front() = rest;
  }

  [[nodiscard]] double gpus_of(const Draw& draw) const { return model_.gpu_counts[draw.gpu_count]; }

  /// The rates, in jobs an hour, that draw in reasonable time: those of a calendar are near its own.
  [[nodiscard]] std::pair<double, double> rates() const {
    if (model_.calendar.entries.empty()) return {0, INFINITY};
    return {model_.jobs_per_hour / 100, model_.jobs_per_hour * 100};
  }

  /// Mean GPU-seconds of a job, by the midpoint rule on each quantile function.
  [[nodiscard]] double mean_gpu_seconds() const {
    constexpr int steps = 20'000;
    std::vector<double> mean_s(run_s_.size());
    for (std::size_t c = 0; c < run_s_.size(); ++c) {
      for (int i = 0; i < steps; ++i) mean_s[c] += run_s_[c]((i + 0.5) / steps) / steps;
    }
    double sum = 0, weight = 0;
    for (const VcMix& vc : model_.vcs) {
      for (std::size_t g = 0; g < model_.gpu_counts.size(); ++g) {
        const double share = vc.weight * vc.gpu_weights[g] / total(vc.gpu_weights);
        sum += share * model_.gpu_counts[g] * mean_s[class_of_count_[g]];
        weight += share;
      }
    }
    return sum / weight;
  }

 private:
  /// A drawn job of a period, with the entry and the session that it is of.
  struct PeriodJob {
    Draw draw;
    std::size_t entry = 0;
    std::uint32_t session = 0;
  };

  /// Appends the jobs of an entry; returns each session's stream for statuses and attempts.
  std::vector<Rng> draw_period_entry(std::size_t number, double cycle_start, double scale, const Rng& rng,
                                     std::vector<PeriodJob>& drawn) const {
    const Calendar& calendar = model_.calendar;
    const CalendarEntry& entry = calendar.entries[number];
    Rng counts = rng.split("jobs"), shapes = rng.split("shapes"), streams = rng.split("outcomes");
    const auto jobs = static_cast<std::uint32_t>(static_cast<double>(entry.jobs) * scale + counts.uniform());
    const auto gpu_count = static_cast<std::uint32_t>(
        std::lower_bound(model_.gpu_counts.begin(), model_.gpu_counts.end(), entry.gpus) - model_.gpu_counts.begin());
    const std::uint32_t job_class = class_of_count_[gpu_count];
    const double start_s = entry.period * calendar.period_s;
    const double length_s = std::clamp(calendar.span_s - start_s, 1.0, calendar.period_s);
    const SessionStyle style{.session_jobs = &session_jobs_[job_class],
                             .gap_s = &gap_s_,
                             .gap_correlation = model_.gap_correlation,
                             .run_correlation = model_.run_correlation};
    std::vector<Rng> outcomes;
    Draw draw{.gpu_count = gpu_count, .job_class = job_class};
    for (const CalendarJob& job : draw_entry(entry, jobs, length_s, style, rng)) {
      if (job.session == outcomes.size()) {
        outcomes.push_back(streams.split(job.session));
        draw.vc = vc_of_count_[gpu_count].draw(shapes);
        if (!users_.empty()) draw.user = first_user_[draw.vc] + users_[draw.vc].draw(shapes);
      }
      draw.submit = from_seconds(cycle_start + start_s + job.at_s);
      draw.work = from_seconds(job.run_s);
      drawn.push_back({draw, number, job.session});
    }
    return outcomes;
  }

  // A session of a class with long sessions brings more jobs, so that the weight of a job is divided by their mean.
  void weigh_cells(const std::vector<double>& class_mean) {
    std::vector<double> weights;
    double jobs = 0, sessions = 0;
    for (const VcMix& vc : model_.vcs) {
      for (std::size_t g = 0; g < model_.gpu_counts.size(); ++g) {
        const double job_weight = vc.weight * vc.gpu_weights[g] / total(vc.gpu_weights);
        weights.push_back(job_weight / class_mean[class_of_count_[g]]);
        jobs += job_weight;
        sessions += weights.back();
      }
    }
    cells_.emplace_back(weights);
    for (std::size_t g = 0; g < model_.gpu_counts.size(); ++g) {
      std::vector<double> of_vc;
      for (const VcMix& vc : model_.vcs) of_vc.push_back(vc.weight * vc.gpu_weights[g] / total(vc.gpu_weights));
      vc_of_count_.emplace_back(of_vc);
    }
    mean_session_jobs_ = jobs / sessions;
  }

  void number_users() {
    if (model_.users.count == 0) return;
    double weight = 0;
    for (const VcMix& vc : model_.vcs) weight += vc.weight;
    std::uint32_t first = 0;
    for (const VcMix& vc : model_.vcs) {
      const double share = vc.weight / weight * model_.users.count;
      const auto count = std::max(1u, static_cast<std::uint32_t>(std::lround(share)));
      std::vector<double> weights;
      for (std::uint32_t rank = 1; rank <= count; ++rank) {
        weights.push_back(std::pow(rank, -model_.users.zipf_exponent));
      }
      users_.emplace_back(weights);
      first_user_.push_back(first);
      first += count;
    }
  }

  [[nodiscard]] Session draw_session(std::uint64_t number, Time start, Rng shape, Rng gaps, Rng run_times,
                                     Rng outcomes) const {
    Session session{.next = start, .number = number, .gaps = gaps, .run_times = run_times, .outcomes = outcomes};
    const std::uint32_t cell = cells_.front().draw(shape);
    const auto counts = static_cast<std::uint32_t>(model_.gpu_counts.size());
    session.vc = cell / counts;
    session.gpu_count = cell % counts;
    session.job_class = class_of_count_[session.gpu_count];
    session.jobs_left = session_size(session_jobs_[session.job_class], shape.uniform());
    if (!users_.empty()) session.user = first_user_[session.vc] + users_[session.vc].draw(shape);
    session.run_score = shape.normal();
    session.gap_score = shape.normal();
    return session;
  }

  /// The session's next job; moves the session on to the one after.
  [[nodiscard]] Draw submit_job(Session& session) const {
    const Draw draw{.submit = session.next,
                    .work = from_seconds(run_s_[session.job_class](
                        correlated(model_.run_correlation, session.run_score, session.run_times))),
                    .vc = session.vc,
                    .gpu_count = session.gpu_count,
                    .job_class = session.job_class,
                    .user = session.user,
                    .outcome = &session.outcomes};
    session.jobs_left -= 1;
    if (session.jobs_left >= 1)
      session.next += from_seconds(gap_s_(correlated(model_.gap_correlation, session.gap_score, session.gaps)));
    return draw;
  }

  const SyntheticModel& model_;
  WeeklyRhythm rhythm_;
  QuantileFunction gap_s_;
  std::vector<QuantileFunction> run_s_, session_jobs_;  // by class
  std::vector<WeightedIndex> statuses_, attempts_;      // by class
  std::vector<WeightedIndex> cells_;                    // one: (vc, GPU count) of a session
  std::vector<WeightedIndex> vc_of_count_;              // by GPU count
  std::vector<std::uint32_t> class_of_count_;
  std::vector<WeightedIndex> users_;  // by vc
  std::vector<std::uint32_t> first_user_;
  double mean_session_jobs_ = 1;
};

/// What a job of a GPU count asks for besides. Streams of its own, so that all else is drawn alike with it or without.
class Demands {
 public:
  Demands(const SyntheticModel& model, std::uint64_t seed)
      : tasks_(Rng(seed).split("tasks")), requests_(Rng(seed).split("requests")) {
    for (const double gpus : model.gpu_counts) {
      Of& of = of_count_.emplace_back();
      std::vector<double> weights;
      for (const TaskSplit& split : model.task_splits) {
        if (split.gpus != gpus) continue;
        of.shapes.push_back(*gang_of_tasks(gpus, split.tasks));
        weights.push_back(split.weight);
      }
      if (of.shapes.empty()) of.shapes.push_back(gang_of_gpus(gpus));
      if (of.shapes.size() > 1) of.split.emplace(weights);
      for (const RequestMix& request : model.requests) {
        if (request.gpus != gpus) continue;
        of.request = &request;
        of.ratio.emplace(request.ratio);
      }
    }
  }

  [[nodiscard]] const Shape& draw_shape(std::uint32_t gpu_count) {
    const Of& of = of_count_[gpu_count];
    return of.shapes[of.split ? of.split->draw(tasks_) : 0];
  }

  /// The requested time of a job that runs so long, or Time::max().
  [[nodiscard]] Time draw_request(std::uint32_t gpu_count, Time work) {
    const Of& of = of_count_[gpu_count];
    if (of.request == nullptr) return Time::max();
    const bool asks = requests_.uniform() < of.request->share;
    const double ratio = (*of.ratio)(requests_.uniform()), run_s = std::max(to_seconds(work), 1.0);
    if (!asks) return Time::max();
    return from_seconds(std::min(ratio * run_s, std::max(of.request->longest_s, run_s)));
  }

 private:
  struct Of {
    std::vector<Shape> shapes;
    std::optional<WeightedIndex> split;  // none: one shape
    const RequestMix* request = nullptr;
    std::optional<QuantileFunction> ratio;
  };

  Rng tasks_, requests_;
  std::vector<Of> of_count_;  // by GPU count
};

struct Offered {
  double load = 0;
  Time last{};  ///< submission
};

/// Offered load of the trace that `rate` jobs an hour would give, without storing it.
Offered load_at(const Sampler& sampler, const SyntheticOptions& options, double rate) {
  double gpu_seconds = 0;
  Time first = Time::max(), last{};
  sampler.walk(options.seed, options.jobs, rate, [&](const Draw& draw) {
    gpu_seconds += sampler.gpus_of(draw) * to_seconds(draw.work);
    first = std::min(first, draw.submit);
    last = draw.submit;
  });
  return {gpu_seconds / (to_seconds(last - first) * static_cast<double>(options.cluster_gpus)), last};
}

/// How the time axis is made: the rate of jobs, and a factor on every submission time.
struct Pace {
  double jobs_per_hour = 0;
  double stretch = 1;
  double last_hours = 0;  ///< the last submission
};

/// The pace that gives the asked load. Load is nearly proportional to the rate; what is left comes from jobs that move
/// over the end of the trace, so that a few proportional steps meet it and the nearest is kept. A short trace on a
/// large cluster may be little more than one session, whose gaps no rate of sessions shortens: then time itself is
/// scaled.
Pace pace_for_load(const Sampler& sampler, const SyntheticOptions& options) {
  constexpr double close_enough = 0.005, closer_by_stretching = 0.01;
  const double target = *options.offered_load;
  double rate = target * static_cast<double>(options.cluster_gpus) * seconds_per_hour / sampler.mean_gpu_seconds();
  const auto [least_rate, most_rate] = sampler.rates();
  // A rate lower than one that fills all hours would have times overflow; what is left to the load is stretched.
  rate = std::max(rate, options.jobs / most_hours);
  rate = std::clamp(rate, least_rate, most_rate);
  Pace best;
  double best_load = 0, best_miss = INFINITY;
  for (int step = 0; step < 12 && best_miss > close_enough; ++step) {
    const auto [load, last] = load_at(sampler, options, rate);
    const double miss = std::abs(load / target - 1);
    if (miss < best_miss) {
      best.jobs_per_hour = rate;
      best.last_hours = to_seconds(last) / seconds_per_hour;
      best_load = load;
      best_miss = miss;
    }
    // A step is kept to a factor of 10, so that a trace of one session does not run away.
    rate = std::max(rate * std::clamp(target / load, 0.1, 10.0), options.jobs / most_hours);
    rate = std::clamp(rate, least_rate, most_rate);
  }
  if (best_miss > closer_by_stretching) best.stretch = best_load / target;
  best.last_hours *= best.stretch;
  return best;
}

}  // namespace

Shape gang_of_gpus(double gpus) {
  if (gpus < 1) return {.gpu_milli_per_task = std::llround(gpus * static_cast<double>(whole_gpu))};
  return {.tasks = static_cast<std::uint32_t>(gpus), .gpu_milli_per_task = whole_gpu};
}

std::optional<Shape> gang_of_tasks(double gpus, std::uint32_t tasks) {
  const auto milli = std::llround(gpus * static_cast<double>(whole_gpu));
  if (tasks < 1 || milli % tasks != 0) return std::nullopt;
  const Shape shape{.tasks = tasks, .gpu_milli_per_task = milli / tasks};
  const bool is_whole = shape.gpu_milli_per_task % whole_gpu == 0;
  if (shape.gpu_milli_per_task < 1 || (shape.gpu_milli_per_task > whole_gpu && !is_whole)) return std::nullopt;
  return shape;
}

double offered_load(const JobTable& jobs, std::int64_t gpus) {
  GPUSCHED_ASSERT(gpus > 0, "a cluster has GPUs");
  if (jobs.size() == 0) return 0;
  double gpu_seconds = 0;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const auto job = JobId{i};
    gpu_seconds +=
        static_cast<double>(jobs.shape(job).gpu_milli()) / static_cast<double>(whole_gpu) * to_seconds(jobs.work(job));
  }
  const double span = to_seconds(jobs.submits().back() - jobs.submits().front());
  return span > 0 ? gpu_seconds / (span * static_cast<double>(gpus)) : 0;
}

Result<void> check_options(const SyntheticOptions& options) {
  if (options.jobs < 1 || options.jobs >= no_index - 1) return bad_option("jobs", "expected 1 to 4294967293 jobs");
  if (!options.offered_load) return {};
  if (!(*options.offered_load > 0) || *options.offered_load > 1000)
    return bad_option("load", "expected a number in (0, 1000]");
  if (options.jobs < 2) return bad_option("load", "an offered load needs at least 2 jobs");
  if (options.cluster_gpus < 1) {
    return bad_option("cluster", "an offered load needs a cluster with at least one GPU");
  }
  return {};
}

Result<JobTable> generate_synthetic(const SyntheticModel& model, const SyntheticOptions& options) {
  if (auto valid = check_model(model); !valid) return Unexpected{valid.error()};
  if (auto valid = check_options(options); !valid) return Unexpected{valid.error()};
  if (!options.offered_load && options.jobs / model.jobs_per_hour > most_hours) {
    return bad_option("jobs", "expected a trace of at most 1e8 hours");
  }
  const Sampler sampler(model);
  const Pace pace = options.offered_load ? pace_for_load(sampler, options) : Pace{model.jobs_per_hour};

  if (!(pace.jobs_per_hour > 0)) {
    return bad_option("load", "the jobs drawn are all submitted at one instant; ask for more jobs");
  }
  if (pace.last_hours > most_hours) return bad_option("load", "expected a trace of at most 1e8 hours");

  Demands demands(model, options.seed);
  JobTableBuilder builder;
  builder.reserve(options.jobs);
  std::vector<std::string> users;
  std::vector<Time> attempts;
  sampler.walk(options.seed, options.jobs, pace.jobs_per_hour, [&](const Draw& draw) {
    while (model.users.count > 0 && users.size() <= draw.user) users.push_back("user" + std::to_string(users.size()));
    sampler.draw_attempts(draw.job_class, draw.work, *draw.outcome, attempts);
    builder.add({.submit = pace.stretch == 1 ? draw.submit : from_seconds(to_seconds(draw.submit) * pace.stretch),
                 .work = draw.work,
                 .estimate = demands.draw_request(draw.gpu_count, draw.work),
                 .shape = demands.draw_shape(draw.gpu_count),
                 .user = users.empty() ? std::string_view{} : std::string_view{users[draw.user]},
                 .vc = model.vcs[draw.vc].name,
                 .status = sampler.draw_status(draw.job_class, *draw.outcome),
                 .attempts = attempts});
  });
  return std::move(builder).build();
}

SyntheticOptions default_options(const SyntheticModel& model) {
  return {.jobs = model.default_jobs,
          .offered_load = model.default_load,
          .cluster_gpus = gpus_of_size(model.default_cluster)};
}

std::int64_t gpus_of_size(std::string_view text) {
  const auto take_number = [&]() -> std::int64_t {
    std::uint32_t number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return status == std::errc{} ? number : 0;
  };
  const std::int64_t first = take_number();
  if (text.empty()) return first;
  if (text.front() != 'x') return 0;
  text.remove_prefix(1);
  const std::int64_t second = take_number();
  return text.empty() ? first * second : 0;
}

}  // namespace gpusched
