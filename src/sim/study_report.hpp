// SPDX-License-Identifier: Apache-2.0
/// What a replay says of studies: a table, JSON, studies.csv and trials.csv.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/watch/study_figures.hpp"
#include "src/base/output_folder.hpp"
#include "src/base/text_style.hpp"

namespace gpusched {

struct PolicyRun;

/// A line for each policy and study. Precondition: runs with studies.
std::string studies_table(const std::vector<PolicyRun>& runs, const TextStyle& style = {});

/// The studies of a run, by name.
nlohmann::ordered_json studies_json(const std::vector<StudyFigures>& studies, const StudyModel& model);

/// studies.csv: a row for each study.
std::string studies_csv(const std::vector<StudyFigures>& studies, const StudyModel& model);

/// trials.csv: a row for each result, by study and time. Precondition: engine.has_studies().
std::string trials_csv(const Engine& engine);

/// tasks.csv: a row for each task that ran. Precondition: engine.has_studies().
std::string tasks_csv(const Engine& engine);

/// The three files of a run, below `place`; without studies, those of an earlier run in the folder go.
Result<void> write_studies(OutputFolder& folder, const std::string& place, const StudyModel& model,
                           const PolicyRun& run);

}  // namespace gpusched
