// SPDX-License-Identifier: Apache-2.0
/// Rules of the reference simulator that are an order of jobs: sorted anew at every choice.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "tests/differential/reference_estimates.hpp"
#include "tests/differential/reference_simulator.hpp"

namespace gpusched::test {

/// True when the first job comes before the second at this second. A total order.
using ReferenceOrder = std::function<bool(const ReferenceJob&, const ReferenceJob&, std::int64_t now)>;
using ReferenceKey = std::function<std::int64_t(const ReferenceJob&)>;

/// Smallest score first, ties by id. `score(job, now)` may be of any type that has an order.
template <class Score>
ReferenceOrder by_score(Score score) {
  return [score](const ReferenceJob& a, const ReferenceJob& b, std::int64_t now) {
    const auto score_a = score(a, now), score_b = score(b, now);
    return score_a != score_b ? score_a < score_b : a.id < b.id;
  };
}

inline ReferenceOrder by_key(ReferenceKey key) {
  return by_score([key = std::move(key)](const ReferenceJob& job, std::int64_t) { return key(job); });
}

inline double believed_s(const ReferenceJob& job) {
  return static_cast<double>(std::max<std::int64_t>(job.believed_us, 1)) / 1e6;
}

// The scores of golden-result tables and papers, with r = requested seconds, n = GPUs, s = submission, w = wait.
inline double log10_from_tenth(double x) { return std::log10(x > 0 ? x : 0.1); }
inline ReferenceOrder regressed(int number) {
  return by_score([number](const ReferenceJob& job, std::int64_t) {
    const double r = believed_s(job), n = static_cast<double>(job.gpus);
    const double log_s = log10_from_tenth(static_cast<double>(job.submit));
    if (number == 1) return log10_from_tenth(r) * n + 870 * log_s;
    if (number == 2) return std::sqrt(r) * n + 25600 * log_s;
    if (number == 3) return r * n + 6860000 * log_s;
    return r * std::sqrt(n) + 530000 * log_s;
  });
}

// run_time ln(r) + gpus ln(n) - wait x hours waited, where all have waited to the same hour.
inline ReferenceOrder weighted(double run_time, double gpus, double wait) {
  return by_score([=](const ReferenceJob& job, std::int64_t) {
    return run_time * std::log(believed_s(job)) + gpus * std::log(static_cast<double>(job.gpus)) +
           wait / 3600 * static_cast<double>(job.submit);
  });
}

/// Greatest growth x wait first, which is the order of the score. `growth` is rounded to a double, the product is not.
inline ReferenceOrder by_growth(std::function<double(const ReferenceJob&)> growth) {
  return by_score([growth = std::move(growth)](const ReferenceJob& job, std::int64_t now) {
    static_assert(std::numeric_limits<long double>::digits >= 64, "a product of 53 and 11 bits is exact");
    return -static_cast<long double>(growth(job)) * static_cast<long double>(now - job.submit);
  });
}

inline ReferenceOrder wfp3_order() {
  return by_growth([](const ReferenceJob& job) { return std::cbrt(static_cast<double>(job.gpus)) / believed_s(job); });
}
inline double unicep_divisor(const ReferenceJob& job) {
  return std::log2(static_cast<double>(job.gpus) + 1e-15) * believed_s(job);
}
inline ReferenceOrder unicep_order() {
  return by_growth([](const ReferenceJob& job) { return 1 / unicep_divisor(job); });
}

/// The quirk of RLScheduler's program: the wait is -1 - submit.
inline ReferenceOrder wfp3_sc20_order() {
  return by_score([](const ReferenceJob& job, std::int64_t) {
    const double ratio = static_cast<double>(-1 - job.submit) / believed_s(job);
    return -(ratio * ratio * ratio) * static_cast<double>(job.gpus);
  });
}
inline ReferenceOrder unicep_sc20_order() {
  return by_score([](const ReferenceJob& job, std::int64_t) {
    return -(static_cast<double>(-1 - job.submit) + 1e-15) / unicep_divisor(job);
  });
}

/// Starts waiting jobs in order; the first that does not fit blocks, or is passed over.
struct ReferenceList {
  ReferenceOrder before;
  bool skips = false;
  ReferenceEstimator estimator = {};

