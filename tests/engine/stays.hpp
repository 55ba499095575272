// SPDX-License-Identifier: Apache-2.0
/// Jobs that come and go at random, and a log of who was on which cards.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/engine/decision.hpp"

namespace gpusched::test {

/// Starts, preempts and moves at random, with any placement.
struct Restless {
  Rng rng;
  Time next{};  // the wake that is due

  [[nodiscard]] static std::string_view name() { return "restless"; }

  void decide(const View& view, Decision& decision) {
    std::vector<JobId> running(view.running().begin(), view.running().end());
    const std::vector<JobId> waiting(view.queue(0).begin(), view.queue(0).end());
    for (const JobId job : running) {
      const double what = rng.uniform();
      if (what < 0.1) {
        EXPECT_EQ(decision.preempt(job), Verdict::ok);
      } else if (what < 0.25) {
        EXPECT_EQ(decision.vacate(job), Verdict::ok);
        if (!move(view, decision, job)) {
          EXPECT_EQ(decision.preempt(job), Verdict::ok);
        }
      }
    }
    for (const JobId job : waiting) {
      if (rng.uniform() < 0.6) decision.start(job, Placement::random);
    }
    if (view.finished() < view.job_count() && next <= view.now()) {
      next = view.now() + Time{1 + static_cast<std::int64_t>(rng.below(9'000'000))};
      EXPECT_EQ(decision.wake(next), Verdict::ok);
    }
  }

  bool move(const View& view, Decision& decision, JobId job) {
    std::vector<NodeTasks> choice;
    for (std::uint32_t task = 0; task < view.shape(job).tasks; ++task) {
      choice.push_back(
          {.node = NodeId{static_cast<std::uint32_t>(rng.below(view.cluster().node_count()))}, .tasks = 1});
      if (view.shape(job).is_share()) {
        choice.back().device = static_cast<std::uint32_t>(rng.below(view.cluster().node_gpus(choice.back().node)));
      }
    }
    return decision.move_on(job, choice) == Verdict::ok;
  }
};

/// Who was on which cards, from when to when.
struct Stay {
  JobId job;
  std::vector<std::uint32_t> cards;  ///< one entry a task for shares
  std::vector<std::uint8_t> slices;  ///< of each, as Grant::slice
  Time begin{}, end = Time::max();
};
struct StayLog {
  std::vector<Stay> stays;

  void observe(const OracleView& view, std::span<const Event> events) {
    for (const Event& event : events) {
      const bool begins = event.kind == EventKind::start || event.kind == EventKind::move;
      const bool ends = leaves_cluster(event.kind) || event.kind == EventKind::preempt || event.kind == EventKind::move;
      for (Stay& stay : stays) {
        if (ends && stay.job == event.job && stay.end == Time::max()) stay.end = view.now();
      }
      if (!begins) continue;
      stays.push_back({.job = event.job, .cards = {}, .slices = {}, .begin = view.now()});
      view.for_each_grant(event.job, [&](const Grant& grant) {
        for (std::uint64_t bits = grant.devices; bits != 0; bits &= bits - 1) {
          stays.back().cards.push_back(
              view.cluster().card(grant.node, static_cast<std::uint32_t>(std::countr_zero(bits))));
          stays.back().slices.push_back(grant.slice);
        }
      });
    }
  }
};

}  // namespace gpusched::test
