// SPDX-License-Identifier: Apache-2.0
/// PowerCaps: limits on what nodes draw together, kept by not starting jobs and by slower GPUs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/data/power_model.hpp"
#include "gpusched/engine/effects/cap_plan.hpp"
#include "gpusched/engine/event_queue.hpp"
#include "gpusched/engine/job_state.hpp"
#include "gpusched/engine/occupancy.hpp"

namespace gpusched::detail {

/// How far and how long a cap was exceeded.
struct CapExcess {
  Time time{};               ///< all of it
  std::int64_t most_mw = 0;  ///< above the cap
  WideInt nj = 0;            ///< energy above it: milliwatts times microseconds

  friend bool operator==(const CapExcess&, const CapExcess&) = default;
};

/// The part of Power that keeps caps. A job is admitted if its nodes stay under their caps with every job that may be
/// slowed at its lowest setting; then, within the same instant, jobs are slowed as the rule says. Nothing exceeds a cap
/// but running jobs whose cap falls further than they can be slowed, and those that are slowed late (cap_latency).
///
/// A setting is raised only as far as the rule allows under (1 - hysteresis) of the cap, and lowered only as far as it
/// demands under the cap: between the two it stays. A run begins with what the rule allows under the cap.
///
/// What happens below a cap costs what runs below it, and below the caps that jobs on several nodes link with it; where
/// steps down act late, what runs below all.
class PowerCaps {
 public:
  /// No caps.
  PowerCaps() = default;
  /// `model` must outlive this. `top`: the highest level of its settings.
  PowerCaps(const PowerModel& model, std::uint32_t nodes, std::uint32_t top) : model_(&model), top_(top) {
    if (model.caps.empty()) return;
    caps_of_.resize(nodes);
    for (std::uint32_t number = 0; number < model.caps.size(); ++number) {
      Cap cap;
      cap.signal = &model.caps[number].watts;
      cap.nodes = model.caps[number].nodes;
      cap.target = static_cast<std::uint8_t>(top);
      cap.at_level.assign(top + 2, 0);
      caps_.push_back(std::move(cap));
      const std::vector<std::uint32_t>& members = model.caps[number].nodes;
      for (std::uint32_t i = 0; i < (members.empty() ? nodes : members.size()); ++i) {
        caps_of_[members.empty() ? i : members[i]].push_back(number);
      }
    }
    node_at_level_.assign(std::size_t{nodes} * (top + 2), 0);
    bounds_.resize(top + 2);
  }

  [[nodiscard]] bool covers(NodeId node) const { return !caps_.empty() && !caps_of_[index(node)].empty(); }

  void open(Time now) {
    for (Cap& cap : caps_) {
      cap.since = now;
      cap.limit_mw = limit_at(cap, now);
      cap.next_change = cap.signal->next_change(now);
    }
    find_next_change();
  }

  [[nodiscard]] Time next_time() const {
    return lowerings_.empty() ? next_change_ : std::min(next_change_, lowerings_.front().time);
  }
  /// A job was refused for want of power since there was more of it last.
  [[nodiscard]] bool is_awaited() const { return was_refused_; }

  // A cap changes, or a running job is slowed that should have been for so long.
  template <class Kernel, class Power>
  void happen(Kernel& kernel, Power& power) {
    const Time now = kernel.state.now;
    for (; !lowerings_.empty() && lowerings_.front().time == now; lowerings_.pop_front()) {
      const Lowering lowering = lowerings_.front();
      if (!kernel.works(lowering.job) || lowering.level >= power.level(lowering.job)) continue;
      power.set_level(kernel, lowering.job, lowering.level);
      is_raise_due_ = true;  // the cap may have risen since
    }
    bool rises = false;
    for (std::uint32_t number = 0; next_change_ == now && number < caps_.size(); ++number) {
      Cap& cap = caps_[number];
      if (cap.next_change != now) continue;
      mark(number);
      book(cap, now);
      const std::int64_t limit = limit_at(cap, now);
      rises = rises || limit > cap.limit_mw;
      cap.limit_mw = limit;
      cap.next_change = cap.signal->next_change(now);
    }
    find_next_change();
    if (rises) more_power(kernel);
    is_dirty_ = true;
  }
  /// Jobs that were refused may be asked for again.
  template <class Kernel>
  void more_power(Kernel& kernel) {
    if (std::exchange(was_refused_, false)) kernel.emit({EventKind::more_power, no_job});
  }

