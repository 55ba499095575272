// SPDX-License-Identifier: Apache-2.0
/// FunctionHost: invocations of serverless functions, and the containers that serve one at a time: from zero and back.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/serving/event_heap.hpp"
#include "gpusched/serving/keep_alive.hpp"

namespace gpusched {

/// An invocation.
struct Invocation {
  std::uint64_t id = 0;        ///< the caller's
  std::uint32_t function = 0;  ///< its place in the list of functions
  Time service{-1};            ///< in a warm container; below 0: as drawn. A cold one takes cold - warm longer
};

/// What became of it.
struct InvocationOutcome {
  Invocation invocation;  ///< as submitted
  Time arrived{};         ///< when it came
  Time ended{};           ///< when it left
  bool cold = false;      ///< its container began for it
  bool dropped = false;   ///< no container found memory
};

/// What a host is given.
struct FunctionHostOptions {
  std::vector<FunctionCosts> functions;                        ///< all there are
  KeepAlive keep_alive = FixedKeepAlive();                     ///< the rule
  double memory_mb = std::numeric_limits<double>::infinity();  ///< of all containers
  bool exponential = false;                                    ///< drawn times are exponential; else the means
  std::uint64_t seed = 0;                                      ///< of drawn times
};

/// Sums of a host's life: invoked = completed + dropped + busy().
struct FunctionCounts {
  std::int64_t invoked = 0;       ///< invocations that came
  std::int64_t completed = 0;     ///< that ended
  std::int64_t cold = 0;          ///< of those that came: with a new container
  std::int64_t dropped = 0;       ///< that found no memory
  std::int64_t evicted = 0;       ///< containers ended for want of memory
  std::int64_t loaded_ahead = 0;  ///< containers begun before an invocation came
  std::int64_t alive_us = 0;      ///< integral of the containers
  std::int64_t busy_us = 0;       ///< integral of those that serve

  friend bool operator==(const FunctionCounts&, const FunctionCounts&) = default;  ///< of all sums
};

/// One host. A value; in a loop of events as RequestStation. An invocation takes the newest idle container of its
/// function, else begins one, for which idle ones of any function end as the rule ranks them while memory is short. At
/// an instant services end first, then containers whose time is over, then those are loaded that are due, then
/// invocations come.
class FunctionHost {
  template <class F>
  auto visit(F f) {
    return std::visit(f, options_.keep_alive);
  }

 public:
  /// Without containers.
  explicit FunctionHost(FunctionHostOptions options)
      : options_(std::move(options)),
        functions_(options_.functions.size()),
        rng_(Rng(options_.seed).split("invocations")) {}

  /// An invocation comes. Precondition: its function is in the list.
  void submit(const Invocation& invocation, Time now) {
    advance(now);
    Function& function = functions_[invocation.function];
    ++counts_.invoked;
    visit([&invocation, &function, &now](auto& rule) {
      rule.invoked(invocation.function, function.busy == 0 && function.was_used ? now - function.last_end : Time{-1});
    });
    const bool cold = function.idle.empty();
    if (cold && !make_room(costs(invocation.function).memory_mb)) {
      ++counts_.dropped;
      done_.push_back({invocation, now, now, false, true});
      if (function.alive == 0) visit([&invocation](auto& rule) { rule.gone(invocation.function); });
      return;
    }
    const std::uint32_t at = cold ? begin_container(invocation.function) : function.idle.back();
    if (!cold) {
      function.idle.pop_back();
      ++containers_[at].generation;
    }
    serve(at, invocation, cold, now);
  }
  /// When something happens next; Time::max(): nothing by itself.
  [[nodiscard]] Time next_time() const { return first_time(planned_); }
  /// Everything until `now`, that of `now` included. Precondition: `now` does not fall.
  void advance(Time now) {
    for (Time next = next_time(); next <= now; next = next_time()) {
      const std::size_t kind = first_due(planned_, next);
      const Event event = planned_[kind].take();
      if (kind == loads) {
        if (functions_[event.at].loads == event.generation) load_ahead(event.at, event.until, next);
        continue;
      }
      if (containers_[event.at].generation != event.generation) continue;
      tick(next);
      if (kind == ends) end_service(event.at, next);
      if (kind == expires) end_container(event.at);
    }
    tick(now);
  }
  /// Those that left since clear_done(), in the order in which they did.
  [[nodiscard]] std::span<const InvocationOutcome> done() const { return done_; }
  /// Forgets them.
  void clear_done() { done_.clear(); }

