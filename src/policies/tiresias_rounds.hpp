// SPDX-License-Identifier: Apache-2.0
/// "Tiresias" as two later artifacts run it for comparison: `tiresias@pollux` (Qiao et al., OSDI'21) and
/// `tiresias@lucid` (Hu et al., ASPLOS'23). Quirks that both share: decisions every 60 s only, so that an arrival waits
/// for the next round and freed GPUs idle until then; two queues, no promotion, order of submission within a queue.
///  - pollux: the second queue begins at 16 hours of GPU time; every start, the first included, costs 30 s; a job that
///    keeps running keeps its nodes.
///  - lucid: it begins at 18,000 GPU-seconds; a preemption costs 40 s, or 60 s on more than 8 GPUs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gpusched/decision.hpp"
#include "gpusched/view.hpp"
#include "src/policies/registry.hpp"

namespace gpusched {

enum class TiresiasRoundsForm : std::uint8_t { pollux, lucid };

/// O(runnable log runnable) a round in which something changed: a job came, ended, or reached the limit.
class TiresiasRounds {
 public:
  explicit TiresiasRounds(TiresiasRoundsForm form) : form_(form) {}

  [[nodiscard]] std::string_view name() const {
    return form_ == TiresiasRoundsForm::pollux ? "tiresias@pollux" : "tiresias@lucid";
  }
  void decide(const View& view, Decision& decision);

 private:
  struct Candidate {
    JobId job = no_job;
    std::int64_t attained_gpu_us = 0;
    bool demoted = false;
    bool running = false;
  };

  void schedule(const View& view, Decision& decision);
  void expect_limit(const View& view, const Candidate& winner);
  [[nodiscard]] std::int64_t limit_gpu_us() const;
  /// What a start costs, in work.
  [[nodiscard]] Time start_cost(const Shape& shape, bool preempted) const;

  TiresiasRoundsForm form_;
  bool changed_ = false;           // since the last round
  Time next_limit_ = Time::max();  // the round after the next running job reaches the limit
  Time next_wake_ = Time::max();
  std::vector<bool> preempted_;  // by job: and not started since
  std::vector<Candidate> candidates_;
};

PolicyInfo tiresias_pollux_info();
PolicyInfo tiresias_lucid_info();

}  // namespace gpusched
