// SPDX-License-Identifier: Apache-2.0
/// The policy `carbonscaler` by its definition: jobs of one-GPU tasks on one pool, whose sizes change at no cost, under
/// the signals of tests/support/changing_signals.hpp. Times are seconds as double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "tests/support/changing_signals.hpp"

namespace gpusched::test {

struct ReferenceScaledJob {
  std::int64_t submit = 0, work = 0;
  std::int64_t latest_end = 0;
  std::vector<double> rates = {};  ///< with 1, 2, ... GPUs; of a rigid job, only that size's > 0
  double left = 0, end = -1;
  int size = 0, wanted = 0;
  bool arrived = false, grows = false;
  std::vector<int> plan = {};  ///< sizes by slot; empty: it hurries
  std::size_t at = 0;
  double slot = 0, boundary = std::numeric_limits<double>::infinity();
  double planned_left = 0;

  [[nodiscard]] bool is_here() const { return arrived && end < 0; }
  [[nodiscard]] int most() const { return static_cast<int>(rates.size()); }
  [[nodiscard]] double rate(int gpus) const { return gpus == 0 ? 0 : rates[static_cast<std::size_t>(gpus) - 1]; }
  [[nodiscard]] int least() const {
    int gpus = 1;
    while (rate(gpus) == 0) ++gpus;
    return gpus;
  }
};

class ReferenceCarbonScaler {
 public:
  std::span<const std::int64_t> values = changing_carbon;
  bool perfect = true;  ///< else persistence: a day before the first job it was as at the beginning
  std::int64_t slot_s = 4;

  void play(std::vector<ReferenceScaledJob>& jobs, int gpus) {
    for (ReferenceScaledJob& job : jobs) job.left = static_cast<double>(job.work);
    double now = -never;
    for (;;) {
      const double next = next_event(jobs, now);
      if (next == never) return;
      for (ReferenceScaledJob& job : jobs) pass(job, next, now);
      now = next;
      for (ReferenceScaledJob& job : jobs) {
        const bool comes = !job.arrived && static_cast<double>(job.submit) <= now;
        job.arrived = job.arrived || comes;
        if (comes) plan(job, now);
      }
      for (ReferenceScaledJob& job : jobs) {
        if (job.is_here() && job.boundary <= now) begin_slot(job, now);
      }
      int free = gpus;
      for (ReferenceScaledJob& job : jobs) {
        if (job.is_here()) job.size = std::min(job.size, job.wanted);  // shrinks, or is suspended
        if (job.is_here()) free -= job.size;
      }
      give(jobs, free);
    }
  }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  static constexpr double negligible = 1e-3, rounding = 3e-6;

  static double next_event(const std::vector<ReferenceScaledJob>& jobs, double now) {
    double next = never;
    for (const ReferenceScaledJob& job : jobs) {
      if (!job.arrived) next = std::min(next, static_cast<double>(job.submit));
      if (job.is_here()) next = std::min(next, job.boundary);
      if (job.is_here() && job.size > 0) next = std::min(next, now + job.left / job.rate(job.size));
    }
    return next;
  }

  static void pass(ReferenceScaledJob& job, double next, double now) {
    if (!job.is_here() || job.size == 0) return;
    job.left -= job.rate(job.size) * (next - now);
    if (job.left < rounding) job.end = next, job.size = 0;
  }

  // The figure at a whole second.
  [[nodiscard]] std::int64_t value(std::int64_t second) const {
    const auto last = static_cast<std::int64_t>(values.size()) - 1;
    return values[static_cast<std::size_t>(std::clamp<std::int64_t>(second / changing_step_s, 0, last))];
  }

