// SPDX-License-Identifier: Apache-2.0
/// The policy `carbon` by its definition, second by second, under the signals of tests/support/changing_signals.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/differential/reference_simulator.hpp"
#include "tests/support/changing_signals.hpp"

namespace gpusched::test {

struct ReferenceCarbon {
  std::string rule;
  std::span<const std::int64_t> values = changing_carbon;
  bool perfect = true;  ///< else persistence: a day before the first job it was as at the beginning
  std::string deadline = "none";
  std::int64_t long_wait = 0, short_wait = 0, short_below = 0;  ///< seconds; below it a job is short
  std::int64_t step = 3, slot = 2;
  bool skips = true;
  std::int64_t reserved = 0;

  using Stretch = std::pair<std::int64_t, std::int64_t>;
  std::map<std::int64_t, std::vector<Stretch>> plans = {};  // by job
  std::map<std::int64_t, std::int64_t> latest_ends = {};
  std::map<std::int64_t, bool> holds_reserved = {};

  void operator()(ReferenceSimulator& simulator) {
    const std::int64_t now = simulator.now();
    for (const ReferenceJob* job : simulator.ended()) holds_reserved[job->id] = false;
    for (const ReferenceJob* job : simulator.came()) plans[job->id] = planned(*job, now);
    const std::vector<ReferenceJob*> all = simulator.list();  // stop() reorders it
    for (ReferenceJob* job : all) {
      std::vector<Stretch>& plan = plans[job->id];
      while (plan.size() > 1 && plan.front().second <= now) {
        if (job->running) simulator.stop(*job);
        plan.erase(plan.begin());
      }
    }
    auto waiting = simulator.waiting();
    std::sort(waiting.begin(), waiting.end(), [](auto* a, auto* b) { return a->id < b->id; });
    const auto begin = [&](const ReferenceJob* job) { return plans[job->id].front().first; };
    std::vector<ReferenceJob*> due = waiting;
    std::erase_if(due, [&](auto* job) { return begin(job) > now; });
    std::stable_sort(due.begin(), due.end(), [&](auto* a, auto* b) { return begin(a) < begin(b); });
    for (ReferenceJob* job : due) {
      if (job->gpus <= simulator.free()) {
        holds_reserved[job->id] = fits_reserved(simulator, *job);
        simulator.start(*job);
      } else if (!skips) {
        break;
      }
    }
    for (ReferenceJob* job : waiting) {
      const bool early = begin(job) > now && reserved > 0 && fits_reserved(simulator, *job);
      if (!early || job->gpus > simulator.free()) continue;
      holds_reserved[job->id] = true;
      simulator.start(*job);
    }
    for (const auto& [job, plan] : plans) {
      for (const auto& [from, to] : plan) {
        if (from > now) simulator.wake_at(from);
        if (to > now) simulator.wake_at(to);
      }
    }
  }

 private:
  bool fits_reserved(ReferenceSimulator& simulator, const ReferenceJob& job) {
    std::int64_t held = 0;
    for (const ReferenceJob* other : simulator.running()) held += holds_reserved[other->id] ? other->gpus : 0;
    return held + job.gpus <= reserved;
  }

  [[nodiscard]] std::int64_t value(std::int64_t t) const {
    const auto last = static_cast<std::int64_t>(values.size()) - 1;
    return values[static_cast<std::size_t>(std::clamp<std::int64_t>(t / changing_step_s, 0, last))];
  }
  [[nodiscard]] std::int64_t expected(std::int64_t now, std::int64_t t) const {
    return perfect || t <= now ? value(t) : values.front();
  }
  [[nodiscard]] std::int64_t window(std::int64_t now, std::int64_t begin, std::int64_t length) const {
    std::int64_t sum = 0;
    for (std::int64_t t = begin; t < begin + length; ++t) sum += expected(now, t);
    return sum;
  }

