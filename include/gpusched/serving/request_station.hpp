// SPDX-License-Identifier: Apache-2.0
/// RequestStation: requests one by one, the replicas of a service that serve them, and the queues between.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "gpusched/core/id_set.hpp"
#include "gpusched/core/rng.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/serving/event_heap.hpp"
#include "gpusched/serving/request_router.hpp"
#include "gpusched/serving/service_load.hpp"
#include "gpusched/serving/service_times.hpp"

namespace gpusched {

/// A request to a station.
struct StationRequest {
  std::uint64_t id = 0;       ///< the caller's
  Time arrival{};             ///< when its user sent it; its timeout counts from here
  std::uint64_t session = 0;  ///< the caller's, for RoutingRule::session
  Time service{-1};  ///< how long a replica of speed 1 serves it; below 0: as ServiceTimes say, kept from then on
};

/// What became of a request. arrival <= queued <= begun <= ended.
struct StationOutcome {
  /// How it ended.
  enum class End : std::uint8_t {
    completed,  ///< served
    dropped,    ///< the queue was full when it came
    timed_out,  ///< it still waited at arrival + timeout
  };
  StationRequest request;     ///< as submitted, with its service time
  Time queued{};              ///< when it was submitted
  Time begun{};               ///< when its service began; where it never did, `ended`
  Time ended{};               ///< when it left
  std::int32_t replica = -1;  ///< which one served it; -1: none
  End end = End::completed;   ///< how it ended
};

/// What a station is given.
struct StationOptions {
  RoutingRule routing = RoutingRule::shared_queue;  ///< how requests find replicas
  ServiceTimes service = {};                        ///< how long service takes
  std::int32_t at_once = 1;                         ///< requests (or batches) that a replica serves at the same time
  std::int64_t queue_limit =
      std::numeric_limits<std::int64_t>::max();  ///< most that wait in one queue; more are dropped
  Time timeout = Time::max();                    ///< longest wait from arrival to the begin of service
  std::uint64_t seed = 0;                        ///< of drawn service times
};

/// Sums of a station's life: submitted = completed + dropped + timed_out + returned + waiting + in service.
struct StationCounts {
  std::int64_t submitted = 0;   ///< requests that came
  std::int64_t completed = 0;   ///< served
  std::int64_t dropped = 0;     ///< refused
  std::int64_t timed_out = 0;   ///< gave up
  std::int64_t returned = 0;    ///< given back by remove()
  std::int64_t service_us = 0;  ///< of the completed ones: from begin to end, summed
  std::int64_t busy_us = 0;     ///< integral of the requests in service
  std::int64_t held_us = 0;     ///< integral of the requests in service and waiting

  friend bool operator==(const StationCounts&, const StationCounts&) = default;  ///< of all sums
};

/// The requests of one service. A value: a copy goes on by itself. Inside a loop of events: advance() to next_time()
/// while that is before the loop's next instant, then add, drain, remove and submit at that instant. At an instant
/// services end first, in the order in which they began; then those give up whose time is over; then batches begin that
/// waited for more; then what the caller does.
class RequestStation {
 public:
  /// Without replicas: requests wait.
  explicit RequestStation(StationOptions options = {})
      : options_(std::move(options)), router_(options_.routing), rng_(Rng(options_.seed).split("service times")) {}

