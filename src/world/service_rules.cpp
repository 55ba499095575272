// SPDX-License-Identifier: Apache-2.0
#include "src/world/service_rules.hpp"

#include <array>
#include <string>
#include <string_view>

namespace gpusched {
namespace {

constexpr double longest_window_s = 1e9, most_of_rule = 1e9;
constexpr std::array<NamedValue<HpaOptions::Metric>, 2> metric_names{
    {{"busy", HpaOptions::Metric::busy}, {"held", HpaOptions::Metric::held}}};

constexpr std::array<NamedValue<HistogramOptions::Conditions>, 2> condition_names{
    {{"hybrid", HistogramOptions::Conditions::hybrid}, {"faascache", HistogramOptions::Conditions::faascache}}};

void read_span(JsonFields& fields, const char* key, Time& time) {
  double seconds = to_seconds(time);
  fields.read_above_zero(key, seconds, longest_window_s);
  time = from_seconds(seconds);
  if (fields.good() && time == Time{}) fields.refuse(key, "a millionth of a second or more");
}

// Work that a replica does at once: a batch is one.
double at_once(const ServiceSpec& service) {
  return static_cast<double>(service.batches.empty() ? service.at_once : service.batches.size());
}

Autoscaler fixed_of(JsonFields& fields, const ReplicaLimits& limits) {
  std::int32_t replicas = limits.most;
  fields.read("replicas", replicas, limits.least, limits.most);
  return Autoscaler(FixedReplicas(replicas));
}

Autoscaler hpa_of(JsonFields& fields, const ReplicaLimits& limits, const ServiceSpec& service) {
  HpaOptions options{.limits = limits, .at_once = at_once(service)};
  fields.read_above_zero("target", options.target, most_of_rule);
  fields.read_word("metric", options.metric, metric_names);
  fields.read("tolerance", options.tolerance, 0, 1);
  read_span(fields, "period_s", options.period);
  read_span(fields, "down_window_s", options.down_window);
  return Autoscaler(Hpa(options));
}

Autoscaler kpa_of(JsonFields& fields, const ReplicaLimits& limits, const ServiceSpec& service) {
  KpaOptions options{.limits = limits, .concurrency = at_once(service)};
  fields.read_above_zero("concurrency", options.concurrency, most_of_rule);
  fields.read_above_zero("utilisation", options.utilisation, 1);
  read_span(fields, "stable_window_s", options.stable_window);
  read_span(fields, "panic_window_s", options.panic_window);
  fields.read("panic_threshold", options.panic_threshold, 1, most_of_rule);
  read_span(fields, "to_zero_after_s", options.to_zero_after);
  read_span(fields, "period_s", options.period);
  return Autoscaler(Kpa(options));
}

Autoscaler request_rate_of(JsonFields& fields, const ReplicaLimits& limits, const ServiceSpec& service) {
  RequestRateOptions options{.limits = limits};
  options.rate_per_replica = 0.7 * most_rate_of_replica(service);
  fields.read_above_zero("rate_per_replica", options.rate_per_replica, most_of_rule);
  if (fields.good() && !(options.rate_per_replica > 0)) fields.refuse("rate_per_replica", "a rate above 0");
  read_span(fields, "window_s", options.window);
  read_span(fields, "up_after_s", options.up_after);
  read_span(fields, "down_after_s", options.down_after);
  read_span(fields, "period_s", options.period);
  return Autoscaler(RequestRate(options));
}

Autoscaler erlang_of(JsonFields& fields, const ReplicaLimits& limits, const ServiceSpec& service) {
  QueueTargetOptions options{.limits = limits, .service_s = service.mean_service_s};
  if (!service.promise || service.promise->within == Time::max()) {
    fields.fail("rule", "expected a promise of the service with erlang");
  } else {
    options.target = {.within_s = to_seconds(service.promise->within), .quantile = service.promise->part};
  }
  if (!service.batches.empty()) fields.fail("rule", "expected another rule than erlang with batch_s");
  if (service.llm) fields.fail("rule", "expected another rule than erlang with replica/llm");
  options.at_once = static_cast<std::int32_t>(service.at_once);
  read_span(fields, "window_s", options.window);
  read_span(fields, "down_window_s", options.down_window);
  read_span(fields, "period_s", options.period);
  return Autoscaler(QueueTarget(options));
}

FunctionReplicasOptions function_of(const ReplicaLimits& limits, const ServiceSpec& service) {
  return {.limits = limits, .at_once = static_cast<std::int32_t>(at_once(service))};
}

Autoscaler keep_alive_of(JsonFields& fields, const ReplicaLimits& limits, const ServiceSpec& service) {
  FunctionReplicasOptions options = function_of(limits, service);
  double keep_s = 600;
  fields.read("keep_s", keep_s, 0, longest_window_s);
  options.keep_alive = FixedKeepAlive(from_seconds(keep_s));
  return Autoscaler(FunctionReplicas(options));
}

Autoscaler idle_times_of(JsonFields& fields, const ReplicaLimits& limits, const ServiceSpec& service) {
  FunctionReplicasOptions options = function_of(limits, service);
  HistogramOptions histogram;
  fields.read_word("conditions", histogram.conditions, condition_names);
  if (histogram.conditions == HistogramOptions::Conditions::faascache) histogram.otherwise = whole_seconds(2 * 3600);
  fields.read("bins", histogram.bins, 1, 100'000);
  read_span(fields, "bin_s", histogram.bin);
  fields.read("least_samples", histogram.least_samples, 1, 1'000'000);
  read_span(fields, "otherwise_s", histogram.otherwise);
  options.keep_alive = HistogramKeepAlive(histogram);
  return Autoscaler(FunctionReplicas(options));
}

}  // namespace

Autoscaler read_autoscaler(JsonFields& service_fields, const ReplicaLimits& limits, const ServiceSpec& service) {
  Autoscaler autoscaler{FixedReplicas(limits.most)};
  if (!service_fields.has("autoscaler")) return autoscaler;
  service_fields.read_object("autoscaler", [&](JsonFields& fields) {
    const std::array<std::string, 7> rules{"none", "hpa", "kpa", "request-rate", "erlang", "keep-alive", "idle-times"};
    std::string rule;
    fields.require("rule");
    fields.read_word("rule", rule, rules);
    if (!fields.good()) return;
    if (rule == "none") autoscaler = fixed_of(fields, limits);
    if (rule == "hpa") autoscaler = hpa_of(fields, limits, service);
    if (rule == "kpa") autoscaler = kpa_of(fields, limits, service);
    if (rule == "request-rate") autoscaler = request_rate_of(fields, limits, service);
    if (rule == "erlang") autoscaler = erlang_of(fields, limits, service);
    if (rule == "keep-alive") autoscaler = keep_alive_of(fields, limits, service);
    if (rule == "idle-times") autoscaler = idle_times_of(fields, limits, service);
  });
  return autoscaler;
}

}  // namespace gpusched
