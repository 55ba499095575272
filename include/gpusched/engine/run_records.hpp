// SPDX-License-Identifier: Apache-2.0
/// What is kept of the runs of one job: where its time went, and what of its work is saved.
#pragma once

#include <cstdint>

#include "gpusched/core/types.hpp"
#include "gpusched/engine/job_state.hpp"

namespace gpusched {

/// Where the time that a job held GPUs went. Each part in microseconds times thousandths of a GPU.
struct GpuTime {
  detail::WideInt useful = 0;    ///< it advanced the job
  detail::WideInt overhead = 0;  ///< loading and saving state, and waiting for what is moved meanwhile
  detail::WideInt lost = 0;      ///< work that no checkpoint kept, and standing still

  /// All of it.
  [[nodiscard]] detail::WideInt held() const { return useful + overhead + lost; }
  /// Part by part.
  /// \{
  GpuTime& operator+=(const GpuTime& other) {
    useful += other.useful;
    overhead += other.overhead;
    lost += other.lost;
    return *this;
  }
  friend bool operator==(const GpuTime&, const GpuTime&) = default;
  /// \}
};

namespace detail {

/// Time of a run, and what it held then.
struct HeldTime {
  Time wall{};
  WideInt gpu = 0;  ///< microseconds times thousandths of a GPU

  HeldTime& operator+=(const HeldTime& other) {
    wall += other.wall;
    gpu += other.gpu;
    return *this;
  }
};

/// The account of one job's time. Every microsecond of a run is booked when it has passed, at the rate at which it
/// passed. What a run worked since its last checkpoint is at risk: useful once it is saved or the run ends well, lost
/// if a failure ends it.
struct JobAccount {
  GpuTime booked;     ///< of runs that are over
  Time overhead{};    ///< wall time of those
  Time lost{};        ///< likewise
  Time ran_before{};  ///< wall time of those, whatever became of it
  // Of the present run.
  WideInt useful_now = 0;
  HeldTime at_risk, overhead_now, lost_now;
  WideInt at_risk_before = 0;  ///< GPU time of at_risk that passed before the window of the account (RunAccount::mark)
  Time extra_left{};           ///< work that a policy added (Decision::adjust_work) and that is still to do: overhead
  Time segment_span{}, segment_work{};  ///< what is booked of the time and the work since JobState::since
};

/// What of a job's present run is saved, and what it does besides its work: it loads, and writes checkpoints. In work
/// at the run's rate, if nothing else is said.
struct SavedState {
  RatePpm rate = 0;               ///< at which what takes time is counted as work
  Time loading{};                 ///< that comes first, or after a move
  Time loading_left{};            ///< of it
  Time after_wait = Time::max();  ///< work left when its nodes are ready; max(): they were
  Time interval{};                ///< work between checkpoints; 0: none
  bool moves = false;             ///< these are transfers, during which the run stands still
  Time saving{};                  ///< what a checkpoint takes
  Time passed{};                  ///< work that passed before it was settled last
  Time save_at{};                 ///< work left when its next checkpoint begins to move; 0: none
  Time kept_left{};               ///< work that was left when the last of these began
  std::uint32_t saves = 0;        ///< checkpoints until its end
  std::uint32_t kills = 0;        ///< of all runs of the job, by nodes that went down
  bool was_killed = false;        ///< the next start follows a failure

  /// What so many checkpoints take.
  [[nodiscard]] Time all_saving(std::int64_t count) const { return {mul_div(count, saving.us, 1)}; }
};

}  // namespace detail
}  // namespace gpusched
