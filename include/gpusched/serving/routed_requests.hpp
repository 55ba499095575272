// SPDX-License-Identifier: Apache-2.0
/// RoutedRequests: the requests of one service whose replicas hold requests themselves: each has a queue of its own
/// behind a router, or LLM engines draw from one queue.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/rate.hpp"
#include "gpusched/serving/replica_server.hpp"
#include "gpusched/serving/request_ledger.hpp"
#include "gpusched/serving/request_router.hpp"
#include "gpusched/serving/service_model.hpp"

namespace gpusched::detail {

/// A request that comes is sent to a replica by the service's rule (ServiceSpec::routing). While none takes requests,
/// it waits before all, and the first that does takes all of those. shared_queue: requests wait there, and a replica
/// with room takes the first, that with the fewest requests first. Replicas that drain, end, or are lost send what they
/// have not begun through the router again, by arrival. At one instant: ends of service with the begins that follow,
/// timeouts, then arrivals; with LLM engines arrivals, ends, begins, then timeouts. Moved from outside, as
/// RequestQueue.
template <class Server>
class RoutedRequests : public RequestLedger {
 public:
  /// Borrows `service`; it begins at `begin`.
  RoutedRequests(const ServiceSpec& service, Time begin)
      : RequestLedger(service, begin),
        router_(service.routing, service.router_seed),
        replicas_(service.most, Replica{.server = Server(service, begin)}),
        holder_(service.requests.size(), no_index) {}

  /// When something happens next by itself; Time::max(): never.
  [[nodiscard]] Time next_time() const {
    Time next = next_arrival();
    if (!due_.empty()) next = std::min(next, std::max(now(), due_.begin()->first));
    if (oldest_ < counts().injected && !is_held_) next = std::min(next, std::max(now(), leaves(oldest_)));
    return next;
  }
  /// Lets all happen up to `t`, which does not fall.
  void advance_to(Time t) {
    for (Time next = next_time(); next <= t; next = next_time()) {
      pass_time(next);
      if constexpr (Server::arrivals_first) arrive();
      happen();
      if constexpr (!Server::arrivals_first) {
        arrive();
        happen();
      }
    }
    if (t > now()) pass_time(t);
  }

  /// A replica serves from now on. Precondition, here and below: advanced to the present.
  void open(std::uint32_t replica, RatePpm rate) {
    replicas_[replica] = {.server = Server(service(), begin()), .is_open = true, .accepts = true};
    count_open();
    set_rate(replica, rate);
  }
  /// It takes requests, or takes no more of them. Precondition: it is open.
  void accept(std::uint32_t replica, bool accepts) {
    Replica& own = replicas_[replica];
    own.accepts = accepts;
    offer(replica);
    if (!accepts) {
      std::vector<std::uint32_t> left = own.server.take_waiting();
      std::sort(left.begin(), left.end());
      send(left);
    }
    replan(replica);
    happen();
  }
  /// Its speed changes; 0: it stands still, and takes no requests.
  void set_rate(std::uint32_t replica, RatePpm rate) {
    Replica& own = replicas_[replica];
    own.rate = rate;
    own.server.set_rate(rate, now());
    replan(replica);
    offer(replica);
    happen();
  }
  /// It is gone, and with it what it serves. What it held is sent on by resume(), which follows at the same instant:
  /// other replicas may go with it.
  void close(std::uint32_t replica) {
    Replica& own = replicas_[replica];
    own.is_open = own.accepts = false;
    offer(replica);
    for (const std::uint32_t request : own.server.stop()) {
      if (record(request).phase != RequestPhase::served || lose(request)) left_.push_back(request);
    }
    replan(replica);
    count_closed();
    is_held_ = true;
  }
  /// All replicas that go at this instant are gone.
  void resume() {
    if (!std::exchange(is_held_, false)) return;
    std::vector<std::uint32_t> left = std::exchange(left_, {});
    std::sort(left.begin(), left.end());
    if (!left.empty()) oldest_ = std::min(oldest_, left.front());
    send(left);
    happen();
  }

  /// A replica serves.
  [[nodiscard]] bool is_open(std::uint32_t replica) const { return replicas_[replica].is_open; }
  /// Its speed.
  [[nodiscard]] RatePpm rate(std::uint32_t replica) const { return replicas_[replica].rate; }
  /// Requests, or batches, that it serves now.
  [[nodiscard]] std::uint32_t busy(std::uint32_t replica) const { return replicas_[replica].server.busy(); }

 private:
  struct Replica {
    Server server;
    bool is_open = false, accepts = false;
    RatePpm rate = 0;
    Time due = Time::max();  // as it stands in due_
  };