  // ---- what is drawn ----

  /// The draw of a node changes now.
  void change(NodeId node, std::int64_t mw, Time now) {
    if (caps_.empty()) return;
    for (const std::uint32_t number : caps_of_[index(node)]) {
      book(caps_[number], now);
      caps_[number].drawn_mw += mw;
    }
  }
  /// Other runs are on a node than before (`others`) or have another limit, or only another level.
  template <class Power>
  void measured(NodeId node, Occupants occupants, Power& power, bool others) {
    if (others) {
      for (const std::uint32_t number : caps_of_[index(node)]) mark(number);
    }
    const std::uint32_t begin = others ? 0 : present();
    const std::uint32_t end = model_->cap_latency.us > 0 ? present() + 1 : present();
    if (begin == end) return;
    const NodePhase phase = power.phase_with(node, occupants);
    if (others) {
      const auto limit = [&power](JobId job) { return power.limit(job); };
      power.draws().bound_at_levels_mw(node, phase, occupants, limit, std::span(bounds_).first(present()));
    }
    if (end > present()) bounds_[present()] = power.draws().bound_mw(node, phase, occupants);
    for (std::uint32_t level = begin; level < end; ++level) {
      std::int64_t& before = node_at_level_[std::size_t{index(node)} * (top_ + 2) + level];
      for (const std::uint32_t number : caps_of_[index(node)]) caps_[number].at_level[level] += bounds_[level] - before;
      before = bounds_[level];
    }
  }

  // ---- who may start ----

  /// As Power::admits().
  template <class State, class Power>
  bool admits(const State& state, JobId job, std::uint32_t grants, bool keeps, Power& power) {
    return plans(state, job, grants, keeps, false, power);
  }
  /// As Power::takes_back().
  template <class State, class Power>
  bool takes_back(const State& state, JobId job, std::uint32_t grants, Power& power) {
    return plans(state, job, grants, true, true, power);
  }
  /// A run of the job begins, or is moved, at level_for().
  template <class State>
  void began(const State& state, JobId job) {
    if (caps_.empty() || model_->cap_latency.us == 0) return;
    is_new_.resize(state.jobs->size(), false);
    is_new_[index(job)] = true;
    is_raise_due_ = is_dirty_ = true;
  }
  /// The highest setting with which a run of the job may begin.
  template <class State>
  [[nodiscard]] std::uint8_t level_for(const State& state, JobId job) const {
    auto level = static_cast<std::uint8_t>(top_);
    if (caps_.empty() || model_->rule == CapRule::admit) return level;
    for (std::uint32_t at = state.occupancy.first_of_job(job); at != no_index;
         at = state.occupancy.seat(at).next_of_job) {
      for (const std::uint32_t number : caps_of_[index(state.occupancy.seat(at).node)]) {
        if (model_->rule == CapRule::uniform) level = std::min(level, caps_[number].target);
        if (model_->cap_latency.us > 0) level = 0;
      }
    }
    return level;
  }

  // ---- who is slowed ----

