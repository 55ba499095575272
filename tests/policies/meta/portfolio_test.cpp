// SPDX-License-Identifier: Apache-2.0
#include "src/policies/meta/portfolio.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/policies/meta/portfolio_runs.hpp"
#include "tests/policies/random_world.hpp"

namespace gpusched::test {
namespace {

// ---- what holds for every policy ----

class AloneInAPortfolio : public testing::TestWithParam<Contestant> {};
INSTANTIATE_TEST_SUITE_P(Policies, AloneInAPortfolio, testing::ValuesIn(contestants()),
                         [](const auto& instance) { return name_of(instance.param); });

TEST_P(AloneInAPortfolio, HasTheHistoryOfThePolicy) {
  const auto& [policy, backfill] = GetParam();
  const std::string text = backfill.empty() ? policy : policy + "+" + backfill;
  const std::string name = text.substr(0, text.find('{'));
  if ((*registry().find(name.substr(0, name.find('+'))))->holds_policies) return;
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    const RandomWorld world = random_world(seed, kind_for(policy));
    if (world.jobs.size() == 0 || !make(GetParam(), world.jobs, world.cluster)) continue;
    const PortfolioRun alone = portfolio_run(text, world.jobs, world.cluster, world.options);
    for (const char* holder : {"portfolio{every_s=1,policies=[", "bandit{every_s=1,policies=[",
                               "switch{at=[],policies=[", "guarded{first_jobs=2,stretches=2,policies=["}) {
      EXPECT_EQ(portfolio_run(holder + text + "]}", world.jobs, world.cluster, world.options).history, alone.history)
          << holder << text << " seed " << seed;
    }
  }
}

// ---- the portfolio ----

// With true run times, no later arrivals and a horizon to the end, it does what its best member would, or better.
TEST(Portfolio, IsNeverWorseThanItsBestMemberOnASnapshot) {
  const std::vector<std::string> members{
      "ljf", "sjf{estimate=exact}", "fifo+easy{estimate=exact}", "saf{estimate=exact}", "srtf", "fifo-skip"};
  int better = 0;
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    detail::WorldDraws draw(seed);
    std::vector<JobRecord> rows;
    for (int i = 0; i < 20; ++i) {
      rows.push_back(
          asked(0, 1 + static_cast<std::int64_t>(draw.below(5000)), 1 + static_cast<std::uint32_t>(draw.below(8))));
    }
    const JobTable jobs = table_of_asked(rows);
    const Cluster cluster = Cluster::homogeneous(2, 4);
    double best = 1e18;
    std::string list;
    for (const std::string& member : members) {
      best = std::min(best, portfolio_run(member, jobs, cluster).jct_s);
      list += (list.empty() ? "" : ",") + member;
    }
    for (const char* every : {"1e9", "300"}) {
      const PortfolioRun mine = portfolio_run(
          "portfolio{runtimes=exact,horizon_s=1e8,every_s=" + std::string(every) + ",policies=[" + list + "]}", jobs,
          cluster);
      EXPECT_TRUE(mine.finished);
      EXPECT_LE(mine.jct_s, best * (1 + 1e-12)) << "seed " << seed << ", every " << every;
      better += mine.jct_s < best * (1 - 1e-9) ? 1 : 0;
    }
  }
  EXPECT_GT(better, 0);  // choosing again helps
}

