// SPDX-License-Identifier: Apache-2.0
// What starts cost, who is where, and how fast each run is for that.
#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "tests/world_reference/slow_world.hpp"

namespace gpusched::test {

// ---- starts ----

void SlowWorld::start(const ToldCommand& command) {
  const JobId id = command.job;
  SlowJob& job = jobs_[index(id)];
  if (job.first_start == Time::max()) job.first_start = now_;
  job.phase = JobPhase::running;
  job.nodes = command.nodes;
  job.held = command.shape;
  job.is_held = false;
  job.run = {};
  job.run.since = now_;
  job.run.milli = command.shape.gpu_milli();
  job.curve_phase = 0;
  if (const ElasticCurve* const it = curve(id)) {
    job.curve_phase = it->phase_at(Time{job.work_left}, table_->attempt_work(id, job.attempt));
  }
  Time waits = storage_.active() ? storage_.enter(id, nodes_of(id), now_) : Time{};
  waits = waits + wake(id);
  begin_costs(id, waits);
  begin_limit(id);
  job.run.rate = rate_now(id);
  job.run.rests = storage_.active() && storage_.waits(id);
  emit(EventKind::start, id);
}

// As sbatch --time: time preempted does not count; a run after a failure, and another attempt, has all of it again.
void SlowWorld::begin_limit(JobId id) {
  SlowJob& job = jobs_[index(id)];
  if (!inputs_.kill_at_limit || table_->estimate(id) == Time::max() || table_->estimate(id).us == 0) return;
  if (std::exchange(job.limited_attempt, job.attempt) != job.attempt) job.counted_from = job.ran;
  job.limit_end = later_by(now_, std::max(table_->estimate(id) - (job.ran - job.counted_from), Time{}));
}

void SlowWorld::begin_costs(JobId id, Time waits) {
  SlowJob& job = jobs_[index(id)];
  SlowRun& run = job.run;
  run.total = job.work_left;
  if (!counts_costs()) return;
  const PreemptionCost& cost = options_.preemption;
  const RatePpm rate = working_rate(id);
  const auto work_in = [rate](Time span) { return mul_div(span.us, rate, reference_rate); };
  run.cost_rate = rate;
  run.interval = interval_of(id, rate);
  run.moves = storage_.moves_checkpoints();
  if (!run.moves && run.interval > 0 && cost.periodic_checkpoint.us > 0 && run.total > 0) {
    run.saving = work_in(cost.periodic_checkpoint);
    run.saves = (run.total - 1) / run.interval;  // none at the end
    run.total += run.saves * run.saving;
  }
  Time load{};
  if (job.must_restart) load = job.was_killed ? cost.restart : cost.checkpoint + cost.restart;
  run.wait = work_in(waits);
  run.has_waited = waits.us > 0;
  run.load = work_in(waits + load) - run.wait;
  job.must_restart = job.was_killed = false;
}

// Work between two checkpoints: the given one, or Young's or Daly's for the nodes that the job got.
std::int64_t SlowWorld::interval_of(JobId id, RatePpm rate) const {
  const PreemptionCost& cost = options_.preemption;
  if (cost.rule == CheckpointRule::fixed) return cost.checkpoint_interval.us;
  double failures_per_s = 0;
  for (std::uint32_t unit = 0; unit < units_.size(); ++unit) {
    const NodeFailures::Unit& failing = inputs_.failures->units()[unit];
    const std::span<const NodeId> its = inputs_.failures->nodes(failing);
    const std::set<NodeId> mine = nodes_of(id);
    const bool stops = std::any_of(its.begin(), its.end(), [&](NodeId node) { return mine.contains(node); });
    if (stops) failures_per_s += 1 / inputs_.failures->law(failing.law).mean_up_s;
  }
  const double write_s =
      storage_.moves_checkpoints() ? storage_.checkpoint_s(parts_of(id)) : to_seconds(cost.periodic_checkpoint);
  if (failures_per_s == 0 || write_s == 0) return 0;
  const double mean_s = 1 / failures_per_s;
  double interval_s = std::sqrt(2 * write_s * mean_s);
  if (cost.rule == CheckpointRule::daly) {
    const double part = write_s / (2 * mean_s);
    interval_s = part < 1 ? interval_s * (1 + std::sqrt(part) / 3 + part / 9) - write_s : mean_s;
  }
  return std::max<std::int64_t>(mul_div(from_seconds(interval_s).us, rate, reference_rate), 1'000'000);
}

// A running job gets other nodes at once: it waits for those, and no longer for what it waited for; one that shrinks
// waits on.
void SlowWorld::move(const ToldCommand& command, bool shrinks) {
  const JobId id = command.job;
  SlowJob& job = jobs_[index(id)];
  const std::set<NodeId> before = nodes_of(id);
  Time waits{};
  if (storage_.active() && job.run.rate == 0) settle(id);
  job.nodes = command.nodes;
  const std::set<NodeId> after = nodes_of(id);
  if (storage_.active()) {
    std::set<NodeId> left, entered;
    std::set_difference(before.begin(), before.end(), after.begin(), after.end(), std::inserter(left, left.end()));
    std::set_difference(after.begin(), after.end(), before.begin(), before.end(),
                        std::inserter(entered, entered.end()));
    storage_.leave(id, left, now_);
    waits = storage_.enter(id, entered, now_);
  }
  waits = waits + wake(id);
  if (rate_now(id) != job.run.rate || (counts_costs() && working_rate(id) != job.run.cost_rate)) settle(id);
  adapt_costs(id);
  if (counts_costs() && (waits.us > 0 || (!shrinks && std::exchange(job.run.has_waited, false)))) {
    settle(id);
    job.run.has_waited = waits.us > 0;
    const std::int64_t rest = shrinks ? job.run.wait : 0;
    job.run.wait = std::max(mul_div(waits.us, working_rate(id), reference_rate), rest);
  }
  job.run.rate = rate_now(id);
  job.run.rests = storage_.active() && storage_.waits(id);
  emit(EventKind::move, id);
}

// The run of a job that was given another size goes on with that.
void SlowWorld::go_on_resized(JobId id, const ToldCommand& command) {
  SlowJob& job = jobs_[index(id)];
  settle(id);
  job.phase = JobPhase::running;
  job.held = command.shape;
  job.run.milli = command.shape.gpu_milli();
  move(command, true);
  events_.pop_back();  // it is told as a start
  emit(EventKind::start, id);
}

// Until the slowest of the run's nodes is awake.
Time SlowWorld::wake(JobId id) {
  Time longest{};
  if (inputs_.power == nullptr || inputs_.power->is_empty()) return longest;
  for (const NodeId at : nodes_of(id)) {
    const NodeSleep& rule = inputs_.power->kinds[inputs_.power->kind_of[index(at)]].sleep;
    SlowNode& node = nodes_[index(at)];
    if (rule.after == Time::max()) continue;
    if (node.is_empty && now_ >= later_by(std::max(node.empty_since, node.ready), rule.after)) {
      node.ready = later_by(now_, rule.wake);
    }
    longest = std::max(longest, node.ready - now_);
  }
  return longest;
}

// A node that nobody uses falls asleep after a while.
void SlowWorld::sleep() {
  std::set<NodeId> used;
  for (std::uint32_t i = 0; i < jobs_.size(); ++i) used.merge(nodes_of(JobId{i}));
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    const bool is_empty = !used.contains(NodeId{i});
    if (is_empty && !nodes_[i].is_empty) nodes_[i].empty_since = now_;
    nodes_[i].is_empty = is_empty;
  }
}

