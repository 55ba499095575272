// SPDX-License-Identifier: Apache-2.0
/// Trials: the tasks of studies, which come beside the jobs as the results before them say.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "gpusched/data/job_table.hpp"
#include "gpusched/engine/effects/effect_list.hpp"
#include "gpusched/engine/job_state.hpp"
#include "gpusched/trials/study_model.hpp"

namespace gpusched {

/// A trial reached the end of a rung.
struct StudyResult {
  Time time{};              ///< when
  std::uint32_t trial = 0;  ///< of the study
  std::uint32_t rung = 0;   ///< that it finished
  double loss = 0;          ///< of the trial then
  detail::WideInt gpu = 0;  ///< GPU time that the study had held by then, in microseconds x thousandths of a GPU
};

namespace detail {

/// An effect: a task of a study is a job of the table that is held back until the search asks for it, on behalf of a
/// worker that is free. Then it joins its queue as the latest and is placed by the policy like any job. When it ends,
/// the search is told the loss of its trial, and asked again. Where a trial keeps its worker, its task is all of its
/// training, and the search says at each rung whether it ends there. What waits and never ran is asked for again when
/// results came, where a study asks late: others may take its place in the study, at the end of the queue.
class Trials {
 public:
  static constexpr bool holds_jobs_back = true;

  /// No studies.
  Trials() = default;
  explicit Trials(const EffectWorld& world) {
    if (world.inputs.studies == nullptr || world.inputs.studies->is_empty()) return;
    model_ = world.inputs.studies;
    GPUSCHED_ASSERT(model_->end_row() == world.jobs.in_front(), "studies and rows of the table differ");
    const Time origin = world.jobs.submit(JobId{0});
    first_row_ = model_->studies.front().first_row;
    rows_.resize(model_->end_row() - first_row_);
    for (Row& row : rows_) row.asked = origin;
    for (std::uint32_t i = 0; i < model_->studies.size(); ++i) {
      const StudySpec& study = model_->studies[i];
      runs_.push_back({.search = study.search, .begin = origin + study.begin});
      for (std::uint32_t k = 0; k < study.tasks.size(); ++k) rows_[study.first_row - first_row_ + k].study = i;
    }
  }

  /// True when there are studies.
  [[nodiscard]] bool active() const { return model_ != nullptr; }
  /// Tasks that were submitted and are not asked for.
  [[nodiscard]] std::uint32_t out_of_queues() const { return held_back_; }
  /// Preconditions of these: active(). \{
  [[nodiscard]] bool is_trial(JobId job) const {
    return index(job) >= first_row_ && index(job) - first_row_ < rows_.size();
  }
  /// When a task was asked for last; before that, the first submission.
  [[nodiscard]] Time asked(JobId job) const { return row(job).asked; }
  [[nodiscard]] const StudyModel& model() const { return *model_; }
  /// When a study began, and when its last task ended; Time::max(): not yet.
  [[nodiscard]] Time begin(std::uint32_t study) const { return runs_[study].begin; }
  [[nodiscard]] Time closed(std::uint32_t study) const { return runs_[study].closed; }
  /// What the search of a study was told, in that order.
  [[nodiscard]] const std::vector<StudyResult>& results(std::uint32_t study) const { return runs_[study].results; }
  /// Tasks of a study that left their queue before they ran because later results spoke against them.
  [[nodiscard]] std::uint32_t revised(std::uint32_t study) const { return runs_[study].revised; }
  /// \}

  [[nodiscard]] Time next_time() const {
    Time next = Time::max();
    for (const Run& run : runs_) {
      if (!run.begun) next = std::min(next, run.begin);
    }
    return next;
  }

  template <class Kernel>
  void happen(Kernel& kernel) {
    for (std::uint32_t i = 0; i < runs_.size(); ++i) {
      if (runs_[i].begun || runs_[i].begin != kernel.state.now) continue;
      runs_[i].begun = true;
      ask(i);
    }
  }

  template <class Kernel>
  bool holds_back(Kernel&, JobId job) {
    if (!is_trial(job)) return false;
    if (row(job).phase == Phase::asked) {
      row(job).phase = Phase::waiting;
      return false;
    }
    ++held_back_;
    return true;
  }

