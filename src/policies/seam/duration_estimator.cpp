// SPDX-License-Identifier: Apache-2.0
#include "src/policies/seam/duration_estimator.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "gpusched/core/rng.hpp"
#include "gpusched/policy/recent_runs.hpp"
#include "gpusched/policy/runtime_predictor.hpp"
#include "src/base/nearest_name.hpp"
#include "src/policies/seam/seed_parameter.hpp"

namespace gpusched {
namespace {

// The estimate before any job has finished.
constexpr Time prior = whole_seconds(3600);
// The estimate for a job without a request, where requests are the only source.
constexpr Time longest_forecast = whole_seconds(std::int64_t{365} * 24 * 3600);

// Run time of one attempt of a job that has just finished.
Time attempt_time(const View& view, JobId job) { return {view.ran(job).us / (view.attempt(job) + 1)}; }

template <class Learn>
void for_each_finished(const View& view, Learn learn) {
  for (const Event& event : view.events()) {
    if (event.kind == EventKind::finish) learn(event.job, attempt_time(view.at(event), event.job));
  }
}

struct UserRequest {
  [[nodiscard]] Time estimate(const View& view, JobId job) const {
    return std::min(view.estimate(job), longest_forecast);
  }
};

// Run time of an attempt of a job that ended before the run.
Time attempt_time(const JobTable& trace, JobId job) { return {trace.work(job).us / trace.attempts(job)}; }

// What an estimator knows before the run. `Estimator` has learn(jobs, job, time) for a View and for a JobTable.
template <class Estimator>
Estimator with_past(Estimator estimator, const PolicyContext& context) {
  context.past.for_each(
      [&](const JobTable& trace, JobId job) { estimator.learn(trace, job, attempt_time(trace, job)); });
  return estimator;
}

// Predicts from finished jobs of the same virtual cluster, shape and user, as far as the trace names these.
class History {
 public:
  // Finished jobs after which one counts half; 0: all count alike, as what trained agents are told.
  explicit History(double half_life_jobs) {
    if (half_life_jobs > 0) recent_.emplace(half_life_jobs);
  }

  template <class Jobs>
  void learn(const Jobs& jobs, JobId job, Time time) {
    any_ = true;
    const std::uint32_t vc = jobs.vc(job), shape = jobs.shape_id(job), user = jobs.user(job);
    recent_ ? recent_->learn(vc, shape, user, to_seconds(time)) : all_.learn(vc, shape, user, to_seconds(time));
  }

  void observe(const View& view) {
    for_each_finished(view, [&](JobId job, Time time) { learn(view, job, time); });
  }

  [[nodiscard]] Time estimate(const View& view, JobId job) const {
    if (!any_) return prior;
    const double seconds = recent_ ? recent_->predict_seconds(view.vc(job), view.shape_id(job), view.user(job))
                                   : all_.predict_seconds(view, job);
    return std::min(from_seconds(seconds), longest_forecast);
  }

 private:
  std::optional<RecentRuns> recent_;
  RuntimePredictor all_;
  bool any_ = false;
};

struct RequestOrHistory {
  History history;
  template <class Jobs>
  void learn(const Jobs& jobs, JobId job, Time time) {
    history.learn(jobs, job, time);
  }
  void observe(const View& view) { history.observe(view); }
  [[nodiscard]] Time estimate(const View& view, JobId job) const {
    return view.estimate(job) != Time::max() ? view.estimate(job) : history.estimate(view, job);
  }
};

struct NoisyDuration {
  Rng rng;
  double sigma;
  [[nodiscard]] Time estimate(const OracleView& view, JobId job) const {
    const Time truth = ExactDuration{}.estimate(view, job);
    const double noisy = to_seconds(truth) * rng.split(index(job)).lognormal(0, sigma);
    return from_seconds(std::min(noisy, to_seconds(end_of_time)));
  }
};

class Mean {
 public:
  void add(Time t) {
    sum_ += t.us;
    ++count_;
  }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  // Precondition: not empty.
  [[nodiscard]] Time value() const { return {sum_ / count_}; }

 private:
  std::int64_t sum_ = 0;
  std::int64_t count_ = 0;
};

// Mean over finished jobs of the same user or group, and with `by_gpus` of as many GPUs; where there is none, over all
// finished jobs.
class RunningMean {
 public:
  RunningMean(bool by_group, bool by_gpus) : by_group_(by_group), by_gpus_(by_gpus) {}

