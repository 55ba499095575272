// SPDX-License-Identifier: Apache-2.0
#include "src/sim/compare.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"
#include "src/base/parallel.hpp"
#include "src/sim/log_evaluation.hpp"
#include "src/sim/log_report.hpp"
#include "src/sim/window_comparison.hpp"

namespace gpusched {
namespace {

constexpr const char* usual_metrics[] = {"avg_wait_s",      "p99_wait_s", "avg_jct_s", "avg_bounded_slowdown",
                                         "gpu_utilization", "energy_kwh", "carbon_kg", "cost_usd"};

bool have_same_jobs(const JobTable& a, const JobTable& b) {
  if (a.size() != b.size()) return false;
  for (std::uint32_t i = 0; i < a.size(); ++i) {
    const JobId job{i};
    if (a.submit(job) != b.submit(job) || a.external_id(job) != b.external_id(job)) return false;
  }
  return true;
}

// The whole log. Replicas and trials stand in front of its jobs, in every run.
LogOptions whole_log(const JobTable& table) {
  return {.first = table.in_front(), .jobs = table.size() - table.in_front()};
}

// A figure of power that no world knows says nothing; one that is asked for by its name is refused then.
bool is_known(const MetricInfo& metric, const std::vector<LoadedWorld>& worlds) {
  return std::any_of(worlds.begin(), worlds.end(), [&](const LoadedWorld& world) {
    return lacks_power_figure(metric.name, world.options.conditions.power.model).empty();
  });
}

Result<std::vector<const MetricInfo*>> metrics_of(const CompareOptions& options,
                                                  const std::vector<LoadedWorld>& worlds) {
  std::vector<const MetricInfo*> metrics;
  for (const std::string& name : options.metrics) {
    const MetricInfo* metric = find_metric(name);
    if (metric == nullptr || metric->better == Better::neither) {
      return bad_option("--metrics", "no figure is called '" + name + "'" + suggest_nearest(name, figure_names()) +
                                         "; expected " + joined(figure_names(), "|"));
    }
    if (std::find(metrics.begin(), metrics.end(), metric) != metrics.end()) {
      return bad_option("--metrics", name + " is given twice");
    }
    if (!is_known(*metric, worlds)) {
      return bad_option("--metrics", lacks_power_figure(name, worlds.front().options.conditions.power.model));
    }
    metrics.push_back(metric);
  }
  if (!metrics.empty()) return metrics;
  for (const char* const name : usual_metrics) {
    if (is_known(*find_metric(name), worlds)) metrics.push_back(find_metric(name));
  }
  return metrics;
}

// One run of every world on all of its jobs.
class WorldRuns {
 public:
  WorldRuns(const ComparePlan& plan, std::vector<JobQuantity> quantities)
      : plan_(&plan), quantities_(std::move(quantities)), scores_(plan.worlds.size()) {}

  Result<void> run(const PolicyRegistry& registry, EvaluationProgress& progress) {
    std::vector<std::optional<Error>> errors(scores_.size());
    for_each_index(scores_.size(), plan_->options.threads, [&](std::size_t w) {
      const LoadedWorld& world = plan_->worlds[w];
      const RunningWork::Piece piece(progress.running, w);
      EvaluationProgress own;
      own.stop = progress.stop;
      const JobTable& jobs = world.input.trace.jobs;
      auto scores = run_log_of(jobs, world.input.cluster, world.options, whole_log(jobs), quantities_,
                               world.input.specs, registry, 1, own);
      if (scores) {
        scores_[w] = *std::move(scores);
      } else {
        errors[w] = scores.error();
      }
      ++progress.done;
    });
    for (std::size_t w = 0; w < errors.size(); ++w) {
      if (errors[w]) return unexpected(name(w) + ": " + errors[w]->to_string());
    }
    if (progress.stopped()) return unexpected("interrupted before every world had run");
    if (!of(0).run) return unexpected("the base does not end: policy " + of(0).policy + " " + of(0).failure);
    return {};
  }

  [[nodiscard]] const LogScores& of(std::size_t world, std::size_t quantity = 0) const {
    return scores_[world][quantity].front();
  }
  [[nodiscard]] const std::string& name(std::size_t world) const { return plan_->worlds[world].world.name; }

