// SPDX-License-Identifier: Apache-2.0
/// StudyFigures: what the studies of a finished run found, when, and for how many GPU-hours.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpusched/engine/engine.hpp"

namespace gpusched {

/// A loss that was better than all before it in its study.
struct BestLoss {
  double loss = 0;          ///< of a trial
  std::uint32_t trial = 0;  ///< which
  double at_s = 0;          ///< from the begin of the study
  double gpu_hours = 0;     ///< that the study had held by then
};

/// Of one study.
struct StudyFigures {
  std::string name;                         ///< of the study
  std::uint32_t trials = 0;                 ///< that began
  std::vector<std::uint32_t> by_rung = {};  ///< trials that finished each rung
  double span_s = 0;                        ///< from its begin to the end of its last task: the search's own wall clock
  double gpu_hours = 0;                     ///< that its tasks held
  double mean_wait_s = 0;                   ///< of a task that ran, from when it was asked for to its first start
  std::uint32_t revised = 0;                ///< tasks that left their queue because later results spoke against them
  std::optional<double> first_full_s = {};  ///< when a trial first finished the last rung, from the begin
  std::optional<BestLoss> best = {};        ///< nothing: no trial finished a rung
  std::optional<BestLoss> target = {};      ///< the first loss that is enough; nothing: none was, or none is stated
  std::optional<bool> met = {};             ///< some loss was enough; nothing: no target is stated
  /// Of StudySpec::report_gpu_hours, the best loss by then; nothing: no trial had finished a rung.
  std::vector<std::optional<double>> after_gpu_hours = {};
};

namespace detail {

constexpr double milli_us_of_gpu_hour = 3.6e9 * whole_gpu;

inline BestLoss best_loss_of(const StudyResult& result, Time begin) {
  return {.loss = result.loss,
          .trial = result.trial,
          .at_s = to_seconds(result.time - begin),
          .gpu_hours = static_cast<double>(result.gpu) / milli_us_of_gpu_hour};
}

inline void add_results(const std::vector<StudyResult>& results, const StudySpec& study, Time begin,
                        StudyFigures& figures) {
  figures.by_rung.assign(study.rungs.count(), 0);
  figures.after_gpu_hours.assign(study.report_gpu_hours.size(), std::nullopt);
  for (const StudyResult& result : results) {
    const BestLoss found = best_loss_of(result, begin);
    ++figures.by_rung[result.rung];
    if (!figures.first_full_s && result.rung + 1 == study.rungs.count()) figures.first_full_s = found.at_s;
    if (!figures.best || found.loss < figures.best->loss) figures.best = found;
    if (study.target && !figures.target && found.loss <= *study.target) figures.target = found;
    for (std::size_t i = 0; i < study.report_gpu_hours.size(); ++i) {
      if (found.gpu_hours <= study.report_gpu_hours[i]) figures.after_gpu_hours[i] = figures.best->loss;
    }
  }
  if (study.target) figures.met = figures.target.has_value();
}

}  // namespace detail

/// Of each study of a finished run; none where there are no studies. O(tasks + results).
inline std::vector<StudyFigures> study_figures(const Engine& engine) {
  std::vector<StudyFigures> all;
  if (!engine.has_studies()) return all;
  const StudyModel& model = engine.studies().model();
  for (std::uint32_t i = 0; i < model.studies.size(); ++i) {
    const StudySpec& study = model.studies[i];
    const Time begin = engine.studies().begin(i);
    StudyFigures figures;
    figures.name = study.name;
    figures.revised = engine.studies().revised(i);
    detail::add_results(engine.studies().results(i), study, begin, figures);
    detail::WideInt held = 0;
    double waits_s = 0;
    std::uint32_t ran = 0;
    std::vector<bool> began(study.units.size());
    for (std::uint32_t k = 0; k < study.tasks.size(); ++k) {
      const JobId job{study.first_row + k};
      if (engine.first_start(job) == Time::max()) continue;
      held += engine.gpu_time(job).held();
      waits_s += to_seconds(engine.first_start(job) - engine.submit(job));
      ++ran;
      began[study.tasks[k].trial] = true;
    }
    figures.trials = static_cast<std::uint32_t>(std::count(began.begin(), began.end(), true));
    figures.gpu_hours = static_cast<double>(held) / detail::milli_us_of_gpu_hour;
    figures.mean_wait_s = ran == 0 ? 0 : waits_s / ran;
    figures.span_s = to_seconds(engine.studies().closed(i) - begin);
    all.push_back(std::move(figures));
  }
  return all;
}

/// Over all studies of a finished run.
struct AllStudies {
  std::optional<double> best_loss = {};  ///< mean over the studies in which a trial finished a rung
  std::optional<double> span_s = {};     ///< mean
  std::optional<double> gpu_hours = {};  ///< sum
  /// Mean time to the target, from the begin; a study that never meets it counts with its whole span. Nothing: none
  /// states one.
  std::optional<double> target_s = {};
  std::optional<double> met = {};  ///< share of the studies with a target that meet it
};
/// O(tasks + results). Nothing where there are no studies.
inline AllStudies figures_of_all_studies(const Engine& engine) {
  AllStudies all;
  if (!engine.has_studies()) return all;
  double loss = 0, span_s = 0, gpu_hours = 0, target_s = 0, met = 0;
  std::uint32_t studies = 0, with_loss = 0, with_target = 0;
  for (const StudyFigures& study : study_figures(engine)) {
    ++studies;
    span_s += study.span_s;
    gpu_hours += study.gpu_hours;
    if (study.best) loss += study.best->loss, ++with_loss;
    if (!study.met) continue;
    ++with_target;
    met += *study.met ? 1 : 0;
    target_s += study.target ? study.target->at_s : study.span_s;
  }
  all.span_s = span_s / studies;
  all.gpu_hours = gpu_hours;
  if (with_loss > 0) all.best_loss = loss / with_loss;
  if (with_target > 0) all.target_s = target_s / with_target;
  if (with_target > 0) all.met = met / with_target;
  return all;
}

}  // namespace gpusched
