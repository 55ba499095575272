// SPDX-License-Identifier: Apache-2.0
#include "src/world/study_reader.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "gpusched/core/rng.hpp"
#include "src/base/json_fields.hpp"
#include "src/world/request_arrivals.hpp"
#include "src/world/task_fields.hpp"
#include "src/world/trial_losses.hpp"
#include "traces/core/job_records.hpp"

namespace gpusched {
namespace {

constexpr double longest_study_s = 1e9;
constexpr std::uint32_t most_trials = 100'000, most_tasks = 1'000'000;

enum class SearchKind : std::uint8_t { promotion, stopping, hyperband, halving, random };
constexpr std::array<NamedValue<SearchKind>, 5> search_names{{{"asha-promotion", SearchKind::promotion},
                                                              {"asha-stopping", SearchKind::stopping},
                                                              {"hyperband", SearchKind::hyperband},
                                                              {"halving", SearchKind::halving},
                                                              {"random", SearchKind::random}}};
constexpr std::array<NamedValue<bool>, 2> asks_names{{{"late", true}, {"early", false}}};

// GCC 12 takes a variant for uninitialised when it is destroyed.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
TrialSearch search_of(SearchKind kind, const TrialRungs& rungs, std::uint32_t trials) {
  if (kind == SearchKind::promotion) return TrialSearch(AshaByPromotion(rungs, trials));
  if (kind == SearchKind::stopping) return TrialSearch(AshaByStopping(rungs, trials));
  if (kind == SearchKind::random) return TrialSearch(RandomTrials(rungs, trials));
  return TrialSearch(HyperbandSearch(rungs, kind == SearchKind::halving));
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

// What of a study stands in the file and not in StudySpec.
struct TaskRow : TaskFields {
  double requested = 0;  // how many times its run time; 0: none
};

struct StudiesOfFile {
  StudyModel model;
  std::vector<TaskRow> rows;  // by study
};

// How the search goes: its rungs, trials and workers.
struct SearchFields {
  SearchKind kind = SearchKind::promotion;
  TrialRungs rungs;
  std::uint32_t trials = 0, workers = 1;

  void read(JsonFields& fields) {
    fields.require("search");
    fields.read_word("search", kind, search_names);
    const bool chooses = kind != SearchKind::hyperband && kind != SearchKind::halving;
    if (chooses) fields.require("trials");
    if (!chooses && fields.has("trials")) fields.fail("trials", "expected none: its brackets say how many");
    fields.read("trials", trials, 1, most_trials);
    fields.require("workers");
    fields.read("workers", workers, 1, most_trials);
    fields.read("eta", rungs.eta, 2, 100);
    fields.read("least_units", rungs.least, 1, 1'000'000);
    fields.read("most_units", rungs.most, static_cast<double>(rungs.least), 1'000'000);
    if (fields.good() && rungs.units(rungs.count() - 1) != rungs.most) {
      fields.refuse("most_units", "least_units times a power of eta, which is " + std::to_string(rungs.eta));
    }
  }
};

void read_goal(JsonFields& fields, StudySpec& spec) {
  double target = 0;
  fields.read("target_loss", target, -1e15, 1e15);
  if (fields.has("target_loss")) spec.target = target;
  fields.read("stop_at_target", spec.stops_at_target);
  if (spec.stops_at_target && !spec.target) fields.fail("stop_at_target", "expected a target_loss with it");
  std::vector<double>& told = spec.report_gpu_hours;
  fields.read("report_gpu_hours", told, std::size_t{0});
  const bool rises = std::is_sorted(told.begin(), told.end()) && (told.empty() || told.front() >= 0);
  if (!rises) fields.refuse("report_gpu_hours", "GPU hours from 0, in ascending order");
}

void add_units(JsonFields& fields, const TrialLosses& losses, std::uint32_t trials, StudySpec& spec) {
  double unit_s = 0;
  fields.read_above_zero("unit_s", unit_s, longest_study_s);
  for (std::uint32_t trial = 0; trial < trials && fields.good(); ++trial) {
    const double own_s = losses.unit_s(trial).value_or(unit_s);
    if (own_s == 0) return fields.fail("unit_s", "expected seconds, as no table has a column unit_s");
    if (own_s * static_cast<double>(spec.rungs.most) > longest_study_s) {
      return fields.fail("most_units", "expected at most 1e9 s for a trial");
    }
    spec.units.push_back(std::max(from_seconds(own_s), Time{1}));
    for (std::uint32_t rung = 0; rung < spec.rungs.count(); ++rung) {
      spec.losses.push_back(losses.at(trial, spec.rungs.units(rung)));
    }
  }
}

Result<void> read_study(JsonFields& fields, const std::string& file, const Rng& rng, StudiesOfFile& found) {
  std::string name;
  fields.require("name");
  fields.read("name", name);
  if (fields.good() && name.empty()) fields.refuse("name", "a name");
  SearchFields search;
  search.read(fields);
  if (!fields.good()) return {};
  StudySpec spec{.name = std::move(name),
                 .first_row = found.model.end_row(),
                 .workers = search.workers,
                 .rungs = search.rungs,
                 .search = search_of(search.kind, search.rungs, search.trials)};
  double begin_s = 0;
  fields.read("begin_s", begin_s, 0, longest_study_s);
  spec.begin = from_seconds(begin_s);
  fields.read_word("asks", spec.asks_late, asks_names);
  read_goal(fields, spec);
  TaskRow row;
  fields.read_object("task", [&](JsonFields& own) { read_task_shape(own, row); });
  read_task_owner(fields, row);
  fields.read_above_zero("requested", row.requested, 1000);
  const auto losses = TrialLosses::read(fields, file, rng);
  if (!losses) return Unexpected{losses.error()};
  if (!fields.good()) return {};
  spec.tasks = spec.search.tasks();
  const std::uint32_t trials = spec.tasks.back().trial + 1;
  if (losses->trials() < trials) {
    fields.fail("loss/table",
                "expected losses of " + std::to_string(trials) + " trials, not of " + std::to_string(losses->trials()));
    return {};
  }
  if (found.model.end_row() + spec.tasks.size() > most_tasks) fields.refuse("trials", "at most a million tasks in all");
  add_units(fields, *losses, trials, spec);
  found.model.studies.push_back(std::move(spec));
  found.rows.push_back(std::move(row));
  return {};
}

Result<StudiesOfFile> parse_studies(std::string_view text, const std::string& file, std::uint64_t seed) {
  const auto json = parse_json_strictly(text, file);
  if (!json) return Unexpected{json.error()};
  JsonFields fields(*json, file);
  StudiesOfFile found;
  std::set<std::string> names;
  Result<void> done;
  fields.require("studies");
  fields.read_objects("studies", [&](JsonFields& own, std::size_t number) {
    if (done) done = read_study(own, file, Rng(seed).split("studies").split(number), found);
    if (!done || !own.good()) return;
    if (!names.insert(found.model.studies.back().name).second) own.refuse("name", "a name that no other study has");
  });
  if (!done) return Unexpected{done.error()};
  if (fields.good() && found.model.is_empty()) fields.refuse("studies", "at least one study");
  if (auto finished = fields.finish(); !finished) return Unexpected{finished.error()};
  return found;
}

void add_tasks(const StudySpec& study, const TaskRow& row, Time submit, JobTableBuilder& builder) {
  for (const TrialTask& task : study.tasks) {
    std::string id = study.name + ":" + std::to_string(task.trial);
    if (!study.search.keeps_worker()) id += ":" + std::to_string(task.rung);
    const Time work = study.work(task);
    const double asked_s = to_seconds(work) * row.requested;
    builder.add({.id = id,
                 .submit = submit,
                 .work = work,
                 .estimate = row.requested == 0 ? Time::max() : from_seconds(asked_s),
                 .shape = row.shape,
                 .user = row.user,
                 .vc = row.vc,
                 .name = study.name,
                 .gpu_spec = row.gpu_type,
                 .family = row.family,
                 .priority = row.priority});
  }
}

// The table with its tasks behind the replicas.
Result<JobTable> with_tasks(const JobTable& jobs, const StudiesOfFile& studies) {
  JobTableBuilder builder;
  builder.reserve(jobs.size() + studies.model.end_row());
  builder.keep_clock_of(jobs);
  TableRecord record_of(jobs);
  const std::uint32_t replicas = jobs.replicas();
  for (std::uint32_t i = 0; i < replicas; ++i) builder.add(record_of(JobId{i}));
  if (replicas > 0) builder.end_replicas();
  const Time submit = jobs.size() == 0 ? Time{} : jobs.submit(JobId{0});
  for (std::size_t i = 0; i < studies.rows.size(); ++i) {
    add_tasks(studies.model.studies[i], studies.rows[i], submit, builder);
  }
  builder.end_studies();
  for (std::uint32_t i = replicas; i < jobs.size(); ++i) builder.add(record_of(JobId{i}));
  return std::move(builder).build();
}

}  // namespace

Result<StudyModel> studies_from_json(std::string_view text, const std::string& file, JobTable& jobs,
                                     const Cluster& cluster, std::uint64_t seed) {
  auto studies = parse_studies(text, file, seed);
  if (!studies) return Unexpected{studies.error()};
  if (jobs.in_front() == jobs.replicas()) {
    auto table = with_tasks(jobs, *studies);
    if (!table) {
      Error error = table.error();
      error.file = file;
      return Unexpected{std::move(error)};
    }
    jobs = *std::move(table);
  }
  std::vector<StudySpec>& specs = studies->model.studies;
  for (StudySpec& study : specs) study.first_row += jobs.replicas();
  GPUSCHED_ASSERT(jobs.in_front() == studies->model.end_row(), "the table has the tasks of other studies");
  for (std::size_t i = 0; i < specs.size(); ++i) {
    auto room = check_task_room(JobId{specs[i].first_row}, studies->rows[i].vc, jobs, cluster,
                                "a task of '" + specs[i].name + "'", file, "/studies/" + std::to_string(i) + "/task");
    if (!room) return Unexpected{room.error()};
  }
  return std::move(studies->model);
}

Result<StudyModel> read_studies(const std::string& path, JobTable& jobs, const Cluster& cluster, std::uint64_t seed) {
  const auto text = read_text_file(path);
  if (!text) return Unexpected{text.error()};
  return studies_from_json(*text, path, jobs, cluster, seed);
}

std::vector<std::string> files_of_studies(const std::string& path) {
  std::vector<std::string> files;
  const auto text = read_text_file(path);
  if (!text) return files;
  const auto json = parse_json_strictly(*text, path);
  if (!json || !json->is_object() || !json->contains("studies") || !(*json)["studies"].is_array()) return files;
  for (const Json& study : (*json)["studies"]) {
    if (!study.is_object() || !study.contains("loss") || !study["loss"].is_object()) continue;
    const Json& loss = study["loss"];
    if (loss.contains("table") && loss["table"].is_string()) {
      files.push_back(path_from(path, loss["table"].get<std::string>()));
    }
  }
  return files;
}

}  // namespace gpusched
