// SPDX-License-Identifier: Apache-2.0
/// LlmStation: the requests of a service whose replicas are LLM engines.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/serving/event_heap.hpp"
#include "gpusched/serving/llm_replica.hpp"
#include "gpusched/serving/request_router.hpp"
#include "gpusched/serving/service_load.hpp"

namespace gpusched {

/// What an LLM station is given.
struct LlmStationOptions {
  /// How requests find replicas. shared_queue: a replica that holds fewer requests than may run takes the head, that
  /// with the fewest first; after the end of a step it comes into the step after the one that begins then.
  RoutingRule routing = RoutingRule::least_loaded;
  std::int64_t queue_limit = std::numeric_limits<std::int64_t>::max();  ///< most that wait in one queue, those included
                                                                        ///< that the next step takes; more are dropped
  Time timeout = Time::max();  ///< longest wait from arrival to the begin of the first step
};

/// Sums of a station's life: submitted = completed + dropped + timed_out + returned + waiting + running.
struct LlmStationCounts {
  std::int64_t submitted = 0;   ///< requests that came
  std::int64_t completed = 0;   ///< answered
  std::int64_t dropped = 0;     ///< the queue was full, or no cache holds it
  std::int64_t timed_out = 0;   ///< gave up
  std::int64_t returned = 0;    ///< given back by remove()
  std::int64_t service_us = 0;  ///< of the completed ones: from the first step to the last token, summed
  std::int64_t held_us = 0;     ///< integral of the requests here

  friend bool operator==(const LlmStationCounts&, const LlmStationCounts&) = default;  ///< of all sums
};

/// The requests of one service. A value that borrows its replicas' step times; in a loop of events as LlmReplica: all
/// that is done at an instant, then advance() once for it. next_time() and advance() are O(replicas) an event.
class LlmStation {
 public:
  /// Without replicas: requests wait.
  explicit LlmStation(LlmStationOptions options = {}) : options_(options), router_(options.routing) {}

  /// A replica begins. Its number: 0, 1, 2 ... It takes what waited for want of any. `times` must outlive this.
  std::int32_t add_replica(Time now, const LlmLimits& limits, const LlmStepTimes& times) {
    settle(now);
    const auto number = static_cast<std::int32_t>(replicas_.size());
    replicas_.emplace_back(limits, times);
    accepting_.push_back(number);
    std::deque<LlmRequest> waited;
    std::swap(waited, pending_);
    for (const LlmRequest& request : waited) route(request, now);
    return number;
  }
  /// A replica takes no more requests and ends those that it has begun; others of its own go to other replicas.
  void drain(std::int32_t number, Time now) {
    settle(now);
    if (!stop_accepting(number)) return;
    for (const LlmRequest& request : replicas_[number].take_waiting()) route(request, now);
  }
  /// A replica ends at once. Returns its requests, those that ran first; the caller submits them again or gives them
  /// up.
  std::vector<LlmRequest> remove(std::int32_t number, Time now) {
    settle(now);
    stop_accepting(number);
    collect(number);
    const std::vector<LlmRequest> left = replicas_[number].stop();
    counts_.returned += static_cast<std::int64_t>(left.size());
    return left;
  }
  /// A request comes. False: it was dropped.
  bool submit(const LlmRequest& request, Time now) {
    settle(now);
    ++counts_.submitted;
    return route(request, now);
  }
  /// When something happens next; Time::max(): nothing by itself.
  [[nodiscard]] Time next_time() const {
    Time next = Time::max();
    for (const LlmReplica& replica : replicas_) next = std::min(next, replica.next_time());
    return std::min(next, timeouts_.time());
  }
  /// Everything until `now`, that of `now` included. Precondition: `now` does not fall.
  void advance(Time now) {
    for (Time next = next_time(); next <= now; next = next_time()) {
      tick(next);
      for (std::int32_t number = 0; number < static_cast<std::int32_t>(replicas_.size()); ++number) {
        if (replicas_[number].next_time() > next) continue;
        replicas_[number].advance(next);
        collect(number);
      }
      pull(next);
      while (timeouts_.time() <= next) give_up_first();
      pull(next);  // where one gave up
    }
    tick(now);
  }
  /// Those answered since clear_done(), by time, then by replica.
  [[nodiscard]] std::span<const LlmOutcome> done() const { return done_; }
  /// Those that gave up since then, by time.
  [[nodiscard]] std::span<const LlmRequest> gave_up() const { return gave_up_; }
  /// Forgets both.
  void clear_done() {
    done_.clear();
    gave_up_.clear();
  }

