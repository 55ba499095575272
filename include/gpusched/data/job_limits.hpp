// SPDX-License-Identifier: Apache-2.0
/// JobLimits: which limits hold for each job of a table.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/data/job_table.hpp"
#include "gpusched/data/limit_rules.hpp"

namespace gpusched {

/// The array of a job whose id is ARRAY_TASK, both numbers; else empty.
inline std::string_view array_of_id(std::string_view id) {
  const auto is_number = [](std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  const std::size_t bar = id.find('_');
  if (bar == std::string_view::npos || !is_number(id.substr(0, bar)) || !is_number(id.substr(bar + 1))) return {};
  return id.substr(0, bar);
}

/// The rules of a cluster as buckets: a bucket is a rule and one of those whose jobs share it. Jobs of the same buckets
/// are a set. Tasks of studies (JobTable::in_front()) are in none.
class JobLimits {
 public:
  /// One that jobs share.
  struct Bucket {
    std::uint32_t rule = 0;              ///< of the cluster's, by number
    LimitAmounts most = {};              ///< at once
    std::int64_t submitted = unlimited;  ///< jobs that wait or run
  };
  /// The limits of jobs.
  struct Set {
    std::vector<std::uint32_t> buckets;  ///< numbers of buckets(): those that hold
    std::vector<std::uint32_t> counted;  ///< and those in which they count: these and others
    std::vector<std::uint32_t> rules;    ///< all that hold, by number
    LimitAmounts of_one;                 ///< the most that one job may ask for, alone
    Time wall = Time::max();             ///< the longest time that one may request
    std::uint32_t barred_by = no_index;  ///< the rule that allows others alone, by number; no_index: none does
  };

  /// No limits.
  JobLimits() = default;
  /// O(jobs x rules).
  JobLimits(const std::vector<LimitRule>& rules, const JobTable& jobs) {
    if (rules.empty()) return;
    for (const LimitRule& rule : rules) {
      rules_.push_back(resolve(rule, jobs));
      rule_of_one_.push_back({rule.most, rule.wall});
    }
    const bool asks_arrays = std::any_of(rules.begin(), rules.end(), [](const LimitRule& rule) {
      return rule.per == LimitOwner::array || !rule.arrays.empty();
    });
    sets_.push_back({});
    set_of_job_.resize(jobs.size());
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {
      const JobId job{i};
      if (i >= jobs.replicas() && i < jobs.in_front()) continue;
      Owners owners{jobs.user(job), jobs.group(job), jobs.vc(job), jobs.qos(job), 0};
      if (asks_arrays) owners[4] = arrays_.intern(array_of_id(jobs.external_id(job)));
      const auto [place, added] = set_of_owners_.try_emplace(owners, static_cast<std::uint32_t>(sets_.size()));
      if (added) add_set(owners, rules);
      set_of_job_[i] = place->second;
      const bool is_too_long = jobs.estimate(job) < Time::max() && jobs.estimate(job) > sets_[place->second].wall;
      if (is_too_long) too_long_.emplace(job, jobs.estimate(job));
    }
    // What nobody asks for any more: engines are copied.
    rules_ = {};
    arrays_ = {};
    set_of_owners_ = {};
  }

  /// True when there are no rules.
  [[nodiscard]] bool is_empty() const { return set_of_job_.empty(); }
  /// All buckets.
  [[nodiscard]] const std::vector<Bucket>& buckets() const { return buckets_; }
  /// Number of the job's set.
  [[nodiscard]] std::uint32_t set_of(JobId job) const { return set_of_job_[index(job)]; }
  /// The set of that number.
  [[nodiscard]] const Set& set(std::uint32_t number) const { return sets_[number]; }

  /// The first rule that bars the job, or that it exceeds by itself when it asks for so much, by number; no_index:
  /// none. A job without a request requests no time.
  [[nodiscard]] std::uint32_t exceeded_by_one(JobId job, const LimitAmounts& asks) const {
    const Set& of_job = set(set_of(job));
    const auto too_long = too_long_.find(job);
    const Time requested = too_long == too_long_.end() ? Time{} : too_long->second;
    const bool is_barred = of_job.barred_by != no_index;
    if (!is_barred && within(asks, of_job.of_one) && requested <= of_job.wall) return no_index;
    return *std::find_if(of_job.rules.begin(), of_job.rules.end(),
                         [this, &of_job, &asks, &requested](std::uint32_t rule) {
                           return rule == of_job.barred_by || !within(asks, rule_of_one_[rule].most) ||
                                  requested > rule_of_one_[rule].wall;
                         });
  }

  /// What a job of that shape holds when it runs.
  static LimitAmounts amounts_of(const Shape& shape) {
    const auto of_all = [&shape](std::int64_t per_task) {
      return per_task > unlimited / shape.tasks ? unlimited : shape.tasks * per_task;
    };
    return {.gpu_milli = shape.gpu_milli(),
            .cpu_milli = of_all(shape.cpu_milli_per_task),
            .memory_mib = of_all(shape.memory_mib_per_task),
            .jobs = 1};
  }
  /// True when no amount of `asks` is above that of `most`.
  static bool within(const LimitAmounts& asks, const LimitAmounts& most) {
    return asks.gpu_milli <= most.gpu_milli && asks.cpu_milli <= most.cpu_milli && asks.memory_mib <= most.memory_mib &&
           asks.jobs <= most.jobs;
  }
  /// True when the job could run with that shape if it were alone.
  [[nodiscard]] bool allow_alone(JobId job, const Shape& shape) const {
    return is_empty() || within(amounts_of(shape), set(set_of(job)).of_one);
  }
  /// The most tasks like those of that shape that the job could run with if it were alone. Precondition: !is_empty().
  [[nodiscard]] std::int64_t most_tasks_alone(JobId job, const Shape& shape) const {
    const LimitAmounts& most = set(set_of(job)).of_one;
    const auto tasks = [](std::int64_t amount, std::int64_t per_task) {
      return per_task == 0 ? unlimited : amount / per_task;
    };
    return std::min({tasks(most.gpu_milli, shape.gpu_milli_per_task), tasks(most.cpu_milli, shape.cpu_milli_per_task),
                     tasks(most.memory_mib, shape.memory_mib_per_task)});
  }

 private:
  // Numbers of names: user, account, vc, QOS, array; 0 = unknown.
  using Owners = std::array<std::uint32_t, 5>;

  // A rule whose names are numbers of the table, sorted.
  struct Resolved {
    std::array<std::vector<std::uint32_t>, 5> names;
    std::array<bool, 5> is_named{};
    std::vector<std::uint32_t> or_vcs, except_vcs, except_qos, unbound_vcs;
    std::vector<std::uint32_t> allow_accounts, allow_qos;  // empty: all
    std::map<std::uint32_t, std::uint32_t> buckets;        // by the number of the owner
  };

  Resolved resolve(const LimitRule& rule, const JobTable& jobs) {
    Resolved resolved;
    const auto numbers = [](const std::vector<std::string>& names, auto number_of) {
      std::vector<std::uint32_t> found;
      for (const std::string& name : names) found.push_back(number_of(name));
      std::sort(found.begin(), found.end());
      return found;
    };
    const auto of_table = [&resolved, &numbers](std::size_t column, const std::vector<std::string>& names,
                                                const NameTable& table) {
      resolved.is_named[column] = !names.empty();
      resolved.names[column] = numbers(names, [&table](const std::string& name) { return table.find(name); });
    };
    of_table(0, rule.users, jobs.users());
    of_table(1, rule.accounts, jobs.groups());
    of_table(2, rule.vcs, jobs.vcs());
    of_table(3, rule.qos, jobs.qos_names());
    if (arrays_.size() == 0) arrays_.intern("");
    resolved.is_named[4] = !rule.arrays.empty();
    resolved.names[4] = numbers(rule.arrays, [this](const std::string& name) { return arrays_.intern(name); });
    const auto found_in = [&numbers](const std::vector<std::string>& names, const NameTable& table) {
      return numbers(names, [&table](const std::string& name) { return table.find(name); });
    };
    resolved.or_vcs = found_in(rule.or_vcs, jobs.vcs());
    resolved.except_vcs = found_in(rule.except_vcs, jobs.vcs());
    resolved.unbound_vcs = found_in(rule.unbound_vcs, jobs.vcs());
    resolved.except_qos = found_in(rule.except_qos, jobs.qos_names());
    resolved.allow_accounts = found_in(rule.allow_accounts, jobs.groups());
    resolved.allow_qos = found_in(rule.allow_qos, jobs.qos_names());
    return resolved;
  }

  static bool has(const std::vector<std::uint32_t>& numbers, std::uint32_t number) {
    return std::binary_search(numbers.begin(), numbers.end(), number);
  }

  static bool names(const Resolved& rule, const Owners& owners) {
    if (has(rule.except_vcs, owners[2]) || has(rule.except_qos, owners[3])) return false;
    if (has(rule.or_vcs, owners[2])) return true;
    for (std::size_t column = 0; column < owners.size(); ++column) {
      if (rule.is_named[column] && !has(rule.names[column], owners[column])) return false;
    }
    return true;
  }

  static bool allows(const std::vector<std::uint32_t>& allowed, std::uint32_t owner) {
    return allowed.empty() || owner == 0 || has(allowed, owner);
  }

  void add_set(const Owners& owners, const std::vector<LimitRule>& rules) {
    Set set;
    for (std::uint32_t number = 0; number < rules.size(); ++number) {
      Resolved& resolved = rules_[number];
      const LimitRule& rule = rules[number];
      if (!names(resolved, owners)) continue;
      const bool has_owner = rule.per != LimitOwner::job && rule.per != LimitOwner::all;
      const std::uint32_t owner = has_owner ? owners[static_cast<std::size_t>(rule.per) - 1] : 0;
      if (has_owner && owner == 0) continue;
      if (rule.per != LimitOwner::job) {
        const auto [place, added] = resolved.buckets.try_emplace(owner, static_cast<std::uint32_t>(buckets_.size()));
        if (added) buckets_.push_back({.rule = number, .most = rule.most, .submitted = rule.submitted});
        set.counted.push_back(place->second);
      }
      if (has(resolved.unbound_vcs, owners[2])) continue;
      const bool is_barred = !allows(resolved.allow_accounts, owners[1]) || !allows(resolved.allow_qos, owners[3]);
      if (is_barred) set.barred_by = std::min(set.barred_by, number);
      if (rule.per != LimitOwner::job) set.buckets.push_back(set.counted.back());
      hold(set, number, rule);
    }
    sets_.push_back(std::move(set));
  }

  static void hold(Set& set, std::uint32_t number, const LimitRule& rule) {
    const LimitAmounts& by = rule.most;
    set.rules.push_back(number);
    set.wall = std::min(set.wall, rule.wall);
    LimitAmounts& most = set.of_one;
    most.gpu_milli = std::min(most.gpu_milli, by.gpu_milli);
    most.cpu_milli = std::min(most.cpu_milli, by.cpu_milli);
    most.memory_mib = std::min(most.memory_mib, by.memory_mib);
    most.jobs = std::min(most.jobs, by.jobs);
  }

  std::vector<Resolved> rules_;
  NameTable arrays_;
  std::map<Owners, std::uint32_t> set_of_owners_;
  // What a rule lets one job ask for.
  struct OfOne {
    LimitAmounts most;
    Time wall;
  };
  std::vector<OfOne> rule_of_one_;       // by number of the rule
  std::map<JobId, Time> too_long_ = {};  // the requests of jobs that exceed a rule's
  std::vector<Bucket> buckets_;
  std::vector<Set> sets_;
  std::vector<std::uint32_t> set_of_job_;
};

}  // namespace gpusched
