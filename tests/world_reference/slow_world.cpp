// SPDX-License-Identifier: Apache-2.0
// What happens, and in which order. slow_world_rates.cpp has what rates and starts depend on.
#include "tests/world_reference/slow_world.hpp"

#include <algorithm>
#include <utility>

namespace gpusched::test {

using gpusched::detail::CommandKind;
using gpusched::detail::EndOfRun;

SlowWorld::SlowWorld(const JobTable& jobs, const Cluster& cluster, const EngineOptions& options,
                     const RunInputs& inputs)
    : table_(&jobs), cluster_(&cluster), options_(options), inputs_(inputs) {
  if (jobs.size() > 0) now_ = jobs.submit(JobId{0});
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId id{i};
    SlowJob job;
    job.asked = job.held = jobs.shape(id);
    job.shape_id = jobs.shape_id(id);
    job.priority = jobs.priority(id);
    job.eligible = jobs.submit(id);
    jobs_.push_back(job);
  }
  nodes_.resize(cluster.nodes.size());
  for (SlowNode& node : nodes_) node.empty_since = node.ready = now_;
  if (inputs.stages != nullptr && !inputs.stages->is_empty()) storage_ = SlowStorage(*inputs.stages, jobs, cluster);
  if (inputs.failures == nullptr || inputs.failures->is_empty()) return;
  // A node whose first change is that it comes up is down until then. What is recorded up to the start has happened.
  std::set<NodeId> seen;
  for (const NodeChange& change : inputs.failures->changes()) {
    if (seen.insert(change.node).second && change.up) {
      nodes_[index(change.node)].recorded = SlowNode::Absence::down;
    }
  }
  const auto recorded = inputs.failures->changes();
  for (; next_recorded_ < recorded.size() && recorded[next_recorded_].time <= now_; ++next_recorded_) {
    const NodeChange& change = recorded[next_recorded_];
    nodes_[index(change.node)].recorded = change.up      ? SlowNode::Absence::none
                                          : change.drain ? SlowNode::Absence::drained
                                                         : SlowNode::Absence::down;
  }
  units_.resize(inputs.failures->units().size());
  for (std::uint32_t unit = 0; unit < units_.size(); ++unit) plan_unit(unit, now_);
  for (std::uint32_t i = 0; i < inputs.failures->spares(); ++i) nodes_[nodes_.size() - 1 - i].is_spare = true;
  call_spares();
  events_.clear();  // nobody sees who is there from the start
}

// ---- time ----

Time SlowWorld::due(const SlowJob& job) const {
  const JobId id{static_cast<std::uint32_t>(&job - jobs_.data())};
  return job.run.when_left(std::max(job.run.left_at_save(), left_at_phase_end(job, id)));
}

Time SlowWorld::next_of_runs() const {
  Time next = Time::max();
  for (const SlowJob& job : jobs_) {
    if (job.phase == JobPhase::running) next = std::min({next, due(job), job.limit_end});
  }
  return next;
}

Time SlowWorld::next_outage() const {
  Time next = Time::max();
  if (inputs_.failures != nullptr && next_recorded_ < inputs_.failures->changes().size()) {
    next = inputs_.failures->changes()[next_recorded_].time;
  }
  for (const SlowUnit& unit : units_) next = std::min(next, unit.time);
  return next;
}

Time SlowWorld::next_time() const {
  Time next = next_of_runs();
  if (!wakes_.empty()) next = std::min(next, *wakes_.begin());
  if (arrived_ < jobs_.size()) next = std::min(next, table_->submit(JobId{arrived_}));
  if (all_done()) return next;
  if (inputs_.changes != nullptr && next_change_ < inputs_.changes->all().size()) {
    next = std::min(next, inputs_.changes->all()[next_change_].time);
  }
  if (storage_.active()) next = std::min(next, storage_.next_time(now_));
  for (std::uint32_t i = 0; i < arrived_; ++i) {
    if (jobs_[i].phase == JobPhase::future) next = std::min(next, may_run_from(JobId{i}));
  }
  // Nodes that fail and come back for ever keep no run going, unless some are away.
  if (next != Time::max() || !all_nodes_work()) next = std::min(next, next_outage());
  return next;
}

