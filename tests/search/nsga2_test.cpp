// SPDX-License-Identifier: Apache-2.0
// NSGA-II as the search drives it, on functions whose fronts are known: ZDT (Zitzler, Deb and Thiele, Evolutionary
// Computation 8(2), 2000) and DTLZ (Deb, Thiele, Laumanns and Zitzler, CEC 2002); hypervolumes worked out by hand.
#include "src/search/nsga2.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <numeric>
#include <set>
#include <utility>

namespace gpusched {
namespace {

class Nsga2 : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_pagmo()) GTEST_SKIP() << "this build has no pagmo2";
  }
};

std::vector<Gene> unit_genes(std::size_t count) { return std::vector<Gene>(count); }

SearchProblem problem_of(std::vector<Gene> genes, std::size_t objectives, Losses (*losses)(const Genome&)) {
  return {.genes = std::move(genes),
          .objectives = objectives,
          .evaluate = [losses](std::span<const Genome> genomes) -> Result<std::vector<Losses>> {
            std::vector<Losses> all;
            for (const Genome& genome : genomes) all.push_back(losses(genome));
            return all;
          }};
}

// 1 + 9 x the mean of all genes but the first.
double zdt_g(const Genome& x) {
  return 1 + 9 * std::accumulate(x.begin() + 1, x.end(), 0.0) / static_cast<double>(x.size() - 1);
}
Losses zdt1(const Genome& x) { return {x[0], zdt_g(x) * (1 - std::sqrt(x[0] / zdt_g(x)))}; }
Losses zdt2(const Genome& x) { return {x[0], zdt_g(x) * (1 - x[0] / zdt_g(x) * (x[0] / zdt_g(x)))}; }
Losses zdt3(const Genome& x) {
  const double ratio = x[0] / zdt_g(x);
  return {x[0], zdt_g(x) * (1 - std::sqrt(ratio) - ratio * std::sin(10 * std::numbers::pi * x[0]))};
}
// Three objectives on the unit sphere where the genes behind the second are 0.5.
Losses dtlz2(const Genome& x) {
  double g = 0;
  for (std::size_t i = 2; i < x.size(); ++i) g += (x[i] - 0.5) * (x[i] - 0.5);
  const double a = x[0] * std::numbers::pi / 2, b = x[1] * std::numbers::pi / 2;
  return {(1 + g) * std::cos(a) * std::cos(b), (1 + g) * std::cos(a) * std::sin(b), (1 + g) * std::sin(a)};
}

Population last_of(const SearchProblem& problem, const Nsga2Options& options) {
  Population last;
  const auto done = run_nsga2(problem, options, [&](std::uint32_t, const Population& population) -> Result<void> {
    last = population;
    return {};
  });
  EXPECT_TRUE(done) << (done ? "" : done.error().to_string());
  return last;
}

std::vector<Losses> all_random(const SearchProblem& problem, std::uint32_t count) {
  auto losses = problem.evaluate(random_genomes(problem.genes, count, 1, 0));
  return *std::move(losses);
}

TEST_F(Nsga2, ReachesTheFrontsOfZdt) {
  const Nsga2Options options{.population = 100, .generations = 200, .seed = 1};
  const Losses reference{1.1, 1.1};
  const auto volume = [&](Losses (*losses)(const Genome&)) {
    return hypervolume(last_of(problem_of(unit_genes(30), 2, losses), options).losses, reference);
  };
  // 1.21 less what lies below the front: the integral of 1 - sqrt(x), 1/3, and of 1 - x^2, 2/3. A hundred points on
  // the front leave steps of 1 % of it.
  const double zdt1_front = 1.21 - 1.0 / 3, zdt2_front = 1.21 - 2.0 / 3;
  EXPECT_GT(volume(zdt1), zdt1_front - 0.012);
  EXPECT_LE(volume(zdt1), zdt1_front);
  EXPECT_GT(volume(zdt2), zdt2_front - 0.012);
  EXPECT_LE(volume(zdt2), zdt2_front);
  // As many random points stay far from it.
  EXPECT_EQ(hypervolume(all_random(problem_of(unit_genes(30), 2, zdt1), 100 * 201), reference), 0);
}

TEST_F(Nsga2, EveryPointLiesOnTheFront) {
  const Nsga2Options options{.population = 100, .generations = 250, .seed = 3};
  const Population last = last_of(problem_of(unit_genes(30), 2, zdt3), options);
  std::set<int> pieces;  // the front of ZDT3 is broken into five
  for (std::size_t i = 0; i < last.genomes.size(); ++i) {
    EXPECT_LT(zdt_g(last.genomes[i]), 1.05) << "1 on the front";
    const double f1 = last.losses[i][0];
    pieces.insert(f1 < 0.1 ? 0 : f1 < 0.3 ? 1 : f1 < 0.5 ? 2 : f1 < 0.7 ? 3 : 4);
  }
  EXPECT_EQ(pieces.size(), 5u);
}

TEST_F(Nsga2, ReachesTheSphereOfDtlz2) {
  const Population last =
      last_of(problem_of(unit_genes(12), 3, dtlz2), {.population = 200, .generations = 150, .seed = 1});
  for (const Losses& point : last.losses) {
    EXPECT_NEAR(std::hypot(point[0], point[1], point[2]), 1, 0.06);
  }
  const double front = 1.1 * 1.1 * 1.1 - std::numbers::pi / 6;  // less an eighth of the unit ball
  const double volume = hypervolume(last.losses, {1.1, 1.1, 1.1});
  EXPECT_GT(volume, front - 0.1);
  EXPECT_LE(volume, front);
  const auto random = all_random(problem_of(unit_genes(12), 3, dtlz2), 200 * 151);
  EXPECT_LT(hypervolume(random, {1.1, 1.1, 1.1}), volume - 0.1);
}