  /// A replica begins; `speed` times as fast as one of speed 1. Its number: 0, 1, 2 ... Where requests waited for want
  /// of any replica it takes all of them.
  std::int32_t add_replica(Time now, double speed = 1) {
    advance(now);
    const auto number = static_cast<std::int32_t>(replicas_.size());
    replicas_.push_back({.speed = speed, .takes = true});
    accepting_.push_back(number);
    if (replicas_.size() > free_size_) grow_free();
    free_.insert(number);
    if (router_.rule() != RoutingRule::shared_queue) route_waiting(now);
    serve_all(now);
    drop_stale();
    return number;
  }
  /// A replica takes no more requests, ends those that it serves, and hands those that wait for it to others.
  void drain(std::int32_t number, Time now) {
    advance(now);
    Replica& replica = replicas_[number];
    if (!replica.takes) return;
    replica.takes = false;
    free_.erase(number);
    accepting_.erase(std::lower_bound(accepting_.begin(), accepting_.end(), number));
    const Queue moved = replica.queue;
    replica.queue = {};
    std::vector<std::uint32_t> slots = slots_of(moved);
    waiting_ -= moved.count;
    for (const std::uint32_t slot : slots) route(slot, now);
    drop_stale();
  }
  /// A replica ends at once. Returns the requests that it served and, where it has a queue of its own and was not
  /// drained, those that waited for it, each in order; the caller submits them again or gives them up.
  std::vector<StationRequest> remove(std::int32_t number, Time now) {
    advance(now);
    Replica& replica = replicas_[number];
    std::vector<std::uint32_t> slots = slots_of(replica.served);
    in_service_ -= static_cast<std::int64_t>(slots.size());
    const std::vector<std::uint32_t> queued = slots_of(replica.queue);
    waiting_ -= static_cast<std::int64_t>(queued.size());
    slots.insert(slots.end(), queued.begin(), queued.end());
    if (replica.takes) {
      accepting_.erase(std::lower_bound(accepting_.begin(), accepting_.end(), number));
      free_.erase(number);
    }
    replica = {};
    std::vector<StationRequest> left;
    for (const std::uint32_t slot : slots) {
      left.push_back(records_[slot].request);
      release(slot);
    }
    counts_.returned += static_cast<std::int64_t>(left.size());
    drop_stale();
    return left;
  }
  /// A request comes.
  void submit(const StationRequest& request, Time now) {
    advance(now);
    ++counts_.submitted;
    const std::uint32_t slot = take_slot();
    Record& record = records_[slot];
    record.request = request;
    record.queued = now;
    if (request.service.us < 0 && options_.service.kind != ServiceTimes::Kind::by_batch) {
      record.request.service = options_.service.draw(rng_);
    }
    const Time last = later_by(request.arrival, options_.timeout);
    if (last != Time::max()) plan(gives_up, std::max(last, now), slot);
    route(slot, now);
    drop_stale();
  }

  /// When something happens next; Time::max(): nothing by itself.
  [[nodiscard]] Time next_time() const { return first_time(planned_); }
  /// Everything until `now`, that of `now` included. Precondition: `now` does not fall.
  void advance(Time now) {
    for (Time next = next_time(); next <= now; next = next_time()) {
      const std::size_t kind = first_due(planned_, next);
      const Event event = planned_[kind].take();
      if (records_[event.slot].generation != event.generation) continue;
      tick(next);
      if (kind == service_ends) end_service(event.slot, next);
      if (kind == gives_up) leave(event.slot, next, StationOutcome::End::timed_out);
      if (kind == batch_due) serve_queue(records_[event.slot].replica, next);
    }
    drop_stale();
    tick(now);
  }
  /// Requests that left since clear_done(), in the order in which they did.
  [[nodiscard]] std::span<const StationOutcome> done() const { return done_; }
  /// Forgets them.
  void clear_done() { done_.clear(); }

  [[nodiscard]] std::int64_t waiting() const { return waiting_; }        ///< requests that wait, in all queues
  [[nodiscard]] std::int64_t in_service() const { return in_service_; }  ///< requests that are served
  [[nodiscard]] const StationCounts& counts() const { return counts_; }  ///< sums until the last call that tells a time
  [[nodiscard]] std::span<const std::int32_t> accepting() const { return accepting_; }  ///< replicas that take requests
  /// Requests that a replica serves and that wait for it.
  [[nodiscard]] std::int64_t load(std::int32_t replica) const {
    return replicas_[replica].served.count + replicas_[replica].queue.count;
  }
  /// What an autoscaler is told at `now`, the instant of the last call that tells one.
  [[nodiscard]] ServiceLoad service_load(Time now, std::int32_t starting) const {
    return {.now = now,
            .ready = static_cast<std::int32_t>(accepting_.size()),
            .starting = starting,
            .in_flight = in_service_,
            .queued = waiting_,
            .arrived = counts_.submitted,
            .held_us = counts_.held_us,
            .mean_service_s =
                counts_.completed == 0 ? 0 : to_seconds({counts_.service_us}) / static_cast<double>(counts_.completed)};
  }
  /// Whether requests are conserved and no replica is idle while something that it may serve waits. O(requests).
  [[nodiscard]] bool consistent() const {
    std::int64_t served = 0, queued = shared_.count;
    for (std::size_t i = 0; i < replicas_.size(); ++i) {
      const Replica& replica = replicas_[i];
      served += replica.served.count;
      queued += replica.queue.count;
      if (length(replica.served) != replica.served.count || length(replica.queue) != replica.queue.count) return false;
      if (replica.services > options_.at_once || (replica.services == 0) != (replica.served.count == 0)) return false;
      if (!replica.takes || replica.services == options_.at_once) continue;
      const Queue& queue = router_.rule() == RoutingRule::shared_queue ? shared_ : replica.queue;
      if (queue.count > 0 && is_due(queue, now_)) return false;
    }
    return served == in_service_ && queued == waiting_ && length(shared_) == shared_.count &&
           counts_.submitted ==
               counts_.completed + counts_.dropped + counts_.timed_out + counts_.returned + waiting_ + in_service_;
  }

