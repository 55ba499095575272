// SPDX-License-Identifier: Apache-2.0
/// MIG (Multi-Instance GPU): how NVIDIA cards can be cut into instances, and which layouts are legal.
///
/// Source: NVIDIA Multi-Instance GPU User Guide, "Supported MIG Profiles"
/// (docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html), and the start positions that
/// `nvidia-smi mig -lgipp` prints there. Profiles with media extensions (+me) differ from those without only in
/// decoders, which are not modelled: they are read as the plain ones.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// Memory slices of the largest card.
inline constexpr std::uint32_t most_mig_slices = 8;

/// A set of memory slices of one card: bit s is slice s.
using MigSlices = std::uint8_t;

/// What an instance may be on a card.
struct MigProfile {
  std::string_view name;     ///< "1g.5gb"
  std::uint8_t compute = 0;  ///< compute slices
  std::uint8_t memory = 0;   ///< neighbouring memory slices
  MigSlices starts = 0;      ///< bit s: an instance may begin at memory slice s

  /// The memory slices of an instance that begins at `start`.
  [[nodiscard]] constexpr MigSlices slices(std::uint32_t start) const {
    return static_cast<MigSlices>(((1u << memory) - 1u) << start);
  }
};

/// A card that can be cut. Two instances never share a memory slice; no other rule limits a layout.
struct MigModel {
  std::string_view name;            ///< "A100-40GB": what a cluster file calls the card
  std::uint8_t compute_slices = 0;  ///< 7, or 4 on an A30
  std::uint8_t memory_slices = 0;   ///< 8, or 4
  std::int64_t memory_mib = 0;      ///< of the whole card, by its name
  std::uint32_t profile_count = 0;  ///< of `all`
  std::array<MigProfile, 6> all{};  ///< by rising memory, then compute slices; the first profile_count count

  /// What it can be cut into.
  [[nodiscard]] constexpr std::span<const MigProfile> profiles() const { return {all.data(), profile_count}; }
  /// Every memory slice.
  [[nodiscard]] constexpr MigSlices whole() const { return static_cast<MigSlices>((1u << memory_slices) - 1u); }
  /// The part of the card that an instance computes with, in thousandths of a GPU, rounded down.
  [[nodiscard]] constexpr MilliGpu milli(const MigProfile& profile) const {
    return profile.compute * whole_gpu / compute_slices;
  }
  /// The position of a profile in profiles(); no_index for a name that is none of them.
  [[nodiscard]] constexpr std::uint32_t find(std::string_view profile) const {
    for (std::uint32_t p = 0; p < profile_count; ++p) {
      if (all[p].name == profile) return p;
    }
    return no_index;
  }
};

