// SPDX-License-Identifier: Apache-2.0
// simgrid_host TRACE NODESxGPUS POLICY [BYTES_PER_S]: runs a trace's jobs on SimGrid hosts, where a policy of gpusched
// decides, and prints job_id,start_s,end_s. A GPU is a core that does 1e9 operations a second, a job's task 1e9
// operations for each second of its run time and GPU. With BYTES_PER_S, a job on several nodes then sends as many bytes
// for each second of its run time from each of its nodes to the next, over links of 1.25e9 bytes/s that all jobs share.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <simgrid/s4u.hpp>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/online/online_scheduler.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/world/run_input.hpp"

namespace {

namespace sg4 = simgrid::s4u;
using namespace gpusched;

constexpr double gpu_speed = 1e9;            // operations/s
constexpr double link_bytes_per_s = 1.25e9;  // 10 Gbit/s
constexpr double link_latency_s = 1e-5;

// Ends the program from any actor.
[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "simgrid_host: %s\n", why.c_str());
  std::_Exit(1);
}

void check(const Result<void>& told) {
  if (!told) fail(told.error().to_string());
}

double seconds(Time t) { return to_seconds(t); }

// A task of a gang: an actor on its node.
struct Task {
  sg4::ActorPtr actor;
  std::vector<sg4::ExecPtr> gpus;
};

struct Job {
  double left_s = 0;      // of its run time, not computed yet
  double left_bytes = 0;  // from each of its nodes, not sent yet
  double start_s = -1, end_s = -1;
  std::vector<Task> tasks;  // while it runs
  std::size_t computing = 0;
  std::vector<sg4::CommPtr> sends;
};

class SchedulerHost {
 public:
  SchedulerHost(const JobTable& jobs, OnlineScheduler scheduler, std::vector<sg4::Host*> nodes, double bytes_per_s)
      : jobs_(jobs), scheduler_(std::move(scheduler)), nodes_(std::move(nodes)), bytes_per_s_(bytes_per_s) {
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {
      const double work_s = seconds(jobs.work(JobId{i}));
      state_.push_back({.left_s = work_s, .left_bytes = bytes_per_s * work_s, .tasks = {}, .sends = {}});
      numbers_.emplace(jobs.external_id(JobId{i}), i);
      check(scheduler_.announce(online_job(JobId{i}), jobs.submit(JobId{i})));
    }
  }

  // The actor that submits.
  void run_arrivals() {
    for (std::uint32_t i = 0; i < jobs_.size();) {
      const Time instant = jobs_.submit(JobId{i});
      sg4::this_actor::sleep_until(seconds(instant));
      while (i < jobs_.size() && jobs_.submit(JobId{i}) == instant) submitted_.push_back(i++);
      changed_->notify_all();
    }
  }

  // The actor that decides, until every job has ended.
  void run_scheduler() {
    while (scheduler_.submitted() < jobs_.size() || scheduler_.unfinished() > 0) {
      await_event();
      const Time now = tell_events();
      const auto commands = scheduler_.decide(now);
      if (!commands) fail(commands.error().to_string());
      for (const OnlineCommand& command : *commands) carry_out(command);
    }
  }

