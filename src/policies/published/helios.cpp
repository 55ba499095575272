// SPDX-License-Identifier: Apache-2.0
#include "src/policies/published/helios.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace gpusched {
namespace {

constexpr Time late_second = whole_seconds(1);

Time checkpoint_cost(std::uint32_t gpus) { return whole_seconds(gpus == 1 ? 7 : gpus <= 8 ? 30 : 60); }

Result<void> check_input(const std::string& policy, const PolicyContext& context) {
  const JobTable& jobs = *context.jobs;
  const Cluster& cluster = *context.cluster;
  for (const Shape& shape : jobs.shapes()) {
    if (shape.gpu_milli_per_task != whole_gpu || shape.gpu_spec != 0) {
      return unexpected("policy " + policy + " takes jobs of one-GPU tasks of any GPU type only");
    }
  }
  const auto is_whole = [](Time t) { return t.us % microseconds_per_second == 0; };
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    if (!is_whole(jobs.submit(job)) || !is_whole(jobs.work(job))) {
      return unexpected("policy " + policy + " counts whole seconds, and job " + jobs.external_id(job) +
                        " comes or runs for a fraction of one");
    }
    if (cluster.vcs.empty()) continue;
    const std::string& vc = jobs.vcs()[jobs.vc(job)];
    const auto is_named = [&](const VirtualCluster& known) { return known.name == vc; };
    if (std::none_of(cluster.vcs.begin(), cluster.vcs.end(), is_named)) {
      return unexpected("policy " + policy + ": job " + jobs.external_id(job) + " is of virtual cluster '" + vc +
                        "', which cluster " + cluster.name + " does not have");
    }
  }
  return {};
}

std::vector<Asymmetry> helios_asymmetries() {
  return {{Symmetry::node_order, "nodes count as alike, and the first of those that would do is taken"},
          {Symmetry::time_scale, "decisions come once a second, and some of them a second late"}};
}

PolicyInfo list_info(HeliosList::Kind kind, const std::string& name, std::string summary, const std::string& estimate) {
  PolicyInfo info{
      .name = name,
      .summary = std::move(summary),
      .source = "HeliosArtifact (SC'21), framework/QSSF Service: whole seconds, its 'consolidate' placement",
      .complexity = "O(log n)"};
  if (!estimate.empty()) info.parameters = estimate_parameters(estimate);
  info.asymmetries = helios_asymmetries();
  // All finished jobs count alike, as when it was compared with the published table.
  for (ParameterInfo& parameter : info.parameters) {
    if (parameter.name == "half_life_jobs") parameter.fallback = 0.0;
  }
  info.make = [kind, name, estimate](const PolicyParameters& parameters,
                                     const PolicyContext& context) -> Result<AnyPolicy> {
    if (auto checked = check_input(name, context); !checked) return Unexpected{checked.error()};
    if (estimate.empty()) return AnyPolicy(HeliosList(kind, AnyDurationEstimator(NoDuration{})));
    auto estimator = make_duration_estimator(parameters, context);
    if (!estimator) return unexpected("policy " + name + ", " + estimator.error().to_string());
    return AnyPolicy(HeliosList(kind, *std::move(estimator)));
  };
  return info;
}

// The scheduling queues that each node serves: the last one is that of jobs of no virtual cluster, which may run
// anywhere.
std::vector<std::vector<std::uint32_t>> queues_by_node(const Cluster& cluster) {
  std::vector<std::vector<std::uint32_t>> queues;
  for (const Node& node : cluster.nodes) {
    queues.emplace_back();
    for (std::uint32_t queue = 0; queue <= cluster.vcs.size(); ++queue) {
      if (cluster.owners_serve(node.vc, node.vc_group, queue)) queues.back().push_back(queue);
    }
  }
  return queues;
}

}  // namespace

// ---- fifo, sjf, qssf ----

std::string_view HeliosList::name() const {
  return kind_ == Kind::fifo ? "fifo@helios" : kind_ == Kind::sjf ? "sjf@helios" : "qssf@helios";
}

HeliosList::Place HeliosList::place_of(const OracleView& view, JobId job) {
  const std::uint32_t gpus = kind_ == Kind::qssf ? view.shape(job).tasks : 0;
  const std::int64_t us = estimator_.estimate(view, job).us;
  return {kind_ == Kind::qssf ? mul_div(us, gpus, 1) : us, gpus, index(job)};
}