// ---- rates ----

void SlowWorld::adapt_rate(JobId id) {
  SlowRun& run = jobs_[index(id)].run;
  const RatePpm rate = rate_now(id);
  const bool rests = storage_.active() && storage_.waits(id);
  const bool costs_alike = rate > 0 || !counts_costs() || working_rate(id) == run.cost_rate;
  if (rate == run.rate && rests == run.rests && costs_alike) return;
  settle(id);
  adapt_costs(id);
  run.rate = rate;
  run.rests = rests;
}

void SlowWorld::adapt_costs(JobId id) {
  SlowRun& run = jobs_[index(id)].run;
  if (!counts_costs()) return;
  const RatePpm now = working_rate(id), before = std::exchange(run.cost_rate, now);
  if (now == before) return;
  const auto as_long = [&](std::int64_t work) {
    return mul_div(mul_div_up(work, reference_rate, before), now, reference_rate);
  };
  const std::int64_t loads = as_long(run.wait + run.load);
  run.wait = as_long(run.wait);
  run.load = loads - run.wait;
  if (run.saving == 0) return;
  const std::int64_t was = run.saving, is = mul_div(options_.preemption.periodic_checkpoint.us, now, reference_rate);
  const std::int64_t written = std::min(run.done / (run.interval + was), run.saves);
  const std::int64_t begun = run.done % (run.interval + was) - run.interval;
  run.saving = is;
  run.total += run.saves * (is - was);
  run.done += written * (is - was);
  if (written == run.saves || begun <= 0) return;
  run.done += is - std::max<std::int64_t>(as_long(was - begun), 1) - begun;
}

