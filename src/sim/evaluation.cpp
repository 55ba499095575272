// SPDX-License-Identifier: Apache-2.0
#include "src/sim/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "gpusched/policy/past_jobs.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/parallel.hpp"
#include "src/base/statistics.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/sim/stretch_run.hpp"

namespace gpusched {

Result<std::vector<std::uint32_t>> window_starts(const EvaluationWindows& windows, std::uint32_t trace_jobs) {
  GPUSCHED_ASSERT(windows.jobs > 0 && windows.stride > 0, "windows of no jobs");
  const std::uint32_t last = std::min(windows.last, trace_jobs);
  std::vector<std::uint32_t> starts;
  for (std::uint64_t start = std::max(windows.first, windows.warm_up);
       start + windows.jobs <= last && starts.size() < windows.most; start += windows.stride) {
    starts.push_back(static_cast<std::uint32_t>(start));
  }
  if (starts.empty()) {
    return unexpected("no window of " + std::to_string(windows.jobs) + " jobs fits between jobs " +
                      std::to_string(windows.first) + " and " + std::to_string(last));
  }
  return starts;
}

Result<void> check_policies(const JobTable& trace, const Cluster& cluster, const EvaluationOptions& options,
                            std::span<const PolicySpec> policies, const PolicyRegistry& registry) {
  const PolicyContext context{.jobs = &trace,
                              .cluster = &cluster,
                              .seed = options.engine.seed,
                              .runtime = &options.conditions.runtime.model,
                              .power = &options.conditions.power.model};
  for (const PolicySpec& spec : policies) {
    auto made = make_policy(registry, contestant_spec(registry, spec, options, trace), context);
    if (!made) return Unexpected{made.error()};
  }
  return {};
}

namespace {

Result<StretchRun> run_window(const JobTable& trace, const Cluster& cluster, const EvaluationOptions& options,
                              const PolicySpec& spec, const PolicyRegistry& registry, std::uint32_t start,
                              const std::optional<JobEnds>& ends) {
  const TraceStretch stretch{
      .first = start - options.windows.warm_up, .warm_up = options.windows.warm_up, .jobs = options.windows.jobs};
  auto run = run_stretch(trace, cluster, options, spec, registry, stretch,
                         {.seed = Rng(options.engine.seed).split("window").split(start).state()[0],
                          .past = ends ? ends->before(JobId{stretch.first}) : PastJobs{}});
  if (run && !run->failure.empty()) {
    run->failure = "policy " + spec.text + ", window at job " + std::to_string(start) + ": it " + run->failure;
  }
  return run;
}

}  // namespace

Result<std::vector<PolicyScores>> evaluate_policies(const JobTable& trace, const Cluster& cluster,
                                                    const EvaluationOptions& options,
                                                    std::span<const PolicySpec> policies,
                                                    const PolicyRegistry& registry, std::uint64_t threads,
                                                    EvaluationProgress& progress) {
  const auto starts = window_starts(options.windows, trace.size());
  if (!starts) return Unexpected{starts.error()};
  const std::optional<JobEnds> ends = options.history ? std::optional<JobEnds>(trace) : std::nullopt;
  std::vector<std::optional<Result<StretchRun>>> runs(starts->size() * policies.size());  // [window][policy]
  std::atomic<bool> failed = false;
  for_each_index(runs.size(), threads, [&](std::size_t i) {
    if (failed) return;  // runs begin in order, so the first that fails was begun
    const std::size_t policy = i % policies.size();
    const std::uint32_t start = (*starts)[i / policies.size()];
    if (progress.stopped()) {
      runs[i] = StretchRun{.metrics = {},
                           .failure = "the run was interrupted before the window at job " + std::to_string(start)};
      return;
    }
    const RunningWork::Piece piece(progress.running, policy);
    runs[i] = run_window(trace, cluster, options, policies[policy], registry, start, ends);
    if (!*runs[i]) failed = true;
    ++progress.done;
  });
  std::vector<PolicyScores> scores;
  for (const PolicySpec& spec : policies) scores.push_back({.policy = spec.text, .windows = {}});
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!*runs[i]) return Unexpected{runs[i]->error()};
    PolicyScores& own = scores[i % policies.size()];
    StretchRun& run = **runs[i];
    own.clairvoyant = run.clairvoyant;
    own.windows.push_back(run.metrics);
    own.saturated.push_back(run.saturation.saturated);
    own.left_out.push_back(run.left_out);
    if (!own.windows.back()) own.failures.push_back(std::move(run.failure));
  }
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const PolicySpec spec = contestant_spec(registry, policies[i], options, trace);
    scores[i].run_times = known_run_times(registry, spec, trace, scores[i].clairvoyant);
  }
  for (const PolicyScores& own : scores) {
    if (own.failures.size() < starts->size()) continue;
    if (progress.stopped()) return unexpected("interrupted before policy " + own.policy + " finished a window");
    return unexpected(own.failures.front() + (starts->size() > 1 ? ", and it fails in every other window" : ""));
  }
  return scores;
}

