// SPDX-License-Identifier: Apache-2.0
#include "src/policies/fair/share_queues.hpp"

#include <algorithm>
#include <tuple>

#include "gpusched/policy/most_freed.hpp"

namespace gpusched {
namespace {

// Whether free GPUs and those of all victims would be enough by count; their places are not looked at.
bool could_suffice(const View& view, JobId job, const std::vector<JobId>& victims) {
  const Shape& wanted = view.shape(job);
  MilliGpu missing = wanted.gpu_milli() - view.cluster().available_gpu_milli(wanted, view.queue_of(job));
  for (const JobId victim : victims) missing -= most_freed(view.shape(victim), wanted);
  return missing <= 0;
}

}  // namespace

QueueTree::QueueTree(const std::vector<std::string>& names, const OwnerWeights& weights, std::int64_t total)
    : queue_of_(names.size(), none), weight_above_(names.size(), 1000), total_(total) {
  for (std::uint32_t owner = 0; owner < names.size(); ++owner) {
    const std::string& name = names[owner];
    if (name.empty()) continue;
    std::size_t queue = 0;
    for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
      queue = child(queue, name.substr(0, dot));
    }
    queue = queue_of_[owner] = child(queue, name);
    queues_[queue].has_jobs = true;
    queues_[queue].weight_milli = weights.milli(owner);
  }
  for (Queue& queue : queues_) prepare_division(queue);
  note_weights_above();
}

std::size_t QueueTree::child(std::size_t parent, const std::string& path) {
  const auto [known, added] = by_path_.try_emplace(path, queues_.size());
  if (!added) return known->second;
  queues_.push_back({.path = path, .parent = parent, .place = queues_[parent].children.size()});
  queues_[parent].children.push_back(known->second);
  return known->second;
}

// A queue with jobs of its own competes with those below it.
void QueueTree::prepare_division(Queue& queue) const {
  std::vector<std::int64_t> weights;
  for (const std::size_t below : queue.children) weights.push_back(queues_[below].weight_milli);
  if (queue.has_jobs) weights.push_back(1000);
  queue.demands.assign(weights.size(), 0);
  queue.division = FairDivision(std::move(weights));
}

void QueueTree::note_weights_above() {
  while (queues_[first_split_].children.size() == 1 && !queues_[first_split_].has_jobs) {
    first_split_ = queues_[first_split_].children.front();
  }
  for (std::uint32_t owner = 0; owner < owners(); ++owner) {
    std::size_t queue = queue_of_[owner];
    if (queue == none || queue == first_split_) continue;
    while (queues_[queue].parent != first_split_) queue = queues_[queue].parent;
    weight_above_[owner] = queues_[queue].weight_milli;
  }
}

void QueueTree::demand(std::uint32_t owner, std::int64_t amount) {
  ++version_;
  const std::size_t queue = queue_of_[owner];
  demand_at(queue, queues_[queue].children.size(), amount);
}

void QueueTree::demand_at(std::size_t queue, std::size_t place, std::int64_t amount) {
  Queue& here = queues_[queue];
  here.demand += Wide{amount} - here.demands[place];
  here.demands[place] = amount;
  here.division.demand(place, amount);
  if (here.parent == none) return;
  demand_at(here.parent, here.place, static_cast<std::int64_t>(std::min<Wide>(unlimited, here.demand)));
}

FairDivision& QueueTree::divided(std::size_t queue) {
  Queue& here = queues_[queue];
  if (here.divided == version_) return here.division;
  here.divided = version_;
  here.division.divide(here.parent == none ? total_ : divided(here.parent).share(here.place));
  return here.division;
}

std::int64_t QueueTree::share(std::uint32_t owner) {
  const std::size_t queue = queue_of_[owner];
  return queue == none ? 0 : divided(queue).share(queues_[queue].children.size());
}

std::vector<std::int64_t> QueueTree::divide(std::int64_t total, const std::vector<std::int64_t>& demands) {
  total_ = total;
  ++version_;
  for (std::uint32_t owner = 0; owner < owners(); ++owner) {
    if (queue_of_[owner] != none) demand(owner, demands[owner]);
  }
  std::vector<std::int64_t> shares;
  for (std::uint32_t owner = 0; owner < owners(); ++owner) shares.push_back(share(owner));
  return shares;
}

double QueueTree::most_by_weight() { return divided(first_split_).most_by_weight(); }

