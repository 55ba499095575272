// SPDX-License-Identifier: Apache-2.0
/// The discretised queues of the Tiresias simulator (Gu et al., NSDI'19; github.com/SymbioticLab/Tiresias), in the two
/// forms that published results used: the simulator's own `dlas-gpu`, here `tiresias@code`, and its descendant in the
/// Muri artifact, `tiresias@muri` ("Tiresias-L"). Quirks that both share:
///  - only GPUs are counted, not nodes; jobs that do not fit are passed over;
///  - a queue is reordered, running jobs before pending ones, only after jobs were placed. At the event itself a job
///    that was demoted or admitted still stands behind the pending jobs of its queue, and may be preempted;
///  - a job is demoted by one queue at most per event; demotions are in order of admission.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "src/policies/published/event_overhead.hpp"
#include "src/policies/queues/waiting_by_size.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// Whose program TiresiasQueues follows.
enum class TiresiasQueuesForm : std::uint8_t {
  tiresias,  ///< the check for a demotion is due at now + floor((limit - executed) / GPUs) with executed in seconds,
             ///< not GPU-seconds, and so late on several GPUs; jobs can be promoted; no overhead
  muri,  ///< the check is due at now + ceil(limit / GPUs) - executed; overhead at every event, which counts as executed
};

/// `tiresias@code` and `tiresias@muri`. Of each queue the running jobs are a list, which changes at every event, and
/// the pending ones an order in which nothing moves: O(running jobs + log pending) an event, and with promotions O(log
/// pending) each. The muri form keeps account of the work left, which its overhead prolongs, and so asks for an
/// OracleView; its decisions do not depend on run times.
template <TiresiasQueuesForm form>
class TiresiasQueues {
  static constexpr bool is_muri = form == TiresiasQueuesForm::muri;
  using RunView = std::conditional_t<is_muri, OracleView, View>;

 public:
  /// `limits_gpu_s`: attained service, in whole GPU-seconds and ascending, at which a job leaves queue 0, 1, ...;
  /// `promote_knob`: a job pending for `promote_knob` times what it executed returns to queue 0; 0 = never.
  TiresiasQueues(std::vector<std::int64_t> limits_gpu_s, std::int64_t promote_knob)
      : limits_(std::move(limits_gpu_s)),
        promote_knob_(promote_knob),
        pending_(limits_.size() + 1),
        demoted_(limits_.size() + 1) {}

  [[nodiscard]] std::string_view name() const { return is_muri ? "tiresias@muri" : "tiresias@code"; }

  void decide(const RunView& view, Decision& decision);

 private:
  // Of a job that is not running.
  struct Job {
    Time executed{};               // since the start or the last promotion, overhead included
    Time promotion = Time::max();  // when it has been pending for long enough
    std::int64_t place = 0;        // among the pending of its queue
    std::uint32_t queue = 0;
    std::uint32_t admission = 0;  // its number in the order of admission
  };
  struct NoAccount {};
  struct Run {
    [[no_unique_address]] std::conditional_t<is_muri, OverheadAccount, NoAccount> account = {};
    Time begun{};              // now minus what it has executed
    Time limit = Time::max();  // when it reaches the limit of its queue; never in the last
    JobId job = no_job;
    std::uint32_t gpus = 0;
    std::uint32_t queue = 0;
    std::uint32_t admission = 0;
  };
  using Pending = WaitingBySize<std::int64_t>;
  struct Promotion {
    Time time;
    JobId job;
    friend bool operator<(const Promotion& a, const Promotion& b) {
      return a.time != b.time ? a.time < b.time : index(a.job) < index(b.job);
    }
  };

  Job& operator[](JobId job) { return jobs_[index(job)]; }

  void drop_ended(const RunView& view);
  void progress(Time now);
  void demote(Time now);
  void enter(Run& run, std::uint32_t queue) const;
  void admit(const RunView& view);
  void withdraw(JobId id, std::uint32_t gpus);
  void append_pending(JobId job, std::uint32_t gpus) { insert_pending(job, gpus, last_place_++); }
  void insert_pending(JobId job, std::uint32_t gpus, std::int64_t place);
  void promote_starved(const RunView& view);
  void place_all(const RunView& view, Decision& decision);
  void keep_or_preempt(std::span<const Run> runs, Decision& decision, std::int64_t& free);
  void choose_pending(std::uint32_t queue, Time now, std::int64_t& free);
  void wait_again(const RunView& view, const Run& run, std::int64_t place);
  void start_chosen(const RunView& view, Decision& decision);
  void put_back_refused();
  void plan_check(const RunView& view, Decision& decision);
  [[nodiscard]] Time demotion_check(const Run& run, Time now) const;
  static bool earlier(Time a, Time b) { return a < b; }

  typename std::vector<Run>::iterator find_running(JobId job);

  std::vector<std::int64_t> limits_;  // whole GPU-seconds
  std::int64_t promote_knob_;
  Time last_event_{};
  Time next_check_ = Time::max();
  Time next_limit_ = Time::max();                  // when the first running job reaches its limit
  std::vector<Job> jobs_;                          // by job id
  std::vector<Run> running_;                       // by queue, in order
  std::vector<Pending> pending_;                   // by queue
  std::int64_t first_place_ = 0, last_place_ = 0;  // of all pending jobs: least place, and one above the greatest
  std::uint32_t admissions_ = 0;
  std::set<Promotion> promotions_;  // future ones, of pending jobs
  EventOverhead overhead_;          // of the muri form
  // Of the present event:
  std::vector<std::vector<Run>> demoted_;  // by the queue that they enter
  std::vector<Run> ran_, preempted_;
  std::vector<std::size_t> started_;  // into running_
  std::vector<JobId> promoted_, refused_;
};

using TiresiasCode = TiresiasQueues<TiresiasQueuesForm::tiresias>;
using TiresiasMuri = TiresiasQueues<TiresiasQueuesForm::muri>;

}  // namespace gpusched