// Jobs that run on after `until` may run for any time, and those that come then ask for anything: nothing that the
// portfolio does or notes until then changes. `most_jobs`: that each of three users may run at once, if not 0.
void expect_no_future(const std::string& arrivals, std::int64_t most_jobs = 0) {
  constexpr std::array<std::string_view, 3> users{"ann", "bob", "cid"};
  const std::uint64_t seeds = most_jobs > 0 ? 3 : 10;  // who is held back waits long, and each evaluation plays that
  std::uint64_t switches = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Time until = whole_seconds(4000);
    std::vector<JobRecord> rows, other;
    detail::WorldDraws draw(seed);
    for (int i = 0; i < 60; ++i) {
      const auto submit = static_cast<std::int64_t>(draw.below(6000));
      const bool is_long = draw.chance(4);
      const auto work = static_cast<std::int64_t>(is_long ? 5000 + draw.below(5000) : 1 + draw.below(1500));
      const auto gpus = static_cast<std::uint32_t>(1 + draw.below(6));
      rows.push_back(asked(submit, work, gpus));
      // Those that come later, too.
      const bool is_free = is_long || submit > 4000;
      const auto gpus_then = static_cast<std::uint32_t>(1 + draw.below(6));
      other.push_back(asked(submit,
                            is_free ? (is_long ? 5000 : 1) + static_cast<std::int64_t>(draw.below(20'000)) : work,
                            submit > 4000 ? gpus_then : gpus));
      if (most_jobs > 0) rows.back().user = other.back().user = users[draw.below(users.size())];
    }
    Cluster cluster = Cluster::homogeneous(2, 4);
    if (most_jobs > 0) cluster.limits = {{.per = LimitOwner::user, .most = {.jobs = most_jobs}}};
    const std::string policy = "portfolio{every_s=200,horizon_s=20000,arrivals=" + arrivals +
                               ",policies=[fifo,sjf{estimate=requested},saf,las,fifo+easy,gandiva]}";
    const auto early = [&](const std::string& notes) {
      std::vector<std::map<std::string, std::string>> rows_then = rows_of_notes(notes);
      std::erase_if(rows_then, [&](auto& row) { return std::stod(row.at("from_s")) > to_seconds(until); });
      for (auto& row : rows_then) row.erase("until_s");
      return rows_then;
    };
    const JobTable jobs = table_of_asked(rows), others = table_of_asked(other);
    const auto notes = early(portfolio_run(policy, jobs, cluster).notes),
               notes_other = early(portfolio_run(policy, others, cluster).notes);
    EXPECT_EQ(notes, notes_other) << seed;
    ASSERT_GT(notes.size(), 30u);
    for (std::size_t i = 6; i < notes.size(); ++i)
      switches += notes[i].at("active") != notes[i - 6].at("active") ? 1 : 0;
  }
  EXPECT_GT(switches, seeds);
}
TEST(Portfolio, DoesNotKnowTheFuture) { expect_no_future("none"); }
TEST(Portfolio, DoesNotKnowHowLongJobsRunThatLimitsHoldBack) { expect_no_future("none", 4); }
TEST(Portfolio, DrawsNoneOfTheJobsToCome) { expect_no_future("resampled"); }

// At 50 s the second of two jobs waits for the only GPU: one job came in those 50 s. The next is drawn like it, at 100
// s, as there is one more row. Two ends, and with that job its submission and its end.
TEST(Portfolio, DrawsJobsLikeThoseThatCame) {
  const JobTable jobs = table_of_asked({asked(0, 100, 1, 100), asked(50, 100, 1, 100), asked(9000, 1, 1, 1)});
  for (const auto& [arrivals, events] : std::map<std::string, std::string>{{"none", "2"}, {"resampled", "4"}}) {
    const PortfolioRun run =
        portfolio_run("portfolio{policies=[fifo,sjf],arrivals=" + arrivals + "}", jobs, Cluster::pool(1));
    const auto rows = rows_of_notes(run.notes);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].at("from_s"), "50");
    EXPECT_EQ(rows[0].at("events"), events) << arrivals;
    EXPECT_EQ(rows[0].at("estimate"), "125");  // (100 + 150) / 2: the drawn job counts for nothing
    EXPECT_EQ(run.jct_s, (100 + 150 + 1) / 3.0);
  }
}

// Two jobs of 2 GPUs, 1,000 s and 10 s by their users' words, want 2 GPUs. sjf: (10 + 1010) / 2, fifo: (1000 + 1010)
// / 2.
TEST(Portfolio, GivesTheRunToTheLeastFigure) {
  const JobTable jobs = table_of_asked({asked(0, 1000, 2, 1000), asked(0, 10, 2, 10)});
  const PortfolioRun run = portfolio_run("portfolio{policies=[fifo,sjf]}", jobs, Cluster::pool(2));
  EXPECT_EQ(run.jct_s, 510);
  const auto rows = rows_of_notes(run.notes);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at("policy"), "fifo");
  EXPECT_EQ(rows[0].at("estimate"), "1005");
  EXPECT_EQ(rows[0].at("active"), "0");
  EXPECT_EQ(rows[1].at("estimate"), "510");
  EXPECT_EQ(rows[1].at("active"), "1");
}