  void operator()(ReferenceSimulator& world) {
    estimator.observe(world);
    while (start_one(world)) {
    }
  }

 private:
  bool start_one(ReferenceSimulator& world) const {
    auto waiting = world.waiting();
    std::sort(waiting.begin(), waiting.end(), [&](auto* a, auto* b) { return before(*a, *b, world.now()); });
    for (ReferenceJob* job : waiting) {
      if (job->gpus <= world.free()) {
        world.start(*job);
        return true;
      }
      if (!skips) return false;
    }
    return false;
  }
};

/// Gives all jobs, running ones too, the cluster anew, in order of the key: a stable sort, in place, of the list that
/// the event before left.
struct ReferencePreemptive {
  ReferenceKey key;

  void operator()(ReferenceSimulator& world) const {
    sort(world.list());
    std::int64_t free = world.gpus();
    std::vector<ReferenceJob*> chosen;
    for (ReferenceJob* job : world.list()) {
      if (job->gpus > free) continue;
      free -= job->gpus;
      chosen.push_back(job);
    }
    world.run_only(chosen);
    sort(world.list());  // preemption costs changed keys
  }

 private:
  void sort(std::vector<ReferenceJob*>& list) const {
    std::stable_sort(list.begin(), list.end(), [&](auto* a, auto* b) { return key(*a) < key(*b); });
  }
};

/// Priority classes: in order of submission - class x aging. The first that does not fit blocks; it stops running jobs
/// of lower classes behind it, the last first, until it fits, or none if that does not help. Of those that it stopped,
/// the first in order that still fit run on.
struct ReferencePriority {
  std::int64_t aging = 0;
  bool preempts = true;

  void operator()(ReferenceSimulator& world) const {
    for (;;) {
      auto all = world.list();
      std::sort(all.begin(), all.end(), [&](auto* a, auto* b) { return place(*a) < place(*b); });
      const auto head = std::find_if(all.begin(), all.end(), [](auto* job) { return !job->running; });
      if (head == all.end() || !admit(world, **head, all)) return;
    }
  }

 private:
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> place(const ReferenceJob& job) const {
    return {job.submit - job.priority * aging, job.id};
  }

  bool admit(ReferenceSimulator& world, ReferenceJob& head, const std::vector<ReferenceJob*>& all) const {
    std::int64_t free = world.free();
    std::vector<ReferenceJob*> victims;
    for (auto job = all.rbegin(); job != all.rend() && free < head.gpus && preempts; ++job) {
      if (!(*job)->running || place(**job) < place(head) || (*job)->priority >= head.priority) continue;
      free += (*job)->gpus;
      victims.push_back(*job);
    }
    if (free < head.gpus) return false;
    free -= head.gpus;
    std::reverse(victims.begin(), victims.end());
    for (ReferenceJob* victim : victims) {
      if (victim->gpus <= free) {
        free -= victim->gpus;
      } else {
        world.stop(*victim);
      }
    }
    world.start(head);
    return true;
  }
};

/// Every job at its recorded start, or as soon as it fits from then on, the earliest recorded first; one that goes on
/// with its next attempt is due when it comes back.
struct ReferenceAsRecorded {
  std::map<std::int64_t, std::int64_t> due = {};  // of waiting jobs

  void operator()(ReferenceSimulator& simulator) {
    for (const ReferenceJob* job : simulator.came()) {
      due[job->id] = job->attempt > 0 ? simulator.now() : job->recorded_start;
    }
    auto waiting = simulator.waiting();
    std::sort(waiting.begin(), waiting.end(), [&](const ReferenceJob* a, const ReferenceJob* b) {
      return std::pair(due[a->id], a->id) < std::pair(due[b->id], b->id);
    });
    for (ReferenceJob* job : waiting) {
      if (due[job->id] > simulator.now()) {
        simulator.wake_at(due[job->id]);
      } else if (job->gpus <= simulator.free()) {
        simulator.start(*job);
      }
    }
  }
};

}  // namespace gpusched::test
