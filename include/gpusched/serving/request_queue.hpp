// SPDX-License-Identifier: Apache-2.0
/// RequestQueue: the requests of one service, in one queue before its replicas. It is moved through time from outside
/// and knows no cluster.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/rate.hpp"
#include "gpusched/serving/event_heap.hpp"
#include "gpusched/serving/service_load.hpp"
#include "gpusched/serving/service_model.hpp"

namespace gpusched {

/// Where a request is, or how it ended.
enum class RequestPhase : std::uint8_t {
  coming,     ///< it was not sent yet
  waiting,    ///< in the queue
  served,     ///< a replica works on it
  completed,  ///< it was answered
  dropped,    ///< its replica was lost
  timed_out,  ///< it waited for too long and left
};

/// One request's life.
struct RequestRecord {
  Time start = Time::max();                   ///< when it was served last; max(): never
  Time end = Time::max();                     ///< when it was answered, or left
  std::uint32_t replica = no_index;           ///< that served it last, from 0 on in its service
  std::uint32_t next = no_index;              ///< the next of its batch
  std::uint16_t retries = 0;                  ///< how often its replica was lost
  RequestPhase phase = RequestPhase::coming;  ///< now
};

/// How many requests there were so far.
struct RequestCounts {
  std::uint64_t injected = 0;   ///< that came
  std::uint64_t completed = 0;  ///< that were answered
  std::uint64_t dropped = 0;    ///< that were lost with a replica
  std::uint64_t timed_out = 0;  ///< that left unserved
  std::uint64_t waiting = 0;    ///< in the queue now
  std::uint64_t served = 0;     ///< being served now

  /// Every request that came is somewhere.
  [[nodiscard]] bool add_up() const { return injected == completed + dropped + timed_out + waiting + served; }
};

namespace detail {

/// First come, first served, by the free replica with the fewest requests, the lowest number among equals. At one
/// instant: ends of service, then timeouts, then arrivals. A request that could begin at the instant of its timeout
/// begins.
class RequestQueue {
 public:
  RequestQueue() = default;
  /// Borrows `service`; it begins at `begin`.
  RequestQueue(const ServiceSpec& service, Time begin)
      : service_(&service), begin_(begin), now_(begin), records_(service.requests.size()), servers_(service.most) {}

  /// When something happens next by itself; Time::max(): never.
  [[nodiscard]] Time next_time() const {
    Time next = ends_.time();
    if (coming_ < records_.size()) next = std::min(next, arrival(coming_));
    if (waiting_.empty()) return next;
    next = std::min(next, std::max(now_, leaves(waiting_.front())));
    if (!free_.empty()) next = std::min(next, batch_due());
    return next;
  }

  /// Lets all happen up to `t`, which does not fall.
  void advance_to(Time t) {
    for (Time next = next_time(); next <= t; next = next_time()) {
      pass_time(next);
      happen();
    }
    if (t > now_) pass_time(t);
  }

  /// A replica serves from now on. Precondition, here and below: advanced to the present.
  void open(std::uint32_t replica, RatePpm rate) {
    Server& server = servers_[replica];
    server = {.is_open = true, .accepts = true, .rate = rate, .places = std::move(server.places)};
    ++open_;
    offer(replica);
    serve();
  }
  /// It takes requests, or takes no more of them. Precondition: it is open.
  void accept(std::uint32_t replica, bool accepts) {
    withdraw(replica);
    servers_[replica].accepts = accepts;
    offer(replica);
    serve();
  }
  /// Its speed changes, that of what it serves included; 0: it stands still.
  void set_rate(std::uint32_t replica, RatePpm rate) {
    Server& server = servers_[replica];
    withdraw(replica);
    for (std::uint32_t place = 0; place < server.places.size(); ++place) {
      Piece& piece = server.places[place];
      if (piece.first == no_index) continue;
      settle(piece, server.rate);
      plan(replica, place, rate);
    }
    server.rate = rate;
    offer(replica);
    serve();
  }
  /// It is gone, and with it what it serves.
  void close(std::uint32_t replica) {
    Server& server = servers_[replica];
    withdraw(replica);
    for (Piece& piece : server.places) {
      for (std::uint32_t at = std::exchange(piece.first, no_index); at != no_index;) {
        const std::uint32_t next = std::exchange(records_[at].next, no_index);
        lose(at);
        at = next;
      }
      ++piece.generation;
    }
    server.is_open = server.accepts = false;
    server.busy = 0;
    --open_;
    serve();
  }