// What is not done at the horizon counts with its age: after 100 s, (100 + 100) / 2 and (10 + 100) / 2.
TEST(Portfolio, CountsUnfinishedJobsWithTheirAge) {
  const JobTable jobs = table_of_asked({asked(0, 1000, 2, 1000), asked(0, 10, 2, 10)});
  const auto rows =
      rows_of_notes(portfolio_run("portfolio{policies=[fifo,sjf],horizon_s=100}", jobs, Cluster::pool(2)).notes);
  EXPECT_EQ(rows[0].at("estimate"), "100");
  EXPECT_EQ(rows[1].at("estimate"), "55");
}

// So does what a candidate gives up: (1010 + 10) / 2, not the 10 s of the other job.
TEST(Portfolio, WhatACandidateCancelsWaitsOn) {
  std::vector<JobRecord> rows{asked(0, 500, 2, 500), asked(10, 10, 2, 10)};
  rows[0].vc = "low";
  rows[1].vc = "top";
  rows[0].user = rows[1].user = "u";
  const PortfolioRun run = portfolio_run(
      "portfolio{every_s=1,horizon_s=1000,policies=[fifo,slurm{preempts_by=partition,preempts=[top>low],cancels=[low]}]"
      "}",
      table_of_asked(rows), Cluster::pool(2));
  const auto told = rows_of_notes(run.notes);
  ASSERT_EQ(told.size(), 4u) << "again when job 0 ends";
  EXPECT_EQ(told[0].at("estimate"), "500");
  EXPECT_EQ(told[1].at("estimate"), "510");
  EXPECT_EQ(run.jct_s, 500);
}

// Waits 500 and 5 s on average, slowdowns (1 + 101) / 2 and (1 + 1.01) / 2: 2 x wait + 100 x slowdown.
TEST(Portfolio, WeighsFigures) {
  const JobTable jobs = table_of_asked({asked(0, 1000, 2, 1000), asked(0, 10, 2, 10)});
  const auto rows =
      rows_of_notes(portfolio_run("portfolio{policies=[fifo,sjf],figure=2:avg_wait_s+100:avg_bounded_slowdown}", jobs,
                                  Cluster::pool(2))
                        .notes);
  EXPECT_EQ(std::stod(rows[0].at("estimate")), 2 * 500 + 100 * (1 + 101) / 2.0);
  EXPECT_NEAR(std::stod(rows[1].at("estimate")), 2 * 5 + 100 * (1 + 1.01) / 2.0, 1e-9);
}

// By the work of all attempts: sjf (310 / 210 + 110 / 100) / 2, fifo (1 + 310 / 100) / 2.
TEST(Portfolio, SlowdownsAreOfAllAttempts) {
  JobRecord retried = asked(0, 210, 1, 210);
  const std::vector<Time> attempts{whole_seconds(10), whole_seconds(200)};
  retried.attempts = attempts;
  const JobTable jobs = table_of_asked({retried, asked(0, 100, 1, 100)});
  const auto rows = rows_of_notes(
      portfolio_run("portfolio{policies=[fifo,sjf],runtimes=exact,figure=avg_bounded_slowdown}", jobs, Cluster::pool(1))
          .notes);
  EXPECT_NEAR(std::stod(rows[0].at("estimate")), 2.05, 1e-9);
  EXPECT_NEAR(std::stod(rows[1].at("estimate")), (310.0 / 210 + 1.1) / 2, 1e-9);
}

// 0, 10 and 20 s: a percentile lies between them, as that of the metric.
TEST(Portfolio, KnowsTheFiguresAsMetricsDo) {
  const JobTable jobs = table_of_asked({asked(0, 10, 2, 10), asked(0, 10, 2, 10), asked(0, 10, 2, 10)});
  const auto rows =
      rows_of_notes(portfolio_run("portfolio{policies=[fifo,sjf],figure=p99_wait_s}", jobs, Cluster::pool(2)).notes);
  EXPECT_NEAR(std::stod(rows[0].at("estimate")), 19.8, 1e-9);
}

