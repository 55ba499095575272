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
  /// `half_life`: of "history", in finished jobs; 0: none fades.
  ReferenceEstimator() = default;
  explicit ReferenceEstimator(std::string how, std::int64_t ReferenceJob::*into = &ReferenceJob::believed_us,
                              double half_life = 300)
      : how_(std::move(how)), into_(into), half_life_(half_life) {}

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
  // level weighs the one above like four jobs. Those fade ten times slower than the half-life; two more of virtual
  // cluster, size and user together fade as fast and ten times faster.
  [[nodiscard]] std::int64_t history_us(const ReferenceJob& job) const {
    double guess = 0;
    const auto refine = [&](auto alike, double weight, double lives) {
      double sum = weight * guess, count = weight;
      for (std::size_t i = 0; i < finished_.size(); ++i) {
        const Finished& past = finished_[i];
        if (!alike(past)) continue;
        const auto age = static_cast<double>(finished_.size() - 1 - i);
        const double counts = half_life_ > 0 ? std::pow(0.5, age / (lives * half_life_)) : 1;
        sum += counts * std::log1p(static_cast<double>(past.attempt_us) / 1e6);
        count += counts;
      }
      guess = sum / count;
    };
    const auto alike = [&](const Finished& past) { return past.vc == job.vc && past.gpus == job.gpus; };
    const auto same = [&](const Finished& past) { return alike(past) && past.user == job.user; };
    refine([](const Finished&) { return true; }, 0, 10);
    refine([&](const Finished& past) { return past.vc == job.vc; }, 4, 10);
    refine(alike, 4, 10);
    refine([&](const Finished& past) { return past.user == job.user; }, 4, 10);
    if (half_life_ > 0) {
      refine(same, 4, 1);
      refine(same, 4, 0.1);
    }
    return std::llround(std::expm1(guess) * 1e6);
  }

  std::string how_ = "exact";
  std::int64_t ReferenceJob::*into_ = &ReferenceJob::believed_us;
  double half_life_ = 300;
  std::vector<Finished> finished_;
};

}  // namespace gpusched::test
