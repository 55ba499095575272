// SPDX-License-Identifier: Apache-2.0
// Kueue's quotas by examples worked out by hand, after kueue.sigs.k8s.io/docs/concepts, and random worlds against a
// plain reading of the same rules.
#include "src/policies/fair/kueue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/watch/history_hash.hpp"
#include "tests/policies/policy_support.hpp"
#include "tests/policies/random_world.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

constexpr std::uint64_t usual_worlds = 150;

const Cluster eight = Cluster::pool(8);

// Six GPUs of queue a, of which it has four, and ten seconds later four of queue b.
JobTable lent(std::int32_t priority_of_b = 0) {
  return table_of({{.submit = 0, .work = 100, .gpus = 6, .vc = "a"},
                   {.submit = 10, .work = 20, .gpus = 4, .vc = "b", .priority = priority_of_b}});
}

TEST(Kueue, AQueueBorrowsWhatOthersLeaveIdle) {
  EXPECT_EQ(run_policy("kueue", lent(), eight), (Spans{{0, 100}, {100, 120}}));
}

TEST(Kueue, WhatWasLentIsReclaimed) {
  EXPECT_EQ(run_policy("kueue{reclaim=any}", lent(), eight), (Spans{{0, 120}, {10, 30}}));
  EXPECT_EQ(run_policy("kueue{reclaim=lower}", lent(), eight), (Spans{{0, 100}, {100, 120}}));
  EXPECT_EQ(run_policy("kueue{reclaim=lower}", lent(1), eight), (Spans{{0, 120}, {10, 30}}));
  EXPECT_EQ(run_policy("kueue{within=lower}", lent(1), eight), (Spans{{0, 100}, {100, 120}}));
}

// Job 2 is the last of those that borrow, but job 1 must go, too; then job 2 need not.
TEST(Kueue, WhoNeedNotGoStays) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 4, .vc = "a"},
                                  {.submit = 1, .work = 100, .gpus = 3, .vc = "a"},
                                  {.submit = 2, .work = 100, .gpus = 1, .vc = "a"},
                                  {.submit = 10, .work = 20, .gpus = 3, .vc = "b"}});
  EXPECT_EQ(run_policy("kueue{reclaim=any}", jobs, eight), (Spans{{0, 100}, {1, 121}, {2, 102}, {10, 30}}));
}

// At 100 the 4 GPUs of job 1 and, borrowed, those of job 2 come before job 3, which is within its queue's quota: what
// was lent at that instant is taken back at it.
TEST(Kueue, WhatIsLentAtAnInstantIsReclaimedAtIt) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 8, .vc = "a"},
                                  {.submit = 30, .work = 1000, .gpus = 4, .vc = "a", .priority = 1},
                                  {.submit = 41, .work = 1000, .gpus = 3, .vc = "b"},
                                  {.submit = 71, .work = 1000, .gpus = 3, .vc = "a"}});
  const Spans spans = run_policy("kueue{nominal_gpus=[a=7,b=1],reclaim=any}", jobs, eight);
  EXPECT_EQ(spans[1], (Span{100, 1100}));
  EXPECT_EQ(spans[3], (Span{100, 1100}));
  EXPECT_EQ(spans[2], (Span{1100, 2100}));
}

TEST(Kueue, BorrowingAndLendingHaveLimits) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 4, .vc = "a"},
                                  {.submit = 0, .work = 50, .gpus = 2, .vc = "a"},
                                  {.submit = 0, .work = 10, .gpus = 1, .vc = "b"}});
  EXPECT_EQ(run_policy("kueue", jobs, eight)[1], (Span{0, 50}));
  EXPECT_EQ(run_policy("kueue{borrowing_gpus=[a=1]}", jobs, eight)[1], (Span{100, 150}));
  EXPECT_EQ(run_policy("kueue{lending_gpus=[b=1]}", jobs, eight)[1], (Span{100, 150}));
  EXPECT_EQ(run_policy("kueue{lending_gpus=[b=2]}", jobs, eight)[1], (Span{0, 50}));
  EXPECT_EQ(run_policy("kueue{nominal_gpus=[a=6]}", jobs, eight)[1], (Span{0, 50}));
}

TEST(Kueue, WhoNeedNotBorrowGoesFirst) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 6, .vc = "a", .priority = 5},
                                  {.submit = 0, .work = 50, .gpus = 4, .vc = "b"}});
  EXPECT_EQ(run_policy("kueue", jobs, eight), (Spans{{50, 150}, {0, 50}}));
  EXPECT_EQ(run_policy("kueue{nominal_gpus=[a=6]}", jobs, eight), (Spans{{0, 100}, {100, 150}}));
}