// Equal jobs: all members do the same.
TEST(Portfolio, GivesTiesToTheLastUnlessTheyStay) {
  const JobTable jobs = table_of_asked({asked(0, 100, 2, 100), asked(0, 100, 2, 100), asked(50, 100, 2, 100)});
  const auto active = [&](const std::string& more) {
    std::vector<std::string> names;
    for (auto& row : rows_of_notes(
             portfolio_run("portfolio{every_s=1,policies=[fifo,sjf,saf]" + more + "}", jobs, Cluster::pool(2)).notes)) {
      if (row.at("active") == "1") names.push_back(row.at("policy"));
    }
    return names;
  };
  const std::vector<std::string> later = active(""), stay = active(",ties=stay");
  EXPECT_EQ(later, std::vector<std::string>(later.size(), "saf"));
  EXPECT_EQ(stay, std::vector<std::string>(stay.size(), "fifo"));
  EXPECT_GE(stay.size(), 2u);
}

// At 2 s, ends at 120 and 130 s under fifo, 130 and 110 s under sjf: 10 / 3 s less on average, worth 3 s but not 4.
TEST(Portfolio, ChargesSwitches) {
  const JobTable jobs = table_of_asked({asked(0, 100, 2, 100), asked(1, 20, 2, 20), asked(2, 10, 2, 10)});
  for (const auto& [cost, last] : {std::pair("3", "sjf"), std::pair("4", "fifo")}) {
    const auto rows = rows_of_notes(
        portfolio_run("portfolio{every_s=1,ties=stay,policies=[fifo,sjf],switch_cost=" + std::string(cost) + "}", jobs,
                      Cluster::pool(2))
            .notes);
    ASSERT_GE(rows.size(), 4u);
    EXPECT_EQ(rows[2].at("from_s"), "2");
    EXPECT_EQ(rows[2].at("active") == "1" ? "fifo" : "sjf", std::string(last))
        << rows[2].at("estimate") << " " << rows[3].at("estimate");
  }
}

TEST(Portfolio, NotesStretchesThatSumToItsSpan) {
  const RandomWorld world = random_world(5, WorldKind::one_gpu_tasks);
  for (const char* text : {"portfolio{every_s=20}", "bandit{every_s=20}", "switch{at=[2],hold_s=5}"}) {
    const PortfolioRun run = portfolio_run(text, world.jobs, world.cluster);
    const auto rows = rows_of_notes(run.notes);
    ASSERT_GE(rows.size(), 2u) << text;
    double sum = 0, until = std::stod(rows.front().at("from_s"));
    const double first = until;
    for (const auto& row : rows) {
      if (row.contains("active") && row.at("active") != "1") continue;
      EXPECT_EQ(std::stod(row.at("from_s")), until);
      until = std::stod(row.at("until_s"));
      sum += until - std::stod(row.at("from_s"));
    }
    EXPECT_NEAR(sum, to_seconds(run.end) - first, 1e-6) << text;
  }
}

// A budget of one event: beside who has the run, few are tried, and all in the course of time.
TEST(Portfolio, TriesFewerWithinABudget) {
  const RandomWorld world = random_world(5, WorldKind::one_gpu_tasks);
  const std::string members = "policies=[fifo,sjf,saf,ljf,las]";
  const auto all =
      rows_of_notes(portfolio_run("portfolio{every_s=5," + members + "}", world.jobs, world.cluster).notes);
  const auto some = rows_of_notes(
      portfolio_run("portfolio{every_s=5,budget_events=1," + members + "}", world.jobs, world.cluster).notes);
  const auto tried = [](const auto& rows) {
    return std::count_if(rows.begin(), rows.end(), [](auto& row) { return !row.at("estimate").empty(); });
  };
  EXPECT_EQ(static_cast<std::size_t>(tried(all)), all.size());
  EXPECT_LT(tried(some), static_cast<std::ptrdiff_t>(some.size()));
  std::map<std::string, int> times;
  for (const auto& row : some) times[row.at("policy")] += row.at("estimate").empty() ? 0 : 1;
  for (const auto& [policy, count] : times) EXPECT_GT(count, 0) << policy;
}

