// SPDX-License-Identifier: Apache-2.0
#include "src/sim/window_comparison.hpp"

#include <algorithm>
#include <numeric>

#include "src/base/number_text.hpp"

namespace gpusched {
namespace {

std::optional<double> log_value(const LogContestant& contestant, const MetricInfo& figure) {
  std::vector<double> values;
  for (const LogScores& run : contestant.runs) {
    const auto value = run.run ? figure.value(run.run->metrics) : std::nullopt;
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return interquartile_mean(values);
}

// Where both logs were run.
LogValues log_values(const TraceEvaluation& evaluation, std::size_t row, std::size_t reference,
                     const MetricInfo& figure) {
  if (!evaluation.log) return {};
  return {log_value(evaluation.log->contestants[row], figure),
          log_value(evaluation.log->contestants[reference], figure)};
}

// One of a contestant's runs on the log.
const LogRun* log_run(const TraceEvaluation& evaluation, std::size_t row) {
  const auto& run = evaluation.log->contestants[row].runs.front().run;
  return run ? &*run : nullptr;
}

// Waits of the log that no window can hold.
struct LongWaits {
  std::size_t jobs = 0;
  double share = 0;  // of all waiting
};

LongWaits longer_than(const LogRun& run, double seconds) {
  LongWaits found;
  double all = 0, beyond = 0;
  for (const double wait : run.wait_s) {
    all += wait;
    if (wait <= seconds) continue;
    beyond += wait;
    ++found.jobs;
  }
  found.share = all > 0 ? beyond / all : 0;
  return found;
}

double mean_found(const LogRun& run) { return mean_of(run.found); }

// Why running the log says the opposite of its windows. The reasons stand in the order in which they explain most.
std::string why_they_disagree(const TraceEvaluation& evaluation, std::size_t row, std::size_t reference) {
  constexpr double much = 0.25;
  const double window_s = evaluation.log->span_s * evaluation.windows.jobs / std::max(1u, evaluation.log->log.jobs);
  const auto name = [&](std::size_t of) { return evaluation.contestants[of].name; };
  std::string starvation, growth, load;
  for (const std::size_t of : {row, reference}) {
    const LogRun* run = log_run(evaluation, of);
    if (run == nullptr) continue;
    const LongWaits waits = longer_than(*run, window_s);
    if (waits.share > much && starvation.empty()) {
      starvation = "starvation: on the log " + counted(waits.jobs, "job") + " of " + name(of) +
                   " wait longer than a window lasts (" + human_duration(window_s) + ") and make " +
                   percent_text(waits.share) + " of its waiting";
    }
    if (run->saturation.saturated && growth.empty()) {
      growth = "queue growth: on the log " + name(of) +
               " falls behind for as long as jobs arrive; a window ends before "
               "that shows";
    }
    load += (load.empty() ? "" : ", ") + formatted("%.0f", mean_found(*run)) + " under " + name(of);
  }
  if (!growth.empty()) return growth;
  if (!starvation.empty()) return starvation;
  return "carry-over: a window begins empty, and in the log a job finds on average so many waiting: " + load;
}

// Whether the log says the opposite of a verdict.
bool opposes(const LogValues& log, const std::string& verdict, Better better) {
  const auto difference = log.difference();
  if (!difference || !is_verdict(verdict) || *difference == 0) return false;
  const bool log_better = better == Better::more ? *difference > 0 : *difference < 0;
  return log_better != (verdict == "better");
}

std::string typical_window(const WindowComparison& one, Better better) {
  if (!one.ranks || *one.ranks_holm > 0.05 || is_verdict(one.verdict)) return "";
  const bool lower = one.ranks->test.rank_biserial < 0;
  return lower == (better != Better::more) ? "more windows better" : "more windows worse";
}

// P values of comparisons, each to be corrected for the number of all.
class PValues {
 public:
  explicit PValues(std::optional<double> WindowComparison::*corrected) : corrected_(corrected) {}

  void add(WindowComparison& of, double p) {
    of_.push_back(&of);
    p_.push_back(p);
  }
  void correct() const {
    const std::vector<double> corrected = holm_corrected(p_);
    for (std::size_t i = 0; i < of_.size(); ++i) of_[i]->*corrected_ = corrected[i];
  }

 private:
  std::optional<double> WindowComparison::*corrected_;
  std::vector<WindowComparison*> of_;
  std::vector<double> p_;
};

WindowComparison alone(const TraceEvaluation& evaluation, std::size_t row, const ReportOptions& options) {
  const MetricInfo& figure = *options.figure;
  const Contestant& contestant = evaluation.contestants[row];
  const Contestant& reference = evaluation.contestants[options.reference];
  const ComparisonOptions how = options.with_overlap(evaluation.windows.overlap());
  WindowComparison one{.pair = compare(contestant, reference, figure, how),
                       .p_holm = {},
                       .ranks = {},
                       .ranks_holm = {},
                       .log = log_values(evaluation, row, options.reference, figure),
                       .verdict = {},
                       .typical = {},
                       .why = {}};
  if (row != options.reference) one.ranks = test_differences(contestant, reference, figure, how);
  return one;
}

// Whether the averages of every run of both are of the same jobs, window by window.
bool average_the_same(const Contestant& contestant, const Contestant& other) {
  for (const PolicyScores& own : contestant.runs) {
    for (const PolicyScores& theirs : other.runs) {
      for (std::size_t w = 0; w < own.windows.size(); ++w) {
        if (own.windows[w] && theirs.windows[w] && own.left_out_in(w) != theirs.left_out_in(w)) return false;
      }
    }
  }
  return true;
}

void judge(WindowComparison& one, const TraceEvaluation& evaluation, std::size_t row, const ReportOptions& options) {
  const Better better = options.figure->better;
  one.verdict = one.pair.verdict;
  if (!average_the_same(evaluation.contestants[row], evaluation.contestants[options.reference])) {
    one.verdict = other_jobs;
    return;
  }
  if (is_verdict(one.verdict) && *one.p_holm > 0.05) one.verdict = "no difference detected";
  one.typical = typical_window(one, better);
  for (const std::string word : {"better", "worse"}) {
    if (one.typical != "more windows " + word || !opposes(one.log, word, better)) continue;
    one.typical += word == "better" ? ", the log worse" : ", the log better";
    return;
  }
  if (!opposes(one.log, one.verdict, better)) return;
  one.verdict = std::string(windows_and_log_disagree);
  one.why = why_they_disagree(evaluation, row, options.reference);
}

}  // namespace

std::vector<std::vector<WindowComparison>> compare_windows(const std::vector<TraceEvaluation>& evaluations,
                                                           const ReportOptions& options) {
  std::vector<std::vector<WindowComparison>> result;
  for (const TraceEvaluation& evaluation : evaluations) {
    result.emplace_back();
    for (std::size_t row = 0; row < evaluation.contestants.size(); ++row) {
      result.back().push_back(alone(evaluation, row, options));
    }
  }
  const auto for_each_compared = [&](auto visit) {
    for (std::size_t t = 0; t < result.size(); ++t) {
      for (std::size_t row = 0; row < result[t].size(); ++row) {
        if (row != options.reference) visit(result[t][row], evaluations[t], row);
      }
    }
  };
  PValues means(&WindowComparison::p_holm), ranks(&WindowComparison::ranks_holm);
  for_each_compared([&](WindowComparison& one, const TraceEvaluation&, std::size_t) {
    if (one.pair.interval) means.add(one, one.pair.interval->p);
    if (one.ranks) ranks.add(one, one.ranks->test.p);
  });
  means.correct();
  ranks.correct();
  for_each_compared([&](WindowComparison& one, const TraceEvaluation& evaluation, std::size_t row) {
    judge(one, evaluation, row, options);
  });
  return result;
}

}  // namespace gpusched
