// SPDX-License-Identifier: Apache-2.0
/// Small worlds with studies.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gpusched/engine/engine.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {

/// A study whose trials take a second a unit and have the losses loss(trial, units).
template <class Loss>
StudySpec study_of(TrialSearch::Rule rule, const TrialRungs& rungs, std::uint32_t workers, Loss loss) {
  StudySpec study{.name = "s", .workers = workers, .rungs = rungs, .search = TrialSearch(std::move(rule))};
  study.tasks = study.search.tasks();
  const std::uint32_t trials = study.tasks.back().trial + 1;
  study.units.assign(trials, whole_seconds(1));
  for (std::uint32_t trial = 0; trial < trials; ++trial) {
    for (std::uint32_t rung = 0; rung < rungs.count(); ++rung) study.losses.push_back(loss(trial, rungs.units(rung)));
  }
  return study;
}

/// The studies' tasks, of as many GPUs as `gpus` says of each study, then these jobs; numbers the studies' rows.
inline JobTable with_studies(StudyModel& model, const std::vector<Row>& jobs,
                             const std::vector<std::uint32_t>& gpus = {}, std::string_view family = {}) {
  JobTableBuilder builder;
  const Time submit = jobs.empty() ? Time{} : whole_seconds(jobs.front().submit);
  std::uint32_t rows = 0;
  for (std::size_t i = 0; i < model.studies.size(); ++i) {
    StudySpec& study = model.studies[i];
    study.first_row = rows;
    rows += static_cast<std::uint32_t>(study.tasks.size());
    for (const TrialTask& task : study.tasks) {
      const std::string id = std::to_string(i) + ":" + std::to_string(task.trial) + ":" + std::to_string(task.rung);
      builder.add({.id = id,
                   .submit = submit,
                   .work = study.work(task),
                   .shape = {.tasks = gpus.empty() ? 1 : gpus[i], .gpu_milli_per_task = whole_gpu},
                   .family = family});
    }
  }
  builder.end_studies();
  int number = 0;
  for (const Row& row : jobs) {
    const std::string id = std::to_string(number++);
    builder.add({.id = id,
                 .submit = whole_seconds(row.submit),
                 .work = whole_seconds(row.work),
                 .estimate = row.estimate < 0 ? Time::max() : whole_seconds(row.estimate),
                 .shape = row.shape == Shape{} ? Shape{.tasks = row.gpus, .gpu_milli_per_task = whole_gpu} : row.shape,
                 .gpu_spec = row.gpu_spec,
                 .family = row.family});
  }
  return *std::move(builder).build();
}

}  // namespace gpusched::test
