// SPDX-License-Identifier: Apache-2.0
/// ChoiceAgenda: the decision process of every mode but `preempt`. The agent chooses one waiting job after another, or
/// WAIT.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "gpusched/learn/agenda_options.hpp"
#include "gpusched/learn/detail/job_tokens.hpp"
#include "gpusched/learn/detail/known_ends.hpp"
#include "gpusched/learn/detail/node_groups.hpp"
#include "gpusched/learn/detail/signal_reader.hpp"
#include "gpusched/learn/detail/type_speeds.hpp"
#include "gpusched/learn/detail/waiting_shapes.hpp"
#include "gpusched/learn/known_runs.hpp"
#include "gpusched/learn/observation.hpp"

namespace gpusched::detail {

/// What Agenda (agenda.hpp) is in modes other than `preempt`; its members do what theirs of the same name say. A value.
class ChoiceAgenda {
 public:
  ChoiceAgenda(const AgendaOptions& options, KnownRuns known) : options_(options), known_(std::move(known)) {
    GPUSCHED_ASSERT(options.mode != ActionMode::preempt, "mode preempt has an agenda of its own");
  }

  void observe(const View& view) {
    waited_ = false;
    backfilled_ = false;
    head_place_ = no_index;
    ++instants_;
    for (const Event& event : view.events()) {
      if (leaves_cluster(event.kind)) hold(view.user(event.job), -ends_.end(event.job));
      if (event.kind == EventKind::finish) known_.finish(view, event.job);
      if (enters_queue(event.kind)) begin_wait(view.at(event), event.job);
      if (event.kind == EventKind::withdraw) withdraw(event.job);
      if (event.node != no_node || event.kind == EventKind::more_power) change_cluster();
    }
  }

  bool open(const View& view, Decision& decision) {
    if (waited_) return false;
    if (placing()) return true;
    for (;;) {
      if (!serve_blocked(view, decision)) return false;
      if (placing()) return true;
      if (tokens_.waiting().empty()) return false;
      if (options_.mode == ActionMode::select_blocking && tokens_.waiting().size() == 1) {
        choose(0, view, decision);
        continue;
      }
      list_candidates(view, decision);
      if (choices_ == 0) return false;
      if (choices_ > 1) {
        describe_all(view);
        return true;
      }
      act(only_choice(), view, decision);
      if (waited_) return false;
    }
  }

  void change_hands(const View&) {}  // a choice leaves nothing behind

  void show(const View& view) {
    tokens_.describe(options_.heuristic);
    describe_all(view);
    tokens_.mark(0);
    may_wait_ = false;
    tokens_.list(options_.max_jobs);
  }

  [[nodiscard]] bool placing() const { return placing_ != no_index; }

  [[nodiscard]] std::uint32_t size() const {
    if (!placing()) return tokens_.size();
    return static_cast<std::uint32_t>(options_.node_speeds ? types_.size() : kinds_.size());
  }
  [[nodiscard]] std::uint32_t group_count() const { return static_cast<std::uint32_t>(groups_.list().size()); }

  [[nodiscard]] JobId job(std::uint32_t action) const {
    return placing() ? tokens_.waiting()[placing_].job : tokens_[action].job;
  }

  [[nodiscard]] bool allowed(std::uint32_t action) const {
    if (action >= size()) return action == size() && may_wait_;
    return placing() || tokens_.selectable(action);
  }

  [[nodiscard]] std::uint32_t heuristic_action(Heuristic heuristic) const {
    if (placing()) return 0;
    if (heuristic == options_.heuristic) return tokens_.least([](const WaitingJob& job) { return job.key; });
    return tokens_.least([heuristic](const WaitingJob& job) { return job.key_of(heuristic); });
  }

  void act(Heuristic heuristic, const View& view, Decision& decision) {
    act(heuristic_action(heuristic), view, decision);
  }

