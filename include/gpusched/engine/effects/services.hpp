// SPDX-License-Identifier: Apache-2.0
/// Services: replicas that come and go beside the jobs, and the requests that they serve.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "gpusched/data/job_table.hpp"
#include "gpusched/engine/effects/effect_list.hpp"
#include "gpusched/engine/job_state.hpp"
#include "gpusched/serving/service_model.hpp"
#include "gpusched/serving/service_requests.hpp"

namespace gpusched {

/// Starts of a service's replicas.
struct ReplicaStarts {
  std::uint64_t cold = 0;       ///< no replica of the service had run lately on one of the nodes
  std::uint64_t warm = 0;       ///< the others
  std::uint64_t preempted = 0;  ///< runs that a decision ended
  std::uint64_t killed = 0;     ///< runs that a node took with it

  /// Count by count.
  ReplicaStarts& operator+=(const ReplicaStarts& other) {
    cold += other.cold;
    warm += other.warm;
    preempted += other.preempted;
    killed += other.killed;
    return *this;
  }
};

namespace detail {

/// An effect: a replica is a job of the table that is held back until the autoscaler of its service asks for it. Then
/// it joins its queue and is placed by the policy like any job. It runs until it is told to end, and may be asked for
/// again: its place in the queue is that of the last time. A replica that is preempted, or loses its node, waits in its
/// queue; its requests are retried or dropped. Requests are no events of the engine: each service is moved through them
/// when something of its replicas may change.
class Services {
 public:
  static constexpr bool keeps_seats = true;
  static constexpr bool holds_jobs_back = true;

  /// No services.
  Services() = default;
  explicit Services(const EffectWorld& world) {
    if (world.inputs.services == nullptr || world.inputs.services->is_empty()) return;
    model_ = world.inputs.services;
    GPUSCHED_ASSERT(model_->rows() == world.jobs.replicas(), "services and rows of the table differ");
    const Time origin = world.jobs.submit(JobId{0});
    asked_.resize(model_->rows());
    for (std::uint32_t row = 0; row < model_->rows(); ++row) asked_[row] = world.jobs.submit(JobId{row});
    replicas_.resize(model_->rows());
    for (std::uint32_t i = 0; i < model_->services.size(); ++i) {
      const ServiceSpec& spec = model_->services[i];
      const Time begin = origin + spec.begin;
      runs_.push_back({.queue = ServiceRequests(spec, begin),
                       .autoscaler = spec.autoscaler,
                       .follows_requests = spec.autoscaler.follows_requests(),
                       .last_arrival = spec.is_told ? Time::max() : begin + spec.requests.back().arrival,
                       .ask_at = begin});
      if (world.inputs.hosted != nullptr && spec.engine != world.inputs.engine) runs_.back().closed = origin;
      for (std::uint32_t k = 0; k < spec.most; ++k) replicas_[spec.first_row + k].service = i;
    }
  }