  [[nodiscard]] std::int64_t alive() const { return alive_; }  ///< containers
  [[nodiscard]] std::int64_t busy() const { return busy_; }    ///< of those: serve
  [[nodiscard]] double used_mb() const { return used_mb_; }    ///< memory of containers
  [[nodiscard]] const FunctionCounts& counts() const {
    return counts_;
  }  ///< sums until the last call that tells a time
  /// Whether invocations, containers and memory are conserved. O(containers).
  [[nodiscard]] bool consistent() const {
    std::int64_t alive = 0, busy = 0, idle = 0;
    double memory = 0;
    for (std::size_t f = 0; f < functions_.size(); ++f) {
      alive += functions_[f].alive;
      busy += functions_[f].busy;
      idle += static_cast<std::int64_t>(functions_[f].idle.size());
      memory += static_cast<double>(functions_[f].alive) * options_.functions[f].memory_mb;
    }
    return alive == alive_ && busy == busy_ && alive == busy + idle &&
           std::abs(memory - used_mb_) <= 1e-6 * (1 + memory) && used_mb_ <= options_.memory_mb &&
           counts_.invoked == counts_.completed + counts_.dropped + busy_;
  }

 private:
  enum Kind : std::uint8_t { ends, expires, loads };
  struct Event {
    std::uint32_t at, generation;
    Time until;  // of a container that is loaded
  };
  struct Container {
    std::uint32_t function = 0, generation = 0;
    std::uint64_t born = 0;  // ascending
    double rank = 0;
    Invocation serves;
    Time arrived{};
    bool cold = false;
  };
  struct Function {
    std::vector<std::uint32_t> idle;  // the newest last
    std::int64_t alive = 0, busy = 0;
    std::uint32_t loads = 0;  // raised when a planned load is off
    Time last_end{};
    bool was_used = false;
  };

