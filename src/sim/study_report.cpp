// SPDX-License-Identifier: Apache-2.0
#include "src/sim/study_report.hpp"

#include <algorithm>

#include "src/base/csv_text.hpp"
#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/text_table.hpp"
#include "src/sim/optional_text.hpp"
#include "src/sim/rated_run.hpp"
#include "src/sim/replay.hpp"

namespace gpusched {
namespace {

std::string rungs_text(const std::vector<std::uint32_t>& by_rung) {
  std::string text;
  for (const std::uint32_t trials : by_rung) text += (text.empty() ? "" : "/") + std::to_string(trials);
  return text;
}

std::string target_text(const StudyFigures& study) {
  if (!study.met) return "-";
  return study.target ? formatted("%.0f", study.target->at_s) : "missed";
}

Json best_json(const std::optional<BestLoss>& best) {
  if (!best) return nullptr;
  return {{"loss", best->loss}, {"trial", best->trial}, {"at_s", best->at_s}, {"gpu_hours", best->gpu_hours}};
}

// A figure of both cells of a best loss, or none.
void append_best(std::string& text, const std::optional<BestLoss>& best) {
  if (!best) {
    text += ",,,";
    return;
  }
  text += ',' + exact_number(best->loss) + ',' + exact_number(best->at_s) + ',' + formatted("%.6f", best->gpu_hours);
}

}  // namespace

std::string studies_table(const std::vector<PolicyRun>& runs, const TextStyle& style) {
  TextTable table({"policy", "study", "trials", "by rung", "span s", "wait s", "best", "found s", "GPU-h then",
                   "target s", "all GPU-h"},
                  2);
  for (const PolicyRun& run : runs) {
    for (const StudyFigures& study : run.studies) {
      const auto best = [&](const char* form, double BestLoss::*figure) {
        return study.best ? formatted(form, (*study.best).*figure) : std::string("-");
      };
      table.add({run.policy, study.name, human_count(study.trials), rungs_text(study.by_rung),
                 formatted("%.0f", study.span_s), formatted("%.1f", study.mean_wait_s), best("%.4g", &BestLoss::loss),
                 best("%.0f", &BestLoss::at_s), best("%.1f", &BestLoss::gpu_hours), target_text(study),
                 formatted("%.1f", study.gpu_hours)});
    }
  }
  table.set_important({4, 9, 7, 10, 5});
  if (runs.front().studies.size() == 1) {  // of several studies, the figures are of different things
    const auto rate = [&](std::size_t column, auto figure) {
      table.rate(column, Best::least, runs,
                 [&](const PolicyRun& run) { return rated(run, std::optional(figure(run.studies.front()))); });
    };
    rate(4, [](const StudyFigures& of) { return of.span_s; });
    rate(5, [](const StudyFigures& of) { return of.mean_wait_s; });
    rate(10, [](const StudyFigures& of) { return of.gpu_hours; });
  }
  return "\n" + table.text(style) +
         "by rung: trials that finished it; span, found, target: seconds from the study's begin; wait: of a task for "
         "its GPUs\n";
}

Json studies_json(const std::vector<StudyFigures>& studies, const StudyModel& model) {
  Json all = Json::object();
  for (std::size_t i = 0; i < studies.size(); ++i) {
    const StudyFigures& study = studies[i];
    Json after = Json::array();
    for (std::size_t k = 0; k < study.after_gpu_hours.size(); ++k) {
      after.push_back(
          {{"gpu_hours", model.studies[i].report_gpu_hours[k]}, {"loss", number_json(study.after_gpu_hours[k])}});
    }
    all[study.name] = {{"trials", study.trials},
                       {"by_rung", study.by_rung},
                       {"span_s", study.span_s},
                       {"first_full_s", number_json(study.first_full_s)},
                       {"gpu_hours", study.gpu_hours},
                       {"mean_wait_s", study.mean_wait_s},
                       {"revised", study.revised},
                       {"best", best_json(study.best)},
                       {"target_met", study.met ? Json(*study.met) : Json(nullptr)},
                       {"target", best_json(study.target)},
                       {"best_after", std::move(after)}};
  }
  return all;
}

std::string studies_csv(const std::vector<StudyFigures>& studies, const StudyModel& model) {
  std::string text =
      "study,trials,by_rung,span_s,first_full_s,gpu_hours,mean_wait_s,revised,best_loss,best_at_s,best_gpu_hours,"
      "target_met,target_loss,target_at_s,target_gpu_hours,best_after\n";
  for (std::size_t i = 0; i < studies.size(); ++i) {
    const StudyFigures& study = studies[i];
    append_csv_field(text, study.name);
    text += ',' + std::to_string(study.trials) + ',' + rungs_text(study.by_rung) + ',' + exact_number(study.span_s) +
            ',' + (study.first_full_s ? exact_number(*study.first_full_s) : "") + ',' +
            formatted("%.6f", study.gpu_hours) + ',' + formatted("%.6f", study.mean_wait_s) + ',' +
            std::to_string(study.revised);
    append_best(text, study.best);
    text += study.met ? (*study.met ? ",1" : ",0") : ",";
    append_best(text, study.target);
    text += ',';
    for (std::size_t k = 0; k < study.after_gpu_hours.size(); ++k) {
      if (k > 0) text += ' ';
      text += exact_number(model.studies[i].report_gpu_hours[k]) + ':' +
              (study.after_gpu_hours[k] ? exact_number(*study.after_gpu_hours[k]) : "-");
    }
    text += '\n';
  }
  return text;
}

std::string trials_csv(const Engine& engine) {
  std::string text = "study,time_s,trial,rung,units,loss,best_loss,gpu_hours\n";
  const StudyModel& model = engine.studies().model();
  for (std::uint32_t i = 0; i < model.studies.size(); ++i) {
    const StudySpec& study = model.studies[i];
    double best = 0;
    bool first = true;
    for (const StudyResult& result : engine.studies().results(i)) {
      best = first ? result.loss : std::min(best, result.loss);
      first = false;
      append_csv_field(text, study.name);
      append_seconds(text += ',', result.time);
      append_integer(text += ',', result.trial);
      append_integer(text += ',', result.rung);
      append_integer(text += ',', study.rungs.units(result.rung));
      text += ',' + exact_number(result.loss) + ',' + exact_number(best) + ',' +
              formatted("%.6f", static_cast<double>(result.gpu) / detail::milli_us_of_gpu_hour) + '\n';
    }
  }
  return text;
}

std::string tasks_csv(const Engine& engine) {
  std::string text = "study,trial,rung,asked_s,start_s,end_s,gpu_hours\n";
  const StudyModel& model = engine.studies().model();
  for (const StudySpec& study : model.studies) {
    for (std::uint32_t k = 0; k < study.tasks.size(); ++k) {
      const JobId job{study.first_row + k};
      if (engine.first_start(job) == Time::max()) continue;
      append_csv_field(text, study.name);
      append_integer(text += ',', study.tasks[k].trial);
      text += ',';
      if (!study.search.keeps_worker()) append_integer(text, study.tasks[k].rung);
      append_seconds(text += ',', engine.submit(job));
      append_seconds(text += ',', engine.first_start(job));
      append_seconds(text += ',', engine.end(job));
      text += ',' + formatted("%.6f", static_cast<double>(engine.gpu_time(job).held()) / detail::milli_us_of_gpu_hour) +
              '\n';
    }
  }
  return text;
}

Result<void> write_studies(OutputFolder& folder, const std::string& place, const StudyModel& model,
                           const PolicyRun& run) {
  const std::string table = place + "studies.csv", results = place + "trials.csv", tasks = place + "tasks.csv";
  if (run.studies.empty()) {
    for (const std::string& name : {table, results, tasks}) folder.leave_out(name);
    return {};
  }
  auto done = folder.write(table, studies_csv(run.studies, model));
  if (done) done = folder.write(results, trials_csv(*run.engine));
  return done ? folder.write(tasks, tasks_csv(*run.engine)) : done;
}

}  // namespace gpusched
