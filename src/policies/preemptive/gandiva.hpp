// SPDX-License-Identifier: Apache-2.0
/// Gandiva-style time slicing (Xiao et al., OSDI'18): jobs that do not fit together take turns on the GPUs.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// Round robin over whole jobs (suspend and resume). Waiting jobs stand in the order in which they began to wait, and
/// start whenever they fit, passing over those that do not. At each multiple of the slice while any job waits,
/// jobs that have run for a slice or longer make room for them, the longest-running first, and queue up again; as many
/// as the waiting job needs, or none. Cost: O(log n) a start or suspension, and an attempt for each class of waiting
/// jobs (shape and virtual cluster) at an event, at a slice after each start.
///
/// With migration (section 3.2 of the paper), a job that wants GPUs of one node, and finds them idle on several, first
/// has small jobs moved away from the node that needs the fewest GPUs more: each in whole to the fullest other node
/// that holds it, at `migration` of extra work. What wants one node is a task of several GPUs, or a gang under a
/// placement that keeps it on one. O(nodes + running) for such a shape at a slice. Packing is not here: jobs keep
/// the GPUs, or shares of them, that they ask for.
class Gandiva {
 public:
  struct Options {
    Time slice = whole_seconds(60);
    bool migrates = false;
    Time migration = whole_seconds(5);
  };

  explicit Gandiva(Time slice) : Gandiva(Options{.slice = slice}) {}
  explicit Gandiva(const Options& options) : options_(options) {}

  [[nodiscard]] std::string_view name() const { return "gandiva"; }
  void decide(const View& view, Decision& decision);

 private:
  // A job that runs or waits, by how long it does.
  struct Turn {
    std::int64_t since_us = 0;
    QueuePlace place = {};
    // NOLINTNEXTLINE(modernize-use-nullptr): as Shape's
    friend auto operator<=>(const Turn&, const Turn&) = default;
  };

  static constexpr std::int64_t not_yet = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] Turn turn_of(const View& view, JobId job) const {
    return {since_us_[index(job)], view.queue_place(job)};
  }
  // Jobs that wait in one scheduling queue for one demand.
  using Class = std::pair<std::uint32_t, std::uint32_t>;

  void note_events(const View& view);
  void wait(const Class& of, const Turn& turn);
  void wait_no_more(const Class& of, const Turn& turn);
  void serve(const View& view, Decision& decision, bool may_suspend);
  bool make_room(const View& view, Decision& decision, JobId job);

  // A running job that lies on one node, and how many GPUs it takes of it.
  struct Movable {
    std::uint32_t gpus = 0;
    QueuePlace place = {};
  };
  struct Move {
    JobId job = no_job;
    NodeTasks to;
  };
  void suspend(const View& view, Decision& decision, JobId job);
  bool gather_on_one_node(const View& view, Decision& decision, JobId job);
  void find_movables(const View& view);
  [[nodiscard]] std::vector<Move> clear_node(const View& view, std::uint32_t node, std::uint32_t wanted) const;

  Options options_;
  Time next_wake_ = Time::max();
  std::vector<std::int64_t> since_us_;  // by job: when it began to run or to wait
  std::map<Class, std::set<Turn>> waiting_;
  std::set<std::pair<Turn, Class>> firsts_;     // of those that wait, the first of each class
  std::vector<std::set<Turn>> running_;         // by scheduling queue
  std::vector<std::vector<Movable>> movables_;  // by node, of one attempt to gather
};

}  // namespace gpusched