  // The run ended, of the base's jobs.
  [[nodiscard]] bool is_paired(std::size_t world) const {
    return plan_->worlds[world].same_jobs && of(world).run && of(world).run->job == of(0).run->job;
  }

  // Those that are compared job by job, the base first; `of` says which world each row is.
  [[nodiscard]] LogEvaluation log(std::size_t quantity, std::vector<std::size_t>& of_rows) const {
    const JobTable& jobs = plan_->worlds.front().input.trace.jobs;
    const Time begin = jobs.submit(JobId{jobs.in_front()}), end = jobs.submit(JobId{jobs.size() - 1});
    LogEvaluation log{.log = whole_log(jobs), .span_s = to_seconds(end - begin), .contestants = {}};
    for (std::size_t w = 0; w < scores_.size(); ++w) {
      if (!is_paired(w)) continue;
      of_rows.push_back(w);
      log.contestants.push_back({name(w), {of(w, quantity)}});
    }
    return log;
  }
  [[nodiscard]] std::size_t place_of(JobQuantity quantity) const {
    return static_cast<std::size_t>(std::find(quantities_.begin(), quantities_.end(), quantity) - quantities_.begin());
  }

 private:
  const ComparePlan* plan_;
  std::vector<JobQuantity> quantities_;
  std::vector<std::vector<std::vector<LogScores>>> scores_;  // [world][quantity][policy], one policy
};

std::vector<JobQuantity> quantities_of(const std::vector<const MetricInfo*>& metrics) {
  std::vector<JobQuantity> quantities{JobQuantity::jct};
  for (const MetricInfo* metric : metrics) {
    const auto figure = job_figure(*metric);
    if (figure && std::find(quantities.begin(), quantities.end(), figure->quantity) == quantities.end()) {
      quantities.push_back(figure->quantity);
    }
  }
  return quantities;
}

// What stands in every row, whatever is compared.
std::vector<WorldFigure> plain_figures(const ComparePlan& plan, const WorldRuns& runs, const MetricInfo& metric) {
  std::vector<WorldFigure> rows;
  const auto value = [&](std::size_t w) {
    const auto& run = runs.of(w).run;
    return run ? metric.value(run->metrics) : std::nullopt;
  };
  for (std::size_t w = 1; w < plan.worlds.size(); ++w) {
    WorldFigure row{.metric = &metric, .world = w, .value = value(w), .base = value(0)};
    if (!runs.of(w).run) {
      row.verdict = "did not end";
    } else if (!runs.is_paired(w)) {
      row.verdict = "other jobs";
    } else if (!row.value || !row.base) {
      row.verdict = "not known";
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

LogFindings log_findings(const LogEvaluation& log, const JobFigure& figure, std::uint64_t seed) {
  return std::move(compare_logs({log}, {.figure = figure, .reference = 0, .seed = seed}).front());
}

// Intervals by batches of the log's jobs; a figure of a run as a whole has none.
void compare_log(const ComparePlan& plan, const WorldRuns& runs, std::vector<WorldFigure>& rows) {
  const auto figure = job_figure(*rows.front().metric);
  if (!figure) {
    for (WorldFigure& row : rows) {
      if (row.verdict.empty()) row.verdict = row.value == row.base ? "equal" : "one run";
    }
    return;
  }
  std::vector<std::size_t> worlds;
  const LogEvaluation log = runs.log(runs.place_of(figure->quantity), worlds);
  const LogFindings findings = log_findings(log, *figure, plan.worlds.front().world.scenario.seed);
  for (std::size_t r = 1; r < worlds.size(); ++r) {
    WorldFigure& row = rows[worlds[r] - 1];
    const auto& pair = findings.comparisons[r];
    if (!pair) {
      row.verdict = "no jobs of both";
      continue;
    }
    for (std::size_t place = 0; place < pair->effects.size(); ++place) {
      const EffectEstimate& effect = pair->effects[place];
      if (effect.effect != figure->effect) continue;
      row.interval = effect.interval;
      row.relative = effect.relative;
      if (effect.interval) row.p_holm = pair->p_holm[place];
    }
    row.verdict = pair->verdict;
  }
}

EvaluationWindows windows_for(const CompareOptions& options, const JobTable& jobs) {
  const auto count = static_cast<std::uint32_t>(options.window_jobs);
  return {.jobs = count, .warm_up = 0, .stride = count, .first = jobs.in_front(), .last = jobs.size()};
}
Result<std::vector<std::uint32_t>> window_starts_for(const CompareOptions& options, const JobTable& jobs) {
  return window_starts(windows_for(options, jobs), jobs.size());
}

// Every world that has the base's jobs, on windows of them.
class WindowRuns {
 public:
  static Result<WindowRuns> make(const ComparePlan& plan, const WorldRuns& runs, const PolicyRegistry& registry,
                                 EvaluationProgress& progress) {
    WindowRuns made;
    const JobTable& jobs = plan.worlds.front().input.trace.jobs;
    made.evaluation_.windows = windows_for(plan.options, jobs);
    auto starts = window_starts_for(plan.options, jobs);
    if (!starts) return Unexpected{starts.error()};
    made.evaluation_.starts = *std::move(starts);
    for (std::size_t w = 0; w < plan.worlds.size(); ++w) {
      if (!runs.is_paired(w)) continue;
      const LoadedWorld& world = plan.worlds[w];
      EvaluationOptions options = world.options;
      options.windows = windows_for(plan.options, world.input.trace.jobs);
      EvaluationProgress own;
      own.stop = progress.stop;
      auto scores = evaluate_policies(world.input.trace.jobs, world.input.cluster, options, world.input.specs, registry,
                                      plan.options.threads, own);
      if (!scores) return unexpected(runs.name(w) + ": " + scores.error().to_string());
      made.worlds_.push_back(w);
      made.evaluation_.contestants.push_back({runs.name(w), *std::move(scores)});
      ++progress.done;
    }
    std::vector<std::size_t> same;
    made.evaluation_.log = runs.log(0, same);
    return made;
  }

  void compare(const ComparePlan& plan, std::vector<WorldFigure>& rows) const {
    const MetricInfo& metric = *rows.front().metric;
    TraceEvaluation known = evaluation_;  // those that know the figure
    std::vector<std::size_t> worlds;
    known.contestants.clear();
    known.log->contestants.clear();
    for (std::size_t r = 0; r < worlds_.size(); ++r) {
      if (worlds_[r] > 0 && !rows[worlds_[r] - 1].verdict.empty()) continue;
      if (evaluation_.contestants[r].windows_with(metric).empty()) {
        for (WorldFigure& row : rows) {
          if (row.verdict.empty() && (r == 0 || row.world == worlds_[r])) row.verdict = "not known in any window";
        }
        continue;
      }
      worlds.push_back(worlds_[r]);
      known.contestants.push_back(evaluation_.contestants[r]);
      known.log->contestants.push_back(evaluation_.log->contestants[r]);
    }
    if (worlds.size() < 2) return;
    const ReportOptions how{.figure = &metric, .backfill = "none", .seed = plan.worlds.front().world.scenario.seed};
    const auto found = compare_windows({known}, how).front();
    for (std::size_t r = 1; r < worlds.size(); ++r) {
      WorldFigure& row = rows[worlds[r] - 1];
      const WindowComparison& one = found[r];
      row.window_mean = one.pair.mean;
      row.base_window_mean = one.pair.other_mean;
      if (one.pair.interval) {
        row.relative = one.pair.other_mean && *one.pair.other_mean > 0;
        row.interval = row.relative ? one.pair.interval->relative : one.pair.interval->difference;
      }
      row.p_holm = one.p_holm;
      row.verdict = one.verdict;
      if (one.pair.windows < evaluation_.starts.size()) {
        row.verdict +=
            " (" + std::to_string(one.pair.windows) + " of " + counted(evaluation_.starts.size(), "window") + ")";
      }
      if (!one.typical.empty()) row.verdict += ": " + one.typical;
      if (!one.why.empty()) row.verdict += ": " + one.why;
    }
  }

 private:
  TraceEvaluation evaluation_;
  std::vector<std::size_t> worlds_;  // of each contestant
};

// Whether batches of the log tell something, or why not.
std::string why_not_the_log(const ComparePlan& plan, const WorldRuns& runs) {
  std::vector<std::size_t> worlds;
  const LogEvaluation log = runs.log(0, worlds);
  if (worlds.size() < 2) return "";  // nothing is compared by jobs
  const LogFindings findings =
      log_findings(log, {JobQuantity::jct, JobEffect::mean}, plan.worlds.front().world.scenario.seed);
  return tells(findings) ? "" : "the log is too short for batches: " + why_too_short(log, findings);
}

}  // namespace

std::uint64_t ComparePlan::runs() const { return options.mode == "windows" ? 2 * worlds.size() : worlds.size(); }

std::optional<double> WorldFigure::relative_difference() const {
  if (!value || !base) return std::nullopt;
  if (*value == *base) return 0;
  return *base != 0 ? std::optional(*value / *base - 1) : std::nullopt;
}

Result<ComparePlan> load_comparison(std::vector<World> worlds, const CompareOptions& options,
                                    const PolicyRegistry& registry) {
  ComparePlan plan{.worlds = {}, .metrics = {}, .options = options};
  for (World& world : worlds) {
    auto input = load_replay(world.scenario, registry);
    if (input && !input->has_jobs()) input = bad_option("trace.path", "is missing; worlds are compared by their jobs");
    if (!input && plan.worlds.empty()) return Unexpected{input.error()};
    if (!input) return bad_option("--vary", "'" + world.name + "': " + input.error().to_string());
    LoadedWorld loaded{.world = std::move(world), .input = *std::move(input), .options = {}};
    loaded.options.engine = loaded.input.options;
    loaded.options.conditions = std::move(loaded.input.conditions);
    if (!plan.worlds.empty()) {
      loaded.same_jobs = have_same_jobs(plan.worlds.front().input.trace.jobs, loaded.input.trace.jobs);
    }
    const auto made =
        check_policies(loaded.input.trace.jobs, loaded.input.cluster, loaded.options, loaded.input.specs, registry);
    if (!made && plan.worlds.empty()) return Unexpected{in_option("policies", made.error())};
    if (!made) return bad_option("--vary", "'" + loaded.world.name + "': " + made.error().to_string());
    plan.worlds.push_back(std::move(loaded));
  }
  auto metrics = metrics_of(options, plan.worlds);
  if (!metrics) return Unexpected{metrics.error()};
  plan.metrics = *std::move(metrics);
  if (options.mode == "windows") {
    const auto starts = window_starts_for(options, plan.worlds.front().input.trace.jobs);
    if (!starts) return bad_option("--mode", "windows: " + starts.error().message);
  }
  return plan;
}

Result<CompareOutcome> run_comparison(const ComparePlan& plan, const PolicyRegistry& registry,
                                      EvaluationProgress& progress) {
  WorldRuns runs(plan, quantities_of(plan.metrics));
  if (auto done = runs.run(registry, progress); !done) return Unexpected{done.error()};
  CompareOutcome outcome{
      .mode = plan.options.mode, .note = {}, .failures = {}, .clairvoyant = {}, .metrics = {}, .figures = {}};
  for (std::size_t w = 0; w < plan.worlds.size(); ++w) {
    const LogScores& scores = runs.of(w);
    outcome.failures.push_back(scores.failure);
    outcome.clairvoyant.push_back(scores.clairvoyant);
    outcome.metrics.push_back(scores.run ? std::optional(scores.run->metrics) : std::nullopt);
  }
  if (outcome.mode == "auto") {
    outcome.note = why_not_the_log(plan, runs);
    const auto starts = window_starts_for(plan.options, plan.worlds.front().input.trace.jobs);
    outcome.mode = !outcome.note.empty() && starts ? "windows" : "log";
  }
  std::optional<WindowRuns> windows;
  if (outcome.mode == "windows") {
    auto made = WindowRuns::make(plan, runs, registry, progress);
    if (!made) return Unexpected{made.error()};
    windows = *std::move(made);
  }
  for (const MetricInfo* metric : plan.metrics) {
    std::vector<WorldFigure> rows = plain_figures(plan, runs, *metric);
    windows ? windows->compare(plan, rows) : compare_log(plan, runs, rows);
    outcome.figures.push_back(std::move(rows));
  }
  return outcome;
}

}  // namespace gpusched