TEST(Kueue, AJobThatCannotStartHoldsUpItsQueueIfStrict) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 6, .vc = "a"},
                                  {.submit = 1, .work = 10, .gpus = 8, .vc = "a"},
                                  {.submit = 2, .work = 10, .gpus = 1, .vc = "a"},
                                  {.submit = 2, .work = 10, .gpus = 1, .vc = "b"}});
  EXPECT_EQ(run_policy("kueue", jobs, eight), (Spans{{0, 100}, {100, 110}, {2, 12}, {2, 12}}));
  EXPECT_EQ(run_policy("kueue{strict=true}", jobs, eight), (Spans{{0, 100}, {100, 110}, {110, 120}, {2, 12}}));
}

// The least priority goes first, of equal ones the last to start.
TEST(Kueue, WithinAQueueLowerPrioritiesGiveWay) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 3, .vc = "a", .priority = 1},
                                  {.submit = 0, .work = 100, .gpus = 2, .vc = "a"},
                                  {.submit = 5, .work = 100, .gpus = 3, .vc = "a"},
                                  {.submit = 10, .work = 20, .gpus = 2, .vc = "a", .priority = 2},
                                  {.submit = 10, .work = 20, .gpus = 1, .vc = "a", .priority = 1},
                                  {.submit = 200, .work = 1, .gpus = 1, .vc = "b"}});
  EXPECT_EQ(run_policy("kueue{within=lower}", jobs, eight),
            (Spans{{0, 100}, {0, 100}, {5, 125}, {10, 30}, {10, 30}, {200, 201}}));
}

TEST(Kueue, OlderJobsTakeTheirTurnFromNewerOnesIfSo) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 6, .vc = "a"},
                                  {.submit = 1, .work = 10, .gpus = 8, .vc = "a"},
                                  {.submit = 2, .work = 200, .gpus = 2, .vc = "a"}});
  EXPECT_EQ(run_policy("kueue{within=lower}", jobs, eight), (Spans{{0, 100}, {202, 212}, {2, 202}}));
  EXPECT_EQ(run_policy("kueue{within=lower-or-newer}", jobs, eight), (Spans{{0, 100}, {100, 110}, {2, 212}}));
}

// Queue b borrows four GPUs. Queue a, whose quota is used up, may stop its job only where that is allowed.
TEST(Kueue, WhoBorrowsPreemptsOthersOnlyIfSo) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100, .gpus = 6, .vc = "b"},
                                  {.submit = 0, .work = 100, .gpus = 2, .vc = "a", .priority = 9},
                                  {.submit = 10, .work = 20, .gpus = 1, .vc = "a", .priority = 5},
                                  {.submit = 200, .work = 1, .gpus = 1, .vc = "c"}});
  const std::string quotas = "nominal_gpus=[a=2,b=2,c=4]";
  EXPECT_EQ(run_policy("kueue{reclaim=any," + quotas + "}", jobs, eight)[2], (Span{100, 120}));
  EXPECT_EQ(run_policy("kueue{reclaim=any,borrow=lower," + quotas + "}", jobs, eight)[2], (Span{10, 30}));
  EXPECT_EQ(run_policy("kueue{reclaim=any,borrow=lower,borrow_most_priority=-1," + quotas + "}", jobs, eight)[2],
            (Span{100, 120}));
}

TEST(Kueue, SaysWhatIsWrong) {
  const auto error_of = [](const std::string& policy) { return error_of_policy(policy, lent(), eight); };
  EXPECT_NE(error_of("kueue{borrow=lower}").find("borrow needs a reclaim other than never"), std::string::npos);
  EXPECT_NE(error_of("kueue{borrow_most_priority=1.5}").find("expected a whole number between"), std::string::npos);
  EXPECT_EQ(error_of("kueue{nominal_gpus=[c=4]}"),
            "policy kueue: nominal_gpus: expected one of the trace's virtual clusters, found 'c'");
  EXPECT_EQ(error_of("kueue{nominal_gpus=[a=4,b=1,a=3]}"), "policy kueue: nominal_gpus: the name 'a' is given twice");
  EXPECT_EQ(error_of("kueue{lending_gpus=[a=x]}"), "policy kueue: lending_gpus: expected NAME=GPUS, found 'a=x'");
  EXPECT_EQ(error_of("kueue{lending_gpus=[a=-1]}"), "policy kueue: lending_gpus: expected NAME=GPUS, found 'a=-1'");
  EXPECT_EQ(error_of("kueue{borrowing_gpus=[a=1.5]}"),
            "policy kueue: job '0' asks for 6 GPUs, and its queue 'a' never holds more than 5.5");
  EXPECT_NE(error_of("kueue{by=group}").find("shares between groups, and the trace names none"), std::string::npos);
}