  /// True when there are services.
  [[nodiscard]] bool active() const { return model_ != nullptr; }
  /// Replicas that were submitted and are not asked for.
  [[nodiscard]] std::uint32_t out_of_queues() const { return held_back_; }
  /// Preconditions of these: active(). \{
  [[nodiscard]] bool is_replica(JobId job) const { return index(job) < replicas_.size(); }
  /// When a replica was asked for last; before that, the first submission.
  [[nodiscard]] Time asked(JobId job) const { return asked_[index(job)]; }
  [[nodiscard]] const ServiceModel& model() const { return *model_; }
  /// The requests of a service, as far as it was moved.
  [[nodiscard]] const RequestLedger& requests(std::uint32_t service) const { return runs_[service].queue.ledger(); }
  [[nodiscard]] const ReplicaStarts& starts(std::uint32_t service) const { return runs_[service].starts; }
  /// Its replicas: that serve, and that are asked for or load.
  [[nodiscard]] std::pair<std::int32_t, std::int32_t> replicas(std::uint32_t service) const {
    const ServiceSpec& spec = model_->services[service];
    const std::int32_t ready = count(spec, [](const Replica& replica) { return replica.phase == Phase::ready; });
    return {ready, active(spec) - ready};
  }
  /// It asks for replicas, and none has found room.
  [[nodiscard]] bool waits_for_room(std::uint32_t service) const {
    const ServiceSpec& spec = model_->services[service];
    const auto [ready, others] = replicas(service);
    return ready == 0 && others > 0 &&
           others == count(spec, [](const Replica& replica) { return replica.phase == Phase::waiting; });
  }
  /// Those that are asked for, or that end when what they serve is done.
  [[nodiscard]] std::int32_t asked_for(std::uint32_t service) const {
    const ServiceSpec& spec = model_->services[service];
    return active(spec) + static_cast<std::int32_t>(runs_[service].draining);
  }
  /// When the last request of a service was answered or left, or the first instant where another engine serves it;
  /// Time::max(): not yet.
  [[nodiscard]] Time closed(std::uint32_t service) const { return runs_[service].closed; }
  /// \}
  [[nodiscard]] bool counts_costs() const {
    return std::any_of(model_->services.begin(), model_->services.end(),
                       [](const ServiceSpec& spec) { return spec.cold_start > Time{} || spec.warm_start > Time{}; });
  }

  // ---- for a host that tells requests (ServiceSpec::is_told) ----

  /// Its requests are moved to `now`, at which nothing has happened in the engine yet, to be looked at.
  void look(std::uint32_t service, Time now) { catch_up(runs_[service], now); }
  /// A request reaches it at its arrival, at which nothing has happened in the engine yet.
  void tell(std::uint32_t service, const ServiceRequest& request) { runs_[service].queue.tell(request); }
  /// None is told any more, from `now` on.
  void end_telling(std::uint32_t service, Time now) {
    catch_up(runs_[service], now);
    runs_[service].queue.end_telling();
    runs_[service].look_at = now;
  }

  // ---- for a host that says how many replicas there should be (ToldReplicas) ----

  /// Its requests are moved to the present, to be looked at.
  template <class Kernel>
  void look(Kernel& kernel) {
    for (Run& run : runs_) {
      if (run.closed == Time::max()) catch_up(run, kernel.state.now);
    }
  }
  /// So many replicas from this instant on.
  template <class Kernel>
  void tell(Kernel& kernel, std::uint32_t service, std::int32_t replicas) {
    Run& run = runs_[service];
    run.autoscaler.tell(replicas);
    if (run.ask_at > kernel.state.now && kernel.state.now >= run.queue.ledger().begin()) run.ask_at = kernel.state.now;
  }

  [[nodiscard]] Time next_time() const {
    Time next = Time::max();
    for (const Run& run : runs_) next = std::min(next, next_of(run));
    return next;
  }

  template <class Kernel>
  void happen(Kernel& kernel) {
    for (std::uint32_t i = 0; i < runs_.size(); ++i) {
      if (next_of(runs_[i]) == kernel.state.now) return control(kernel, i);
    }
  }

  template <class Kernel>
  bool holds_back(Kernel&, JobId job) {
    if (!is_replica(job) || replicas_[index(job)].phase != Phase::held_back) return false;
    ++held_back_;
    return true;
  }

  template <class Kernel>
  void joins(Kernel& kernel, JobId job) {
    if (is_replica(job)) asked_[index(job)] = kernel.state.now;
  }

  template <class Kernel>
  Time begin(Kernel& kernel, JobId job) {
    if (!is_replica(job)) return {};
    Replica& replica = replicas_[index(job)];
    Run& run = runs_[replica.service];
    replica.phase = Phase::starting;
    replica.loaded_left = kernel.state[job].remaining;
    const bool is_warm = warm(kernel, job);
    ++(is_warm ? run.starts.warm : run.starts.cold);
    const ServiceSpec& spec = spec_of(replica);
    return is_warm ? spec.warm_start : spec.cold_start;
  }

  // Work left when it serves, and when it is given more, so that it never ends by itself.
  [[nodiscard]] Time next_milestone(JobId job) const {
    if (!is_replica(job)) return {};
    const Replica& replica = replicas_[index(job)];
    return replica.phase == Phase::starting ? replica.loaded_left : refill_at;
  }

