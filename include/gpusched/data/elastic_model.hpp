// SPDX-License-Identifier: Apache-2.0
/// ElasticModel: which jobs may run on fewer or more GPUs than they ask for, and how fast they are then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/rate.hpp"

namespace gpusched {

/// How fast a job works with each number of its tasks, relative to the number that it asks for.
struct ElasticCurve {
  /// A part of the work, in which one curve holds: what a batch is worth changes while a model is trained.
  struct Phase {
    double until = 1;                 ///< share of the work of an attempt at which it ends; 1 in the last phase
    std::vector<RatePpm> rates = {};  ///< by tasks, from min_tasks to max_tasks; they may fall
  };
  std::uint32_t min_tasks = 1;     ///< the fewest that it runs with
  std::uint32_t max_tasks = 1;     ///< the most
  std::vector<Phase> phases = {};  ///< ascending `until`; at least one

  /// The factor on its rate with that many tasks. Precondition: min_tasks <= tasks <= max_tasks, phase < phases.size().
  [[nodiscard]] RatePpm rate(std::uint32_t tasks, std::uint32_t phase) const {
    return phases[phase].rates[tasks - min_tasks];
  }
  /// Work of an attempt of `work` that is left where that phase ends.
  [[nodiscard]] Time left_after(std::uint32_t phase, Time work) const {
    if (phase + 1 >= phases.size()) return {};
    return work - Time{static_cast<std::int64_t>(phases[phase].until * static_cast<double>(work.us))};
  }
  /// The phase of a job that has `left` of an attempt of `work` to do.
  [[nodiscard]] std::uint32_t phase_at(Time left, Time work) const {
    std::uint32_t phase = 0;
    while (phase + 1 < phases.size() && left <= left_after(phase, work)) ++phase;
    return phase;
  }
};

/// Immutable while a run lasts; the engine borrows it. Made for one JobTable; it fits slices of that table, too.
class ElasticModel {
 public:
  /// No job is elastic.
  ElasticModel() = default;
  /// Of jobs with `shapes` shapes.
  explicit ElasticModel(std::size_t shapes) : shapes_(shapes) {}

  /// True when all jobs are rigid.
  [[nodiscard]] bool is_empty() const { return curves_.empty(); }
  /// Makes gangs of that family (JobTable::family) and shape (JobTable::shape_id) elastic.
  void add(std::uint32_t family, std::uint32_t shape, ElasticCurve curve) {
    if (family >= row_of_family_.size()) row_of_family_.resize(family + 1, no_index);
    if (row_of_family_[family] == no_index) {
      row_of_family_[family] = static_cast<std::uint32_t>(curve_of_.size() / shapes_);
      curve_of_.resize(curve_of_.size() + shapes_, no_index);
    }
    curve_of_[row_of_family_[family] * shapes_ + shape] = static_cast<std::uint32_t>(curves_.size());
    curves_.push_back(std::move(curve));
  }
  /// The job's curve; null: it is rigid.
  [[nodiscard]] const ElasticCurve* curve(const JobTable& jobs, JobId job) const {
    const std::uint32_t family = jobs.family(job);
    if (family >= row_of_family_.size() || row_of_family_[family] == no_index) return nullptr;
    const std::uint32_t at = curve_of_[row_of_family_[family] * shapes_ + jobs.shape_id(job)];
    return at == no_index ? nullptr : &curves_[at];
  }
  /// All curves.
  [[nodiscard]] const std::vector<ElasticCurve>& curves() const { return curves_; }

 private:
  std::size_t shapes_ = 1;
  std::vector<ElasticCurve> curves_;
  std::vector<std::uint32_t> row_of_family_;  // no_index: its jobs are rigid
  std::vector<std::uint32_t> curve_of_;       // by row, then shape
};

}  // namespace gpusched
