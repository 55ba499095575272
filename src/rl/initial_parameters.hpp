// SPDX-License-Identifier: Apache-2.0
/// The parameters that training starts from.
#pragma once

#include <vector>

#include "gpusched/core/rng.hpp"
#include "src/policies/learned/score_network.hpp"

namespace gpusched {

/// Orthogonal rows (Saxe et al., 2014) with gain sqrt 2, 1 in the critic's last layer, zeros in the layers that give
/// logits; biases 0. So hidden units change no score at first.
std::vector<float> initial_parameters(const NetworkSpec& spec, Rng rng);

}  // namespace gpusched