// The queue that holds the least part of its due, then the highest priority, then the poorest user.
struct ShareQueues::ByShare : RankedOrder {
  using Score = std::tuple<std::int64_t, std::int64_t, std::int64_t, QueuePlace>;
  explicit ByShare(ShareQueues* of) : queues(of) {}
  [[nodiscard]] std::int64_t major(const Class& jobs) const {
    return queues->options_.by_priority ? -std::int64_t{jobs.priority} : 0;
  }
  [[nodiscard]] std::int64_t minor(const Class& jobs) const {
    return queues->options_.shares ? queues->options_.shares->share(user_of(jobs)) : 0;
  }
  // A due that others' demands change is not known, but at most most_by_weight() times a weight that is.
  [[nodiscard]] double standing(std::uint32_t queue) const {
    if (!queues->options_.by_share) return 0;
    if (!queues->options_.among_active) return static_cast<double>(queues->part_of_due(queue));
    return static_cast<double>(queues->held_[queue]) / static_cast<double>(queues->tree_.weight_above(queue));
  }
  [[nodiscard]] Score score(const Class& jobs) const {
    const std::int64_t part = queues->options_.by_share ? queues->part_of_due(queue_of(jobs)) : 0;
    return {part, jobs.rank.major, jobs.rank.minor, jobs.rank.first};
  }
  [[nodiscard]] Score bound(const RankedClasses::Least& least) const {
    constexpr double below = 1 - 1e-12;  // beyond the rounding of the divisions
    constexpr double most = 9e18;
    const double most_by_weight = queues->options_.among_active ? queues->tree_.most_by_weight() : 1'000'000;
    const double part = least.standing == 0 ? 0 : std::min(least.standing * 1'000'000 / most_by_weight * below, most);
    return {static_cast<std::int64_t>(part), least.rank.major, least.rank.minor, least.rank.first};
  }

  ShareQueues* queues;
};

ShareQueues::ShareQueues(Options options, QueueTree tree, MilliGpu total)
    : options_(std::move(options)),
      tree_(std::move(tree)),
      demanded_(tree_.owners(), 0),
      short_since_(tree_.owners(), Time::max()),
      running_(tree_.owners()),
      offers_(tree_.owners()) {
  const auto divide = [&](std::int64_t demand) { return tree_.divide(total, std::vector(tree_.owners(), demand)); };
  options_.among_active ? divide(0) : due_ = divide(unlimited);
}

void ShareQueues::decide(const View& view, Decision& decision) {
  // Who may reclaim or preempt has one decision an instant for it.
  if (!options_.reclaim && !options_.preempt_within) decision.keep_order();
  started_.clear();
  note(view);
  start_waiting(view, decision);
  // A stopped gang may free more than was needed.
  if (options_.preempt_within && preempt_within(view, decision)) start_waiting(view, decision);
  if (options_.reclaim) reclaim(view, decision);
}

void ShareQueues::note(const View& view) {
  for (const Event& event : view.events()) {
    if (event.job == no_job) continue;
    const View then = view.at(event);
    const std::uint32_t owner = owner_of(options_.column, view, event.job);
    const MilliGpu wanted = then.shape(event.job).gpu_milli();
    if (event.kind == EventKind::finish || event.kind == EventKind::withdraw) demand(owner, -wanted);
    if (event.kind == EventKind::submit) demand(owner, +wanted);
    if (leaves_cluster(event.kind)) hold(then, event.job, -1);
    if (enters_queue(event.kind)) wait(then, event.job);
    if (event.kind == EventKind::withdraw) waiting_.erase(then, event.job, ByShare{this});
    if (event.kind != EventKind::reprioritize) continue;
    if (view.phase(event.job) == JobPhase::pending) {
      waiting_.reprioritize(then, event.job, owner, user_of(view, event.job), ByShare{this});
    } else {
      offers_[owner].reset();
    }
  }
}

void ShareQueues::demand(std::uint32_t queue, MilliGpu change) {
  demanded_[queue] += change;
  if (options_.among_active) tree_.demand(queue, demanded_[queue]);
}

void ShareQueues::wait(const View& view, JobId job) {
  waiting_.push(view, job, owner_of(options_.column, view, job), user_of(view, job), ByShare{this});
}

