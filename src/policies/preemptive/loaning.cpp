// SPDX-License-Identifier: Apache-2.0
#include "src/policies/preemptive/loaning.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <tuple>

namespace gpusched {

void choose_best_fit(const Capacity& cluster, const Shape& shape, std::uint32_t queue,
                     const std::vector<NodeId>& candidates, std::vector<NodeTasks>& chosen) {
  struct Candidate {
    NodeId node;
    std::uint32_t tasks;  // that fit there
    MilliGpu free;
  };
  chosen.clear();
  std::vector<Candidate> open;
  std::uint64_t room = 0;
  for (const NodeId node : candidates) {
    const std::uint32_t tasks = cluster.tasks_that_fit(node, shape);
    if (tasks == 0 || !cluster.node_allowed(node, shape, queue)) continue;
    open.push_back({node, tasks, cluster.node_free_gpu_milli(node)});
    room += tasks;
  }
  if (room < shape.tasks || shape.gpu_milli() > cluster.vc_free(queue)) return;
  for (std::uint32_t left = shape.tasks; left > 0;) {
    const auto rank = [left](const Candidate& one) {
      return one.tasks >= left ? std::tuple(0, one.free) : std::tuple(1, -MilliGpu{one.tasks});
    };
    const auto best = std::min_element(open.begin(), open.end(), [&](const Candidate& a, const Candidate& b) {
      return rank(a) < rank(b);  // the first of equal ones
    });
    const std::uint32_t tasks = std::min(left, best->tasks);
    chosen.push_back({.node = best->node, .tasks = tasks});
    left -= tasks;
    open.erase(best);
  }
}

Loaning::Loaning(Options options, PriorityOrder order, ClusterState empty)
    : options_(options),
      services_({.name = "services",
                 .score = [](const JobFacts& job) { return job.submit_s; },
                 .growth = {},
                 .estimator = AnyDurationEstimator(NoDuration{})}),
      jobs_(std::move(order)),
      empty_(std::move(empty)),
      servers_(empty_.node_count() - options.first_server) {}

void Loaning::decide(const OracleView& view, Decision& decision) {
  service_.resize(view.job_count(), 0);
  jobs_.learn(view);
  bool node_came = false;
  for (const Event& event : view.events()) {
    note(view.at(event), event);
    node_came = node_came || event.kind == EventKind::node_up;
  }
  if (node_came) recount(view);
  for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) start_services(view, decision, queue);
  for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) start_jobs(view, decision, queue);
}

void Loaning::note(const OracleView& then, const Event& event) {
  if (event.job == no_job) return;
  if (leaves_cluster(event.kind)) servers_.leave(event.job);
  const bool waits = event.kind == EventKind::reprioritize && then.phase(event.job) == JobPhase::pending;
  if (event.kind == EventKind::withdraw || waits) queue_for(event.job).waiting().erase(then, event.job);
  if (!waits && !enters_queue(event.kind)) return;
  service_[index(event.job)] = is_service(then, event.job) ? 1 : 0;
  queue_for(event.job).push(then, event.job);
}

bool Loaning::is_service(const View& view, JobId job) {
  if (index(job) >= options_.replicas && view.priority(job) < options_.service_priority) return false;
  const auto [known, is_new] = holdable_.try_emplace({view.queue_of(job), view.shape_id(job)}, false);
  if (is_new) known->second = could_hold(view.shape(job), view.queue_of(job), true);
  return known->second;
}

bool Loaning::could_hold(const Shape& shape, std::uint32_t queue, bool of_services) const {
  std::vector<NodeId> candidates;
  for (std::uint32_t node = 0; node < nodes(); ++node) {
    if ((node >= options_.first_server) == of_services) candidates.push_back(NodeId{node});
  }
  std::vector<NodeTasks> chosen;
  choose_best_fit(empty_, shape, queue, candidates, chosen);
  return !chosen.empty();
}

// ---- who is on which server ----

void Loaning::adopt(const View& view) {
  service_.resize(view.job_count(), 0);
  for (const JobId job : view.running()) service_[index(job)] = is_service(view, job) ? 1 : 0;
  recount(view);
}

// A job that ran when the policy took over ends as a node that comes back (AdoptedPolicy).
void Loaning::recount(const View& view) {
  servers_.clear();
  for (const JobId job : view.running()) enter(view, job);
}

void Loaning::enter(const View& view, JobId job) {
  std::set<std::uint32_t> held;
  view.for_each_grant(job, [&](const Grant& grant) {
    if (index(grant.node) >= options_.first_server) held.insert(index(grant.node) - options_.first_server);
  });
  servers_.enter(job, {held.begin(), held.end()}, service_[index(job)] != 0);
}

// ---- starts ----