void SlowWorld::pass(Time to) {
  const Time span = to - now_;
  if (span.us == 0) return;
  for (std::uint32_t i = 0; i < nodes_.size() && !all_done(); ++i) {  // the ledger ends with the last job
    const MilliGpu free = cluster_->nodes[i].gpus * whole_gpu - held(NodeId{i}).gpu;
    (is_in_service(NodeId{i}) ? idle_ : withheld_) += gpusched::detail::WideInt{free} * span.us;
  }
  for_each_running([&](JobId, SlowJob& job) { job.held_gpu += gpusched::detail::WideInt{job.run.milli} * span.us; });
  if (storage_.active()) storage_.pass(span);
  now_ = to;
}

bool SlowWorld::advance() {
  events_.clear();
  while (events_.empty()) {
    const Time next = next_time();
    if (next == Time::max()) return false;
    pass(next);
    happen();
  }
  return true;
}

void SlowWorld::happen() {
  end_what_is_due();
  ring();
  end_at_limits();
  if (!all_done()) change_jobs();
  if (!all_done()) end_transfers();
  if (!all_done()) change_nodes();
  sleep();
  adapt_rates();
  release_waiting();
  submit();
}

// ---- what happens ----

void SlowWorld::end_what_is_due() {
  for (bool again = true; again;) {
    again = false;
    for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
      const JobId id{i};
      SlowJob& job = jobs_[i];
      if (job.phase != JobPhase::running || due(job) != now_) continue;
      again = true;
      const std::int64_t save = job.run.left_at_save(), phase = left_at_phase_end(job, id);
      if (save > 0 && save >= phase) {
        settle(id);
        job.run.is_saving = true;
        storage_.save(id, parts_of(id));
        job.run.rate = rate_now(id);
        job.run.rests = true;
      } else if (phase > 0) {
        settle(id);
        ++job.curve_phase;
        adapt_costs(id);
        job.run.rate = rate_now(id);
      } else {
        end_run(id, EndOfRun::finished);
        if (job.attempt + 1 < table_->attempts(id)) {
          job.work_left = table_->attempt_work(id, ++job.attempt).us;
          wait(id);
          emit(EventKind::retry, id);
        } else {
          emit(EventKind::finish, id);
          finish_job(id);
        }
      }
    }
  }
}

void SlowWorld::ring() {
  if (wakes_.empty() || *wakes_.begin() != now_) return;
  wakes_.erase(now_);  // all of them
  emit(EventKind::wake, no_job);
}

void SlowWorld::end_at_limits() {
  for_each_running([this](JobId id, SlowJob& job) {
    if (job.limit_end != now_) return;
    end_run(id, EndOfRun::cancelled);
    emit(EventKind::finish, id);
    finish_job(id);
  });
}

void SlowWorld::change_jobs() {
  if (inputs_.changes == nullptr) return;
  const auto changes = inputs_.changes->all();
  for (; next_change_ < changes.size() && changes[next_change_].time == now_ && !all_done(); ++next_change_) {
    if (jobs_[index(changes[next_change_].job)].phase != JobPhase::done) change(changes[next_change_]);
  }
}