void ShareQueues::hold(const View& view, JobId job, std::int64_t sign) {
  const std::uint32_t queue = owner_of(options_.column, view, job);
  held_[queue] += sign * view.shape(job).gpu_milli();
  if (places_.empty()) places_.resize(view.job_count());
  std::vector<JobId>& running = running_[queue];
  if (sign > 0) {
    places_[index(job)] = static_cast<std::uint32_t>(running.size());
    running.push_back(job);
  } else {
    places_[index(running.back())] = places_[index(job)];
    running[places_[index(job)]] = running.back();
    running.pop_back();
  }
  offers_[queue].reset();
  waiting_.reorder_party(queue, ByShare{this});
  if (!options_.shares) return;
  // The user may run jobs in any of them.
  if (options_.preempt_within) std::fill(offers_.begin(), offers_.end(), std::nullopt);
  options_.shares->add(view.user(job), view.shape(job), sign);
  waiting_.reorder_member(view.user(job), ByShare{this});
  if (sign > 0) started_.push_back(job);
}

void ShareQueues::start_waiting(const View& view, Decision& decision) {
  waiting_.start_while_any_fits(view, decision, placement(view), ByShare{this},
                                [&](JobId job) { hold(view, job, +1); });
}

// In millionths; a queue that holds something and is due nothing comes last.
std::int64_t ShareQueues::part_of_due(std::uint32_t queue) {
  const MilliGpu due_now = due(queue);
  if (due_now == 0) return held_[queue] == 0 ? 0 : unlimited;  // as Volcano's helpers.Share: of jobs without GPUs
  return mul_div(held_[queue], 1'000'000, due_now);
}

bool ShareQueues::preempt_within(const View& view, Decision& decision) {
  bool any = false;
  for (bool again = true; again;) {
    again = false;
    std::vector<const Class*> urgent;
    waiting_.for_each([&](const Class& jobs) {
      if (may_take(view, jobs, offer(view, queue_of(jobs)))) urgent.push_back(&jobs);
    });
    const auto share = [&](const Class* jobs) { return options_.shares ? options_.shares->share(user_of(*jobs)) : 0; };
    std::sort(urgent.begin(), urgent.end(), [&](const Class* a, const Class* b) {
      if (a->priority != b->priority) return a->priority > b->priority;
      return std::pair(share(a), a->jobs.front()) < std::pair(share(b), b->jobs.front());
    });
    for (const Class* const jobs : urgent) {
      const std::vector<JobId> victims = victims_within(view, *jobs, offer(view, queue_of(*jobs)));
      if (victims.empty() || !start_by_force(view, decision, *jobs, victims)) continue;
      again = any = true;  // the classes have changed
      break;
    }
  }
  return any;
}

const ShareQueues::Offer& ShareQueues::offer(const View& view, std::uint32_t queue) {
  std::optional<Offer>& known = offers_[queue];
  if (known) return *known;
  known.emplace();
  for (const JobId job : running_[queue]) {
    known->least_priority = std::min(known->least_priority, view.priority(job));
    if (options_.shares)
      known->greatest_share = std::max(known->greatest_share, options_.shares->share(view.user(job)));
  }
  return *known;
}

std::vector<JobId> ShareQueues::victims_within(const View& view, const Class& jobs, const Offer& offer) const {
  if (offer.least_priority < jobs.priority) return lower_priorities(view, jobs);
  if (options_.shares && offer.greatest_share >= share_then(view, jobs)) return richer_users(view, jobs);
  return {};
}

// The least priority first, and of it the newest.
std::vector<JobId> ShareQueues::lower_priorities(const View& view, const Class& jobs) const {
  std::vector<JobId> victims;
  for (const JobId job : running_[queue_of(jobs)]) {
    if (view.priority(job) < jobs.priority) victims.push_back(job);
  }
  if (!could_suffice(view, jobs.first(), victims)) return {};
  std::sort(victims.begin(), victims.end(), [&](JobId a, JobId b) {
    if (view.priority(a) != view.priority(b)) return view.priority(a) < view.priority(b);
    return view.queue_place(a) > view.queue_place(b);
  });
  return victims;
}