  [[nodiscard]] bool is_open(std::uint32_t replica) const { return servers_[replica].is_open; }
  [[nodiscard]] RatePpm rate(std::uint32_t replica) const { return servers_[replica].rate; }
  /// Requests, or batches, that a replica serves now.
  [[nodiscard]] std::uint32_t busy(std::uint32_t replica) const { return servers_[replica].busy; }
  /// No request is to come.
  [[nodiscard]] bool all_came() const { return coming_ == records_.size(); }
  /// And none is left.
  [[nodiscard]] bool over() const { return all_came() && counts_.waiting + counts_.served == 0; }

  [[nodiscard]] const RequestCounts& counts() const { return counts_; }
  [[nodiscard]] std::span<const RequestRecord> records() const { return records_; }
  [[nodiscard]] Time begin() const { return begin_; }
  /// Up to when it was moved.
  [[nodiscard]] Time now() const { return now_; }
  /// When a request comes.
  [[nodiscard]] Time arrival(std::uint32_t request) const { return begin_ + service_->requests[request].arrival; }
  /// Integral over time of the replicas that serve, in replica-microseconds.
  [[nodiscard]] std::int64_t open_us() const { return open_us_; }
  /// Integral of requests in the system, in request-microseconds.
  [[nodiscard]] std::int64_t held_us() const { return held_us_; }

  /// What an autoscaler is told. `starting`: replicas that are asked for or load.
  [[nodiscard]] ServiceLoad load(std::int32_t ready, std::int32_t starting) const {
    const double mean_s =
        served_ == 0 ? service_->mean_service_s : static_cast<double>(served_us_) / 1e6 / static_cast<double>(served_);
    return {.now = now_,
            .ready = ready,
            .starting = starting,
            .in_flight = static_cast<std::int64_t>(counts_.served),
            .queued = static_cast<std::int64_t>(counts_.waiting),
            .arrived = static_cast<std::int64_t>(counts_.injected),
            .held_us = held_us_,
            .mean_service_s = mean_s};
  }

 private:
  // What a place of a replica works on: a request, or the first of a batch.
  struct Piece {
    std::uint32_t first = no_index;
    std::uint32_t generation = 0;
    Time since{}, left{};  // work left at `since`
  };
  struct Server {
    bool is_open = false, accepts = false;
    RatePpm rate = 0;
    std::uint32_t busy = 0;
    std::vector<Piece> places = {};
  };
  struct End {
    std::uint32_t server, place, generation;
  };

  [[nodiscard]] bool batches() const { return !service_->batches.empty(); }
  [[nodiscard]] std::uint32_t places_of_server() const { return batches() ? 1 : service_->at_once; }
  [[nodiscard]] Time leaves(std::uint32_t request) const { return later_by(arrival(request), service_->timeout); }
  // When the batch of those that wait begins at a free replica.
  [[nodiscard]] Time batch_due() const {
    if (waiting_.size() >= service_->batches.size()) return now_;
    return std::max(now_, later_by(arrival(waiting_.front()), service_->batch_delay));
  }

  void pass_time(Time t) {
    const std::int64_t span = (t - now_).us;
    held_us_ += static_cast<std::int64_t>(counts_.waiting + counts_.served) * span;
    open_us_ += static_cast<std::int64_t>(open_) * span;
    now_ = t;
  }

  void happen() {
    bool freed = false;
    while (ends_.time() == now_) {
      const End end = ends_.take();
      if (servers_[end.server].places[end.place].generation != end.generation) continue;
      complete(end.server, end.place);
      freed = true;
    }
    if (freed || !waiting_.empty()) serve();
    while (!waiting_.empty() && leaves(waiting_.front()) <= now_) leave(waiting_.front());
    while (coming_ < records_.size() && arrival(coming_) == now_) {
      records_[coming_].phase = RequestPhase::waiting;
      waiting_.push_back(coming_++);
      ++counts_.injected;
      ++counts_.waiting;
    }
    serve();
  }