TEST(KueueCohort, CountsWhatIsKeptLentAndBorrowed) {
  // The third queue keeps two of its three for itself.
  KueueCohort cohort({{.nominal = 4}, {.nominal = 2, .borrowing = 1}, {.nominal = 3, .lending = 1}});
  EXPECT_EQ(cohort.available(0), 4 + 2 + 1);
  EXPECT_EQ(cohort.available(1), 3);
  EXPECT_EQ(cohort.available(2), 2 + 7);
  EXPECT_EQ(cohort.most(2), 9);
  cohort.hold(0, 6);
  EXPECT_TRUE(cohort.is_borrowing(0));
  EXPECT_EQ(cohort.available(1), 1);
  EXPECT_EQ(cohort.available(2), 3);
  cohort.hold(2, 1);  // of what it keeps
  EXPECT_EQ(cohort.available(0), 1);
  EXPECT_FALSE(cohort.fits(2, 3, true));
  EXPECT_TRUE(cohort.fits(2, 2, false));
}

// ---- random worlds ----

// The same rules without anything kept from instant to instant but when jobs started. Every waiting job is looked at
// each time.
class PlainKueue {
 public:
  PlainKueue(std::vector<KueueQuota> quotas, Kueue::Rules rules, OwnerColumn column)
      : quotas_(std::move(quotas)), rules_(rules), column_(column) {}

  [[nodiscard]] static std::string_view name() { return "plain kueue"; }

  void decide(const View& view, Decision& decision) {
    std::set<JobId> out;
    fresh_.clear();
    stopped_.clear();
    for (;;) {
      std::vector<JobId> heads;
      for (std::uint32_t queue = 0; queue < quotas_.size(); ++queue) {
        JobId best = no_job;
        for (std::uint32_t i = 0; i < view.arrived(); ++i) {
          const JobId job{i};
          if (view.phase(job) != JobPhase::pending || queue_of(view, job) != queue || out.contains(job)) continue;
          if (best == no_job || comes_before(view, job, best)) best = job;
        }
        if (best != no_job) heads.push_back(best);
      }
      if (heads.empty()) return;
      std::vector<bool> borrows(view.job_count());
      for (const JobId job : heads) {
        const std::uint32_t queue = queue_of(view, job);
        borrows[index(job)] = held(view, queue, {}) + milli(view, job) > quotas_[queue].nominal;
      }
      std::sort(heads.begin(), heads.end(), [&](JobId a, JobId b) {
        if (borrows[index(a)] != borrows[index(b)]) return bool(borrows[index(b)]);
        return comes_before(view, a, b);
      });
      for (const JobId job : heads) {
        const std::size_t ran = view.running().size();
        if (admit(view, decision, job)) {
          if (view.running().size() <= ran) out.clear();  // somebody had to go
          continue;
        }
        for (std::uint32_t i = 0; i < view.arrived(); ++i) {
          const JobId other{i};
          const bool is_alike = view.priority(other) == view.priority(job) && view.demand(other) == view.demand(job) &&
                                view.queue_of(other) == view.queue_of(job);
          if (queue_of(view, other) == queue_of(view, job) && (rules_.strict || is_alike)) out.insert(other);
        }
      }
    }
  }