// Jobs of the user with the largest share first, of one user the newest first, as long as the drf rule allows it.
std::vector<JobId> ShareQueues::richer_users(const View& view, const Class& jobs) const {
  const std::uint32_t taker = user_of(jobs);
  const std::int64_t then = share_then(view, jobs);
  std::vector<JobId> victims;
  for (const JobId job : running_[queue_of(jobs)]) {
    const bool outranks = view.priority(job) > jobs.priority;
    if (outranks || view.user(job) == taker || options_.shares->share(view.user(job)) < then) continue;
    if (std::find(started_.begin(), started_.end(), job) == started_.end()) victims.push_back(job);
  }
  if (!could_suffice(view, jobs.first(), victims)) return {};
  std::sort(victims.begin(), victims.end(), [&](JobId a, JobId b) {
    const std::int64_t share_a = options_.shares->share(view.user(a)), share_b = options_.shares->share(view.user(b));
    return share_a != share_b ? share_a > share_b : view.queue_place(a) > view.queue_place(b);
  });
  DominantShares left = *options_.shares;
  std::erase_if(victims, [&](JobId job) {
    const bool stays = left.share_after(view.user(job), view.shape(job), -1) < then;
    if (!stays) left.add(view.user(job), view.shape(job), -1);
    return stays;
  });
  return victims;
}

void ShareQueues::reclaim(const View& view, Decision& decision) {
  std::vector<bool> is_short(tree_.owners());  // a job of the queue waits for what it is due
  waiting_.for_each([&](const Class& jobs) {
    if (is_due(view, jobs)) is_short[queue_of(jobs)] = true;
  });
  for (std::uint32_t owner = 0; owner < tree_.owners(); ++owner) {
    Time& since = short_since_[owner];
    if (!is_short[owner]) {
      since = Time::max();
      continue;
    }
    if (since == Time::max()) {
      since = view.now();
      decision.wake(since + options_.preemption_interval);
    }
    if (view.now() - since < options_.preemption_interval) continue;
    since = Time::max();  // the next attempt is an interval away
    for (bool again = true; again;) {
      again = false;
      const Class* first = nullptr;
      waiting_.for_each([&](const Class& jobs) {
        if (queue_of(jobs) != owner || !is_due(view, jobs)) return;
        if (first == nullptr || jobs.jobs.front() < first->jobs.front()) first = &jobs;
      });
      if (first != nullptr) again = start_by_force(view, decision, *first, over_their_due(view));
    }
    start_waiting(view, decision);
  }
}

bool ShareQueues::start_by_force(const View& view, Decision& decision, const Class& jobs,
                                 const std::vector<JobId>& victims) {
  const JobId job = jobs.first();
  if (!could_suffice(view, job, victims)) return false;
  const std::vector<JobId> stopped = make_room(job, placement(view), victims, decision);
  if (view.phase(job) != JobPhase::running) return false;
  waiting_.erase(view, job, ByShare{this});
  hold(view, job, +1);
  for (const JobId victim : stopped) {
    hold(view, victim, -1);
    wait(view, victim);
  }
  return true;
}

// Running jobs, newest first, as long as their queues keep more than they are due before each goes.
std::vector<JobId> ShareQueues::over_their_due(const View& view) {
  std::vector<JobId> newest;
  for (std::uint32_t owner = 0; owner < running_.size(); ++owner) {
    if (held_[owner] > due(owner)) newest.insert(newest.end(), running_[owner].begin(), running_[owner].end());
  }
  const auto start = [&](JobId job) { return std::pair(view.first_start(job), view.queue_place(job)); };
  std::sort(newest.begin(), newest.end(), [&](JobId a, JobId b) { return start(b) < start(a); });
  PerOwner<MilliGpu> left = held_;
  std::erase_if(newest, [&](JobId job) {
    const std::uint32_t owner = owner_of(options_.column, view, job);
    if (left[owner] <= due(owner)) return true;
    left[owner] -= view.shape(job).gpu_milli();
    return false;
  });
  return newest;
}

