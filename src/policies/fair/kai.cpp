// SPDX-License-Identifier: Apache-2.0
#include "src/policies/fair/kai.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "src/policies/queues/class_queues.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {
namespace {

// The division of what is left among queues of one priority.
class KaiRounds {
 public:
  KaiRounds(const std::vector<KaiQueue>& queues, const std::vector<MilliGpu>& requested, std::vector<MilliGpu>& shares,
            const std::vector<std::uint32_t>& ties)
      : queues_(&queues), requested_(&requested), shares_(&shares), ties_(&ties) {}

  // What is left of `amount`.
  MilliGpu divide(const std::vector<std::uint32_t>& members, MilliGpu amount) {
    remainders_.clear();
    while (amount > 0 && divide_once(members, amount)) {
    }
    return give_remainders(amount);
  }

 private:
  [[nodiscard]] MilliGpu missing(std::uint32_t queue) const { return (*requested_)[queue] - (*shares_)[queue]; }

  // True when another round may give more.
  bool divide_once(const std::vector<std::uint32_t>& members, MilliGpu& amount) {
    double weights = 0;
    for (const std::uint32_t queue : members) weights += missing(queue) > 0 ? (*queues_)[queue].weight : 0;
    const auto all = static_cast<double>(amount);
    bool is_any_satisfied = false;
    for (const std::uint32_t queue : members) {
      const MilliGpu wanted = missing(queue);
      if (wanted <= 0 || (*queues_)[queue].weight <= 0) continue;
      const double part = all * (*queues_)[queue].weight / weights;
      const bool is_satisfied = static_cast<double>(wanted) <= part;
      const MilliGpu given = is_satisfied ? wanted : static_cast<MilliGpu>(part) / whole_gpu * whole_gpu;
      if (is_satisfied) {
        remainders_.erase(queue);
      } else if (part > static_cast<double>(given)) {
        remainders_[queue] = part - static_cast<double>(given);
      }
      (*shares_)[queue] += given;
      amount -= given;
      is_any_satisfied = is_any_satisfied || static_cast<double>(wanted) < part;
    }
    return is_any_satisfied;
  }

  MilliGpu give_remainders(MilliGpu amount) {
    std::vector<std::tuple<double, std::uint32_t, std::uint32_t>> order;
    for (const auto& [queue, remainder] : remainders_) {
      order.emplace_back(-remainder, ties_->empty() ? queue : (*ties_)[queue], queue);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [remainder, tie, queue] : order) {
      const MilliGpu given = std::min<MilliGpu>(whole_gpu, amount);
      (*shares_)[queue] += given;
      amount -= given;
    }
    return amount;
  }

  const std::vector<KaiQueue>* queues_;
  const std::vector<MilliGpu>* requested_;
  std::vector<MilliGpu>* shares_;
  const std::vector<std::uint32_t>* ties_;
  std::map<std::uint32_t, double> remainders_;  // parts of a GPU that queues with more wishes did not get
};

}  // namespace

std::vector<MilliGpu> kai_fair_shares(const std::vector<KaiQueue>& queues, const std::vector<MilliGpu>& asked,
                                      MilliGpu total, const std::vector<std::uint32_t>& ties) {
  std::vector<MilliGpu> requested = asked, shares(queues.size(), 0);
  std::map<double, std::vector<std::uint32_t>, std::greater<>> by_priority;
  MilliGpu left = total;
  for (std::uint32_t queue = 0; queue < queues.size(); ++queue) {
    requested[queue] = std::min(requested[queue], queues[queue].limit);
    if (requested[queue] <= 0) continue;
    shares[queue] = std::min(queues[queue].quota, requested[queue]);
    left -= shares[queue];
    by_priority[queues[queue].priority].push_back(queue);
  }
  KaiRounds rounds(queues, requested, shares, ties);
  for (const auto& [priority, members] : by_priority) {
    if (left <= 0) break;
    left = rounds.divide(members, left);
  }
  return shares;
}

