// SPDX-License-Identifier: Apache-2.0
#include "src/policies/packing/k8s.hpp"

namespace gpusched {

void K8s::decide(const View& view, Decision& decision) {
  for (const Event& event : view.events()) {
    if (enters_queue(event.kind)) waiting_.push(view, event.job, 0);
  }
  const auto score = [](const ClassQueues::Class& jobs) { return -std::int64_t{jobs.priority}; };
  waiting_.start_best(true, score, [&](const ClassQueues::Class& jobs) {
    return bind(view, decision, jobs.first()) ? Attempt::started : Attempt::no_room;
  });
}

bool K8s::bind(const View& view, Decision& decision, JobId job) {
  const Shape& shape = view.shape(job);
  const std::uint32_t vc = view.queue_of(job);
  if (!view.cluster().may_fit(shape, vc)) return false;
  choice_.clear();
  placed_.clear();
  for (std::uint32_t task = 0; task < shape.tasks; ++task) {
    const NodeId node = best_node(view, shape, vc);
    if (node == no_node) return false;
    ++placed_[index(node)];
  }
  for (const auto& [node, tasks] : placed_) choice_.push_back({.node = NodeId{node}, .tasks = tasks});
  if (decision.start_on(job, choice_) != Verdict::ok) return false;
  if (!pods_in_group_.empty()) note_bound(view, decision, job);
  return true;
}

// Free GPUs after the pod, as the scores LeastAllocated and MostAllocated weigh them; ties go to the lower node.
NodeId K8s::best_node(const View& view, const Shape& shape, std::uint32_t vc) {
  const ClusterState& cluster = view.cluster();
  NodeId best = no_node;
  std::int64_t best_score = 0;
  for (std::uint32_t i = 0; i < cluster.node_count(); ++i) {
    const NodeId node{i};
    const auto here = placed_.find(i);
    const std::uint32_t taken = here == placed_.end() ? 0 : here->second;
    if (cluster.tasks_that_fit(node, shape) <= taken || !cluster.node_allowed(node, shape, vc)) continue;
    const MilliGpu capacity = cluster.node_gpus(node) * whole_gpu;
    const MilliGpu free = cluster.node_free_gpu_milli(node) - (taken + 1) * shape.gpu_milli_per_task;
    const std::int64_t part = capacity > 0 ? mul_div(free, 1'000'000, capacity) : 0;
    const std::int64_t score = score_ == Score::least_allocated ? part : -part;
    if (best != no_node && score <= best_score) continue;
    best = node;
    best_score = score;
  }
  return best;
}

void K8s::note_bound(const View& view, Decision& decision, JobId pod) {
  std::vector<JobId>& pods = bound_[view.group(pod)];
  pods.push_back(pod);
  if (pods.size() < pods_in_group_[view.group(pod)]) {
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
  return {.name = "k8s",
          .summary =
              "simplified: pods by priority and creation, each to the node of the best score over GPUs; no gangs with "
              "pods=true",
          .source =
              "Kubernetes documentation, \"Scheduling Framework\" and NodeResourcesFit (LeastAllocated, "
              "MostAllocated, over GPUs); no preemption, no back-off",
          .complexity = "O(priorities x shapes x nodes x tasks + log n)",
          .parameters = {{.name = "score",
                          .fallback = std::string("least-allocated"),
                          .meaning = "the node that is emptiest, or fullest, after the pod",
                          .words = {"least-allocated", "most-allocated"}},
                         {.name = "pods",
                          .fallback = false,
                          .meaning = "every job of the trace is a pod of the job that its group names, and works only "
                                     "while all of them are bound"}},
          .make = [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<AnyPolicy> {
            const JobTable& jobs = *context.jobs;
            std::vector<std::uint32_t> pods;
            if (parameters.flag("pods")) {
              if (!jobs.has_groups()) return unexpected("k8s with pods=true needs the job of each pod as its group");
              pods.resize(jobs.groups().size(), 0);
              for (std::uint32_t i = 0; i < jobs.size(); ++i) ++pods[jobs.group(JobId{i})];
            }
            const bool least = parameters.word("score") == "least-allocated";
            return AnyPolicy(K8s(least ? K8s::Score::least_allocated : K8s::Score::most_allocated, std::move(pods)));
          },
          .work_conserving = true};
}

}  // namespace gpusched
