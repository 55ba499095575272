// SPDX-License-Identifier: Apache-2.0
#include "src/policies/preemptive/gandiva.hpp"

#include <algorithm>
#include <span>

#include "gpusched/policy/most_freed.hpp"
#include "src/policies/queues/periods.hpp"

namespace gpusched {

void Gandiva::decide(const View& view, Decision& decision) {
  if (since_us_.empty()) {
    since_us_.resize(view.job_count(), not_yet);
    running_.resize(view.queue_count());
  }
  note_events(view);
  serve(view, decision, view.now().us % options_.slice.us == 0);
  if (view.pending_count() == 0) return;
  const Time next = multiple_after(view.now(), options_.slice);
  if (next != next_wake_ && decision.wake(next) == Verdict::ok) next_wake_ = next;
}

void Gandiva::note_events(const View& view) {
  for (const Event& event : view.events()) {
    if (event.job == no_job) continue;
    const View then = view.at(event);
    if (leaves_cluster(event.kind)) running_[view.queue_of(event.job)].erase(turn_of(view, event.job));
    if (event.kind == EventKind::withdraw) {
      wait_no_more({view.queue_of(event.job), then.demand(event.job)}, turn_of(view, event.job));
    }
    if (enters_queue(event.kind)) {
      std::int64_t& since_us = since_us_[index(event.job)];
      // One that is submitted again was given another size by its user, and keeps its turn.
      if (event.kind != EventKind::submit || since_us == not_yet) since_us = view.now().us;
      wait({view.queue_of(event.job), then.demand(event.job)}, turn_of(view, event.job));
    }
  }
}

void Gandiva::wait(const Class& of, const Turn& turn) {
  std::set<Turn>& waiting = waiting_[of];
  const bool is_first = waiting.empty() || turn < *waiting.begin();
  if (is_first && !waiting.empty()) firsts_.erase({*waiting.begin(), of});
  if (is_first) firsts_.insert({turn, of});
  waiting.insert(turn);
}

void Gandiva::wait_no_more(const Class& of, const Turn& turn) {
  std::set<Turn>& waiting = waiting_[of];
  waiting.erase(turn);
  if (firsts_.erase({turn, of}) > 0 && !waiting.empty()) firsts_.insert({*waiting.begin(), of});
}

// Of a class without room only the first job is tried. The next one of a class comes later in the order.
void Gandiva::serve(const View& view, Decision& decision, bool may_suspend) {
  for (auto first = firsts_.begin(); first != firsts_.end();) {
    const auto [turn, of] = *first;
    const JobId job = turn.place.job;
    // One suspended at this instant may keep its place, but does not suspend others in turn.
    const bool came_now = turn.since_us == view.now().us;
    const bool placed =
        (came_now && decision.restore(job) == Verdict::ok) || decision.start(job) == Verdict::ok ||
        (may_suspend && !came_now && (gather_on_one_node(view, decision, job) || make_room(view, decision, job)));
    if (!placed) {
      ++first;
      continue;
    }
    wait_no_more(of, turn);
    since_us_[index(job)] = view.now().us;
    running_[view.queue_of(job)].insert(turn_of(view, job));
    // A gang that was suspended may leave room for those passed over.
    first = may_suspend ? firsts_.begin() : firsts_.upper_bound({turn, of});
  }
}

// Suspends the longest-running jobs of the queue until `job` starts; when they do not suffice, nothing changes.
bool Gandiva::make_room(const View& view, Decision& decision, JobId job) {
  auto& running = running_[view.queue_of(job)];
  const Shape& wanted = view.shape(job);
  const auto has_had_its_slice = [&](const Turn& turn) { return turn.since_us + options_.slice.us <= view.now().us; };
  MilliGpu missing = wanted.gpu_milli() - view.cluster().available_gpu_milli(wanted, view.queue_of(job));
  for (auto at = running.begin(); at != running.end() && missing > 0 && has_had_its_slice(*at); ++at) {
    missing -= most_freed(view.shape(at->place.job), wanted);
  }
  if (missing > 0) return false;
  std::vector<Turn> suspended;
  bool started = false;
  while (!started && !running.empty() && has_had_its_slice(*running.begin())) {
    suspended.push_back(*running.begin());
    running.erase(running.begin());
    decision.preempt(suspended.back().place.job);
    started = decision.start(job) == Verdict::ok;
  }
  for (const Turn& turn : suspended) {
    const JobId other = turn.place.job;
    if (!started) {
      decision.restore(other);
      running.insert(turn);
      continue;
    }
    since_us_[index(other)] = view.now().us;
    wait({view.queue_of(other), view.demand(other)}, turn_of(view, other));
  }
  return started;
}

namespace {

// GPUs that the job wants on one node; 0 when it takes what is idle anywhere.
std::uint32_t wanted_on_one_node(const View& view, const Shape& shape) {
  if (shape.cpu_milli_per_task > 0 || shape.memory_mib_per_task > 0 || shape.is_share()) return 0;
  const bool one_task = shape.tasks == 1 && shape.gpu_milli_per_task > whole_gpu;
  if (!one_task && uses_remnants(view.options().placement)) return 0;
  return static_cast<std::uint32_t>(shape.gpu_milli() / whole_gpu);
}

}  // namespace

void Gandiva::suspend(const View& view, Decision& decision, JobId job) {
  running_[view.queue_of(job)].erase(turn_of(view, job));
  decision.preempt(job);
  since_us_[index(job)] = view.now().us;
  wait({view.queue_of(job), view.demand(job)}, turn_of(view, job));
}

bool Gandiva::gather_on_one_node(const View& view, Decision& decision, JobId job) {
  const Shape& shape = view.shape(job);
  const ClusterState& cluster = view.cluster();
  const std::uint32_t wanted = options_.migrates ? wanted_on_one_node(view, shape) : 0;
  if (wanted == 0 || cluster.available_gpu_milli(shape, view.queue_of(job)) < shape.gpu_milli()) return false;
  find_movables(view);
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t node = 0; node < cluster.node_count(); ++node) {
    const bool large = cluster.node_gpus(NodeId{node}) >= wanted;
    if (large && cluster.node_allowed(NodeId{node}, shape, view.queue_of(job))) nodes.push_back(node);
  }
  std::stable_sort(nodes.begin(), nodes.end(), [&](std::uint32_t a, std::uint32_t b) {
    return cluster.node_idle_gpus(NodeId{a}) > cluster.node_idle_gpus(NodeId{b});
  });
  for (const std::uint32_t node : nodes) {
    const std::vector<Move> moves = clear_node(view, node, wanted);
    if (moves.empty()) continue;
    for (const Move& move : moves) decision.vacate(move.job);
    for (const Move& move : moves) {
      if (decision.move_on(move.job, std::span(&move.to, 1)) == Verdict::ok) {
        decision.adjust_work(move.job, options_.migration);
      } else {
        suspend(view, decision, move.job);  // a power cap refuses its new node
      }
    }
    return decision.start(job) == Verdict::ok;
  }
  return false;
}