  // As many as there are places for, and batches that are due.
  void serve() {
    while (!waiting_.empty() && !free_.empty()) {
      if (batches() && batch_due() > now_) return;
      const std::uint32_t chosen = free_.begin()->second;
      free_.erase(free_.begin());
      begin_piece(chosen);
      offer(chosen);
    }
  }

  void begin_piece(std::uint32_t replica) {
    Server& server = servers_[replica];
    if (server.places.size() < places_of_server()) server.places.resize(places_of_server());
    const auto free = std::find_if(server.places.begin(), server.places.end(),
                                   [](const Piece& piece) { return piece.first == no_index; });
    const std::size_t size = batches() ? std::min(waiting_.size(), service_->batches.size()) : 1;
    free->first = waiting_.front();
    std::uint32_t last = no_index;
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint32_t request = waiting_.front();
      waiting_.pop_front();
      RequestRecord& record = records_[request];
      record.start = now_;
      record.replica = replica;
      record.phase = RequestPhase::served;
      record.next = no_index;
      if (last != no_index) records_[last].next = request;
      last = request;
    }
    counts_.waiting -= size;
    counts_.served += size;
    ++server.busy;
    free->since = now_;
    free->left = batches() ? service_->batches[size - 1] : service_->requests[free->first].work;
    plan(replica, static_cast<std::uint32_t>(free - server.places.begin()), server.rate);
  }

  void settle(Piece& piece, RatePpm rate) const {
    piece.left = std::max(piece.left - work_done(rate, now_ - piece.since), Time{});
    piece.since = now_;
  }

  void plan(std::uint32_t replica, std::uint32_t place, RatePpm rate) {
    Piece& piece = servers_[replica].places[place];
    ++piece.generation;
    const Time end = later_by(piece.since, time_needed(rate, piece.left));
    if (end > end_of_time) return;
    ends_.push(end, {replica, place, piece.generation});
  }

  void complete(std::uint32_t replica, std::uint32_t place) {
    Server& server = servers_[replica];
    withdraw(replica);
    Piece& piece = server.places[place];
    ++piece.generation;
    --server.busy;
    for (std::uint32_t at = std::exchange(piece.first, no_index); at != no_index;) {
      RequestRecord& record = records_[at];
      record.end = now_;
      record.phase = RequestPhase::completed;
      served_us_ += (now_ - record.start).us;
      ++served_;
      ++counts_.completed;
      --counts_.served;
      at = std::exchange(record.next, no_index);
    }
    offer(replica);
  }

  void lose(std::uint32_t request) {
    RequestRecord& record = records_[request];
    --counts_.served;
    if (record.retries < 0xffff) ++record.retries;
    if (service_->lost == LostRequests::drop) {
      record.phase = RequestPhase::dropped;
      record.end = now_;
      ++counts_.dropped;
      return;
    }
    record.phase = RequestPhase::waiting;
    ++counts_.waiting;
    waiting_.insert(std::lower_bound(waiting_.begin(), waiting_.end(), request), request);
  }

  void leave(std::uint32_t request) {
    waiting_.pop_front();
    records_[request].phase = RequestPhase::timed_out;
    records_[request].end = now_;
    --counts_.waiting;
    ++counts_.timed_out;
  }

  // Among the replicas with a free place, and out of them.
  void offer(std::uint32_t replica) {
    const Server& server = servers_[replica];
    if (server.accepts && server.rate > 0 && server.busy < places_of_server()) free_.insert({server.busy, replica});
  }
  void withdraw(std::uint32_t replica) { free_.erase({servers_[replica].busy, replica}); }

  const ServiceSpec* service_ = nullptr;
  Time begin_{}, now_{};
  std::uint32_t coming_ = 0;            // the next request
  std::vector<RequestRecord> records_;  // by request
  std::deque<std::uint32_t> waiting_;   // ascending
  std::vector<Server> servers_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> free_;  // (busy, replica) of those that can take more
  EventHeap<End> ends_;
  std::uint32_t open_ = 0;
  RequestCounts counts_;
  std::int64_t held_us_ = 0, open_us_ = 0, served_us_ = 0, served_ = 0;
};

}  // namespace detail
}  // namespace gpusched
