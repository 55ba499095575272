// SPDX-License-Identifier: Apache-2.0
/// The files of profiles/ as they were when the program was built, so that their names work from any folder.
#pragma once

#include <span>
#include <string_view>

namespace gpusched {

struct ShippedProfile {
  std::string_view name;  ///< file name without its ending
  std::string_view json;
};

/// All of them, by name.
std::span<const ShippedProfile> shipped_profiles();

}  // namespace gpusched