  template <class Kernel>
  void pass_milestone(Kernel& kernel, JobId job) {
    Replica& replica = replicas_[index(job)];
    kernel.settle_now(job);
    if (replica.phase == Phase::starting) {
      replica.phase = Phase::ready;
      kernel.replan(job, {}, kernel.state[job].rate);
      Run& run = runs_[replica.service];
      catch_up(run, kernel.state.now);
      run.queue.open(row_of(job), kernel.state[job].rate);
      serving_.insert(std::lower_bound(serving_.begin(), serving_.end(), index(job)), index(job));
    } else {
      kernel.replan(job, replica_work - refill_at, kernel.state[job].rate);
    }
  }

  template <class Kernel>
  void end(Kernel& kernel, JobId job, EndOfRun why) {
    if (!is_replica(job)) return;
    Replica& replica = replicas_[index(job)];
    Run& run = runs_[replica.service];
    if (why == EndOfRun::preempted) ++run.starts.preempted;
    if (why == EndOfRun::killed) ++run.starts.killed;
    catch_up(run, kernel.state.now);
    if (serves(replica)) {
      keep_warm(kernel, job);
      run.queue.close(row_of(job));
      std::erase(serving_, index(job));
      // A node, or a decision, may take several at once.
      if (why == EndOfRun::cancelled) {
        run.queue.resume();
      } else {
        run.look_at = kernel.state.now;
      }
    }
    if (replica.phase == Phase::draining) {
      --run.draining;
      if (why != EndOfRun::cancelled) run.look_at = kernel.state.now;  // it waits, and nobody wants it
    }
    replica.phase = Phase::waiting;
  }

  template <class Kernel>
  void ended(Kernel& kernel, JobId job) {
    if (!is_replica(job)) return;
    Replica& replica = replicas_[index(job)];
    if (replica.phase == Phase::held_back && index(job) < kernel.state.arrived) --held_back_;
    replica.phase = Phase::gone;
  }

  // A node that went down comes back cold.
  template <class Kernel>
  void cleared(Kernel&, NodeId node) {
    for (Run& run : runs_) run.warm_until.erase(node);
  }

  // The speeds of replicas follow those of their runs.
  template <class Kernel>
  void react(Kernel& kernel) {
    for (const std::uint32_t row : serving_) {
      Run& run = runs_[replicas_[row].service];
      ServiceRequests& queue = run.queue;
      const RatePpm rate = kernel.state[JobId{row}].rate;
      if (queue.rate(row_of(JobId{row})) == rate) continue;
      catch_up(run, kernel.state.now);
      queue.set_rate(row_of(JobId{row}), rate);
    }
  }

  template <class State>
  [[nodiscard]] bool audit(const State& state, JobId job) const {
    if (!is_replica(job)) return true;
    const Replica& replica = replicas_[index(job)];
    const ServiceRequests& queue = runs_[replica.service].queue;
    if (!queue.ledger().counts().add_up()) return false;
    const std::uint32_t row = row_of(job);
    if (!serves(replica)) return replica.phase == Phase::starting && !queue.is_open(row);
    return queue.is_open(row) && queue.rate(row) == state[job].rate;
  }

 private:
  enum class Phase : std::uint8_t {
    held_back,  // nobody asks for it
    waiting,    // in its queue
    starting,   // it runs, and does not serve yet
    ready,      // it serves
    draining,   // it ends when what it serves is done
    gone,       // done for good
  };
  struct Replica {
    std::uint32_t service = 0;
    Phase phase = Phase::held_back;
    Time loaded_left{};  // work left of its run when it serves
  };
  struct Run {
    ServiceRequests queue;
    Autoscaler autoscaler;
    bool follows_requests = false;  // the autoscaler is asked whenever a request comes or ends
    Time last_arrival{};            // after which another one is asked no more
    Time ask_at{};                  // when it is asked next
    Time look_at = Time::max();     // when replicas are compared with what is wanted, besides
    std::int32_t wanted = 0;        // its last answer
    std::uint32_t draining = 0;     // replicas
    Time closed = Time::max();
    ReplicaStarts starts = {};
    std::map<NodeId, Time> warm_until = {};
  };

