// SPDX-License-Identifier: Apache-2.0
#include "src/policies/fair/slurm.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "src/policies/fair/slurm_backfill.hpp"
#include "src/policies/fair/slurm_log.hpp"

namespace gpusched {
namespace {

std::int64_t term(double weight, double factor) { return static_cast<std::int64_t>(std::llround(weight * factor)); }

}  // namespace

// Falling priority. A party is what of an owner has the same size, partition and QoS.
//
// A priority rises slowly, and by no more than clock() does: the age term by weight_age a max_age_s; and the fair-share
// factor 2^-x, whose x falls at most as the usage of all together, without its decay, rises: by 1/e of that one's
// logarithm, since x ln(2) 2^-x <= 1/e. So a priority stays for a while what it is, or what it is and half of what it
// lacks to the highest.
struct Slurm::ByPriority : RankedOrder {
  using Class = RankedClasses::Class;
  using Score = std::pair<std::int64_t, QueuePlace>;

  ByPriority(Slurm* policy, const View* at) : slurm(policy), view(at) {
    const Options& options = policy->options_;
    const double all = policy->all_.at(at->now()), seconds = to_seconds(at->now());
    if (all > 0) usage_of_all = std::max(0.0, std::log(all) + seconds / options.half_life_s * std::numbers::ln2);
    risen =
        options.weight_age * seconds / options.max_age_s + options.weight_fair_share * usage_of_all / std::numbers::e;
  }

  [[nodiscard]] RankedClasses::Kind kind(const Class& jobs) const {
    return {slurm->blocked_with(jobs), slurm->options_.skip ? jobs.demand : 0};
  }
  [[nodiscard]] std::int64_t major(const Class& jobs) const {
    const SlurmTerms of_first = slurm->terms(*view, jobs.first(), 0);
    return -(slurm->rank_term(*view, jobs.first()) + of_first.size + of_first.partition + of_first.qos);
  }
  [[nodiscard]] static std::int64_t minor(const Class&) { return 0; }
  [[nodiscard]] double clock() const { return risen; }
  [[nodiscard]] RankedClasses::Outlook outlook(const Class& jobs, double best) const {
    const Options& options = slurm->options_;
    const double age = options.weight_age * slurm->age_factor(*view, jobs.first());
    // Before the usage of all has a logarithm to speak of, only that a factor is at most 1.
    const double factor = usage_of_all > 0 ? slurm->fair_share_now(slurm->parties_[jobs.party].owner, view->now()) : 1;
    const double share = options.weight_fair_share * factor;
    const std::int64_t age_term = std::llround(age), share_term = std::llround(share);
    const auto now = static_cast<double>(jobs.rank.major - age_term - share_term);
    const double lacks = std::isfinite(best) ? std::floor(std::max(0.0, now - best) / 2) : 0;
    // Terms are rounded by half at most: nothing changes before one of them reaches the next half; both together rise
    // by no more than what they lack before they have risen by that and by what was rounded up.
    const double next_half =
        std::min(static_cast<double>(age_term) - age, static_cast<double>(share_term) - share) + 0.5;
    const double rounded_up = static_cast<double>(age_term + share_term) - age - share;
    const double rounding = 1e-12 * (1 + std::abs(risen) + options.weight_age + options.weight_fair_share);
    return {.now = now, .least = now - lacks, .until = risen + std::max(next_half, lacks + rounded_up) - rounding};
  }
  [[nodiscard]] Score score(const Class& jobs) const {
    return {-slurm->standing_now(*view, jobs.first()), jobs.jobs.front()};
  }
  [[nodiscard]] static Score bound(const RankedClasses::Least& least) {
    return {static_cast<std::int64_t>(least.outlook.first), least.outlook.second};
  }