void Kai::decide(const View& view, Decision& decision) {
  decision.keep_order();
  jobs_.note(view);
  divide();
  do {
    has_stopped_ = false;
    jobs_.try_again();
    allocate(view, decision);
    if (rules_.reclaims) {
      jobs_.try_again();
      for_each_job(view, false, [&](const Head& head) { return reclaim(view, decision, head); });
    }
    if (rules_.preempts) {
      jobs_.try_again();
      for_each_job(view, true, [&](const Head& head) { return preempt(view, decision, head); });
    }
  } while (has_stopped_);
}

void Kai::allocate(const View& view, Decision& decision) {
  for_each_job(view, true, [&](const Head& head) {
    if (!may_start(view, head, 0) || jobs_.lacks_room(view, head.job())) return false;
    const Verdict verdict = decision.start(head.job(), view.options().placement);
    if (verdict == Verdict::ok) jobs_.started(view, head.job());
    if (verdict == Verdict::does_not_fit) jobs_.note_lack_of_room(view, head.job());
    return verdict == Verdict::ok;
  });
}

void Kai::stopped(const View& view, const std::vector<JobId>& gone) {
  for (const JobId job : gone) jobs_.stopped(view, job);
  has_stopped_ = has_stopped_ || !gone.empty();
}

void Kai::divide() {
  std::vector<MilliGpu> asked;
  asked.reserve(queues_.size());
  for (std::uint32_t queue = 0; queue < queues_.size(); ++queue) asked.push_back(jobs_.asked(queue));
  std::vector<std::uint32_t> ties(queues_.size(), no_index);  // the first waiting job's place
  jobs_.for_each_waiting([&](std::uint32_t queue) { ties[queue] = jobs_.head(queue)->place.number; });
  fair_ = kai_fair_shares(queues_, asked, total_, ties);
}

Kai::Rank Kai::rank(std::uint32_t queue, MilliGpu held, MilliGpu wanted, QueuePlace place) const {
  constexpr double without_share = 1000;  // the factor of a queue that may hold nothing
  const MilliGpu may_hold = allocatable(queue);
  const auto part = [&may_hold](MilliGpu amount) {
    return may_hold > 0 ? static_cast<double>(amount) / static_cast<double>(may_hold)
                        : static_cast<double>(amount) * without_share / whole_gpu;
  };
  return {held > fair_[queue],
          held + wanted > queues_[queue].quota,
          -queues_[queue].priority,
          may_hold <= 0 && held + wanted > 0,
          part(held + wanted),
          part(held),
          may_hold,
          place};
}

template <class Attempt>
void Kai::for_each_job(const View& view, bool alone, Attempt attempt) {
  std::map<Rank, Head> order;
  const auto enter = [&](std::uint32_t queue) {
    const auto head = jobs_.head(queue);
    if (head) order.emplace(rank(queue, jobs_.held(queue), view.shape(head->job()).gpu_milli(), head->place), *head);
  };
  jobs_.for_each_waiting(enter);
  while (!order.empty()) {
    const Head head = order.begin()->second;
    order.erase(order.begin());
    const bool is_started = attempt(head);
    if (!is_started) jobs_.give_up(head);
    if (!is_started || alone) {
      enter(head.queue);
    } else {
      order.clear();
      jobs_.for_each_waiting(enter);
    }
  }
}

bool Kai::may_start(const View& view, const Head& head, MilliGpu freed) const {
  const MilliGpu wanted = view.shape(head.job()).gpu_milli();
  if (!is_within_limit(head.queue, wanted, freed)) return false;
  return head.priority < rules_.nonpreemptible_from || fixed(view, head.queue) + wanted <= queues_[head.queue].quota;
}