// Rounds of five candidates whose values are their numbers, each trial one event, budget 5, share 0.6.
TEST(Candidates, SortsIntoSmartStaleAndPoor) {
  using Set = Candidates::Set;
  Candidates candidates(5, 3, 0.6, Rng(1));
  std::vector<std::size_t> tried;
  const auto trial = [&](std::size_t candidate) {
    tried.push_back(candidate);
    return std::pair(static_cast<double>(candidate), std::uint64_t{1});
  };
  candidates.choose(4, trial);  // all are smart: 3 events for them
  EXPECT_EQ(tried, (std::vector<std::size_t>{4, 0, 1}));
  // ceil(0.6 x 3) = 2 of the tried are smart.
  EXPECT_EQ(candidates.set(0), Set::smart);
  EXPECT_EQ(candidates.set(1), Set::smart);
  EXPECT_EQ(candidates.set(4), Set::poor);
  EXPECT_EQ(candidates.set(2), Set::stale);
  EXPECT_EQ(candidates.set(3), Set::stale);
  tried.clear();
  candidates.choose(0, trial);  // parts of 1.2, 1.2 and 0.6 events: two, two and one
  EXPECT_EQ(tried, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(candidates.set(2), Set::smart);
  EXPECT_EQ(candidates.set(3), Set::poor);
}

TEST(Portfolio, SaysInALineWhatIsWrong) {
  for (const auto& [text, line] : std::map<std::string, std::string>{
           {"portfolio{policies=[]}", "policy portfolio, parameter policies: expected one policy or more"},
           {"portfolio{policies=[fifo,portfolio]}", "policy portfolio holds policies itself, and cannot be held"},
           {"bandit{policies=[fifo,switch{hold_s=5}]}",
            "policy switch{hold_s=5} holds policies itself, and cannot be held"},
           {"portfolio{policies=[fifo,fifo]}", "policy portfolio, parameter policies: fifo is named twice"},
           {"portfolio{policies=[fifo,ffo]}", "unknown policy 'ffo'"},
           {"portfolio{policies=[fifo{x=1}]}", "policy fifo has no parameter 'x'"},
           {"portfolio{policies=[program:cat]}", "policy program:cat is a process, which cannot join in mid-run"},
           {"portfolio{policies=[las+easy]}", "las cannot be backfilled"},
           {"portfolio{horizon_s=0}", "policy portfolio, parameter horizon_s: expected a number between"},
           {"portfolio{every_s=0}", "policy portfolio, parameter every_s: expected a number between"},
           {"portfolio{runtimes=exact,arrivals=resampled}", "expected none beside runtimes=exact"},
           {"portfolio{figure=avg_jct}", "policy portfolio, parameter figure: expected avg_jct_s|avg_wait_s|"},
           {"portfolio{figure=0:avg_jct_s}", "expected a positive weight before ':' in '0:avg_jct_s'"},
           {"bandit{figure=speed}", "policy bandit, parameter figure: expected avg_jct_s|"},
           {"portfolio{load_change=0.5}", "policy portfolio, parameter load_change: expected 0, or a factor above 1"},
           {"switch{policies=[fifo,sjf,saf],at=[3]}", "policy switch, parameter at: expected 2 ascending numbers"},
           {"switch{policies=[fifo,sjf,saf],at=[3,2]}", "policy switch, parameter at: expected 2 ascending numbers"},
           {"portfolio{policies=fifo}",
            "policy portfolio, parameter policies: expected a list of policies or pairs"}}) {
    EXPECT_NE(portfolio_error(text).find(line), std::string::npos) << text << ": " << portfolio_error(text);
    EXPECT_EQ(portfolio_error(text).find('\n'), std::string::npos) << text;
  }
  EXPECT_FALSE(parse_policy_list("portfolio{policies=[fifo,sjf"));
  EXPECT_FALSE(parse_policy_list("portfolio{policies=[fifo}"));
}

TEST(Portfolio, IsClairvoyantWhereItOrAMemberIs) {
  const JobTable jobs = table_of_asked({asked(0, 10, 1)});
  const Cluster cluster = Cluster::pool(2);
  const auto knows = [&](const std::string& text) { return make(text, jobs, cluster)->clairvoyant(); };
  EXPECT_FALSE(knows("portfolio"));
  EXPECT_TRUE(knows("portfolio{runtimes=exact}"));
  EXPECT_TRUE(knows("portfolio{estimate=noisy}"));
  EXPECT_TRUE(knows("portfolio{policies=[fifo,srtf]}"));
  EXPECT_FALSE(knows("bandit"));
  EXPECT_TRUE(knows("switch{policies=[fifo,sjf{estimate=exact}]}"));
}

// ---- rules ----

// From the third waiting job on the shortest goes first: at 3 s three wait.
TEST(Switch, GoesByTheQueue) {
  const JobTable jobs =
      table_of_asked({asked(0, 100, 2, 100), asked(1, 50, 2, 50), asked(2, 40, 2, 40), asked(3, 10, 2, 10)});
  const auto rows = rows_of_notes(
      portfolio_run("switch{policies=[fifo,sjf],by=queue,at=[3],hold_s=0}", jobs, Cluster::pool(2)).notes);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1].at("from_s"), "3");
  EXPECT_EQ(rows[1].at("policy"), "sjf");
  EXPECT_EQ(rows[1].at("value"), "3");
  EXPECT_EQ(rows[2].at("from_s"), "110");  // at 100 s three waited still
  EXPECT_EQ(rows[2].at("policy"), "fifo");
}