  [[nodiscard]] const FunctionCosts& costs(std::uint32_t function) const { return options_.functions[function]; }
  void tick(Time now) {
    counts_.alive_us += alive_ * (now - now_).us;
    counts_.busy_us += busy_ * (now - now_).us;
    now_ = now;
  }
  void plan(Kind kind, Time at, std::uint32_t which, std::uint32_t generation, Time until = {}) {
    if (at == Time::max()) return;
    planned_[kind].push(at, {which, generation, until});
  }
  std::uint32_t begin_container(std::uint32_t function) {
    std::uint32_t at = 0;
    if (free_.empty()) {
      at = static_cast<std::uint32_t>(containers_.size());
      containers_.emplace_back();
    } else {
      at = free_.back();
      free_.pop_back();
    }
    containers_[at].function = function;
    containers_[at].born = ++born_;
    ++functions_[function].alive;
    ++alive_;
    used_mb_ += costs(function).memory_mb;
    return at;
  }
  // An idle one.
  void end_container(std::uint32_t at) {
    const std::uint32_t number = containers_[at].function;
    Function& function = functions_[number];
    function.idle.erase(std::find(function.idle.begin(), function.idle.end(), at));
    ++containers_[at].generation;
    free_.push_back(at);
    --function.alive;
    --alive_;
    used_mb_ -= costs(number).memory_mb;
    if (function.alive == 0) visit([&number](auto& rule) { rule.gone(number); });
  }
  // Ends idle containers until `memory_mb` are free; false, and none ends, where all idle ones are not enough.
  bool make_room(double memory_mb) {
    if (used_mb_ + memory_mb <= options_.memory_mb) return true;
    std::vector<std::uint32_t> idle;
    double gained = 0;
    for (const Function& function : functions_) {
      idle.insert(idle.end(), function.idle.begin(), function.idle.end());
    }
    std::sort(idle.begin(), idle.end(), [this](std::uint32_t a, std::uint32_t b) {
      const Container &x = containers_[a], &y = containers_[b];
      return x.rank != y.rank ? x.rank < y.rank : x.born < y.born;
    });
    std::size_t count = 0;
    while (count < idle.size() && used_mb_ - gained + memory_mb > options_.memory_mb) {
      gained += costs(containers_[idle[count++]].function).memory_mb;
    }
    if (used_mb_ - gained + memory_mb > options_.memory_mb) return false;
    for (std::size_t i = 0; i < count; ++i) {
      visit([this, &idle, &i](auto& rule) { rule.evicted(containers_[idle[i]].rank); });
      end_container(idle[i]);
      ++counts_.evicted;
    }
    return true;
  }
  void serve(std::uint32_t at, const Invocation& invocation, bool cold, Time now) {
    Container& container = containers_[at];
    Function& function = functions_[invocation.function];
    const FunctionCosts& of = costs(invocation.function);
    container.rank = visit([&invocation, &of, &now](auto& rule) { return rule.rank(invocation.function, of, now); });
    container.serves = invocation;
    container.arrived = now;
    container.cold = cold;
    ++function.loads;
    ++function.busy;
    function.was_used = true;
    ++busy_;
    counts_.cold += cold ? 1 : 0;
    Time service = invocation.service;
    if (service.us < 0) {
      const double mean = cold ? of.cold_s : of.warm_s;
      service = from_seconds(options_.exponential ? rng_.exponential(mean) : mean);
    } else if (cold) {
      service += from_seconds(of.cold_s - of.warm_s);
    }
    plan(ends, later_by(now, service), at, container.generation);
  }
  void end_service(std::uint32_t at, Time now) {
    Container& container = containers_[at];
    Function& function = functions_[container.function];
    done_.push_back({container.serves, container.arrived, now, container.cold, false});
    ++counts_.completed;
    --function.busy;
    --busy_;
    function.last_end = now;
    become_idle(at);
    KeepPlan keep = visit([&container](auto& rule) { return rule.plan(container.function); });
    const bool last = function.busy == 0 && function.idle.size() == 1;
    if (keep.load_after.us > 0 && last && keep.load_after < keep.until) {
      plan(loads, later_by(now, keep.load_after), container.function, ++function.loads, later_by(now, keep.until));
      end_container(at);
    } else {
      plan(expires, later_by(now, keep.until), at, container.generation);
    }
  }
  void become_idle(std::uint32_t at) {
    std::vector<std::uint32_t>& idle = functions_[containers_[at].function].idle;
    ++containers_[at].generation;
    const auto place = std::find_if(idle.begin(), idle.end(), [this, &at](std::uint32_t other) {
      return containers_[other].born > containers_[at].born;
    });
    idle.insert(place, at);
  }
  // A container before its function is invoked again, where there is memory.
  void load_ahead(std::uint32_t function, Time until, Time now) {
    tick(now);
    if (used_mb_ + costs(function).memory_mb > options_.memory_mb) return;
    const std::uint32_t at = begin_container(function);
    containers_[at].rank =
        visit([this, &function, &now](auto& rule) { return rule.rank(function, costs(function), now); });
    become_idle(at);
    ++counts_.loaded_ahead;
    plan(expires, until, at, containers_[at].generation);
  }

  FunctionHostOptions options_;
  std::vector<Function> functions_;
  Rng rng_;
  std::vector<Container> containers_;
  std::vector<std::uint32_t> free_;
  std::array<EventHeap<Event>, 3> planned_;  // by kind
  std::uint64_t born_ = 0;
  std::int64_t alive_ = 0, busy_ = 0;
  double used_mb_ = 0;
  Time now_{};
  FunctionCounts counts_;
  std::vector<InvocationOutcome> done_;
};

}  // namespace gpusched
