// SPDX-License-Identifier: Apache-2.0
/// Reads which rule sets the number of a service's replicas (Autoscaler).
#pragma once

#include "gpusched/serving/autoscaler.hpp"
#include "gpusched/serving/service_model.hpp"
#include "src/base/json_fields.hpp"

namespace gpusched {

/// The object "autoscaler" of a service: its "rule" and that rule's parameters.
///   none: "replicas" (the most that there may be);
///   hpa: "target" (0.7), "metric" (busy or held), "tolerance", "period_s", "down_window_s";
///   kpa: "concurrency" (what a replica serves at once), "utilisation", "stable_window_s", "panic_window_s",
///        "panic_threshold", "to_zero_after_s", "period_s";
///   request-rate: "rate_per_replica" (70 % of what a replica serves), "window_s", "up_after_s", "down_after_s",
///        "period_s";
///   erlang: "window_s", "down_window_s", "period_s"; needs the service's promise.
/// Without one: none. `service` has requests, times and promise.
Autoscaler read_autoscaler(JsonFields& service_fields, const ReplicaLimits& limits, const ServiceSpec& service);

}  // namespace gpusched
