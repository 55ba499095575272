// SPDX-License-Identifier: Apache-2.0
#include "src/policies/packing/k8s.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "src/policies/seam/seed_parameter.hpp"

namespace gpusched {
namespace {

constexpr std::int64_t max_node_score = 100;
// What a pod without a request counts as where nodes are compared (pkg/scheduler/util/pod_resources.go).
constexpr std::int64_t default_cpu_milli = 100;
constexpr std::int64_t default_memory_mib = 200;

std::int64_t nonzero_cpu(const Shape& shape) {
  return shape.cpu_milli_per_task > 0 ? shape.cpu_milli_per_task : default_cpu_milli;
}
std::int64_t nonzero_memory(const Shape& shape) {
  return shape.memory_mib_per_task > 0 ? shape.memory_mib_per_task : default_memory_mib;
}

// Whether the node could take so many pods now: tasks_that_fit() >= pods, without its divisions.
bool fits(const ClusterState& cluster, const Shape& shape, NodeId node, std::int64_t pods) {
  if (!cluster.is_up(node)) return false;
  if (pods * shape.cpu_milli_per_task > cluster.node_free_cpu_milli(node)) return false;
  if (pods * shape.memory_mib_per_task > cluster.node_free_memory_mib(node)) return false;
  if (shape.is_share()) return cluster.tasks_that_fit(node, shape) >= pods;
  return pods * shape.gpu_milli_per_task <= cluster.node_idle_gpus(node) * whole_gpu;
}

// PrioritySort.
struct ByPodPriority : RankedOrder {
  [[nodiscard]] static std::int64_t major(const RankedClasses::Class& jobs) { return -std::int64_t{jobs.priority}; }
  [[nodiscard]] static std::int64_t minor(const RankedClasses::Class&) { return 0; }
  [[nodiscard]] static ClassRank score(const RankedClasses::Class& jobs) { return jobs.rank; }
};

}  // namespace

std::int64_t least_allocated_score(std::int64_t requested, std::int64_t capacity) {
  return requested > capacity ? 0 : (capacity - requested) * max_node_score / capacity;
}

std::int64_t most_allocated_score(std::int64_t requested, std::int64_t capacity) {
  return std::min(requested, capacity) * max_node_score / capacity;
}

// In floating point like the plugin, whose score is rounded down.
std::int64_t balanced_allocation_score(std::int64_t requested_cpu, std::int64_t cpu, std::int64_t requested_memory,
                                       std::int64_t memory) {
  if (cpu == 0 || memory == 0) return max_node_score;
  const double part_of_cpu = std::min(static_cast<double>(requested_cpu) / static_cast<double>(cpu), 1.0);
  const double part_of_memory = std::min(static_cast<double>(requested_memory) / static_cast<double>(memory), 1.0);
  const double deviation = std::abs((part_of_cpu - part_of_memory) / 2);
  return static_cast<std::int64_t>((1 - deviation) * static_cast<double>(max_node_score));
}

std::uint32_t feasible_nodes_to_find(std::uint32_t nodes, std::uint32_t percentage) {
  constexpr std::uint32_t fewest = 100;
  constexpr std::uint32_t least_percentage = 5;
  if (nodes < fewest) return nodes;
  if (percentage == 0) {
    percentage = 50 - std::min(nodes / 125, 50u);
    percentage = std::max(percentage, least_percentage);
  }
  return std::max(static_cast<std::uint32_t>(std::uint64_t{nodes} * percentage / 100), fewest);
}

void K8s::decide(const View& view, Decision& decision) {
  decision.keep_order();
  prepare(view);
  for (const Event& event : view.events()) {
    const View then = view.at(event);
    if (event.job == no_job && event.node != no_node) nodes_.changed(event.node);
    if (leaves_cluster(event.kind)) {
      note_change(event.job, then.shape(event.job), -1);
      nodes_of_[index(event.job)].clear();
    }
    if (enters_queue(event.kind)) waiting_.push(then, event.job, 0, 0, ByPodPriority{});
    if (event.kind == EventKind::withdraw) waiting_.erase(then, event.job, ByPodPriority{});
    if (event.kind == EventKind::reprioritize && view.phase(event.job) == JobPhase::pending) {
      waiting_.reprioritize(then, event.job, 0, 0, ByPodPriority{});
    }
  }
  const auto may_fit = [&](const RankedClasses::Kind& kind) {
    return view.cluster().may_fit(view.shape_of_demand(kind.second), kind.first);
  };
  waiting_.start_best(ByPodPriority{}, may_fit, [&](const RankedClasses::Class& jobs) {
    return bind(view, decision, jobs.first()) ? Attempt::started : Attempt::no_room;
  });
}

void K8s::prepare(const View& view) {
  if (!loads_.empty()) return;
  const ClusterState& cluster = view.cluster();
  for (std::uint32_t i = 0; i < cluster.node_count(); ++i) {
    const auto& node = cluster.node(NodeId{i});
    loads_.push_back({.cpu_capacity = node.cpu_capacity < unlimited ? node.cpu_capacity : 0,
                      .memory_capacity = node.memory_capacity < unlimited ? node.memory_capacity : 0});
  }
  placed_.assign(loads_.size(), 0);
  nodes_of_.resize(view.job_count());
  // Pods that ended under another policy are waited for no more.
  for (std::uint32_t i = 0; !options_.pods_in_group.empty() && i < view.arrived(); ++i) {
    if (view.phase(JobId{i}) == JobPhase::done) --options_.pods_in_group[view.group(JobId{i})];
  }
}

void K8s::adopt(const View& view) {
  for (const JobId job : view.running()) {
    std::vector<NodeTasks>& nodes = nodes_of_[index(job)];
    if (nodes.empty()) continue;  // of a job that it does not know
    note_change(job, view.shape(job), -1);
    nodes.clear();
    view.for_each_grant(job, [&](const Grant& grant) { nodes.push_back({.node = grant.node, .tasks = grant.tasks}); });
    std::sort(nodes.begin(), nodes.end(), [](const NodeTasks& a, const NodeTasks& b) { return a.node < b.node; });
    note_change(job, view.shape(job), +1);
  }
}

bool K8s::bind(const View& view, Decision& decision, JobId job) {
  const Shape& shape = view.shape(job);
  const std::uint32_t queue = view.queue_of(job);
  const ClusterState& cluster = view.cluster();
  if (!cluster.may_fit(shape, queue) || !has_room(cluster, shape, queue)) return false;
  std::vector<NodeTasks>& choice = nodes_of_[index(job)];
  Rng rng = options_.rng.split(view.queue_place(job).number).split(view.attempt(job));
  for (std::uint32_t task = 0; task < shape.tasks; ++task) {
    const NodeId node = choose(cluster, shape, queue, rng);
    if (placed_[index(node)]++ == 0) choice.push_back({.node = node});
  }
  std::sort(choice.begin(), choice.end(), [](const NodeTasks& a, const NodeTasks& b) { return a.node < b.node; });
  for (NodeTasks& part : choice) part.tasks = std::exchange(placed_[index(part.node)], 0);
  if (decision.start_on(job, choice) != Verdict::ok) {
    choice.clear();
    return false;
  }
  note_change(job, shape, +1);
  if (!options_.pods_in_group.empty()) note_bound(view, decision, job);
  return true;
}

// Each task takes one place of a node and leaves the others as they are: if there are enough, any choice ends well.
bool K8s::has_room(const ClusterState& cluster, const Shape& shape, std::uint32_t queue) {
  std::uint64_t places = 0;
  nodes_.walk(cluster, shape, next_start_, [&](NodeId node) {
    if (cluster.node_allowed(node, shape, queue)) places += cluster.tasks_that_fit(node, shape);
    return places < shape.tasks;
  });
  return places >= shape.tasks;
}

// Precondition: some node can take one more task.
NodeId K8s::choose(const ClusterState& cluster, const Shape& shape, std::uint32_t queue, Rng& rng) {
  const std::uint32_t wanted = feasible_nodes_to_find(cluster.node_count(), options_.percentage);
  std::uint32_t feasible = 0;
  std::int64_t best_score = -1;
  best_.clear();
  const std::uint32_t passed = nodes_.walk(cluster, shape, next_start_, [&](NodeId node) {
    if (!fits(cluster, shape, node, placed_[index(node)] + 1) || !cluster.node_allowed(node, shape, queue)) return true;
    const std::int64_t here = score(cluster, shape, node);
    if (here > best_score) best_.clear();
    if (here >= best_score) best_.push_back(node);
    best_score = std::max(best_score, here);
    return ++feasible < wanted;
  });
  next_start_ = (next_start_ + passed) % cluster.node_count();
  return best_.size() == 1 ? best_.front() : best_[rng.below(best_.size())];
}

// NodeResourcesFit and NodeResourcesBalancedAllocation, of weight 1 each. To the other score plugins all nodes are
// alike.
std::int64_t K8s::score(const ClusterState& cluster, const Shape& shape, NodeId node) const {
  const std::int64_t pods = placed_[index(node)] + 1;
  if (options_.gpus) {
    const MilliGpu capacity = cluster.node_gpus(node) * whole_gpu;
    const MilliGpu requested = capacity - cluster.node_free_gpu_milli(node) + pods * shape.gpu_milli_per_task;
    return shape.gpu_milli_per_task > 0 ? fit_score(requested, capacity) : 0;
  }
  const Load& load = loads_[index(node)];
  const std::int64_t resources = (load.cpu_capacity > 0 ? 1 : 0) + (load.memory_capacity > 0 ? 1 : 0);
  if (resources == 0) return 0;
  const std::int64_t fit = fit_score(load.cpu_milli + pods * nonzero_cpu(shape), load.cpu_capacity) +
                           fit_score(load.memory_mib + pods * nonzero_memory(shape), load.memory_capacity);
  if (shape.cpu_milli_per_task == 0 && shape.memory_mib_per_task == 0) return fit / resources;  // a best-effort pod
  return fit / resources +
         balanced_allocation_score(
             load.cpu_capacity - cluster.node_free_cpu_milli(node) + pods * shape.cpu_milli_per_task, load.cpu_capacity,
             load.memory_capacity - cluster.node_free_memory_mib(node) + pods * shape.memory_mib_per_task,
             load.memory_capacity);
}

std::int64_t K8s::fit_score(std::int64_t requested, std::int64_t capacity) const {
  if (capacity == 0) return 0;
  return options_.most_allocated ? most_allocated_score(requested, capacity)
                                 : least_allocated_score(requested, capacity);
}

// The job took (+1) its nodes or gave them back (-1).
void K8s::note_change(JobId job, const Shape& shape, int sign) {
  for (const NodeTasks& part : nodes_of_[index(job)]) {
    nodes_.changed(part.node);
    const std::int64_t pods = std::int64_t{part.tasks} * sign;
    loads_[index(part.node)].cpu_milli += pods * nonzero_cpu(shape);
    loads_[index(part.node)].memory_mib += pods * nonzero_memory(shape);
  }
}

void K8s::note_bound(const View& view, Decision& decision, JobId pod) {
  std::vector<JobId>& pods = bound_[view.group(pod)];
  pods.push_back(pod);
  if (pods.size() < options_.pods_in_group[view.group(pod)]) {
    decision.hold(pod);
    return;
  }
  pods.pop_back();  // the last one works from now on by itself
  for (const JobId waiting : pods) decision.resume(waiting);
  pods.clear();
}

Result<JobTable> split_into_pods(const JobTable& jobs, Time creation_interval) {
  JobTableBuilder builder;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    Shape pod = jobs.shape(job);
    const std::uint32_t pods = pod.tasks;
    pod.tasks = 1;
    const std::string name = jobs.external_id(job);
    for (std::uint32_t k = 0; k < pods; ++k) {
      const std::string id = name + "-" + std::to_string(k);
      builder.add({.id = id,
                   .submit = jobs.submit(job) + Time{creation_interval.us * k},
                   .work = jobs.work(job),
                   .estimate = jobs.estimate(job),
                   .shape = pod,
                   .user = jobs.users()[jobs.user(job)],
                   .group = name,
                   .vc = jobs.vcs()[jobs.vc(job)],
                   .name = jobs.names()[jobs.name(job)],
                   .gpu_spec = jobs.gpu_specs()[jobs.shape(job).gpu_spec],
                   .family = jobs.families()[jobs.family(job)],
                   .status = jobs.status(job),
                   .priority = jobs.priority(job),
                   .deadline = jobs.deadline(job)});
    }
  }
  return std::move(builder).build();
}