// Jobs of whole GPUs and nothing else that began before this instant.
void Gandiva::find_movables(const View& view) {
  movables_.assign(view.cluster().node_count(), {});
  for (const JobId job : view.running()) {
    const Shape& shape = view.shape(job);
    const bool counts_only = shape.cpu_milli_per_task == 0 && shape.memory_mib_per_task == 0 && !shape.is_share();
    if (!counts_only || shape.gpu_milli() == 0 || since_us_[index(job)] == view.now().us) continue;
    NodeId node = no_node;
    std::uint32_t nodes = 0;
    view.for_each_grant(job, [&](const Grant& grant) {
      node = grant.node;
      ++nodes;
    });
    const auto gpus = static_cast<std::uint32_t>(shape.gpu_milli() / whole_gpu);
    if (nodes == 1) movables_[index(node)].push_back({gpus, view.queue_place(job)});
  }
  for (auto& jobs : movables_) {
    std::sort(jobs.begin(), jobs.end(), [](const Movable& a, const Movable& b) {
      return std::pair(a.gpus, a.place) < std::pair(b.gpus, b.place);
    });
  }
}

// The moves, smallest jobs first, that leave `wanted` GPUs of the node idle; none when they do not suffice.
std::vector<Gandiva::Move> Gandiva::clear_node(const View& view, std::uint32_t node, std::uint32_t wanted) const {
  const ClusterState& cluster = view.cluster();
  std::vector<std::uint32_t> idle;
  for (std::uint32_t n = 0; n < cluster.node_count(); ++n) idle.push_back(cluster.node_idle_gpus(NodeId{n}));
  std::vector<Move> moves;
  for (const Movable& movable : movables_[node]) {
    if (idle[node] >= wanted) break;
    const JobId job = movable.place.job;
    const Shape& shape = view.shape(job);
    std::uint32_t best = no_index;
    for (std::uint32_t n = 0; n < idle.size(); ++n) {
      if (n == node || idle[n] < movable.gpus || (best != no_index && idle[n] >= idle[best])) continue;
      if (cluster.node_allowed(NodeId{n}, shape, view.queue_of(job))) best = n;
    }
    if (best == no_index) return {};
    idle[best] -= movable.gpus;
    idle[node] += movable.gpus;
    moves.push_back({job, {.node = NodeId{best}, .tasks = shape.tasks}});
  }
  if (idle[node] < wanted) moves.clear();
  return moves;
}

PolicyInfo gandiva_info() {
  return {
      .name = "gandiva",
      .summary = "time slicing: jobs that do not fit together take turns, a slice each; migration",
      .source = "Gandiva (OSDI'18), section 3: suspend-resume in slices of about a minute, migration; no packing",
      .complexity =
          "O(classes + log n), a class: waiting jobs of one shape and virtual cluster; migration O(nodes + "
          "running) for a shape at a slice",
      .parameters = {{.name = "slice_s",
                      .fallback = 60.0,
                      .meaning =
                          "seconds that a job runs before it may be suspended for a waiting one, at a multiple of that",
                      .least = 1e-3,
                      .most = 1e9},
                     {.name = "migrate",
                      .fallback = false,
                      .meaning = "move small jobs together where a waiting job wants the GPUs of one node"},
                     {.name = "migration_s",
                      .fallback = 5.0,
                      .meaning = "migrate=true: work that a move costs the moved job",
                      .most = 1e9}},
      .make = [](const PolicyParameters& parameters, const PolicyContext&) -> Result<AnyPolicy> {
        return AnyPolicy(Gandiva({.slice = from_seconds(parameters.number("slice_s")),
                                  .migrates = parameters.flag("migrate"),
                                  .migration = from_seconds(parameters.number("migration_s"))}));
      },
      .preemptive = true,
      .work_conserving = true};
}

}  // namespace gpusched
