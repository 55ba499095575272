// SPDX-License-Identifier: Apache-2.0
/// AccountWindow: where GPU time went within the span of the measured jobs.
#pragma once

#include <cstdint>

#include "gpusched/data/measure_window.hpp"
#include "gpusched/engine/effects/effect_list.hpp"
#include "gpusched/engine/run_records.hpp"

namespace gpusched::detail {

/// An effect that changes nothing: it closes the account when the measured span begins and when it ends.
class AccountWindow {
 public:
  static constexpr bool keeps_accounts = true;

  /// All of the run.
  AccountWindow() = default;
  explicit AccountWindow(const EffectWorld& world) : window_(world.inputs.measured) {
    const std::uint32_t jobs = world.jobs.size();
    if (window_.whole(jobs) || window_.first >= window_.end(jobs)) return;
    left_ = window_.end(jobs) - window_.first;
    begin_ = world.jobs.submit(JobId{window_.first});
    is_active_ = true;
  }

  /// True when not all of the run is measured.
  [[nodiscard]] bool active() const { return is_active_; }
  /// Of all jobs, within the span. Precondition: active(), every measured job is done.
  [[nodiscard]] const GpuTime& gpu_time() const { return inside_; }

  [[nodiscard]] Time next_time() const { return begin_; }
  template <class Kernel>
  void happen(Kernel& kernel) {
    kernel.mark();
    kernel.tell_marked(true);
    begin_ = Time::max();
  }

  // What is measured is the run's own.
  void forget_future() { *this = AccountWindow{}; }

  template <class Kernel>
  void ended(Kernel& kernel, JobId job) {
    if (index(job) < window_.first || index(job) - window_.first >= window_.count) return;
    if (--left_ > 0) return;
    inside_ = kernel.since_mark();
    kernel.tell_marked(false);
  }

 private:
  MeasureWindow window_;
  bool is_active_ = false;
  std::uint32_t left_ = 0;    // measured jobs that are not done
  Time begin_ = Time::max();  // of the span, until then
  GpuTime inside_;
};

}  // namespace gpusched::detail