  template <class Jobs>
  void learn(const Jobs& jobs, JobId job, Time time) {
    alike_[key(jobs, job)].add(time);
    all_.add(time);
  }

  void observe(const View& view) {
    for_each_finished(view, [&](JobId job, Time time) { learn(view, job, time); });
  }

  [[nodiscard]] Time estimate(const View& view, JobId job) const {
    const auto found = alike_.find(key(view, job));
    if (found != alike_.end()) return found->second.value();
    return all_.empty() ? prior : all_.value();
  }

 private:
  template <class Jobs>
  [[nodiscard]] std::pair<std::uint32_t, MilliGpu> key(const Jobs& jobs, JobId job) const {
    return {by_group_ ? jobs.group(job) : jobs.user(job), by_gpus_ ? jobs.shape(job).gpu_milli() : 0};
  }

  bool by_group_, by_gpus_;
  std::map<std::pair<std::uint32_t, MilliGpu>, Mean> alike_;
  Mean all_;
};

// Mean of the last two: a job is most like those just before it (Tsafrir, Etsion and Feitelson, TPDS 2007).
class LastTwo {
 public:
  void add(Time t) {
    older_ = empty_ ? t : newer_;
    newer_ = t;
    empty_ = false;
  }
  [[nodiscard]] bool empty() const { return empty_; }
  [[nodiscard]] Time value() const { return {(older_.us + newer_.us) / 2}; }

 private:
  Time older_{}, newer_{};
  bool empty_ = true;
};

// Looks, in this order, for the user's jobs of the same name, the user's jobs of a similar name (equal but for digits),
// anyone's jobs of a similar name, the user's jobs, all jobs.
class NameHistory {
 public:
  explicit NameHistory(const JobTable& jobs) {
    std::map<std::string, std::uint32_t> stems;
    for (const std::string& name : jobs.names().names()) {
      std::string stem;
      for (const char c : name) {
        if (std::isdigit(static_cast<unsigned char>(c)) == 0) stem += c;
      }
      stem_of_name_.push_back(
          stems.try_emplace(std::move(stem), static_cast<std::uint32_t>(stems.size())).first->second);
    }
  }

  template <class Jobs>
  void learn(const Jobs& jobs, JobId job, Time time) {
    for (const Key& key : keys(jobs, job)) history_[key].add(time);
  }

  void observe(const View& view) {
    for_each_finished(view, [&](JobId job, Time time) { learn(view, job, time); });
  }

  [[nodiscard]] Time estimate(const View& view, JobId job) const {
    for (const Key& key : keys(view, job)) {
      const auto found = history_.find(key);
      if (found != history_.end()) return found->second.value();
    }
    return prior;
  }

 private:
  enum class Level : std::uint8_t { user_name, user_stem, stem, user, all };
  using Key = std::tuple<Level, std::uint32_t, std::uint32_t>;

  template <class Jobs>
  [[nodiscard]] std::array<Key, 5> keys(const Jobs& jobs, JobId job) const {
    const std::uint32_t user = jobs.user(job);
    const std::uint32_t name = jobs.name(job);
    const std::uint32_t stem = stem_of_name_[name];
    return {Key{Level::user_name, user, name}, Key{Level::user_stem, user, stem}, Key{Level::stem, 0, stem},
            Key{Level::user, user, 0}, Key{Level::all, 0, 0}};
  }

  std::vector<std::uint32_t> stem_of_name_;
  std::map<Key, LastTwo> history_;
};

// Linear quantile regression of the logarithm of the run time (Koenker and Bassett, Econometrica 1978), fitted by
// iteratively reweighted least squares over the latest finished jobs. Features are those known at submission.
class QuantileRegression {
 public:
  explicit QuantileRegression(double quantile) : quantile_(quantile) {}

  void observe(const View& view) {
    for (const Event& event : view.events()) {
      if (event.kind == EventKind::submit) features_.try_emplace(index(event.job), features(view, event.job));
    }
    for_each_finished(view, [&](JobId job, Time time) {
      const auto known = features_.find(index(job));
      learn(known->second, view.user(job), time);
      features_.erase(known);
    });
  }

  // Of a job that ended before the run, with what was known when it ended.
  void learn(const JobTable& trace, JobId job, Time time) { learn(features(trace, job), trace.user(job), time); }