namespace detail {

constexpr MigModel seven_slices(std::string_view name, std::int64_t gib, const std::array<std::string_view, 6>& names) {
  return {.name = name,
          .compute_slices = 7,
          .memory_slices = 8,
          .memory_mib = gib * 1024,
          .profile_count = 6,
          .all = {{{names[0], 1, 1, 0b0111'1111},
                   {names[1], 1, 2, 0b0101'0101},
                   {names[2], 2, 2, 0b0001'0101},
                   {names[3], 3, 4, 0b0001'0001},
                   {names[4], 4, 4, 0b0000'0001},
                   {names[5], 7, 8, 0b0000'0001}}}};
}

}  // namespace detail

/// All cards that are known.
inline constexpr std::array<MigModel, 5> mig_models{
    {{.name = "A30-24GB",
      .compute_slices = 4,
      .memory_slices = 4,
      .memory_mib = 24 * 1024,
      .profile_count = 3,
      .all = {{{"1g.6gb", 1, 1, 0b1111}, {"2g.12gb", 2, 2, 0b0101}, {"4g.24gb", 4, 4, 0b0001}, {}, {}, {}}}},
     detail::seven_slices("A100-40GB", 40, {"1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"}),
     detail::seven_slices("A100-80GB", 80, {"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}),
     detail::seven_slices("H100-80GB", 80, {"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}),
     detail::seven_slices("H200-141GB", 141, {"1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"})}};

/// The position in mig_models of a card's name; no_index for any other.
constexpr std::uint32_t find_mig_model(std::string_view name) {
  for (std::uint32_t m = 0; m < mig_models.size(); ++m) {
    if (mig_models[m].name == name) return m;
  }
  return no_index;
}

/// An instance on a card: which profile, beginning at which memory slice.
struct MigInstance {
  std::uint8_t profile = 0;                                                  ///< position in MigModel::profiles()
  std::uint8_t start = 0;                                                    ///< memory slice
  friend bool operator==(const MigInstance&, const MigInstance&) = default;  ///< field by field
};

/// Where instances of these profiles (positions in MigModel::profiles(), in any order) can stand together on one card:
/// an instance for each, by start. Empty when they cannot.
inline std::vector<MigInstance> place_mig_instances(const MigModel& model, std::span<const std::uint32_t> profiles) {
  std::vector<MigInstance> placed;
  // The largest first, at the first start where the rest finds room too. At most 7 instances of at most 7 starts.
  std::vector<std::uint32_t> order(profiles.begin(), profiles.end());
  std::sort(order.rbegin(), order.rend());
  if (order.size() > model.compute_slices) return {};
  const auto place_rest = [&placed, &order, &model](const auto& self, MigSlices held) -> bool {
    if (placed.size() == order.size()) return true;
    const std::uint32_t p = order[placed.size()];
    const MigProfile& profile = model.profiles()[p];
    for (std::uint32_t start = 0; start < model.memory_slices; ++start) {
      if ((profile.starts >> start & 1) == 0 || (profile.slices(start) & held) != 0) continue;
      placed.push_back({static_cast<std::uint8_t>(p), static_cast<std::uint8_t>(start)});
      if (self(self, static_cast<MigSlices>(held | profile.slices(start)))) return true;
      placed.pop_back();
    }
    return false;
  };
  if (!place_rest(place_rest, 0)) return {};
  std::sort(placed.begin(), placed.end(), [](const MigInstance& a, const MigInstance& b) { return a.start < b.start; });
  return placed;
}

/// What decides how the cards of a node are cut.
enum class MigLayout : std::uint8_t {
  fixed,      ///< the cluster file, once and for all
  dynamic,    ///< the jobs: a card is cut as they come, where the fewest other instances lose their place
  first_fit,  ///< the same, at the first start that is free
};

/// How the cards of a node are cut.
struct MigNode {
  std::uint32_t model = 0;                            ///< in mig_models
  MigLayout layout = MigLayout::fixed;                ///< who decides
  std::vector<std::vector<MigInstance>> cards = {};   ///< fixed: by GPU of the node, by start; none: not in MIG mode
  Time reconfigure = {10 * microseconds_per_second};  ///< to change a card's instances, or its mode (assumed)
  friend bool operator==(const MigNode&, const MigNode&) = default;  ///< field by field
};

/// A text that ends with a profile: what stands before it, and the profile. Slurm writes "a100_1g.5gb".
struct MigName {
  std::string_view card;     ///< without the separator; may be empty
  std::string_view profile;  ///< without "+me"; empty: the text names no profile
};

/// Reads such a text: the profile begins it, or follows one of "_-.". Upper and lower case differ.
constexpr MigName mig_name(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (at > 0 && text[at - 1] != '_' && text[at - 1] != '-' && text[at - 1] != '.') continue;
    const std::string_view rest = text.substr(at);
    if (rest.size() < 6 || !is_digit(rest[0]) || rest[0] == '0' || rest.substr(1, 2) != "g.") continue;
    std::size_t end = 3;
    while (end < rest.size() && is_digit(rest[end])) ++end;
    if (end == 3 || rest.substr(end, 2) != "gb") continue;
    end += 2;
    if (end < rest.size() && rest[end] != '+' && rest[end] != '.') continue;
    return {.card = text.substr(0, at == 0 ? 0 : at - 1), .profile = rest.substr(0, end)};
  }
  return {};
}

}  // namespace gpusched