void SlowWorld::adapt_rates() {
  for_each_running([this](JobId id, SlowJob&) { adapt_rate(id); });
}

bool SlowWorld::stands_still(JobId id) const {
  const SlowJob& job = jobs_[index(id)];
  if (job.is_held || (storage_.active() && storage_.waits(id))) return true;
  return std::any_of(job.nodes.begin(), job.nodes.end(), [&](const Grant& grant) { return is_faulty(grant.node); });
}

RatePpm SlowWorld::rate_now(JobId id) const { return stands_still(id) ? 0 : working_rate(id); }

// The slowest task decides. Device x span x company, then the curve, then the power limit; one rounding each.
RatePpm SlowWorld::working_rate(JobId id) const {
  const SlowJob& job = jobs_[index(id)];
  const Span span = span_of(id);
  RatePpm rate = ~RatePpm{0};
  for (std::size_t i = 0; i < job.nodes.size(); ++i) {
    const RatePpm alone = rate_of_task(id, job.nodes[i], span);
    const std::int64_t extra = extra_of(id, job.nodes[i], i);
    const std::int64_t slowed = extra == 0 ? alone : mul_div(alone, reference_rate, reference_rate + extra);
    rate = std::min(rate, static_cast<RatePpm>(std::max<std::int64_t>(slowed, 1)));
  }
  if (const ElasticCurve* const it = curve(id)) rate = scaled_rate(rate, it->rate(job.held.tasks, job.curve_phase));
  return scaled_rate(rate, power_speed(id));
}

RatePpm SlowWorld::rate_of_task(JobId id, const Grant& task, Span span) const {
  const RuntimeModel* const model = inputs_.runtime;
  if (model == nullptr || model->is_uniform()) return reference_rate;
  const SlowJob& job = jobs_[index(id)];
  const std::uint32_t family = table_->family(id), type = cluster_->nodes[index(task.node)].gpu_type;
  const std::span<const RatePpm> speeds = model->rates(family, job.asked);
  RatePpm alone = type < speeds.size() ? speeds[type] : reference_rate;
  if (task.slice != 0) alone = model->slice_rate(family, type, mig_instance(task.slice).profile);
  if (model->spans().is_empty()) return alone;
  return scaled_rate(alone, model->spans().factor(family, job.held, span).on(type));
}