  // Its expected mean over a slot; both begin at whole seconds. Of persistence only the present microsecond is known.
  [[nodiscard]] double mean(double now, double begin, double length) const {
    const auto first = static_cast<std::int64_t>(begin), seconds = static_cast<std::int64_t>(length);
    std::int64_t sum = 0;  // times microseconds
    for (std::int64_t second = first; second < first + seconds; ++second) {
      sum += 1'000'000 * (perfect ? value(second) : values.front());
    }
    if (!perfect && begin == now) sum += value(first) - values.front();
    return static_cast<double>(sum) / (static_cast<double>(seconds) * 1e6);
  }

  // Replica by replica, each where it gains most for what it emits, found by trying all slots; those that emit nothing,
  // or save, come first, the most saved for what they gain before the others.
  void plan(ReferenceScaledJob& job, double now) {
    job.plan.clear();
    job.at = 0;
    const double span = static_cast<double>(job.latest_end) - now;
    const auto count = static_cast<std::int64_t>(std::max(std::floor(span / static_cast<double>(slot_s)), 1.0));
    job.slot = std::min(static_cast<double>(slot_s), span);
    double done = 0;
    const double work = std::max(job.left - negligible, 1e-6) / 3600;
    std::vector<int> sizes(static_cast<std::size_t>(span > 0 ? count : 0), 0);
    while (done < work * (1 - 1e-12)) {
      std::size_t best = sizes.size();
      std::pair<bool, double> best_worth{false, 0};
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        const int next = sizes[i] == 0 ? job.least() : sizes[i] + 1;
        if (next > job.most()) continue;
        const double gain = job.rate(next) - job.rate(sizes[i]);
        const double emits = (next - sizes[i]) * mean(now, now + static_cast<double>(i) * job.slot, job.slot);
        const bool is_free = emits <= 0;
        const std::pair<bool, double> worth{is_free, is_free ? -emits / gain : gain / emits};
        if (gain > 0 && worth > best_worth) best_worth = worth, best = i;
      }
      if (best == sizes.size()) return hurry(job, now);
      const int next = sizes[best] == 0 ? job.least() : sizes[best] + 1;
      done += (job.rate(next) - job.rate(sizes[best])) * job.slot / 3600;
      sizes[best] = next;
    }
    job.plan = sizes;
    enter(job, now);
  }

  void hurry(ReferenceScaledJob& job, double now) const {
    job.wanted = job.least();
    for (int gpus = job.least(); gpus <= job.most(); ++gpus) {
      if (job.rate(gpus) > job.rate(job.wanted)) job.wanted = gpus;
    }
    job.grows = true;
    job.boundary = now + static_cast<double>(slot_s);
  }

  static void enter(ReferenceScaledJob& job, double now) {
    job.wanted = job.plan[job.at];
    job.grows = true;
    job.boundary = now + job.slot;
    job.planned_left = std::max(job.left - job.rate(job.wanted) * job.slot, 0.0);
  }

  void begin_slot(ReferenceScaledJob& job, double now) {
    if (job.left <= negligible && job.size > 0) {
      job.boundary = never;
      return;
    }
    const bool as_planned = std::abs(job.left - job.planned_left) <= negligible;
    if (!perfect || !as_planned || job.at + 1 >= job.plan.size()) return plan(job, now);
    ++job.at;
    enter(job, now);
  }

  // By latest end, then as they came; who runs grows when its slot begins only.
  static void give(std::vector<ReferenceScaledJob>& jobs, int free) {
    std::vector<ReferenceScaledJob*> turns;
    for (ReferenceScaledJob& job : jobs) {
      if (job.is_here() && job.size < job.wanted && (job.size == 0 || job.grows)) turns.push_back(&job);
    }
    std::stable_sort(turns.begin(), turns.end(), [](const ReferenceScaledJob* a, const ReferenceScaledJob* b) {
      return a->latest_end < b->latest_end;
    });
    for (ReferenceScaledJob* job : turns) {
      const int before = job->size, most = std::min(job->wanted, before + free);
      if (most < job->least()) continue;
      job->size = most;
      free -= most - before;
    }
    for (ReferenceScaledJob& job : jobs) job.grows = false;
  }
};

}  // namespace gpusched::test
