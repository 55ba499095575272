// SPDX-License-Identifier: Apache-2.0
/// The choices of a learned scheduler made by a fixed order, as rules of the reference simulator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/differential/reference_backfill.hpp"
#include "tests/differential/reference_estimates.hpp"
#include "tests/differential/reference_orders.hpp"
#include "tests/differential/reference_simulator.hpp"

namespace gpusched::test {

/// Run times are single-precision seconds, and 1 where nothing is known.
inline ReferenceOrder agenda_order(const std::string& heuristic) {
  return by_score([heuristic](const ReferenceJob& job, std::int64_t) {
    const auto known = static_cast<double>(static_cast<float>(static_cast<double>(job.believed_us) / 1e6));
    const double run = known > 0 ? known : 1, gpus = static_cast<double>(job.gpus);
    const auto submit = static_cast<double>(job.submit);
    if (heuristic == "fcfs") return submit;
    if (heuristic == "sjf") return run;
    if (heuristic == "saf") return run * gpus;
    return log10_from_tenth(run) * gpus + 870 * log10_from_tenth(submit);
  });
}

/// The modes fit_or_wait and inspect under an order: the first waiting job that fits, again and again.
inline ReferenceList agenda_greedy(const std::string& heuristic, ReferenceEstimator estimator) {
  return {.before = agenda_order(heuristic), .skips = true, .estimator = std::move(estimator)};
}

/// The mode backfill: the first waiting job has a reservation, made anew at every choice from run times that are not
/// corrected; of the others that fit, the first that should end by then, or leaves room for it.
struct ReferenceAgendaBackfill {
  ReferenceBackfill how;

  void operator()(ReferenceSimulator& world) {
    how.observe(world);
    while (start_one(world)) {
    }
  }

 private:
  bool start_one(ReferenceSimulator& world) const {
    const auto waiting = how.waiting(world);
    if (waiting.empty()) return false;
    if (waiting.front()->gpus <= world.free()) {
      start_as_planned(world, *waiting.front());
      return true;
    }
    const auto [reserved, room] = planned_room(world, waiting.front()->gpus);
    for (ReferenceJob* job : waiting) {
      if (job->gpus > world.free()) continue;
      const bool in_time = world.now() + planned_s(*job) <= reserved;
      if (!in_time && job->gpus > room - waiting.front()->gpus) continue;
      start_as_planned(world, *job);
      return true;
    }
    return false;
  }
};

/// The mode select_blocking: the first in order is chosen and then waited for until it fits. With `backfills`, when a
/// choice has to wait, a reservation is made for it from run times that are not corrected, and as long as it waits,
/// others start at every event, in order of submission, that fit and should end strictly before.
struct ReferenceAgendaBlocking {
  ReferenceBackfill how;
  bool backfills = false;
  ReferenceJob* chosen = nullptr;
  std::int64_t reserved = 0;

  void operator()(ReferenceSimulator& world) {
    how.observe(world);
    while (serve_chosen(world)) {
      const auto waiting = how.waiting(world);
      if (waiting.empty()) return;
      chosen = waiting.front();
      if (chosen->gpus > world.free()) reserved = planned_room(world, chosen->gpus).first;
    }
    if (backfills) backfill(world);
  }

 private:
  // False while it has to wait.
  bool serve_chosen(ReferenceSimulator& world) {
    if (chosen == nullptr) return true;
    if (chosen->gpus > world.free()) return false;
    start_as_planned(world, *std::exchange(chosen, nullptr));
    return true;
  }

  void backfill(ReferenceSimulator& world) const {
    auto waiting = world.waiting();
    std::sort(waiting.begin(), waiting.end(), [](auto* a, auto* b) { return a->id < b->id; });
    for (ReferenceJob* job : waiting) {
      if (job == chosen || job->gpus > world.free() || world.now() + planned_s(*job) >= reserved) continue;
      start_as_planned(world, *job);
    }
  }
};

}  // namespace gpusched::test
