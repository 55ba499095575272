// SPDX-License-Identifier: Apache-2.0
/// By when a job should end, what its policy reads meanwhile, and the parameters of both: what `carbon` and
/// `carbonscaler` share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/core/named_value.hpp"
#include "gpusched/data/signal.hpp"
#include "gpusched/engine/view.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// By when a job should end.
enum class SlackRule : std::uint8_t {
  by_length,     ///< it may wait for a time that depends on its length
  of_trace,      ///< the trace's deadline; by_length for a job without one
  next_workday,  ///< next_workday_deadline() of the end that it would have without waiting
};

/// The values of the parameter `deadline`.
inline constexpr std::array<NamedValue<SlackRule>, 3> slack_rule_names{
    {{"none", SlackRule::by_length}, {"trace", SlackRule::of_trace}, {"next-workday", SlackRule::next_workday}}};

/// For how long a job may wait.
struct Slack {
  SlackRule deadline = SlackRule::by_length;
  Time long_wait = whole_seconds(24 * 3600), short_wait = whole_seconds(6 * 3600);
  Time short_below = whole_seconds(2 * 3600);  ///< jobs estimated to run for less are short

  /// By when a job of that length at the size that it asks for should end.
  [[nodiscard]] Time latest_end(const View& view, JobId job, Time length) const;
};

/// Lengths and waits that plans reckon with: planned_runs() is exact below 100 days.
inline constexpr Time longest_planned = whole_seconds(99 * 86'400);

/// The names of a table, as a parameter's words.
template <class T, std::size_t N>
std::vector<std::string> names_in(const std::array<NamedValue<T>, N>& names) {
  std::vector<std::string> words;
  for (const NamedValue<T>& entry : names) words.emplace_back(entry.name);
  return words;
}

/// The parameters `figure`, `forecast` and `forecast_sigma`, and those of Slack.
std::vector<ParameterInfo> signal_parameters();
std::vector<ParameterInfo> slack_parameters();

/// What these say. The seed of a noisy forecast is the parameter `seed`.
Forecast forecast_of(const PolicyParameters& parameters, const PolicyContext& context);
/// Errors on a trace without deadlines where they are asked for. `policy`: its name.
Result<Slack> slack_of(const std::string& policy, const PolicyParameters& parameters, const PolicyContext& context);
/// The figure as the run tells it: of several places, that of the file's own keys; an empty one where it tells
/// nothing. Borrowed from the run. Errors on values that no plan can reckon with.
Result<const Signal*> signal_of(const std::string& policy, const PolicyParameters& parameters,
                                const PolicyContext& context);
/// The error of who reads a signal that is empty.
Unexpected lacks_signal(const std::string& who, const PolicyParameters& parameters);

}  // namespace gpusched