void SlowWorld::change(const JobChange& change) {
  const JobId id = change.job;
  SlowJob& job = jobs_[index(id)];
  const bool waits_for_others = job.phase == JobPhase::future, runs = job.phase == JobPhase::running;
  if (change.kind == JobChange::Kind::cancel) {
    job.is_cancelled = true;
    if (runs) end_run(id, EndOfRun::cancelled);
    emit(runs ? EventKind::finish : waits_for_others ? EventKind::refuse : EventKind::withdraw, id);
    finish_job(id);
  } else if (change.kind == JobChange::Kind::priority) {
    if (std::exchange(job.priority, change.priority) != change.priority && !waits_for_others) {
      emit(EventKind::reprioritize, id);
    }
  } else if (job.shape_id != change.shape) {
    if (runs) {
      settle(id);
      job.is_resized = true;
      wait(id);
      emit(EventKind::kill, id);
    }
    if (!waits_for_others) emit(EventKind::withdraw, id);
    job.shape_id = change.shape;
    job.asked = table_->shapes()[change.shape];
    if (!waits_for_others) emit(EventKind::submit, id);
  }
}

void SlowWorld::end_transfers() {
  while (storage_.active() && storage_.next_time(now_) == now_) {
    storage_.end_one(now_);
    for_each_running([&](JobId id, SlowJob& job) {
      if (!job.run.is_saving || storage_.waits(id)) return;
      settle(id);
      job.run.is_saving = false;
      job.run.kept = job.run.done;
      job.run.secure();
    });
  }
}

// Recorded changes come before drawn ones of the same instant, these by the number of what fails.
void SlowWorld::change_nodes() {
  while (next_outage() == now_ && !all_done()) {
    const auto recorded = inputs_.failures->changes();
    if (next_recorded_ < recorded.size() && recorded[next_recorded_].time == now_) {
      change_recorded(recorded[next_recorded_++]);
    } else {
      std::uint32_t unit = 0;
      while (units_[unit].time != now_) ++unit;
      change_unit(unit);
    }
    call_spares();
  }
}

void SlowWorld::change_recorded(const NodeChange& change) {
  using Absence = SlowNode::Absence;
  SlowNode& node = nodes_[index(change.node)];
  const bool before = is_in_service(change.node);
  if (change.up) {
    if (std::exchange(node.recorded, Absence::none) != Absence::none) come_back(change.node, before, {}, {});
    return;
  }
  if (node.recorded == Absence::down || (change.drain && node.recorded == Absence::drained)) return;
  node.recorded = change.drain ? Absence::drained : Absence::down;
  if (!change.drain) lose(change.node);
  if (before) emit(EventKind::node_down, no_job, change.node);
}

void SlowWorld::change_unit(std::uint32_t number) {
  SlowUnit& unit = units_[number];
  const NodeFailures& failures = *inputs_.failures;
  const std::span<const NodeId> nodes = failures.nodes(failures.units()[number]);
  const double detect_s = failures.law(failures.units()[number].law).detect_s;
  if (unit.next == SlowUnit::Next::fault) {
    unit.is_faulty = true;
    unit.next = SlowUnit::Next::down;
    unit.time = later_by(now_, from_seconds(detect_s));
    adapt_rates();
    return;
  }
  std::vector<char> before;
  for (const NodeId node : nodes) before.push_back(is_in_service(node) ? 1 : 0);
  const bool goes_down = unit.next == SlowUnit::Next::down;
  unit.is_faulty = false;
  unit.is_down = goes_down;
  plan_unit(number, now_);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!goes_down) {
      come_back(nodes[i], before[i], nodes.subspan(i + 1), std::span(before).subspan(i + 1));
      continue;
    }
    lose(nodes[i]);
    if (before[i]) emit(EventKind::node_down, no_job, nodes[i]);
  }
}

// The even draws of a unit are times until a failure, the odd ones repairs.
void SlowWorld::plan_unit(std::uint32_t number, Time from) {
  SlowUnit& unit = units_[number];
  const FailureLaw& law = inputs_.failures->law(inputs_.failures->units()[number].law);
  Rng rng = Rng(options_.seed).split("failures").split(number).split(unit.draws);
  const bool repairs = unit.draws++ % 2 == 1;
  const double span_s = repairs ? law.draw_repair(rng) : law.draw_up(rng);
  unit.next = repairs ? SlowUnit::Next::up : law.detect_s > 0 ? SlowUnit::Next::fault : SlowUnit::Next::down;
  unit.time = span_s < to_seconds(end_of_time) ? later_by(from, from_seconds(std::max(span_s, 0.0))) : Time::max();
  if (unit.time > end_of_time) unit.time = Time::max();
}