  void print() const {
    std::puts("job_id,start_s,end_s");
    for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
      std::printf("%s,%.6f,%.6f\n", jobs_.external_id(JobId{i}).c_str(), state_[i].start_s, state_[i].end_s);
    }
  }

 private:
  void await_event() {
    std::unique_lock<sg4::Mutex> lock(*mutex_);
    const Time call = scheduler_.next_call();
    if (!submitted_.empty() || !ended_.empty()) return;
    if (call == Time::max()) {
      changed_->wait(lock);
    } else {
      changed_->wait_until(lock, seconds(call));
    }
    lock.unlock();
    sg4::this_actor::yield();  // so that all actors that wake at this instant have told what happened
  }

  // Clocks of SimGrid are doubles. What is submitted in a microsecond that was decided already is told in the next one.
  Time tell_events() {
    Time now{std::llround(sg4::Engine::get_clock() * 1e6)};
    if (now <= last_) now = Time{last_.us + (submitted_.empty() ? 0 : 1)};
    last_ = now;
    for (const std::uint32_t job : std::exchange(ended_, {})) {
      check(scheduler_.finish(jobs_.external_id(JobId{job})));
    }
    for (const std::uint32_t job : std::exchange(submitted_, {})) {
      check(scheduler_.submit(jobs_.external_id(JobId{job})));
    }
    return now;
  }

  [[nodiscard]] OnlineJob online_job(JobId job) const {
    return {.id = jobs_.external_id(job),
            .duration = bytes_per_s_ > 0 ? Time::max() : jobs_.work(job),
            .estimate = jobs_.estimate(job),
            .shape = jobs_.shape(job),
            .user = jobs_.users()[jobs_.user(job)]};
  }

  void carry_out(const OnlineCommand& command) {
    const std::uint32_t number = numbers_.at(scheduler_.id(command.job));
    Job& job = state_[number];
    if (command.action == OnlineAction::cancel) return;  // it waits
    if (command.action != OnlineAction::start) suspend(job);
    if (command.action == OnlineAction::preempt) return;
    if (job.start_s < 0) job.start_s = sg4::Engine::get_clock();
    for (const OnlinePart& part : command.nodes) {
      for (std::uint32_t i = 0; i < part.tasks; ++i) job.tasks.push_back({.actor = {}, .gpus = {}});
    }
    job.computing = job.tasks.size();
    std::size_t task = 0;
    for (const OnlinePart& part : command.nodes) {
      for (std::uint32_t i = 0; i < part.tasks; ++i, ++task) {
        job.tasks[task].actor =
            sg4::Actor::create("task", nodes_[index(part.node)],
                               [this, number, task, parts = command.nodes] { run_task(number, task, parts); });
      }
    }
  }

  // A gang is as far as its slowest task and link.
  static void suspend(Job& job) {
    double left = 0;
    for (const Task& task : job.tasks) {
      if (task.gpus.empty()) left = job.left_s;  // its actor has not begun
      for (const sg4::ExecPtr& gpu : task.gpus) left = std::max(left, gpu->get_remaining() / gpu_speed);
    }
    job.left_s = left;
    if (!job.sends.empty()) job.left_bytes = 0;
    for (const sg4::CommPtr& send : job.sends) job.left_bytes = std::max(job.left_bytes, send->get_remaining());
    for (const Task& task : job.tasks) task.actor->kill();
    for (const sg4::CommPtr& send : job.sends) send->cancel();
    job.tasks.clear();
    job.sends.clear();
  }

  void run_task(std::uint32_t number, std::size_t task, const std::vector<OnlinePart>& parts) {
    Job& job = state_[number];
    const std::int64_t gpus = std::max<std::int64_t>(jobs_.shape(JobId{number}).gpu_milli_per_task / whole_gpu, 1);
    for (std::int64_t i = 0; i < gpus; ++i) {
      job.tasks[task].gpus.push_back(sg4::this_actor::exec_async(job.left_s * gpu_speed));
    }
    for (const sg4::ExecPtr& gpu : std::vector<sg4::ExecPtr>(job.tasks[task].gpus)) gpu->wait();
    if (--job.computing > 0) return;
    job.left_s = 0;
    exchange(job, parts);
    job.end_s = sg4::Engine::get_clock();
    job.tasks.clear();
    ended_.push_back(number);
    changed_->notify_all();
  }

  void exchange(Job& job, const std::vector<OnlinePart>& parts) {
    if (job.left_bytes <= 0 || parts.size() < 2) return;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      sg4::Host* const to = nodes_[index(parts[(i + 1) % parts.size()].node)];
      job.sends.push_back(sg4::Comm::sendto_async(nodes_[index(parts[i].node)], to,
                                                  static_cast<std::uint64_t>(std::ceil(job.left_bytes))));
    }
    for (const sg4::CommPtr& send : std::vector<sg4::CommPtr>(job.sends)) send->wait();
    job.sends.clear();
  }

  const JobTable& jobs_;
  OnlineScheduler scheduler_;
  std::vector<sg4::Host*> nodes_;
  double bytes_per_s_ = 0;
  std::vector<Job> state_;
  std::map<std::string, std::uint32_t> numbers_;
  std::vector<std::uint32_t> submitted_, ended_;  // since the last decision
  sg4::MutexPtr mutex_ = sg4::Mutex::create();
  sg4::ConditionVariablePtr changed_ = sg4::ConditionVariable::create();
  Time last_ = Time{std::numeric_limits<std::int64_t>::min()};
};

// A switch with a link to each node, which carries both directions.
std::vector<sg4::Host*> make_nodes(const Cluster& cluster) {
  auto* const zone = sg4::create_star_zone("cluster");
  std::vector<sg4::Host*> nodes;
  for (const Node& node : cluster.nodes) {
    const std::string name = "node" + std::to_string(nodes.size());
    sg4::Host* const host = zone->create_host(name, gpu_speed)->set_core_count(static_cast<int>(node.gpus));
    sg4::Link* const link = zone->create_link(name + "-link", link_bytes_per_s)->set_latency(link_latency_s);
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, {sg4::LinkInRoute(link)}, true);
    nodes.push_back(host);
  }
  zone->seal();
  return nodes;
}

void simulate(const std::string& trace, const std::string& machines, const std::string& policy, double bytes_per_s) {
  const auto input = load_input({.trace = trace, .cluster = machines});
  if (!input) fail(input.error().to_string());
  static const PolicyRegistry policies = PolicyRegistry::standard();
  const auto specs = parse_policies(policies, policy);
  if (!specs) fail(specs.error().to_string());
  const auto make = [spec = specs->front()](const JobTable& jobs, const Cluster& cluster) {
    return make_policy(policies, spec, {.jobs = &jobs, .cluster = &cluster});
  };
  const JobTable& jobs = input->trace.jobs;
  const std::vector<sg4::Host*> nodes = make_nodes(input->cluster);
  SchedulerHost host(jobs, OnlineScheduler(input->cluster, make), nodes, bytes_per_s);
  sg4::Actor::create("arrivals", nodes.front(), [&host] { host.run_arrivals(); });
  sg4::Actor::create("scheduler", nodes.front(), [&host] { host.run_scheduler(); });
  sg4::Engine::get_instance()->run();
  host.print();
}

}  // namespace

int main(int argc, char** argv) {
  int engine_argc = 1;
  const sg4::Engine engine(&engine_argc, argv);
  if (argc < 4) return std::fprintf(stderr, "usage: simgrid_host TRACE NODESxGPUS POLICY [BYTES_PER_S]\n"), 2;
  simulate(argv[1], argv[2], argv[3], argc > 4 ? std::atof(argv[4]) : 0);
  return 0;
}
