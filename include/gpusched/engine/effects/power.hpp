// SPDX-License-Identifier: Apache-2.0
/// Power: what nodes draw at each instant and whose it is, nodes that sleep, and caps.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "gpusched/data/power_model.hpp"
#include "gpusched/engine/bills.hpp"
#include "gpusched/engine/effects/effect_list.hpp"
#include "gpusched/engine/effects/node_draw.hpp"
#include "gpusched/engine/effects/power_caps.hpp"
#include "gpusched/engine/effects/power_levels.hpp"
#include "gpusched/engine/job_state.hpp"
#include "gpusched/engine/occupancy.hpp"

namespace gpusched::detail {

/// An effect. A draw is booked when it changes, so that the bills of jobs, of idle, sleeping and waking nodes and of
/// losses sum to that of the meter in every digit. A run draws from its start to its end as when it works, also while
/// it loads. A node that is down draws what it draws idle. A run that begins or ends costs O(runs on its nodes).
class Power {
 public:
  static constexpr bool keeps_seats = true;
  /// Signals and timers never end: they alone keep no run going, unless a job waits for power.
  static constexpr bool is_endless = true;

  /// Nothing is known.
  Power() = default;
  explicit Power(const EffectWorld& world) {
    if (world.inputs.power == nullptr || world.inputs.power->is_empty()) return;
    model_ = world.inputs.power;
    draws_ = NodeDraws(*model_, world.cluster, world.jobs.families().size());
    may_sleep_ = std::any_of(model_->kinds.begin(), model_->kinds.end(),
                             [](const NodePower& kind) { return kind.sleep.after < Time::max(); });
    nodes_.resize(world.cluster.nodes.size());
    bills_.resize(world.jobs.size());
    replicas_ = world.jobs.replicas();
    limits_.assign(world.jobs.size(), static_cast<std::uint8_t>(table().top()));
    levels_ = limits_;
    places_.resize(std::max<std::size_t>(1, model_->places.size()));
    for (std::uint32_t number = 0; number < places_.size(); ++number) places_[number].fixed_mw = fixed_at(number);
    caps_ = PowerCaps(*model_, static_cast<std::uint32_t>(nodes_.size()), table().top());
    if (world.inputs.keeps_power_levels) levels_over_time_.emplace(model_->caps.size());
  }

  /// True when the draw of nodes is known.
  [[nodiscard]] bool active() const { return model_ != nullptr; }
  /// Nodes that wake let runs wait.
  [[nodiscard]] bool counts_costs() const { return may_sleep_; }

