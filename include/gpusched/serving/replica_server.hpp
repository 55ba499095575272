// SPDX-License-Identifier: Apache-2.0
/// One replica and the requests that were sent to it: of fixed times of service, or an LLM engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "gpusched/core/config.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/data/rate.hpp"
#include "gpusched/serving/llm_replica.hpp"
#include "gpusched/serving/service_model.hpp"

namespace gpusched::detail {

/// What happened at a replica while it was advanced.
struct ServerNews {
  /// A request that is served from now on.
  struct Begin {
    std::uint32_t request = 0;  ///< its number
    Time at{};                  ///< when
  };
  /// One that is answered now.
  struct End {
    std::uint32_t request = 0;       ///< its number
    Time first_token = Time::max();  ///< of an LLM engine
  };
  std::vector<Begin> begun;  ///< by time
  std::vector<End> ended;    ///< likewise
};

/// A replica that serves so many requests beside each other, or a batch of them, for known times (ServiceSpec), first
/// come first served from a queue of its own. What waits stands by arrival. It begins nothing while it stands still.
class ReplicaServer {
 public:
  /// A request that comes when a place is freed finds it taken by who waited.
  static constexpr bool arrivals_first = false;

  /// Borrows `service`, which begins at `begin`. It stands still.
  ReplicaServer(const ServiceSpec& service, Time begin) : service_(&service), begin_(begin) {}

  /// Its speed from now on.
  void set_rate(RatePpm rate, Time now) {
    for (Piece& piece : pieces_) {
      piece.left = std::max(piece.left - work_done(rate_, now - piece.since), Time{});
      piece.since = now;
      piece.end = later_by(now, time_needed(rate, piece.left));
    }
    std::make_heap(pieces_.begin(), pieces_.end(), ends_later);
    rate_ = rate;
  }
  /// A request of that number is sent to it.
  void submit(std::uint32_t number, const ServiceRequest& request, Time) {
    waiting_.insert(place_of(number), {number, begin_ + request.arrival, request.work});
  }
  /// One that waits leaves.
  void withdraw(std::uint32_t number) { waiting_.erase(place_of(number)); }
  /// When it is to be advanced next; Time::max(): never. May lie before the present.
  [[nodiscard]] Time next_time() const {
    Time next = pieces_.empty() ? Time::max() : pieces_.front().end;
    if (next > end_of_time) next = Time::max();
    if (waiting_.empty() || !has_room() || rate_ == 0) return next;
    const Time oldest = waiting_.front().arrival;
    const bool waits = waiting_.size() < service_->batches.size();
    return std::min(next, waits ? later_by(oldest, service_->batch_delay) : oldest);
  }
  /// Ends and begins what is due. Precondition: no time before `now` was passed over.
  void advance(Time now, ServerNews& news) {
    while (next_time() <= now) {
      // What takes no time ends before another one begins.
      if (!pieces_.empty() && pieces_.front().end <= now) {
        end_first(news);
      } else {
        begin(now, news);
      }
    }
  }
  /// It is lost: all its requests, in any order.
  std::vector<std::uint32_t> stop() {
    std::vector<std::uint32_t> all = take_waiting();
    for (const Piece& piece : pieces_) all.insert(all.end(), piece.requests.begin(), piece.requests.end());
    pieces_.clear();
    return all;
  }
  /// Those that wait, which it forgets.
  std::vector<std::uint32_t> take_waiting() {
    std::vector<std::uint32_t> all;
    for (const Waiting& one : std::exchange(waiting_, {})) all.push_back(one.number);
    return all;
  }

  /// Requests, or batches, that it serves.
  [[nodiscard]] std::uint32_t busy() const { return static_cast<std::uint32_t>(pieces_.size()); }
  /// Requests that it serves or that wait.
  [[nodiscard]] std::size_t load() const {
    std::size_t sum = waiting_.size();
    if (service_->batches.empty()) return sum + pieces_.size();
    for (const Piece& piece : pieces_) sum += piece.requests.size();
    return sum;
  }
  /// It could begin another one.
  [[nodiscard]] bool has_room() const { return busy() < (service_->batches.empty() ? service_->at_once : 1); }

 private:
  struct Waiting {
    std::uint32_t number;
    Time arrival, work;
  };
  // A request, or a batch, in service.
  struct Piece {
    Time since{}, left{}, end{};  // work left at `since`
    std::vector<std::uint32_t> requests = {};
  };
  static bool ends_later(const Piece& a, const Piece& b) { return a.end > b.end; }