void HeliosList::decide(const OracleView& view, Decision& decision) {
  queues_.resize(view.queue_count());
  estimator_.observe(view);
  for (const Event& event : view.events()) {
    if (enters_queue(event.kind)) queues_[view.queue_of(event.job)].unrated.push_back(event.job);
    if (event.kind == EventKind::withdraw) withdraw(queues_[view.queue_of(event.job)], event.job);
  }
  for (Queue& queue : queues_) {
    const bool older_wait = queue.waited || !queue.rated.empty();
    if (kind_ == Kind::qssf && !older_wait) {
      start_unrated(queue, view, decision);
      continue;
    }
    for (const JobId job : queue.unrated) queue.rated.insert(place_of(view, job));
    queue.unrated.clear();
    queue.waited = false;
    start_rated(queue, decision);
  }
}

void HeliosList::withdraw(Queue& queue, JobId job) {
  std::erase(queue.unrated, job);
  std::erase_if(queue.rated, [&](const Place& place) { return std::get<2>(place) == index(job); });
}

void HeliosList::start_unrated(Queue& queue, const OracleView& view, Decision& decision) {
  std::stable_sort(queue.unrated.begin(), queue.unrated.end(),
                   [&](JobId a, JobId b) { return view.shape(a).tasks < view.shape(b).tasks; });
  const auto refused = std::find_if(queue.unrated.begin(), queue.unrated.end(),
                                    [&](JobId job) { return decision.start(job, Placement::helios) != Verdict::ok; });
  queue.unrated.erase(queue.unrated.begin(), refused);
  queue.waited = !queue.unrated.empty();
  if (queue.waited) decision.wake(view.now() + whole_seconds(1));
}

void HeliosList::start_rated(Queue& queue, Decision& decision) {
  while (!queue.rated.empty()) {
    const JobId first{std::get<2>(*queue.rated.begin())};
    if (decision.start(first, Placement::helios) != Verdict::ok) return;
    queue.rated.erase(queue.rated.begin());
  }
}

// ---- srtf ----

void HeliosSrtf::decide(const OracleView& view, Decision& decision) {
  if (queues_.empty()) prepare(view);
  note_events(view);
  stopped_ = false;
  for (std::uint32_t queue = 0; queue < queues_.size(); ++queue) {
    if (queues_[queue].changed || share_nodes_) schedule(queue, view, decision);
  }
  if (stopped_ && share_nodes_) decision.wake(view.now() + whole_seconds(1));
}

void HeliosSrtf::prepare(const OracleView& view) {
  queues_.resize(view.queue_count());
  owed_.assign(view.job_count(), late_second);
  gpus_.assign(view.queue_count(), 0);
  is_counted_.assign(queues_of_node_.size(), false);
  for (std::uint32_t node = 0; node < queues_of_node_.size(); ++node) count_node(view, NodeId{node});
}

// Counts the GPUs of the node as in service, or not.
void HeliosSrtf::count_node(const OracleView& view, NodeId node) {
  const bool up = view.cluster().is_up(node);
  if (is_counted_[index(node)] == up) return;
  is_counted_[index(node)] = up;
  const std::int64_t gpus = view.cluster().node_gpus(node);
  for (const std::uint32_t queue : queues_of_node_[index(node)]) {
    gpus_[queue] += up ? gpus : -gpus;
    queues_[queue].changed = true;
  }
}

void HeliosSrtf::note_events(const OracleView& view) {
  for (const Event& event : view.events()) {
    if (event.job == no_job) {
      if (event.node != no_node) count_node(view, event.node);
      if (event.kind == EventKind::more_power) {
        for (Queue& queue : queues_) queue.changed = true;
      }
      continue;
    }
    Queue& queue = queues_[view.queue_of(event.job)];
    queue.changed = true;
    if (leaves_cluster(event.kind)) {
      queue.running.erase(std::find_if(queue.running.begin(), queue.running.end(),
                                       [&](const Run& run) { return run.job == event.job; }));
    }
    if (event.kind == EventKind::withdraw &&
        !queue.waiting.erase_job(view.at(event).shape(event.job).tasks, event.job)) {
      std::erase(queue.joining, event.job);
    }
    if (!enters_queue(event.kind)) continue;
    owed_[index(event.job)] = late_second;
    queue.joining.push_back(event.job);
  }
}

// The simulator's remaining time holds checkpoints, but not the second by which a job ends late.
std::int64_t HeliosSrtf::remaining_us(const OracleView& view, JobId job) const {
  return (view.remaining(job) + owed_[index(job)] - late_second).us;
}

