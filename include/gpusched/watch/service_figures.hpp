// SPDX-License-Identifier: Apache-2.0
/// ServiceFigures: how well a service was served in a finished run, and at what cost.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/engine/engine.hpp"
#include "gpusched/watch/percentile.hpp"

namespace gpusched {

/// Of the answered requests of LLM engines, with the tokens of the serving that answered. Percentiles as those of
/// Metrics.
struct TokenFigures {
  double mean_first_token_s = 0;  ///< from arrival to the first token
  double p99_first_token_s = 0;   ///< likewise
  double mean_per_token_s = 0;    ///< of the requests' means from the first token to the last for each after the first
  double p99_per_token_s = 0;     ///< likewise; answers of one token are left out
};

/// Of one service, from its begin until its last request was answered or left. A latency is the time from a request's
/// arrival to its answer, whatever happened to it meanwhile, and on its way from and to its client
/// (ServiceRequest::away); percentiles are of the answered ones, as those of Metrics.
struct ServiceFigures {
  std::string name;                         ///< of the service
  RequestCounts requests;                   ///< what became of them
  std::uint64_t retries = 0;                ///< how often a request lost its replica and waited again
  double mean_latency_s = 0;                ///< 0 where none was answered, as the next three
  double median_latency_s = 0;              ///< 50th percentile
  double p95_latency_s = 0;                 ///< 95th percentile
  double p99_latency_s = 0;                 ///< 99th percentile
  double mean_wait_s = 0;                   ///< from arrival to the begin of the service that answered
  std::optional<TokenFigures> tokens = {};  ///< of LLM engines
  /// Share of all requests that were answered within the promised times: those that left count as late. Nothing without
  /// a promise.
  std::optional<double> slo_attainment = {};
  std::optional<bool> kept = {};  ///< that share is no less than the promise says
  ReplicaStarts starts;           ///< of its replicas
  double mean_replicas = 0;       ///< that serve, over time
  double gpu_hours = 0;           ///< held by its replicas, starting included
  /// What the answers take at the reference rate of replicas that never idle, in the largest batches: no rule can do
  /// with less.
  double lower_bound_gpu_hours = 0;
  Bill bill = {};  ///< of its replicas; nothing where power is not known
};

namespace detail {

inline double percentile_s(std::span<std::int64_t> values, double p) {
  return values.empty() ? 0 : percentile(values, p) / 1e6;
}

// From when it was sent to its answer's end at its client.
inline Time latency_of(const RequestLedger& queue, std::uint32_t request) {
  return queue.records()[request].end - queue.arrival(request) + queue.request(request).away;
}

// Latencies of the answered requests of one service, in microseconds, in order of arrival.
inline std::vector<std::int64_t> latencies_us(const RequestLedger& queue) {
  std::vector<std::int64_t> values;
  values.reserve(queue.counts().completed);
  for (std::uint32_t i = 0; i < queue.records().size(); ++i) {
    if (queue.records()[i].phase == RequestPhase::completed) values.push_back(latency_of(queue, i).us);
  }
  return values;
}
inline void append(std::vector<std::int64_t>& all, const std::vector<std::int64_t>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// Tokens after the first.
inline std::int64_t later_tokens(const RequestLedger& queue, std::uint32_t request) {
  return llm_request(queue.request(request), {}, request).output_tokens - 1;
}

// To the client, as latency_of().
inline Time first_token_of(const RequestLedger& queue, std::uint32_t request) {
  return queue.records()[request].first_token - queue.arrival(request) + queue.request(request).first_away;
}

// Precondition: the service has a promise.
inline bool in_time(const RequestLedger& ledger, const ServiceSpec& service, std::uint32_t request) {
  const RequestRecord& record = ledger.records()[request];
  const LatencyPromise& promise = *service.promise;
  if (record.phase != RequestPhase::completed || latency_of(ledger, request) > promise.within) return false;
  if (!service.llm) return true;
  if (first_token_of(ledger, request) > promise.first_token) return false;
  const WideInt most = WideInt{promise.per_token.us} * later_tokens(ledger, request);
  return (record.end - record.first_token).us <= most;
}

inline double requests_in_time(const RequestLedger& ledger, const ServiceSpec& service) {
  std::int64_t sum = 0;
  for (std::uint32_t i = 0; i < ledger.records().size(); ++i) sum += in_time(ledger, service, i) ? 1 : 0;
  return static_cast<double>(sum);
}

inline double lower_bound_replica_s(const ServiceSpec& service, const RequestLedger& queue) {
  if (!service.batches.empty()) {
    const double most_rate = most_rate_of_replica(service, Time::max());
    return most_rate > 0 ? static_cast<double>(queue.counts().completed) / most_rate : 0;
  }
  WideInt work_us = 0;
  for (std::uint32_t i = 0; i < queue.records().size(); ++i) {
    if (queue.records()[i].phase == RequestPhase::completed) work_us += queue.request(i).work.us;
  }
  return static_cast<double>(work_us) / 1e6 / service.at_once;
}

// Percentiles and means are of what all ledgers hold that were added.
class FiguresOfService {
 public:
  explicit FiguresOfService(std::string name) { figures_.name = std::move(name); }

  /// One of the services, of which `engine` ran the replicas.
  void add(const Engine& engine, std::uint32_t number) {
    const ServiceSpec& service = engine.services().model().services[number];
    const RequestLedger& queue = engine.services().requests(number);
    add_requests(queue, service);
    figures_.starts += engine.services().starts(number);
    WideInt held = 0;
    for (std::uint32_t row = service.first_row; row < service.first_row + service.most; ++row) {
      held += engine.gpu_time(JobId{row}).held();
      if (engine.knows_power()) figures_.bill += engine.bill(JobId{row});
    }
    constexpr double milli_us_per_gpu_hour = 3.6e9 * whole_gpu;
    figures_.gpu_hours += static_cast<double>(held) / milli_us_per_gpu_hour;
    const auto gpus = static_cast<double>(engine.jobs().shape(JobId{service.first_row}).gpu_milli()) / whole_gpu;
    figures_.lower_bound_gpu_hours += gpus * lower_bound_replica_s(service, queue) / 3600;
    span_ = std::max(span_, engine.services().closed(number) - queue.begin());
    open_us_ += queue.open_us();
  }
  [[nodiscard]] ServiceFigures figures() && {
    if (span_.us > 0) figures_.mean_replicas = static_cast<double>(open_us_) / static_cast<double>(span_.us);
    const double count = static_cast<double>(latencies_us_.size()) * 1e6;
    if (count > 0) {
      figures_.mean_latency_s = static_cast<double>(sum(latencies_us_)) / count;
      figures_.mean_wait_s = static_cast<double>(waits_) / count;
    }
    figures_.median_latency_s = percentile_s(latencies_us_, 0.50);
    figures_.p95_latency_s = percentile_s(latencies_us_, 0.95);
    figures_.p99_latency_s = percentile_s(latencies_us_, 0.99);
    if (is_llm_) figures_.tokens = token_figures();
    if (promised_ && figures_.requests.injected > 0) {
      figures_.slo_attainment = in_time_ / static_cast<double>(figures_.requests.injected);
      figures_.kept = *figures_.slo_attainment >= *promised_;
    }
    return std::move(figures_);
  }

 private:
  static WideInt sum(const std::vector<std::int64_t>& values) {
    WideInt all = 0;
    for (const std::int64_t value : values) all += value;
    return all;
  }

  void add_requests(const RequestLedger& queue, const ServiceSpec& service) {
    figures_.requests += queue.counts();
    append(latencies_us_, latencies_us(queue));
    for (std::uint32_t i = 0; i < queue.records().size(); ++i) {
      const RequestRecord& record = queue.records()[i];
      figures_.retries += record.retries;
      if (record.phase == RequestPhase::completed) waits_ += (record.start - queue.arrival(i)).us;
    }
    if (service.llm) add_tokens(queue);
    is_llm_ = service.llm.has_value();
    if (!service.promise) return;
    promised_ = service.promise->part;
    in_time_ += requests_in_time(queue, service);
  }

  void add_tokens(const RequestLedger& queue) {
    for (std::uint32_t i = 0; i < queue.records().size(); ++i) {
      const RequestRecord& record = queue.records()[i];
      if (record.phase != RequestPhase::completed) continue;
      firsts_us_.push_back(first_token_of(queue, i).us);
      sum_first_s_ += to_seconds({firsts_us_.back()});
      const std::int64_t later = later_tokens(queue, i);
      if (later <= 0) continue;
      each_ns_.push_back((record.end - record.first_token).us * 1000 / later);
      sum_each_s_ += to_seconds(record.end - record.first_token) / static_cast<double>(later);
    }
  }

  TokenFigures token_figures() {
    TokenFigures figures;
    if (!firsts_us_.empty()) figures.mean_first_token_s = sum_first_s_ / static_cast<double>(firsts_us_.size());
    if (!each_ns_.empty()) figures.mean_per_token_s = sum_each_s_ / static_cast<double>(each_ns_.size());
    figures.p99_first_token_s = percentile_s(firsts_us_, 0.99);
    figures.p99_per_token_s = percentile_s(each_ns_, 0.99) / 1000;
    return figures;
  }

  ServiceFigures figures_;
  std::vector<std::int64_t> latencies_us_, firsts_us_, each_ns_;
  Time span_{};  // the longest
  std::int64_t open_us_ = 0;
  WideInt waits_ = 0;
  double sum_first_s_ = 0, sum_each_s_ = 0, in_time_ = 0;
  bool is_llm_ = false;
  std::optional<double> promised_;  // the part
};

}  // namespace detail

/// Of each service of a finished run; none where there are no services. O(requests).
inline std::vector<ServiceFigures> service_figures(const Engine& engine) {
  std::vector<ServiceFigures> all;
  if (!engine.has_services()) return all;
  const ServiceModel& model = engine.services().model();
  for (std::uint32_t i = 0; i < model.services.size(); ++i) {
    detail::FiguresOfService figures(model.services[i].name);
    figures.add(engine, i);
    all.push_back(std::move(figures).figures());
  }
  return all;
}

namespace detail {

inline double longest_stay_s(std::span<const Engine* const> engines) {
  Time longest{};
  for (const Engine* const engine : engines) {
    if (!engine->has_services()) continue;
    for (std::uint32_t i = 0; i < engine->services().model().services.size(); ++i) {
      const RequestLedger& queue = engine->services().requests(i);
      for (std::uint32_t request = 0; request < queue.records().size(); ++request) {
        if (queue.records()[request].end != Time::max()) longest = std::max(longest, latency_of(queue, request));
      }
    }
  }
  return to_seconds(longest);
}

}  // namespace detail

/// Over the requests of all services of a finished run.
struct AllRequests {
  std::optional<double> slo_attainment = {};  ///< of those with a promise; nothing where there are none
  std::optional<double> p99_latency_s = {};   ///< of those answered; where none was, the longest that one stayed
};
/// Of the services that these engines run. O(requests). Nothing where there are no services.
inline AllRequests figures_of_all_requests(std::span<const Engine* const> engines) {
  AllRequests all;
  bool has_services = false;
  std::vector<std::int64_t> values;
  double within = 0, promised = 0;
  for (const Engine* const engine : engines) {
    if (!engine->has_services()) continue;
    has_services = true;
    const ServiceModel& model = engine->services().model();
    for (std::uint32_t i = 0; i < model.services.size(); ++i) {
      detail::append(values, detail::latencies_us(engine->services().requests(i)));
      if (!model.services[i].promise) continue;
      promised += static_cast<double>(engine->services().requests(i).counts().injected);
      within += detail::requests_in_time(engine->services().requests(i), model.services[i]);
    }
  }
  if (promised > 0) all.slo_attainment = within / promised;
  if (!has_services) return all;
  all.p99_latency_s = values.empty() ? detail::longest_stay_s(engines) : detail::percentile_s(values, 0.99);
  return all;
}
/// The same of one engine.
inline AllRequests figures_of_all_requests(const Engine& engine) {
  const Engine* const one = &engine;
  return figures_of_all_requests({&one, 1});
}

}  // namespace gpusched
