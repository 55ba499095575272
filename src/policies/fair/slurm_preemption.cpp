// SPDX-License-Identifier: Apache-2.0
#include "src/policies/fair/slurm_preemption.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <tuple>

#include "src/policies/queues/owners.hpp"

namespace gpusched {
namespace {

using Rights = std::set<std::pair<std::uint32_t, std::uint32_t>>;

constexpr const char* whose_classes = "a QOS of the jobs, or with preempts_by=partition one of these";

// Of runs that began before the policy came.
constexpr Time long_ago{-end_of_time.us};

// The longest chain of rights below each class; nothing where they form a circle.
std::optional<std::map<std::uint32_t, std::int64_t>> depths_of(const Rights& rights) {
  std::map<std::uint32_t, std::int64_t> depth;
  for (const auto& [above, below] : rights) depth[above] = depth[below] = 0;
  for (std::size_t round = 0; round <= depth.size(); ++round) {
    bool is_settled = true;
    for (const auto& [above, below] : rights) {
      if (depth[above] > depth[below]) continue;
      depth[above] = depth[below] + 1;
      is_settled = false;
    }
    if (is_settled) return depth;
  }
  return std::nullopt;
}

std::int64_t nodes_held(const View& view, JobId job) {
  std::vector<NodeId> nodes;
  view.for_each_grant(job, [&nodes](const Grant& grant) {
    if (std::find(nodes.begin(), nodes.end(), grant.node) == nodes.end()) nodes.push_back(grant.node);
  });
  return static_cast<std::int64_t>(nodes.size());
}

Result<std::uint32_t> class_named(std::string_view name, const NameTable& names) {
  const std::uint32_t number = names.find(name);
  if (number != no_index && number != 0) return number;
  return unexpected("expected " + std::string(whose_classes) + ", found '" + std::string(name) + "'");
}

}  // namespace

SlurmPreemption::SlurmPreemption(Rules rules)
    : rules_(std::move(rules)), depth_(depths_of(rules_.rights).value_or(std::map<std::uint32_t, std::int64_t>{})) {}

bool SlurmPreemption::has_rights(const View& view, JobId job) const {
  if (!active()) return false;
  const std::uint32_t own = class_of(view, job);
  const auto first = rules_.rights.lower_bound({own, 0});
  return own != 0 && first != rules_.rights.end() && first->first == own;
}

void SlurmPreemption::started(const View& view, JobId job) {
  if (!active()) return;
  if (index(job) >= start_.size()) start_.resize(view.job_count(), long_ago);
  start_[index(job)] = view.now();
}

std::vector<JobId> SlurmPreemption::take_due(Time now) {
  std::vector<std::pair<Time, JobId>> due;
  for (const auto& [job, end] : told_) {
    if (end <= now) due.emplace_back(end, job);
  }
  std::sort(due.begin(), due.end());
  std::vector<JobId> jobs;
  for (const auto& [end, job] : due) {
    told_.erase(job);
    jobs.push_back(job);
  }
  return jobs;
}

bool SlurmPreemption::may_stop(const View& view, JobId job, JobId other) const {
  const std::uint32_t below = class_of(view, other);
  if (!rules_.rights.contains({class_of(view, job), below})) return false;
  return !rules_.suspended.contains(below) || view.shape(other).gpu_milli() == 0;
}

Time SlurmPreemption::exempt_until(const View& view, JobId job) const {
  const auto exempt = rules_.exempt.find(class_of(view, job));
  if (exempt == rules_.exempt.end() || index(job) >= start_.size()) return long_ago;
  return later_by(start_[index(job)], exempt->second);
}

Time SlurmPreemption::grace_of(const View& view, JobId job) const {
  const auto grace = rules_.grace.find(class_of(view, job));
  return grace == rules_.grace.end() ? Time{} : grace->second;
}

std::int64_t SlurmPreemption::depth(const View& view, JobId job) const {
  if (!active()) return 0;
  const auto depth = depth_.find(class_of(view, job));
  return depth == depth_.end() ? 0 : depth->second;
}

// Of partitions their tier is known by whom they may stop.
std::int64_t SlurmPreemption::standing(const View& view, JobId job) const {
  return rules_.by_qos ? view.priority(job) : depth(view, job);
}

std::vector<JobId> SlurmPreemption::victims_of(const View& view, Decision& decision, JobId job) const {
  struct Candidate {
    std::tuple<bool, std::int64_t, std::int64_t> rank;
    QueuePlace place;
  };
  std::vector<Candidate> candidates;
  Time next = Time::max();
  for (const JobId other : view.running()) {
    if (!may_stop(view, job, other)) continue;
    const Time exempt = exempt_until(view, other);
    if (exempt > view.now()) {
      next = std::min(next, exempt);
      continue;
    }
    const bool stays = !told_.contains(other);
    const std::int64_t start = index(other) < start_.size() ? start_[index(other)].us : 0;
    candidates.push_back({rules_.youngest_first ? std::tuple(stays, -start, std::int64_t{0})
                                                : std::tuple(stays, standing(view, other), nodes_held(view, other)),
                          view.queue_place(other)});
  }
  if (next != Time::max()) decision.wake(next);
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank < b.rank : b.place < a.place;
  });
  std::vector<JobId> victims;
  victims.reserve(candidates.size());
  for (const Candidate& candidate : candidates) victims.push_back(candidate.place.job);
  return victims;
}

bool SlurmPreemption::all_go_at_once(const View& view, std::span<const JobId> victims) const {
  return std::all_of(victims.begin(), victims.end(), [&](JobId job) { return grace_of(view, job).us == 0; });
}

void SlurmPreemption::tell(const View& view, Decision& decision, std::span<const JobId> victims) {
  for (const JobId job : victims) {
    const Time grace = grace_of(view, job);
    if (grace.us == 0) continue;
    const auto [told, is_new] = told_.try_emplace(job, later_by(view.now(), grace));
    if (is_new) decision.wake(told->second);
  }
}

Result<Rights> preemption_rights(std::span<const std::string> words, const NameTable& names) {
  Rights rights;
  for (const std::string& word : words) {
    const std::size_t over = word.find('>');
    if (over == std::string::npos)
      return unexpected("expected A>B, jobs of A may stop those of B, found '" + word + "'");
    const auto above = class_named(std::string_view(word).substr(0, over), names);
    const auto below = class_named(std::string_view(word).substr(over + 1), names);
    if (!above) return Unexpected{above.error()};
    if (!below) return Unexpected{below.error()};
    rights.emplace(*above, *below);
  }
  if (!depths_of(rights)) return unexpected("expected rights without a circle");
  return rights;
}

Result<std::set<std::uint32_t>> preemption_classes(std::span<const std::string> words, const NameTable& names) {
  std::set<std::uint32_t> classes;
  for (const std::string& word : words) {
    const auto number = class_named(word, names);
    if (!number) return Unexpected{number.error()};
    classes.insert(*number);
  }
  return classes;
}

Result<std::map<std::uint32_t, Time>> preemption_times(std::span<const std::string> words, const NameTable& names) {
  constexpr double longest_s = 1e9;
  const auto seconds = numbers_by_name(words, names, whose_classes, "SECONDS", 0, longest_s);
  if (!seconds) return Unexpected{seconds.error()};
  std::map<std::uint32_t, Time> times;
  for (const auto& [number, span_s] : *seconds) times[number] = from_seconds(span_s);
  return times;
}

}  // namespace gpusched
