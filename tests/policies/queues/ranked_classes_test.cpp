// SPDX-License-Identifier: Apache-2.0
#include "src/policies/queues/ranked_classes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/differential/check_many.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched {
namespace {

using Kind = RankedClasses::Kind;

/// Users are members, of parties that several share. A party's score is its standing and something on top, less one at
/// every tick of the clock, at each second or each third; a start raises the standing of its party and the rank of its
/// user, and may lower another party's standing.
struct Scores {
  std::map<std::uint32_t, int> standing, on_top;  // by party
  std::map<std::uint32_t, int> rank;              // by user

  int clock = 0;
  bool starts_lower = false;

  static int period(std::uint32_t party) { return 1 + static_cast<int>(party % 3); }
  int of(std::uint32_t party) { return standing[party] + on_top[party] - clock / period(party); }

  static std::uint32_t party_of(std::uint32_t user) { return user / 2; }
  static std::uint32_t after(std::uint32_t party) { return (party + 1) % 4; }
  void start(std::uint32_t party, std::uint32_t user) {
    ++standing[party];
    ++rank[user];
    if (starts_lower) standing[after(party)] -= 2;
  }
};

struct ByScore : RankedOrder {
  using Score = std::tuple<int, std::int64_t, QueuePlace>;
  explicit ByScore(Scores* of) : scores(of) {}
  [[nodiscard]] std::int64_t major(const RankedClasses::Class& of) const { return scores->rank[of.member]; }
  [[nodiscard]] static std::int64_t minor(const RankedClasses::Class&) { return 0; }
  [[nodiscard]] double standing(std::uint32_t party) const { return scores->standing[party]; }
  [[nodiscard]] Score score(const RankedClasses::Class& of) const {
    return {scores->of(of.party), of.rank.major, of.rank.first};
  }
  [[nodiscard]] double clock() const { return scores->clock; }
  // What is far from the best looks ahead by half of the way.
  [[nodiscard]] RankedClasses::Outlook outlook(const RankedClasses::Class& of, double best) const {
    const int now = scores->of(of.party), period = Scores::period(of.party);
    const int lacks = now > best ? static_cast<int>(std::min(now - best, 8.0)) / 2 : 0;
    return {.now = double(now),
            .least = double(now - lacks),
            .until = double((scores->clock / period + lacks + 1) * period)};
  }
  [[nodiscard]] Score bound(const RankedClasses::Least& least) const {
    const double part = std::max(least.outlook.first, least.standing - scores->clock);
    return {static_cast<int>(part), least.rank.major, least.rank.first};
  }
  Scores* scores;
};

using Attempts = std::vector<std::pair<JobId, Attempt>>;

Attempt attempt(std::map<Kind, int>& room, const Kind& kind) {
  return room[kind]-- > 0 ? Attempt::started : Attempt::no_room;
}

/// The same by going through all waiting jobs for each attempt. With `knows_room`, kinds without room are left out.
Attempts plain_attempts(const View& view, std::set<JobId>& waiting, bool knows_room, std::map<Kind, int> room,
                        Scores scores) {
  std::set<Kind> blocked;
  for (const auto& [kind, starts] : room) {
    if (knows_room && starts == 0) blocked.insert(kind);
  }
  Attempts made;
  for (;;) {
    JobId best = no_job;
    const auto score = [&](JobId job) {
      const std::uint32_t party = Scores::party_of(view.user(job));
      return std::tuple(scores.of(party), scores.rank[view.user(job)], job);
    };
    for (const JobId job : waiting) {
      if (blocked.contains({view.queue_of(job), view.demand(job)})) continue;
      if (best == no_job || score(job) < score(best)) best = job;
    }
    if (best == no_job) return made;
    const Kind kind{view.queue_of(best), view.demand(best)};
    made.emplace_back(best, attempt(room, kind));
    if (made.back().second == Attempt::no_room) {
      blocked.insert(kind);
      continue;
    }
    waiting.erase(best);
    scores.start(Scores::party_of(view.user(best)), view.user(best));
  }
}

std::vector<test::Row> any_rows() {
  const auto row = rc::gen::build<test::Row>(
      rc::gen::set(&test::Row::gpus, rc::gen::element(1u, 2u, 4u)),
      rc::gen::set(&test::Row::user, rc::gen::element<std::string_view>("a", "b", "c", "d", "e", "f", "g")),
      rc::gen::set(&test::Row::vc, rc::gen::element<std::string_view>("v", "w")),
      rc::gen::set(&test::Row::priority, rc::gen::element<std::int32_t>(1, 2)));
  return *rc::gen::nonEmpty(rc::gen::container<std::vector<test::Row>>(row));
}

// Whoever waits, whatever changes between the instants and whatever is refused: the same attempts in the same order.
TEST(RankedClasses, TriesWhatALookAtEveryWaitingJobWouldTry) {
  test::check_many(3000, [] {
    const JobTable jobs = test::table_of(any_rows());
    Cluster cluster = Cluster::pool(64);
    cluster.vcs = {{.name = "v"}, {.name = "w"}};
    Engine engine(jobs, cluster);
    engine.advance();
    const View view = engine.view();
    RankedClasses classes;
    Scores scores;
    const ByScore order{&scores};
    std::set<JobId> waiting;
    const int passes = *rc::gen::inRange(1, 6);
    for (int pass = 0; pass < passes; ++pass) {
      scores.clock += *rc::gen::inRange(0, 4);
      for (std::uint32_t user = 1; user < jobs.users().size(); ++user) {
        if (*rc::gen::arbitrary<bool>()) continue;
        const std::uint32_t party = Scores::party_of(user);
        scores.standing[party] = *rc::gen::inRange(0, 4);
        scores.on_top[party] = *rc::gen::inRange(0, 3);
        scores.rank[user] = *rc::gen::inRange(0, 3);
        classes.reorder_party(party, order);
        classes.reorder_member(user, order);
      }
      std::map<Kind, int> room;
      for (std::uint32_t i = 0; i < jobs.size(); ++i) {
        const JobId job{i};
        const std::uint32_t user = view.user(job);
        room[{view.queue_of(job), view.demand(job)}] = *rc::gen::inRange(0, 4);
        if (!*rc::gen::arbitrary<bool>()) continue;
        if (waiting.insert(job).second) {
          classes.push(view, job, Scores::party_of(user), user, order);
        } else if (*rc::gen::arbitrary<bool>()) {
          waiting.erase(job);
          classes.erase(view, job, order);
        }
      }
      const bool knows_room = *rc::gen::arbitrary<bool>();
      scores.starts_lower = *rc::gen::arbitrary<bool>();
      const Attempts expected = plain_attempts(view, waiting, knows_room, room, scores);
      const auto may_fit = [&](const Kind& kind) { return !knows_room || room[kind] > 0; };
      Attempts made;
      classes.start_best(order, may_fit, [&](const RankedClasses::Class& of) {
        made.emplace_back(of.first(), attempt(room, {of.queue, of.demand}));
        if (made.back().second == Attempt::no_room) return Attempt::no_room;
        scores.start(of.party, of.member);
        classes.reorder_party(of.party, order);
        classes.reorder_party(Scores::after(of.party), order);
        classes.reorder_member(of.member, order);
        return scores.starts_lower ? Attempt::started_anew : Attempt::started;
      });
      RC_ASSERT(made == expected);
      std::set<JobId> left;
      classes.for_each([&](const RankedClasses::Class& of) {
        for (const QueuePlace& place : of.jobs) left.insert(place.job);
      });
      RC_ASSERT(left == waiting);
    }
  });
}

// Of many users, the next is found without a look at each.
TEST(RankedClasses, AStartCostsTheLogarithmOfTheNumberOfParties) {
  constexpr std::uint32_t users = 8192, starts = 1000;
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < users; ++i) names.push_back("u" + std::to_string(i));
  std::vector<test::Row> rows;
  for (const std::string& name : names) rows.push_back({.user = name});
  const JobTable jobs = test::table_of(rows);
  Engine engine(jobs, Cluster::pool(1));
  engine.advance();
  const View view = engine.view();
  RankedClasses classes;
  Scores scores;
  const ByScore order{&scores};
  for (std::uint32_t i = 0; i < users; ++i) {
    scores.standing[i] = static_cast<int>(i * 7919 % users);
    classes.push(view, JobId{i}, i, 0, order);
  }
  int room = starts, last = -1;
  classes.start_best(
      order, [](const Kind&) { return true; },
      [&](const RankedClasses::Class& of) {
        EXPECT_GT(scores.standing[of.party], last);
        last = scores.standing[of.party];
        return room-- > 0 ? Attempt::started : Attempt::no_room;
      });
  EXPECT_EQ(room, -1);
  EXPECT_LE(classes.scored(), (starts + 1) * (2 * 13 + 1));  // both children of each node on the way, and the leaf
}

}  // namespace
}  // namespace gpusched
