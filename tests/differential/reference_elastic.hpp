// SPDX-License-Identifier: Apache-2.0
/// Policies that choose sizes, written from their definitions without regard to speed: jobs on one pool of GPUs, whose
/// sizes change at no cost. Times are seconds as double.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace gpusched::test {

/// A job of one-GPU tasks.
struct ReferenceElasticJob {
  double submit = 0, work = 0;
  double deadline = std::numeric_limits<double>::infinity();
  std::vector<double>
      rates;  ///< with 1, 2, ... GPUs, relative to what it asks for; of a rigid job, only that size's > 0
  double left = 0;
  double end = -1;
  int size = 0, changes = 0;
  bool arrived = false, admitted = false, judged = false;
  std::size_t level = 0;

  [[nodiscard]] int least() const {
    int gpus = 1;
    while (rates[gpus - 1] == 0) ++gpus;
    return gpus;
  }
  [[nodiscard]] int most() const { return static_cast<int>(rates.size()); }
  [[nodiscard]] double rate(int gpus) const { return gpus == 0 ? 0 : rates[gpus - 1]; }
};

using ReferenceElasticJobs = std::vector<ReferenceElasticJob*>;

/// Sizes of the jobs in the system, in order of submission.
using ReferenceSizing = std::function<std::vector<int>(const ReferenceElasticJobs& jobs, int gpus, double now)>;

/// Plays the jobs to their ends. `round_s`: between decisions; 0: at every arrival and end.
inline void play_elastic(std::vector<ReferenceElasticJob>& jobs, int gpus, double round_s,
                         const ReferenceSizing& sizing) {
  constexpr double never = std::numeric_limits<double>::infinity();
  double now = -never, next_round = -never;
  for (ReferenceElasticJob& job : jobs) job.left = job.work;
  for (;;) {
    double next = never;
    bool any = false;
    for (const ReferenceElasticJob& job : jobs) {
      if (!job.arrived) next = std::min(next, job.submit);
      if (job.arrived && job.end < 0) any = true;
      if (job.arrived && job.end < 0 && job.size > 0) next = std::min(next, now + job.left / job.rate(job.size));
    }
    if (round_s > 0 && any && next_round > now) next = std::min(next, next_round);
    if (next == never) return;
    bool changed = false;
    for (ReferenceElasticJob& job : jobs) {
      if (job.arrived && job.end < 0 && job.size > 0) {
        job.left -= job.rate(job.size) * (next - now);
        if (job.left < 1e-9 * (1 + job.work)) job.end = next, changed = true;
      }
      if (!job.arrived && job.submit <= next) job.arrived = changed = true;
    }
    now = next;
    ReferenceElasticJobs here;
    for (ReferenceElasticJob& job : jobs) {
      if (job.arrived && job.end < 0) here.push_back(&job);
    }
    const bool due = round_s > 0 ? now >= next_round : changed;
    if (!due || here.empty()) continue;
    next_round = now + round_s;
    const std::vector<int> sizes = sizing(here, gpus, now);
    for (std::size_t i = 0; i < here.size(); ++i) {
      if (here[i]->size > 0 && here[i]->size != sizes[i]) ++here[i]->changes;
      here[i]->size = sizes[i];
    }
  }
}

/// The least sizes of the first jobs that fit.
inline std::vector<int> reference_least_sizes(const ReferenceElasticJobs& jobs, int& gpus) {
  std::vector<int> sizes;
  for (const ReferenceElasticJob* job : jobs) {
    sizes.push_back(job->least() <= gpus ? job->least() : 0);
    gpus -= sizes.back();
  }
  return sizes;
}

/// Optimus: one GPU after another, where it brings an end nearest.
inline std::vector<int> reference_optimus(const ReferenceElasticJobs& jobs, int gpus, double) {
  std::vector<int> sizes = reference_least_sizes(jobs, gpus);
  for (; gpus > 0; --gpus) {
    std::size_t best = jobs.size();
    double best_gain = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (sizes[i] == 0 || sizes[i] == jobs[i]->most()) continue;
      const double gain = jobs[i]->left / jobs[i]->rate(sizes[i]) - jobs[i]->left / jobs[i]->rate(sizes[i] + 1);
      if (gain > best_gain) best_gain = gain, best = i;
    }
    if (best == jobs.size()) break;
    ++sizes[best];
  }
  return sizes;
}

/// Pollux: the step that lowers the sum of inverse speedups most a GPU.
inline std::vector<int> reference_pollux(const ReferenceElasticJobs& jobs, int gpus, double now, double delay_s) {
  const int share = gpus / static_cast<int>(jobs.size());
  const auto cost = [&](const ReferenceElasticJob& job, int size) {
    const double fair = job.rate(std::clamp(share, job.least(), job.most()));
    const double age = now - job.submit;
    double factor = 1;
    if (job.size > 0 && size != job.size) factor = std::max((age - job.changes * delay_s) / (age + delay_s), 0.01);
    return fair / (job.rate(size) * factor);
  };
  std::vector<int> sizes = reference_least_sizes(jobs, gpus);
  for (;;) {
    std::size_t best = jobs.size();
    int best_size = 0;
    double best_gain = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      for (int size = sizes[i] + 1; sizes[i] > 0 && size <= jobs[i]->most() && size - sizes[i] <= gpus; ++size) {
        const double gain = (cost(*jobs[i], sizes[i]) - cost(*jobs[i], size)) / (size - sizes[i]);
        if (gain > best_gain) best_gain = gain, best = i, best_size = size;
      }
    }
    if (best == jobs.size()) return sizes;
    gpus -= best_size - sizes[best];
    sizes[best] = best_size;
  }
}