  void act(std::uint32_t action, const View& view, Decision& decision) {
    GPUSCHED_ASSERT(allowed(action), "a masked action was chosen");
    if (action == size()) {
      if (options_.signals) wake_at_change(view, decision);
      if (placing()) {
        put_off(tokens_.waiting()[std::exchange(placing_, no_index)].job);
      } else {
        waited_ = true;
      }
      return;
    }
    if (placing()) {
      if (options_.node_speeds) {
        start_on_type(types_[action].gpu_type, view, decision);
      } else {
        start_on(kinds_[action].node, view, decision);
      }
      return;
    }
    choose(tokens_.place_of(action), view, decision);
  }

  void encode(const View& view, const ObservationSlot& slot) const {
    if (placing() && options_.node_speeds) {
      write_types(view, slot);
    } else if (placing()) {
      write_kinds(view, slot);
    } else {
      tokens_.write_rows(view.now(), shapes_, user_shares_, slot.jobs);
      tokens_.write_prior(options_.heuristic, may_wait_, slot.prior);
      std::copy(tokens_.marks().begin(), tokens_.marks().end(), slot.mask);
    }
    slot.mask[size()] = may_wait_ ? 1 : 0;
    float* group = slot.groups;
    for (const NodeGroup& of : groups_.list()) group = std::copy(of.row.begin(), of.row.end(), group);
    write_global(view, slot.global);
  }

  [[nodiscard]] std::uint32_t waiting_count() const { return static_cast<std::uint32_t>(tokens_.waiting().size()); }

 private:
  // ---- what happened ----------------------------------------------------------------------------------------------

  void begin_wait(const View& view, JobId job) {
    float known_s = known_.seconds(view, job);
    if (options_.node_speeds) {  // as on the GPU type that is best for the job
      speeds_.look_up(view, job);
      known_s /= speeds_[job].best;
    }
    shapes_.replace_example(job, [this](std::uint32_t other) {
      const auto waiting = tokens_.waiting();
      const auto in_slot = [&other](const WaitingJob& entry) { return entry.slot == other; };
      return std::find_if(waiting.begin(), waiting.end(), in_slot)->job;
    });
    const std::uint32_t slot = shapes_.join(view, job);
    const WaitingJob entry(view, job, slot, shapes_[slot], known_s);
    tokens_.push(entry);
    queued_work_s_ += gpu_seconds(entry);
    if (user_milli_.size() <= entry.user) {
      user_milli_.resize(entry.user + 1);
      user_shares_.resize(entry.user + 1);
      share_of_milli_ = 1.0f / gpus_of(view.cluster()) / static_cast<float>(whole_gpu);
    }
  }

  GPUSCHED_HOT void note_start(std::uint32_t place, const View& view) {
    const WaitingJob& entry = tokens_.waiting()[place];
    const MilliGpu milli = shapes_[entry.slot].milli;
    ends_.start(options_.node_speeds ? run_of(view, entry, milli)
                                     : KnownEnds::Run{view.now().us + entry.known_us, milli, entry.job});
    hold(entry.user, milli);
    remove(place);
  }

  // At the speed of the GPU type where it has started; a gang on several is as slow as on the slowest of them.
  [[nodiscard]] KnownEnds::Run run_of(const View& view, const WaitingJob& entry, MilliGpu milli) const {
    KnownEnds::Run run{view.now().us + entry.known_us, milli, entry.job};
    float slowest = std::numeric_limits<float>::max();
    view.for_each_grant(entry.job, [&view, &entry, &slowest, &run](const Grant& grant) {
      const std::uint32_t type = view.cluster().node_gpu_type(grant.node);
      const float speed = relative_speed(view, entry.job, type);
      if (speed >= slowest) return;
      slowest = speed;
      run.gpu_type = type;
    });
    if (run.gpu_type == no_index) return run;
    const float known_s = entry.known_s * speeds_[entry.job].best / slowest;
    run.end_us = view.now().us + from_seconds(static_cast<double>(known_s)).us;
    return run;
  }

  // The user's running jobs hold `milli` more, and the cluster has changed.
  void hold(std::uint32_t user, MilliGpu milli) {
    user_milli_[user] += milli;
    user_shares_[user] = static_cast<float>(user_milli_[user]) * share_of_milli_;
    change_cluster();
  }

  void change_cluster() {
    shapes_.cluster_changed();
    groups_.cluster_changed();
  }