TEST_F(Nsga2, IntegersStayWholeAndTheirFrontIsFound) {
  const auto problem = problem_of({{.lower = -1, .upper = 1}, {.lower = -20, .upper = 20, .integer = true}}, 2,
                                  [](const Genome& x) -> Losses {
                                    EXPECT_EQ(x[1], std::floor(x[1]));
                                    return {x[1] + std::abs(x[0]), (x[1] - 7) * (x[1] - 7) + std::abs(x[0])};
                                  });
  const Population last = last_of(problem, {.population = 64, .generations = 60, .seed = 2});
  std::set<double> whole;
  for (const Genome& genome : last.genomes) whole.insert(genome[1]);
  for (double x = -20; x <= 7; ++x) EXPECT_TRUE(whole.contains(x)) << x;
  EXPECT_FALSE(whole.contains(8));  // 7 is better in both
}

TEST_F(Nsga2, OneSeedGivesOneSearchAndAnotherAnother) {
  const auto problem = problem_of(unit_genes(5), 2, zdt1);
  const Nsga2Options options{.population = 8, .generations = 5, .seed = 7};
  EXPECT_EQ(last_of(problem, options).genomes, last_of(problem, options).genomes);
  EXPECT_NE(last_of(problem, options).genomes,
            last_of(problem, {.population = 8, .generations = 5, .seed = 8}).genomes);
}

TEST_F(Nsga2, AnErrorOfAnEvaluationEndsTheSearch) {
  SearchProblem problem = problem_of(unit_genes(5), 2, zdt1);
  int calls = 0;
  problem.evaluate = [&calls,
                      inner = problem.evaluate](std::span<const Genome> genomes) -> Result<std::vector<Losses>> {
    if (++calls == 3) return unexpected("the disk is full");
    return inner(genomes);
  };
  const auto done = run_nsga2(problem, {.population = 8, .generations = 9, .seed = 1},
                              [](std::uint32_t, const Population&) -> Result<void> { return {}; });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "the disk is full");
  EXPECT_EQ(calls, 3);
}

TEST_F(Nsga2, HypervolumesWorkedOutByHand) {
  // Boxes to (4, 4): 3 x 1 of (1, 3), 2 x 2 of (2, 2) of which 2 x 1 is in the first.
  const std::vector<Losses> two{{1, 3}, {2, 2}};
  EXPECT_DOUBLE_EQ(hypervolume(two, {4, 4}), 5);
  // A point that another dominates, and points outside the box, add nothing.
  const std::vector<Losses> more{{1, 3}, {2, 2}, {3, 3}, {0, 5}, {4, 0}, {1e18, 1e18}};
  EXPECT_DOUBLE_EQ(hypervolume(more, {4, 4}), 5);
  EXPECT_EQ(hypervolume(std::vector<Losses>{{5, 5}}, {4, 4}), 0);
  // Cubes of 2 and of 1 x 3 x 1 that share 1 x 2 x 1: 8 + 3 - 2.
  const std::vector<Losses> three{{1, 1, 1}, {2, 0, 2}};
  EXPECT_DOUBLE_EQ(hypervolume(three, {3, 3, 3}), 9);
}

TEST_F(Nsga2, TheSpreadKeepsTheEndsOfAFront) {
  std::vector<Losses> points;
  for (int i = 0; i <= 10; ++i) points.push_back({static_cast<double>(i), 10.0 - i});
  points.push_back({20, 20});  // dominated by all
  const std::vector<std::size_t> chosen = select_spread(points, 4);
  EXPECT_EQ(chosen.size(), 4u);
  EXPECT_EQ(chosen.front(), 0u);
  EXPECT_EQ(chosen.back(), 10u);
  EXPECT_EQ(select_spread(points, 100).size(), points.size());
}

TEST(Pareto, DominationNeedsOneThatIsBetter) {
  EXPECT_TRUE(dominates({1, 2}, {1, 3}));
  EXPECT_FALSE(dominates({1, 2}, {1, 2}));
  EXPECT_FALSE(dominates({1, 3}, {2, 2}));
  const std::vector<Losses> points{{2, 2}, {1, 3}, {2, 2}, {2, 3}, {0, 9}};
  EXPECT_EQ(non_dominated(points), (std::vector<std::size_t>{0, 1, 2, 4}));
}

TEST(RandomGenomes, LieWithinTheirBoundsAndTakeEveryWholeNumber) {
  const std::vector<Gene> genes{{.lower = -3, .upper = -2}, {.lower = 4, .upper = 6, .integer = true}};
  std::set<double> whole;
  for (const Genome& genome : random_genomes(genes, 200, 5, 0)) {
    EXPECT_GE(genome[0], -3);
    EXPECT_LT(genome[0], -2);
    whole.insert(genome[1]);
  }
  EXPECT_EQ(whole, (std::set<double>{4, 5, 6}));
  EXPECT_NE(random_genomes(genes, 4, 5, 0), random_genomes(genes, 4, 5, 1));
}

}  // namespace
}  // namespace gpusched
