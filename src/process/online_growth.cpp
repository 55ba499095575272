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
  bool where_nodes_fail = true;
};
constexpr bool nodes_stay = false;  // where nodes fail, a host may pass over an instant that these ask for
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
                                     {"gavel", no_index, nodes_stay},
                                     {"allox", no_index, nodes_stay},
                                     {"optimus", no_index, nodes_stay},
                                     {"pollux", no_index, nodes_stay},
                                     {"elasticflow", no_index, nodes_stay},
                                     {"bestfit", no_index, nodes_stay},
                                     {"dotprod", no_index, nodes_stay},
                                     {"gpu-packing", no_index, nodes_stay},
                                     {"gpu-clustering", no_index, nodes_stay},
                                     {"random-node", no_index, nodes_stay},
                                     {"k8s", no_index, nodes_stay},
                                     {"kai", no_index, nodes_stay},
                                     {"agenda", no_index, nodes_stay}};

std::string_view estimate_of(const PolicySpec& spec) {
  const auto given = spec.given.find("estimate");
  if (given == spec.given.end()) return {};
  const auto* const word = std::get_if<std::string>(&given->second);
  return word == nullptr ? std::string_view() : std::string_view(*word);
}

}  // namespace

OnlineGrowth online_growth(const PolicySpec& policy, bool nodes_may_fail) {
  const auto row = std::find_if(std::begin(growing), std::end(growing),
                                [&policy](const GrowingPolicy& other) { return other.name == policy.name; });
  if (row == std::end(growing) || (nodes_may_fail && !row->where_nodes_fail)) return {};
  OnlineGrowth growth{.takes_new_jobs = true, .remembers = row->remembers};
  const PolicySpec* const way = policy.backfill.empty() ? nullptr : &policy.backfill.front();
  const bool plans = way != nullptr && way->name != "easy";
  if (plans && nodes_may_fail) return {};
  if (plans) growth.remembers = no_index;  // reservations come of their history
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
