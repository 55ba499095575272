// SPDX-License-Identifier: Apache-2.0
/// Policies that may grow faster than others, by name and with the reason.
#pragma once

#include <span>
#include <string_view>

namespace gpusched::test {

/// What a policy may grow by beyond the common bound.
struct GrowthException {
  std::string_view policy;  ///< its name; with '-' behind it on jobs without deadlines
  std::string_view what;    ///< what is doubled
  double most = 0;          ///< 0: it refuses such a world, in words
  std::string_view reason;
};

/// All of them.
[[nodiscard]] std::span<const GrowthException> growth_exceptions();

}  // namespace gpusched::test