  template <class Kernel>
  void open(Kernel& kernel) {
    const Time now = kernel.state.now;
    for (std::uint32_t number = 0; number < places_.size(); ++number) places_[number].since = mark(number, now);
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i].since = mark(place_number(NodeId{i}), now);
      measure(NodeId{i}, now);
      plan_sleep(NodeId{i}, now);
    }
    caps_.open(now);
    keep_level(now);
  }

  [[nodiscard]] Time next_time() const {
    return std::min(timers_.empty() ? Time::max() : timers_.front().time, caps_.next_time());
  }
  [[nodiscard]] bool is_awaited() const { return caps_.is_awaited(); }

  template <class Kernel>
  void happen(Kernel& kernel) {
    const Time now = kernel.state.now;
    if (caps_.next_time() == now) {
      caps_.happen(kernel, *this);
      measure_relevelled(now);
      return keep_level(now);
    }
    std::pop_heap(timers_.begin(), timers_.end(), std::greater<>());
    const Timer timer = timers_.back();
    timers_.pop_back();
    Draw& node = nodes_[index(timer.node)];
    if (timer.generation != node.generation) return;
    const bool is_empty = node.first_seat == no_index;
    if (node.phase == NodePhase::waking) {
      node.phase = NodePhase::on;
      if (is_empty) plan_sleep(timer.node, now);
    } else if (is_empty) {
      node.phase = NodePhase::asleep;
    }
    measure(timer.node, now);
    caps_.more_power(kernel);
  }

  // A run waits until its nodes are awake.
  template <class Kernel>
  Time begin(Kernel& kernel, JobId job) {
    levels_[index(job)] = std::min(limits_[index(job)], caps_.level_for(kernel.state, job));
    caps_.began(kernel.state, job);
    Time longest{};
    if (!may_sleep_) return longest;
    for (const NodeId node : kernel.state.occupancy.nodes_of(job))
      longest = std::max(longest, wake(kernel.state, node));
    return longest;
  }
  template <class Kernel>
  Time moved(Kernel& kernel, JobId job, const std::vector<NodeId>&) {
    return begin(kernel, job);
  }

  template <class Kernel>
  void seated(Kernel& kernel, std::uint32_t at) {
    const Seat& seat = kernel.state.occupancy.seat(at);
    if (at >= seats_.size()) seats_.resize(at + 1);
    seats_[at] = {
        .occupant = draws_.occupant(kernel.state, seat.node, seat.job, seat.tasks, seat.card, levels_[index(seat.job)]),
        .since = mark(place_number(seat.node), kernel.state.now)};
    std::uint32_t* next = &nodes_[index(seat.node)].first_seat;
    while (*next != no_index && seats_[*next].occupant < seats_[at].occupant) next = &seats_[*next].next_on_node;
    seats_[at].next_on_node = std::exchange(*next, at);
  }
  template <class Kernel>
  void unseated(Kernel& kernel, std::uint32_t at) {
    const NodeId node = kernel.state.occupancy.seat(at).node;
    pay_seat(seats_[at], mark(place_number(node), kernel.state.now));
    std::uint32_t* next = &nodes_[index(node)].first_seat;
    while (*next != at) next = &seats_[*next].next_on_node;
    *next = seats_[at].next_on_node;
  }

  // Other runs are on the node than before.
  template <class Kernel>
  void touched(Kernel& kernel, NodeId node) {
    measure(node, kernel.state.now);
    if (nodes_[index(node)].first_seat == no_index) plan_sleep(node, kernel.state.now);
  }

  template <class Kernel>
  void react(Kernel& kernel) {
    caps_.react(kernel, *this);
    measure_relevelled(kernel.state.now);
  }

  template <class State>
  [[nodiscard]] RatePpm factor(const State& state, JobId job) const {
    RatePpm slowest = reference_rate;
    const std::uint8_t level = levels_[index(job)];
    if (level == table().top()) return slowest;
    for (std::uint32_t at = state.occupancy.first_of_job(job); at != no_index;
         at = state.occupancy.seat(at).next_of_job) {
      const NodeId node = state.occupancy.seat(at).node;
      if (state.cluster.node_gpus(node) == 0) continue;
      const std::uint32_t type = state.cluster.node_gpu_type(node);
      slowest = std::min(slowest, table().limit(state.jobs->family(job), type, level).speed);
    }
    return slowest;
  }

  template <class Kernel>
  void ended(Kernel& kernel, JobId) {
    if (kernel.all_finished()) settle(kernel.state.now);
  }
  // The measured span begins, or ends.
  template <class Kernel>
  void marked(Kernel& kernel, bool begins) {
    settle(kernel.state.now);
    (begins ? at_begin_ : at_end_) = sums_;
    caps_.marked(begins);
    if (begins) {
      peak_mw_ = 0;
    } else if (!is_marked_) {
      peak_at_end_mw_ = peak_mw_;
    }
    is_marked_ = is_marked_ || !begins;
  }

  template <class State>
  [[nodiscard]] bool audit(const State& state, JobId job) const {
    return levels_[index(job)] <= limits_[index(job)] && state.occupancy.first_of_job(job) != no_index;
  }

  // ---- for decisions ----

  /// May the job hold these grants (no_index: none), beside what the open decision did before, so that no cap is
  /// exceeded? If so, and `keeps`, that is so until the decision is carried out.
  template <class State>
  GPUSCHED_RARE bool admits(const State& state, JobId job, std::uint32_t grants, bool keeps = true) {
    return caps_.admits(state, job, grants, keeps, *this);
  }
  /// May a job that the open decision preempted hold these grants again? Also under a cap that fell below what runs, if
  /// the decision then adds nothing to it and starts nobody.
  template <class State>
  GPUSCHED_RARE bool takes_back(const State& state, JobId job, std::uint32_t grants) {
    return caps_.takes_back(state, job, grants, *this);
  }
  /// The setting that a policy gives the GPUs of a job, in this run and later ones: the greatest that is not above
  /// `watts` on any GPU type, or the least that there is.
  template <class Kernel>
  void limit_power(Kernel& kernel, JobId job, double watts) {
    std::uint32_t level = table().top();
    for (std::uint32_t type = 0; type < model_->gpus.size(); ++type) {
      level = std::min(level, table().level_below(kernel.state.jobs->family(job), type, watts));
    }
    limits_[index(job)] = static_cast<std::uint8_t>(level);
    if (!kernel.works(job)) return;
    set_level(kernel, job, std::min(limits_[index(job)], caps_.level_for(kernel.state, job)));
    measure_relevelled(kernel.state.now);
    for (const NodeId node : kernel.state.occupancy.nodes_of(job))
      measure(node, kernel.state.now);  // caps ask for limits
  }

  // ---- for caps ----

  [[nodiscard]] const DrawTable& table() const { return draws_.table(); }
  [[nodiscard]] std::uint8_t level(JobId job) const { return levels_[index(job)]; }
  [[nodiscard]] std::uint8_t limit(JobId job) const { return limits_[index(job)]; }
  template <class Kernel>
  void set_level(Kernel& kernel, JobId job, std::uint8_t level) {
    if (levels_[index(job)] == level) return;
    levels_[index(job)] = level;
    const Occupancy& occupancy = kernel.state.occupancy;
    for (std::uint32_t at = occupancy.first_of_job(job); at != no_index; at = occupancy.seat(at).next_of_job) {
      Draw& node = nodes_[index(occupancy.seat(at).node)];
      if (!std::exchange(node.is_relevelled, true)) relevelled_.push_back(occupancy.seat(at).node);
    }
    kernel.adapt_rate(job);
  }
  /// The draws of runs on nodes.
  /// \{
  [[nodiscard]] NodeDraws& draws() { return draws_; }
  [[nodiscard]] const NodeDraws& draws() const { return draws_; }
  /// \}
  /// As it would be with runs on it: one that sleeps would wake.
  [[nodiscard]] NodePhase phase_with(NodeId at, Occupants occupants) const {
    const NodePhase phase = nodes_[index(at)].phase;
    return phase == NodePhase::asleep && !occupants.empty() ? NodePhase::waking : phase;
  }
  /// Calls visit(Occupant) for the runs on the node, by operator<.
  template <class Visit>
  void for_each_occupant(NodeId node, Visit visit) const {
    for (std::uint32_t at = nodes_[index(node)].first_seat; at != no_index; at = seats_[at].next_on_node) {
      visit(seats_[at].occupant);
    }
  }

  // ---- results ----

  /// What the job came to so far, as of the last change of its draw.
  [[nodiscard]] const Bill& bill(JobId job) const { return bills_[index(job)]; }
  /// Of all jobs, or of all replicas of services, or of what is nobody's, or of the meter, within the measured span,
  /// which is over.
  /// \{
  [[nodiscard]] Bill jobs_bill() const {
    return within([](const Sums& sums) { return sums.jobs; });
  }
  [[nodiscard]] Bill services_bill() const {
    return within([](const Sums& sums) { return sums.services; });
  }
  [[nodiscard]] Bill bill(BillOf whose) const {
    return within([whose](const Sums& sums) { return sums.others[static_cast<std::size_t>(whose)]; });
  }
  [[nodiscard]] Bill meter() const {
    return within([](const Sums& sums) { return sums.meter; });
  }
  /// \}
  /// What the meter shows at `now` of the measured span, which may have ended before. Precondition: not before the last
  /// change of a draw.
  [[nodiscard]] Bill measured_until(Time now) const {
    if (is_marked_) return meter();
    Bill bill = meter_until(now);
    bill -= at_begin_.meter;
    return bill;
  }
  /// The most that nodes drew until `now` within the measured span, as peak_mw(). The same precondition.
  [[nodiscard]] std::int64_t peak_mw_until(Time now) const {
    if (is_marked_) return peak_at_end_mw_;
    return now > drawn_since_ ? std::max(peak_mw_, draw_mw_) : peak_mw_;
  }
  /// True when the bills of all jobs and of what is nobody's are that of the meter. Precondition: the run is over.
  [[nodiscard]] bool adds_up() const {
    Bill jobs, services;
    for (std::uint32_t i = 0; i < bills_.size(); ++i) (i < replicas_ ? services : jobs) += bills_[i];
    Bill sum = jobs;
    sum += services;
    for (const Bill& bill : sums_.others) sum += bill;
    return jobs == sums_.jobs && services == sums_.services && sum == sums_.meter;
  }
  /// What all nodes draw now, losses left out, and the most that they drew within the measured span, in milliwatts.
  [[nodiscard]] std::int64_t draw_mw() const { return draw_mw_; }
  [[nodiscard]] std::int64_t peak_mw() const { return is_marked_ ? peak_at_end_mw_ : peak_mw_; }
  /// What the meter shows when nodes draw so much.
  [[nodiscard]] std::int64_t with_losses_mw(std::int64_t mw) const {
    return mw + lost_mw(mw) + DrawTable::milliwatts(model_->losses.fixed_w);
  }
  /// The same in kilowatts.
  [[nodiscard]] double meter_kw(std::int64_t mw) const { return static_cast<double>(with_losses_mw(mw)) / 1e6; }
  /// What was drawn over time. Precondition: RunInputs::keeps_power_levels.
  [[nodiscard]] const PowerLevels& levels() const { return *levels_over_time_; }
  /// The draw of one node.
  [[nodiscard]] std::int64_t draw_mw(NodeId node) const { return nodes_[index(node)].draw.mw; }
  [[nodiscard]] bool is_asleep(NodeId node) const { return nodes_[index(node)].phase == NodePhase::asleep; }
  [[nodiscard]] bool is_waking(NodeId node) const { return nodes_[index(node)].phase == NodePhase::waking; }
  [[nodiscard]] const PowerCaps& caps() const { return caps_; }
  [[nodiscard]] const PowerModel& model() const { return *model_; }

 private:
  // What an instant is to the bills of one place.
  struct Mark {
    Time time = Time::max();
    PassedSignals passed;
  };
  struct Draw {
    NodeDraw draw;
    Mark since;                     // idle and waking parts are booked up to here
    BillOf idle_is = BillOf::idle;  // since then
    NodePhase phase = NodePhase::on;
    bool is_relevelled = false;           // levels of its runs changed since it was measured
    std::uint32_t first_seat = no_index;  // by Occupant's operator<
    Time ready{};                         // while it wakes
    std::uint32_t generation = 0;         // of its timer
  };
  struct SeatDraw {
    Occupant occupant;
    Mark since;
    std::int64_t mw = 0, rent = 0;
    std::uint32_t next_on_node = no_index;
  };
  struct Meter {
    Mark since;
    std::int64_t mw = 0, rent = 0;
    std::int64_t fixed_mw = 0;  // losses, whatever is drawn
    Mark now;                   // of the place, as it was asked for last
    std::size_t carbon_step = 0, price_step = 0;
  };
  struct Timer {
    Time time;
    NodeId node = no_node;
    std::uint32_t generation = 0;
    friend bool operator>(const Timer& a, const Timer& b) {
      return a.time != b.time ? a.time > b.time : a.node > b.node;
    }
  };
  struct Sums {
    Bill meter, jobs, services;
    std::array<Bill, most_bills> others{};
  };

  template <class Choose>
  [[nodiscard]] Bill within(Choose choose) const {
    Bill bill = choose(is_marked_ ? at_end_ : sums_);
    if (is_marked_) bill -= choose(at_begin_);
    return bill;
  }
  [[nodiscard]] std::uint32_t place_number(NodeId node) const {
    return model_->place_of.empty() ? 0 : model_->place_of[index(node)];
  }
  // Instants ascend.
  const Mark& mark(std::uint32_t number, Time now) {
    Meter& meter = places_[number];
    if (meter.now.time != now) pass_signals(number, now);
    return meter.now;
  }
  GPUSCHED_RARE void pass_signals(std::uint32_t number, Time now) {
    Meter& meter = places_[number];
    meter.now.time = now;
    meter.now.passed = passed_until(number, now, meter.carbon_step, meter.price_step);
  }
  // The steps are where the last call with them ended (Signal::integral_to).
  [[nodiscard]] PassedSignals passed_until(std::uint32_t number, Time now, std::size_t& carbon_step,
                                           std::size_t& price_step) const {
    if (model_->places.empty()) return {};
    const PowerPlace& place = model_->places[number];
    return {place.carbon_g_per_kwh.integral_to(now, carbon_step), place.usd_per_mwh.integral_to(now, price_step)};
  }
  [[nodiscard]] PassedSignals passed_until(std::uint32_t number, Time now) const {
    std::size_t carbon_step = places_[number].carbon_step, price_step = places_[number].price_step;
    return passed_until(number, now, carbon_step, price_step);
  }

  // ---- booking ----

  void pay_seat(SeatDraw& seat, const Mark& now) {
    if (seat.since.time == now.time) return;
    Bill bill;
    bill.add(seat.mw, seat.rent, now.time - seat.since.time, now.passed - seat.since.passed);
    seat.since = now;
    bills_[index(seat.occupant.job)] += bill;
    (index(seat.occupant.job) < replicas_ ? sums_.services : sums_.jobs) += bill;
  }

  void pay_node(NodeId at, const Mark& now) {
    Draw& node = nodes_[index(at)];
    if (node.since.time == now.time) return;
    const Time span = now.time - node.since.time;
    const PassedSignals passed = now.passed - node.since.passed;
    other(node.idle_is).add(node.draw.idle_mw, node.draw.idle_rent, span, passed);
    if (node.draw.waking_mw != 0) other(BillOf::waking).add(node.draw.waking_mw, 0, span, passed);
    node.since = now;
  }

  [[nodiscard]] std::int64_t lost_mw(std::int64_t mw) const {
    return std::llround(model_->losses.gain * static_cast<double>(mw));
  }

  // Losses at a place that do not depend on the draw.
  [[nodiscard]] std::int64_t fixed_at(std::uint32_t number) const {
    const auto of_place = [this](std::size_t at) { return DrawTable::milliwatts(model_->places[at].fixed_w); };
    if (number > 0) return of_place(number);
    std::int64_t rest = DrawTable::milliwatts(model_->losses.fixed_w);
    for (std::size_t other = 1; other < model_->places.size(); ++other) rest -= of_place(other);
    return rest;
  }
  [[nodiscard]] std::int64_t lost_at(std::uint32_t number) const {
    return lost_mw(places_[number].mw) + places_[number].fixed_mw;
  }

  // What the meter shows at `now`, since the run began.
  [[nodiscard]] Bill meter_until(Time now) const {
    Bill bill = sums_.meter;
    for (std::uint32_t number = 0; number < places_.size(); ++number) {
      const Meter& meter = places_[number];
      if (meter.since.time >= now) continue;
      bill.add(meter.mw + lost_at(number), meter.rent, now - meter.since.time,
               passed_until(number, now) - meter.since.passed);
    }
    return bill;
  }

  void pay_meter(std::uint32_t number, const Mark& now) {
    Meter& meter = places_[number];
    if (meter.since.time == now.time) return;
    const Time span = now.time - meter.since.time;
    const PassedSignals passed = now.passed - meter.since.passed;
    const std::int64_t lost = lost_at(number);
    other(BillOf::losses).add(lost, 0, span, passed);
    sums_.meter.add(meter.mw + lost, meter.rent, span, passed);
    meter.since = now;
  }

  [[nodiscard]] Bill& other(BillOf whose) { return sums_.others[static_cast<std::size_t>(whose)]; }

  // Books everything up to now.
  void settle(Time now) {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      const Mark& here = mark(place_number(NodeId{i}), now);
      for (std::uint32_t at = nodes_[i].first_seat; at != no_index; at = seats_[at].next_on_node) {
        pay_seat(seats_[at], here);
      }
      pay_node(NodeId{i}, here);
    }
    for (std::uint32_t number = 0; number < places_.size(); ++number) pay_meter(number, mark(number, now));
    peak_at(now);
    caps_.settle(now);
  }

  // ---- measuring ----

  // What the node draws from now on, and for whom. `others`: there are other runs, or other limits, than before.
  void measure(NodeId at, Time now, bool others = true) {
    const Draw& node = nodes_[index(at)];
    occupants_.clear();
    for (std::uint32_t seat = node.first_seat; seat != no_index; seat = seats_[seat].next_on_node) {
      Occupant& occupant = seats_[seat].occupant;
      draws_.set_level(at, occupant, levels_[index(occupant.job)]);
      occupants_.push_back(&occupant);
    }
    if (parts_.size() < occupants_.size()) parts_.resize(occupants_.size());
    const std::span<std::int64_t> parts = std::span(parts_).first(occupants_.size());
    set_draw(at, draws_.measure(at, node.phase, occupants_, parts),
             node.phase == NodePhase::asleep ? BillOf::asleep : BillOf::idle, now);
    std::uint32_t number = node.first_seat;
    for (const std::int64_t part : parts) {
      SeatDraw& seat = seats_[number];
      number = seat.next_on_node;
      if (seat.mw == part && seat.rent == seat.occupant.rent) continue;
      pay_seat(seat, mark(place_number(at), now));
      seat.mw = part;
      seat.rent = seat.occupant.rent;
    }
    if (caps_.covers(at)) caps_.measured(at, occupants_, *this, others);
  }
  // Nodes on which nothing but levels changed.
  void measure_relevelled(Time now) {
    for (const NodeId node : relevelled_) {
      nodes_[index(node)].is_relevelled = false;
      measure(node, now, false);
    }
    relevelled_.clear();
  }

  void set_draw(NodeId at, const NodeDraw& draw, BillOf idle_is, Time now) {
    Draw& node = nodes_[index(at)];
    const bool idles_alike = draw.idle_mw == node.draw.idle_mw && draw.waking_mw == node.draw.waking_mw &&
                             draw.idle_rent == node.draw.idle_rent && idle_is == node.idle_is;
    const std::uint32_t number = place_number(at);
    if (!idles_alike) pay_node(at, mark(number, now));
    const std::int64_t change = draw.mw - node.draw.mw;
    if (change != 0 || draw.rent != node.draw.rent) {
      pay_meter(number, mark(number, now));
      places_[number].mw += change;
      places_[number].rent += draw.rent - node.draw.rent;
      peak_at(now);
      draw_mw_ += change;
      caps_.change(at, change, now);
      keep_level(now);
    }
    node.draw = draw;
    node.idle_is = idle_is;
  }

  void keep_level(Time now) {
    if (!levels_over_time_) return;
    levels_over_time_->add(now, draw_mw_, [this](std::size_t cap) {
      const auto number = static_cast<std::uint32_t>(cap);
      return CapLevel{caps_.limit_mw(number), caps_.drawn_mw(number)};
    });
  }

  // The peak is what was drawn for some time.
  void peak_at(Time now) {
    if (now > drawn_since_) peak_mw_ = std::max(peak_mw_, draw_mw_);
    drawn_since_ = now;
  }

  // ---- sleep ----

  void plan_sleep(NodeId node, Time now) {
    const NodeSleep& sleep = draws_.kind(node).sleep;
    if (sleep.after == Time::max() || nodes_[index(node)].phase != NodePhase::on) return;
    push({later_by(now, sleep.after), node, ++nodes_[index(node)].generation});
  }

  template <class State>
  Time wake(const State& state, NodeId at) {
    Draw& node = nodes_[index(at)];
    if (node.phase == NodePhase::waking) return node.ready - state.now;
    ++node.generation;  // it does not fall asleep
    if (node.phase == NodePhase::on) return {};
    const NodeSleep& sleep = draws_.kind(at).sleep;
    node.ready = later_by(state.now, sleep.wake);
    node.phase = sleep.wake.us == 0 ? NodePhase::on : NodePhase::waking;
    if (sleep.wake.us > 0) push({node.ready, at, node.generation});
    return sleep.wake;
  }

  void push(const Timer& timer) {
    if (timer.time > end_of_time) return;
    timers_.push_back(timer);
    std::push_heap(timers_.begin(), timers_.end(), std::greater<>());
  }

  const PowerModel* model_ = nullptr;  // borrowed; null = nothing is known
  NodeDraws draws_;
  PowerCaps caps_;
  std::vector<Draw> nodes_;
  std::vector<SeatDraw> seats_;                // by seat of the Occupancy
  std::vector<Bill> bills_;                    // by job
  std::vector<std::uint8_t> limits_, levels_;  // by job: what its policy allows, what it has
  std::vector<Meter> places_;
  std::vector<Timer> timers_;
  Sums sums_, at_begin_, at_end_;
  bool is_marked_ = false;
  std::int64_t draw_mw_ = 0, peak_mw_ = 0, peak_at_end_mw_ = 0;
  Time drawn_since_{};
  std::optional<PowerLevels> levels_over_time_;
  bool may_sleep_ = false;
  std::uint32_t replicas_ = 0;              // the first rows of the table
  std::vector<NodeId> relevelled_;          // since they were measured
  std::vector<const Occupant*> occupants_;  // of measure()
  std::vector<std::int64_t> parts_;         // likewise
};

}  // namespace gpusched::detail