  template <class Kernel>
  void joins(Kernel& kernel, JobId job) {
    if (!is_trial(job)) return;
    row(job).asked = kernel.state.now;
    runs_[row(job).study].waiting.push_back(index(job));
  }

  template <class Kernel>
  Time begin(Kernel&, JobId job) {
    if (!is_trial(job) || row(job).phase == Phase::began) return {};
    row(job).phase = Phase::began;
    Run& run = runs_[row(job).study];
    std::erase(run.waiting, index(job));
    run.open.push_back(index(job));
    return {};
  }

  // Work left at the end of the rung that the trial is in.
  [[nodiscard]] Time next_milestone(JobId job) const {
    if (!is_trial(job) || !runs_[row(job).study].search.keeps_worker()) return {};
    const StudySpec& study = model_->studies[row(job).study];
    const TrialTask& task = task_of(job);
    return Time{study.units[task.trial].us * (study.rungs.most - study.rungs.units(row(job).rung))};
  }

  template <class Kernel>
  void pass_milestone(Kernel& kernel, JobId job) {
    kernel.settle_now(job);
    Row& own = row(job);
    if (tell(kernel, job, own.rung)) {
      ++own.rung;
      kernel.replan(job, {}, kernel.state[job].rate);
    } else {
      own.is_told = true;
      kernel.give_up(job);
    }
  }

  template <class Kernel>
  void ended(Kernel& kernel, JobId job) {
    if (!is_trial(job)) return;
    Row& own = row(job);
    Run& run = runs_[own.study];
    const Phase phase = std::exchange(own.phase, Phase::gone);
    if (phase == Phase::held_back && index(job) < kernel.state.arrived) --held_back_;
    if (phase != Phase::began) return;
    if (!own.is_told) {
      const StudySpec& study = model_->studies[own.study];
      const bool whole = run.search.keeps_worker();
      if (run.closed == Time::max()) tell(kernel, job, whole ? study.rungs.count() - 1 : task_of(job).rung);
    }
    std::erase(run.open, index(job));
    run.held += kernel.gpu_time(job).held();
    if (run.closed != Time::max()) return;
    --run.active;
    ask(own.study);
  }

  template <class Kernel>
  void react(Kernel& kernel) {
    for (std::uint32_t i = 0; i < runs_.size(); ++i) {
      Run& run = runs_[i];
      if (run.closed != Time::max()) continue;
      const bool has_news = std::exchange(run.is_told, false);
      if (!run.is_over && has_news && run.search.changes_its_mind() && model_->studies[i].asks_late) {
        ask_again(kernel, i);
      }
      if (run.is_over) close(kernel, i);
    }
    for (const std::uint32_t at : std::exchange(asked_, {})) {
      const JobId job{at};
      if (row(job).phase != Phase::asked || at >= kernel.state.arrived) continue;  // it is submitted at this instant
      row(job).phase = Phase::waiting;
      --held_back_;
      kernel.enter_queue(job);
    }
  }

  template <class State>
  [[nodiscard]] bool audit(const State&, JobId job) const {
    return !is_trial(job) || row(job).phase == Phase::began;
  }

 private:
  enum class Phase : std::uint8_t {
    held_back,   // nobody asks for it
    asked,       // it joins its queue at this instant
    waiting,     // in its queue, and never ran
    given_back,  // likewise, while the search is asked again
    began,       // it runs, or waits to go on
    gone,        // done for good
  };
  struct Row {
    std::uint32_t study = 0;
    std::uint32_t rung = 0;  // where a trial keeps its worker: the next of which the search is told
    Phase phase = Phase::held_back;
    bool is_told = false;  // the search ended it
    Time asked{};
  };
  struct Run {
    TrialSearch search;
    Time begin{};
    bool begun = false, is_told = false, is_over = false;
    std::uint32_t active = 0;                 // tasks asked for that have not ended
    std::vector<std::uint32_t> waiting = {};  // rows, in the order in which they joined
    std::vector<std::uint32_t> open = {};     // rows that began and have not ended
    std::vector<StudyResult> results = {};
    WideInt held = 0;  // GPU time of tasks that ended
    std::uint32_t revised = 0;
    Time closed = Time::max();
  };