// What the other tasks on the card add to the time of a share of it, in millionths. MIG instances are apart.
std::int64_t SlowWorld::extra_of(JobId id, const Grant& task, std::size_t place) const {
  const Node& node = cluster_->nodes[index(task.node)];
  if (!jobs_[index(id)].held.is_share() || task.slice != 0 || !tells_gpus_apart(task.node)) return 0;
  std::int64_t extra = 0;
  for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
    const SlowJob& other = jobs_[i];
    if (other.phase != JobPhase::running) continue;
    for (std::size_t at = 0; at < other.nodes.size(); ++at) {
      const Grant& beside = other.nodes[at];
      if (beside.node != task.node || beside.devices != task.devices || (JobId{i} == id && at == place)) continue;
      if (node.sharing == SharingMode::time_slicing) {
        extra += reference_rate;
      } else if (inputs_.runtime != nullptr) {
        extra += inputs_.runtime->extra(table_->family(id), table_->family(JobId{i}), node.gpu_type);
      }
    }
  }
  return extra;
}

Span SlowWorld::span_of(JobId id) const {
  const std::set<NodeId> nodes = nodes_of(id);
  std::set<std::uint32_t> racks, sites, islands;
  for (const NodeId node : nodes) {
    racks.insert(cluster_->nodes[index(node)].rack);
    sites.insert(cluster_->site_of(cluster_->nodes[index(node)].rack));
  }
  if (sites.size() > 1) return Span::sites;
  if (racks.size() > 1) return Span::racks;
  if (nodes.size() > 1) return Span::nodes;
  for (const Grant& grant : jobs_[index(id)].nodes) {
    const std::uint32_t island = cluster_->nodes[index(grant.node)].island_gpus;
    for (std::uint64_t bits = grant.devices; bits != 0 && island > 0; bits &= bits - 1) {
      islands.insert(static_cast<std::uint32_t>(std::countr_zero(bits)) / island);
    }
  }
  return islands.size() > 1 ? Span::islands : Span::node;
}

// The greatest setting of each GPU type that is not above what the policy allows, or the least that there is.
RatePpm SlowWorld::power_speed(JobId id) const {
  const SlowJob& job = jobs_[index(id)];
  RatePpm slowest = reference_rate;
  if (inputs_.power == nullptr || inputs_.power->is_empty() || job.watts < 0) return slowest;
  for (const NodeId node : nodes_of(id)) {
    if (cluster_->nodes[index(node)].gpus == 0) continue;
    const auto& limits = inputs_.power->limits(table_->family(id), cluster_->nodes[index(node)].gpu_type);
    if (limits.empty()) continue;
    RatePpm speed = limits.front().speed;
    for (const PowerLimit& limit : limits) {
      if (limit.limit_w <= job.watts) speed = limit.speed;
    }
    slowest = std::min(slowest, speed);
  }
  return slowest;
}

// ---- others ----

void SlowWorld::settle(JobId id) { jobs_[index(id)].run.settle(now_); }

Time SlowWorld::remaining(JobId id) const {
  const SlowJob& job = jobs_[index(id)];
  if (job.phase != JobPhase::running) return Time{job.work_left};
  return Time{job.run.left() - mul_div((now_ - job.run.since).us, job.run.rate, reference_rate)};
}

bool SlowWorld::is_in_service(NodeId node) const { return is_sound(node) && !nodes_[index(node)].is_spare; }

bool SlowWorld::is_sound(NodeId node) const {
  if (nodes_[index(node)].recorded != SlowNode::Absence::none) return false;
  for (std::uint32_t unit = 0; unit < units_.size(); ++unit) {
    const auto nodes = inputs_.failures->nodes(inputs_.failures->units()[unit]);
    if (units_[unit].is_down && std::find(nodes.begin(), nodes.end(), node) != nodes.end()) return false;
  }
  return true;
}

bool SlowWorld::is_faulty(NodeId node) const {
  for (std::uint32_t unit = 0; unit < units_.size(); ++unit) {
    const auto nodes = inputs_.failures->nodes(inputs_.failures->units()[unit]);
    if (units_[unit].is_faulty && std::find(nodes.begin(), nodes.end(), node) != nodes.end()) return true;
  }
  return false;
}