  Slurm* slurm;
  const View* view;
  double usage_of_all = 0;  // the logarithm of GPU seconds, without their decay
  double risen = 0;         // bounds what priorities rise by
};

void Slurm::decide(const View& view, Decision& decision, const Hooks& hooks) {
  take_in(view, decision);
  stop_those_due(view, decision, hooks);
  fill(view, decision, hooks);
}

void Slurm::wait_again(const View& view, Decision& decision, const Hooks& hooks) {
  if (resting_.empty()) return;
  push_all(view, resting_);
  fill(view, decision, hooks);
}

void Slurm::push_all(const View& view, std::vector<JobId>& jobs) {
  for (const JobId job : std::exchange(jobs, {})) {
    waiting_.push(view, job, party_of(view, job), 0, ByPriority(this, &view));
  }
}

void Slurm::take_in(const View& view, Decision& decision) {
  const ByPriority order(this, &view);
  for (const Event& event : view.events()) {
    const View then = view.at(event);
    if (leaves_cluster(event.kind)) {
      hold(then, event.job, -1);
      preemption_.stopped(event.job);
    }
    const bool is_lost = event.kind == EventKind::kill && event.node != no_node && !options_.requeues;
    if (is_lost && decision.cancel(event.job) == Verdict::ok) continue;
    if (enters_queue(event.kind)) waiting_.push(then, event.job, party_of(then, event.job), 0, order);
    const bool rests = std::find(resting_.begin(), resting_.end(), event.job) != resting_.end();
    if (event.kind == EventKind::withdraw && rests) std::erase(resting_, event.job);
    if (event.kind == EventKind::withdraw && !rests) waiting_.erase(then, event.job, order);
    if (event.kind == EventKind::reprioritize && !rests && view.phase(event.job) == JobPhase::pending) {
      waiting_.reprioritize(then, event.job, party_of(view, event.job), 0, order);
    }
  }
}

void Slurm::stop_those_due(const View& view, Decision& decision, const Hooks& hooks) {
  if (!preemption_.active()) return;
  for (const JobId job : preemption_.take_due(view.now())) {
    if (decision.preempt(job) != Verdict::ok) continue;
    if (stop(view, decision, job)) resting_.push_back(job);
    hooks.preempted(job);
  }
}

void Slurm::note_start(const View& view, JobId job) {
  hold(view, job, +1);
  preemption_.started(view, job);
}

void Slurm::note_stop(const View& view, JobId job) {
  hold(view, job, -1);
  preemption_.stopped(job);
}

// The decision preempted the job. False: it is cancelled, and waits no more.
bool Slurm::stop(const View& view, Decision& decision, JobId job) {
  note_stop(view, job);
  return !preemption_.cancels(view, job) || decision.cancel(job) != Verdict::ok;
}

// Whoever was stopped may have room elsewhere, and others may where one was that is cancelled. Rights have no circle,
// so that this ends.
void Slurm::fill(const View& view, Decision& decision, const Hooks& hooks) {
  do {
    push_all(view, stopped_);
    has_stopped_ = false;
    start_all(view, decision, hooks);
  } while (has_stopped_);
}

void Slurm::start_all(const View& view, Decision& decision, const Hooks& hooks) {
  const ByPriority order(this, &view);
  const auto note_start_of = [&](JobId job) {
    note_start(view, job);
    hooks.started(job);
  };
  if (options_.skip && !preemption_.active()) {
    waiting_.start_while_any_fits(view, decision, view.options().placement, order, note_start_of);
    return;
  }
  const auto any = [](const RankedClasses::Kind&) { return true; };
  waiting_.start_best(order, any, [&](const RankedClasses::Class& jobs) {
    const JobId job = jobs.first();
    if (!start_or_preempt(view, decision, job, hooks)) return Attempt::no_room;
    note_start_of(job);
    return Attempt::started;
  });
}

// Starts the job, if need be in place of others, or asks these to go, or changes nothing. True when it started.
bool Slurm::start_or_preempt(const View& view, Decision& decision, JobId job, const Hooks& hooks) {
  const Verdict verdict = decision.start(job);
  if (verdict == Verdict::ok) return true;
  if (verdict == Verdict::over_limit || !preemption_.has_rights(view, job)) return false;
  const Placement rule = view.options().placement;
  std::vector<JobId> victims = preemption_.victims_of(view, decision, job);
  const auto take_back = [&](const std::vector<JobId>& gone) {
    decision.preempt(job);
    for (const JobId victim : gone) decision.restore(victim);
  };
  std::vector<JobId> gone = make_room(job, rule, victims, decision);
  if (gone.size() > 1) {
    take_back(gone);
    const auto last = std::find(victims.begin(), victims.end(), gone.back());
    std::rotate(victims.begin(), last, last + 1);
    gone = make_room(job, rule, victims, decision);
  }
  if (view.phase(job) != JobPhase::running) return false;
  if (!preemption_.all_go_at_once(view, gone)) {
    take_back(gone);
    preemption_.tell(view, decision, gone);
    return false;
  }
  has_stopped_ = has_stopped_ || !gone.empty();
  for (const JobId victim : gone) {
    if (stop(view, decision, victim)) stopped_.push_back(victim);
    hooks.preempted(victim);
  }
  return true;
}

// Without `skip` a job that does not fit blocks its partition; with it jobs that ask for the same, unless one of them
// may have a right that the other lacks.
std::uint32_t Slurm::blocked_with(const RankedClasses::Class& jobs) const {
  if (!options_.skip) return parties_[jobs.party].partition;
  return preemption_.active() ? jobs.party : jobs.queue;
}

// The priority, and rights and tier before it.
std::int64_t Slurm::standing_now(const View& view, JobId job) {
  const SlurmTerms now = terms(view, job, fair_share_now(owner_of(options_.column, view, job), view.now()));
  return rank_term(view, job) + now.priority();
}

std::vector<JobId> Slurm::waiting_in_order(const View& view, std::size_t most) {
  std::vector<std::pair<std::int64_t, QueuePlace>> waiting;
  waiting_.for_each([&](const RankedClasses::Class& jobs) {
    for (const QueuePlace& place : jobs.jobs) waiting.emplace_back(-standing_now(view, place.job), place);
  });
  most = std::min(most, waiting.size());
  std::partial_sort(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(most), waiting.end());
  std::vector<JobId> order;
  for (std::size_t i = 0; i < most; ++i) order.push_back(waiting[i].second.job);
  return order;
}

void Slurm::started(const View& view, JobId job) {
  note_start(view, job);
  waiting_.erase(view, job, ByPriority(this, &view));
}

void Slurm::preempted(const View& view, Decision& decision, JobId job) {
  if (!stop(view, decision, job)) return;
  waiting_.push(view, job, party_of(view, job), 0, ByPriority(this, &view));
}

void Slurm::inherit(const Slurm& before, const View& view) {
  options_.owners.insert(before.options_.owners.begin(), before.options_.owners.end());
  options_.most_qos = std::max(options_.most_qos, before.options_.most_qos);
  add_shares();
  used_.resize(std::max(used_.size(), before.used_.size()), DecayingUsage(options_.half_life_s));
  for (std::size_t owner = 0; owner < before.used_.size(); ++owner) {
    used_[owner].inherit(before.used_[owner], view.now());
  }
  all_.inherit(before.all_, view.now());
  shares_now_.clear();
}

void Slurm::add_shares() {
  share_sum_milli_ = 0;
  for (const std::uint32_t owner : options_.owners) share_sum_milli_ += options_.shares.milli(owner);
  share_sum_milli_ = std::max<std::int64_t>(share_sum_milli_, 1);
}

void Slurm::account(const View& view, const Event& event) {
  if (event.kind == EventKind::start) hold(view, event.job, +1);
  const bool stops = leaves_cluster(event.kind);
  if (stops || event.kind == EventKind::preempt) hold(view, event.job, -1);
}

SlurmTerms Slurm::terms(const View& view, JobId job) const {
  return terms(view, job, fair_share(owner_of(options_.column, view, job), view.now()));
}

double Slurm::fair_share(std::uint32_t owner, Time now) const {
  const double all = all_.at(now);
  if (all <= 0 || owner >= used_.size()) return 1;
  return std::exp2(-used_[owner].at(now) / all / part(owner));
}

double Slurm::part(std::uint32_t owner) const {
  return static_cast<double>(options_.shares.milli(owner)) / static_cast<double>(share_sum_milli_);
}

SlurmTerms Slurm::terms(const View& view, JobId job, double fair_share_factor) const {
  const double total = static_cast<double>(view.cluster().total_gpus()) * static_cast<double>(whole_gpu);
  const double size = total > 0 ? static_cast<double>(view.shape(job).gpu_milli()) / total : 0;
  return {.age = age_term(view, job),
          .fair_share = term(options_.weight_fair_share, fair_share_factor),
          .size = term(options_.weight_size, size),
          .partition = term(options_.weight_partition, of_partition(options_.partition_factors, view.vc(job))),
          .qos = term(options_.weight_qos, qos_factor(view.priority(job)))};
}

std::int64_t Slurm::age_term(const View& view, JobId job) const {
  return term(options_.weight_age, age_factor(view, job));
}

double Slurm::age_factor(const View& view, JobId job) const {
  return std::min(1.0, to_seconds(view.now() - view.submit(job)) / options_.max_age_s);
}

// Constant during one instant, whatever starts; kept because an owner has many classes.
double Slurm::fair_share_now(std::uint32_t owner, Time now) {
  if (owner >= shares_now_.size()) shares_now_.resize(owner + 1);
  ShareNow& share = shares_now_[owner];
  if (share.time != now) share = {now, fair_share(owner, now)};
  return share.factor;
}

void Slurm::hold(const View& view, JobId job, std::int64_t sign) {
  const std::uint32_t owner = owner_of(options_.column, view, job);
  if (owner >= used_.size()) used_.resize(owner + 1, DecayingUsage(options_.half_life_s));
  const MilliGpu change = sign * view.shape(job).gpu_milli();
  used_[owner].hold(view.now(), change);
  all_.hold(view.now(), change);
}

std::uint32_t Slurm::party_of(const View& view, JobId job) {
  const std::uint32_t owner = owner_of(options_.column, view, job);
  const std::uint32_t qos = preemption_.active() ? view.qos(job) : 0;  // of equal priority, not of equal rights
  const auto key = std::tuple(owner, view.vc(job), qos, view.priority(job), view.demand(job));
  const auto [known, added] = party_numbers_.try_emplace(key, static_cast<std::uint32_t>(parties_.size()));
  if (added) parties_.push_back({owner, view.vc(job)});
  return known->second;
}

double Slurm::of_partition(const std::vector<double>& values, std::uint32_t vc) {
  return vc >= 1 && vc - 1 < values.size() ? values[vc - 1] : 1;
}

// Outweighs every priority, which is at most the sum of five weights.
std::int64_t Slurm::rank_term(const View& view, JobId job) const {
  constexpr std::int64_t beyond_all = 10'000'000'000;
  const double tier = of_partition(options_.partition_tiers, view.vc(job));
  const std::int64_t place = std::lower_bound(tiers_.begin(), tiers_.end(), tier) - tiers_.begin();
  return beyond_all * (preemption_.depth(view, job) * static_cast<std::int64_t>(tiers_.size()) + place);
}

double Slurm::qos_factor(std::int32_t priority) const {
  if (options_.most_qos <= 0) return 0;
  return static_cast<double>(std::max(priority, 0)) / options_.most_qos;
}

namespace {

Result<SlurmPreemption::Rules> preemption_rules(const PolicyParameters& parameters, const JobTable& jobs) {
  SlurmPreemption::Rules rules{.by_qos = parameters.word("preempts_by") == "qos",
                               .youngest_first = parameters.flag("youngest_first")};
  const NameTable& names = rules.by_qos ? jobs.qos_names() : jobs.vcs();
  auto rights = preemption_rights(parameters.policies("preempts"), names);
  if (!rights) return Unexpected{rights.error()};
  auto grace = preemption_times(parameters.policies("grace_s"), names);
  if (!grace) return Unexpected{grace.error()};
  auto exempt = preemption_times(parameters.policies("exempt_s"), names);
  if (!exempt) return Unexpected{exempt.error()};
  auto cancelled = preemption_classes(parameters.policies("cancels"), names);
  if (!cancelled) return Unexpected{cancelled.error()};
  auto suspended = preemption_classes(parameters.policies("suspends"), names);
  if (!suspended) return Unexpected{suspended.error()};
  for (const std::uint32_t both : *cancelled) {
    if (suspended->contains(both)) return unexpected(names[both] + " stands under cancels and suspends");
  }
  rules.cancelled = *std::move(cancelled);
  rules.suspended = *std::move(suspended);
  rules.rights = *std::move(rights);
  rules.grace = *std::move(grace);
  rules.exempt = *std::move(exempt);
  return rules;
}

Result<Slurm> slurm_from(const PolicyParameters& parameters, const PolicyContext& context) {
  const auto column = owner_column("slurm", parameters, context);
  if (!column) return Unexpected{column.error()};
  Slurm::Options options{.column = *column,
                         .shares = OwnerWeights(parameters.list("weights")),
                         .owners = {},
                         .weight_age = parameters.number("weight_age"),
                         .weight_fair_share = parameters.number("weight_fair_share"),
                         .weight_size = parameters.number("weight_size"),
                         .weight_partition = parameters.number("weight_partition"),
                         .weight_qos = parameters.number("weight_qos"),
                         .max_age_s = parameters.number("max_age_s"),
                         .half_life_s = parameters.number("half_life_s"),
                         .partition_factors = parameters.list("partition_factors"),
                         .partition_tiers = parameters.list("partition_tiers"),
                         .skip = parameters.flag("skip"),
                         .requeues = parameters.flag("requeues"),
                         .preemption = {}};
  auto preemption = preemption_rules(parameters, *context.jobs);
  if (!preemption) return unexpected("policy slurm: " + preemption.error().message);
  options.preemption = *std::move(preemption);
  const JobTable& jobs = *context.jobs;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    if (jobs.submit(job) == Time::max()) continue;  // a spare row of GrowingJobs, which is no job yet
    options.owners.insert(owner_of(*column, jobs, job));
    options.most_qos = std::max(options.most_qos, jobs.priority(job));
  }
  return Slurm(std::move(options));
}

ParameterInfo weight(std::string name, double fallback, std::string meaning) {
  return {.name = std::move(name), .fallback = fallback, .meaning = std::move(meaning), .most = 1e9};
}

}  // namespace