std::vector<std::size_t> Contestant::finished_windows() const {
  std::vector<std::size_t> windows;
  for (std::size_t w = 0; w < runs.front().windows.size(); ++w) {
    const auto ended = [w](const PolicyScores& run) { return run.windows[w].has_value(); };
    if (std::all_of(runs.begin(), runs.end(), ended)) windows.push_back(w);
  }
  return windows;
}

std::vector<std::size_t> Contestant::windows_with(const MetricInfo& figure) const {
  std::vector<std::size_t> windows = finished_windows();
  std::erase_if(windows, [&](std::size_t w) {
    return std::any_of(runs.begin(), runs.end(),
                       [&](const PolicyScores& run) { return !figure.value(*run.windows[w]); });
  });
  return windows;
}

std::size_t Contestant::saturated_windows() const {
  const auto is_saturated = [this](std::size_t window) {
    return std::any_of(runs.begin(), runs.end(), [&](const PolicyScores& run) { return run.is_saturated(window); });
  };
  const std::vector<std::size_t> windows = finished_windows();
  return static_cast<std::size_t>(std::count_if(windows.begin(), windows.end(), is_saturated));
}

RunScores Contestant::scores(const MetricInfo& figure, std::span<const std::size_t> windows) const {
  RunScores result;
  for (const PolicyScores& run : runs) result.push_back(run.values(figure, windows));
  return result;
}

bool Contestant::clairvoyant() const {
  return std::any_of(runs.begin(), runs.end(), [](const PolicyScores& run) { return run.clairvoyant; });
}

std::string Contestant::run_times() const {
  std::vector<std::string> known;
  for (const PolicyScores& run : runs) known.push_back(run.run_times);
  return joined(distinct(std::move(known)), ", ");
}

std::vector<std::size_t> common_windows(const Contestant& contestant, const Contestant& other,
                                        const MetricInfo& figure) {
  const std::vector<std::size_t> here = contestant.windows_with(figure);
  const std::vector<std::size_t> there = other.windows_with(figure);
  std::vector<std::size_t> windows;
  std::set_intersection(here.begin(), here.end(), there.begin(), there.end(), std::back_inserter(windows));
  return windows;
}

namespace {

// The tenth that is worst, the worst first.
std::vector<double> worst_tenth_of(std::vector<double> values, Better better) {
  std::sort(values.begin(), values.end());
  if (better != Better::more) std::reverse(values.begin(), values.end());
  values.resize((values.size() + 9) / 10);
  return values;
}

// Of a share of windows in which a side's figure is the lesser one, for a figure that should be more.
ConfidenceInterval of_the_rest(const ConfidenceInterval& share) { return {1 - share.high, 1 - share.low}; }

void add_run_statistics(Comparison& result, const RunScores& ours, const RunScores& theirs, Better better, Rng rng) {
  result.win_rate = better == Better::more ? probability_below(theirs, ours) : probability_below(ours, theirs);
  if (ours.size() == 1) return;
  result.normalised = normalised_interquartile_mean(ours, theirs);
  const auto intervals = run_intervals(ours, theirs, rng);
  if (!intervals) return;
  result.win_rate_interval = better == Better::more ? of_the_rest(intervals->below) : intervals->below;
  result.normalised_interval = intervals->normalised;
}

// Of each window over the runs.
std::vector<double> window_means(const RunScores& runs) {
  std::vector<double> means, here(runs.size());
  for (std::size_t w = 0; w < runs.front().size(); ++w) {
    for (std::size_t run = 0; run < runs.size(); ++run) here[run] = runs[run][w];
    means.push_back(interquartile_mean(here));
  }
  return means;
}

}  // namespace

