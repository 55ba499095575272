// SPDX-License-Identifier: Apache-2.0
#include "src/world/mig_layout.hpp"

#include <algorithm>
#include <utility>

#include "src/base/letter_case.hpp"

namespace gpusched {
namespace {

constexpr std::size_t most_cards = 64;  // of a node whose cards are told apart

// "A100-80GB" is meant by "a100", "nvidia_a100_80gb_pcie" and "", not by "a100-sxm4-40gb".
bool may_mean(std::string_view card, std::string_view model) {
  if (card.empty()) return true;
  const std::string name = lower_case(card), wanted = lower_case(model);
  const std::string family = wanted.substr(0, wanted.find('-')), memory = wanted.substr(wanted.find('-') + 1);
  if (name.find(family) == std::string::npos) return false;
  const std::size_t gb = name.find("gb");
  return gb == std::string::npos || name.find(memory) != std::string::npos;
}

// Positions of profiles, one for each instance; nothing where the model lacks one.
std::optional<std::vector<std::uint32_t>> profiles_of(const MigModel& model,
                                                      const std::map<std::string, std::int64_t>& instances) {
  std::vector<std::uint32_t> profiles;
  for (const auto& [name, count] : instances) {
    const std::uint32_t profile = model.find(name);
    if (profile == no_index || count < 0 || count > static_cast<std::int64_t>(most_cards * most_mig_slices)) {
      return std::nullopt;
    }
    profiles.insert(profiles.end(), static_cast<std::size_t>(count), profile);
  }
  std::sort(profiles.rbegin(), profiles.rend());  // the largest first
  return profiles;
}

bool fit(const MigModel& model, const std::vector<std::uint32_t>& profiles) {
  return place_mig_instances(model, profiles).size() == profiles.size();
}

// As many alike cards as divide the instances, where each then holds its part; else none.
std::vector<std::vector<std::uint32_t>> alike_cards(const MigModel& model, const std::vector<std::uint32_t>& profiles) {
  std::map<std::uint32_t, std::size_t> counts;
  for (const std::uint32_t profile : profiles) ++counts[profile];
  for (std::size_t cards = 1; cards <= std::min(profiles.size(), most_cards); ++cards) {
    const auto divides = [&](const auto& entry) { return entry.second % cards == 0; };
    if (!std::all_of(counts.begin(), counts.end(), divides)) continue;
    std::vector<std::uint32_t> part;
    for (const auto& [profile, count] : counts) part.insert(part.end(), count / cards, profile);
    if (part.size() <= model.compute_slices && fit(model, part)) return {cards, part};
  }
  return {};
}

// Each instance on the first card that holds it beside those before.
std::vector<std::vector<std::uint32_t>> first_fit_cards(const MigModel& model,
                                                        const std::vector<std::uint32_t>& profiles) {
  std::vector<std::vector<std::uint32_t>> cards;
  for (const std::uint32_t profile : profiles) {
    const auto place = std::find_if(cards.begin(), cards.end(), [&](std::vector<std::uint32_t>& card) {
      card.push_back(profile);
      const bool fits = card.size() <= model.compute_slices && fit(model, card);
      if (!fits) card.pop_back();
      return fits;
    });
    if (place == cards.end()) cards.push_back({profile});
  }
  return cards;
}

}  // namespace

std::optional<CutCards> cut_cards(std::string_view card, const std::map<std::string, std::int64_t>& instances) {
  std::optional<CutCards> best;
  for (std::uint32_t m = 0; m < mig_models.size(); ++m) {
    const MigModel& model = mig_models[m];
    const auto profiles = may_mean(card, model.name) ? profiles_of(model, instances) : std::nullopt;
    if (!profiles || profiles->empty()) continue;
    auto alike = alike_cards(model, *profiles), greedy = first_fit_cards(model, *profiles);
    const auto& cards = !alike.empty() && alike.size() <= greedy.size() ? alike : greedy;
    if (cards.size() > most_cards || (best && best->cards.size() <= cards.size())) continue;
    best = CutCards{.model = m};
    for (const std::vector<std::uint32_t>& profiles_of_card : cards) {
      best->cards.push_back(place_mig_instances(model, profiles_of_card));
    }
  }
  return best;
}

}  // namespace gpusched