PolicyInfo k8s_info() {
  return {
      .name = "k8s",
      .summary = "kube-scheduler's default queue, node search and scores of CPU and memory, ties drawn; no preemption",
      .source =
          "kubernetes/kubernetes, pkg/scheduler: default plugins, noderesources (fit, least_allocated, "
          "balanced_allocation), non-zero requests, schedule_one (percentageOfNodesToScore); no preemption, no "
          "back-off; a gang starts whole, one pod at a time with pods=true",
      .complexity = "O(shapes + nodes scored x tasks + log n)",
      .parameters = {{.name = "score",
                      .fallback = std::string("least-allocated"),
                      .meaning = "NodeResourcesFit: the node that is emptiest, or fullest, after the pod",
                      .words = {"least-allocated", "most-allocated"}},
                     {.name = "resources",
                      .fallback = std::string("cpu-memory"),
                      .meaning = "what NodeResourcesFit scores; nodes without a limit of CPU and memory tie",
                      .words = {"cpu-memory", "gpu"}},
                     {.name = "percentage_of_nodes_to_score",
                      .fallback = 0.0,
                      .meaning = "feasible nodes looked for before scoring, at least 100; 0 = 50 - nodes / 125, at "
                                 "least 5",
                      .least = 0,
                      .most = 100,
                      .is_count = true},
                     seed_parameter("of the nodes drawn among equal scores"),
                     {.name = "pods",
                      .fallback = false,
                      .meaning = "every job of the trace is a pod of the job that its group names, and works only "
                                 "while all of them are bound"}},
      .make = [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<AnyPolicy> {
        const JobTable& jobs = *context.jobs;
        K8s::Options options{
            .most_allocated = parameters.word("score") == "most-allocated",
            .gpus = parameters.word("resources") == "gpu",
            .percentage = static_cast<std::uint32_t>(parameters.number("percentage_of_nodes_to_score")),
            .rng = Rng(drawing_seed(parameters.number("seed"), context)).split("k8s")};
        if (parameters.flag("pods")) {
          if (!jobs.has_groups()) return unexpected("k8s with pods=true needs the job of each pod as its group");
          options.pods_in_group.resize(jobs.groups().size(), 0);
          for (std::uint32_t i = 0; i < jobs.size(); ++i) ++options.pods_in_group[jobs.group(JobId{i})];
        }
        return AnyPolicy(K8s(std::move(options)));
      },
      .work_conserving = true,
      .chooses_nodes = true};
}

}  // namespace gpusched