  [[nodiscard]] bool is_shared() const { return router_.rule() == RoutingRule::shared_queue; }

  void arrive() {
    while (next_arrival() == now()) {
      const std::uint32_t number = come();
      if (number >= holder_.size()) holder_.resize(number + 1, no_index);
      send({number});
    }
  }
  // What is due at replicas, then timeouts.
  void happen() {
    work();
    if (is_held_) return;
    if (service().timeout == Time::max()) {
      oldest_ = no_index;
      return;
    }
    for (std::uint32_t at = oldest_; at < counts().injected && leaves(at) <= now(); ++at) {
      if (record(at).phase == RequestPhase::waiting) give_up(at);
    }
    work();
    while (oldest_ < counts().injected && record(oldest_).phase != RequestPhase::waiting) ++oldest_;
  }
  void work() {
    do {
      while (!due_.empty() && due_.begin()->first <= now()) advance(due_.begin()->second);
    } while (pull());
  }
  void advance(std::uint32_t replica) {
    news_.begun.clear();
    news_.ended.clear();
    replicas_[replica].server.advance(now(), news_);
    for (const ServerNews::Begin& begun : news_.begun) begin_service(begun.request, replica, begun.at);
    for (const ServerNews::End& ended : news_.ended) {
      record(ended.request).first_token = ended.first_token;
      complete(ended.request);
    }
    replan(replica);
  }
  void give_up(std::uint32_t request) {
    if (const std::uint32_t replica = holder_[request]; replica != no_index) {
      replicas_[replica].server.withdraw(request);
      replan(replica);
    } else {
      pending_.erase(request);
    }
    leave(request);
  }

  // To replicas, or to those that wait before all; in order.
  void send(const std::vector<std::uint32_t>& requests) {
    for (const std::uint32_t number : requests) {
      holder_[number] = no_index;
      if (is_shared() || accepting_.empty()) {
        pending_.insert(number);
        continue;
      }
      const auto load = [this](std::int32_t replica) {
        return replicas_[static_cast<std::size_t>(replica)].server.load();
      };
      submit(static_cast<std::uint32_t>(router_.choose(accepting_, request(number).session, load)), number);
    }
    pull();
  }
  void submit(std::uint32_t replica, std::uint32_t number) {
    holder_[number] = replica;
    replicas_[replica].server.submit(number, request(number), now());
    replan(replica);
  }
  // The first that wait before all to replicas with room. True: there were some. O(replicas) for each.
  bool pull() {
    bool any = false;
    while (is_shared() && !is_held_ && !pending_.empty()) {
      std::uint32_t chosen = no_index;
      for (const std::int32_t number : accepting_) {
        const auto at = static_cast<std::uint32_t>(number);
        const Server& server = replicas_[at].server;
        if (!server.has_room()) continue;
        if (chosen == no_index || server.load() < replicas_[chosen].server.load()) chosen = at;
      }
      if (chosen == no_index) return any;
      submit(chosen, *pending_.begin());
      pending_.erase(pending_.begin());
      any = true;
    }
    return any;
  }

  // Among the replicas that take requests, or out of them.
  void offer(std::uint32_t replica) {
    const Replica& own = replicas_[replica];
    const auto number = static_cast<std::int32_t>(replica);
    const auto at = std::lower_bound(accepting_.begin(), accepting_.end(), number);
    const bool is_there = at != accepting_.end() && *at == number;
    const bool takes = own.is_open && own.accepts && own.rate > 0;
    if (takes && !is_there) accepting_.insert(at, number);
    if (!takes && is_there) accepting_.erase(at);
    if (!takes || is_there) return;
    const std::set<std::uint32_t> waited = std::exchange(pending_, {});
    send({waited.begin(), waited.end()});
  }
  void replan(std::uint32_t replica) {
    Replica& own = replicas_[replica];
    const Time next = own.is_open ? own.server.next_time() : Time::max();
    if (next == own.due) return;
    if (own.due != Time::max()) due_.erase({own.due, replica});
    if (next != Time::max()) due_.insert({next, replica});
    own.due = next;
  }

  RequestRouter router_;
  std::vector<Replica> replicas_;                 // by number
  std::vector<std::int32_t> accepting_;           // ascending
  std::set<std::uint32_t> pending_;               // those that wait before all replicas
  std::vector<std::uint32_t> holder_;             // by request: the replica that it was sent to
  std::set<std::pair<Time, std::uint32_t>> due_;  // when replicas are to be advanced
  std::uint32_t oldest_ = 0;                      // no request before it waits; of services with a timeout
  std::vector<std::uint32_t> left_;               // by replicas that are gone
  bool is_held_ = false;                          // from close() to resume()
  ServerNews news_;
};

}  // namespace gpusched::detail
