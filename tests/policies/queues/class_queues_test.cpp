// SPDX-License-Identifier: Apache-2.0
#include "src/policies/queues/class_queues.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/differential/check_many.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched {
namespace {

using Kind = std::pair<std::uint32_t, std::uint32_t>;  // scheduling queue, shape

/// What decides an attempt: starts that are left, by kind and by owner. A start raises its owner's score.
struct Limits {
  std::map<Kind, int> room;
  std::map<std::uint32_t, int> allowed;
  std::map<std::uint32_t, int> scores;

  Attempt attempt(const Kind& kind, std::uint32_t owner) {
    if (room[kind] == 0) return Attempt::no_room;
    if (allowed[owner] == 0) return Attempt::not_allowed;
    --room[kind];
    --allowed[owner];
    ++scores[owner];
    return Attempt::started;
  }
};

using Attempts = std::vector<std::pair<JobId, Attempt>>;

/// The same by going through all waiting jobs for each attempt. With `knows_room`, kinds without room are left out.
class PlainClasses {
 public:
  explicit PlainClasses(const View& view) : view_(view) {}

  std::set<JobId> waiting;

  Attempts start_best(bool skip, bool knows_room, Limits limits) {
    std::set<Kind> blocked;
    std::set<std::tuple<std::uint32_t, std::int32_t, Kind>> given_up;
    for (const JobId job : waiting) {
      if (knows_room && limits.room[kind_of(job)] == 0) blocked.insert(kind_of(job));
    }
    Attempts made;
    for (;;) {
      JobId best = no_job;
      for (const JobId job : waiting) {
        if (blocked.contains(kind_of(job)) || given_up.contains(class_of(job))) continue;
        if (best == no_job || limits.scores[view_.user(job)] < limits.scores[view_.user(best)]) best = job;
      }
      if (best == no_job) return made;
      made.emplace_back(best, limits.attempt(kind_of(best), view_.user(best)));
      if (made.back().second == Attempt::started) waiting.erase(best);
      if (made.back().second == Attempt::not_allowed) given_up.insert(class_of(best));
      if (made.back().second != Attempt::no_room) continue;
      for (std::uint32_t shape = 0; shape < view_.demand_count(); ++shape) {
        if (!skip || shape == view_.demand(best)) blocked.insert({view_.queue_of(best), shape});
      }
    }
  }

 private:
  [[nodiscard]] Kind kind_of(JobId job) const { return {view_.queue_of(job), view_.demand(job)}; }
  [[nodiscard]] std::tuple<std::uint32_t, std::int32_t, Kind> class_of(JobId job) const {
    return {view_.user(job), view_.priority(job), kind_of(job)};
  }

  const View& view_;
};

std::vector<test::Row> any_rows() {
  const auto row =
      rc::gen::build<test::Row>(rc::gen::set(&test::Row::gpus, rc::gen::element(1u, 2u, 4u)),
                                rc::gen::set(&test::Row::user, rc::gen::element<std::string_view>("ann", "bob", "cid")),
                                rc::gen::set(&test::Row::vc, rc::gen::element<std::string_view>("a", "b")),
                                rc::gen::set(&test::Row::priority, rc::gen::element<std::int32_t>(1, 2)));
  return *rc::gen::nonEmpty(rc::gen::container<std::vector<test::Row>>(row));
}

// Whoever waits, and whatever is refused for lack of room or by the policy: the same attempts in the same order.
TEST(ClassQueues, TriesWhatALookAtEveryWaitingJobWouldTry) {
  test::check_many(3000, [] {
    const JobTable jobs = test::table_of(any_rows());
    Cluster cluster = Cluster::pool(64);
    cluster.vcs = {{.name = "a"}, {.name = "b"}};
    Engine engine(jobs, cluster);
    engine.advance();
    const View view = engine.view();
    ClassQueues queues;
    PlainClasses plain(view);
    const int passes = *rc::gen::inRange(1, 5);
    for (int pass = 0; pass < passes; ++pass) {
      for (std::uint32_t i = 0; i < jobs.size(); ++i) {
        if (!*rc::gen::arbitrary<bool>() || !plain.waiting.insert(JobId{i}).second) continue;
        queues.push(view, JobId{i}, view.user(JobId{i}));
      }
      Limits limits;
      for (const JobId job : plain.waiting) {
        limits.room[{view.queue_of(job), view.demand(job)}] = *rc::gen::inRange(0, 4);
        limits.allowed[view.user(job)] = *rc::gen::inRange(0, 6);
        limits.scores[view.user(job)] = *rc::gen::inRange(0, 3);
      }
      const bool skip = *rc::gen::arbitrary<bool>(), knows_room = skip && *rc::gen::arbitrary<bool>();
      const Attempts expected = plain.start_best(skip, knows_room, limits);
      Attempts made;
      const auto score = [&](const ClassQueues::Class& of) { return limits.scores[of.owner]; };
      const auto attempt = [&](const ClassQueues::Class& of) {
        const JobId job = of.first();
        made.emplace_back(job, limits.attempt({of.queue, of.demand}, of.owner));
        return made.back().second;
      };
      if (knows_room) {
        const auto may_fit = [&](std::uint32_t queue, std::uint32_t shape) { return limits.room[{queue, shape}] > 0; };
        queues.start_best(skip, may_fit, score, attempt);
      } else {
        queues.start_best(skip, score, attempt);
      }
      RC_ASSERT(made == expected);
      std::set<JobId> left;
      queues.for_each([&](const ClassQueues::Class& of) {
        for (const QueuePlace& place : of.jobs) left.insert(place.job);
      });
      RC_ASSERT(left == plain.waiting);
    }
  });
}

}  // namespace
}  // namespace gpusched