// Every node is in service, or a sound spare, and does work.
bool SlowWorld::all_nodes_work() const {
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    if (!is_sound(NodeId{i}) || is_faulty(NodeId{i})) return false;
  }
  return true;
}

SlowWorld::Held SlowWorld::held(NodeId node) const {
  Held held;
  for (const SlowJob& job : jobs_) {
    if (job.phase != JobPhase::running) continue;
    for (const Grant& grant : job.nodes) {
      if (grant.node != node) continue;
      held.gpu += grant.tasks * job.held.gpu_milli_per_task;
      held.cpu += grant.tasks * job.held.cpu_milli_per_task;
      held.memory += grant.tasks * job.held.memory_mib_per_task;
      for (std::uint64_t bits = grant.devices; bits != 0; bits &= bits - 1) {
        held.devices[static_cast<std::uint32_t>(std::countr_zero(bits))] +=
            job.held.is_share() ? job.held.gpu_milli_per_task : whole_gpu;
      }
    }
  }
  return held;
}

bool SlowWorld::counts_costs() const {
  const bool may_fail = inputs_.failures != nullptr && !inputs_.failures->is_empty();
  bool may_sleep = false;
  if (inputs_.power != nullptr) {
    for (const NodePower& kind : inputs_.power->kinds) may_sleep = may_sleep || kind.sleep.after < Time::max();
  }
  return options_.preemption.any() || may_fail || may_sleep || storage_.active();
}

const ElasticCurve* SlowWorld::curve(JobId id) const {
  return inputs_.elastic == nullptr || inputs_.elastic->is_empty() ? nullptr : inputs_.elastic->curve(*table_, id);
}

std::int64_t SlowWorld::left_at_phase_end(const SlowJob& job, JobId id) const {
  const ElasticCurve* const it = curve(id);
  return it == nullptr ? 0 : it->left_after(job.curve_phase, table_->attempt_work(id, job.attempt)).us;
}

std::set<NodeId> SlowWorld::nodes_of(JobId id) const {
  std::set<NodeId> nodes;
  for (const Grant& grant : jobs_[index(id)].nodes) nodes.insert(grant.node);
  return nodes;
}

std::map<NodeId, MilliGpu> SlowWorld::parts_of(JobId id) const {
  std::map<NodeId, MilliGpu> parts;
  const SlowJob& job = jobs_[index(id)];
  for (const Grant& grant : job.nodes) parts[grant.node] += grant.tasks * job.held.gpu_milli_per_task;
  return parts;
}

bool SlowWorld::tells_gpus_apart(NodeId node) const {
  const Node& it = cluster_->nodes[index(node)];
  return it.gpus > 0 && it.gpus <= Capacity::max_devices_per_node && !it.counts_only;
}

bool SlowWorld::are_alike(NodeId a, NodeId b) const {
  const Node &one = cluster_->nodes[index(a)], &other = cluster_->nodes[index(b)];
  return one.vc == other.vc && one.vc_group == other.vc_group && one.gpu_type == other.gpu_type &&
         one.gpus == other.gpus && one.mig == other.mig;
}

// Nodes of its kind that are out of service.
std::uint32_t SlowWorld::out(NodeId alike) const {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    count += are_alike(alike, NodeId{i}) && !is_in_service(NodeId{i}) ? 1 : 0;
  }
  return count;
}

std::uint32_t SlowWorld::spares_of(NodeId alike) const {
  const std::uint32_t spares = inputs_.failures == nullptr ? 0 : inputs_.failures->spares();
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < spares; ++i) {
    count += are_alike(alike, NodeId{static_cast<std::uint32_t>(nodes_.size()) - 1 - i}) ? 1 : 0;
  }
  return count;
}

}  // namespace gpusched::test
