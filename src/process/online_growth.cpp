// SPDX-License-Identifier: Apache-2.0
#include "src/process/online_growth.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace gpusched {
namespace {

// Those that prepare for no job that was not submitted, but by owners, demands and columns.
struct GrowingPolicy {
  std::string_view name;
  std::uint32_t remembers = no_index;
};
// Equal jobs of these stand in an order that comes of their history.
constexpr std::uint32_t for_ties = 100'000;
constexpr GrowingPolicy growing[] = {{"fifo", 0},
                                     {"fifo-skip", 0},
                                     {"sjf", 0},
                                     {"saf", 0},
                                     {"ljf", 0},
                                     {"lpjf", 0},
                                     {"weighted", 0},
                                     {"f1", 0},
                                     {"f2", 0},
                                     {"f3", 0},
                                     {"f4", 0},
                                     {"wfp3", 0},
                                     {"wfp3@sc20", 0},
                                     {"unicep", 0},
                                     {"unicep@sc20", 0},
                                     {"edf", 0},
                                     {"drf", 0},
                                     {"hdrf", 0},
                                     {"tiresias", 0},
                                     {"yarn-capacity", 0},
                                     {"yarn-fair", 0},
                                     {"volcano", 0},
                                     {"srtf", for_ties},
                                     {"srsf", for_ties},
                                     {"las", for_ties},
                                     {"max-min"},
                                     {"gandiva"},
                                     {"priority"},
                                     {"qssf"},
                                     {"tiresias-gittins"},
                                     {"longest-waiting-user"},
                                     {"lsf"},
                                     {"slurm"},
                                     {"themis"},
                                     {"gavel"},
                                     {"optimus"},
                                     {"pollux"},
                                     {"elasticflow"},
                                     {"bestfit"},
                                     {"dotprod"},
                                     {"gpu-packing"},
                                     {"gpu-clustering"},
                                     {"random-node"},
                                     {"k8s"},
                                     {"kai"},
                                     {"agenda"}};

std::string_view estimate_of(const PolicySpec& spec) {
  const auto given = spec.given.find("estimate");
  if (given == spec.given.end()) return {};
  const auto* const word = std::get_if<std::string>(&given->second);
  return word == nullptr ? std::string_view() : std::string_view(*word);
}

}  // namespace

OnlineGrowth online_growth(const PolicySpec& policy) {
  const auto row = std::find_if(std::begin(growing), std::end(growing),
                                [&policy](const GrowingPolicy& other) { return other.name == policy.name; });
  if (row == std::end(growing)) return {};
  OnlineGrowth growth{.takes_new_jobs = true, .remembers = row->remembers};
  const PolicySpec* const way = policy.backfill.empty() ? nullptr : &policy.backfill.front();
  if (way != nullptr && way->name != "easy") growth.remembers = no_index;  // reservations come of their history
  for (const PolicySpec* part : {&policy, way}) {
    if (part == nullptr) continue;
    const std::string_view estimate = estimate_of(*part);
    const bool is_request = estimate == "requested" || (estimate.empty() && part == way);
    if (is_request) growth.learns_without_estimates = true;
    const bool learns = !estimate.empty() && estimate != "requested" && estimate != "exact" && estimate != "user";
    if (learns) return {};
  }
  return growth;
}

}  // namespace gpusched
