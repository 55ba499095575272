// SPDX-License-Identifier: Apache-2.0
/// Run times as the reference simulator's rules believe them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/differential/reference_simulator.hpp"

namespace gpusched::test {

/// What is believed of a job is settled when it begins to wait, from the jobs that have finished by then.
class ReferenceEstimator {
 public:
  /// `how`: "exact", "requested" (the estimate, else as history), "history", "user-mean", "user-gpu-mean" or "nothing".
  ReferenceEstimator() = default;
  explicit ReferenceEstimator(std::string how, std::int64_t ReferenceJob::*into = &ReferenceJob::believed_us)
      : how_(std::move(how)), into_(into) {}

  void observe(ReferenceSimulator& world) {
    for (const ReferenceJob* job : world.ended()) {
      if (job->end < 0) continue;
      const auto attempts = static_cast<std::int64_t>(job->attempts.size());
      finished_.push_back({job->vc, job->gpus, job->user, job->ran * 1'000'000 / attempts});
    }
    for (ReferenceJob* job : world.came()) job->*into_ = estimate_us(*job);
  }

 private:
  struct Finished {
    std::int64_t vc, gpus, user, attempt_us;
  };

  [[nodiscard]] std::int64_t estimate_us(const ReferenceJob& job) const {
    if (how_ == "nothing") return 0;
    if (how_ == "exact") return job.remaining * 1'000'000;
    if (how_ == "requested" && job.estimate >= 0) return job.estimate * 1'000'000;
    if (finished_.empty()) return std::int64_t{3600} * 1'000'000;
    if (how_ == "requested" || how_ == "history") return history_us(job);
    const bool by_gpus = how_ == "user-gpu-mean";
    const auto alike = [&](const Finished& past) {
      return past.user == job.user && (!by_gpus || past.gpus == job.gpus);
    };
    const bool any = std::any_of(finished_.begin(), finished_.end(), alike);
    std::int64_t sum = 0, count = 0;
    for (const Finished& past : finished_) {
      if (any && !alike(past)) continue;
      sum += past.attempt_us;
      ++count;
    }
    return sum / count;
  }

  // The mean of log(1 + seconds) of all, refined by virtual cluster, by virtual cluster and size, and by user: each
  // level weighs the one above like four jobs.
  [[nodiscard]] std::int64_t history_us(const ReferenceJob& job) const {
    double guess = 0;
    const auto refine = [&](auto alike, double weight) {
      double sum = weight * guess, count = weight;
      for (const Finished& past : finished_) {
        if (!alike(past)) continue;
        sum += std::log1p(static_cast<double>(past.attempt_us) / 1e6);
        count += 1;
      }
      guess = sum / count;
    };
    refine([](const Finished&) { return true; }, 0);
    refine([&](const Finished& past) { return past.vc == job.vc; }, 4);
    refine([&](const Finished& past) { return past.vc == job.vc && past.gpus == job.gpus; }, 4);
    refine([&](const Finished& past) { return past.user == job.user; }, 4);
    return std::llround(std::expm1(guess) * 1e6);
  }

  std::string how_ = "exact";
  std::int64_t ReferenceJob::*into_ = &ReferenceJob::believed_us;
  std::vector<Finished> finished_;
};

}  // namespace gpusched::test
