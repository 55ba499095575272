// SPDX-License-Identifier: Apache-2.0
/// Limits of users, accounts, queues and QOS in the JSON form of a cluster.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpusched/data/job_table.hpp"
#include "gpusched/data/limit_rules.hpp"
#include "src/base/json_fields.hpp"

namespace gpusched {

/// An entry of "limits": {"per": "user", "qos": "normal", "gpus": 8, "jobs": 4, "submitted": 100}. `per` is user,
/// account, vc, qos, array, job or, by default, all; users, accounts, vcs, qos and arrays (a name or a list) say whose
/// jobs it limits; gpus, cpus, memory_gib and jobs what they hold at once, `submitted` how many wait or run. `wall_s`
/// is the longest time that each job may request; jobs of other accounts or QOS than allow_accounts and allow_qos are
/// refused. Errors: no limit; a number of jobs where each job is by itself.
LimitRule read_limit(JsonFields& fields);

/// True of the keys whose values are names.
bool names_jobs(std::string_view key);

/// The rule in that form.
Json limit_json(const LimitRule& rule);

/// "4 GPUs, 2 jobs of user": its limits, and whose jobs share them.
std::string limit_text(const LimitRule& rule);

/// A line for each kind of owner that limits are for and no job has.
std::vector<std::string> absent_owners(const std::vector<LimitRule>& rules, const JobTable& jobs);
/// A line for each kind of name that rules give and no job has.
std::vector<std::string> absent_in_limits(const std::vector<LimitRule>& rules, const JobTable& jobs,
                                          const std::string& file);

}  // namespace gpusched
