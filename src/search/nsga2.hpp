// SPDX-License-Identifier: Apache-2.0
/// NSGA-II (Deb et al., IEEE Transactions on Evolutionary Computation 6(2), 2002) and the hypervolume of a front, both
/// of pagmo2 where the build has it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/search/pareto.hpp"

namespace gpusched {

/// One number of a genome.
struct Gene {
  double lower = 0, upper = 1;
  bool integer = false;  ///< whole numbers, bounds included
};

using Genome = std::vector<double>;

/// What is minimised.
struct SearchProblem {
  std::vector<Gene> genes;  ///< the integers last
  std::size_t objectives = 0;
  /// The losses of each genome, finite. An error ends the search.
  std::function<Result<std::vector<Losses>>(std::span<const Genome>)> evaluate;
};

struct Nsga2Options {
  std::uint32_t population = 32;   ///< a multiple of 4, at least 8
  std::uint32_t generations = 20;  ///< behind the first population, which is drawn at random
  std::uint64_t seed = 0;
};

/// The candidates of a generation, with their losses.
struct Population {
  std::vector<Genome> genomes;
  std::vector<Losses> losses;
};

/// True when this build has pagmo2; without it, what follows is not to be called.
bool has_pagmo();
/// "2.18.0"; empty without pagmo2.
std::string pagmo_version();

/// `count` genomes, uniform between the bounds, number `generation` of that seed.
std::vector<Genome> random_genomes(std::span<const Gene> genes, std::uint32_t count, std::uint64_t seed,
                                   std::uint32_t generation);

/// Calls `after` with the first population, as generation 0, and with that of each generation. Crossover probability
/// 0.95 with distribution index 10; a gene mutates with probability 1 / genes and distribution index 20 (Deb et al.,
/// section V: 1 / genes, 20). The same problem and options give the same populations, with one version of pagmo2.
/// Errors: those of `evaluate` and `after`. Preconditions: has_pagmo(), at least two objectives and one gene.
Result<void> run_nsga2(const SearchProblem& problem, const Nsga2Options& options,
                       const std::function<Result<void>(std::uint32_t generation, const Population&)>& after);

/// The volume that the points dominate below `reference`; those that are not below it everywhere count for nothing.
double hypervolume(std::span<const Losses> points, const Losses& reference);

/// The `count` best by non-dominated sorting and crowding distance, in ascending order of their numbers.
std::vector<std::size_t> select_spread(std::span<const Losses> points, std::size_t count);

}  // namespace gpusched
