// SPDX-License-Identifier: Apache-2.0
/// LimitedCurves: the curves of elastic jobs that some limit keeps from their largest sizes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "gpusched/data/elastic_model.hpp"
#include "gpusched/data/job_limits.hpp"
#include "gpusched/data/job_table.hpp"

namespace gpusched::detail {

/// Each ends at the largest size that limits would let its job have if it were alone. Copies share them, so that what
/// policies keep of a curve outlives the engine that they saw it in.
class LimitedCurves {
 public:
  /// No limit forbids a size.
  LimitedCurves() = default;
  /// O(jobs), and the curves of those whom a limit keeps from a size.
  LimitedCurves(const ElasticModel& model, const JobTable& jobs, const JobLimits& limits) {
    Table table;
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {
      const ElasticCurve* const whole = model.curve(jobs, JobId{i});
      if (whole == nullptr) continue;
      const std::uint32_t most = most_tasks(*whole, jobs.shape(JobId{i}), JobId{i}, limits);
      if (most == whole->max_tasks) continue;
      table.of_job.resize(jobs.size(), nullptr);
      const auto [place, added] = table.curves.try_emplace({whole, most});
      if (added) place->second = up_to(most, *whole);
      table.of_job[i] = &place->second;
    }
    if (!table.curves.empty()) table_ = std::make_shared<const Table>(std::move(table));
  }

  /// The job's curve without what limits forbid; null: they forbid nothing of it.
  [[nodiscard]] const ElasticCurve* of(JobId job) const {
    return table_ == nullptr ? nullptr : table_->of_job[index(job)];
  }

 private:
  struct Table {
    std::map<std::pair<const ElasticCurve*, std::uint32_t>, ElasticCurve> curves;  // by whole curve and most tasks
    std::vector<const ElasticCurve*> of_job;                                       // null: the whole one
  };

  // A job that asks for more than a limit lets it have is refused, and has its size all the same.
  static std::uint32_t most_tasks(const ElasticCurve& whole, const Shape& asked, JobId job, const JobLimits& limits) {
    const std::int64_t allowed = limits.most_tasks_alone(job, asked);
    if (allowed >= whole.max_tasks) return whole.max_tasks;
    return std::max(static_cast<std::uint32_t>(allowed), asked.tasks);
  }

  static ElasticCurve up_to(std::uint32_t most, const ElasticCurve& whole) {
    ElasticCurve curve = whole;
    curve.max_tasks = most;
    for (ElasticCurve::Phase& phase : curve.phases) phase.rates.resize(most - curve.min_tasks + 1);
    return curve;
  }

  std::shared_ptr<const Table> table_;  // null: no limit forbids a size
};

}  // namespace gpusched::detail
