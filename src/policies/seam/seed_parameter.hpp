// SPDX-License-Identifier: Apache-2.0
/// The parameter `seed` of everything that draws.
#pragma once

#include <cstdint>

#include "gpusched/core/rng.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// The parameter: 0 draws by the run's own seed alone, any other number draws something else in the same run.
inline ParameterInfo seed_parameter(std::string of) {
  return {.name = "seed",
          .fallback = 0.0,
          .meaning = std::move(of) + ", beside the run's own seed",
          .most = 1e15,
          .is_count = true};
}

/// The seed that it and the run give.
inline std::uint64_t drawing_seed(double parameter, const PolicyContext& context) {
  if (parameter == 0) return context.seed;
  return Rng(context.seed).split(static_cast<std::uint64_t>(parameter)).state()[0];
}

}  // namespace gpusched