  void withdraw(JobId job) {
    if (blocked_ == job) blocked_ = no_job;
    const auto waiting = tokens_.waiting();
    const auto of_job = [&job](const WaitingJob& entry) { return entry.job == job; };
    remove(static_cast<std::uint32_t>(std::find_if(waiting.begin(), waiting.end(), of_job) - waiting.begin()));
  }

  void remove(std::uint32_t place) {
    const WaitingJob& entry = tokens_.waiting()[place];
    queued_work_s_ -= gpu_seconds(entry);
    shapes_.leave(entry.slot);
    tokens_.erase(place);
    if (place < blocked_place_) --blocked_place_;
    if (head_place_ != no_index && place < head_place_) --head_place_;
    if (tokens_.waiting().empty()) queued_work_s_ = 0;  // no drift from rounding
  }

  static double gpu_seconds(const WaitingJob& job) {
    return static_cast<double>(job.known_s) * static_cast<double>(job.gpus);
  }

  // ---- the choices -----------------------------------------------------------------------------------------------

  void list_candidates(const View& view, Decision& decision) {
    may_wait_ = false;
    choices_ = 0;
    const bool any_fits = shapes_.ask_all(view, decision);
    if (!any_fits && options_.mode != ActionMode::select_blocking) return;  // so at most instants
    tokens_.describe(options_.heuristic);
    switch (options_.mode) {
      case ActionMode::fit_or_wait: mark_fitting(view); break;
      case ActionMode::select_blocking: tokens_.mark(1); break;
      case ActionMode::backfill: mark_backfill(view); break;
      case ActionMode::reserve: mark_reserve(view); break;
      case ActionMode::inspect: mark_first_fitting(); break;
      case ActionMode::preempt: break;
    }
    tokens_.list(options_.max_jobs);
    choices_ = options_.mode == ActionMode::select_blocking ? size() : tokens_.selectable_count();
    // Waiting is an action only where there is something to start instead and something to wait for.
    may_wait_ = choices_ > 0 && options_.mode != ActionMode::select_blocking && !forced_ && something_will_happen(view);
    if (may_wait_) ++choices_;
  }

  // Precondition: choices_ == 1, and it is not WAIT.
  [[nodiscard]] std::uint32_t only_choice() const {
    const auto marks = tokens_.marks();
    return static_cast<std::uint32_t>(std::find(marks.begin(), marks.end(), 1) - marks.begin());
  }

  [[nodiscard]] bool something_will_happen(const View& view) const {
    return !view.running().empty() || view.arrived() < view.job_count() ||
           (options_.signals && SignalReader::next_change(view) < Time::max());
  }

  // Who waits may wait for a signal.
  void wake_at_change(const View& view, Decision& decision) {
    const Time next = SignalReader::next_change(view);
    if (next == Time::max() || next == awake_at_) return;
    decision.wake(next);
    awake_at_ = next;
  }

  // Precondition of each: it was asked of every shape that waits whether it fits.
  void mark_fitting(const View& view) {
    forced_ = false;
    const WaitingJob& oldest = tokens_.waiting().front();
    if (options_.starvation != Time::max() && view.now().us - oldest.submit_us >= options_.starvation.us) {
      forced_ = shapes_[oldest.slot].fits;
      tokens_.mark(0).front() = forced_ ? 1 : 0;
      return;
    }
    const std::span<const WaitingShapes::Slot> slots = shapes_.slots();
    if (put_off_in_.empty()) {  // so in most runs
      tokens_.mark_if([slots](const WaitingJob& job) { return slots[job.slot].fits; });
      return;
    }
    tokens_.mark_if([this, slots](const WaitingJob& job) { return slots[job.slot].fits && !is_put_off(job.job); });
  }

  void mark_first_fitting() {
    forced_ = false;
    const auto marks = tokens_.mark(0);
    const auto waiting = tokens_.waiting();
    std::size_t best = waiting.size();
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (!shapes_[waiting[i].slot].fits) continue;
      if (best == waiting.size() || waiting[i].key < waiting[best].key) best = i;
    }
    if (best < waiting.size()) marks[best] = 1;
  }