  std::vector<Stretch> planned(const ReferenceJob& job, std::int64_t now) {
    const std::int64_t length = job.remaining;
    if (!latest_ends.contains(job.id)) latest_ends[job.id] = latest_end(job, length);
    const std::int64_t wait = std::max<std::int64_t>(latest_ends[job.id] - now - length, 0);
    if (rule == "ecovisor" || rule == "wait-awhile") return stretches(now, length, wait);
    const std::int64_t begin = start(now, length, wait);
    return {{begin, begin + length}};
  }

  [[nodiscard]] std::int64_t latest_end(const ReferenceJob& job, std::int64_t length) const {
    const std::int64_t end = job.submit + length, nine = 9 * 3600;
    if (deadline == "next-workday") return std::max(end, nine);  // second 0 is midnight of Thursday, 1970-01-01
    if (deadline == "trace") return job.deadline;
    return end + (length < short_below ? short_wait : long_wait);
  }

  [[nodiscard]] std::int64_t start(std::int64_t now, std::int64_t length, std::int64_t wait) const {
    if (rule == "no-wait") return now;
    if (rule == "all-wait") return now + wait;
    std::int64_t best = now;
    const std::int64_t by = rule == "lowest-slot" ? slot : step;
    for (std::int64_t begin = now; begin <= now + wait; begin += by) {
      if (is_better(now, length, begin, best)) best = begin;
    }
    return best;
  }

  [[nodiscard]] bool is_better(std::int64_t now, std::int64_t length, std::int64_t a, std::int64_t b) const {
    if (rule == "lowest-slot") return expected(now, a) < expected(now, b);
    if (rule == "lowest-window") return window(now, a, length) < window(now, b, length);
    const auto saved = [&](std::int64_t begin) { return window(now, now, length) - window(now, begin, length); };
    return saved(a) * (b - now + length) > saved(b) * (a - now + length);
  }

  // The slots in which it runs.
  [[nodiscard]] std::vector<Stretch> stretches(std::int64_t now, std::int64_t length, std::int64_t wait) const {
    const std::int64_t wanted = (length + slot - 1) / slot;
    std::vector<std::int64_t> slots =
        rule == "ecovisor" ? below_threshold(now, wanted, wait / slot) : lowest(now, wanted, wanted + wait / slot);
    std::vector<Stretch> plan;
    for (const std::int64_t begin : slots) {
      if (!plan.empty() && plan.back().second == begin) {
        plan.back().second += slot;
      } else {
        plan.emplace_back(begin, begin + slot);
      }
    }
    plan.back().second -= wanted * slot - length;
    return plan;
  }

  [[nodiscard]] std::vector<std::int64_t> lowest(std::int64_t now, std::int64_t wanted, std::int64_t count) const {
    std::vector<std::int64_t> slots;
    for (std::int64_t i = 0; i < count; ++i) slots.push_back(now + i * slot);
    std::stable_sort(slots.begin(), slots.end(), [&](auto a, auto b) { return expected(now, a) < expected(now, b); });
    slots.resize(static_cast<std::size_t>(wanted));
    std::sort(slots.begin(), slots.end());
    return slots;
  }

  [[nodiscard]] std::vector<std::int64_t> below_threshold(std::int64_t now, std::int64_t wanted,
                                                          std::int64_t budget) const {
    std::vector<std::int64_t> day;
    for (std::int64_t t = now; t < now + 86'400; t += slot) day.push_back(expected(now, t));
    std::sort(day.begin(), day.end());
    const double place = 0.3 * static_cast<double>(day.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const auto low = static_cast<double>(day[below]), high = static_cast<double>(day[below + 1]);
    const double threshold = low + (high - low) * (place - static_cast<double>(below));
    std::vector<std::int64_t> slots;
    for (std::int64_t t = now; static_cast<std::int64_t>(slots.size()) < wanted; t += slot) {
      if (static_cast<double>(value(t)) >= threshold && budget-- > 0) continue;
      slots.push_back(t);
    }
    return slots;
  }
};

}  // namespace gpusched::test
