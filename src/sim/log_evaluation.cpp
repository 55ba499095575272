// SPDX-License-Identifier: Apache-2.0
#include "src/sim/log_evaluation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numeric>
#include <string_view>
#include <utility>

#include "gpusched/policy/past_jobs.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"
#include "src/base/paired_tests.hpp"
#include "src/base/parallel.hpp"
#include "src/policies/backfill/backfill.hpp"

namespace gpusched {
namespace {

struct NamedFigure {
  std::string_view name;
  JobFigure figure;
};

constexpr std::array<NamedFigure, 6> job_figures{{
    {"avg_jct_s", {JobQuantity::jct, JobEffect::mean}},
    {"median_jct_s", {JobQuantity::jct, JobEffect::median}},
    {"p99_jct_s", {JobQuantity::jct, JobEffect::p99}},
    {"avg_wait_s", {JobQuantity::wait, JobEffect::mean}},
    {"p99_wait_s", {JobQuantity::wait, JobEffect::p99}},
    {"avg_bounded_slowdown", {JobQuantity::slowdown, JobEffect::mean}},
}};

}  // namespace

std::optional<JobFigure> job_figure(const MetricInfo& figure) {
  for (const NamedFigure& row : job_figures) {
    if (row.name == figure.name) return row.figure;
  }
  return std::nullopt;
}

std::string job_figure_names() {
  std::string text;
  for (const NamedFigure& row : job_figures) text += (text.empty() ? "" : ", ") + std::string(row.name);
  return text;
}

namespace {

const std::vector<double>& quantity_of(const JobLog& jobs, JobQuantity quantity) {
  switch (quantity) {
    case JobQuantity::jct: return jobs.jct_s;
    case JobQuantity::wait: return jobs.wait_s;
    case JobQuantity::slowdown: break;
  }
  return jobs.slowdown;
}

// How many jobs after its start a later run's totals are those of the first run, whose values of the same jobs are
// `first`: LogRun::forgotten_after.
std::optional<std::uint32_t> jobs_to_forget(std::span<const double> first, std::span<const double> later) {
  const std::size_t half = first.size() / 2;
  double total = 0, difference = 0;
  for (std::size_t i = half; i < first.size(); ++i) {
    total += first[i];
    difference += first[i] - later[i];
  }
  if (std::abs(difference) > not_forgotten * total) return std::nullopt;
  const double all = total + std::accumulate(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(half), 0.0);
  double changed = 0;
  for (std::size_t i = half; i > 0; --i) {
    changed += first[i - 1] - later[i - 1];
    if (std::abs(changed) > forgotten_within * all) return static_cast<std::uint32_t>(i);
  }
  return 0;
}

LogRun log_run(const StretchRun& run, JobQuantity quantity) {
  const JobLog& jobs = *run.jobs;
  return {.metrics = *run.metrics,
          .saturation = run.saturation,
          .job = jobs.job,
          .values = quantity_of(jobs, quantity),
          .wait_s = jobs.wait_s,
          .found = std::vector<double>(jobs.found.begin(), jobs.found.end()),
          .censored = jobs.censored,
          .forgotten_after = {}};
}

// The values of the first run's jobs from number `start` on, where a later run began, and of the same jobs in that. A
// job that is refused or cancelled in one of them alone counts in neither.
std::pair<std::vector<double>, std::vector<double>> values_of_both(const JobLog& first, const JobLog& later,
                                                                   std::uint32_t start, JobQuantity quantity) {
  std::pair<std::vector<double>, std::vector<double>> values;
  std::size_t place = 0;
  for (std::size_t i = 0; i < first.job.size(); ++i) {
    if (first.job[i] < start) continue;
    while (place < later.job.size() && start + later.job[place] < first.job[i]) ++place;
    if (place == later.job.size() || start + later.job[place] != first.job[i]) continue;
    values.first.push_back(quantity_of(first, quantity)[i]);
    values.second.push_back(quantity_of(later, quantity)[place]);
  }
  return values;
}

// The runs of one policy, the one from the beginning first.
LogScores scores_of(std::span<const StretchRun* const> runs, const LogOptions& log, JobQuantity quantity) {
  LogScores scores{.policy = {}, .clairvoyant = runs.front()->clairvoyant, .run_times = {}, .run = {}, .failure = {}};
  for (const StretchRun* run : runs) {
    if (scores.failure.empty()) scores.failure = run->failure;
  }
  if (!scores.failure.empty()) return scores;
  scores.run = log_run(*runs.front(), quantity);
  for (std::size_t k = 0; k < log.starts.size(); ++k) {
    const auto [first, later] = values_of_both(*runs.front()->jobs, *runs[k + 1]->jobs, log.starts[k], quantity);
    scores.run->forgotten_after.push_back(jobs_to_forget(first, later));
  }
  return scores;
}

}  // namespace

Result<std::vector<LogScores>> run_log(const JobTable& trace, const Cluster& cluster, const EvaluationOptions& options,
                                       const LogOptions& log, JobQuantity quantity,
                                       std::span<const PolicySpec> policies, const PolicyRegistry& registry,
                                       std::uint64_t threads, EvaluationProgress& progress) {
  auto scores = run_log_of(trace, cluster, options, log, {&quantity, 1}, policies, registry, threads, progress);
  if (!scores) return Unexpected{scores.error()};
  return std::move(scores->front());
}

Result<std::vector<std::vector<LogScores>>> run_log_of(const JobTable& trace, const Cluster& cluster,
                                                       const EvaluationOptions& options, const LogOptions& log,
                                                       std::span<const JobQuantity> quantities,
                                                       std::span<const PolicySpec> policies,
                                                       const PolicyRegistry& registry, std::uint64_t threads,
                                                       EvaluationProgress& progress) {
  const std::optional<JobEnds> ends = options.history ? std::optional<JobEnds>(trace) : std::nullopt;
  const std::size_t starts = 1 + log.starts.size();
  std::vector<std::optional<Result<StretchRun>>> runs(starts * policies.size());  // [start][policy]
  std::atomic<bool> failed = false;
  for_each_index(runs.size(), threads, [&](std::size_t i) {
    if (failed) return;
    const std::size_t policy = i % policies.size(), start = i / policies.size();
    if (progress.stopped()) {
      runs[i] = StretchRun{.metrics = {}, .failure = "was interrupted"};
      return;
    }
    const RunningWork::Piece piece(progress.running, policy);
    const std::uint32_t offset = start == 0 ? 0 : log.starts[start - 1];
    const TraceStretch stretch{.first = log.first + offset, .jobs = log.jobs - offset};
    runs[i] = run_stretch(trace, cluster, options, policies[policy], registry, stretch,
                          {.seed = options.engine.seed,
                           .past = ends ? ends->before(JobId{stretch.first}) : PastJobs{},
                           .keep_jobs = true,
                           .stop = progress.stop});
    if (!*runs[i]) failed = true;
    ++progress.done;
  });
  for (const auto& run : runs) {
    if (run && !*run) return Unexpected{run->error()};
  }
  std::vector<std::vector<LogScores>> result(quantities.size());
  for (std::size_t policy = 0; policy < policies.size(); ++policy) {
    std::vector<const StretchRun*> own;
    for (std::size_t start = 0; start < starts; ++start) own.push_back(&**runs[start * policies.size() + policy]);
    for (std::size_t q = 0; q < quantities.size(); ++q) {
      LogScores scores = scores_of(own, log, quantities[q]);
      scores.policy = policies[policy].text;
      const PolicySpec spec = contestant_spec(registry, policies[policy], options, trace);
      scores.run_times = known_run_times(registry, spec, trace, scores.clairvoyant);
      result[q].push_back(std::move(scores));
    }
  }
  return result;
}

bool LogContestant::finished() const {
  return std::all_of(runs.begin(), runs.end(), [](const LogScores& run) { return run.run.has_value(); });
}

bool LogContestant::clairvoyant() const {
  return std::any_of(runs.begin(), runs.end(), [](const LogScores& run) { return run.clairvoyant; });
}

std::string LogContestant::run_times() const {
  std::vector<std::string> known;
  for (const LogScores& run : runs) known.push_back(run.run_times);
  return joined(distinct(std::move(known)), ", ");
}

namespace {

using Runs = std::vector<std::vector<double>>;

// The jobs that every run of both counts: one policy alone may cancel a job, or have it refused.
std::vector<std::uint32_t> jobs_of_both(const LogContestant& ours, const LogContestant& theirs) {
  std::vector<std::uint32_t> jobs = ours.runs.front().run->job;
  for (const LogContestant* side : {&ours, &theirs}) {
    for (const LogScores& run : side->runs) {
      std::vector<std::uint32_t> common;
      std::set_intersection(jobs.begin(), jobs.end(), run.run->job.begin(), run.run->job.end(),
                            std::back_inserter(common));
      jobs = std::move(common);
    }
  }
  return jobs;
}

// Of a run those of these jobs alone. Precondition: it counts them all.
void keep_jobs(LogRun& run, const std::vector<std::uint32_t>& jobs) {
  const auto keep = [&run, &jobs](auto& column) {
    std::size_t kept = 0;
    for (std::size_t i = 0; kept < jobs.size(); ++i) {
      if (run.job[i] == jobs[kept]) column[kept++] = column[i];
    }
    column.resize(jobs.size());
  };
  keep(run.values);
  keep(run.wait_s);
  keep(run.found);
  keep(run.censored);
  run.job = jobs;
}

LogContestant with_jobs(LogContestant contestant, const std::vector<std::uint32_t>& jobs) {
  for (LogScores& run : contestant.runs) {
    if (run.run->job != jobs) keep_jobs(*run.run, jobs);
  }
  return contestant;
}

// Of each run the values of its measured jobs.
Runs measured_values(const LogContestant& contestant, std::size_t warm_up) {
  Runs values;
  for (const LogScores& run : contestant.runs) {
    values.emplace_back(run.run->values.begin() + static_cast<std::ptrdiff_t>(warm_up), run.run->values.end());
  }
  return values;
}

// Jobs of the log that no user cancels come first in its values, so that a warm-up of so many may be a little longer.
std::uint32_t warm_up_of(const LogEvaluation& evaluation) {
  std::uint32_t most = 0;
  for (const LogContestant& contestant : evaluation.contestants) {
    for (const LogScores& run : contestant.runs) {
      if (!run.run) continue;
      for (const auto& jobs : run.run->forgotten_after) most = std::max(most, jobs.value_or(0));
    }
  }
  return most;
}

// Share of all waiting at the hundredth of the jobs, rounded up, that wait longest.
double longest_share(std::vector<double> waits) {
  const double total = std::accumulate(waits.begin(), waits.end(), 0.0);
  if (!(total > 0)) return 0;
  std::sort(waits.begin(), waits.end());
  const auto count = static_cast<std::ptrdiff_t>((waits.size() + 99) / 100);
  return std::accumulate(waits.end() - count, waits.end(), 0.0) / total;
}

std::string growth_of(const LogRun& run) {
  if (run.saturation.saturated) {
    return counted(run.saturation.backlog_jobs, "job") + " had not started when the last one arrived";
  }
  const auto& after = run.forgotten_after;
  const bool forgets = std::all_of(after.begin(), after.end(), [](const auto& jobs) { return jobs.has_value(); });
  return forgets ? "" : "a later start on an empty cluster is never made up for";
}

double effect_of(const std::vector<EffectEstimate>& effects, JobEffect effect) {
  const auto found = std::find_if(effects.begin(), effects.end(), [&](const auto& e) { return e.effect == effect; });
  return found->ours;
}

// The figure of `contestant` with twice the values of the jobs that had not ended under it and had under `other`.
double if_longer(const LogContestant& contestant, const LogContestant& other, std::size_t warm_up, JobEffect effect) {
  Runs values = measured_values(contestant, warm_up);
  for (std::size_t run = 0; run < values.size(); ++run) {
    for (std::size_t job = 0; job < values[run].size(); ++job) {
      const auto ended = [place = warm_up + job](const LogScores& of) { return !of.run->censored[place]; };
      const bool alone = !ended(contestant.runs[run]) && std::any_of(other.runs.begin(), other.runs.end(), ended);
      if (alone) values[run][job] *= 2;
    }
  }
  const BatchPlan whole{.count = 1, .jobs = values.front().size()};
  return effect_of(job_effects({values, values}, whole, 1, Rng(0)), effect);
}

// Of the queue's length and of its logarithm: a few bursts make most of the variance of the length, and last less long
// than what lies between them.
std::size_t queue_memory(std::span<const double> found) {
  std::vector<double> logarithms(found.begin(), found.end());
  for (double& length : logarithms) length = std::log1p(length);
  return std::max(memory_of(found), memory_of(logarithms));
}

LogStanding standing_of(const LogContestant& whole_runs, std::size_t warm_up, JobEffect effect) {
  LogStanding standing;
  if (!whole_runs.finished()) return standing;
  const std::vector<std::uint32_t> jobs = jobs_of_both(whole_runs, whole_runs);
  if (jobs.size() <= warm_up) return standing;
  const LogContestant contestant = with_jobs(whole_runs, jobs);
  const Runs values = measured_values(contestant, warm_up);
  const BatchPlan whole{.count = 1, .jobs = values.front().size()};
  standing.value = effect_of(job_effects({values, values}, whole, 1, Rng(0)), effect);
  double censored = 0, total = 0;
  const auto runs = static_cast<double>(contestant.runs.size());
  for (const LogScores& scores : contestant.runs) {
    const LogRun& run = *scores.run;
    for (std::size_t job = warm_up; job < run.values.size(); ++job) {
      total += run.values[job];
      if (!run.censored[job]) continue;
      censored += run.values[job];
      ++standing.censored;
    }
    standing.memory = std::max(standing.memory, queue_memory(std::span(run.found).subspan(warm_up)));
    standing.longest_share +=
        longest_share({run.wait_s.begin() + static_cast<std::ptrdiff_t>(warm_up), run.wait_s.end()}) / runs;
    if (standing.grows.empty()) standing.grows = growth_of(run);
  }
  standing.censored /= contestant.runs.size();
  standing.censored_share = total > 0 ? censored / total : 0;
  return standing;
}

// Of one effect: what its interval says, corrected.
std::string effect_verdict(const EffectEstimate& effect, double p_holm, const BatchPlan& plan) {
  if (!plan.enough()) return std::string(log_too_short);
  if (effect.interval && effect.interval->low == 0 && effect.interval->high == 0) return std::string(is_the_same);
  if (p_holm > 0.05 || !effect.interval) return std::string(cannot_be_told);
  return std::string(effect.direction() < 0 ? is_better : is_worse);
}

std::string with_reason(std::string_view verdict, const std::string& reason) {
  return std::string(verdict) + ": " + reason;
}

// Values of jobs that had not ended are too low. Why the difference may come from them; empty: it would be there if
// those of the better policy were twice as large.
std::string why_censored(const LogComparison& pair, int direction, const LogStanding& ours, const LogStanding& theirs) {
  if (direction < 0 && pair.ours_if_longer >= *theirs.value) return counted(ours.censored, "job") + " had not ended";
  if (direction > 0 && pair.theirs_if_longer >= *ours.value) {
    return counted(theirs.censored, "job") + " of the other had not ended";
  }
  return {};
}

// Of the figure. A queue that grows tells which way a longer log goes, but no number.
std::string figure_verdict(const LogComparison& pair, std::size_t effect, const LogStanding& ours,
                           const LogStanding& theirs) {
  if (!ours.grows.empty() && !theirs.grows.empty()) return with_reason(cannot_be_told, "both queues grow");
  const int direction = pair.effects[effect].direction();
  const std::string censored = why_censored(pair, direction, ours, theirs);
  if (!ours.grows.empty() || !theirs.grows.empty()) {
    const std::string growth = ours.grows.empty() ? "the other's queue grows" : "its queue grows";
    if (direction != (ours.grows.empty() ? -1 : 1)) return with_reason(cannot_be_told, growth);
    if (!censored.empty()) return with_reason(cannot_be_told, growth + ", and " + censored);
    return with_reason(direction < 0 ? is_better : is_worse, growth);
  }
  const std::string& plain = pair.verdicts[effect];
  if ((plain == is_better || plain == is_worse) && !censored.empty()) return with_reason(cannot_be_told, censored);
  if (plain == log_too_short) return plain + " (" + counted(pair.plan.count, "batch", "batches") + ")";
  return plain;
}

std::size_t place_of(JobEffect effect) {
  std::size_t place = 0;
  while (job_effect_names[place].value != effect) ++place;
  return place;
}

// Corrects each effect's p values for all comparisons.
void correct(std::vector<LogFindings>& findings) {
  for (std::size_t effect = 0; effect < job_effect_names.size(); ++effect) {
    std::vector<double> p_values;
    std::vector<LogComparison*> tested;
    for (LogFindings& log : findings) {
      for (auto& pair : log.comparisons) {
        if (!pair) continue;
        tested.push_back(&*pair);
        p_values.push_back(pair->effects[effect].p);
      }
    }
    const std::vector<double> corrected = holm_corrected(p_values);
    for (std::size_t i = 0; i < tested.size(); ++i) {
      tested[i]->p_holm.push_back(corrected[i]);
      tested[i]->verdicts.push_back(effect_verdict(tested[i]->effects[effect], corrected[i], tested[i]->plan));
    }
  }
}

// Nothing where no job counts under both.
std::optional<LogComparison> compared(const LogContestant& contestant, const LogContestant& reference,
                                      std::size_t warm_up, std::size_t memory, const LogCompareOptions& options,
                                      std::size_t family) {
  const std::vector<std::uint32_t> jobs = jobs_of_both(contestant, reference);
  if (jobs.size() <= warm_up) return std::nullopt;
  const LogContestant ours = with_jobs(contestant, jobs), theirs = with_jobs(reference, jobs);
  LogComparison pair;
  pair.plan = plan_batches(jobs.size() - warm_up, memory);
  pair.effects = job_effects({measured_values(ours, warm_up), measured_values(theirs, warm_up)}, pair.plan, family,
                             Rng(options.seed).split("batches"), options.resamples);
  pair.ours_if_longer = if_longer(ours, theirs, warm_up, options.figure.effect);
  pair.theirs_if_longer = if_longer(theirs, ours, warm_up, options.figure.effect);
  return pair;
}

LogFindings findings_of(const LogEvaluation& log, const LogCompareOptions& options, std::size_t family) {
  LogFindings findings{.warm_up = warm_up_of(log)};
  findings.measured_s = log.span_s * (1 - static_cast<double>(findings.warm_up) / std::max(1u, log.log.jobs));
  for (const LogContestant& contestant : log.contestants) {
    findings.standings.push_back(standing_of(contestant, findings.warm_up, options.figure.effect));
  }
  const LogContestant& reference = log.contestants[options.reference];
  for (std::size_t row = 0; row < log.contestants.size(); ++row) {
    findings.comparisons.emplace_back();
    const LogContestant& contestant = log.contestants[row];
    if (row == options.reference || !contestant.finished() || !reference.finished()) continue;
    const std::size_t memory = std::max(findings.standings[row].memory, findings.standings[options.reference].memory);
    findings.comparisons.back() = compared(contestant, reference, findings.warm_up, memory, options, family);
  }
  return findings;
}

}  // namespace

std::vector<LogFindings> compare_logs(const std::vector<LogEvaluation>& logs, const LogCompareOptions& options) {
  std::size_t family = 0;
  for (const LogEvaluation& log : logs) family += log.contestants.size() - 1;
  std::vector<LogFindings> findings;
  for (const LogEvaluation& log : logs) findings.push_back(findings_of(log, options, family));
  correct(findings);
  const std::size_t effect = place_of(options.figure.effect);
  for (LogFindings& log : findings) {
    for (std::size_t row = 0; row < log.comparisons.size(); ++row) {
      auto& pair = log.comparisons[row];
      if (pair) pair->verdict = figure_verdict(*pair, effect, log.standings[row], log.standings[options.reference]);
    }
  }
  return findings;
}

bool tells(const LogFindings& findings) {
  const auto grows = [](const LogStanding& standing) { return !standing.grows.empty(); };
  const auto enough = [](const auto& pair) { return pair && pair->plan.enough(); };
  return std::any_of(findings.comparisons.begin(), findings.comparisons.end(), enough) ||
         std::any_of(findings.standings.begin(), findings.standings.end(), grows);
}

std::string why_too_short(const LogEvaluation& log, const LogFindings& findings) {
  for (const LogContestant& contestant : log.contestants) {
    if (contestant.finished() && contestant.runs.front().run->job.empty()) {
      return why_no_job() + " of " + contestant.name;
    }
  }
  std::size_t longest = 0;
  for (std::size_t row = 1; row < findings.standings.size(); ++row) {
    if (findings.standings[row].memory > findings.standings[longest].memory) longest = row;
  }
  const std::uint64_t memory = std::max(findings.standings[longest].memory, least_batch_jobs);
  return "the queue of " + log.contestants[longest].name + " is remembered for " + counted(memory, "job") + ": " +
         std::to_string(least_batches) + " batches of so many take " + human_count(least_batches * memory) +
         ", and the log has " + human_count(log.log.jobs - findings.warm_up);
}

}  // namespace gpusched
