// SPDX-License-Identifier: Apache-2.0
/// RuntimePredictor: run times guessed from jobs that have finished, for schedulers whose users give no estimate.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "gpusched/data/job_table.hpp"
#include "gpusched/engine/view.hpp"

namespace gpusched {

/// A running mean of log run time for everybody, refined by virtual cluster, by virtual cluster and shape, and by user;
/// each level is shrunk towards the one above with the weight of `prior_jobs` jobs. Its guess is the geometric mean,
/// which orders heavy-tailed run times better than the mean. A value; O(1) a job; ids are those of one JobTable (or of
/// tables sliced from it).
class RuntimePredictor {
 public:
  static constexpr double prior_jobs = 4;  ///< weight of the level above, in jobs

  /// Learns a finished job from what the scheduler saw of it.
  void learn(const View& view, JobId job) {
    learn(view.vc(job), view.shape_id(job), view.user(job), to_seconds(view.ran(job)));
  }

  /// Learns that a job of this virtual cluster, shape and user ran `seconds`.
  void learn(std::uint32_t vc, std::uint32_t shape, std::uint32_t user, double seconds) {
    const double value = std::log1p(seconds);
    all_.add(value);
    at(vcs_, vc).add(value);
    if (shapes_.size() <= vc) shapes_.resize(vc + 1);
    at(shapes_[vc], shape).add(value);
    at(users_, user).add(value);
  }

  /// Seconds; 0 before any job finished.
  [[nodiscard]] double predict_seconds(const View& view, JobId job) const {
    return predict_seconds(view.vc(job), view.shape_id(job), view.user(job));
  }

  /// Predicted seconds of a job of that virtual cluster, shape and user; 0 before any job finished.
  [[nodiscard]] double predict_seconds(std::uint32_t vc, std::uint32_t shape, std::uint32_t user) const {
    double guess = all_.jobs > 0 ? all_.sum / all_.jobs : 0;
    guess = refine(guess, vcs_, vc);
    if (vc < shapes_.size()) guess = refine(guess, shapes_[vc], shape);
    if (user != 0) guess = refine(guess, users_, user);  // user 0 is "unknown"
    return std::expm1(guess);
  }

 private:
  struct Mean {
    double jobs = 0, sum = 0;
    void add(double value) {
      jobs += 1;
      sum += value;
    }
  };

  static Mean& at(std::vector<Mean>& means, std::uint32_t id) {
    if (means.size() <= id) means.resize(id + 1);
    return means[id];
  }

  static double refine(double guess, const std::vector<Mean>& means, std::uint32_t id) {
    if (id >= means.size()) return guess;
    return (means[id].sum + prior_jobs * guess) / (means[id].jobs + prior_jobs);
  }

  Mean all_;
  std::vector<Mean> vcs_, users_;
  std::vector<std::vector<Mean>> shapes_;  // [vc][shape]
};

}  // namespace gpusched
