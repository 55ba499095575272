// SPDX-License-Identifier: Apache-2.0
/// OverrunRule: when a job is believed to end that runs longer than estimated.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "gpusched/core/named_value.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/data/job_table.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// Each end is corrected at the first event at which it is past.
enum class OverrunRule : std::uint8_t {
  kill,        ///< at its limit, for ever: its end stays in the past, as if it were ended there
  now,         ///< within a second, again at each event
  increments,  ///< later by a minute, and by more each time (overrun_increments)
  doubling,    ///< after twice the time that it has run
};

inline constexpr std::array<NamedValue<OverrunRule>, 4> overrun_rule_names{{{"kill", OverrunRule::kill},
                                                                            {"now", OverrunRule::now},
                                                                            {"increments", OverrunRule::increments},
                                                                            {"double", OverrunRule::doubling}}};

/// What is added to an end that expired: the first time, the second, ...; the last again and again. Source: Tsafrir,
/// Etsion and Feitelson, Backfilling using system-generated predictions rather than user runtime estimates, TPDS
/// 18(6), 2007: 1, 5, 15 and 30 minutes, 1, 2, 5, 10, 20, 50 and 100 hours.
inline constexpr std::array<Time, 11> overrun_increments{
    whole_seconds(60),        whole_seconds(300),       whole_seconds(900),       whole_seconds(1800),
    whole_seconds(3600),      whole_seconds(2 * 3600),  whole_seconds(5 * 3600),  whole_seconds(10 * 3600),
    whole_seconds(20 * 3600), whole_seconds(50 * 3600), whole_seconds(100 * 3600)};

/// Why a longer unit of time may change what is planned with them.
inline constexpr const char* overrun_by_the_clock = "expired requests are extended by fixed minutes and hours";

/// The shortest time that a job which overran is believed to need, where a rule corrects at all.
inline constexpr Time shortest_correction = whole_seconds(1);

/// When a run that began at `start` and was believed to end at `end`, which is past, is believed to end from `now` on:
/// later than now, unless the rule is kill. `times`: how often the increments were used, at most to the last.
inline Time corrected_end(OverrunRule rule, Time start, Time end, Time now, std::uint8_t& times) {
  switch (rule) {
    case OverrunRule::kill: return end;
    case OverrunRule::now: return now + shortest_correction;
    case OverrunRule::doubling: return now + std::max(now - start, shortest_correction);
    case OverrunRule::increments: break;
  }
  while (end <= now) {
    end += overrun_increments[times];
    if (times + std::size_t{1} < overrun_increments.size()) ++times;
  }
  return end;
}

/// The parameter `overrun` of what plans with estimates. `fallback`: "auto" or one of overrun_rule_names.
inline ParameterInfo overrun_parameter(const std::string& fallback) {
  ParameterInfo info{.name = "overrun",
                     .fallback = fallback,
                     .meaning =
                         "when a job that outlives its estimate is taken to end: kill: at its limit; now: at "
                         "once; increments: 1, 5, 15, 30 min, 1, 2, 5, ... 100 h later, in turn; double: after "
                         "twice its time so far; auto: increments after a request, double after a prediction",
                     .words = {"auto"}};
  for (const auto& row : overrun_rule_names) info.words.emplace_back(row.name);
  return info;
}

/// What that parameter and `estimate` beside it say for these jobs. Users ask for limits, which most jobs that pass
/// them pass by little; a prediction that expired says less (docs/policies.md has figures).
inline OverrunRule overrun_rule(const PolicyParameters& parameters, const JobTable& jobs) {
  if (const auto rule = value_from_name(overrun_rule_names, parameters.word("overrun"))) return *rule;
  const std::string& estimate = parameters.word("estimate");
  const bool requests = estimate == "user" || (estimate == "requested" && jobs.has_estimates());
  return requests ? OverrunRule::increments : OverrunRule::doubling;
}

}  // namespace gpusched