  [[nodiscard]] Time estimate(const View& view, JobId job) const {
    if (!fitted_) return all_.empty() ? prior : all_.value();
    const auto known = features_.find(index(job));
    const Row row = known != features_.end() ? known->second : features(view, job);
    return from_seconds(std::exp(std::clamp(row.dot(coefficients_), 0.0, std::log(to_seconds(longest_forecast)))));
  }

 private:
  static constexpr int feature_count = 6;
  static constexpr std::size_t window = 2000;  // finished jobs that a fit looks at
  static constexpr std::size_t refit_interval = 250;
  using Row = Eigen::Matrix<double, feature_count, 1>;

  // Logarithms start at one second.
  static double seconds(Time t) { return std::max(to_seconds(t), 1.0); }

  template <class Jobs>
  [[nodiscard]] Row features(const Jobs& jobs, JobId job) const {
    const auto user = of_user_.find(jobs.user(job));
    const Time overall = all_.empty() ? prior : all_.value();
    const Time asked = jobs.estimate(job) == Time::max() ? overall : jobs.estimate(job);
    constexpr double day_us = 86400e6;
    const double angle = 2 * 3.141592653589793 * std::fmod(static_cast<double>(jobs.submit(job).us), day_us) / day_us;
    Row row;
    row << 1, std::log2(1 + static_cast<double>(jobs.shape(job).gpu_milli()) / static_cast<double>(whole_gpu)),
        std::log(seconds(user == of_user_.end() ? overall : user->second.value())), std::log(seconds(asked)),
        std::sin(angle), std::cos(angle);
    return row;
  }

  void learn(const Row& row, std::uint32_t user, Time time) {
    remember(row, std::log(seconds(time)));
    of_user_[user].add(time);
    all_.add(time);
  }

  void remember(const Row& row, double log_seconds) {
    if (rows_.size() < window) {
      rows_.push_back(row);
      targets_.push_back(log_seconds);
    } else {
      rows_[seen_ % window] = row;
      targets_[seen_ % window] = log_seconds;
    }
    ++seen_;
    if (seen_ >= 50 && seen_ % refit_interval == 50) fit();
  }

  void fit() {
    Row x = Row::Zero();
    for (int iteration = 0; iteration < 20; ++iteration) {
      Eigen::Matrix<double, feature_count, feature_count> normal =
          1e-6 * Eigen::Matrix<double, feature_count, feature_count>::Identity();
      Row right = Row::Zero();
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        const double residual = targets_[i] - rows_[i].dot(x);
        const double slope = residual >= 0 ? quantile_ : 1 - quantile_;
        const double weight = iteration == 0 ? 1 : slope / std::max(std::abs(residual), 1e-3);
        normal += weight * rows_[i] * rows_[i].transpose();
        right += weight * targets_[i] * rows_[i];
      }
      x = normal.ldlt().solve(right);
    }
    coefficients_ = x;
    fitted_ = true;
  }

  double quantile_;
  std::map<std::uint32_t, Row> features_;  // of jobs that have not finished, as of their submission
  std::vector<Row> rows_;
  std::vector<double> targets_;
  std::size_t seen_ = 0;
  Row coefficients_ = Row::Zero();
  bool fitted_ = false;
  std::map<std::uint32_t, Mean> of_user_;
  Mean all_;
};

}  // namespace

RatePpm best_speed(const View& view, JobId job) {
  if (view.speeds(job).empty()) return reference_rate;
  RatePpm best = 0;
  for (const std::uint32_t number : view.cluster().allowed_classes(view.shape(job), view.queue_of(job))) {
    best = std::max(best, view.speed(job, view.cluster().node_class(number).gpu_type));
  }
  return best > 0 ? best : reference_rate;
}

Time AtBestSpeed::estimate(const OracleView& view, JobId job) {
  const Time elsewhere = inner_.estimate(view, job);
  return {std::min(mul_div(elsewhere.us, reference_rate, best_speed(view, job)), end_of_time.us)};
}

