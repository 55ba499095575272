// SPDX-License-Identifier: Apache-2.0
#include "src/policies/carbon/slack.hpp"

#include <cstdlib>
#include <string_view>

#include "src/policies/carbon/start_rules.hpp"
#include "src/policies/seam/seed_parameter.hpp"

namespace gpusched {
namespace {

bool reads_price(const PolicyParameters& parameters) { return parameters.word("figure") == "price"; }

Time time_of_hours(double h) { return from_seconds(3600 * h); }

}  // namespace

Time Slack::latest_end(const View& view, JobId job, Time length) const {
  const Time end = later_by(view.submit(job), length);  // if it did not wait
  if (deadline == SlackRule::next_workday) return next_workday_deadline(end);
  if (deadline == SlackRule::of_trace && view.deadline(job) != Time::max()) return view.deadline(job);
  return later_by(end, length < short_below ? short_wait : long_wait);
}

std::vector<ParameterInfo> signal_parameters() {
  return {{.name = "figure",
           .fallback = std::string("carbon"),
           .meaning = "what the rule reads: carbon intensity or price of electricity",
           .words = {"carbon", "price"}},
          {.name = "forecast",
           .fallback = std::string("persistence"),
           .meaning = "what is known of its future: that of a day before, the truth, or the truth with an error",
           .words = names_in(forecast_names)},
          {.name = "forecast_sigma",
           .fallback = 0.05,
           .meaning = "noisy: standard deviation of the error as a part of the figure's mean",
           .most = 100}};
}

std::vector<ParameterInfo> slack_parameters() {
  constexpr double most_wait_h = 24 * 99;
  return {
      {.name = "deadline",
       .fallback = std::string("none"),
       .meaning = "by when a job should end: its wait, the trace's deadline, or 9:00 of the next workday",
       .words = names_in(slack_rule_names)},
      {.name = "wait_h", .fallback = 24.0, .meaning = "a job may wait for so long", .most = most_wait_h},
      {.name = "short_wait_h", .fallback = 6.0, .meaning = "the same for short jobs", .most = most_wait_h},
      {.name = "short_h", .fallback = 2.0, .meaning = "jobs estimated to run for less are short", .most = most_wait_h}};
}

Forecast forecast_of(const PolicyParameters& parameters, const PolicyContext& context) {
  return {.kind = *value_from_name(forecast_names, parameters.word("forecast")),
          .sigma = parameters.number("forecast_sigma"),
          .seed = drawing_seed(parameters.number("seed"), context)};
}

Result<Slack> slack_of(const std::string& policy, const PolicyParameters& parameters, const PolicyContext& context) {
  const Slack slack{.deadline = *value_from_name(slack_rule_names, parameters.word("deadline")),
                    .long_wait = time_of_hours(parameters.number("wait_h")),
                    .short_wait = time_of_hours(parameters.number("short_wait_h")),
                    .short_below = time_of_hours(parameters.number("short_h"))};
  if (slack.deadline == SlackRule::of_trace && !context.jobs->has_deadlines()) {
    return unexpected("policy " + policy + ": the trace has no deadlines (column deadline)");
  }
  return slack;
}

Result<const Signal*> signal_of(const std::string& policy, const PolicyParameters& parameters,
                                const PolicyContext& context) {
  static const Signal none;
  const auto* const places = context.power == nullptr ? nullptr : &context.power->places;
  const Signal* signal = &none;
  if (places != nullptr && !places->empty()) {
    signal = reads_price(parameters) ? &places->front().usd_per_mwh : &places->front().carbon_g_per_kwh;
  }
  constexpr std::int64_t most = 1'000'000'000'000;  // planned_runs() reckons exactly below
  for (const Signal::Step& step : signal->steps()) {
    if (std::abs(step.micro) < most) continue;
    return unexpected("policy " + policy + ": expected a " + parameters.word("figure") + " below 1000000 in --power");
  }
  return signal;
}

Unexpected lacks_signal(const std::string& who, const PolicyParameters& parameters) {
  const std::string key = reads_price(parameters) ? "usd_per_mwh" : "carbon";
  return unexpected(who + " reads a signal; expected --power FILE with \"" + key + "\"");
}

}  // namespace gpusched
