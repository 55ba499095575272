// SPDX-License-Identifier: Apache-2.0
/// Small worlds with services, and the plainest policy.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gpusched/engine/engine.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {

/// Starts whatever fits, in the order of the queue.
struct FirstFit {
  [[nodiscard]] static std::string_view name() { return "first-fit"; }
  static void decide(const View& view, Decision& decision) {
    const std::vector<JobId> waiting(view.queue(0).begin(), view.queue(0).end());
    for (const JobId job : waiting) decision.start(job);
  }
};

/// A service of requests that come and are served for so many seconds each.
inline ServiceSpec service_of(const std::vector<std::pair<double, double>>& requests, std::uint32_t most = 1) {
  ServiceSpec service{.name = "s", .most = most, .autoscaler = Autoscaler(FixedReplicas(static_cast<int>(most)))};
  for (const auto& [arrival, work] : requests) {
    service.requests.push_back({.arrival = from_seconds(arrival), .work = from_seconds(work)});
  }
  service.mean_service_s = requests.empty() ? 1 : requests.front().second;
  return service;
}

/// The services' replicas of one GPU each, then these jobs; numbers the services' rows.
inline JobTable with_services(ServiceModel& model, const std::vector<Row>& jobs, std::string_view family = {}) {
  JobTableBuilder builder;
  const Time submit = jobs.empty() ? Time{} : whole_seconds(jobs.front().submit);
  std::uint32_t rows = 0;
  for (ServiceSpec& service : model.services) {
    service.first_row = rows;
    rows += service.most;
    for (std::uint32_t k = 0; k < service.most; ++k) {
      const std::string id = service.name + ":" + std::to_string(k);
      builder.add({.id = id,
                   .submit = submit,
                   .work = replica_work,
                   .shape = {.tasks = 1, .gpu_milli_per_task = whole_gpu},
                   .family = family});
    }
  }
  builder.end_replicas();
  int number = 0;
  for (const Row& row : jobs) {
    const std::string id = std::to_string(number++);
    builder.add({.id = id,
                 .submit = whole_seconds(row.submit),
                 .work = whole_seconds(row.work),
                 .estimate = row.estimate < 0 ? Time::max() : whole_seconds(row.estimate),
                 .shape = row.shape == Shape{} ? Shape{.tasks = row.gpus, .gpu_milli_per_task = whole_gpu} : row.shape,
                 .gpu_spec = row.gpu_spec,
                 .family = row.family});
  }
  return *std::move(builder).build();
}

}  // namespace gpusched::test