PolicyInfo slurm_info() {
  return {
      .name = "slurm",
      .summary = "multifactor priority: age, fair-share with half-life, job size, partition and QoS; +easy: backfill",
      .source =
          "Slurm documentation, \"Multifactor Priority Plugin\" (classic fair-share, factor 2^-(U/S)); "
          "QoS = the job's priority over the greatest, partition = its virtual cluster; priorities are integers; "
          "\"Scheduling Configuration Guide\": a job that stays pending keeps back its partition; slurm+easy is "
          "sched/backfill with exact times (no bf_resolution)",
      .complexity =
          "O(log n) for each owner, shape and priority that may have come before all others; O(running) for a job that "
          "may preempt others",
      .parameters = {owner_parameter("user"),
                     weights_parameter(),
                     weight("weight_age", 1000, "PriorityWeightAge"),
                     weight("weight_fair_share", 10000, "PriorityWeightFairshare"),
                     weight("weight_size", 1000, "PriorityWeightJobSize; larger jobs first"),
                     weight("weight_partition", 1000, "PriorityWeightPartition"),
                     weight("weight_qos", 2000, "PriorityWeightQOS"),
                     {.name = "max_age_s",
                      .fallback = 604'800.0,
                      .meaning = "waiting time from which on the age factor is 1 (PriorityMaxAge)",
                      .least = 1},
                     {.name = "half_life_s",
                      .fallback = 604'800.0,
                      .meaning = "half-life of past usage (PriorityDecayHalfLife)",
                      .least = 1},
                     {.name = "partition_factors",
                      .fallback = std::vector<double>{},
                      .meaning = "factors of the virtual clusters in order of their first job; others 1",
                      .most = 1},
                     {.name = "partition_tiers",
                      .fallback = std::vector<double>{},
                      .meaning = "tiers of the virtual clusters likewise: jobs of a higher one go first (PriorityTier)",
                      .most = 65'533},
                     {.name = "skip",
                      .fallback = false,
                      .meaning = "pass over jobs that do not fit; false: they leave the rest of their partition "
                                 "pending"},
                     {.name = "preempts",
                      .fallback = std::vector<std::string>{},
                      .meaning = "rights to preempt, each A>B: waiting jobs of A may stop running ones of B"},
                     {.name = "preempts_by",
                      .fallback = std::string("qos"),
                      .meaning = "whose names those are: of QOS or of partitions (PreemptType)",
                      .words = {"qos", "partition"}},
                     {.name = "grace_s",
                      .fallback = std::vector<std::string>{},
                      .meaning = "how long jobs run on that have to go, each NAME=SECONDS (GraceTime)"},
                     {.name = "exempt_s",
                      .fallback = std::vector<std::string>{},
                      .meaning = "for how long a run may not be stopped, each NAME=SECONDS (PreemptExemptTime)"},
                     {.name = "cancels",
                      .fallback = std::vector<std::string>{},
                      .meaning = "whose jobs are done when they are stopped (PreemptMode CANCEL), each NAME"},
                     {.name = "suspends",
                      .fallback = std::vector<std::string>{},
                      .meaning = "whose jobs are suspended, each NAME: those with GPUs would keep these, and run on "
                                 "(SUSPEND)"},
                     {.name = "requeues",
                      .fallback = true,
                      .meaning = "false: jobs are cancelled whose node fails (JobRequeue)"},
                     {.name = "youngest_first",
                      .fallback = false,
                      .meaning = "stop the jobs first that started last (preempt_youngest_first)"},
                     {.name = "bf_window_s",
                      .fallback = 86'400.0,
                      .meaning = "slurm+easy: jobs that should start later have no reservation (bf_window)",
                      .least = 0,
                      .most = 1e10},
                     {.name = "bf_max_job_test",
                      .fallback = 500.0,
                      .meaning = "slurm+easy: most jobs that a pass considers, the highest priorities first",
                      .least = 1,
                      .most = 1e9,
                      .is_count = true},
                     {.name = "bf_interval_s",
                      .fallback = 30.0,
                      .meaning = "slurm+easy: least time between two passes (bf_interval)",
                      .least = 0,
                      .most = 1e9}},
      .make = [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<AnyPolicy> {
        auto policy = slurm_from(parameters, context);
        if (!policy) return Unexpected{policy.error()};
        return AnyPolicy(*std::move(policy));
      },
      .preemptive = true,
      .backfilled = [](const PolicyParameters& parameters, const PolicyParameters& of_easy,
                       const PolicyContext& context, AnyDurationEstimator estimator) -> Result<AnyPolicy> {
        auto policy = slurm_from(parameters, context);
        if (!policy) return Unexpected{policy.error()};
        return AnyPolicy(SlurmBackfill(*std::move(policy),
                                       {.window = from_seconds(parameters.number("bf_window_s")),
                                        .most_jobs = static_cast<std::uint32_t>(parameters.number("bf_max_job_test")),
                                        .interval = from_seconds(parameters.number("bf_interval_s")),
                                        .overrun = overrun_rule(of_easy, *context.jobs)},
                                       std::move(estimator), CapacityProfile(*context.cluster, *context.jobs)));
      },
      .log = [](const PolicyParameters& parameters,
                const PolicyContext& context) -> Result<std::unique_ptr<PolicyLog>> {
        auto policy = slurm_from(parameters, context);
        if (!policy) return Unexpected{policy.error()};
        return std::unique_ptr<PolicyLog>(std::make_unique<SlurmLog>(*std::move(policy), *context.jobs));
      }};
}

}  // namespace gpusched
