// SPDX-License-Identifier: Apache-2.0
/// Synthetic traces: a model of who submits what and when, and the generator that draws a JobTable from it.
///
/// A model fitted to a trace follows its calendar; the others have users who work in sessions: a session starts
/// (Poisson, with a weekly rhythm), picks a virtual cluster, a user and a GPU count, and submits jobs one after
/// another. Run times follow a quantile table that depends on the GPU count; within a session they are correlated.
/// docs/generator.md gives the formulas, the sources and how close the result is.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/data/job_table.hpp"

namespace gpusched {

/// A distribution given by its quantile function, linear between points in log(1 + value).
struct QuantileTable {
  std::vector<double> probability;  ///< ascending from 0 to 1
  std::vector<double> value;        ///< same length, non-decreasing, >= 0

  friend bool operator==(const QuantileTable&, const QuantileTable&) = default;
};

/// What depends on the number of GPUs that a job asks for.
struct JobClass {
  double max_gpus = 0;                  ///< jobs of at most this many GPUs, and of more than the class before
  QuantileTable run_s;                  ///< run time on the reference device, all attempts together, seconds
  QuantileTable session_jobs;           ///< jobs in a session, rounded to at least 1
  std::vector<double> attempt_weights;  ///< weight of 1, 2, ... attempts; never empty
  std::array<double, 4> status_weights{1, 0, 0, 0};  ///< by JobStatus: unknown, passed, failed, killed

  friend bool operator==(const JobClass&, const JobClass&) = default;
};

/// A virtual cluster: its share of the jobs and how wide they are.
struct VcMix {
  std::string name;                 ///< empty: unknown
  double weight = 0;                ///< share of the jobs, up to a common factor
  std::vector<double> gpu_weights;  ///< share of each of SyntheticModel::gpu_counts, up to a common factor

  friend bool operator==(const VcMix&, const VcMix&) = default;
};

/// Users of a virtual cluster are picked with probability proportional to rank^-zipf_exponent. Each virtual cluster
/// has users of its own, as many as its share of the jobs (at least one).
struct UserMix {
  std::uint32_t count = 0;  ///< 0: jobs carry no user
  double zipf_exponent = 1;

  friend bool operator==(const UserMix&, const UserMix&) = default;
};

/// The jobs of one GPU count that a fitted trace's users submitted in one period.
struct CalendarEntry {
  std::uint32_t period = 0;  ///< from 0
  double gpus = 0;           ///< one of SyntheticModel::gpu_counts
  std::uint32_t jobs = 0;    ///< >= 1
  double work_s = 0;         ///< their run times together
  QuantileTable run_s;       ///< seconds

  friend bool operator==(const CalendarEntry&, const CalendarEntry&) = default;
};

/// The course of a fitted trace: what was submitted when. Load over time, and with it how long jobs wait, is not to be
/// had from means over the week.
struct Calendar {
  double period_s = 0;                 ///< length of a period
  double span_s = 0;                   ///< from the first submission to the last
  std::vector<CalendarEntry> entries;  ///< by period, then GPUs; empty: sessions with a weekly rhythm instead

  /// Number of periods, the last of which may be short.
  [[nodiscard]] double periods() const {
    const auto whole = static_cast<double>(static_cast<std::int64_t>(span_s / period_s));
    return whole * period_s < span_s ? whole + 1 : (whole > 0 ? whole : 1);
  }

  friend bool operator==(const Calendar&, const Calendar&) = default;
};

/// How the GPUs of some jobs of a GPU count stand: in so many tasks, each with as many of them (or the same share of
/// one).
struct TaskSplit {
  double gpus = 0;  ///< one of SyntheticModel::gpu_counts
  std::uint32_t tasks = 1;
  double weight = 0;  ///< share of that GPU count's jobs, up to a common factor

  friend bool operator==(const TaskSplit&, const TaskSplit&) = default;
};

/// How long the jobs of a GPU count ask to run.
struct RequestMix {
  double gpus = 0;       ///< one of SyntheticModel::gpu_counts
  double share = 1;      ///< of its jobs ask for a time at all
  QuantileTable ratio;   ///< requested time over run time
  double longest_s = 0;  ///< no job asks for more, unless it runs longer

