// SPDX-License-Identifier: Apache-2.0
// Another policy has the run only where it was clearly better on the log so far.
#include "src/policies/meta/guarded.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/policies/meta/portfolio_runs.hpp"
#include "tests/policies/random_world.hpp"

namespace gpusched::test {
namespace {

// ---- the rule ----

// Differences -2 and 0: mean -1, standard error 1, and t = 12.706 at one degree of freedom.
TEST(GuardRule, IsTheUpperEndOfStudentsInterval) {
  EXPECT_NEAR(highest_difference(std::vector{8.0, 10.0}, std::vector{10.0, 10.0}), (-1 + 12.706) / 10, 1e-5);
  EXPECT_NEAR(highest_difference(std::vector{8.0, 9.0, 10.0}, std::vector{10.0, 11.0, 12.0}), -2 / 11.0, 1e-12);
  EXPECT_EQ(highest_difference(std::vector{0.0, 0.0}, std::vector{0.0, 0.0}), std::numeric_limits<double>::infinity());
}

TEST(GuardRule, AsksForMoreThanTheMarginAndForNoWorseInAnyFigure) {
  const PastFigures plain{.value = 100, .stretches = {100, 100}, .limited = {100, 100, 100}};
  const auto allowed = [&](double value, std::array<double, 3> limited) {
    return may_replace({.value = value, .stretches = {value, value}, .limited = limited}, plain, 0.02);
  };
  EXPECT_TRUE(allowed(97, {97, 102, 102}));
  EXPECT_FALSE(allowed(98, {97, 100, 100}));
  EXPECT_FALSE(allowed(97, {103, 100, 100}));
  EXPECT_FALSE(allowed(97, {97, 102.1, 100}));
  EXPECT_FALSE(allowed(97, {97, 100, 102.1}));
  // Better on average, but by one stretch alone.
  EXPECT_FALSE(may_replace({.value = 60, .stretches = {100, 20}, .limited = {60, 100, 100}}, plain, 0.02));
}

TEST(GuardRule, CutsThePastIntoStretchesOfEqualNumber) {
  std::vector<JobResult> jobs;
  for (int i = 1; i <= 6; ++i) jobs.push_back({.age = whole_seconds(i), .waited = {}, .length = whole_seconds(1)});
  const PastFigures past = figures_of_past(jobs, *WeightedFigure::parse("avg_jct_s"), 3);
  EXPECT_EQ(past.value, 3.5);
  EXPECT_EQ(past.stretches, (std::vector<double>{1.5, 3.5, 5.5}));
  EXPECT_EQ(past.limited[0], 3.5);
  EXPECT_EQ(past.limited[1], 0);
}

// ---- runs ----

// Short and long jobs come faster than two GPUs finish them; users say how long they run.
std::vector<JobRecord> busy_log(std::uint64_t seed, int jobs) {
  detail::WorldDraws draw(seed);
  std::vector<JobRecord> rows;
  for (int i = 0; i < jobs; ++i) {
    const auto work = static_cast<std::int64_t>(draw.chance(3) ? 400 + draw.below(400) : 1 + draw.below(40));
    rows.push_back(asked(60 * i + static_cast<std::int64_t>(draw.below(50)), work, 2, work));
  }
  return rows;
}

std::vector<std::string> active_policies(const PortfolioRun& run) {
  std::vector<std::string> names;
  for (const auto& row : rows_of_notes(run.notes)) {
    if (row.at("active") == "1") names.push_back(row.at("policy"));
  }
  return names;
}

TEST(Guarded, LeavesTheRunToItsPlainPolicyWhereTheAgentIsWorse) {
  const JobTable jobs = table_of_asked(busy_log(1, 300));
  const PortfolioRun plain = portfolio_run("sjf", jobs, Cluster::pool(2));
  const PortfolioRun agent = portfolio_run("ljf", jobs, Cluster::pool(2));
  const PortfolioRun guarded =
      portfolio_run("guarded{policies=[sjf],agents=[ljf],first_jobs=20}", jobs, Cluster::pool(2));
  ASSERT_GT(agent.jct_s, 1.1 * plain.jct_s);
  EXPECT_EQ(guarded.history, plain.history);
  const std::vector<std::string> names = active_policies(guarded);
  EXPECT_GE(names.size(), 6u);
  EXPECT_EQ(names, std::vector<std::string>(names.size(), "sjf"));
}

TEST(Guarded, GivesTheRunToAnAgentThatWasClearlyBetter) {
  const JobTable jobs = table_of_asked(busy_log(1, 300));
  const PortfolioRun plain = portfolio_run("ljf", jobs, Cluster::pool(2));
  const PortfolioRun guarded =
      portfolio_run("guarded{policies=[ljf],agents=[sjf],first_jobs=20,margin=0.01}", jobs, Cluster::pool(2));
  // Once is not enough.
  const std::vector<std::string> names = active_policies(guarded);
  EXPECT_EQ(names[0], "ljf");
  EXPECT_EQ(names[1], "sjf");
  EXPECT_EQ(names.back(), "sjf");
  EXPECT_LT(guarded.jct_s, 0.9 * plain.jct_s);
  const auto rows = rows_of_notes(guarded.notes);
  EXPECT_LT(std::stod(rows.back().at("highest_difference")), -0.01);
}

// An agent has to be better than the best plain policy, not only than the one in charge.
TEST(Guarded, PrefersAPlainPolicyThatIsAsGood) {
  const JobTable jobs = table_of_asked(busy_log(1, 300));
  const auto names = active_policies(portfolio_run(
      "guarded{policies=[ljf,sjf],agents=[sjf{estimate=exact}],first_jobs=20,margin=0.01}", jobs, Cluster::pool(2)));
  EXPECT_EQ(names.back(), "sjf");
}

// Users say how long jobs run, so that the replay of the jobs so far is a run of each policy over them alone.
TEST(Guarded, ReplaysTheLogSoFarUnderEachPolicy) {
  const std::vector<JobRecord> rows = busy_log(3, 120);
  EngineOptions options;
  options.preemption.restart = whole_seconds(7);
  const Cluster cluster = Cluster::homogeneous(1, 4);
  const PortfolioRun run =
      portfolio_run("guarded{policies=[fifo,sjf,las],first_jobs=30}", table_of_asked(rows), cluster, options);
  const auto notes = rows_of_notes(run.notes);
  ASSERT_GE(notes.size(), 9u);
  for (const auto& row : notes) {
    const auto count = std::stoi(row.at("jobs"));
    const JobTable past = table_of_asked({rows.begin(), rows.begin() + count});
    EXPECT_NEAR(std::stod(row.at("value")), portfolio_run(row.at("policy"), past, cluster, options).jct_s, 1e-6)
        << row.at("policy") << " " << count;
  }
  EXPECT_EQ(notes[0].at("jobs"), "30");
  EXPECT_EQ(notes[3].at("jobs"), "45");
}

// Jobs that are not done by `until` may run for any time: nothing that is noted until then changes.
TEST(Guarded, DoesNotKnowTheFuture) {
  const double until_s = 4000;
  int different = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    std::vector<JobRecord> rows, other;
    detail::WorldDraws draw(seed);
    for (int i = 0; i < 150; ++i) {
      const auto submit = static_cast<std::int64_t>(draw.below(6000));
      const bool is_long = draw.chance(4);
      const auto work = static_cast<std::int64_t>(is_long ? 7000 + draw.below(5000) : 1 + draw.below(300));
      const auto gpus = static_cast<std::uint32_t>(1 + draw.below(3));
      const bool is_free = is_long || static_cast<double>(submit) > until_s;
      rows.push_back(asked(submit, work, gpus));
      other.push_back(asked(submit, is_free ? 7000 + static_cast<std::int64_t>(draw.below(20'000)) : work, gpus));
    }
    const std::string policy =
        "guarded{policies=[fifo,saf,las],agents=[sjf{estimate=history},agenda{mode=preempt,heuristic="
        "gittins}],first_jobs=15,growth=1.1,margin=0,stretches=3}";
    const auto early = [&](const JobTable& jobs) {
      auto then = rows_of_notes(portfolio_run(policy, jobs, Cluster::homogeneous(2, 4)).notes);
      std::erase_if(then, [&](auto& row) { return std::stod(row.at("from_s")) > until_s; });
      for (auto& row : then) row.erase("until_s");
      return then;
    };
    const auto first = early(table_of_asked(rows)), second = early(table_of_asked(other));
    EXPECT_EQ(first, second) << seed;
    ASSERT_GT(first.size(), 20u);
    different += table_of_asked(rows).work(JobId{149}) != table_of_asked(other).work(JobId{149}) ? 1 : 0;
  }
  EXPECT_GT(different, 0);
}

TEST(Guarded, TrustsNobodyWhomItCannotReplayWithinTheBudget) {
  const JobTable jobs = table_of_asked(busy_log(1, 100));
  const std::string text = "guarded{policies=[ljf],agents=[sjf],first_jobs=20,margin=0,budget_events=";
  const PortfolioRun none = portfolio_run(text + "20}", jobs, Cluster::pool(2));
  EXPECT_EQ(none.history, portfolio_run("ljf", jobs, Cluster::pool(2)).history);
  for (const auto& row : rows_of_notes(none.notes)) EXPECT_EQ(row.at("value"), "");
}

TEST(Guarded, SaysInALineWhatIsWrong) {
  for (const auto& [text, line] : std::map<std::string, std::string>{
           {"guarded{policies=[]}", "policy guarded, parameter policies: expected one policy or more"},
           {"guarded{policies=[fifo],agents=[fifo]}", "policy guarded, parameter policies: fifo is named twice"},
           {"guarded{agents=[rl:builtin/phily]}", "no model 'phily' comes with the program"},
           {"guarded{agents=[rl:no/such/folder]}", "no/such/folder"},
           {"guarded{agents=fifo}", "policy guarded, parameter agents: expected a list of policies or pairs"},
           {"guarded{agents=[bandit]}", "policy bandit holds policies itself, and cannot be held"},
           {"guarded{growth=1}", "policy guarded, parameter growth: expected a number between 1.01"},
           {"guarded{stretches=2.5}", "policy guarded, parameter stretches: expected a whole number between 2"},
           {"guarded{first_jobs=5}", "policy guarded, parameter first_jobs: expected as many as stretches, or more"},
           {"guarded{figure=speed}", "policy guarded, parameter figure: expected avg_jct_s|"}}) {
    EXPECT_NE(portfolio_error(text).find(line), std::string::npos) << text << ": " << portfolio_error(text);
    EXPECT_EQ(portfolio_error(text).find('\n'), std::string::npos) << text;
  }
  EXPECT_EQ(portfolio_error("guarded{agents=[]}"), "");
}

TEST(Guarded, IsClairvoyantWhereItOrAMemberIs) {
  const JobTable jobs = table_of_asked({asked(0, 10, 1)});
  const auto knows = [&](const std::string& text) { return make(text, jobs, Cluster::pool(2))->clairvoyant(); };
  EXPECT_FALSE(knows("guarded{agents=[rl:builtin/philly]}"));
  EXPECT_TRUE(knows("guarded{agents=[srtf]}"));
  EXPECT_TRUE(knows("guarded{estimate=noisy}"));
}

}  // namespace
}  // namespace gpusched::test
