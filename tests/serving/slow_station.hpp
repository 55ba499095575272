// SPDX-License-Identifier: Apache-2.0
/// A station as slow and plain as can be: at every instant it looks at all requests and all replicas. Written from the
/// documentation of RequestStation alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "gpusched/serving/request_station.hpp"

namespace gpusched::test {

class SlowStation {
 public:
  explicit SlowStation(const StationOptions& options) : options_(options) {}

  void until(std::int64_t now) {
    for (std::int64_t t = next(); t <= now; t = next()) {
      now_ = t;
      while (end_one()) {
      }
      while (give_up_one()) {
      }
      serve();
    }
    now_ = now;
  }
  void add(std::int64_t now, double speed) {
    until(now);
    replicas_.push_back({speed, true, true});
    if (own_queues()) move_from(-1);
    serve();
  }
  void drain(std::int64_t now, int number) {
    until(now);
    replicas_[number].takes = false;
    move_from(number);
  }
  std::vector<std::uint64_t> remove(std::int64_t now, int number) {
    until(now);
    replicas_[number].takes = replicas_[number].lives = false;
    std::vector<std::tuple<int, std::int64_t, std::int64_t, std::size_t>>
        left;  // served first, by begin; waiting by joining
    for (std::size_t i = 0; i < items_.size(); ++i) {
      Item& item = items_[i];
      if (item.replica != number || item.state == gone) continue;
      left.emplace_back(item.state == served ? 0 : 1, item.state == served ? item.begin_number : 0, item.join_number,
                        i);
      item.state = gone;
    }
    std::sort(left.begin(), left.end());
    std::vector<std::uint64_t> ids;
    for (const auto& entry : left) ids.push_back(items_[std::get<3>(entry)].request.id);
    return ids;
  }
  void submit(std::int64_t now, const StationRequest& request) {
    until(now);
    items_.push_back({.request = request, .queued = now});
    join(items_.back());
    serve();
  }

  std::vector<std::string> log;

 private:
  enum State { waits, served, gone };
  struct Item {
    StationRequest request;
    std::int64_t queued, joined = 0, begun = 0, end = 0, join_number = 0, begin_number = 0;
    int replica = -1;
    State state = waits;
  };
  struct Replica {
    double speed;
    bool takes, lives;
  };

