// SPDX-License-Identifier: Apache-2.0
#include "src/policies/fair/kueue.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>

#include "gpusched/core/named_value.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

KueueCohort::KueueCohort(std::vector<KueueQuota> quotas) : quotas_(std::move(quotas)), held_(quotas_.size(), 0) {
  for (std::uint32_t queue = 0; queue < quotas_.size(); ++queue) shared_ += shared(queue);
}

MilliGpu KueueCohort::kept(std::uint32_t queue) const {
  return std::max<MilliGpu>(0, nominal(queue) - quotas_[queue].lending);
}

void KueueCohort::hold(std::uint32_t queue, MilliGpu change) {
  used_ -= used(queue);
  held_[queue] += change;
  used_ += used(queue);
}

MilliGpu KueueCohort::available(std::uint32_t queue) const {
  const MilliGpu own = std::max<MilliGpu>(0, kept(queue) - held(queue));
  return own + std::min(shared_ - used_, shared(queue) - used(queue) + quotas_[queue].borrowing);
}

MilliGpu KueueCohort::most(std::uint32_t queue) const {
  return kept(queue) + std::min(shared_, shared(queue) + quotas_[queue].borrowing);
}

void Kueue::decide(const View& view, Decision& decision) {
  decision.keep_order();
  note(view);
  for (std::vector<Head> cycle = heads(view); !cycle.empty(); cycle = heads(view)) {
    for (const Head& head : cycle) {
      if (admit(view, decision, head)) continue;
      if (rules_.strict) {
        jobs_.give_up_queue(head.queue);
      } else {
        jobs_.give_up(head);
      }
    }
  }
}

void Kueue::note(const View& view) {
  for (const Event& event : view.events()) {
    if (event.job != no_job && leaves_cluster(event.kind)) hold(view.at(event), event.job, -1);
  }
  jobs_.note(view);
}

// One of each queue. Those that need not borrow come first.
std::vector<QuotaJobs::Head> Kueue::heads(const View& view) const {
  std::vector<Head> found;
  const auto add = [&](std::uint32_t queue) {
    if (const auto head = jobs_.head(queue)) found.push_back(*head);
  };
  // A start may let others reclaim: from a queue that borrows now.
  preempts() ? jobs_.for_each_waiting(add) : jobs_.for_each_changed(add);
  const auto rank = [&](const Head& head) {
    const MilliGpu then = cohort_.held(head.queue) + view.shape(head.job()).gpu_milli();
    return std::pair(then > cohort_.nominal(head.queue), head.rank());
  };
  std::sort(found.begin(), found.end(), [&rank](const Head& a, const Head& b) { return rank(a) < rank(b); });
  return found;
}

bool Kueue::admit(const View& view, Decision& decision, const Head& head) {
  const MilliGpu wanted = view.shape(head.job()).gpu_milli();
  if (cohort_.fits(head.queue, wanted, true)) {
    return !jobs_.lacks_room(view, head.job()) && start(view, decision, head, {});
  }
  if (!may_preempt(head.queue, wanted)) return false;
  const std::vector<JobId> victims = targets(view, head);
  return !victims.empty() && start(view, decision, head, victims);
}

// Stops the victims and starts the job, or changes nothing.
bool Kueue::start(const View& view, Decision& decision, const Head& head, const std::vector<JobId>& victims) {
  for (const JobId victim : victims) decision.preempt(victim);
  const Verdict verdict = decision.start(head.job(), view.options().placement);
  const bool is_started = verdict == Verdict::ok;
  for (const JobId victim : victims) {
    if (!is_started && decision.restore(victim) == Verdict::ok) continue;
    jobs_.stopped(view, victim);
    hold(view, victim, -1);
  }
  if (!is_started) {
    if (verdict == Verdict::does_not_fit && victims.empty()) jobs_.note_lack_of_room(view, head.job());
    return false;
  }
  jobs_.started(view, head.job());
  hold(view, head.job(), +1);
  return true;
}

bool Kueue::may_preempt(std::uint32_t queue, MilliGpu wanted) const {
  if (!preempts()) return false;
  return wanted <= cohort_.most(queue) && (wanted <= cohort_.nominal(queue) || rules_.borrow);
}