// What runs there loses all of its nodes.
void SlowWorld::lose(NodeId node) {
  for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
    const JobId id{i};
    SlowJob& job = jobs_[i];
    if (!nodes_of(id).contains(node)) continue;
    end_run(id, EndOfRun::killed);
    ++job.kills;
    wait(id);
    // One that was given another size at this instant waits already.
    if (!std::exchange(job.is_resized, false)) emit(EventKind::kill, id, node);
  }
  if (storage_.active()) storage_.clear(node);
}

// Something that kept the node away is over. The nodes of a unit come back one after another, in their order: `later`
// come after this one.
void SlowWorld::come_back(NodeId node, bool was_in_service, std::span<const NodeId> later,
                          std::span<const char> later_were_in_service) {
  if (was_in_service || !is_in_service(node)) return;
  std::uint32_t away = out(node);
  for (std::size_t i = 0; i < later.size(); ++i) {
    away += !later_were_in_service[i] && is_in_service(later[i]) && are_alike(node, later[i]) ? 1 : 0;
  }
  if (spares_of(node) > 0 && away < spares_of(node)) {
    nodes_[index(node)].is_spare = true;
  } else {
    emit(EventKind::node_up, no_job, node);
  }
}

// Spares come into service when more nodes of their kind are away than there are spares of it.
void SlowWorld::call_spares() {
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].is_spare || !is_sound(NodeId{i}) || out(NodeId{i}) <= spares_of(NodeId{i})) continue;
    nodes_[i].is_spare = false;
    emit(EventKind::node_up, no_job, NodeId{i});
    i = no_index;  // from the first one again
  }
}

// When all that the job waits for ended, and its delay later; never: something did not end.
Time SlowWorld::may_run_from(JobId id) const {
  Time from{std::numeric_limits<std::int64_t>::min() / 2};
  for (const JobId other : table_->dependencies().of(id)) {
    if (jobs_[index(other)].phase != JobPhase::done) return Time::max();
    from = std::max(from, jobs_[index(other)].end + table_->dependencies().delay(id));
  }
  return from;
}

// Jobs that need not wait for others any longer join their queues, by id.
void SlowWorld::release_waiting() {
  for (std::uint32_t i = 0; i < arrived_; ++i) {
    if (jobs_[i].phase == JobPhase::future && may_run_from(JobId{i}) <= now_) join(JobId{i});
  }
}

void SlowWorld::submit() {
  while (arrived_ < jobs_.size() && table_->submit(JobId{arrived_}) == now_) {
    ++arrived_;
    release_waiting();
  }
}

// ---- the policy's decision ----