MilliGpu Kai::fixed(const View& view, std::uint32_t queue) const {
  MilliGpu sum = 0;
  const auto& running = jobs_.running(queue);
  for (auto run = running.rbegin(); run != running.rend() && run->priority >= rules_.nonpreemptible_from; ++run) {
    sum += view.shape(run->job).gpu_milli();
  }
  return sum;
}

bool Kai::reclaim(const View& view, Decision& decision, const Head& head) {
  const MilliGpu then = jobs_.held(head.queue) + view.shape(head.job()).gpu_milli();
  if (then > fair_[head.queue] || !may_start(view, head, 0)) return false;
  const std::vector<JobId> victims = reclaimable(view, head);
  if (victims.empty()) return false;
  const std::vector<JobId> gone = make_room(head.job(), view.options().placement, victims, decision);
  stopped(view, gone);
  if (view.phase(head.job()) != JobPhase::running) return false;
  jobs_.started(view, head.job());
  return true;
}

std::vector<JobId> Kai::stoppable(const View& view, std::uint32_t queue, std::int64_t below) const {
  std::vector<JobId> jobs;
  for (const QuotaJobs::Running& run : jobs_.running(queue)) {
    if (run.priority >= std::min(below, rules_.nonpreemptible_from)) break;
    if (jobs_.may_stop(view, run)) jobs.push_back(run.job);
  }
  std::reverse(jobs.begin(), jobs.end());
  return jobs;
}

std::vector<JobId> Kai::reclaimable(const View& view, const Head& head) const {
  const MilliGpu then = jobs_.held(head.queue) + view.shape(head.job()).gpu_milli();
  const bool is_starved = then <= queues_[head.queue].quota;
  struct Source {
    MilliGpu left = 0;  // what the queue holds without its jobs that go
    std::vector<JobId> jobs = {};
  };
  constexpr std::int64_t everybody = std::numeric_limits<std::int64_t>::max();
  std::map<std::uint32_t, Source> sources;
  const auto may_lose = [&](std::uint32_t queue, MilliGpu left) {
    return left > allocatable(queue) || (is_starved && left > queues_[queue].quota);
  };
  for (std::uint32_t queue = 0; queue < jobs_.size(); ++queue) {
    if (queue == head.queue || !may_lose(queue, jobs_.held(queue))) continue;
    Source source{.left = jobs_.held(queue), .jobs = stoppable(view, queue, everybody)};
    if (!source.jobs.empty()) sources.emplace(queue, std::move(source));
  }
  std::vector<JobId> victims;
  while (!sources.empty()) {
    const auto rank_of = [&](const auto& source) {
      return rank(source.first, source.second.left, 0, view.queue_place(source.second.jobs.back()));
    };
    const auto last = std::max_element(sources.begin(), sources.end(),
                                       [&](const auto& a, const auto& b) { return rank_of(a) < rank_of(b); });
    Source& source = last->second;
    victims.push_back(source.jobs.back());
    source.left -= view.shape(source.jobs.back()).gpu_milli();
    source.jobs.pop_back();
    if (source.jobs.empty() || !may_lose(last->first, source.left)) sources.erase(last);
  }
  return victims;
}

bool Kai::preempt(const View& view, Decision& decision, const Head& head) {
  std::vector<JobId> victims = stoppable(view, head.queue, head.priority);
  std::vector<JobId> gone;
  MilliGpu freed = 0;
  bool is_started = false;
  for (; !victims.empty() && !is_started; victims.pop_back()) {
    decision.preempt(victims.back());
    gone.push_back(victims.back());
    freed += view.shape(victims.back()).gpu_milli();
    is_started = may_start(view, head, freed) && decision.start(head.job(), view.options().placement) == Verdict::ok;
  }
  // Those that did not have to go run on.
  victims.clear();
  for (const JobId job : gone) {
    const MilliGpu back = view.shape(job).gpu_milli();
    const bool may_stay = !is_started || may_start(view, head, freed - back);
    if (may_stay && decision.restore(job) == Verdict::ok) {
      freed -= back;
    } else {
      victims.push_back(job);
    }
  }
  stopped(view, victims);
  if (is_started) jobs_.started(view, head.job());
  return is_started;
}

