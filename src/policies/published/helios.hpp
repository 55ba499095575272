// SPDX-License-Identifier: Apache-2.0
/// The policies of HeliosArtifact (Hu et al., "Characterization and Prediction of Deep Learning Workloads in
/// Large-Scale GPU Datacenters", SC'21; github.com/S-Lab-System-Group/HeliosArtifact, framework/QSSF Service):
/// `fifo@helios`, `sjf@helios`, `qssf@helios` and `srtf@helios`. They reproduce that simulator, not the paper. What all
/// four share:
///  - each virtual cluster is scheduled by itself; a job whose virtual cluster has no nodes is refused;
///  - time goes in whole seconds: at each, jobs end, then arrive, then start;
///  - gangs are placed by Placement::helios, whatever the run's placement rule. A gang that this rule cannot place
///    waits, even while enough GPUs are idle.
#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "src/policies/queues/waiting_by_size.hpp"
#include "src/policies/seam/duration_estimator.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// The three policies without preemption. The first job that cannot be placed blocks its virtual cluster.
///  - fifo: in order of submission; sjf: by run time, then submission.
///  - qssf: by run time x GPUs, then GPUs, then submission. Quirk: a job gets its priority once, at the first second at
///    which an older job is waiting. Jobs that arrive at an empty queue are therefore ordered by GPUs alone in that
///    second, and get their priorities in the next. The artifact reads its estimates from a file; here `estimate` names
///    their source.
/// O(log n) a job; O(waiting that arrived together) for qssf at an empty queue.
class HeliosList {
 public:
  enum class Kind : std::uint8_t { fifo, sjf, qssf };

  HeliosList(Kind kind, AnyDurationEstimator estimator) : kind_(kind), estimator_(std::move(estimator)) {}

  [[nodiscard]] std::string_view name() const;
  [[nodiscard]] bool clairvoyant() const { return estimator_.clairvoyant(); }
  void decide(const OracleView& view, Decision& decision);

 private:
  // Order of a queue: score, GPUs, id. A field that fifo or sjf does not use is 0.
  using Place = std::tuple<std::int64_t, std::uint32_t, std::uint32_t>;
  struct Queue {
    std::set<Place> rated;
    std::vector<JobId> unrated;  // in order of submission
    bool waited = false;         // some of `unrated` were already waiting at the last second
  };

  [[nodiscard]] Place place_of(const OracleView& view, JobId job);
  static void withdraw(Queue& queue, JobId job);
  void start_unrated(Queue& queue, const OracleView& view, Decision& decision);
  static void start_rated(Queue& queue, Decision& decision);

  Kind kind_;
  AnyDurationEstimator estimator_;
  std::vector<Queue> queues_;
};

/// Shortest remaining time first, with preemption. At every second waiting and running jobs are sorted by remaining
/// time (stable; waiting ones first, in order of joining them), and the GPUs of the virtual cluster are handed out by
/// count, greedily. Running jobs that get none are stopped and lose a checkpoint of 7 s (1 GPU), 30 s (up to 8) or 60
/// s; then waiting jobs that were given GPUs are placed. Quirks: a waiting job that cannot be placed still uses up its
/// count of GPUs for that second; a job ends one second late. O(running + log waiting) at events only: between events
/// running jobs only move forward past waiting ones, which changes no outcome. The artifact does not know virtual
/// clusters that share nodes; here all of them are scheduled at every event, and again one second after any of them
/// stopped a job.
class HeliosSrtf {
 public:
  /// `queues_of_node`: the scheduling queues that each node serves. `share_nodes`: some node serves everyone beside
  /// others that do not.
  HeliosSrtf(std::vector<std::vector<std::uint32_t>> queues_of_node, bool share_nodes)
      : queues_of_node_(std::move(queues_of_node)), share_nodes_(share_nodes) {}

  [[nodiscard]] std::string_view name() const { return "srtf@helios"; }
  void decide(const OracleView& view, Decision& decision);

 private:
  // Waiting and running jobs each in this order; of equal remaining time the waiting come first.
  struct Place {
    std::int64_t remaining_us = 0;
    std::uint64_t joined = 0;  // number in the order of joining either list
    // NOLINTNEXTLINE(modernize-use-nullptr): as Shape's
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct Run {
    Place place;
    JobId job = no_job;
    std::int64_t gpus = 0;
    friend bool operator<(const Run& a, const Run& b) { return a.place < b.place; }
  };
  using Waiting = WaitingBySize<Place>;
  struct Chosen {
    Waiting::Entry entry;
    std::int64_t gpus = 0;
  };
  struct Queue {
    Waiting waiting;
    std::vector<JobId> joining;  // jobs to put into `waiting` at the next event, when their remaining time is known
    std::vector<Run> running;
    bool changed = false;
  };

  void prepare(const OracleView& view);
  void note_events(const OracleView& view);
  void count_node(const OracleView& view, NodeId node);
  void schedule(std::uint32_t number, const OracleView& view, Decision& decision);
  void bring_up_to_now(Queue& queue, const OracleView& view);
  void choose_before(Queue& queue, const Place& place, std::int64_t& quota);
  void checkpoint(Queue& queue, const Run& run, Decision& decision);
  void start(Queue& queue, const Chosen& chosen, Decision& decision);
  [[nodiscard]] std::int64_t remaining_us(const OracleView& view, JobId job) const;

  std::vector<std::vector<std::uint32_t>> queues_of_node_;
  std::vector<std::int64_t> gpus_;  // in service, by scheduling queue
  std::vector<bool> is_counted_;    // by node: its GPUs are in gpus_
  bool share_nodes_;
  bool stopped_ = false;  // some job, in this decision
  std::vector<Queue> queues_;
  std::uint64_t joins_ = 0;
  std::vector<Chosen> chosen_;  // of the queue at hand
  std::vector<Time> owed_;      // by job: work that the next start adds; first the late second, later also checkpoints
};

}  // namespace gpusched
