// SPDX-License-Identifier: Apache-2.0
/// "Tiresias" as two later artifacts run it for comparison: `tiresias@pollux` (Qiao et al., OSDI'21) and
/// `tiresias@lucid` (Hu et al., ASPLOS'23). Quirks that both share: decisions every 60 s only, so that an arrival waits
/// for the next round and freed GPUs idle until then; two queues, no promotion, order of submission within a queue.
///  - pollux: the second queue begins at 16 hours of GPU time; every start, the first included, costs 30 s; a job that
///    keeps running keeps its nodes.
///  - lucid: it begins at 18,000 GPU-seconds; a preemption costs 40 s, or 60 s on more than 8 GPUs.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "src/policies/queues/waiting_by_size.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

enum class PolluxLucidForm : std::uint8_t { pollux, lucid };

/// O(running + log waiting) a round in which something changed: a job came, ended, or reached the limit.
class TiresiasPolluxLucid {
 public:
  explicit TiresiasPolluxLucid(PolluxLucidForm form) : form_(form) {}

  [[nodiscard]] std::string_view name() const {
    return form_ == PolluxLucidForm::pollux ? "tiresias@pollux" : "tiresias@lucid";
  }
  void decide(const View& view, Decision& decision);

 private:
  struct Place {
    bool demoted = false;
    std::uint32_t number = 0;                                       // in order of submission
    friend auto operator<=>(const Place&, const Place&) = default;  // NOLINT(modernize-use-nullptr): misread by tidy 14
  };
  struct Run {
    Place place;
    MilliGpu gpu_milli = 0;
    Time limit{};  // when it reaches the limit
    friend bool operator<(const Run& a, const Run& b) { return a.place < b.place; }
  };
  using Waiting = WaitingBySize<Place>;

  void schedule(const View& view, Decision& decision);
  void bring_up_to_now(const View& view);
  void choose_before(const Place& place, MilliGpu& free);
  void start_chosen(const View& view, Decision& decision);
  [[nodiscard]] std::int64_t limit_gpu_us() const;
  /// When a job that runs from now on reaches the limit; now, if it has.
  [[nodiscard]] Time limit_of(const View& view, JobId job) const;
  /// What a start costs, in work.
  [[nodiscard]] Time start_cost(const Shape& shape, bool preempted) const;

  PolluxLucidForm form_;
  bool changed_ = false;           // since the last round
  Time next_limit_ = Time::max();  // the round after the next running job reaches the limit
  Time next_wake_ = Time::max();
  std::vector<bool> preempted_;  // by job: preempted, and not started since
  std::vector<Run> running_;     // in order of place
  Waiting waiting_;
  std::vector<JobId> joining_;          // jobs to put among the waiting at the next round, when their service is known
  std::vector<Waiting::Entry> chosen_;  // of the present round
};

}  // namespace gpusched