Result<SideFigure> side_figure(const std::string& name) {
  constexpr std::string_view prefix = "worst_tenth:";
  SideFigure figure{.name = name, .worst_tenth = name.starts_with(prefix)};
  const std::string metric = figure.worst_tenth ? name.substr(prefix.size()) : name;
  const std::vector<std::string> names = figure_names();
  if (std::find(names.begin(), names.end(), metric) == names.end()) {
    return unexpected("no figure is called '" + metric + "'" + suggest_nearest(metric, names));
  }
  figure.metric = find_metric(metric);
  return figure;
}

SideValues side_values(const Contestant& contestant, const Contestant& other, const SideFigure& figure,
                       WindowMean mean) {
  const std::vector<std::size_t> windows = common_windows(contestant, other, *figure.metric);
  if (windows.empty()) return {};
  const auto value = [&](const Contestant& of) {
    RunScores scores = of.scores(*figure.metric, windows);
    if (figure.worst_tenth) {
      for (std::vector<double>& run : scores) run = worst_tenth_of(std::move(run), figure.metric->better);
    }
    return interquartile_mean_of_runs(scores, mean);
  };
  return {value(contestant), value(other)};
}

Comparison compare(const Contestant& contestant, const Contestant& other, const MetricInfo& figure,
                   const ComparisonOptions& options) {
  const std::vector<std::size_t> windows = common_windows(contestant, other, figure);
  Comparison result{
      .windows = windows.size(), .mean = {}, .other_mean = {}, .interval = {}, .verdict = std::string(too_few_windows)};
  if (windows.empty()) return result;
  const RunScores ours = contestant.scores(figure, windows);
  const RunScores theirs = other.scores(figure, windows);
  result.mean = interquartile_mean_of_runs(ours, options.mean);
  result.other_mean = interquartile_mean_of_runs(theirs, options.mean);
  add_run_statistics(result, ours, theirs, figure.better, Rng(options.seed).split("runs"));
  const auto interval = paired_intervals(ours, theirs, options.overlap, Rng(options.seed).split("bootstrap"),
                                         bootstrap_resamples, options.mean);
  if (!interval) {
    result.verdict = interval.error().message;
    return result;
  }
  result.interval = *interval;
  const ConfidenceInterval& decisive = *result.other_mean > 0 ? result.interval->relative : result.interval->difference;
  const bool less = figure.better != Better::more;
  result.verdict = verdict(less ? decisive : ConfidenceInterval{-decisive.high, -decisive.low});
  return result;
}

std::optional<BlockedSignedRank> test_differences(const Contestant& contestant, const Contestant& other,
                                                  const MetricInfo& figure, const ComparisonOptions& options) {
  const std::vector<std::size_t> windows = common_windows(contestant, other, figure);
  if (windows.empty()) return std::nullopt;
  std::vector<double> differences = window_means(contestant.scores(figure, windows));
  const std::vector<double> theirs = window_means(other.scores(figure, windows));
  for (std::size_t w = 0; w < differences.size(); ++w) {
    if (options.mean == WindowMean::arithmetic) {
      differences[w] -= theirs[w];
    } else if (differences[w] > 0 && theirs[w] > 0) {
      differences[w] = std::log(differences[w] / theirs[w]);
    } else {
      return std::nullopt;
    }
  }
  return blocked_signed_rank(differences, options.overlap);
}

std::optional<ConfidenceInterval> own_interval(const RunScores& scores, const ComparisonOptions& options) {
  const double other = options.mean == WindowMean::geometric ? 1 : 0;
  const auto own = paired_intervals(scores, {std::vector<double>(scores.front().size(), other)}, options.overlap,
                                    Rng(options.seed).split("bootstrap"), bootstrap_resamples, options.mean);
  if (!own) return std::nullopt;
  return ConfidenceInterval{other + own->difference.low, other + own->difference.high};
}

}  // namespace gpusched
