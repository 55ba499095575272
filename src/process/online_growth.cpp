// SPDX-License-Identifier: Apache-2.0
#include "src/process/online_growth.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "src/policies/backfill/backfill.hpp"

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
                                     {"slurm", 0},
                                     {"lsf", 0},
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

std::string_view word_in(const ParameterValue& value) {
  const auto* const word = std::get_if<std::string>(&value);
  return word == nullptr ? std::string_view() : std::string_view(*word);
}

std::string_view given_estimate(const PolicySpec& spec) {
  const auto given = spec.given.find("estimate");
  return given == spec.given.end() ? std::string_view() : word_in(given->second);
}

std::string_view default_estimate(const std::vector<ParameterInfo>& parameters) {
  const auto row = std::find_if(parameters.begin(), parameters.end(),
                                [](const ParameterInfo& parameter) { return parameter.name == "estimate"; });
  return row == parameters.end() ? std::string_view() : word_in(row->fallback);
}

// Requests, which are predictions where the jobs have none.
bool reads_requests(const PolicySpec& spec, const std::vector<ParameterInfo>& parameters) {
  const std::string_view given = given_estimate(spec);
  return (given.empty() ? default_estimate(parameters) : given) == "requested";
}

// Predictions that were asked for. Those of a policy that always predicts are part of its row above.
bool predicts(const PolicySpec& spec) {
  const std::string_view given = given_estimate(spec);
  return !given.empty() && given != "requested" && given != "exact" && given != "user";
}

}  // namespace

OnlineGrowth online_growth(const PolicyRegistry& registry, const PolicySpec& policy, bool nodes_may_fail) {
  const auto row = std::find_if(std::begin(growing), std::end(growing),
                                [&policy](const GrowingPolicy& other) { return other.name == policy.name; });
  if (row == std::end(growing) || (nodes_may_fail && !row->where_nodes_fail)) return {};
  OnlineGrowth growth{.takes_new_jobs = true, .remembers = row->remembers};
  const auto info = registry.find(policy.name);
  growth.learns_without_estimates = info && reads_requests(policy, (*info)->parameters);
  if (predicts(policy)) return {};
  if (policy.given.contains("grace_s")) growth.remembers = no_index;  // who was told to go by then
  if (policy.backfill.empty()) return growth;
  const PolicySpec& way = policy.backfill.front();
  const bool plans = way.name != "easy";
  if (predicts(way) || (plans && nodes_may_fail)) return {};
  if (plans) growth.remembers = no_index;  // reservations come of their history
  const auto way_info = find_backfill(way.name);
  if (way_info && reads_requests(way, (*way_info)->parameters)) growth.learns_without_estimates = true;
  return growth;
}

}  // namespace gpusched
