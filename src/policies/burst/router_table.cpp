// SPDX-License-Identifier: Apache-2.0
#include "src/policies/burst/router_table.hpp"

#include <algorithm>
#include <utility>

#include "gpusched/sites/routers.hpp"
#include "src/base/nearest_name.hpp"
#include "src/policies/burst/burst_router.hpp"

namespace gpusched {
namespace {

constexpr const char* hpdc02 = "Ranganathan and Foster, HPDC 2002";

// A router that is its own description.
template <class R>
RouterInfo plain(R router, std::string summary, std::string source) {
  return {.name = std::string(router.name()),
          .summary = std::move(summary),
          .source = std::move(source),
          .parameters = {},
          .make = [router](const PolicyParameters&, const RouterContext&) { return AnyRouter(router); }};
}

ParameterInfo patience() {
  return {.name = "patience_s",
          .fallback = 0.0,
          .meaning =
              "most seconds of transfer and expected wait at the site; where it is more at all sites, as "
              "shortest-completion; 0: however long",
          .most = 1e9};
}

RouterInfo lowest(SiteSignal signal, std::string summary, std::string source) {
  return {.name = std::string(LowestSignal{signal}.name()),
          .summary = std::move(summary),
          .source = std::move(source),
          .parameters = {patience()},
          .make = [signal](const PolicyParameters& parameters, const RouterContext& context) -> Result<AnyRouter> {
            for (const Site& site : context.world->sites) {
              const Signal& known = signal == SiteSignal::carbon ? site.carbon_g_per_kwh : site.usd_per_mwh;
              if (!known.is_empty()) continue;
              return unexpected("site '" + site.name + "' has no " +
                                (signal == SiteSignal::carbon ? "carbon" : "usd_per_mwh"));
            }
            const double seconds = parameters.number("patience_s");
            return AnyRouter(LowestSignal{signal, seconds > 0 ? from_seconds(seconds) : Time::max()});
          }};
}

RouterInfo random_site() {
  return {.name = "random",
          .summary = "any site that may run the job, with equal chance",
          .source = std::string("JobRandom: ") + hpdc02,
          .parameters = {},
          .make = [](const PolicyParameters&, const RouterContext& context) {
            return AnyRouter(RandomSite{context.seed});
          }};
}

Result<SiteId> cloud_of(const SiteWorld& world, const std::string& name) {
  for (SiteId site = 0; site < world.sites.size(); ++site) {
    if (name.empty() ? world.sites[site].is_unlimited : world.sites[site].name == name) return site;
  }
  return unexpected(name.empty() ? "no site is unlimited" : "there is no site '" + name + "'");
}

RouterInfo burst() {
  std::vector<std::string> words;
  for (const auto& entry : burst_wait_names) words.emplace_back(entry.name);
  return {.name = "burst",
          .summary = "at home, if it may run there and begins before its wait is over: else in the cloud",
          .source = "Starburst: Luo et al., USENIX ATC 2024, section 4",
          .parameters = {{.name = "wait",
                          .fallback = std::string("no-wait"),
                          .meaning = "what the wait is in proportion to",
                          .words = words},
                         {.name = "factor",
                          .fallback = 0.25,
                          .meaning = "hours (constant), per hour of expected run time, per GPU hour or per GPU",
                          .most = 1e6},
                         {.name = "cloud",
                          .fallback = std::string(),
                          .meaning = "name of the site; by default the first unlimited one"}},
          .make = [](const PolicyParameters& parameters, const RouterContext& context) -> Result<AnyRouter> {
            const auto cloud = cloud_of(*context.world, parameters.word("cloud"));
            if (!cloud) return Unexpected{cloud.error()};
            const BurstWait wait = *value_from_name(burst_wait_names, parameters.word("wait"));
            return AnyRouter(BurstRouter{.policy = {wait, parameters.number("factor")}, .cloud = *cloud});
          }};
}

std::vector<std::string> router_names() {
  std::vector<std::string> names;
  for (const RouterInfo& row : router_table()) names.push_back(row.name);
  return names;
}

Result<const RouterInfo*> find_router(const PolicySpec& spec) {
  for (const RouterInfo& row : router_table()) {
    if (row.name == spec.name) return &row;
  }
  return unexpected("expected one of " + joined(router_names(), "|") + ", not '" + spec.text + "'" +
                    suggest_nearest(spec.name, router_names()));
}

}  // namespace

const std::vector<RouterInfo>& router_table() {
  static const std::vector<RouterInfo> rows{
      plain(LocalOnly{}, "every job at its home", std::string("JobLocal: ") + hpdc02),
      plain(MostAvailable{}, "most GPUs that no job asks for",
            "KOALA's Worst Fit: Mohamed and Epema, CCPE 20(16), 2008"),
      plain(LeastLoaded{}, "least GPUs asked for, as a part of the site's", std::string("JobLeastLoaded: ") + hpdc02),
      plain(DataPresent{}, "least transfer, then least load", std::string("JobDataPresent: ") + hpdc02),
      plain(ShortestCompletion{}, "earliest expected end, transfer included",
            "minimum completion time: Maheswaran et al., JPDC 59, 1999"),
      lowest(SiteSignal::carbon, "least carbon intensity at submission",
             "spatial shifting: Sukprasert et al., EuroSys 2024"),
      lowest(SiteSignal::price, "least price of electricity at submission", "Qureshi et al., SIGCOMM 2009"),
      plain(NearestInTime{}, "smallest round trip from home where it is expected to end by its deadline", "gpusched"),
      random_site(),
      burst()};
  return rows;
}

Result<std::vector<PolicySpec>> parse_routers(std::string_view text) {
  auto specs = parse_policy_list(text);
  if (!specs) return specs;
  for (const PolicySpec& spec : *specs) {
    const auto row = find_router(spec);
    if (!row) return Unexpected{row.error()};
    if (!spec.backfill.empty()) return unexpected("router " + spec.name + " cannot be backfilled");
    const auto complete = complete_parameters("router " + spec.name, (*row)->parameters, spec);
    if (!complete) return Unexpected{complete.error()};
  }
  return specs;
}

Result<std::vector<std::string>> split_routers(std::string_view text) {
  const auto specs = parse_policy_list(text);
  if (!specs) return Unexpected{specs.error()};
  std::vector<std::string> texts;
  for (const PolicySpec& spec : *specs) texts.push_back(spec.text);
  return texts;
}

namespace {
constexpr std::string_view via = " via ";
}  // namespace

RoutedPolicy routed_policy(std::string_view text) {
  const std::size_t at = text.find(via);
  if (at == std::string_view::npos) return {std::string(text), ""};
  return {std::string(text.substr(0, at)), std::string(text.substr(at + via.size()))};
}

std::string routed_text(const std::string& policy, const std::string& router) {
  return router.empty() ? policy : policy + std::string(via) + router;
}

Result<AnyRouter> make_router(const PolicySpec& spec, const RouterContext& context) {
  const auto row = find_router(spec);
  if (!row) return Unexpected{row.error()};
  const auto parameters = complete_parameters("router " + spec.name, (*row)->parameters, spec);
  if (!parameters) return Unexpected{parameters.error()};
  auto router = (*row)->make(*parameters, context);
  if (!router) return unexpected("router " + spec.name + ": " + router.error().message);
  return router;
}

}  // namespace gpusched
