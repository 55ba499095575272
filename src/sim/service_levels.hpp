// SPDX-License-Identifier: Apache-2.0
/// What a replay says of services over time: service_levels.csv and latencies.csv.
#pragma once

#include <string>

namespace gpusched {

struct PolicyRun;

/// A row for each of at most 300 equal parts of each service's time, from its begin until its last request has gone:
/// requests that came in it, how many of them were answered, answered as promised (empty without a promise) and lost,
/// their mean and 99th percentile of latency (empty where none was answered); over the part, the means of the requests
/// that waited for the service that answered them, and of the replicas that held GPUs. O(requests log requests).
/// Precondition: a finished run with services.
std::string service_levels_csv(const PolicyRun& run);

/// The distribution of each service's latencies, s, in at most 500 points: `share` of the answered requests took at
/// most `latency_s`. Precondition: as above.
std::string latencies_csv(const PolicyRun& run);

}  // namespace gpusched
