// SPDX-License-Identifier: Apache-2.0
/// JobState: where a job is in its life, and the commands that move it.
#pragma once

#include <compare>
#include <cstdint>

#include "gpusched/core/types.hpp"
#include "gpusched/data/rate.hpp"

namespace gpusched {

/// Where a job is in its life.
enum class JobPhase : std::uint8_t {
  future,   ///< not submitted yet, or waits for the end of others, or a limit holds it back
  pending,  ///< waits in its queue
  running,  ///< holds nodes
  done,     ///< finished
};

/// A job's place among all that ever waited: the order in which jobs might run first (they were submitted, or the last
/// of the jobs that they wait for ended), then that of their ids, which follows submission. It is the job's for ever:
/// one that is killed, preempted, retried or given another size comes back to it.
struct QueuePlace {
  std::uint32_t number = no_index;  ///< earlier ones are smaller; no_index: nobody's
  JobId job = no_job;               ///< whose
  /// The earlier place is the lesser.
  // NOLINTNEXTLINE(modernize-use-nullptr): as Shape's
  friend constexpr auto operator<=>(const QueuePlace&, const QueuePlace&) = default;
};

/// What somebody believes of a job that waits or runs: the work that is left of its present attempt.
struct Belief {
  JobId job = no_job;  ///< which
  Time left{};         ///< without what it has to load first; not negative
};

namespace detail {

/// Sums of microseconds times GPUs exceed 64 bits.
__extension__ using WideInt = __int128;

/// Who gave a job up before its work was done.
enum class Canceller : std::uint8_t { nobody, user, policy };

/// One job's changing part. One record per job instead of one array per field, because an event touches nearly
/// all of it.
struct JobState {
  Time remaining{};  ///< work left of the present attempt; as of `since` while the clock runs
  Time since{};      ///< start of the present run, or of the last re-plan
  Time first_start = Time::max();
  Time end = Time::max();
  Time ran{};                       ///< wall time running, overhead included; as of `since` while the clock runs
  std::uint32_t grants = no_index;  ///< head of the grant list
  std::uint32_t generation = 0;     ///< of the planned finish; a re-plan makes older plans stale
  std::uint32_t preemptions = 0;
  std::uint32_t previous = no_index, next = no_index;  ///< neighbours in the waiting queue or the running list
  RatePpm rate = reference_rate;
  std::uint16_t attempt = 0;
  JobPhase phase = JobPhase::future;
  bool must_restart = false;  ///< the next start loads the state that was kept
  /// The open decision preempted the job: until apply() ends its run, the time since `since` is not yet in `ran`.
  bool preempted_now = false;
  bool starting = false;     ///< the open decision started the job
  bool held = false;         ///< running, but told not to work
  bool stands_last = false;  ///< a decision preempted it, and put it at the end of its queue
  Canceller cancelled_by = Canceller::nobody;

  /// True while time passes for the job since `since`.
  [[nodiscard]] bool clock_runs() const { return phase == JobPhase::running || preempted_now; }
  /// By whomever.
  [[nodiscard]] bool is_cancelled() const { return cancelled_by != Canceller::nobody; }
};

/// A doubly linked list through JobState::previous and next.
struct JobList {
  std::uint32_t first = no_index, last = no_index;
  std::uint32_t size = 0;
};

/// A running job whose size its user changed at this instant. It gave its capacity back and waits; if the decision
/// starts it on some of its nodes with no more GPUs, its run goes on.
struct Resized {
  JobId job = no_job;
  std::uint32_t grants = no_index;  ///< what it held
  std::uint32_t tasks = 0;          ///< how many
};

/// Why a run ends.
enum class EndOfRun : std::uint8_t {
  finished,   ///< its attempt is done
  preempted,  ///< by a decision: it is to go on later
  resized,    ///< its user gave the job another size: as preempted
  killed,     ///< a node went down
  cancelled,  ///< its user gave the job up
  departed,   ///< its host sends it elsewhere: as preempted
};

/// A command of a Decision; `time` is the instant of a wake, the change of an adjust, or microwatts.
enum class CommandKind : std::uint8_t { start, preempt, cancel, wake, adjust, move, hold, resume, limit_power };
struct Command {
  CommandKind kind = CommandKind::wake;
  bool withdrawn = false;  ///< start: a later preempt of the same decision took it back; preempt: that one
  JobId job = no_job;
  std::uint32_t grants = no_index;  ///< preempt: what the job held
  Time time{};
};

}  // namespace detail
}  // namespace gpusched
