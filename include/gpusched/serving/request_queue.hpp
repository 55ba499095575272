// SPDX-License-Identifier: Apache-2.0
/// RequestQueue: the requests of one service, in one queue before its replicas. It is moved through time from outside
/// and knows no cluster.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/rate.hpp"
#include "gpusched/serving/event_heap.hpp"
#include "gpusched/serving/request_ledger.hpp"
#include "gpusched/serving/service_model.hpp"

namespace gpusched {

namespace detail {

/// First come, first served, by the free replica with the fewest requests, the lowest number among equals. At one
/// instant: ends of service, then timeouts, then arrivals. A request that could begin at the instant of its timeout
/// begins.
class RequestQueue : public RequestLedger {
 public:
  RequestQueue() = default;
  /// Borrows `service`; it begins at `begin`.
  RequestQueue(const ServiceSpec& service, Time begin) : RequestLedger(service, begin), servers_(service.most) {}

  /// When something happens next by itself; Time::max(): never.
  [[nodiscard]] Time next_time() const {
    Time next = std::min(ends_.time(), next_arrival());
    if (waiting_.empty() || is_held_) return next;
    next = std::min(next, std::max(now(), leaves(waiting_.front())));
    if (!free_.empty()) next = std::min(next, batch_due());
    return next;
  }

  /// Lets all happen up to `t`, which does not fall.
  void advance_to(Time t) {
    for (Time next = next_time(); next <= t; next = next_time()) {
      pass_time(next);
      happen();
    }
    if (t > now()) pass_time(t);
  }

  /// A replica serves from now on. Precondition, here and below: advanced to the present.
  void open(std::uint32_t replica, RatePpm rate) {
    Server& server = servers_[replica];
    server = {.is_open = true, .accepts = true, .rate = rate, .places = std::move(server.places)};
    count_open();
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
  /// It is gone, and with it what it serves. Until resume(), which follows at the same instant, nothing that waits
  /// begins or leaves: others may go with it.
  void close(std::uint32_t replica) {
    Server& server = servers_[replica];
    withdraw(replica);
    for (Piece& piece : server.places) {
      for (std::uint32_t at = std::exchange(piece.first, no_index); at != no_index;) {
        const std::uint32_t next = std::exchange(record(at).next, no_index);
        if (lose(at)) waiting_.insert(std::lower_bound(waiting_.begin(), waiting_.end(), at), at);
        at = next;
      }
      ++piece.generation;
    }
    server.is_open = server.accepts = false;
    server.busy = 0;
    count_closed();
    is_held_ = true;
  }
  /// All replicas that go at this instant are gone.
  void resume() {
    if (std::exchange(is_held_, false)) serve();
  }

  [[nodiscard]] bool is_open(std::uint32_t replica) const { return servers_[replica].is_open; }
  [[nodiscard]] RatePpm rate(std::uint32_t replica) const { return servers_[replica].rate; }
  /// Requests, or batches, that a replica serves now.
  [[nodiscard]] std::uint32_t busy(std::uint32_t replica) const { return servers_[replica].busy; }

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

  [[nodiscard]] bool batches() const { return !service().batches.empty(); }
  [[nodiscard]] std::uint32_t places_of_server() const { return batches() ? 1 : service().at_once; }
  // When the batch of those that wait begins at a free replica.
  [[nodiscard]] Time batch_due() const {
    if (waiting_.size() >= service().batches.size()) return now();
    return std::max(now(), later_by(arrival(waiting_.front()), service().batch_delay));
  }

  void happen() {
    bool freed = false;
    while (ends_.time() == now()) {
      const End end = ends_.take();
      if (servers_[end.server].places[end.place].generation != end.generation) continue;
      complete_piece(end.server, end.place);
      freed = true;
    }
    if (freed || !waiting_.empty()) serve();
    while (!is_held_ && !waiting_.empty() && leaves(waiting_.front()) <= now()) {
      leave(waiting_.front());
      waiting_.pop_front();
    }
    while (next_arrival() == now()) waiting_.push_back(come());
    serve();
  }

  // As many as there are places for, and batches that are due.
  void serve() {
    while (!is_held_ && !waiting_.empty() && !free_.empty()) {
      if (batches() && batch_due() > now()) return;
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
    const std::size_t size = batches() ? std::min(waiting_.size(), service().batches.size()) : 1;
    free->first = waiting_.front();
    std::uint32_t last = no_index;
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint32_t request = waiting_.front();
      waiting_.pop_front();
      begin_service(request, replica, now());
      record(request).next = no_index;
      if (last != no_index) record(last).next = request;
      last = request;
    }
    ++server.busy;
    free->since = now();
    free->left = batches() ? service().batches[size - 1] : request(free->first).work;
    plan(replica, static_cast<std::uint32_t>(free - server.places.begin()), server.rate);
  }

  void settle(Piece& piece, RatePpm rate) const {
    piece.left = std::max(piece.left - work_done(rate, now() - piece.since), Time{});
    piece.since = now();
  }

  void plan(std::uint32_t replica, std::uint32_t place, RatePpm rate) {
    Piece& piece = servers_[replica].places[place];
    ++piece.generation;
    const Time end = later_by(piece.since, time_needed(rate, piece.left));
    if (end > end_of_time) return;
    ends_.push(end, {replica, place, piece.generation});
  }

  void complete_piece(std::uint32_t replica, std::uint32_t place) {
    Server& server = servers_[replica];
    withdraw(replica);
    Piece& piece = server.places[place];
    ++piece.generation;
    --server.busy;
    for (std::uint32_t at = std::exchange(piece.first, no_index); at != no_index;) {
      complete(at);
      at = std::exchange(record(at).next, no_index);
    }
    offer(replica);
  }

  // Among the replicas with a free place, and out of them.
  void offer(std::uint32_t replica) {
    const Server& server = servers_[replica];
    if (server.accepts && server.rate > 0 && server.busy < places_of_server()) free_.insert({server.busy, replica});
  }
  void withdraw(std::uint32_t replica) { free_.erase({servers_[replica].busy, replica}); }

  std::deque<std::uint32_t> waiting_;  // ascending
  std::vector<Server> servers_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> free_;  // (busy, replica) of those that can take more
  EventHeap<End> ends_;
  bool is_held_ = false;  // from close() to resume()
};

}  // namespace detail
}  // namespace gpusched