const std::vector<DurationEstimatorInfo>& duration_estimators() {
  static const std::vector<DurationEstimatorInfo> rows{
      {"exact", "the true run time"},
      {"requested", "what the user asked for; as history where the trace gives no request"},
      {"user", "what the user asked for, and a year where that is nothing; needs the column estimate"},
      {"history",
       "mean of the logarithms over finished jobs, the latest most, by virtual cluster, size and user as far as named"},
      {"noisy", "the true run time times a log-normal error of standard deviation noise_sigma, seeded"},
      {"user-mean", "mean of the user's finished jobs; needs the column user"},
      {"user-gpu-mean", "mean of the user's finished jobs of as many GPUs; needs the column user"},
      {"group-mean", "mean of the group's finished jobs; needs the column group"},
      {"group-gpu-mean", "mean of the group's finished jobs of as many GPUs; needs the column group"},
      {"name-history", "last two finished jobs of the same or a similar name; needs the column name"},
      {"quantile", "quantile regression on size, user history, request and time of day of finished jobs"},
  };
  return rows;
}

Result<AnyDurationEstimator> make_duration_estimator(const DurationEstimatorOptions& options,
                                                     const PolicyContext& context) {
  const JobTable& jobs = *context.jobs;
  const std::string& name = options.name;
  if (options.half_life_jobs > 0 && options.half_life_jobs < 1) {
    return unexpected("half_life_jobs: expected 0 or at least 1 job");
  }
  const auto lacks = [&](const char* column) {
    return unexpected("estimator " + name + ": the trace has no column " + column);
  };
  if (name == "exact") return AnyDurationEstimator(ExactDuration{});
  if (name == "requested")
    return AnyDurationEstimator(with_past(RequestOrHistory{History(options.half_life_jobs)}, context));
  if (name == "history") return AnyDurationEstimator(with_past(History(options.half_life_jobs), context));
  if (name == "noisy")
    return AnyDurationEstimator(
        NoisyDuration{Rng(drawing_seed(options.seed, context)).split("estimates"), options.noise_sigma});
  if (name == "user") {
    if (!jobs.has_estimates()) return lacks("estimate");
    return AnyDurationEstimator(UserRequest{});
  }
  if (name == "user-mean" || name == "user-gpu-mean") {
    if (!jobs.has_users()) return lacks("user");
    return AnyDurationEstimator(with_past(RunningMean(false, name == "user-gpu-mean"), context));
  }
  if (name == "group-mean" || name == "group-gpu-mean") {
    if (!jobs.has_groups()) return lacks("group");
    return AnyDurationEstimator(with_past(RunningMean(true, name == "group-gpu-mean"), context));
  }
  if (name == "name-history") {
    if (!jobs.has_names()) return lacks("name");
    return AnyDurationEstimator(with_past(NameHistory(jobs), context));
  }
  if (name == "quantile") return AnyDurationEstimator(with_past(QuantileRegression(options.quantile), context));
  std::vector<std::string> known;
  for (const DurationEstimatorInfo& row : duration_estimators()) known.push_back(row.name);
  return unexpected("unknown estimator '" + name + "'" + suggest_nearest(name, known));
}

std::vector<ParameterInfo> estimate_parameters(const std::string& fallback) {
  std::vector<std::string> names;
  for (const DurationEstimatorInfo& row : duration_estimators()) names.push_back(row.name);
  return {{.name = "estimate", .fallback = fallback, .meaning = "source of run times", .words = std::move(names)},
          {.name = "noise_sigma",
           .fallback = 0.5,
           .meaning = "estimate=noisy: standard deviation of the logarithm of the error",
           .least = 0,
           .most = 10},
          seed_parameter("estimate=noisy: of the errors"),
          {.name = "quantile",
           .fallback = 0.5,
           .meaning = "estimate=quantile: the quantile of the run time to predict",
           .least = 0.01,
           .most = 0.99},
          {.name = "half_life_jobs",
           .fallback = DurationEstimatorOptions{}.half_life_jobs,
           .meaning = "estimate=history, and requested without a request: finished jobs after which one counts half as "
                      "much; 0: all count alike",
           .least = 0,
           .most = 1e9}};
}

Result<AnyDurationEstimator> make_duration_estimator(const PolicyParameters& parameters, const PolicyContext& context) {
  return make_duration_estimator({.name = parameters.word("estimate"),
                                  .noise_sigma = parameters.number("noise_sigma"),
                                  .quantile = parameters.number("quantile"),
                                  .seed = parameters.number("seed"),
                                  .half_life_jobs = parameters.number("half_life_jobs")},
                                 context);
}

}  // namespace gpusched