bool Loaning::may_use(const Uses& uses, NodeId node) const {
  if (index(node) < options_.first_server) return uses.own_nodes;
  const std::uint32_t server = index(node) - options_.first_server;
  if (servers_.is_lent(server)) return uses.lent;
  return servers_.serves(server) ? uses.serving : uses.idle;
}

bool Loaning::start_on(const View& view, Decision& decision, JobId job, const Uses& uses) {
  std::vector<NodeId> candidates;
  for (std::uint32_t i = 0; i < nodes(); ++i) {
    if (may_use(uses, NodeId{i})) candidates.push_back(NodeId{i});
  }
  choose_best_fit(view.cluster(), view.shape(job), view.queue_of(job), candidates, chosen_);
  if (chosen_.empty() || decision.start_on(job, chosen_) != Verdict::ok) return false;
  enter(view, job);
  return true;
}

void Loaning::start_services(const OracleView& view, Decision& decision, std::uint32_t queue) {
  WaitingJobs& waiting = services_.waiting();
  waiting.begin_pass(view, queue);
  for (JobId job = waiting.first(queue, view.now()); job != no_job; job = waiting.first(queue, view.now())) {
    if (start_on(view, decision, job, {.serving = true}) ||
        start_on(view, decision, job, {.serving = true, .idle = true}) || reclaim_for(view, decision, job)) {
      waiting.erase(view, job);
    } else {
      waiting.pass_over_demand_of(view, job);
    }
  }
}

void Loaning::start_jobs(const OracleView& view, Decision& decision, std::uint32_t queue) {
  WaitingJobs& waiting = jobs_.waiting();
  waiting.begin_pass(view, queue);
  for (JobId job = waiting.first(queue, view.now()); job != no_job; job = waiting.first(queue, view.now())) {
    if (start_job(view, decision, job)) {
      waiting.erase(view, job);
    } else if (options_.skip) {
      waiting.pass_over_demand_of(view, job);
    } else {
      break;
    }
  }
}

bool Loaning::start_job(const View& view, Decision& decision, JobId job) {
  if (!view.cluster().may_fit(view.shape(job), view.queue_of(job))) return false;
  if (start_on(view, decision, job, {.own_nodes = true})) return true;
  return options_.lends && (start_on(view, decision, job, {.own_nodes = true, .lent = true}) ||
                            start_on(view, decision, job, {.own_nodes = true, .lent = true, .idle = true}));
}

// ---- taking servers back ----

// Takes back as many servers as the service needs and starts it, or changes nothing.
bool Loaning::reclaim_for(const OracleView& view, Decision& decision, JobId job) {
  if (!options_.lends || !would_hold(view, job)) return false;
  const Shape& shape = view.shape(job);
  const std::uint32_t queue = view.queue_of(job);
  const auto helps = [&](std::uint32_t server) {
    const NodeId node{options_.first_server + server};
    return view.cluster().is_up(node) && empty_.tasks_that_fit(node, shape) > 0 &&
           empty_.node_allowed(node, shape, queue);
  };
  std::vector<Stopped> stopped;
  bool started = false;
  for (auto server = servers_.cheapest(helps); server && !started; server = servers_.cheapest(helps)) {
    for (const JobId other : jobs_to_stop(view, *server)) {
      stopped.push_back({other, servers_.held(other)});
      decision.preempt(other);
      servers_.leave(other);
    }
    started = start_on(view, decision, job, {.serving = true, .idle = true});
  }
  let_run_on(view, decision, stopped);
  return started;
}

// Whether the service has room once all servers are back, as far as nodes and quotas tell.
bool Loaning::would_hold(const View& view, JobId job) const {
  const Shape& shape = view.shape(job);
  const std::uint32_t queue = view.queue_of(job);
  std::uint64_t tasks = 0;
  std::set<JobId> lent_to;
  for (std::uint32_t server = 0; server < servers_.size(); ++server) {
    const NodeId node{options_.first_server + server};
    if (!view.cluster().is_up(node) || !empty_.node_allowed(node, shape, queue)) continue;
    const bool is_lent = servers_.is_lent(server);
    tasks += is_lent ? empty_.tasks_that_fit(node, shape) : view.cluster().tasks_that_fit(node, shape);
    if (is_lent) lent_to.insert(servers_.jobs(server).begin(), servers_.jobs(server).end());
  }
  MilliGpu quota = view.cluster().vc_free(queue);
  for (const JobId other : lent_to) quota += view.queue_of(other) == queue ? view.held_gpu_milli(other) : 0;
  return tasks >= shape.tasks && quota >= shape.gpu_milli();
}

// By their places, whatever their ids.
std::vector<JobId> Loaning::jobs_to_stop(const View& view, std::uint32_t server) const {
  std::vector<JobId> jobs = servers_.jobs(server);
  std::sort(jobs.begin(), jobs.end(),
            [&](JobId a, JobId b) { return view.queue_place(a).number < view.queue_place(b).number; });
  return jobs;
}