  bool own_queues() const { return options_.routing != RoutingRule::shared_queue; }
  bool batches() const { return options_.service.kind == ServiceTimes::Kind::by_batch; }
  std::int64_t deadline(const Item& item) const {
    return options_.timeout == Time::max() ? Time::max().us
                                           : std::max(item.queued, item.request.arrival.us + options_.timeout.us);
  }
  std::int64_t next() const {
    std::int64_t next = Time::max().us;
    for (const Item& item : items_) {
      if (item.state == served) next = std::min(next, item.end);
      if (item.state != waits) continue;
      next = std::min(next, deadline(item));
      const std::int64_t due = item.joined + options_.service.longest_delay.us;
      if (batches() && due > now_) next = std::min(next, due);
    }
    return next;
  }
  bool end_one() {
    Item* first = nullptr;
    for (Item& item : items_) {
      if (item.state == served && item.end <= now_ && (first == nullptr || item.begin_number < first->begin_number))
        first = &item;
    }
    if (first == nullptr) return false;
    const std::int64_t number = first->begin_number;
    for (Item& item : items_) {
      if (item.state == served && item.begin_number == number) write(item, "completed");
    }
    if (replicas_[first->replica].takes) serve(own_queues() ? first->replica : -1);
    return true;
  }
  bool give_up_one() {
    for (Item& item : items_) {
      if (item.state != waits || deadline(item) > now_) continue;
      item.replica = -1;
      item.begun = now_;
      write(item, "timed out");
      return true;
    }
    return false;
  }
  void write(Item& item, const std::string& how) {
    log.push_back(std::to_string(now_) + " " + std::to_string(item.request.id) + " " + how + " queued " +
                  std::to_string(item.queued) + " begun " + std::to_string(item.begun) + " on " +
                  std::to_string(item.replica));
    item.state = gone;
  }
  std::int64_t load(int number) const {
    return std::count_if(items_.begin(), items_.end(),
                         [&](const Item& i) { return i.state != gone && i.replica == number; });
  }
  int choose(const Item& item) {
    std::vector<int> can;
    for (int i = 0; i < static_cast<int>(replicas_.size()); ++i) {
      if (replicas_[i].takes) can.push_back(i);
    }
    if (can.empty()) return -1;
    if (options_.routing == RoutingRule::round_robin) {
      const auto after = std::find_if(can.begin(), can.end(), [&](int i) { return i > last_; });
      return last_ = after == can.end() ? can[0] : *after;
    }
    if (options_.routing == RoutingRule::session) {
      const auto at = sessions_.find(item.request.session);
      if (at != sessions_.end() && replicas_[at->second].takes) return at->second;
    }
    int best = can[0];
    for (const int i : can) {
      if (load(i) < load(best)) best = i;
    }
    sessions_[item.request.session] = best;
    return best;
  }
  void join(Item& item) {
    item.replica = -2;  // counts nowhere while it chooses
    item.replica = own_queues() ? choose(item) : -1;
    item.joined = now_;
    item.join_number = ++numbers_;
    serve();
    drop_if_too_many(item);
  }
  void move_from(int number) {
    std::vector<std::pair<std::int64_t, std::size_t>> moved;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].state == waits && items_[i].replica == number) moved.emplace_back(items_[i].join_number, i);
    }
    std::sort(moved.begin(), moved.end());
    for (const auto& entry : moved) items_[entry.second].replica = -2;
    for (const auto& entry : moved) join(items_[entry.second]);
  }
  std::vector<Item*> queue(int number) {
    std::vector<Item*> queue;
    for (Item& item : items_) {
      if (item.state == waits && item.replica == number) queue.push_back(&item);
    }
    std::sort(queue.begin(), queue.end(), [](const Item* a, const Item* b) { return a->join_number < b->join_number; });
    return queue;
  }
  void drop_if_too_many(Item& item) {
    if (item.state != waits) return;
    if (static_cast<std::int64_t>(queue(item.replica).size()) <= options_.queue_limit) return;
    item.replica = -1;
    item.begun = now_;
    write(item, "dropped");
  }
  int services(int number) const {
    std::map<std::int64_t, int> begins;
    for (const Item& item : items_) {
      if (item.state == served && item.replica == number) begins[item.begin_number] = 1;
    }
    return static_cast<int>(begins.size());
  }
  // All replicas, or one alone.
  void serve(int only = -1) {
    for (bool again = true; again;) {
      again = false;
      for (int number = 0; number < static_cast<int>(replicas_.size()) && !again; ++number) {
        if (only >= 0 && number != only) continue;
        if (!replicas_[number].takes || services(number) >= options_.at_once) continue;
        std::vector<Item*> waiting = queue(own_queues() ? number : -1);
        if (waiting.empty()) continue;
        const int most = options_.service.most_in_batch();
        const bool full = static_cast<int>(waiting.size()) >= most;
        if (batches() && !full && waiting[0]->joined + options_.service.longest_delay.us > now_) continue;
        const int size = std::min(most, static_cast<int>(waiting.size()));
        const std::int64_t service = batches() ? options_.service.of_batch(size).us : waiting[0]->request.service.us;
        const auto span = static_cast<std::int64_t>(static_cast<double>(service) / replicas_[number].speed + .5);
        ++numbers_;
        for (int i = 0; i < size; ++i) {
          waiting[i]->state = served;
          waiting[i]->replica = number;
          waiting[i]->begun = now_;
          waiting[i]->end = now_ + span;
          waiting[i]->begin_number = numbers_;
        }
        again = true;
      }
    }
  }

  StationOptions options_;
  std::vector<Item> items_;
  std::vector<Replica> replicas_;
  std::map<std::uint64_t, int> sessions_;
  std::int64_t now_ = 0, numbers_ = 0;
  int last_ = -1;
};

}  // namespace gpusched::test