 private:
  [[nodiscard]] std::uint32_t queue_of(const View& view, JobId job) const { return owner_of(column_, view, job); }
  static MilliGpu milli(const View& view, JobId job) { return view.shape(job).gpu_milli(); }
  static bool comes_before(const View& view, JobId a, JobId b) {
    if (view.priority(a) != view.priority(b)) return view.priority(a) > view.priority(b);
    return view.queue_place(a) < view.queue_place(b);
  }
  // Of running jobs but those.
  [[nodiscard]] MilliGpu held(const View& view, std::uint32_t queue, const std::vector<JobId>& without) const {
    MilliGpu sum = 0;
    for (const JobId job : view.running()) {
      if (queue_of(view, job) != queue) continue;
      if (std::find(without.begin(), without.end(), job) == without.end()) sum += milli(view, job);
    }
    return sum;
  }
  // Nobody holds more than its nominal quota and what it may borrow; and of what a queue keeps for itself, others use
  // nothing.
  [[nodiscard]] bool fits(const View& view, JobId job, const std::vector<JobId>& without, bool borrowing) const {
    const std::uint32_t own = queue_of(view, job);
    MilliGpu lent = 0, wanted = 0;
    for (std::uint32_t queue = 0; queue < quotas_.size(); ++queue) {
      const KueueQuota& quota = quotas_[queue];
      const MilliGpu kept = std::max<MilliGpu>(0, quota.nominal - quota.lending);
      const MilliGpu then = held(view, queue, without) + (queue == own ? milli(view, job) : 0);
      lent += quota.nominal - kept;
      wanted += std::max<MilliGpu>(0, then - kept);
      if (queue == own && then > quota.nominal && (!borrowing || then > quota.nominal + quota.borrowing)) return false;
    }
    return wanted <= lent || milli(view, job) + held(view, own, without) <=
                                 std::max<MilliGpu>(0, quotas_[own].nominal - quotas_[own].lending);
  }

  bool admit(const View& view, Decision& decision, JobId job) {
    if (fits(view, job, {}, true)) return start(view, decision, job, {});
    if (milli(view, job) > quotas_[queue_of(view, job)].nominal && !rules_.borrow) return false;
    const std::vector<JobId> victims = targets(view, job);
    return !victims.empty() && start(view, decision, job, victims);
  }
  bool start(const View& view, Decision& decision, JobId job, const std::vector<JobId>& victims) {
    for (const JobId victim : victims) decision.preempt(victim);
    const bool is_started = decision.start(job, view.options().placement) == Verdict::ok;
    for (const JobId victim : victims) {
      if (!is_started) decision.restore(victim);
    }
    if (!is_started) return false;
    began_[job] = view.now();
    for (const JobId victim : victims) {
      fresh_.erase(victim);
      stopped_.insert(victim);
    }
    if (!stopped_.contains(job)) fresh_.insert(job);
    return true;
  }

  [[nodiscard]] std::vector<JobId> targets(const View& view, JobId job) const {
    const std::uint32_t own = queue_of(view, job);
    std::vector<JobId> others, mine;
    for (const JobId victim : view.running()) {
      const bool is_lower = view.priority(victim) < view.priority(job);
      if (began_.at(victim) == view.now() && !fresh_.contains(victim)) continue;
      if (queue_of(view, victim) == own) {
        const bool is_newer = rules_.within == Kueue::Preempts::lower_or_newer &&
                              view.priority(victim) == view.priority(job) &&
                              view.queue_place(job) < view.queue_place(victim);
        if (rules_.within != Kueue::Preempts::never && (is_lower || is_newer)) mine.push_back(victim);
      } else if (borrows(view, victim, {})) {
        const bool may =
            rules_.reclaim == Kueue::Preempts::any || (rules_.reclaim == Kueue::Preempts::lower && is_lower);
        if (may) others.push_back(victim);
      }
    }
    for (std::vector<JobId>* jobs : {&others, &mine}) {
      std::sort(jobs->begin(), jobs->end(), [&](JobId a, JobId b) {
        if (view.priority(a) != view.priority(b)) return view.priority(a) < view.priority(b);
        if (began_.at(a) != began_.at(b)) return began_.at(a) > began_.at(b);
        return view.queue_place(a) > view.queue_place(b);
      });
    }
    const bool has_quota = held(view, own, {}) < quotas_[own].nominal;
    const auto lower_than = [&](std::int64_t most) {
      std::vector<JobId> some;
      for (const JobId victim : others) {
        if (view.priority(victim) < view.priority(job) && view.priority(victim) <= most) some.push_back(victim);
      }
      return some;
    };
    if (others.empty()) return fewest(view, job, {}, mine, true, {});
    if (rules_.borrow) {
      const std::vector<JobId> cheap = lower_than(rules_.borrow_most);
      return fewest(view, job, has_quota ? others : cheap, mine, true, cheap);
    }
    if (has_quota) {
      if (auto found = fewest(view, job, others, mine, false, others); !found.empty()) return found;
    }
    return fewest(view, job, {}, mine, true, {});
  }
  [[nodiscard]] bool borrows(const View& view, JobId victim, const std::vector<JobId>& without) const {
    const std::uint32_t queue = queue_of(view, victim);
    return held(view, queue, without) > quotas_[queue].nominal;
  }
  // With one of the others that is not `cheap` gone, the job must not borrow.
  [[nodiscard]] std::vector<JobId> fewest(const View& view, JobId job, const std::vector<JobId>& others,
                                          const std::vector<JobId>& mine, bool borrowing,
                                          const std::vector<JobId>& cheap) const {
    std::vector<JobId> gone;
    bool found = false;
    for (const std::vector<JobId>* jobs : {&others, &mine}) {
      for (const JobId victim : *jobs) {
        if (found) break;
        if (jobs == &others && !borrows(view, victim, gone)) continue;
        if (jobs == &others && std::find(cheap.begin(), cheap.end(), victim) == cheap.end()) borrowing = false;
        gone.push_back(victim);
        found = fits(view, job, gone, borrowing);
      }
    }
    if (!found) return {};
    for (std::size_t i = gone.size() - 1; i-- > 0;) {
      std::vector<JobId> fewer = gone;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (fits(view, job, fewer, borrowing)) gone = fewer;
    }
    return gone;
  }