  template <class Kernel, class Power>
  void react(Kernel& kernel, Power& power) {
    close_plan();
    if (!caps_.empty() && model_->rule == CapRule::priority) {
      for (const Event& event : kernel.state.events) {
        if (event.kind != EventKind::reprioritize) continue;
        for_each_cap(kernel.state, event.job, [this](std::uint32_t number) { mark(number); });
      }
    }
    if (!std::exchange(is_dirty_, false) || top_ == 0 || model_->rule == CapRule::admit) return;
    // What acts late may concern anybody.
    for (std::uint32_t number = 0; model_->cap_latency.us > 0 && number < caps_.size(); ++number) mark(number);
    const bool is_uniform = model_->rule == CapRule::uniform;
    if (is_uniform ? choose_targets() : may_slow()) {
      find_jobs(kernel.state, power, !is_uniform);
      if (is_uniform) take_targets(kernel.state);
      if (!is_uniform) choose_steps(kernel.state, power);
      set_levels(kernel, power);
      note_slowed(power);
    }
    for (const std::uint32_t number : marked_) caps_[number].is_marked = false;
    marked_.clear();
    is_dirty_ = is_raise_due_;
  }

  // ---- results ----

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(caps_.size()); }
  /// As of the last change of what is drawn below it, within the measured span.
  [[nodiscard]] const CapExcess& excess(std::uint32_t cap) const {
    return is_marked_ ? caps_[cap].excess_at_end : caps_[cap].excess;
  }
  [[nodiscard]] std::int64_t limit_mw(std::uint32_t cap) const { return caps_[cap].limit_mw; }
  [[nodiscard]] std::int64_t drawn_mw(std::uint32_t cap) const { return caps_[cap].drawn_mw; }
  /// What may still be drawn where it is least; nothing above the cap is left out.
  [[nodiscard]] std::int64_t headroom_mw() const {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const Cap& cap : caps_) least = std::min(least, cap.limit_mw - cap.drawn_mw);
    return least;
  }
  /// Counts what passed until now.
  void settle(Time now) {
    for (Cap& cap : caps_) book(cap, now);
  }
  /// The measured span begins, or ends. Precondition: settled now.
  void marked(bool begins) {
    for (Cap& cap : caps_) {
      if (begins) cap.excess = {};
      if (!begins && !is_marked_) cap.excess_at_end = cap.excess;
    }
    is_marked_ = is_marked_ || !begins;
  }

 private:
  struct Cap {
    const Signal* signal = nullptr;
    std::span<const std::uint32_t> nodes;  // empty: all
    std::int64_t limit_mw = 0, drawn_mw = 0;
    // The most that would be drawn, until another run begins, if no job were above that level; at present(), as they
    // are.
    std::vector<std::int64_t> at_level;
    std::int64_t planned_mw = 0;  // what the open decision adds
    std::int64_t started_mw = 0;  // of that, by jobs that do not run yet
    std::int64_t rise_mw = 0;     // what the last command that was asked about adds
    Time next_change = Time::max();
    Time since{};                     // booked up to here
    CapExcess excess, excess_at_end;  // of the measured span so far, and all of it
    std::uint8_t target = 0;          // of CapRule::uniform
    bool is_marked = false;           // it is in marked_
    // Of the other rules, of choose_steps(): places in slower_ of the jobs below it, what they save so far; and whether
    // somebody is slowed below it or below caps that are linked with it.
    std::vector<std::uint32_t> jobs;
    std::int64_t saved_mw = 0;
    bool slows = false;
  };
  struct Lowering {
    Time time{};
    JobId job = no_job;
    std::uint8_t level = 0;
  };

  [[nodiscard]] std::uint32_t present() const { return top_ + 1; }

  static std::int64_t limit_at(const Cap& cap, Time now) {
    const std::int64_t micro = cap.signal->micro_at(now);
    return micro >= 0 ? micro / 1000 : -((999 - micro) / 1000);
  }

  static void book(Cap& cap, Time now) {
    const std::int64_t above = cap.drawn_mw - cap.limit_mw;
    if (above > 0 && now > cap.since) {
      cap.excess.time += now - cap.since;
      cap.excess.most_mw = std::max(cap.excess.most_mw, above);
      cap.excess.nj += WideInt{above} * (now - cap.since).us;
    }
    cap.since = now;
  }

  void find_next_change() {
    next_change_ = Time::max();
    for (const Cap& cap : caps_) next_change_ = std::min(next_change_, cap.next_change);
  }
  // The cap changed, or who runs below it.
  void mark(std::uint32_t number) {
    is_dirty_ = true;
    if (!std::exchange(caps_[number].is_marked, true)) marked_.push_back(number);
  }

  // ---- the plan of a decision ----

  // `takes_back`: the job goes back to where it was. Under a cap that fell it may, if it ran when the decision began
  // and nothing was started in its place.
  template <class State, class Power>
  bool plans(const State& state, JobId job, std::uint32_t grants, bool keeps, bool takes_back, Power& power) {
    if (caps_.empty()) return true;
    if (!plan_.is_open()) open_plan(state, power);
    const auto level_of = [this, &state, &power](JobId planned) { return planning_level(state, planned, power); };
    const std::uint32_t entry = planning_entry();
    const auto drawn = [this, &entry](NodeId node) {
      return node_at_level_[std::size_t{index(node)} * (top_ + 2) + entry];
    };
    plan_.put(state, job, grants, level_of, drawn, power);
    for_each_change([](Cap& cap, std::int64_t) { cap.rise_mw = 0; });
    for_each_change([](Cap& cap, std::int64_t change) { cap.rise_mw += change; });
    const bool ran = state.occupancy.first_of_job(job) != no_index;
    bool fits = true;
    for_each_change([&fits, &entry, &takes_back, &ran](const Cap& cap, std::int64_t) {
      const std::int64_t added = cap.planned_mw + cap.rise_mw;
      const bool is_above = cap.rise_mw > 0 && cap.at_level[entry] + added > cap.limit_mw;
      const bool goes_on = takes_back && ran && added <= 0 && cap.started_mw <= 0;
      if (is_above && !goes_on) fits = false;
    });
    if (!fits) was_refused_ = true;
    if (!fits || !keeps) {
      plan_.take_back();
      return fits;
    }
    for_each_change([this, &ran](Cap& cap, std::int64_t change) {
      cap.planned_mw += change;
      if (!ran) cap.started_mw += change;
      planned_.push_back(static_cast<std::uint32_t>(&cap - caps_.data()));
    });
    plan_.keep();
    return true;
  }
  // Calls visit(Cap&, milliwatts) for the nodes that the last command of the plan changed, below each cap.
  template <class Visit>
  void for_each_change(Visit visit) {
    for (const auto& [node, change] : plan_.changes()) {
      for (const std::uint32_t number : caps_of_[index(node)]) visit(caps_[number], change);
    }
  }
  // Jobs whose size changed at this instant gave their capacity back, although their runs may go on.
  template <class State, class Power>
  void open_plan(const State& state, Power& power) {
    plan_.open(static_cast<std::uint32_t>(caps_of_.size()), state.jobs->size());
    for (const Resized& resized : state.resized) admits(state, resized.job, no_index, true, power);
  }
  void close_plan() {
    plan_.close();
    for (const std::uint32_t number : planned_) caps_[number].planned_mw = caps_[number].started_mw = 0;
    planned_.clear();
  }
  // What jobs are counted with: no rule slows them, or they can be slowed at once, or later.
  template <class State, class Power>
  [[nodiscard]] std::uint8_t planning_level(const State& state, JobId job, const Power& power) const {
    if (model_->rule == CapRule::admit) return power.limit(job);
    const bool runs = state.occupancy.first_of_job(job) != no_index;
    return model_->cap_latency.us > 0 && runs ? power.level(job) : std::uint8_t{0};
  }
  // The entry of at_level that says so.
  [[nodiscard]] std::uint32_t planning_entry() const {
    if (model_->rule == CapRule::admit) return top_;
    return model_->cap_latency.us > 0 ? present() : 0;
  }

  // ---- settings ----

  [[nodiscard]] std::int64_t budget_below(const Cap& cap) const {
    return cap.limit_mw -
           static_cast<std::int64_t>(model_->hysteresis * static_cast<double>(std::max<std::int64_t>(cap.limit_mw, 0)));
  }
  // Somebody has to be slowed below a cap that changed, or may be faster again.
  [[nodiscard]] bool may_slow() const {
    return is_raise_due_ || std::any_of(marked_.begin(), marked_.end(), [this](std::uint32_t number) {
             return caps_[number].slows || caps_[number].at_level[top_] > caps_[number].limit_mw;
           });
  }

  // Of CapRule::uniform: one level a cap that changed; those that keep theirs are marked no more. False when all do.
  bool choose_targets() {
    std::erase_if(marked_, [this](std::uint32_t number) {
      Cap& cap = caps_[number];
      const auto highest = [this, &cap](std::int64_t budget) {
        std::uint8_t level = 0;
        while (level < top_ && cap.at_level[level + 1u] <= budget) ++level;
        return level;
      };
      const std::uint8_t level = std::clamp(cap.target, highest(budget_below(cap)), highest(cap.limit_mw));
      cap.is_marked = std::exchange(cap.target, level) != level || is_raise_due_;
      return !cap.is_marked;
    });
    return !marked_.empty();
  }

  // `slower_` gets the running jobs below the marked caps. `links`: and those below the other caps of these jobs, which
  // are marked too, and so on.
  template <class State, class Power>
  void find_jobs(const State& state, const Power& power, bool links) {
    slower_.clear();
    is_found_.resize(state.jobs->size(), false);
    is_new_.resize(state.jobs->size(), false);
    const auto add = [this, &state, &power, &links](JobId job) {
      if (is_found_[index(job)] || state[job].phase != JobPhase::running) return;
      is_found_[index(job)] = true;
      const std::uint8_t limit = power.limit(job);
      slower_.push_back({.job = job, .level = limit, .least = limit, .most = limit});
      if (!links) return;
      for_each_cap(state, job, [this](std::uint32_t number) { mark(number); });
    };
    for (std::size_t i = 0; i < marked_.size(); ++i) {
      const std::span<const std::uint32_t> nodes = caps_[marked_[i]].nodes;
      for (const std::uint32_t node : nodes) {
        power.for_each_occupant(NodeId{node}, [&add](const Occupant& occupant) { add(occupant.job); });
      }
      if (!nodes.empty()) continue;
      for (std::uint32_t at = state.running.first; at != no_index; at = state.states[at].next) add(JobId{at});
    }
    for (const Slower& slower : slower_) is_found_[index(slower.job)] = false;
  }
  // Calls visit(number) for the caps of the job's nodes, for each node.
  template <class State, class Visit>
  void for_each_cap(const State& state, JobId job, Visit visit) const {
    for (std::uint32_t at = state.occupancy.first_of_job(job); at != no_index;
         at = state.occupancy.seat(at).next_of_job) {
      for (const std::uint32_t number : caps_of_[index(state.occupancy.seat(at).node)]) visit(number);
    }
  }

  // A job's next lower setting, and where the others end.
  struct Slower {
    JobId job = no_job;
    std::uint8_t level = 0;            // chosen so far
    std::uint8_t least = 0, most = 0;  // chosen under the two budgets
  };

  // Of the other rules: `slower_` gets the levels that they demand under both budgets.
  template <class State, class Power>
  void choose_steps(const State& state, const Power& power) {
    if (model_->rule == CapRule::priority) {
      std::sort(slower_.begin(), slower_.end(), [&state](const Slower& a, const Slower& b) {
        const std::int32_t first = state.priority(a.job), second = state.priority(b.job);
        return first != second ? first < second : state.queue_place(b.job) < state.queue_place(a.job);
      });
    } else {
      std::sort(slower_.begin(), slower_.end(), [&state](const Slower& a, const Slower& b) {
        return state.queue_place(b.job) < state.queue_place(a.job);
      });
    }
    // Caps of fewer nodes first: whoever is slowed below one saves below those around it, too.
    const auto size = [this](std::uint32_t number) {
      return caps_[number].nodes.empty() ? caps_of_.size() : caps_[number].nodes.size();
    };
    std::sort(marked_.begin(), marked_.end(),
              [&size](std::uint32_t a, std::uint32_t b) { return std::pair(size(a), a) < std::pair(size(b), b); });
    for (const std::uint32_t number : marked_) {
      caps_[number].jobs.clear();
      caps_[number].saved_mw = 0;
    }
    for (std::uint32_t at = 0; at < slower_.size(); ++at) {
      for_each_cap(state, slower_[at].job, [this, &at](std::uint32_t number) {
        std::vector<std::uint32_t>& jobs = caps_[number].jobs;
        if (jobs.empty() || jobs.back() != at) jobs.push_back(at);
      });
    }
    for (const std::uint32_t number : marked_) slow_down(state, power, caps_[number], caps_[number].limit_mw);
    for (Slower& slower : slower_) slower.most = slower.level;
    for (const std::uint32_t number : marked_) slow_down(state, power, caps_[number], budget_below(caps_[number]));
    for (Slower& slower : slower_) slower.least = is_new_[index(slower.job)] ? slower.most : slower.level;
  }

  // Lowers settings below one cap until its budget is kept, or nobody can be slowed.
  template <class State, class Power>
  void slow_down(const State& state, const Power& power, const Cap& cap, std::int64_t budget) {
    const auto is_over = [this, &cap, &budget] { return cap.at_level[top_] - cap.saved_mw > budget; };
    if (!is_over()) return;
    if (model_->rule == CapRule::priority) {
      for (const std::uint32_t at : cap.jobs) {
        while (is_over() && slower_[at].level > 0) step_down(state, power, slower_[at]);
      }
      return;
    }
    using Gain = std::pair<double, std::uint32_t>;  // of the next step; place in slower_, the latest in its queue first
    const auto worse = [](const Gain& a, const Gain& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    };
    std::vector<Gain> heap;
    const auto push = [this, &state, &heap, &power, &worse](std::uint32_t at) {
      if (slower_[at].level == 0) return;
      heap.emplace_back(gain(state, power, slower_[at]), at);
      std::push_heap(heap.begin(), heap.end(), worse);
    };
    for (const std::uint32_t at : cap.jobs) push(at);
    while (is_over() && !heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), worse);
      const std::uint32_t at = heap.back().second;
      heap.pop_back();
      step_down(state, power, slower_[at]);
      push(at);
    }
  }

  // Visits a job's seats of whole GPUs. On a shared GPU the lowest setting counts, so that one job's alone promises
  // nothing: such jobs are slowed last, and what that saves is left over.
  template <class State, class Visit>
  static void for_each_own_seat(const State& state, JobId job, Visit visit) {
    for (std::uint32_t at = state.occupancy.first_of_job(job); at != no_index;
         at = state.occupancy.seat(at).next_of_job) {
      if (state.occupancy.seat(at).card == no_index) visit(state.occupancy.seat(at));
    }
  }
  template <class State, class Power>
  static std::int64_t saved_by_step(const State& state, const Power& power, const Seat& seat, std::uint8_t level) {
    const MilliGpu milli = seat.tasks * state.held_shape(seat.job).gpu_milli_per_task;
    if (milli == 0) return 0;
    const std::uint32_t family = state.jobs->family(seat.job), type = state.cluster.node_gpu_type(seat.node);
    const auto draw = [&power, &family, &type, &milli](std::uint32_t at) {
      return power.table().busy_mw(family, type, at) * milli / whole_gpu;
    };
    return draw(level) - draw(level - 1u);
  }
  template <class State, class Power>
  void step_down(const State& state, const Power& power, Slower& slower) {
    for_each_own_seat(state, slower.job, [this, &state, &power, &slower](const Seat& seat) {
      const std::int64_t mw = saved_by_step(state, power, seat, slower.level);
      for (const std::uint32_t number : caps_of_[index(seat.node)]) caps_[number].saved_mw += mw;
    });
    --slower.level;
  }
  // Watts saved for the speed that the next step costs, over all GPUs of the job.
  template <class State, class Power>
  static double gain(const State& state, const Power& power, const Slower& slower) {
    std::int64_t mw = 0;
    RatePpm before = reference_rate, after = reference_rate;
    for_each_own_seat(state, slower.job, [&state, &mw, &power, &slower, &before, &after](const Seat& seat) {
      if (state.cluster.node_gpus(seat.node) == 0) return;
      const std::uint32_t type = state.cluster.node_gpu_type(seat.node);
      mw += saved_by_step(state, power, seat, slower.level);
      const std::uint32_t family = state.jobs->family(slower.job);
      before = std::min(before, power.table().limit(family, type, slower.level).speed);
      after = std::min(after, power.table().limit(family, type, slower.level - 1u).speed);
    });
    const double lost =
        static_cast<double>(before - after) * static_cast<double>(state.held_shape(slower.job).gpu_milli());
    return lost > 0 ? static_cast<double>(mw) / lost : std::numeric_limits<double>::infinity();
  }

  template <class Kernel, class Power>
  void set_levels(Kernel& kernel, Power& power) {
    is_raise_due_ = false;
    for (Slower& slower : slower_) {
      slower.level = std::clamp(power.level(slower.job), slower.least, slower.most);
      if (slower.level < power.level(slower.job)) lower(kernel, power, slower.job, slower.level);
    }
    for (const Slower& slower : slower_) {
      if (slower.level > power.level(slower.job)) raise(kernel, power, slower.job, slower.level);
    }
    if (is_raise_due_) return;  // newcomers may wait for theirs
    for (const Slower& slower : slower_) is_new_[index(slower.job)] = false;
  }
  template <class Power>
  void note_slowed(const Power& power) {
    const bool slows =
        !lowerings_.empty() || std::any_of(slower_.begin(), slower_.end(), [&power](const Slower& slower) {
          return power.level(slower.job) < power.limit(slower.job);
        });
    for (const std::uint32_t number : marked_) caps_[number].slows = slows;
  }
  // Of CapRule::uniform: the levels of `slower_`.
  template <class State>
  void take_targets(const State& state) {
    for (Slower& slower : slower_) {
      for_each_cap(state, slower.job, [this, &slower](std::uint32_t number) {
        slower.level = std::min(slower.level, caps_[number].target);
      });
      slower.least = slower.most = slower.level;
    }
  }
  template <class Kernel, class Power>
  void lower(Kernel& kernel, Power& power, JobId job, std::uint8_t level) {
    if (model_->cap_latency.us == 0) return power.set_level(kernel, job, level);
    lowerings_.push_back({.time = later_by(kernel.state.now, model_->cap_latency), .job = job, .level = level});
  }
  // Nobody is set faster while somebody still is to be slowed.
  template <class Kernel, class Power>
  void raise(Kernel& kernel, Power& power, JobId job, std::uint8_t level) {
    if (lowerings_.empty()) return power.set_level(kernel, job, level);
    is_raise_due_ = true;
  }

  const PowerModel* model_ = nullptr;
  std::uint32_t top_ = 0;
  std::vector<Cap> caps_;
  std::vector<std::vector<std::uint32_t>> caps_of_;  // by node
  std::vector<std::int64_t> node_at_level_;          // [node * (top + 2) + level], as Cap::at_level
  bool is_dirty_ = false, was_refused_ = false, is_raise_due_ = false;
  bool is_marked_ = false;             // the measured span is over
  Time next_change_ = Time::max();     // of all caps
  std::vector<std::uint32_t> marked_;  // caps whose settings are to be chosen anew
  CapPlan plan_;
  std::vector<std::uint32_t> planned_;  // caps that the open decision adds to
  std::deque<Lowering> lowerings_;      // by time
  std::vector<Slower> slower_;
  std::vector<bool> is_found_;        // by job: of find_jobs()
  std::vector<bool> is_new_;          // by job: its run has not been set since it began, or was moved (cap_latency)
  std::vector<std::int64_t> bounds_;  // of measured(), as a row of node_at_level_
};

}  // namespace gpusched::detail