  friend bool operator==(const RequestMix&, const RequestMix&) = default;
};

/// Everything that a synthetic trace is drawn from. JSON form: read_model() and write_model().
struct SyntheticModel {
  std::string name;
  std::string about;                           ///< one paragraph for people
  std::map<std::string, std::string> sources;  ///< where each parameter comes from, by key
  std::string default_cluster;                 ///< "NODESxGPUS" that default_load refers to
  std::uint32_t default_jobs = 10'000;
  std::optional<double> default_load = std::nullopt;  ///< none: keep jobs_per_hour
  double jobs_per_hour = 0;                           ///< mean over the week
  std::array<double, 24> hour_weights{};              ///< session starts by hour of day, up to a common factor
  std::array<double, 7> day_weights{};                ///< the same by day, Monday first
  QuantileTable session_gap_s;                        ///< between the submissions of a session, seconds
  double gap_correlation = 0;  ///< of the normal scores of a session's gaps: some sessions are fast, [0, 1]
  double run_correlation = 0;  ///< of the normal scores of run times within a session, [0, 1]
  UserMix users;
  std::vector<double> gpu_counts;      ///< ascending; below 1 a share of one GPU, else whole
  std::vector<TaskSplit> task_splits;  ///< ascending by GPUs, then tasks; GPU counts without one: tasks of one GPU
  std::vector<RequestMix> requests;    ///< ascending by GPUs; GPU counts without one: no requested times
  std::vector<VcMix> vcs;
  std::vector<JobClass> classes;  ///< ascending max_gpus; the last covers every GPU count
  Calendar calendar;  ///< of a model fitted to a trace: replaces the weekly rhythm and the run times of classes

  friend bool operator==(const SyntheticModel&, const SyntheticModel&) = default;
};

/// What to draw.
struct SyntheticOptions {
  std::uint32_t jobs = 10'000;  ///< exactly so many; >= 1
  std::optional<double> offered_load =
      std::nullopt;  ///< GPU-seconds asked over GPU-seconds there, > 0; needs cluster_gpus, jobs >= 2
  std::int64_t cluster_gpus = 0;
  std::uint64_t seed = 0;
};

/// A gang of so many GPUs, anywhere, or a share of one. Precondition: below 1, or whole.
Shape gang_of_gpus(double gpus);

/// So many GPUs in `tasks` tasks, or no shape: a task has a share of one GPU, or whole ones.
std::optional<Shape> gang_of_tasks(double gpus, std::uint32_t tasks);

/// GPU-seconds that the jobs ask for, divided by the GPU-seconds that `gpus` GPUs have between the first and the last
/// submission. 0 when that span is empty. Precondition: gpus > 0.
double offered_load(const JobTable& jobs, std::int64_t gpus);

/// Success, or the first option that no model can draw, with its name.
Result<void> check_options(const SyntheticOptions& options);

/// Draws a trace; time 0 is a Monday, 00:00, or where the calendar begins, which begins again when it ends. With an
/// offered load, the rate of sessions is scaled until the drawn trace has that load within 1 %; where sessions are too
/// long for that (few jobs, many GPUs), all times are scaled instead. Errors: options out of range, a trace of more
/// than 1e8 hours, jobs that are all submitted at one instant while a load is asked, or a model that check_model()
/// refuses.
Result<JobTable> generate_synthetic(const SyntheticModel& model, const SyntheticOptions& options);

/// The model's own defaults: jobs, load and cluster size as its file recommends.
SyntheticOptions default_options(const SyntheticModel& model);

/// GPUs of a "NODESxGPUS" or "GPUS" cluster, or 0 when the text says neither.
std::int64_t gpus_of_size(std::string_view text);

/// Success, or the first thing wrong with the model, with its JSON path.
Result<void> check_model(const SyntheticModel& model);

/// Names of the models compiled in: helios, pai, philly.
std::vector<std::string> builtin_model_names();

/// A model compiled in; the error names the nearest one.
Result<SyntheticModel> builtin_model(std::string_view name);

/// Reads the JSON text of a model, strictly: unknown or missing keys and wrong types are errors with `file` and the
/// JSON path. The result has passed check_model().
Result<SyntheticModel> read_model(std::string_view json, const std::string& file);

/// The JSON text of a model; read_model() gives back an equal one.
std::string write_model(const SyntheticModel& model);

}  // namespace gpusched
