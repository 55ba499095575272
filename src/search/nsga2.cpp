// SPDX-License-Identifier: Apache-2.0
#include "src/search/nsga2.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "gpusched/core/config.hpp"
#include "gpusched/core/rng.hpp"

#ifdef GPUSCHED_HAS_PAGMO
#include <pagmo/algorithms/nsga2.hpp>
#include <pagmo/batch_evaluators/member_bfe.hpp>
#include <pagmo/bfe.hpp>
#include <pagmo/config.hpp>
#include <pagmo/exceptions.hpp>
#include <pagmo/population.hpp>
#include <pagmo/problem.hpp>
#include <pagmo/utils/hypervolume.hpp>
#include <pagmo/utils/multi_objective.hpp>
#endif

namespace gpusched {

std::vector<Genome> random_genomes(std::span<const Gene> genes, std::uint32_t count, std::uint64_t seed,
                                   std::uint32_t generation) {
  Rng rng = Rng(seed).split("search").split(generation);
  std::vector<Genome> genomes(count);
  for (Genome& genome : genomes) {
    for (const Gene& gene : genes) {
      const double draw = rng.uniform();
      const double width = gene.upper - gene.lower;
      genome.push_back(gene.integer ? std::min(gene.upper, gene.lower + std::floor(draw * (width + 1)))
                                    : gene.lower + draw * width);
    }
  }
  return genomes;
}

#ifdef GPUSCHED_HAS_PAGMO

namespace {

// Carries an error of `evaluate` through pagmo's loop.
struct EvaluationFailed {
  Error error;
};

// The problem as pagmo takes it, which copies it.
struct PagmoProblem {
  const SearchProblem* problem = nullptr;

  [[nodiscard]] std::pair<std::vector<double>, std::vector<double>> get_bounds() const {
    std::pair<std::vector<double>, std::vector<double>> bounds;
    for (const Gene& gene : problem->genes) {
      bounds.first.push_back(gene.lower);
      bounds.second.push_back(gene.upper);
    }
    return bounds;
  }
  [[nodiscard]] std::vector<double>::size_type get_nobj() const { return problem->objectives; }
  [[nodiscard]] std::vector<double>::size_type get_nix() const {
    return static_cast<std::size_t>(
        std::count_if(problem->genes.begin(), problem->genes.end(), [](const Gene& gene) { return gene.integer; }));
  }
  [[nodiscard]] std::vector<double> fitness(const std::vector<double>& genome) const { return batch_fitness(genome); }
  [[nodiscard]] std::vector<double> batch_fitness(const std::vector<double>& flat) const {
    const std::size_t width = problem->genes.size();
    std::vector<Genome> genomes;
    for (std::size_t i = 0; i < flat.size(); i += width) {
      const auto first = flat.begin() + static_cast<std::ptrdiff_t>(i);
      genomes.emplace_back(first, first + static_cast<std::ptrdiff_t>(width));
    }
    auto losses = problem->evaluate(genomes);
    if (!losses) throw EvaluationFailed{losses.error()};
    std::vector<double> result;
    for (const Losses& own : *losses) result.insert(result.end(), own.begin(), own.end());
    return result;
  }
};

Result<void> evolve(const SearchProblem& problem, const Nsga2Options& options,
                    const std::function<Result<void>(std::uint32_t, const Population&)>& after) {
  const auto first = random_genomes(problem.genes, options.population, options.seed, 0);
  auto losses = problem.evaluate(first);
  if (!losses) return Unexpected{losses.error()};
  if (auto done = after(0, {first, *losses}); !done) return done;

  // pagmo seeds a Mersenne twister with 32 bits.
  const auto seed = static_cast<unsigned>(Rng(options.seed).split("nsga2").next());
  pagmo::population population{pagmo::problem(PagmoProblem{&problem}), 0, seed};
  for (std::size_t i = 0; i < first.size(); ++i) population.push_back(first[i], (*losses)[i]);
  pagmo::nsga2 algorithm(1, 0.95, 10, 1 / static_cast<double>(problem.genes.size()), 20, seed);
  algorithm.set_bfe(pagmo::bfe(pagmo::member_bfe()));
  for (std::uint32_t generation = 1; generation <= options.generations; ++generation) {
    population = algorithm.evolve(std::move(population));
    if (auto done = after(generation, {population.get_x(), population.get_f()}); !done) return done;
  }
  return {};
}

}  // namespace

bool has_pagmo() { return true; }

std::string pagmo_version() {
  return std::to_string(PAGMO_VERSION_MAJOR) + "." + std::to_string(PAGMO_VERSION_MINOR) + "." +
         std::to_string(PAGMO_VERSION_PATCH);
}

Result<void> run_nsga2(const SearchProblem& problem, const Nsga2Options& options,
                       const std::function<Result<void>(std::uint32_t, const Population&)>& after) {
  GPUSCHED_ASSERT(problem.objectives >= 2 && !problem.genes.empty(), "nothing to search");
  try {
    return evolve(problem, options, after);
  } catch (const EvaluationFailed& failed) {
    return Unexpected{failed.error};
  }
}

double hypervolume(std::span<const Losses> points, const Losses& reference) {
  std::vector<Losses> inside;
  for (const Losses& point : points) {
    bool is_below = true;
    for (std::size_t i = 0; i < reference.size(); ++i) is_below = is_below && point[i] < reference[i];
    if (is_below) inside.push_back(point);
  }
  return inside.empty() ? 0 : pagmo::hypervolume(inside).compute(reference);
}

std::vector<std::size_t> select_spread(std::span<const Losses> points, std::size_t count) {
  std::vector<std::size_t> chosen;
  if (points.size() <= count) {
    chosen.resize(points.size());
    std::iota(chosen.begin(), chosen.end(), std::size_t{0});
    return chosen;
  }
  for (const auto number : pagmo::select_best_N_mo({points.begin(), points.end()}, count)) chosen.push_back(number);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

#else

bool has_pagmo() { return false; }
std::string pagmo_version() { return {}; }
Result<void> run_nsga2(const SearchProblem&, const Nsga2Options&,
                       const std::function<Result<void>(std::uint32_t, const Population&)>&) {
  return unexpected("pagmo2 is missing");
}
double hypervolume(std::span<const Losses>, const Losses&) { return 0; }
std::vector<std::size_t> select_spread(std::span<const Losses> points, std::size_t count) {
  std::vector<std::size_t> chosen(std::min(points.size(), count));
  std::iota(chosen.begin(), chosen.end(), std::size_t{0});
  return chosen;
}

#endif

}  // namespace gpusched
