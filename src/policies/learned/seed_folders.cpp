// SPDX-License-Identifier: Apache-2.0
#include "src/policies/learned/seed_folders.hpp"

#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "src/base/atomic_file.hpp"
#include "src/base/field_parser.hpp"
#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"

namespace gpusched {
namespace {

constexpr std::uint64_t largest_seed = std::uint64_t{1} << 53;  // up to here a configuration holds every whole number

std::string seeds_file(const std::string& folder) { return folder + "/seeds.json"; }

struct SeedRange {
  std::uint64_t first = 0, last = 0;
};

Result<SeedRange> parse_range(std::string_view text) {
  const std::size_t dots = text.find("..");
  const auto number = [](std::string_view part) {
    const auto value = parse_exact<std::uint64_t>(part);
    return value && *value <= largest_seed ? value : std::nullopt;
  };
  const auto first = number(text.substr(0, dots));
  const auto last = dots == std::string_view::npos ? first : number(text.substr(dots + 2));
  if (!first || !last) {
    return unexpected("expected seeds as in 1..10 or 1,2,5 (whole numbers up to 2^53), not '" + std::string(text) +
                      "'");
  }
  if (*first > *last) return unexpected("the range " + std::string(text) + " goes down");
  return SeedRange{*first, *last};
}

}  // namespace

Result<Seeds> parse_seeds(std::string_view text) {
  Seeds seeds;
  std::unordered_set<std::uint64_t> seen;  // asked only, never walked through
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto range = parse_range(text.substr(begin, end - begin));
    if (!range) return Unexpected{range.error()};
    if (range->last - range->first >= most_seeds - seeds.size()) {
      return unexpected("more than " + human_count(most_seeds) + " seeds");
    }
    for (std::uint64_t seed = range->first; seed <= range->last; ++seed) {
      if (!seen.insert(seed).second) return unexpected("seed " + std::to_string(seed) + " is given twice");
      seeds.push_back(seed);
    }
    begin = end + 1;
  }
  return seeds;
}

std::string seeds_text(std::span<const std::uint64_t> seeds) {
  std::string text;
  for (std::size_t begin = 0; begin < seeds.size();) {
    std::size_t end = begin + 1;
    while (end < seeds.size() && seeds[end] == seeds[end - 1] + 1) ++end;
    text += (begin == 0 ? "" : ",") + std::to_string(seeds[begin]);
    if (end - begin > 1) text += (end - begin > 2 ? ".." : ",") + std::to_string(seeds[end - 1]);
    begin = end;
  }
  return text;
}

std::string seed_folder(const std::string& folder, std::uint64_t seed) {
  return folder + "/seed-" + std::to_string(seed);
}

bool holds_seeds(const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::exists(seeds_file(folder), ignored);
}

Result<Seeds> read_seeds(const std::string& folder) {
  const std::string file = seeds_file(folder);
  const auto text = read_text_file(file);
  if (!text) return Unexpected{text.error()};
  const auto json = parse_json_strictly(*text, file);
  if (!json) return Unexpected{json.error()};
  const bool known = json->is_object() && json->contains("seeds") && (*json)["seeds"].is_string();
  auto seeds = known ? parse_seeds((*json)["seeds"].get<std::string>()) : unexpected("expected a text of seeds");
  if (!seeds) return Unexpected{Error{.message = seeds.error().message, .file = file, .field = "/seeds"}};
  return seeds;
}

Result<void> write_seeds(const std::string& folder, std::span<const std::uint64_t> seeds) {
  return replace_file(seeds_file(folder), json_text({{"seeds", seeds_text(seeds)}}));
}

}  // namespace gpusched