void HeliosSrtf::schedule(std::uint32_t number, const OracleView& view, Decision& decision) {
  Queue& queue = queues_[number];
  queue.changed = false;
  bring_up_to_now(queue, view);
  std::int64_t quota = gpus_[number];
  chosen_.clear();
  queue.waiting.begin_walk();
  std::size_t kept = 0;
  for (const Run& run : queue.running) {
    choose_before(queue, {run.place.remaining_us, ~std::uint64_t{0}}, quota);
    if (run.gpus <= quota) {
      quota -= run.gpus;
      queue.running[kept++] = run;
    } else {
      checkpoint(queue, run, decision);
    }
  }
  queue.running.resize(kept);
  choose_before(queue, {std::numeric_limits<std::int64_t>::max(), ~std::uint64_t{0}}, quota);
  for (const Chosen& chosen : chosen_) start(queue, chosen, decision);
}

void HeliosSrtf::bring_up_to_now(Queue& queue, const OracleView& view) {
  for (const JobId job : queue.joining) {
    queue.waiting.insert(view.shape(job).tasks, {{remaining_us(view, job), joins_++}, job});
  }
  queue.joining.clear();
  // An insertion sort: all of them ran since the last event, so that few changed places.
  for (auto run = queue.running.begin(); run != queue.running.end(); ++run) {
    run->place.remaining_us = remaining_us(view, run->job);
    if (run == queue.running.begin() || !(*run < *(run - 1))) continue;
    std::rotate(std::upper_bound(queue.running.begin(), run, *run), run, run + 1);
  }
}

// Chooses among the waiting jobs that come before `place` in the order.
void HeliosSrtf::choose_before(Queue& queue, const Place& place, std::int64_t& quota) {
  queue.waiting.walk_to(place, [&](const Waiting::Entry& next, std::int64_t gpus) {
    if (gpus > quota) return false;
    quota -= gpus;
    chosen_.push_back({next, gpus});
    return true;
  });
}

void HeliosSrtf::checkpoint(Queue& queue, const Run& run, Decision& decision) {
  decision.preempt(run.job);
  stopped_ = true;
  owed_[index(run.job)] = checkpoint_cost(static_cast<std::uint32_t>(run.gpus));
  queue.joining.push_back(run.job);
}

void HeliosSrtf::start(Queue& queue, const Chosen& chosen, Decision& decision) {
  const JobId job = chosen.entry.job;
  if (decision.start(job, Placement::helios) != Verdict::ok) return queue.waiting.insert(chosen.gpus, chosen.entry);
  decision.adjust_work(job, owed_[index(job)]);
  owed_[index(job)] = {};
  queue.running.push_back({.place = {.joined = joins_++}, .job = job, .gpus = chosen.gpus});
}

// ---- the registry ----

PolicyInfo fifo_helios_info() {
  return list_info(HeliosList::Kind::fifo, "fifo@helios", "FIFO as HeliosArtifact runs it", "");
}
PolicyInfo sjf_helios_info() {
  return list_info(HeliosList::Kind::sjf, "sjf@helios", "SJF as HeliosArtifact runs it", "exact");
}
PolicyInfo qssf_helios_info() {
  return list_info(HeliosList::Kind::qssf, "qssf@helios",
                   "QSSF as HeliosArtifact runs it: priorities given once, a second late at an empty queue", "history");
}
PolicyInfo srtf_helios_info() {
  return {.name = "srtf@helios",
          .summary = "SRTF as HeliosArtifact runs it: checkpoints of 7, 30 or 60 s, and every job ends a second late",
          .source = "HeliosArtifact (SC'21), framework/QSSF Service: whole seconds, its 'consolidate' placement",
          .complexity = "O(running + log waiting) for the jobs of a virtual cluster",
          .make = [](const PolicyParameters&, const PolicyContext& context) -> Result<AnyPolicy> {
            if (auto checked = check_input("srtf@helios", context); !checked) return Unexpected{checked.error()};
            const auto serves_all = [](const Node& node) { return node.vc == no_index; };
            const auto& nodes = context.cluster->nodes;
            const bool share_nodes =
                !context.cluster->vcs.empty() && std::any_of(nodes.begin(), nodes.end(), serves_all);
            return AnyPolicy(HeliosSrtf(queues_by_node(*context.cluster), share_nodes));
          },
          .preemptive = true,
          .asymmetries = helios_asymmetries()};
}

}  // namespace gpusched