void SlowWorld::decide(std::span<const ToldCommand> commands) {
  events_.clear();
  for (std::uint32_t i = 0; i < jobs_.size(); ++i) {  // those of another size go on, or were stopped
    SlowJob& job = jobs_[i];
    if (!job.is_resized) continue;
    const auto restart = std::find_if(commands.begin(), commands.end(), [i](const ToldCommand& command) {
      return command.kind == CommandKind::start && command.job == JobId{i};
    });
    std::set<NodeId> kept;
    if (restart != commands.end()) {
      for (const Grant& grant : restart->nodes) kept.insert(grant.node);
    }
    const std::set<NodeId> before = nodes_of(JobId{i});
    const bool goes_on = restart != commands.end() && restart->shape.tasks <= job.held.tasks &&
                         std::includes(before.begin(), before.end(), kept.begin(), kept.end());
    if (goes_on) {
      go_on_resized(JobId{i}, *restart);
    } else {
      job.phase = JobPhase::running;
      end_run(JobId{i}, EndOfRun::resized);
      job.phase = JobPhase::pending;
    }
    job.is_resized = false;
  }
  for (const ToldCommand& command : commands) {
    SlowJob* const job = command.job == no_job ? nullptr : &jobs_[index(command.job)];
    switch (command.kind) {
      case CommandKind::start:
        if (!runs(command.job)) start(command);
        break;
      case CommandKind::preempt:
        if (command.takes_back) job->was_preempted_last = true;
        if (!command.takes_back) preempt(command.job);
        break;
      case CommandKind::cancel:
        job->is_cancelled = true;
        emit(EventKind::withdraw, command.job);
        finish_job(command.job);
        break;
      case CommandKind::wake:
        if (command.time <= end_of_time) wakes_.insert(command.time);
        break;
      case CommandKind::adjust: {
        settle(command.job);
        const std::int64_t change = std::max(command.time.us, -job->run.left());  // nothing is left at least
        job->run.total += change;
        job->run.extra += change;
        break;
      }
      case CommandKind::move: move(command); break;
      case CommandKind::hold:
      case CommandKind::resume:
        job->is_held = command.kind == CommandKind::hold;
        adapt_rate(command.job);
        break;
      case CommandKind::limit_power:
        job->watts = static_cast<double>(command.time.us) / 1e6;  // its rate follows once all is carried out
        break;
    }
  }
  sleep();
  adapt_rates();
}

void SlowWorld::preempt(JobId job) {
  end_run(job, EndOfRun::preempted);
  wait(job);
  jobs_[index(job)].was_preempted_last = true;
  ++jobs_[index(job)].preemptions;
  emit(EventKind::preempt, job);
}

// ---- runs that end ----

void SlowWorld::end_run(JobId id, EndOfRun why) {
  SlowJob& job = jobs_[index(id)];
  settle(id);
  const bool is_done = why == EndOfRun::finished || why == EndOfRun::cancelled;
  // Without periodic checkpoints, whatever was done is saved at a preemption; at a fixed interval it falls back, too.
  const bool saves_at_preemption =
      job.run.interval == 0 || options_.preemption.rule != CheckpointRule::fixed || !counts_costs();
  const bool saves = is_done || (why != EndOfRun::killed && saves_at_preemption);
  if (!is_done) {
    job.work_left = job.run.work_left(saves);
    job.must_restart = true;
    job.was_killed = why == EndOfRun::killed;
  }
  job.run.close(saves);
  job.ran += job.run.ran;
  job.limit_end = Time::max();
  if (why == EndOfRun::killed) job.counted_from = job.ran;
  job.account.useful.add(job.run.account.useful);
  job.account.overhead.add(job.run.account.overhead);
  job.account.lost.add(job.run.account.lost);
  job.account.roundings += job.run.account.roundings;
  leave_nodes(id);
  std::erase_if(events_, [id](const Event& event) { return event.kind == EventKind::reprioritize && event.job == id; });
  job.run = {};
}

void SlowWorld::leave_nodes(JobId id) {
  SlowJob& job = jobs_[index(id)];
  if (storage_.active()) {
    storage_.cancel_saves(id);
    storage_.leave(id, nodes_of(id), now_);
  }
  job.nodes.clear();
}

void SlowWorld::wait(JobId id) {
  jobs_[index(id)].phase = JobPhase::pending;
  jobs_[index(id)].was_preempted_last = false;
}

void SlowWorld::join(JobId id) {
  SlowJob& job = jobs_[index(id)];
  job.work_left = table_->attempt_work(id, 0).us;
  job.joined = joined_++;
  job.eligible = now_;
  wait(id);
  emit(EventKind::submit, id);
}

void SlowWorld::finish_job(JobId id) {
  SlowJob& job = jobs_[index(id)];
  job.phase = JobPhase::done;
  job.work_left = 0;
  job.end = now_;
  ++done_;
}

}  // namespace gpusched::test