namespace {

Result<AnyPolicy> make_kai(const PolicyParameters& parameters, const PolicyContext& context) {
  const auto column = owner_column("kai", parameters, context);
  if (!column) return Unexpected{column.error()};
  const JobTable& jobs = *context.jobs;
  std::vector<KaiQueue> queues(names_of(*column, jobs).size());
  const auto read = [&](const char* parameter, const char* unit, auto set) -> Result<void> {
    const auto given = numbers_of_owners(parameter, unit, parameters, *column, jobs);
    if (!given) return unexpected("policy kai: " + given.error().to_string());
    for (const auto& [queue, number] : *given) set(queues[queue], number);
    return {};
  };
  for (const Result<void>&done :
       {read("quota_gpus", "GPUS", [](KaiQueue&queue, double gpus) { queue.quota = milli_of_gpus(gpus); }),
        read("limit_gpus", "GPUS", [](KaiQueue&queue, double gpus) { queue.limit = milli_of_gpus(gpus); }),
        read("weights_over_quota", "WEIGHT", [](KaiQueue&queue, double weight) { queue.weight = weight; }),
        read("queue_priorities", "PRIORITY", [](KaiQueue&queue, double priority) { queue.priority = priority; })}) {
    if (!done) return Unexpected{done.error()};
  }
  const Kai::Rules rules{.nonpreemptible_from = std::llround(parameters.number("nonpreemptible_from")),
                         .reclaims = parameters.flag("reclaim"),
                         .preempts = parameters.flag("preempt")};
  const auto most = [&](JobId job) {
    const KaiQueue& queue = queues[owner_of(*column, jobs, job)];
    return jobs.priority(job) < rules.nonpreemptible_from ? queue.limit : std::min(queue.quota, queue.limit);
  };
  if (auto checked = check_sizes("kai", *column, jobs, most); !checked) return Unexpected{checked.error()};
  const auto count = static_cast<std::uint32_t>(queues.size());
  return AnyPolicy(Kai(QuotaJobs(*column, count), std::move(queues), context.cluster->total_gpus() * whole_gpu, rules));
}

}  // namespace

PolicyInfo kai_info() {
  constexpr double no_priority = 1e10;  // beyond those of jobs
  return {.name = "kai",
          .summary = "queues with guaranteed quotas; what is left goes by queue priority and weight, with reclaim",
          .source =
              "kai-scheduler/KAI-Scheduler, docs/fairness, docs/scheduling-deep-dive and pkg/scheduler: actions "
              "allocate, reclaim and preempt over GPUs and one level of queues; no consolidation, no past usage, no "
              "limit on the search",
          .complexity =
              "O(queues log queues + shapes) an event and for each job stopped; O(running log running) a "
              "preemption considered",
          .parameters = {owner_parameter("vc"),
                         numbers_parameter("quota_gpus", "guaranteed, each QUEUE=GPUS; others: none"),
                         numbers_parameter("limit_gpus", "most that a queue holds, each QUEUE=GPUS; others: no limit"),
                         numbers_parameter("weights_over_quota", "of what is left, each QUEUE=WEIGHT; others 1"),
                         numbers_parameter("queue_priorities", "who gets it first, each QUEUE=PRIORITY; others 0"),
                         {.name = "nonpreemptible_from",
                          .fallback = no_priority,
                          .meaning = "jobs of that priority or more are never stopped and stay within the quota; KAI: "
                                     "100",
                          .least = -no_priority,
                          .most = no_priority,
                          .is_count = true},
                         {.name = "reclaim", .fallback = true, .meaning = "action: from queues above their shares"},
                         {.name = "preempt",
                          .fallback = true,
                          .meaning = "action: from lower priorities of the same queue"}},
          .make = make_kai,
          .preemptive = true};
}

}  // namespace gpusched
