// SPDX-License-Identifier: Apache-2.0
/// The parameters of Gavel's policies.
#pragma once

#include <string>
#include <vector>

#include "src/policies/seam/registry.hpp"
#include "src/policies/throughput/gavel_allocator.hpp"

namespace gpusched {

/// Of rounds and the time between allocations.
std::vector<ParameterInfo> round_parameters();
/// These, and those of gavel_allocator().
std::vector<ParameterInfo> gavel_parameters();
/// Makes allocations as the parameters say. Errors name `policy`.
Result<GavelAllocator> gavel_allocator(const std::string& policy, const PolicyParameters& parameters,
                                       const PolicyContext& context);

}  // namespace gpusched