  static constexpr Time refill_at{replica_work.us / 2};

  [[nodiscard]] static bool serves(const Replica& replica) {
    return replica.phase == Phase::ready || replica.phase == Phase::draining;
  }
  [[nodiscard]] const ServiceSpec& spec_of(const Replica& replica) const { return model_->services[replica.service]; }
  [[nodiscard]] std::uint32_t row_of(JobId job) const { return index(job) - spec_of(replicas_[index(job)]).first_row; }

  // The engine need not stop for requests but where a replica waits for their end, where one that comes asks for the
  // first replica, where the autoscaler follows them, or where none is to come.
  [[nodiscard]] static Time next_of(const Run& run) {
    if (run.closed != Time::max()) return Time::max();
    if (run.queue.ledger().over()) return run.queue.ledger().now();
    const Time next = watches(run) ? run.queue.next_time() : run.last_arrival;
    const Time again = run.follows_requests ? run.autoscaler.look_again() : Time::max();
    return std::min({next, run.ask_at, run.look_at, again});
  }
  [[nodiscard]] static bool watches(const Run& run) {
    return run.draining > 0 || run.wanted == 0 || run.follows_requests || run.queue.ledger().all_came();
  }

  // Its requests up to now, when something of a replica happens; what they bring to replicas is looked at besides.
  static void catch_up(Run& run, Time now) {
    if (watches(run) && run.queue.next_time() <= now) run.look_at = now;
    run.queue.advance_to(now);
  }

  template <class Accept>
  [[nodiscard]] std::int32_t count(const ServiceSpec& spec, Accept accept) const {
    const auto first = replicas_.begin() + spec.first_row;
    return static_cast<std::int32_t>(std::count_if(first, first + spec.most, accept));
  }

  template <class Kernel>
  void control(Kernel& kernel, std::uint32_t service) {
    Run& run = runs_[service];
    const ServiceSpec& spec = model_->services[service];
    run.queue.resume();
    run.queue.advance_to(kernel.state.now);
    run.look_at = Time::max();
    for (std::uint32_t row = spec.first_row; run.draining > 0 && row < spec.first_row + spec.most; ++row) {
      if (replicas_[row].phase == Phase::draining && run.queue.busy(row_of(JobId{row})) == 0) stop(kernel, JobId{row});
    }
    if (run.queue.ledger().over()) return close(kernel, service);
    const bool none = run.wanted == 0 && run.queue.ledger().counts().waiting > 0;
    if (run.ask_at <= kernel.state.now || none || run.follows_requests) ask(kernel, service);
    while (active(spec) < run.wanted && add(kernel, service)) continue;
    while (active(spec) > run.wanted) remove(kernel, service);
  }

  [[nodiscard]] std::int32_t active(const ServiceSpec& spec) const {
    return count(spec, [](const Replica& replica) {
      return replica.phase == Phase::waiting || replica.phase == Phase::starting || replica.phase == Phase::ready;
    });
  }

  template <class Kernel>
  void ask(Kernel& kernel, std::uint32_t service) {
    Run& run = runs_[service];
    const ServiceSpec& spec = model_->services[service];
    const auto [ready, starting] = replicas(service);
    const std::int32_t wanted = run.autoscaler.wanted(run.queue.ledger().load(ready, starting));
    const std::int32_t least = run.queue.ledger().counts().waiting + run.queue.ledger().counts().served > 0 ? 1 : 0;
    run.wanted = std::clamp(wanted, least, static_cast<std::int32_t>(spec.most));
    if (run.ask_at > kernel.state.now) return;
    run.ask_at = run.queue.ledger().all_came() ? Time::max() : later_by(run.ask_at, run.autoscaler.period());
  }

