// SPDX-License-Identifier: Apache-2.0
/// Shortest remaining time first and shortest remaining service first, preemptive, clairvoyant.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "gpusched/policy/jobs_by_demand.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// At every event the runnable jobs, in order of remaining time (SRTF) or remaining time x GPUs (SRSF), get the cluster
/// greedily: a job that does not fit is passed over, and running jobs that others outrank are preempted. Ties are
/// resolved as by one list of jobs that every event sorts stably by key, as in the source. Whoever comes or comes back
/// joins the end of the list, those of one instant by place (QueuePlace); a job whose key rose by a preemption cost
/// goes behind the jobs that had that key already. Of those of one decision, stopped jobs go before started ones, each
/// in list order.
///
/// The outcome equals that of emptying the cluster and placing all jobs in order, at less cost. Between events running
/// jobs only move forward in the order, which keeps the assignment greedy; so an event costs only the jobs that it
/// starts, the jobs that these displace, and one test per demand: O(demands x log n). When the first waiting job of a
/// demand cannot be placed, no other job of that demand can.
class ShortestRemaining {
 public:
  explicit ShortestRemaining(bool by_service) : by_service_(by_service) {}

  [[nodiscard]] std::string_view name() const { return by_service_ ? "srsf" : "srtf"; }

  void decide(const OracleView& view, Decision& decision);

 private:
  // A job's place is its key, then the moment at which it reached that key (Rank::since). Moments count decisions: for
  // a job that ran down to its key, twice the number of the first decision of that instant; for a job that joined the
  // end of the list, one more than twice the number of the decision at which it joined.
  //
  // Two running jobs whose equal keys fall at the same speed had equal keys when the later one started. The later one
  // was ahead if it had been waiting with its key before, and behind if it reached its key at that very instant.
  struct Start {
    bool waited = false;
    std::int64_t time = 0;
    std::int64_t since = 0;     // as the rank before the start
    std::int64_t sequence = 0;  // likewise
    friend bool operator==(const Start&, const Start&) = default;
    friend bool operator<(const Start& a, const Start& b) {
      if (a.waited != b.waited) return a.waited;
      if (a.time != b.time) return a.waited ? b.time < a.time : a.time < b.time;
      return a.since != b.since ? a.since < b.since : a.sequence < b.sequence;
    }
  };
  // Of the jobs that ran down to one key at one instant, the one whose key fell more slowly had the smaller key before,
  // and comes first; at equal speed the start decides. After the instant, the jobs that stopped are numbered in that
  // order, so that a comparison never has to look further back.
  struct Rank {
    std::int64_t key = 0;
    std::int64_t since = 0;
    MilliGpu slope = 0;  // GPUs under SRSF; all keys fall alike under SRTF. 0 once numbered
    Start start = {};    // none once numbered
    std::int64_t sequence = 0;
    JobId job = no_job;
    friend bool operator<(const Rank& a, const Rank& b) {
      if (a.key != b.key) return a.key < b.key;
      if (a.since != b.since) return a.since < b.since;
      if (a.slope != b.slope) return a.slope < b.slope;
      return a.start != b.start ? a.start < b.start : a.sequence < b.sequence;
    }
  };
  // A running job: within a demand the order of ends is the order of keys, at any time.
  struct Running {
    std::int64_t end = 0;
    Start start = {};
    JobId job = no_job;
    Rank before = {};  // when it started
    friend bool operator<(const Running& a, const Running& b) {
      return a.end != b.end ? a.end < b.end : a.start < b.start;
    }
  };
  struct Place {
    std::int64_t end = 0;
    Start start = {};
  };
  struct Displaced {
    Running running;
    Rank rank;
  };
  [[nodiscard]] std::int64_t key(JobId job, Time remaining, const View& view) const;
  [[nodiscard]] MilliGpu slope(JobId job, const View& view) const;
  Rank newcomer(JobId job, std::int64_t key_now);
  [[nodiscard]] Rank rank(const Running& running, const OracleView& view) const;
  void note_outcome(const OracleView& view);
  void replace(const Rank& before, const Rank& after, const View& view);
  void number_stopped(const View& view);
  void note_start(const Rank& started, bool prolonged, const OracleView& view);
  void add_running(const View& view, const Running& running);
  void remove_running(const View& view, JobId job);
  void note(const OracleView& view, const Event& event);
  void take_in(const OracleView& view);
  bool touch_all();
  bool fill(std::uint32_t queue, const OracleView& view, Decision& decision);
  Verdict place(std::uint32_t queue, const Rank& candidate, const OracleView& view, Decision& decision);
  void displace(std::uint32_t queue, const Rank& candidate, const OracleView& view, Decision& decision,
                Verdict& verdict);

  bool by_service_;
  JobsByDemand<Rank, Running> jobs_;
  std::vector<Place> place_of_;  // by job: where it stands, or stood last, among those that run
  std::int64_t last_sequence_ = 0;
  Time decided_at_ = Time::max();

  std::int64_t decision_ = 0;  // its number
  std::int64_t first_of_instant_ = 0;
  std::set<Rank> stopped_;                // in this instant, with the keys that they had reached
  std::vector<Rank> started_;             // by the last decision
  std::map<JobId, Displaced> displaced_;  // by the last decision
  std::vector<Displaced> victims_;        // of the present candidate
  std::vector<bool> touched_;
  std::vector<QueuePlace> came_;  // at this instant
};

}  // namespace gpusched
