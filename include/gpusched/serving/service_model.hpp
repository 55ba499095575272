// SPDX-License-Identifier: Apache-2.0
/// ServiceModel: the services of a run, each with every request that it will get. Replicas are rows of the job table
/// (JobTable::replicas).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/serving/autoscaler.hpp"
#include "gpusched/serving/llm_replica.hpp"
#include "gpusched/serving/llm_step_times.hpp"
#include "gpusched/serving/request_router.hpp"

namespace gpusched {

/// Work of a replica in the job table: what policies that know run times take it to have left. Half of it is added
/// again whenever half is left, so that it never ends by itself.
inline constexpr Time replica_work = whole_seconds(30 * 86'400);

/// One request as its client sends it.
struct ServiceRequest {
  Time arrival{};  ///< where its replicas are, after the service's begin; ascends
  Time work{};     ///< how long it is served at the reference rate, alone on an LLM engine; not where it is batched
  std::uint32_t prompt_tokens = 0;  ///< of a log that tells them
  std::uint32_t output_tokens = 0;  ///< likewise; no scheduler sees them
  std::uint64_t session = 0;        ///< likewise, for a router
  Time away{};                      ///< on its way to the replicas and, answered, back to its client, all together
  Time first_away{};                ///< the same of its first token
};

/// What becomes of the requests in service on a replica that a node takes with it, or that a policy preempts.
enum class LostRequests : std::uint8_t {
  retry,  ///< they wait again, at their places by arrival, and are served from the beginning
  drop,   ///< they are gone
};

/// A promise of latency: that part of the requests is answered within each of these times; Time::max(): any.
struct LatencyPromise {
  double part = 0.99;              ///< in (0, 1)
  Time within = Time::max();       ///< of arrival, above 0
  Time first_token = Time::max();  ///< from arrival to the first token
  Time per_token = Time::max();    ///< mean from the first token to the last for each after the first
};

/// A replica that is an LLM engine, at the reference rate.
struct LlmEngine {
  LlmLimits limits;    ///< of its steps and its cache
  LlmStepTimes times;  ///< how long a step takes
};

/// One service. Its rows in the job table are `most` in sequence, from `first_row` on.
struct ServiceSpec {
  std::string name;                           ///< of the service
  std::uint32_t first_row = 0;                ///< id of its first replica in the job table
  std::uint32_t most = 1;                     ///< replicas that there may be, 1 or more
  Time begin{};                               ///< after the first submission of the trace
  std::vector<ServiceRequest> requests = {};  ///< by arrival; none where they are told
  /// Its requests come from outside while the run lasts (Engine::tell_request()).
  bool is_told = false;
  std::uint32_t engine = 0;   ///< of a host's engines: that which serves it (RunInputs::engine)
  Autoscaler autoscaler{};    ///< says how many replicas there should be
  std::uint32_t at_once = 1;  ///< requests that a replica serves beside each other, each as if alone
  /// How long a batch takes by its size, from 1 on, at the reference rate; empty: requests are served one by one.
  std::vector<Time> batches = {};
  Time batch_delay{};                       ///< a batch that is not full begins when its oldest request waited so long
  Time cold_start{};                        ///< from the start of a run until it serves
  Time warm_start{};                        ///< the same where a replica of this service ran on all its nodes lately
  Time keep_warm{};                         ///< for so long
  Time timeout = Time::max();               ///< a request that waited so long leaves unserved
  LostRequests lost = LostRequests::retry;  ///< what becomes of requests whose replica is gone
  std::optional<LatencyPromise> promise = {};       ///< if one is given
  double mean_service_s = 0;                        ///< of a request alone, at the reference rate
  RoutingRule routing = RoutingRule::shared_queue;  ///< where requests wait, and how they find replicas
  std::uint64_t router_seed = 0;                    ///< of a router that draws
  /// Replicas are such engines: at_once is the most sequences, and `work` of requests and batches are not used.
  std::optional<LlmEngine> llm = {};
};

/// A request as its engine gets it, of a service that begins at `begin`. Logged tokens of 0 count as 1.
[[nodiscard]] inline LlmRequest llm_request(const ServiceRequest& request, Time begin, std::uint32_t number) {
  const auto tokens = [](std::uint32_t logged) { return static_cast<std::int32_t>(std::max(logged, 1u)); };
  return {.id = number,
          .arrival = begin + request.arrival,
          .prompt_tokens = tokens(request.prompt_tokens),
          .output_tokens = tokens(request.output_tokens),
          .session = request.session};
}

/// All of them.
struct ServiceModel {
  std::vector<ServiceSpec> services;  ///< in the order of their rows
  bool lists_requests = false;        ///< a report of each request is asked for

  /// True when there are none.
  [[nodiscard]] bool is_empty() const { return services.empty(); }
  /// Rows of all replicas.
  [[nodiscard]] std::uint32_t rows() const {
    return services.empty() ? 0 : services.back().first_row + services.back().most;
  }
};

/// The most requests a second that one replica serves, in batches that take at most `within`, if requests wait for
/// nothing but their batch. 0 where it serves none.
[[nodiscard]] inline double most_rate_of_replica(const ServiceSpec& service, Time within) {
  if (service.batches.empty()) {
    return service.mean_service_s > 0 ? service.at_once / service.mean_service_s : 0;
  }
  double most = 0;
  for (std::size_t i = 0; i < service.batches.size(); ++i) {
    const Time takes = service.batches[i];
    if (takes <= within && takes.us > 0) most = std::max(most, static_cast<double>(i + 1) / to_seconds(takes));
  }
  return most;
}
/// The same within the promise, if there is one.
[[nodiscard]] inline double most_rate_of_replica(const ServiceSpec& service) {
  return most_rate_of_replica(service, service.promise ? service.promise->within : Time::max());
}

}  // namespace gpusched