  // The first that waits with that number or a later one.
  std::deque<Waiting>::iterator place_of(std::uint32_t number) {
    return std::lower_bound(waiting_.begin(), waiting_.end(), number,
                            [](const Waiting& one, std::uint32_t of) { return one.number < of; });
  }

  void end_first(ServerNews& news) {
    std::pop_heap(pieces_.begin(), pieces_.end(), ends_later);
    for (const std::uint32_t request : pieces_.back().requests) news.ended.push_back({.request = request});
    pieces_.pop_back();
  }

  void begin(Time now, ServerNews& news) {
    const std::vector<Time>& batches = service_->batches;
    const std::size_t size = batches.empty() ? 1 : std::min(waiting_.size(), batches.size());
    const auto last = waiting_.begin() + static_cast<std::ptrdiff_t>(size);
    Piece piece{.since = now, .left = batches.empty() ? waiting_.front().work : batches[size - 1]};
    for (auto one = waiting_.begin(); one != last; ++one) piece.requests.push_back(one->number);
    waiting_.erase(waiting_.begin(), last);
    piece.end = later_by(now, time_needed(rate_, piece.left));
    for (const std::uint32_t request : piece.requests) news.begun.push_back({request, now});
    pieces_.push_back(std::move(piece));
    std::push_heap(pieces_.begin(), pieces_.end(), ends_later);
  }

  const ServiceSpec* service_;
  Time begin_;
  RatePpm rate_ = 0;
  std::deque<Waiting> waiting_;  // by number
  std::vector<Piece> pieces_;    // a heap, the earliest end first
};

/// An LLM engine (LlmReplica) by numbers of requests. What is sent to it joins the end of its queue; nobody but the
/// engine itself learns how long an answer is, and it when the answer ends. Logged tokens of 0 count as 1.
class LlmServer {
 public:
  /// A step takes the requests that came until it begins.
  static constexpr bool arrivals_first = true;

  /// Borrows `service`, which has an LLM engine and begins at `begin`. It stands still.
  LlmServer(const ServiceSpec& service, Time begin) : begin_(begin), engine_(service.llm->limits, service.llm->times) {
    engine_.set_rate(0, begin);
  }

  /// Its speed from the next step on.
  void set_rate(RatePpm rate, Time now) { engine_.set_rate(rate, now); }
  /// A request of that number is sent to it. Precondition: the cache holds it.
  void submit(std::uint32_t number, const ServiceRequest& request, Time now) {
    const bool fits = engine_.submit(llm_request(request, begin_, number), now);
    GPUSCHED_ASSERT(fits, "a request is larger than the cache");
  }
  /// One that waits leaves.
  void withdraw(std::uint32_t request) { engine_.withdraw(request); }
  /// When it is to be advanced next; Time::max(): never.
  [[nodiscard]] Time next_time() const { return engine_.next_time(); }
  /// Ends and begins steps until `now`.
  void advance(Time now, ServerNews& news) {
    engine_.advance(now);
    for (const LlmBegin& begin : engine_.begun()) {
      news.begun.push_back({static_cast<std::uint32_t>(begin.id), begin.at});
    }
    for (const LlmOutcome& outcome : engine_.done()) {
      news.ended.push_back({static_cast<std::uint32_t>(outcome.request.id), outcome.first_token});
    }
    engine_.clear_done();
  }
  /// It is lost: all its requests, in any order.
  std::vector<std::uint32_t> stop() { return numbers(engine_.stop()); }
  /// Those of which nothing was computed yet, which it forgets.
  std::vector<std::uint32_t> take_waiting() { return numbers(engine_.take_waiting()); }

  /// Requests of which it has begun to compute something, those preempted since included.
  [[nodiscard]] std::uint32_t busy() const { return static_cast<std::uint32_t>(engine_.in_work()); }
  /// All its requests.
  [[nodiscard]] std::size_t load() const { return static_cast<std::size_t>(engine_.running() + engine_.waiting()); }
  /// It holds fewer requests than may run.
  [[nodiscard]] bool has_room() const { return engine_.running() + engine_.waiting() < engine_.limits().sequences; }

 private:
  static std::vector<std::uint32_t> numbers(const std::vector<LlmRequest>& requests) {
    std::vector<std::uint32_t> all;
    for (const LlmRequest& request : requests) all.push_back(static_cast<std::uint32_t>(request.id));
    return all;
  }

  Time begin_;
  LlmReplica engine_;
};

}  // namespace gpusched::detail