  [[nodiscard]] const LlmStationCounts& counts() const { return counts_; }                          ///< sums
  [[nodiscard]] const LlmReplica& replica(std::int32_t number) const { return replicas_[number]; }  ///< of that number
  [[nodiscard]] std::span<const std::int32_t> accepting() const { return accepting_; }  ///< replicas that take requests
  /// Requests that run.
  [[nodiscard]] std::int64_t running() const {
    std::int64_t sum = 0;
    for (const LlmReplica& replica : replicas_) sum += replica.running();
    return sum;
  }
  /// Requests that wait, preempted ones too.
  [[nodiscard]] std::int64_t waiting() const {
    auto sum = static_cast<std::int64_t>(pending_.size());
    for (const LlmReplica& replica : replicas_) sum += replica.waiting();
    return sum;
  }
  /// What an autoscaler is told at `now`, the instant of the last call that tells one.
  [[nodiscard]] ServiceLoad service_load(Time now, std::int32_t starting) const {
    const double done = static_cast<double>(std::max<std::int64_t>(counts_.completed, 1));
    return {.now = now,
            .ready = static_cast<std::int32_t>(accepting_.size()),
            .starting = starting,
            .in_flight = running(),
            .queued = waiting(),
            .arrived = counts_.submitted,
            .held_us = counts_.held_us,
            .mean_service_s = to_seconds({counts_.service_us}) / done};
  }
  /// Whether requests are conserved here and in each replica, and none waits for a replica that could take it. Of the
  /// state after advance().
  [[nodiscard]] bool consistent() const {
    for (const LlmReplica& replica : replicas_) {
      if (!replica.consistent()) return false;
    }
    for (const std::int32_t number : accepting_) {
      if (!pending_.empty() && takes_head(replicas_[number])) return false;
    }
    return held_ == running() + waiting() &&
           counts_.submitted == counts_.completed + counts_.dropped + counts_.timed_out + counts_.returned + held_;
  }

 private:
  void tick(Time now) {
    counts_.held_us += held_ * (now - now_).us;
    now_ = now;
  }
  // All before `now`: the steps that begin at `now` wait for what else is done then.
  void settle(Time now) {
    if (now_ < now) advance(now - Time{1});
    tick(now);
  }
  bool stop_accepting(std::int32_t number) {
    const auto at = std::lower_bound(accepting_.begin(), accepting_.end(), number);
    if (at == accepting_.end() || *at != number) return false;
    accepting_.erase(at);
    return true;
  }
  void collect(std::int32_t number) {
    for (LlmOutcome outcome : replicas_[number].done()) {
      outcome.replica = number;
      counts_.service_us += (outcome.last_token - outcome.scheduled).us;
      ++counts_.completed;
      --held_;
      done_.push_back(outcome);
    }
    replicas_[number].clear_done();
  }
  // What became of it is counted, whether it came or moved.
  bool route(const LlmRequest& request, Time now) {
    recount();
    const bool kept = place(request, now);
    counts_.dropped += kept ? 0 : 1;
    recount();
    const Time last = later_by(request.arrival, options_.timeout);
    if (kept && last != Time::max()) timeouts_.push(std::max(last, now), request);
    return kept;
  }
  // The request whose time is over first, if it still waits.
  void give_up_first() {
    const LlmRequest request = timeouts_.take();
    const auto waits =
        std::find_if(pending_.begin(), pending_.end(), [&request](const LlmRequest& r) { return r.id == request.id; });
    bool found = waits != pending_.end();
    if (found) pending_.erase(waits);
    for (std::size_t i = 0; i < replicas_.size() && !found; ++i) found = replicas_[i].withdraw(request.id);
    if (!found) return;
    ++counts_.timed_out;
    --held_;
    gave_up_.push_back(request);
  }
  void recount() { held_ = running() + waiting(); }
  bool place(const LlmRequest& request, Time now) {
    const bool fits = accepting_.empty() ||
                      std::any_of(accepting_.begin(), accepting_.end(),
                                  [this, &request](std::int32_t number) { return replicas_[number].fits(request); });
    if (!fits) return false;
    if (router_.rule() == RoutingRule::shared_queue || accepting_.empty()) {
      if (static_cast<std::int64_t>(pending_.size()) >= options_.queue_limit) return false;
      pending_.push_back(request);
      pull(now);
      return true;
    }
    const std::int32_t number = router_.choose(accepting_, request.session, [this](std::int32_t r) { return load(r); });
    return replicas_[number].waiting() < options_.queue_limit && replicas_[number].submit(request, now);
  }
  [[nodiscard]] std::int64_t load(std::int32_t number) const {
    return replicas_[number].running() + replicas_[number].waiting();
  }
  [[nodiscard]] bool takes_head(const LlmReplica& replica) const {
    return replica.running() + replica.waiting() < replica.limits().sequences && replica.fits(pending_.front());
  }
  // The shared queue's head to the replica with the fewest requests of those that take it.
  void pull(Time now) {
    while (!pending_.empty()) {
      std::int32_t chosen = -1;
      for (const std::int32_t number : accepting_) {
        if (takes_head(replicas_[number]) && (chosen < 0 || load(number) < load(chosen))) chosen = number;
      }
      if (chosen < 0) return;
      replicas_[chosen].submit(pending_.front(), now);
      pending_.pop_front();
    }
  }

  LlmStationOptions options_;
  RequestRouter router_;
  std::vector<LlmReplica> replicas_;  // by number
  std::vector<std::int32_t> accepting_;
  std::deque<LlmRequest> pending_;  // the shared queue, or what came when no replica took requests
  std::int64_t held_ = 0;
  Time now_{};
  LlmStationCounts counts_;
  EventHeap<LlmRequest> timeouts_;  // those of requests that run are passed over
  std::vector<LlmOutcome> done_;
  std::vector<LlmRequest> gave_up_;
};

}  // namespace gpusched