/// GPUs that a job is promised for a time.
struct ReferencePromise {
  double begin = 0, end = 0;
  int gpus = 0;
};

/// ElasticFlow: promises by deadline, then least sizes, then the rest.
class ReferenceElasticFlow {
 public:
  std::vector<int> operator()(const ReferenceElasticJobs& jobs, int gpus, double now) {
    for (ReferenceElasticJob* job : jobs) {
      if (job->judged) continue;
      job->judged = true;
      if (job->deadline == std::numeric_limits<double>::infinity()) continue;
      const int late = promise(jobs, gpus, now, 1e-3);
      std::vector<std::size_t> levels;
      for (const ReferenceElasticJob* other : jobs) levels.push_back(other->level);
      job->admitted = true;
      if (promise(jobs, gpus, now, 1e-3) == late) continue;
      job->admitted = false;
      for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i]->level = levels[i];
    }
    promise(jobs, gpus, now, 0);
    std::vector<int> sizes = first_;
    int free = gpus;
    for (const ReferencePromise& part : promised_) free -= part.begin <= now ? part.gpus : 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (jobs[i]->admitted || jobs[i]->least() > free) continue;
      sizes[i] = jobs[i]->least();
      free -= sizes[i];
    }
    give_rest(jobs, sizes, free);
    return sizes;
  }

 private:
  static std::vector<int> doublings(const ReferenceElasticJob& job) {
    std::vector<int> sizes{job.least()};
    for (int gpus = 2 * job.least(); gpus <= job.most(); gpus *= 2) {
      if (job.rate(gpus) > job.rate(sizes.back())) sizes.push_back(gpus);
    }
    return sizes;
  }

  [[nodiscard]] int free_at(double t, int gpus) const {
    for (const ReferencePromise& part : promised_) gpus -= part.begin <= t && t < part.end ? part.gpus : 0;
    return gpus;
  }

  // What the job takes with at most the sizes up to `level`, from now to its end.
  [[nodiscard]] std::vector<ReferencePromise> fill(const ReferenceElasticJob& job, std::size_t level, int gpus,
                                                   double now) const {
    const std::vector<int> sizes = doublings(job);
    std::vector<double> changes{now};
    for (const ReferencePromise& part : promised_) {
      for (const double t : {part.begin, part.end}) {
        if (t > now) changes.push_back(t);
      }
    }
    std::sort(changes.begin(), changes.end());
    changes.erase(std::unique(changes.begin(), changes.end()), changes.end());
    std::vector<ReferencePromise> parts;
    double left = job.left;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      const double next = i + 1 < changes.size() ? changes[i + 1] : std::numeric_limits<double>::infinity();
      int size = 0;
      for (std::size_t j = 0; j <= level; ++j) {
        if (sizes[j] <= free_at(changes[i], gpus)) size = std::max(size, sizes[j]);
      }
      if (size == 0) continue;
      const double end = changes[i] + left / job.rate(size);
      parts.push_back({changes[i], std::min(end, next), size});
      if (end <= next) return parts;
      left -= job.rate(size) * (next - changes[i]);
    }
    return {};
  }

  // How many admitted jobs are late.
  int promise(const ReferenceElasticJobs& jobs, int gpus, double now, double margin) {
    promised_.clear();
    first_.assign(jobs.size(), 0);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (jobs[i]->admitted) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return jobs[a]->deadline < jobs[b]->deadline; });
    int late = 0;
    for (const std::size_t i : order) {
      ReferenceElasticJob& job = *jobs[i];
      const std::size_t last = doublings(job).size() - 1;
      std::vector<ReferencePromise> parts;
      bool in_time = false;
      for (;; ++job.level) {
        parts = fill(job, job.level, gpus, now);
        in_time = !parts.empty() && parts.back().end <= job.deadline - margin;
        if (in_time || job.level == last) break;
      }
      late += in_time ? 0 : 1;
      if (!parts.empty() && parts.front().begin == now) first_[i] = parts.front().gpus;
      promised_.insert(promised_.end(), parts.begin(), parts.end());
    }
    return late;
  }

  static void give_rest(const ReferenceElasticJobs& jobs, std::vector<int>& sizes, int free) {
    for (;;) {
      std::size_t best = jobs.size();
      int best_size = 0;
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < jobs.size(); ++i) {
        for (const int size : doublings(*jobs[i])) {
          if (size <= sizes[i]) continue;
          if (size - sizes[i] > free) break;
          const int from = std::max(sizes[i], jobs[i]->least());
          const double cost =
              (size * jobs[i]->left / jobs[i]->rate(size) - from * jobs[i]->left / jobs[i]->rate(from)) /
              (size - sizes[i]);
          if (cost < least) least = cost, best = i, best_size = size;
          break;
        }
      }
      if (best == jobs.size()) return;
      free -= best_size - sizes[best];
      sizes[best] = best_size;
    }
  }

  std::vector<ReferencePromise> promised_;
  std::vector<int> first_;  // what each job has now by its promise
};

}  // namespace gpusched::test
