// SPDX-License-Identifier: Apache-2.0
/// Finish-time fairness (Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI'20).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "src/policies/queues/kinetic_tournament.hpp"
#include "src/policies/seam/duration_estimator.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// Serves the jobs first that sharing slows most. A job's finish-time fairness is rho = T_shared / T_ideal: T_shared is
/// its time in the system if it ran from now on without a stop, T_ideal the time that it would take alone on 1/N of the
/// GPUs, N being the jobs in the system when it came (it runs at full speed if its GPUs are within that share, else
/// slowed in proportion). GPUs are leased: at each multiple of the lease while any job waits, all jobs in falling order
/// of rho get the cluster greedily; between, free GPUs go to waiting jobs in that order. Run times are the true ones
/// or, as in the paper, estimates. A waiting job's rho is a line in time, so that a tournament keeps the first of each
/// shape (kinetic_tournament.hpp): O(shapes + log^2 n) an event, O(running x log n) a lease.
///
/// With the auction (section 4 of the paper; a job is an app, and asks for its gang or nothing):
///  - the fraction 1 - f of the jobs of worst rho see the offer, f being the filter;
///  - a bid is how much a lease gains: V = 1/rho rises from ideal / (T + lease) to ideal / T, T being the time in the
///    system so far and the time left;
///  - the product of all V is made large: bids win in falling order of log gain a GPU, greedily (the paper solves it);
///  - hidden payment: a winner keeps the fraction c of its lease, c being what the product of the others' V comes to
///    with it, over what it would be without. A gang cannot give up some GPUs, so that it pays in time: from then on it
///    may be stopped for a waiting job. One that finds no place, or ends an attempt, has no lease any more. What a
///    winner's absence would let in is looked for among the bids that lost;
///  - what no winner takes goes to the other jobs in falling order of rho.
/// An auction looks at everybody's rho: O(n log n) a lease. Between auctions an event that has jobs whose paid lease is
/// over tries them for the first of each shape.
class Themis {
 public:
  struct Options {
    Time lease = whole_seconds(1200);
    bool auction = false;
    double filter = 0.8;  ///< f, in [0, 1)
  };

  explicit Themis(Time lease) : Themis(Options{.lease = lease}) {}
  /// Without an estimator run times are known.
  explicit Themis(Options options, std::optional<AnyDurationEstimator> estimator = {})
      : options_(options), estimator_(std::move(estimator)) {}

  [[nodiscard]] std::string_view name() const { return "themis"; }
  [[nodiscard]] bool clairvoyant() const { return !estimator_ || estimator_->clairvoyant(); }
  void decide(const OracleView& view, Decision& decision);

 private:
  struct Candidate {
    double rho = 0;
    JobId job = no_job;
    bool running = false;
    std::uint32_t number = 0;  // of its place (QueuePlace), for ties
  };
  // The waiting jobs of a scheduling queue and shape whose turn is next, taken out of their tournament for a pass. They
  // tie but for rounding; the last comes first.
  struct Turn {
    std::size_t group = 0;
    std::vector<Candidate> first = {};
  };
  struct Bid {
    Candidate from;
    double gain = 0;  // of log V
    MilliGpu gpus = 0;
  };

  void note_arrivals(const OracleView& view);
  [[nodiscard]] double shared_s(const OracleView& view, JobId job) const;
  [[nodiscard]] double rho(const OracleView& view, JobId job) const;
  [[nodiscard]] Candidate candidate(const OracleView& view, JobId job, bool running) const;
  void wait(const OracleView& view, JobId job);
  void withdraw(const OracleView& view, JobId job);
  void lease_all(const OracleView& view, Decision& decision);
  void stop_losers(const OracleView& view, Decision& decision);
  void start_waiting(const OracleView& view, Decision& decision);
  void start_winners(const OracleView& view, Decision& decision);
  void hold_auction(const OracleView& view);
  [[nodiscard]] std::vector<Bid> take_bids(const OracleView& view);
  void set_payments(const OracleView& view, const std::vector<Bid>& losers, MilliGpu free);
  void replace_expired(const OracleView& view, Decision& decision);
  [[nodiscard]] static bool before(const Candidate& a, const Candidate& b) {
    return a.rho != b.rho ? a.rho > b.rho : a.number < b.number;
  }
  [[nodiscard]] bool won(JobId job) const { return lease_end_[index(job)] != Time::max(); }
  void begin_lease(JobId job, Time end);
  void end_lease(JobId job);
  [[nodiscard]] Time left(const OracleView& view, JobId job) const;
  [[nodiscard]] std::size_t group_of(const View& view, JobId job) const {
    return std::size_t{view.queue_of(job)} * view.demand_count() + view.demand(job);
  }
  template <class Takes>
  void open_turns(const OracleView& view, Takes takes);
  [[nodiscard]] bool refill(const OracleView& view, Turn& turn);
  [[nodiscard]] Turn* next_turn();
  void take_turn(const OracleView& view, Turn& turn);
  void block(const OracleView& view, std::size_t group);
  void close_turns(const OracleView& view);
  [[nodiscard]] Time next_wake(const View& view) const;

  Options options_;
  std::optional<AnyDurationEstimator> estimator_;
  Time planned_wake_ = Time::max();
  bool cpu_only_jobs_ = false;               // jobs that want no GPU may start when none is free
  std::vector<double> ideal_s_;              // by job
  std::vector<std::uint32_t> jobs_then_;     // by job: N, the jobs in the system when it came
  std::vector<Time> estimate_;               // by job: with an estimator, its run time as believed when it came
  std::vector<Time> lease_end_;              // by job: when a winner's paid lease ends, however long ago; else max()
  std::set<std::pair<Time, JobId>> leases_;  // the same of those that have one
  std::vector<KineticTournament> waiting_;   // [queue x shape]
  std::vector<std::uint32_t> slots_;         // by job: where it is in there
  std::vector<Candidate> stopped_;           // by the last decision, and waiting since: yet to be taken in
  std::vector<Bid> winners_;                 // of the auction at hand, in the order in which they won
  std::vector<Turn> turns_;
  std::vector<Candidate> candidates_;
  std::vector<std::uint8_t> blocked_;  // [queue x shape]: nothing more of it fits in this pass
};

}  // namespace gpusched