// A member that asked to be woken after the last end is woken; the log ends with the run.
TEST(Switch, NotesEndWithTheRun) {
  const JobTable jobs = table_of_asked({asked(0, 500, 1), asked(150, 300, 1), asked(150, 500, 1), asked(550, 100, 1)});
  const PortfolioRun run =
      portfolio_run("switch{policies=[fifo,las{quantum_gpu_s=350}],at=[2],hold_s=0}", jobs, Cluster::pool(1));
  EXPECT_EQ(rows_of_notes(run.notes).back().at("until_s"), std::to_string(run.end.us / 1'000'000));
  const PortfolioRun periods =
      portfolio_run("bandit{policies=[fifo,gandiva{slice_s=350}],every_s=100}", jobs, Cluster::pool(1));
  EXPECT_EQ(rows_of_notes(periods.notes).back().at("until_s"), std::to_string(periods.end.us / 1'000'000));
}

TEST(Switch, GoesByTheHourOfTheDay) {
  const JobTable jobs = table_of_asked(
      {asked(7 * 3600, 10, 1), asked(9 * 3600, 10, 1), asked(33 * 3600 - 7200, 10, 1), asked(33 * 3600, 10, 1)});
  std::vector<std::string> policies;
  for (auto& row :
       rows_of_notes(portfolio_run("switch{policies=[fifo,sjf],by=hour,at=[8]}", jobs, Cluster::pool(2)).notes)) {
    policies.push_back(row.at("policy"));
  }
  EXPECT_EQ(policies, (std::vector<std::string>{"fifo", "sjf", "fifo", "sjf"}));
}

// At changes where no job's event comes; nobody is asked after the last end.
TEST(Switch, WakesWhenThePriceOrTheHourChanges) {
  const Time begin = whole_seconds(3600);
  PowerModel power;
  power.places = {{.carbon_g_per_kwh = {},
                   .usd_per_mwh = Signal({{Time{}, Signal::to_micro(10)},
                                          {begin, Signal::to_micro(100)},
                                          {whole_seconds(10800), Signal::to_micro(10)}})}};
  power.gpus = {{}};
  power.kinds = {{}};
  power.kind_of = {0};
  const JobTable jobs = table_of_asked({asked(0, 7200, 1), asked(1, 5000, 1), asked(2, 100, 1)});
  const Cluster cluster = Cluster::homogeneous(1, 1);
  const auto rows = [&](const std::string& rule) {
    const auto specs = parse_policies(registry(), "switch{policies=[fifo,srtf]," + rule + "}");
    auto policy = make_policy(registry(), specs->front(), {.jobs = &jobs, .cluster = &cluster, .power = &power});
    Engine engine(jobs, cluster, {}, {.power = &power});
    EXPECT_TRUE(simulate(engine, *policy));
    std::vector<std::string> begins;
    for (const auto& row : rows_of_notes(policy->notes())) begins.push_back(row.at("from_s") + " " + row.at("policy"));
    return begins;
  };
  using Begins = std::vector<std::string>;
  EXPECT_EQ(rows("by=price,at=[50]"), (Begins{"0 fifo", "3600 srtf", "10800 fifo"}));
  EXPECT_EQ(rows("by=price,at=[50],hold_s=5000"), (Begins{"0 fifo", "5000 srtf", "10800 fifo"}));
  EXPECT_EQ(rows("by=hour,at=[1.5]"), (Begins{"0 fifo", "5400 srtf"}));
  EXPECT_EQ(rows("by=hour,at=[4]"), (Begins{"0 fifo"})) << "every job has ended";
}

}  // namespace
}  // namespace gpusched::test
