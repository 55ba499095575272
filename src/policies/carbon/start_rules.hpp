// SPDX-License-Identifier: Apache-2.0
/// When a job that may wait starts, by what a signal is expected to be: rules of published schedulers. Carbon intensity
/// and price alike: a signal is a signal. Nothing here knows a cluster.
///
/// Sources. NoWait, AllWait, Lowest-Slot, Lowest-Window and Carbon-Time: GAIA (Hanafy et al., "Going Green for Less
/// Green", ASPLOS 2024, section 4; github.com/umassos/GAIA, src/scheduling). Ecovisor: the threshold rule of Souza et
/// al., ASPLOS 2023, as GAIA runs it. WaitAwhile: Wiesner et al., "Let's Wait Awhile", Middleware 2021, section 4, as
/// GAIA runs it, and as the interruptible jobs of that paper run.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gpusched/core/named_value.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/data/signal.hpp"

namespace gpusched {

/// The rules.
enum class StartRule : std::uint8_t {
  no_wait,        ///< now
  all_wait,       ///< when it has waited for as long as it may: a latest start, for those who look for room before
  lowest_slot,    ///< the first slot of the least value
  lowest_window,  ///< the start, of every `step`, with the least integral over the expected length
  carbon_time,    ///< the start with the most saved by the expected length, per time until that would end
  ecovisor,       ///< suspends: runs in slots below the 30 % quantile of the next day, and when it may wait no more
  wait_awhile,    ///< suspends: runs in the slots of the least values until its latest end
};

/// The rules by name.
inline constexpr std::array<NamedValue<StartRule>, 7> start_rule_names{{{"no-wait", StartRule::no_wait},
                                                                        {"all-wait", StartRule::all_wait},
                                                                        {"lowest-slot", StartRule::lowest_slot},
                                                                        {"lowest-window", StartRule::lowest_window},
                                                                        {"carbon-time", StartRule::carbon_time},
                                                                        {"ecovisor", StartRule::ecovisor},
                                                                        {"wait-awhile", StartRule::wait_awhile}}};

/// True for the rules that suspend jobs.
constexpr bool suspends(StartRule rule) { return rule == StartRule::ecovisor || rule == StartRule::wait_awhile; }

/// What a rule is told of a job. The length is known to rules that suspend, which run it to its end.
struct StartQuestion {
  Time now{};                       ///< it has arrived
  Time wait{};                      ///< it may wait for so long, all suspensions together
  Time length{};                    ///< it runs for so long
  Time expected{};                  ///< so long does a start that is chosen once reckon with
  Time step = whole_seconds(3600);  ///< between the starts that lowest_window and carbon_time try
  Time slot = whole_seconds(5);     ///< of lowest_slot and of those that suspend, counted from `now`
};

/// A stretch in which a job runs.
struct RunStretch {
  Time begin{}, end{};
};

/// When the job runs if nothing else delays it: one stretch, or several, apart and by time, if the rule suspends it.
/// The whole length, which need not be a number of slots: the last stretch is cut. Ties go to the earliest. Ecovisor
/// knows the value of a slot when it comes; all others act on the forecast alone. Preconditions: no time is negative,
/// expected, length, step and slot > 0; values below 10^6, waits and lengths below 100 days (exact products).
std::vector<RunStretch> planned_runs(StartRule rule, const Signal& signal, const Forecast& forecast,
                                     const StartQuestion& question);

/// The quantile that ecovisor compares with, in millionths: of the slots of the next 24 hours, linear between two.
double ecovisor_threshold(const Signal& signal, const Forecast& forecast, Time now, Time slot);

/// The signal from `now` to `until` as somebody at `now` expects it, as Forecast::at() tells it at every microsecond.
Signal expected_signal(const Signal& signal, const Forecast& forecast, Time now, Time until);

/// By when a job must end that would end at `end` without waiting, both since 1970-01-01 UTC (Let's Wait Awhile,
/// simulated next-workday constraint; strategy.py of its artifact): on a Saturday, Monday 9:00; on a Sunday or after
/// 17:00, 9:00 of the next calendar day, a Saturday too; before 9:00, 9:00; else `end` itself.
Time next_workday_deadline(Time end);

}  // namespace gpusched