std::vector<JobId> Kueue::targets(const View& view, const Head& head) {
  constexpr std::int64_t nobody = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t all = std::numeric_limits<std::int64_t>::max();
  std::vector<JobId> found = candidates(view, head);
  if (found.empty()) return {};
  const auto is_own = [&](JobId job) { return jobs_.queue_of(view, job) == head.queue; };
  if (std::all_of(found.begin(), found.end(), is_own)) return fewest(view, head, found, true, all);
  const bool has_quota = cohort_.held(head.queue) < cohort_.nominal(head.queue);
  if (rules_.borrow) {
    const std::int64_t below = std::min<std::int64_t>(head.priority, rules_.borrow_most + 1);
    if (!has_quota) {
      std::erase_if(found, [&](JobId job) { return !is_own(job) && view.priority(job) >= below; });
    }
    return fewest(view, head, found, true, below);
  }
  if (has_quota) {
    if (std::vector<JobId> fit = fewest(view, head, found, false, nobody); !fit.empty()) return fit;
  }
  std::erase_if(found, [&](JobId job) { return !is_own(job); });
  return fewest(view, head, found, true, all);
}

std::vector<JobId> Kueue::candidates(const View& view, const Head& head) const {
  using Rank = std::tuple<bool, std::int32_t, std::int64_t, std::uint32_t>;  // own, priority, began, place
  std::vector<std::pair<Rank, JobId>> found;
  const auto add = [&](const QuotaJobs::Running& run, bool is_own) {
    if (!jobs_.may_stop(view, run)) return;
    found.push_back({Rank{is_own, run.priority, -run.began.us, run.lateness}, run.job});
  };
  for (const QuotaJobs::Running& run : jobs_.running(head.queue)) {
    if (run.priority > head.priority || rules_.within == Preempts::never) break;
    const bool is_newer = head.place < view.queue_place(run.job);
    if (run.priority < head.priority || (rules_.within == Preempts::lower_or_newer && is_newer)) add(run, true);
  }
  for (std::uint32_t queue = 0; queue < jobs_.size() && rules_.reclaim != Preempts::never; ++queue) {
    if (queue == head.queue || !cohort_.is_borrowing(queue)) continue;
    for (const QuotaJobs::Running& run : jobs_.running(queue)) {
      if (rules_.reclaim == Preempts::any || run.priority < head.priority) add(run, false);
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<JobId> jobs;
  jobs.reserve(found.size());
  for (const auto& [rank, job] : found) jobs.push_back(job);
  return jobs;
}

// The first of the candidates with which the job fits, and of these those that are needed. With a job of another queue
// of priority `below` or more among them, it must not borrow.
std::vector<JobId> Kueue::fewest(const View& view, const Head& head, const std::vector<JobId>& candidates,
                                 bool borrowing, std::int64_t below) {
  const MilliGpu wanted = view.shape(head.job()).gpu_milli();
  std::vector<JobId> gone;
  bool fits = false;
  for (const JobId job : candidates) {
    const std::uint32_t queue = jobs_.queue_of(view, job);
    const bool is_own = queue == head.queue;
    if (!is_own && !cohort_.is_borrowing(queue)) continue;
    if (!is_own && view.priority(job) >= below) borrowing = false;
    hold(view, job, -1);
    gone.push_back(job);
    if (fits = cohort_.fits(head.queue, wanted, borrowing); fits) break;
  }
  const auto take_back = [&](JobId job) { hold(view, job, +1); };
  if (!fits) {
    std::for_each(gone.begin(), gone.end(), take_back);
    return {};
  }
  for (std::size_t i = gone.size() - 1; i-- > 0;) {
    take_back(gone[i]);
    if (cohort_.fits(head.queue, wanted, borrowing)) {
      gone.erase(gone.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      hold(view, gone[i], -1);
    }
  }
  std::for_each(gone.begin(), gone.end(), take_back);
  return gone;
}

namespace {

constexpr std::array<NamedValue<Kueue::Preempts>, 4> preempts_names{{
    {"never", Kueue::Preempts::never},
    {"lower", Kueue::Preempts::lower},
    {"lower-or-newer", Kueue::Preempts::lower_or_newer},
    {"any", Kueue::Preempts::any},
}};

// What the named queues leave of the cluster is the nominal quota of the others, in equal parts.
std::vector<KueueQuota> nominal_quotas(const std::map<std::uint32_t, double>& named, const std::vector<bool>& has_jobs,
                                       MilliGpu total) {
  std::vector<KueueQuota> quotas(has_jobs.size());
  std::vector<std::uint32_t> others;
  for (std::uint32_t queue = 0; queue < quotas.size(); ++queue) {
    if (const auto known = named.find(queue); known != named.end()) {
      quotas[queue].nominal = milli_of_gpus(known->second);
      total -= quotas[queue].nominal;
    } else if (has_jobs[queue]) {
      others.push_back(queue);
    }
  }
  for (std::size_t i = 0; i < others.size(); ++i) {
    const MilliGpu part = std::max<MilliGpu>(0, total) / static_cast<MilliGpu>(others.size() - i);
    quotas[others[i]].nominal = part;
    total -= part;
  }
  return quotas;
}

Result<AnyPolicy> make_kueue(const PolicyParameters& parameters, const PolicyContext& context) {
  const auto column = owner_column("kueue", parameters, context);
  if (!column) return Unexpected{column.error()};
  const JobTable& jobs = *context.jobs;
  const auto gpus = [&](const char* parameter) {
    return numbers_of_owners(parameter, "GPUS", parameters, *column, jobs);
  };
  const auto nominal = gpus("nominal_gpus"), borrowing = gpus("borrowing_gpus"), lending = gpus("lending_gpus");
  for (const auto* numbers : {&nominal, &borrowing, &lending}) {
    if (!*numbers) return unexpected("policy kueue: " + numbers->error().to_string());
  }
  std::vector<bool> has_jobs(names_of(*column, jobs).size());
  for (std::uint32_t i = 0; i < jobs.size(); ++i) has_jobs[owner_of(*column, jobs, JobId{i})] = true;
  std::vector<KueueQuota> quotas = nominal_quotas(*nominal, has_jobs, context.cluster->total_gpus() * whole_gpu);
  for (const auto& [queue, most] : *borrowing) quotas[queue].borrowing = milli_of_gpus(most);
  for (const auto& [queue, most] : *lending) quotas[queue].lending = milli_of_gpus(most);
  const Kueue::Rules rules{.within = *value_from_name(preempts_names, parameters.word("within")),
                           .reclaim = *value_from_name(preempts_names, parameters.word("reclaim")),
                           .borrow = parameters.word("borrow") == "lower",
                           .borrow_most = std::llround(parameters.number("borrow_most_priority")),
                           .strict = parameters.flag("strict")};
  if (rules.borrow && rules.reclaim == Kueue::Preempts::never) {
    return unexpected("policy kueue: borrow needs a reclaim other than never, as Kueue's webhook demands");
  }
  const KueueCohort cohort(std::move(quotas));
  const auto most = [&](JobId job) { return cohort.most(owner_of(*column, jobs, job)); };
  if (auto checked = check_sizes("kueue", *column, jobs, most); !checked) return Unexpected{checked.error()};
  return AnyPolicy(Kueue(QuotaJobs(*column, static_cast<std::uint32_t>(has_jobs.size())), cohort, rules));
}

}  // namespace

PolicyInfo kueue_info() {
  constexpr double most_priority = 2147483647;
  return {
      .name = "kueue",
      .summary = "queues with quotas in one cohort that borrow what others leave idle, and reclaim what they lent",
      .source =
          "kubernetes-sigs/kueue, documentation of ClusterQueue and preemption, and pkg/scheduler: classical "
          "preemption in a flat cohort over one flavour; no fair sharing, no pods that wait once admitted",
      .complexity = "O(queues + shapes) an event, not for submissions without preemption; O(running) a preemption",
      .parameters =
          {owner_parameter("vc"),
           numbers_parameter("nominal_gpus", "nominal quotas, each QUEUE=GPUS; others share what these leave equally"),
           numbers_parameter("borrowing_gpus", "most beyond it, each QUEUE=GPUS; others: no limit"),
           numbers_parameter("lending_gpus", "most of it for others, each QUEUE=GPUS; others: all"),
           {.name = "within",
            .fallback = std::string("never"),
            .meaning = "whom a job preempts in its queue (withinClusterQueue)",
            .words = {"never", "lower", "lower-or-newer"}},
           {.name = "reclaim",
            .fallback = std::string("never"),
            .meaning = "whom in queues that borrow (reclaimWithinCohort)",
            .words = {"never", "lower", "any"}},
           {.name = "borrow",
            .fallback = std::string("never"),
            .meaning = "whom of these when its own queue borrows (borrowWithinCohort)",
            .words = {"never", "lower"}},
           {.name = "borrow_most_priority",
            .fallback = most_priority,
            .meaning = "and of which priority at most (maxPriorityThreshold)",
            .least = -most_priority - 1,
            .most = most_priority,
            .is_count = true},
           {.name = "strict", .fallback = false, .meaning = "a job that cannot start holds up its queue (StrictFIFO)"}},
      .make = make_kueue,
      .preemptive = true};
}

}  // namespace gpusched