// Of the stopped jobs, those of whose servers none serves now run on; the others wait.
void Loaning::let_run_on(const OracleView& view, Decision& decision, const std::vector<Stopped>& stopped) {
  for (const auto& [job, held] : stopped) {
    const bool is_taken =
        std::any_of(held.begin(), held.end(), [&](std::uint32_t server) { return servers_.serves(server); });
    if (!is_taken && decision.restore(job) == Verdict::ok) {
      enter(view, job);
    } else {
      jobs_.push(view, job);
    }
  }
}

namespace {

Result<PriorityOrder> order_of(const PolicyParameters& parameters, const PolicyContext& context) {
  const auto fail = [](const std::string& why) {
    return Unexpected{Error{.message = why, .field = "policy loaning, parameter order"}};
  };
  const std::vector<std::string>& named = parameters.policies("order");
  if (named.size() != 1) return fail("expected one order of jobs, such as [sjf]");
  const auto specs = parse_policy_list(named.front());
  if (!specs) return fail(specs.error().to_string());
  auto order = context.registry->make_order(specs->front(), context);
  if (!order) return fail(order.error().to_string());
  return order;
}

// A job that its nodes never hold would wait for ever, and so would a replica.
Result<void> check_room(const Loaning& policy, const Loaning::Options& options, const PolicyContext& context) {
  const JobTable& jobs = *context.jobs;
  const Cluster& cluster = *context.cluster;
  const auto queue_of = [&](JobId job) {
    const auto is_its = [&](const VirtualCluster& vc) { return vc.name == jobs.vcs()[jobs.vc(job)]; };
    return static_cast<std::uint32_t>(std::find_if(cluster.vcs.begin(), cluster.vcs.end(), is_its) -
                                      cluster.vcs.begin());
  };
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    const bool replica = i < options.replicas;
    if (!replica && options.lends) break;
    const std::uint32_t queue = queue_of(job);
    const bool serves =
        replica || (jobs.priority(job) >= options.service_priority && policy.could_hold(jobs.shape(job), queue, true));
    if (policy.could_hold(jobs.shape(job), queue, serves)) continue;
    return unexpected("policy loaning: " + std::string(jobs.external_id(job)) + " fits none of the nodes of " +
                      (replica ? "services" : "jobs") + ", and would wait for ever: give another part");
  }
  return {};
}

Result<AnyPolicy> make_loaning(const PolicyParameters& parameters, const PolicyContext& context) {
  auto order = order_of(parameters, context);
  if (!order) return Unexpected{order.error()};
  const auto nodes = static_cast<double>(context.cluster->nodes.size());
  const Loaning::Options options{
      .first_server = static_cast<std::uint32_t>(nodes - std::round(parameters.number("part") * nodes)),
      .lends = parameters.flag("lend"),
      .service_priority = static_cast<std::int32_t>(parameters.number("service_priority")),
      .skip = parameters.flag("skip"),
      .replicas = context.jobs->replicas()};
  Loaning policy(options, *std::move(order), ClusterState(*context.cluster, context.jobs->gpu_specs(), Rng{}));
  if (auto done = check_room(policy, options, context); !done) return Unexpected{done.error()};
  return AnyPolicy(std::move(policy));
}

}  // namespace

PolicyInfo loaning_info() {
  return {.name = "loaning",
          .summary = "idle servers of services are lent to jobs, whole, and taken back where that preempts fewest",
          .source =
              "Lyra's capacity loaning and server preemption cost (Li et al., EuroSys 2023, sections 3 and 4), "
              "without its elastic scaling; the autoscaler says what services need",
          .complexity = "O(nodes) for each demand that waits",
          .parameters = {{.name = "order",
                          .fallback = std::vector<std::string>{"fifo"},
                          .meaning = "the order of jobs: one policy that orders starts, in brackets"},
                         {.name = "part",
                          .fallback = 0.5,
                          .meaning = "part of the nodes that belongs to services, the last ones of the cluster",
                          .least = 0,
                          .most = 1},
                         {.name = "service_priority",
                          .fallback = 1.0,
                          .meaning = "jobs of this priority or more are services, as replicas are",
                          .least = -2'147'483'648.0,
                          .most = 2'147'483'647.0,
                          .is_count = true},
                         {.name = "lend",
                          .fallback = true,
                          .meaning = "lend idle servers; false: a partition of the nodes"},
                         {.name = "skip", .fallback = false, .meaning = "pass over jobs that do not fit"}},
          .make = make_loaning,
          .preemptive = true,
          .chooses_nodes = true,
          .asymmetries = {{.of = Symmetry::node_order, .reason = "the last nodes of the cluster belong to services"}}};
}

}  // namespace gpusched