  void mark_backfill(const View& view) {
    const auto marks = tokens_.mark(0);
    const auto waiting = tokens_.waiting();
    std::size_t head = 0;
    for (std::size_t i = 1; i < waiting.size(); ++i) {
      if (waiting[i].key < waiting[head].key) head = i;
    }
    forced_ = shapes_[waiting[head].slot].fits;
    if (forced_) {
      marks[head] = 1;
    } else {
      mark_behind(view, head, marks);
    }
  }

  // Before there is a head, all jobs where any fits; behind it, those that do not delay it.
  void mark_reserve(const View& view) {
    const auto waiting = tokens_.waiting();
    const bool any =
        std::any_of(waiting.begin(), waiting.end(), [this](const WaitingJob& job) { return shapes_[job.slot].fits; });
    forced_ = head_place_ == no_index;
    const auto marks = tokens_.mark(any && forced_ ? 1 : 0);
    if (!forced_) mark_behind(view, head_place_, marks);
  }

  // EASY: a job may start if it ends before the head's reservation by what is known, or uses GPUs that the head will
  // not need then. Precondition: the head does not fit.
  void mark_behind(const View& view, std::size_t head, std::span<std::uint8_t> marks) {
    const auto waiting = tokens_.waiting();
    const std::int64_t shadow = shapes_.earliest_us(view, ends_, waiting[head].slot);
    const MilliGpu spare = view.cluster().free_gpu_milli() + ends_.freed_by(shadow) - shapes_[waiting[head].slot].milli;
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      const WaitingShapes::Slot& slot = shapes_[waiting[i].slot];
      if (i == head || !slot.fits) continue;
      marks[i] = view.now().us + waiting[i].known_us <= shadow || slot.milli <= spare ? 1 : 0;
    }
  }

  // Starts it; where it does not fit, waits for it (select_blocking) or makes it the head (reserve).
  void choose(std::uint32_t place, const View& view, Decision& decision) {
    if (options_.mode == ActionMode::select_blocking && !fits(place, view, decision)) {
      block_on(view, place);
    } else if (options_.mode == ActionMode::reserve && !fits(place, view, decision)) {
      head_place_ = place;
    } else {
      begin_start(place, view, decision);
    }
  }

  [[nodiscard]] bool fits(std::uint32_t place, const View& view, Decision& decision) {
    return shapes_.fits(view, decision, tokens_.waiting()[place].slot);
  }

  // ---- starts ------------------------------------------------------------------------------------------------------

  // Starts it, or opens the choice of its node.
  void begin_start(std::uint32_t place, const View& view, Decision& decision) {
    if (options_.node_speeds) return begin_start_on_type(place, view, decision);
    if (options_.choose_nodes) list_node_kinds(view, tokens_.waiting()[place].job, options_.max_jobs, kinds_);
    if (!options_.choose_nodes || kinds_.size() < 2) {
      start(place, view, decision);
      return;
    }
    open_placing(place, view);
    may_wait_ = false;
  }

  // A job that has room on several types together alone, where it would run at the speed of the slowest, waits for one
  // that can hold it.
  void begin_start_on_type(std::uint32_t place, const View& view, Decision& decision) {
    const JobId job = tokens_.waiting()[place].job;
    const bool may_wait = !forced_ && something_will_happen(view);
    list_types_with_room(view, job, types_);
    if (types_.empty() && may_wait && speeds_[job].one_type_holds_it) {
      if (options_.signals) wake_at_change(view, decision);
      put_off(job);
    } else if (types_.empty() || (types_.size() == 1 && !may_wait)) {
      start(place, view, decision);
    } else {
      open_placing(place, view);
      may_wait_ = may_wait;
    }
  }

  void open_placing(std::uint32_t place, const View& view) {
    tokens_.describe(options_.heuristic);
    groups_.update(view);
    follow_arrivals(view);
    placing_ = place;
  }

  // The job waits until the next event.
  void put_off(JobId job) {
    if (put_off_in_.size() <= index(job)) put_off_in_.resize(index(job) + 1);
    put_off_in_[index(job)] = instants_;
  }
  [[nodiscard]] bool is_put_off(JobId job) const {
    return index(job) < put_off_in_.size() && put_off_in_[index(job)] == instants_;
  }

  void start(std::uint32_t place, const View& view, Decision& decision) {
    const Verdict verdict = decision.start(tokens_.waiting()[place].job);
    if (verdict == Verdict::no_power) return want_power(place, view);
    if (verdict == Verdict::over_limit) return put_off(tokens_.waiting()[place].job);
    GPUSCHED_ASSERT(verdict == Verdict::ok, "a job that fits was refused");
    static_cast<void>(verdict);
    note_start(place, view);
  }

  // A cap refused what has room: jobs of its shape do not fit until the cluster or the power changes.
  void want_power(std::uint32_t place, const View& view) {
    shapes_.refuse(tokens_.waiting()[place].slot);
    if (options_.mode == ActionMode::select_blocking && blocked_ == no_job) block_on(view, place);
    if (options_.mode == ActionMode::reserve && head_place_ == no_index) head_place_ = place;
  }

  void start_on(NodeId node, const View& view, Decision& decision) {
    const std::uint32_t place = std::exchange(placing_, no_index);
    const JobId job = tokens_.waiting()[place].job;
    const NodeTasks all{.node = node, .tasks = view.shape(job).tasks};
    const Verdict verdict = decision.start_on(job, {&all, 1});
    if (verdict == Verdict::no_power) return want_power(place, view);
    if (verdict == Verdict::over_limit) return put_off(tokens_.waiting()[place].job);
    GPUSCHED_ASSERT(verdict == Verdict::ok, "a job that fits the node was refused");
    static_cast<void>(verdict);
    note_start(place, view);
  }

  void start_on_type(std::uint32_t gpu_type, const View& view, Decision& decision) {
    const std::uint32_t place = std::exchange(placing_, no_index);
    const Verdict verdict = decision.start_on_type(tokens_.waiting()[place].job, gpu_type);
    if (verdict == Verdict::no_power) return want_power(place, view);
    if (verdict == Verdict::over_limit) return put_off(tokens_.waiting()[place].job);
    GPUSCHED_ASSERT(verdict == Verdict::ok, "a job that fits the GPU type was refused");
    static_cast<void>(verdict);
    note_start(place, view);
  }

  // ---- select_blocking: the chosen job is waited for ----------------------------------------------------------------

  void block_on(const View& view, std::uint32_t place) {
    const WaitingJob& entry = tokens_.waiting()[place];
    blocked_ = entry.job;
    blocked_place_ = place;
    if (options_.sc20_backfill) reservation_us_ = shapes_.earliest_us(view, ends_, entry.slot);
    backfilled_ = false;
  }

  // False while the chosen job still waits for room.
  bool serve_blocked(const View& view, Decision& decision) {
    if (blocked_ == no_job) return true;
    if (fits(blocked_place_, view, decision)) {
      blocked_ = no_job;
      begin_start(blocked_place_, view, decision);
      return true;
    }
    if (options_.sc20_backfill && !backfilled_) backfill_sc20(view, decision);
    return false;
  }

  // One pass in order of submission; the reservation is that of the moment of choice, and a job must end strictly
  // before it (the SC'20 program has no rule of spare nodes).
  void backfill_sc20(const View& view, Decision& decision) {
    backfilled_ = true;
    for (std::uint32_t place = 0; place < tokens_.waiting().size();) {
      const WaitingJob& entry = tokens_.waiting()[place];
      const std::int64_t end = view.now().us + entry.known_us;
      if (entry.job != blocked_ && end < reservation_us_ && fits(place, view, decision)) {
        start(place, view, decision);
      } else {
        ++place;
      }
    }
  }

  // ---- the observation -------------------------------------------------------------------------------------------

  // What the observation needs beyond the candidates; most instants leave nothing to choose and need none of it.
  void describe_all(const View& view) {
    groups_.update(view);
    follow_arrivals(view);
    shapes_.describe(view, groups_, ends_);
  }

  // Keeps the first job submitted within the last five minutes and the last hour.
  void follow_arrivals(const View& view) {
    const auto follow = [&view](std::uint32_t& first, std::int64_t seconds) {
      const Time from{view.now().us - seconds * microseconds_per_second};
      while (first < view.arrived() && view.listed(JobId{first}) <= from) ++first;
    };
    follow(first_of_5m_, 300);
    follow(first_of_60m_, 3600);
  }

  void write_kinds(const View& view, const ObservationSlot& slot) const {
    const WaitingJob& entry = tokens_.waiting()[placing_];
    const float wait = static_cast<float>(view.now().us - entry.submit_us) * 1e-6f;
    float* out = slot.jobs;
    for (std::uint32_t i = 0; i < size(); ++i, out += job_features) {
      const auto idle = static_cast<float>(kinds_[i].idle);
      out[log_wait] = fast_log1p(wait) * 0.1f;
      out[log_known] = entry.log_known;
      out[log_gpus] = shapes_[entry.slot].row[log_gpus];
      out[gpus_over_free] = std::min(4.0f, entry.gpus / std::max(idle, 1.0f)) * 0.25f;
      out[log_slowdown] = fast_log1p(wait * entry.per_known_s) * 0.2f;
      out[fits_now] = 1.0f;
      out[log_area] = entry.log_area;
      out[age_rank] = static_cast<float>(i) / static_cast<float>(size());
      out[gpus_over_total] = shapes_[entry.slot].row[gpus_over_total];
      out[user_share] = user_shares_[entry.user];
      out[fills_nodes] = idle == entry.gpus ? 1.0f : 0.0f;
      out[log_earliest_start] = -1.0f - 0.25f * static_cast<float>(kinds_[i].gpu_type);
      slot.prior[i] = -static_cast<float>(i);
      slot.mask[i] = 1;
    }
    slot.prior[size()] = 0.0f;
  }

  void write_types(const View& view, const ObservationSlot& slot) const {
    const WaitingJob& entry = tokens_.waiting()[placing_];
    const JobSpeeds& own = speeds_[entry.job];
    const float best = own.best;
    const std::vector<GpusOfType> gpus = gpus_by_type(view.cluster());
    const std::int64_t until_us = us_until_best_is_free(view, entry, gpus);
    float* out = slot.jobs;
    for (std::uint32_t i = 0; i < size(); ++i, out += job_features) {
      const TypeWithRoom& type = types_[i];
      const float speed = relative_speed(view, entry.job, type.gpu_type);
      out[place_log_wait] = fast_log1p(static_cast<float>(view.now().us - entry.submit_us) * 1e-6f) * 0.1f;
      out[place_log_here] = fast_log1p(entry.known_s * best / speed) * 0.1f;
      out[place_log_best] = entry.log_known;
      out[place_log_gpus] = shapes_[entry.slot].row[log_gpus];
      out[place_rate] = log_ratio(speed, best);
      out[place_free_rate] = log_ratio(relative_speed(view, entry.job, types_.front().gpu_type), best);
      out[place_speed] = log_ratio(speed, 1.0f);
      out[place_type_free] = gpus[type.gpu_type].free / std::max(1.0f, gpus[type.gpu_type].all);
      out[place_log_until] = fast_log1p(static_cast<float>(until_us) * 1e-6f) * 0.1f;
      out[place_keener] = share_of_keener(entry.job, type.gpu_type);
      out[place_one_node] = type.on_one_node ? 1.0f : 0.0f;
      out[place_type] = -1.0f - 0.25f * static_cast<float>(type.gpu_type);
      slot.prior[i] = -static_cast<float>(i);
      slot.mask[i] = 1;
    }
    slot.prior[size()] = may_wait_ ? -1.0f : 0.0f;
  }

  // 0 also where running jobs do not hold enough of it, or nothing is known of their ends.
  [[nodiscard]] std::int64_t us_until_best_is_free(const View& view, const WaitingJob& entry,
                                                   std::span<const GpusOfType> gpus) const {
    const std::uint32_t type = speeds_[entry.job].best_type;
    const float short_of = entry.gpus - gpus[type].free;
    if (short_of <= 0) return 0;
    const auto milli = static_cast<MilliGpu>(short_of * static_cast<float>(whole_gpu));
    const auto end = ends_.until_freed_on(type, milli);
    return end ? std::max<std::int64_t>(0, *end - view.now().us) : 0;
  }

  // Of the waiting jobs but this one, those that lose less by running on that type instead of on their best.
  [[nodiscard]] float share_of_keener(JobId job, std::uint32_t gpu_type) const {
    const float own = speeds_.loss(job, gpu_type);
    std::uint32_t keener = 0;
    for (const WaitingJob& other : tokens_.waiting()) keener += speeds_.loss(other.job, gpu_type) > own ? 1 : 0;
    const auto others = static_cast<float>(std::max<std::size_t>(2, tokens_.waiting().size()) - 1);
    return static_cast<float>(keener) / others;
  }

  void write_global(const View& view, float* out) const {
    const ClusterState& cluster = view.cluster();
    const float total = gpus_of(cluster);
    const auto waiting = tokens_.waiting();
    const std::int64_t now = view.now().us;
    const auto seconds = [](std::int64_t us) { return static_cast<float>(std::max<std::int64_t>(0, us)) * 1e-6f; };
    const std::size_t shown = placing() ? 1 : tokens_.size();
    // Side by side: eight logarithms for the price of two.
    std::array<float, 8> logs{static_cast<float>(waiting.size()),
                              static_cast<float>(waiting.size() - shown),
                              static_cast<float>(ends_.size()),
                              static_cast<float>(view.arrived() - first_of_5m_),
                              static_cast<float>(view.arrived() - first_of_60m_),
                              static_cast<float>(std::max(0.0, queued_work_s_)) / total,
                              waiting.empty() ? 0.0f : seconds(now - waiting.front().submit_us),
                              seconds(ends_.next_us().value_or(now) - now)};
    fast_log1p_each(logs, logs.size(), 1.0f);
    out[free_fraction] = static_cast<float>(cluster.free_gpu_milli()) / (total * static_cast<float>(whole_gpu));
    out[log_queue] = logs[0] * 0.2f;
    out[log_hidden] = logs[1] * 0.2f;
    out[log_running] = logs[2] * 0.2f;
    out[log_arrivals_5m] = logs[3] * 0.2f;
    out[log_arrivals_60m] = logs[4] * 0.2f;
    out[log_queued_work] = logs[5] * 0.1f;
    out[log_oldest_wait] = logs[6] * 0.1f;
    out[log_next_end] = logs[7] * 0.1f;
    const auto& sines = hour_table()[hour_of_week(view.now())];
    std::copy(sines.begin(), sines.end(), out + hour_sin);
    out[fragmented_fraction] = static_cast<float>(groups_.fragmented_gpus()) / total;
  }

  AgendaOptions options_;
  KnownRuns known_;

  JobTokens tokens_;
  WaitingShapes shapes_;  // of the waiting jobs
  KnownEnds ends_;
  NodeGroups groups_;
  std::vector<MilliGpu> user_milli_;
  std::vector<float> user_shares_;                    // user_share of each
  float share_of_milli_ = 0;                          // share of the cluster that a thousandth of a GPU is
  double queued_work_s_ = 0;                          // known GPU-seconds waiting
  std::uint32_t first_of_5m_ = 0, first_of_60m_ = 0;  // jobs

  std::uint32_t choices_ = 0;
  bool may_wait_ = false, forced_ = false;
  bool waited_ = false;          // since the last observe()
  Time awake_at_ = Time::max();  // signals: the last wake that was asked for

  JobId blocked_ = no_job;
  std::uint32_t blocked_place_ = 0;  // among the waiting jobs
  std::int64_t reservation_us_ = 0;
  bool backfilled_ = false;  // since the last observe()

  std::uint32_t head_place_ = no_index;  // reserve: of the waiting job that holds the reservation at this instant

  std::uint32_t placing_ = no_index;  // place of the waiting job whose node is being chosen
  std::vector<NodeKind> kinds_;

  // node_speeds.
  TypeSpeeds speeds_;
  std::vector<TypeWithRoom> types_;        // of the open choice
  std::uint32_t instants_ = 0;             // calls of observe()
  std::vector<std::uint32_t> put_off_in_;  // by job: the instant in which it was last put off
};

}  // namespace gpusched::detail
