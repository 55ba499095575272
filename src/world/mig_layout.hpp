// SPDX-License-Identifier: Apache-2.0
/// Cards that were cut into MIG instances, of what a cluster says of its instances: how many of each profile.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/data/mig.hpp"

namespace gpusched {

struct CutCards {
  std::uint32_t model = 0;                           ///< in mig_models
  std::vector<std::vector<MigInstance>> cards = {};  ///< by start
};

/// The least number of cards that hold these instances: alike cards where there can be, else the largest instances
/// first. The model is one of those that the card's name may mean ("a100", "NVIDIA-A100-SXM4-80GB"; empty: any) and
/// that has all profiles, the one of fewest cards. Nothing where there is none, or for more than 64 cards.
std::optional<CutCards> cut_cards(std::string_view card, const std::map<std::string, std::int64_t>& instances);

}  // namespace gpusched