  // One replica more, if there may be: one that drains, else the first that is held back.
  template <class Kernel>
  bool add(Kernel& kernel, std::uint32_t service) {
    Run& run = runs_[service];
    const ServiceSpec& spec = model_->services[service];
    const auto first = replicas_.begin() + spec.first_row;
    const auto find = [&first, &spec](Phase phase) {
      const auto at = std::find_if(first, first + spec.most, [&phase](const Replica& r) { return r.phase == phase; });
      return static_cast<std::uint32_t>(at - first);
    };
    if (const std::uint32_t row = find(Phase::draining); row < spec.most) {
      replicas_[spec.first_row + row].phase = Phase::ready;
      --run.draining;
      run.queue.accept(row, true);
      return true;
    }
    const std::uint32_t row = find(Phase::held_back);
    if (row == spec.most) return false;
    const JobId job{spec.first_row + row};
    replicas_[index(job)].phase = Phase::waiting;
    if (index(job) >= kernel.state.arrived) return true;  // it is submitted at this instant
    --held_back_;
    kernel.enter_queue(job);
    return true;
  }

  // One replica less: the last that waits, else the last that starts, else of those that serve least the last.
  template <class Kernel>
  void remove(Kernel& kernel, std::uint32_t service) {
    Run& run = runs_[service];
    const ServiceSpec& spec = model_->services[service];
    std::uint32_t chosen = no_index;
    std::pair<Phase, std::uint32_t> least{Phase::gone, 0};
    for (std::uint32_t row = 0; row < spec.most; ++row) {
      const Phase phase = replicas_[spec.first_row + row].phase;
      if (phase != Phase::waiting && phase != Phase::starting && phase != Phase::ready) continue;
      const std::pair<Phase, std::uint32_t> rank{phase, phase == Phase::ready ? run.queue.busy(row) : 0};
      if (rank > least) continue;
      least = rank;
      chosen = row;
    }
    const JobId job{spec.first_row + chosen};
    if (least.second == 0) return stop(kernel, job);
    replicas_[index(job)].phase = Phase::draining;
    ++run.draining;
    run.queue.accept(chosen, false);
  }

  template <class Kernel>
  void stop(Kernel& kernel, JobId job) {
    if (index(job) < kernel.state.arrived) {
      kernel.take_back(job);
      ++held_back_;
    }
    replicas_[index(job)].phase = Phase::held_back;
  }

  // Every request was answered or left.
  template <class Kernel>
  void close(Kernel& kernel, std::uint32_t service) {
    runs_[service].closed = kernel.state.now;
    const ServiceSpec& spec = model_->services[service];
    for (std::uint32_t row = spec.first_row; row < spec.first_row + spec.most; ++row) {
      const Phase phase = replicas_[row].phase;
      if (phase == Phase::gone) continue;
      if (phase != Phase::held_back) stop(kernel, JobId{row});
      kernel.retire(JobId{row});
    }
  }

  // A replica of its service ran lately on each of its nodes.
  template <class Kernel>
  [[nodiscard]] bool warm(Kernel& kernel, JobId job) const {
    const std::map<NodeId, Time>& until = runs_[replicas_[index(job)].service].warm_until;
    const std::vector<NodeId> nodes = kernel.state.occupancy.nodes_of(job);
    return std::all_of(nodes.begin(), nodes.end(), [&until, &kernel](NodeId node) {
      const auto known = until.find(node);
      return known != until.end() && known->second >= kernel.state.now;
    });
  }
  template <class Kernel>
  void keep_warm(Kernel& kernel, JobId job) {
    const Replica& replica = replicas_[index(job)];
    if (spec_of(replica).keep_warm == Time{}) return;
    for (const NodeId node : kernel.state.occupancy.nodes_of(job)) {
      runs_[replica.service].warm_until[node] = later_by(kernel.state.now, spec_of(replica).keep_warm);
    }
  }

  const ServiceModel* model_ = nullptr;
  std::vector<Run> runs_;               // by service
  std::vector<Replica> replicas_;       // by row of the table
  std::vector<Time> asked_;             // likewise
  std::vector<std::uint32_t> serving_;  // rows of the replicas that serve, ascending
  std::uint32_t held_back_ = 0;
};

}  // namespace detail
}  // namespace gpusched