namespace {

Result<AnyPolicy> make(ShareQueues::Options options, const PolicyParameters& parameters, const PolicyContext& context) {
  const auto column = owner_column(options.name, parameters, context);
  if (!column) return Unexpected{column.error()};
  options.column = *column;
  options.preemption_interval = from_seconds(parameters.number("preemption_interval_s"));
  const JobTable& jobs = *context.jobs;
  options.preempt_within = options.preempt_within && (jobs.has_priorities() || options.shares);
  std::vector<std::string> names = names_of(*column, jobs).names();
  if (!names.empty() && names[0].empty()) {
    for (std::uint32_t i = 0; i < jobs.size() && names[0].empty(); ++i) {
      if (owner_of(*column, jobs, JobId{i}) == 0) names[0] = "(none)";  // jobs of no queue share one
    }
  }
  return AnyPolicy(ShareQueues(std::move(options), QueueTree(names, OwnerWeights(parameters.list("weights"))),
                               context.cluster->total_gpus() * whole_gpu));
}

ParameterInfo interval_parameter() {
  return {.name = "preemption_interval_s",
          .fallback = 15.0,
          .meaning = "how long a queue waits below its due before it takes it back",
          .least = 0.001,
          .most = 1e9};
}

ParameterInfo flag(std::string name, bool fallback, std::string meaning) {
  return {.name = std::move(name), .fallback = fallback, .meaning = std::move(meaning)};
}

}  // namespace

PolicyInfo yarn_capacity_info() {
  return {.name = "yarn-capacity",
          .summary =
              "simplified (no user limits): queues with guaranteed shares, lent when idle; preemption off as shipped",
          .source =
              "Apache Hadoop YARN documentation, Capacity Scheduler (preemption monitor, off by default as in "
              "yarn.resourcemanager.scheduler.monitor.enable; a gang is one container; "
              "neither user-limit-factor nor maximum-capacity)",
          .complexity = "O(shapes x log n); O(queues + running) a preemption",
          .parameters = {owner_parameter("vc"), weights_parameter(), interval_parameter(),
                         flag("preemption", false, "take a guarantee back from queues above theirs")},
          .make = [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<AnyPolicy> {
            return make({.name = "yarn-capacity", .reclaim = parameters.flag("preemption")}, parameters, context);
          },
          .preemptive = true,
          .work_conserving = true};
}

PolicyInfo yarn_fair_info() {
  return {.name = "yarn-fair",
          .summary = "hierarchical queues that share equally among those that have jobs; preemption off as shipped",
          .source =
              "Apache Hadoop YARN documentation, Fair Scheduler (single-resource fairness over GPUs; fair-share "
              "preemption, off by default as yarn.scheduler.fair.preemption)",
          .complexity = "O(shapes x log n); O(queues + running) a preemption",
          .parameters = {owner_parameter("vc"), weights_parameter(), interval_parameter(),
                         flag("preemption", false, "take a fair share back from queues above theirs")},
          .make = [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<AnyPolicy> {
            return make({.name = "yarn-fair", .among_active = true, .reclaim = parameters.flag("preemption")},
                        parameters, context);
          },
          .preemptive = true,
          .work_conserving = true};
}

PolicyInfo volcano_info() {
  return {
      .name = "volcano",
      .summary = "simplified (all jobs are enqueued): gangs, proportion, priority, drf and binpack, as installed",
      .source =
          "volcano-sh/volcano: installer/helm/chart/volcano/config/volcano-scheduler.conf (actions enqueue, allocate, "
          "backfill), pkg/scheduler/plugins; no overcommit and nodeorder; drf by namespace, as older versions; gang is "
          "the "
          "engine's rule, and a gang is evicted whole",
      .complexity = "O(shapes x log n); O(queues + running) a preemption",
      .parameters = {owner_parameter("vc"), weights_parameter(), interval_parameter(),
                     flag("proportion", true, "plugin: queues in order of what they hold of what they deserve"),
                     flag("priority", true, "plugin: within a queue, higher job priority first"),
                     flag("drf", true,
                          "plugin: within a queue and priority, the user of the lowest dominant share first; preempt "
                          "takes from users who keep as much"),
                     flag("binpack", true, "plugin: pack nodes whatever the run's placement"),
                     flag("preempt", false, "action: take from lower priorities of the same queue"),
                     flag("reclaim", false, "action: take what a queue deserves from queues that hold more")},
      .make = [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<AnyPolicy> {
        ShareQueues::Options options{.name = "volcano",
                                     .among_active = true,
                                     .pack = parameters.flag("binpack"),
                                     .by_share = parameters.flag("proportion"),
                                     .by_priority = parameters.flag("priority"),
                                     .preempt_within = parameters.flag("preempt"),
                                     .reclaim = parameters.flag("reclaim")};
        if (parameters.flag("drf")) {
          options.shares = DominantShares(*context.cluster);
        }
        return make(std::move(options), parameters, context);
      },
      .preemptive = true,
      .work_conserving = true,
      .chooses_nodes = true};
}

}  // namespace gpusched