  [[nodiscard]] const Row& row(JobId job) const { return rows_[index(job) - first_row_]; }
  [[nodiscard]] Row& row(JobId job) { return rows_[index(job) - first_row_]; }
  [[nodiscard]] const TrialTask& task_of(JobId job) const {
    const StudySpec& study = model_->studies[row(job).study];
    return study.tasks[index(job) - study.first_row];
  }
  [[nodiscard]] std::uint32_t row_of(std::uint32_t study, const TrialTask& task) const {
    return model_->studies[study].first_row + model_->studies[study].number_of(task);
  }

  // True: the trial goes on with its worker.
  template <class Kernel>
  bool tell(Kernel& kernel, JobId job, std::uint32_t rung) {
    Run& run = runs_[row(job).study];
    const StudySpec& study = model_->studies[row(job).study];
    WideInt held = run.held;
    for (const std::uint32_t at : run.open) held += kernel.gpu_time(JobId{at}).held();
    const std::uint32_t trial = task_of(job).trial;
    const double loss = study.loss(trial, rung);
    run.results.push_back({.time = kernel.state.now, .trial = trial, .rung = rung, .loss = loss, .gpu = held});
    run.is_told = true;
    if (study.stops_at_target && study.target && loss <= *study.target) run.is_over = true;
    const TrialTask done = run.search.keeps_worker() ? study.rungs.task(trial, rung) : task_of(job);
    TrialTask follow;
    return run.search.tell(done, loss, follow);
  }

  // Each free worker asks.
  void ask(std::uint32_t study) {
    Run& run = runs_[study];
    while (!run.is_over && run.active < model_->studies[study].workers) {
      const std::optional<TrialTask> task = run.search.next();
      if (!task) break;
      ++run.active;
      const std::uint32_t at = row_of(study, *task);
      Phase& phase = row(JobId{at}).phase;
      if (phase == Phase::given_back) {  // it is in its queue
        phase = Phase::waiting;
        continue;
      }
      phase = Phase::asked;
      asked_.push_back(at);
    }
    if (run.active == 0) run.is_over = true;
  }

  // The same again for those that waited before this instant.
  template <class Kernel>
  void ask_again(Kernel& kernel, std::uint32_t study) {
    Run& run = runs_[study];
    std::vector<std::uint32_t> before;
    for (const std::uint32_t at : run.waiting) {
      if (row(JobId{at}).asked < kernel.state.now) before.push_back(at);
    }
    if (before.empty()) return;
    for (const std::uint32_t at : before) {
      run.search.give_back(task_of(JobId{at}));
      row(JobId{at}).phase = Phase::given_back;
      --run.active;
    }
    ask(study);
    for (const std::uint32_t at : before) {
      if (row(JobId{at}).phase != Phase::given_back) continue;
      ++run.revised;
      hold_back(kernel, JobId{at});
    }
  }

  template <class Kernel>
  void hold_back(Kernel& kernel, JobId job) {
    kernel.take_back(job);
    ++held_back_;
    row(job).phase = Phase::held_back;
    std::erase(runs_[row(job).study].waiting, index(job));
  }

  // Nothing is left to do, or what was found is enough.
  template <class Kernel>
  void close(Kernel& kernel, std::uint32_t study) {
    Run& run = runs_[study];
    run.closed = kernel.state.now;
    const StudySpec& spec = model_->studies[study];
    for (std::uint32_t at = spec.first_row; at < spec.first_row + spec.tasks.size(); ++at) {
      const JobId job{at};
      const Phase phase = row(job).phase;
      if (phase == Phase::gone) continue;
      if (phase == Phase::waiting || phase == Phase::began) {
        kernel.give_up(job);
      } else {
        row(job).phase = Phase::held_back;
        kernel.retire(job);
      }
    }
    run.waiting.clear();
  }

  const StudyModel* model_ = nullptr;
  std::uint32_t first_row_ = 0;
  std::vector<Run> runs_;             // by study
  std::vector<Row> rows_;             // by row of the table, from first_row_ on
  std::vector<std::uint32_t> asked_;  // rows that join their queues at this instant, in that order
  std::uint32_t held_back_ = 0;
};

}  // namespace detail
}  // namespace gpusched