 private:
  // A list of records by `next` and `before`, in order.
  struct Queue {
    std::uint32_t first = no_index, last = no_index;
    std::int64_t count = 0;
  };
  struct Record {
    StationRequest request;
    Time queued{}, joined{}, begun{};  // joined: its present queue
    std::uint32_t before = no_index, next = no_index;
    std::uint32_t batch_next = no_index;  // of those that are served together
    std::uint32_t generation = 0;         // raised when the slot is free or its service or wait is over
    std::int32_t replica = -1;            // that serves it or for which it waits; -1: the shared queue
    bool is_served = false;
  };
  struct Replica {
    double speed = 1;
    bool takes = false;
    std::int32_t services = 0;  // requests or batches at once
    Queue queue = {}, served = {};
  };
  // Of events, in their order at an instant.
  enum Kind : std::uint8_t { service_ends, gives_up, batch_due };
  struct Event {
    std::uint32_t slot, generation;
  };

  void tick(Time now) {
    const std::int64_t span = (now - now_).us;
    counts_.busy_us += in_service_ * span;
    counts_.held_us += (in_service_ + waiting_) * span;
    now_ = now;
  }
  void plan(Kind kind, Time at, std::uint32_t slot) { planned_[kind].push(at, {slot, records_[slot].generation}); }
  // Events of records that went are no events: next_time() must not tell them.
  void drop_stale() {
    for (EventHeap<Event>& heap : planned_) {
      while (!heap.empty() && records_[heap.front().slot].generation != heap.front().generation) heap.take();
    }
  }
  std::uint32_t take_slot() {
    if (free_slots_.empty()) {
      records_.emplace_back();
      return static_cast<std::uint32_t>(records_.size() - 1);
    }
    const std::uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
  }
  void release(std::uint32_t slot) {
    ++records_[slot].generation;
    records_[slot].is_served = false;
    free_slots_.push_back(slot);
  }
  void append(Queue& queue, std::uint32_t slot) {
    Record& record = records_[slot];
    record.before = queue.last;
    record.next = no_index;
    (queue.last == no_index ? queue.first : records_[queue.last].next) = slot;
    queue.last = slot;
    ++queue.count;
  }
  void unlink(Queue& queue, std::uint32_t slot) {
    const Record& record = records_[slot];
    (record.before == no_index ? queue.first : records_[record.before].next) = record.next;
    (record.next == no_index ? queue.last : records_[record.next].before) = record.before;
    --queue.count;
  }
  [[nodiscard]] std::vector<std::uint32_t> slots_of(const Queue& queue) const {
    std::vector<std::uint32_t> slots;
    for (std::uint32_t slot = queue.first; slot != no_index; slot = records_[slot].next) slots.push_back(slot);
    return slots;
  }
  [[nodiscard]] std::int64_t length(const Queue& queue) const {
    return static_cast<std::int64_t>(slots_of(queue).size());
  }
  void grow_free() {
    free_size_ = std::max<std::size_t>(64, 2 * free_size_);
    IdSet grown(static_cast<std::uint32_t>(free_size_));
    for (const std::int32_t number : accepting_) {
      if (replicas_[number].services < options_.at_once) grown.insert(number);
    }
    free_ = grown;
  }
  Queue& queue_of(std::int32_t replica) { return replica < 0 ? shared_ : replicas_[replica].queue; }

