// SPDX-License-Identifier: Apache-2.0
/// Sizes: how many GPUs the runs of each job hold, where that is not always what the job asks for.
#pragma once

#include <cstdint>
#include <vector>

#include "gpusched/data/elastic_model.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/engine/effects/effect_list.hpp"
#include "gpusched/engine/effects/limited_curves.hpp"
#include "gpusched/engine/job_state.hpp"

namespace gpusched::detail {

/// An effect: elastic jobs run with the tasks that their policy gives them, at the rate of their curve; and users
/// change what jobs ask for, so that what a job held is not what it asks for in the end. A curve ends at the largest
/// size that limits would let the job have if it were alone: no policy plans with sizes that it never gets.
class Sizes {
 public:
  static constexpr bool keeps_accounts = true;

  /// How large the runs of one job are and were.
  struct Size {
    Shape shape{};            ///< what the job holds by the commands so far, or held last
    MilliGpu milli = 0;       ///< GPUs of the present run, or of the last one
    MilliGpu released = 0;    ///< GPUs of the last run that ended
    std::uint32_t phase = 0;  ///< of its curve, in the present run
    Time phase_left{};        ///< of the present run: work left when its phase ends; 0: it is the last one
  };

  /// Every job holds what it asks for.
  Sizes() = default;
  explicit Sizes(const EffectWorld& world) {
    const bool is_elastic = world.inputs.elastic != nullptr && !world.inputs.elastic->is_empty();
    const bool is_resized = world.inputs.changes != nullptr && world.inputs.changes->resizes();
    if (is_elastic || is_resized) open(world.jobs, is_elastic ? world.inputs.elastic : nullptr);
    if (is_elastic && !world.cluster.limits.empty()) {
      limited_ = LimitedCurves(*model_, world.jobs, JobLimits(world.cluster.limits, world.jobs));
    }
  }

  /// False while every job holds what it asks for.
  [[nodiscard]] bool active() const { return !sizes_.empty(); }
  /// Precondition of these: active(). \{
  [[nodiscard]] Size& operator[](JobId job) { return sizes_[index(job)]; }
  [[nodiscard]] const Size& operator[](JobId job) const { return sizes_[index(job)]; }
  /// \}
  /// The job's curve; null: it is rigid.
  [[nodiscard]] const ElasticCurve* curve(const JobTable& jobs, JobId job) const {
    if (const ElasticCurve* const limited = limited_.of(job)) return limited;
    return model_ == nullptr ? nullptr : model_->curve(jobs, job);
  }

  // Before the costs of the start are added to the work left.
  template <class Kernel>
  GPUSCHED_RARE Time begin(Kernel& kernel, JobId job) {
    Size& size = sizes_[index(job)];
    size.milli = size.shape.gpu_milli();
    const ElasticCurve* const curve = this->curve(*kernel.state.jobs, job);
    if (curve == nullptr) return {};
    const JobState& state = kernel.state[job];
    const Time work = kernel.state.jobs->attempt_work(job, state.attempt);
    size.phase = curve->phase_at(state.remaining, work);
    size.phase_left = curve->left_after(size.phase, work);
    return {};
  }

  template <class Kernel>
  GPUSCHED_RARE void end(Kernel&, JobId job, EndOfRun) {
    sizes_[index(job)].phase_left = {};
    release(job);
  }
  // The phase of a run is seen, how long it lasts is believed.
  template <class Kernel>
  GPUSCHED_RARE void believed(Kernel& kernel, JobId job) {
    const ElasticCurve* const curve = this->curve(*kernel.state.jobs, job);
    if (curve == nullptr || !kernel.state[job].clock_runs()) return;
    Size& size = sizes_[index(job)];
    size.phase_left = curve->left_after(size.phase, kernel.state.jobs->work(job));
  }

  /// The job gave its GPUs back.
  void release(JobId job) { sizes_[index(job)].released = sizes_[index(job)].milli; }
  /// It holds those of its present shape.
  void take(JobId job) { sizes_[index(job)].milli = sizes_[index(job)].shape.gpu_milli(); }

  template <class State>
  [[nodiscard]] RatePpm factor(const State& state, JobId job) const {
    const ElasticCurve* const curve = this->curve(*state.jobs, job);
    const Size& size = sizes_[index(job)];
    return curve == nullptr ? reference_rate : curve->rate(size.shape.tasks, size.phase);
  }

  /// Work left when something of the job's run changes by itself; 0: nothing will.
  [[nodiscard]] Time next_milestone(JobId job) const { return sizes_[index(job)].phase_left; }
  // The present phase of the job's curve ends.
  template <class Kernel>
  GPUSCHED_RARE void pass_milestone(Kernel& kernel, JobId job) {
    kernel.settle_now(job);
    Size& size = sizes_[index(job)];
    const JobTable& jobs = *kernel.state.jobs;
    size.phase_left = curve(jobs, job)->left_after(++size.phase, jobs.attempt_work(job, kernel.state[job].attempt));
    if (!kernel.state.saved.empty()) kernel.adapt_costs(job);
    kernel.replan(job, {}, kernel.rate_of(job));
  }

 private:
  void open(const JobTable& jobs, const ElasticModel* model) {
    model_ = model;
    sizes_.resize(jobs.size());
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {
      Size& size = sizes_[i];
      size.shape = jobs.shape(JobId{i});
      size.milli = size.released = size.shape.gpu_milli();
    }
  }

  const ElasticModel* model_ = nullptr;  // borrowed; null = every job is rigid
  LimitedCurves limited_;                // in place of the model's
  std::vector<Size> sizes_;              // by job
};

}  // namespace gpusched::detail