  std::vector<KueueQuota> quotas_;
  Kueue::Rules rules_;
  OwnerColumn column_;
  std::map<JobId, Time> began_;
  std::set<JobId> fresh_, stopped_;  // that this decision started and never stopped, and that it stopped
};

struct DrawnKueue {
  std::vector<KueueQuota> quotas;
  Kueue::Rules rules;
};

DrawnKueue drawn_kueue(const RandomWorld& world, std::uint64_t seed) {
  Rng rng = Rng(seed).split("kueue");
  DrawnKueue drawn;
  const MilliGpu total = world.cluster.total_gpus() * whole_gpu;
  for (std::size_t i = 0; i < world.jobs.users().size(); ++i) {
    // Together about what there is.
    KueueQuota quota{.nominal = static_cast<MilliGpu>(rng.below(static_cast<std::uint64_t>(total) * 3 / 5 + 1))};
    if (rng.below(4) == 0) quota.borrowing = static_cast<MilliGpu>(rng.below(4)) * 500;
    if (rng.below(4) == 0) quota.lending = static_cast<MilliGpu>(rng.below(4)) * 500;
    drawn.quotas.push_back(quota);
  }
  using Preempts = Kueue::Preempts;
  const Preempts within[] = {Preempts::never, Preempts::lower, Preempts::lower_or_newer};
  const Preempts reclaim[] = {Preempts::never, Preempts::lower, Preempts::any};
  drawn.rules = {.within = within[rng.below(3)],
                 .reclaim = reclaim[rng.below(3)],
                 .borrow = rng.below(2) == 0,
                 .borrow_most = rng.below(2) == 0 ? 0 : std::numeric_limits<std::int32_t>::max(),
                 .strict = rng.below(4) == 0};
  return drawn;
}

TEST(RandomKueue, IsThePlainReadingOfItsRules) {
  std::uint64_t preemptions = 0;
  for (std::uint64_t seed = 1; seed <= random_runs(usual_worlds); ++seed) {
    RandomWorld world = random_world(seed, WorldKind::any, seed % 3 == 0);
    if (world.jobs.size() == 0) continue;
    // Attempts that fail draw, too, and the two make others.
    if (world.options.placement == Placement::random) world.options.placement = Placement::best_fit;
    const NodeFailures failures = seed % 2 == 0 ? random_failures(world, seed) : NodeFailures{};
    const JobChanges changes = seed % 5 < 2 ? random_changes(world, seed, WorldKind::any) : JobChanges{};
    const DrawnKueue drawn = drawn_kueue(world, seed);
    const auto count = static_cast<std::uint32_t>(drawn.quotas.size());
    Kueue fast(QuotaJobs(OwnerColumn::user, count), KueueCohort(drawn.quotas), drawn.rules);
    PlainKueue plain(drawn.quotas, drawn.rules, OwnerColumn::user);
    const RunInputs inputs{.failures = &failures, .changes = &changes};
    Engine one(world.jobs, world.cluster, world.options, inputs),
        other(world.jobs, world.cluster, world.options, inputs);
    HistoryHash hash_of_one, hash_of_other;
    simulate(one, fast, hash_of_one);
    simulate(other, plain, hash_of_other);
    ASSERT_EQ(hash_of_one.value(), hash_of_other.value()) << "seed " << seed;
    for (std::uint32_t i = 0; i < world.jobs.size(); ++i) preemptions += one.preemptions(JobId{i});
  }
  EXPECT_GT(preemptions, usual_worlds / 10);
}

}  // namespace
}  // namespace gpusched::test