  // Puts a request into a queue, or into service at once, or drops it.
  void route(std::uint32_t slot, Time now) {
    Record& record = records_[slot];
    record.joined = now;
    record.replica =
        router_.rule() == RoutingRule::shared_queue
            ? -1
            : router_.choose(accepting_, record.request.session, [this](std::int32_t r) { return load(r); });
    Queue& queue = queue_of(record.replica);
    append(queue, slot);
    ++waiting_;
    const std::uint32_t generation = record.generation;
    if (options_.service.kind == ServiceTimes::Kind::by_batch) {
      plan(batch_due, later_by(now, options_.service.longest_delay), slot);
    }
    serve_queue(record.replica, now);
    const bool waits = records_[slot].generation == generation && !records_[slot].is_served;
    if (waits && queue_of(records_[slot].replica).count > options_.queue_limit)
      leave(slot, now, StationOutcome::End::dropped);
  }
  // Those that came when no replica took requests.
  void route_waiting(Time now) {
    const std::vector<std::uint32_t> slots = slots_of(shared_);
    waiting_ -= shared_.count;
    shared_ = {};
    for (const std::uint32_t slot : slots) route(slot, now);
  }
  void serve_all(Time now) {
    if (router_.rule() == RoutingRule::shared_queue) serve_shared(now);
  }
  void serve_shared(Time now) {
    while (shared_.count > 0 && !free_.empty() && is_due(shared_, now)) {
      begin(static_cast<std::int32_t>(free_.next(0)), shared_, now);
    }
  }
  void serve(std::int32_t number, Time now) {
    Replica& replica = replicas_[number];
    while (replica.queue.count > 0 && replica.services < options_.at_once && is_due(replica.queue, now)) {
      begin(number, replica.queue, now);
    }
  }
  // Whether the head of a queue that has one may be served now: not while its batch waits for more.
  [[nodiscard]] bool is_due(const Queue& queue, Time now) const {
    return options_.service.kind != ServiceTimes::Kind::by_batch || queue.count >= options_.service.most_in_batch() ||
           now >= later_by(records_[queue.first].joined, options_.service.longest_delay);
  }
  void begin(std::int32_t number, Queue& queue, Time now) {
    Replica& replica = replicas_[number];
    const auto size = static_cast<std::int32_t>(std::min<std::int64_t>(queue.count, options_.service.most_in_batch()));
    const std::uint32_t head = queue.first;
    const Time service = options_.service.kind == ServiceTimes::Kind::by_batch ? options_.service.of_batch(size)
                                                                               : records_[head].request.service;
    std::uint32_t last = no_index;
    for (std::int32_t i = 0; i < size; ++i) {
      const std::uint32_t slot = queue.first;
      unlink(queue, slot);
      append(replica.served, slot);
      Record& record = records_[slot];
      ++record.generation;
      record.begun = now;
      record.replica = number;
      record.is_served = true;
      record.batch_next = no_index;
      if (last != no_index) records_[last].batch_next = slot;
      last = slot;
    }
    waiting_ -= size;
    in_service_ += size;
    if (++replica.services == options_.at_once) free_.erase(number);
    const Time span = replica.speed == 1
                          ? service
                          : Time{static_cast<std::int64_t>(static_cast<double>(service.us) / replica.speed + 0.5)};
    plan(service_ends, later_by(now, span), head);
  }
  void end_service(std::uint32_t head, Time now) {
    const std::int32_t number = records_[head].replica;
    Replica& replica = replicas_[number];
    for (std::uint32_t slot = head; slot != no_index;) {
      const std::uint32_t next = records_[slot].batch_next;
      unlink(replica.served, slot);
      --in_service_;
      counts_.service_us += (now - records_[slot].begun).us;
      finish(slot, now, StationOutcome::End::completed);
      slot = next;
    }
    --replica.services;
    if (!replica.takes) return;
    free_.insert(number);
    if (router_.rule() == RoutingRule::shared_queue) {
      serve_shared(now);
    } else {
      serve(number, now);
    }
  }
  void serve_queue(std::int32_t replica, Time now) {
    if (replica < 0) {
      serve_shared(now);
    } else {
      serve(replica, now);
    }
  }
  // From its queue.
  void leave(std::uint32_t slot, Time now, StationOutcome::End end) {
    unlink(queue_of(records_[slot].replica), slot);
    --waiting_;
    records_[slot].begun = now;
    records_[slot].replica = -1;
    finish(slot, now, end);
  }
  void finish(std::uint32_t slot, Time now, StationOutcome::End end) {
    Record& record = records_[slot];
    done_.push_back({record.request, record.queued, record.begun, now, record.replica, end});
    ++(end == StationOutcome::End::completed ? counts_.completed
       : end == StationOutcome::End::dropped ? counts_.dropped
                                             : counts_.timed_out);
    release(slot);
  }

  StationOptions options_;
  RequestRouter router_;
  Rng rng_;
  std::vector<Record> records_;  // by slot
  std::vector<std::uint32_t> free_slots_;
  std::vector<Replica> replicas_;  // by number
  std::vector<std::int32_t> accepting_;
  IdSet free_;  // of those: with room for a service
  std::size_t free_size_ = 0;
  Queue shared_;
  std::array<EventHeap<Event>, 3> planned_;  // by kind
  std::int64_t waiting_ = 0, in_service_ = 0;
  Time now_{};
  StationCounts counts_;
  std::vector<StationOutcome> done_;
};

}  // namespace gpusched
