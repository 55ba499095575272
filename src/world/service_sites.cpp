// SPDX-License-Identifier: Apache-2.0
#include "src/world/service_sites.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "src/base/name_text.hpp"
#include "src/base/nearest_name.hpp"
#include "src/world/site_jobs.hpp"

namespace gpusched {
namespace {

constexpr double most_speed = 1e3, most_kb = 1e9, longest_way_s = 1e9;
constexpr std::uint32_t most_replicas_of_site = 10'000;
constexpr std::array<NamedValue<SiteRule>, 4> rule_names{{{"nearest", SiteRule::nearest},
                                                          {"shortest", SiteRule::shortest},
                                                          {"promise", SiteRule::promise},
                                                          {"cheapest", SiteRule::cheapest}}};

class SitesOfService {
 public:
  SitesOfService(const SiteWorld& world, const ServiceSpec& service)
      : world_(world), spec_(service), names_(site_names(world)) {}

  ServiceSites read(JsonFields& own, Rng rng) {
    found_.service.name = spec_.name;
    found_.service.begin = spec_.begin;
    own.read_word("rule", found_.service.rule, rule_names);
    double request_kb = 0, answer_kb = 0;
    own.read("request_kb", request_kb, 0, most_kb);
    own.read("answer_kb", answer_kb, 0, most_kb);
    read_places(own);
    read_origins(own);
    if (!own.good()) return {};
    check_rule(own);
    found_.least_way.assign(found_.service.parts.size(), Time::max());
    for (const SiteId origin : found_.service.from) add_ways(own, origin, request_kb * 1000, answer_kb * 1000);
    check_reached(own);
    draw(rng);
    return std::move(found_);
  }

 private:
  SiteId site_at(JsonFields& own, const std::string& name) const {
    const auto at = std::find(names_.begin(), names_.end(), name_text(name));
    if (at == names_.end()) own.fail(name, "expected the name of a site" + suggest_nearest(name, names_));
    return at == names_.end() ? no_site : static_cast<SiteId>(at - names_.begin());
  }

  void read_places(JsonFields& own) {
    own.require("at");
    own.read_members("at", [&](JsonFields& at, const std::string& name, const Json& value) {
      SitePart part{.site = site_at(at, name)};
      for (const SitePart& before : found_.service.parts) {
        if (before.site == part.site) at.fail(name, "expected each site once");
      }
      std::uint32_t most = 1;
      if (value.is_object()) {
        at.read_nested(name, value, [&](JsonFields& of) {
          of.read("most", most, 1, most_replicas_of_site);
          of.read_above_zero("speed", part.speed, most_speed);
          if (part.speed != 1 && spec_.llm) of.fail("speed", "expected none, as its replicas have an llm");
        });
      } else {
        at.read(name, most, 1, most_replicas_of_site);
      }
      found_.service.parts.push_back(part);
      found_.most.push_back(most);
    });
    order_by_site();
    if (own.good() && found_.service.parts.empty()) own.refuse("at", "at least one site");
  }

  // The order of keys means nothing.
  void order_by_site() {
    std::vector<std::pair<SitePart, std::uint32_t>> both;
    for (std::size_t i = 0; i < found_.most.size(); ++i) both.emplace_back(found_.service.parts[i], found_.most[i]);
    std::sort(both.begin(), both.end(), [](const auto& a, const auto& b) { return a.first.site < b.first.site; });
    for (std::size_t i = 0; i < both.size(); ++i) std::tie(found_.service.parts[i], found_.most[i]) = both[i];
  }

  void read_origins(JsonFields& own) {
    if (!own.good()) return;
    std::map<SiteId, double> weights;
    if (!own.has("from") && found_.service.parts.size() == 1) weights[found_.service.parts.front().site] = 1;
    if (found_.service.parts.size() > 1) own.require("from");
    own.read_members("from", [&](JsonFields& from, const std::string& name, const Json&) {
      double weight = 0;
      from.read_above_zero(name, weight, 1e9);
      if (!weights.emplace(site_at(from, name), weight).second) from.fail(name, "expected each site once");
    });
    if (own.good() && weights.empty()) own.refuse("from", "at least one site");
    // Requests draw where they are from: in the order of names, so that the order of sites means nothing.
    std::map<std::string, SiteId> by_name;
    for (const auto& [site, weight] : weights) by_name.emplace(world_.sites[site].name, site);
    for (const auto& [name, site] : by_name) {
      found_.service.from.push_back(site);
      weights_.push_back(weights.at(site));
    }
  }

  void check_rule(JsonFields& own) const {
    const bool needs = found_.service.rule == SiteRule::promise || found_.service.rule == SiteRule::cheapest;
    if (needs && (!spec_.promise || spec_.promise->within == Time::max()))
      own.fail("rule", "expected a promise with within_s beside it");
  }

  // Half the round trip, and the bytes over idle links.
  struct OneWay {
    Time trip{}, bytes{};
  };
  [[nodiscard]] std::optional<OneWay> way(JsonFields& own, SiteId from, SiteId to, double bytes) const {
    if (from == to) return OneWay{};
    const SiteLink* const link = world_.link(from, to);
    if (link == nullptr) return std::nullopt;
    const double width = std::min({link->bytes_per_s, world_.sites[from].uplink, world_.sites[to].downlink});
    if (bytes / width > longest_way_s) {
      own.fail("", "expected requests and answers that need at most 1e9 s from site to site");
      return std::nullopt;
    }
    return OneWay{Time{link->round_trip.us / 2}, from_seconds(bytes / width)};
  }

  void add_ways(JsonFields& own, SiteId origin, double request_bytes, double answer_bytes) {
    std::vector<SiteWay> ways;
    const auto rank = [&](const SiteWay& way) {
      return std::tuple(way.there + way.back, found_.service.parts[way.part].site != origin, way.part);
    };
    for (std::uint32_t part = 0; part < found_.service.parts.size(); ++part) {
      const SiteId site = found_.service.parts[part].site;
      const auto there = way(own, origin, site, request_bytes), back = way(own, site, origin, answer_bytes);
      if (!there || !back) continue;
      ways.push_back({.part = part,
                      .there = there->trip + there->bytes,
                      .back = back->trip + back->bytes,
                      .first_back = back->trip});
      Time& least = found_.least_way[part];
      least = std::min(least, ways.back().there + ways.back().back);
    }
    std::sort(ways.begin(), ways.end(), [&](const SiteWay& a, const SiteWay& b) { return rank(a) < rank(b); });
    if (ways.empty()) own.fail("from/" + names_[origin], "expected links to a site of \"at\" and back");
    found_.service.ways.push_back(std::move(ways));
  }

  void check_reached(JsonFields& own) const {
    for (std::uint32_t part = 0; part < found_.service.parts.size(); ++part) {
      if (found_.least_way[part] == Time::max())
        own.fail("at/" + names_[found_.service.parts[part].site], "expected links to a site of \"from\" and back");
    }
  }

  // A session has one origin.
  void draw(const Rng& rng) {
    double sum = 0;
    for (const double weight : weights_) sum += weight;
    found_.service.origins.resize(spec_.requests.size());
    for (std::size_t i = 0; i < found_.service.origins.size() && weights_.size() > 1; ++i) {
      const bool has_session = spec_.routing == RoutingRule::session;
      double left = Rng(rng).split(has_session ? spec_.requests[i].session : i).uniform() * sum;
      std::uint32_t& origin = found_.service.origins[i];
      while (origin + 1 < weights_.size() && left >= weights_[origin]) left -= weights_[origin++];
    }
  }

  const SiteWorld& world_;
  const ServiceSpec& spec_;
  std::vector<std::string> names_;
  std::vector<double> weights_;  // by origin
  ServiceSites found_;
};

}  // namespace

ServiceSites read_service_sites(JsonFields& fields, const SiteWorld& world, const ServiceSpec& service, Rng rng) {
  ServiceSites found;
  fields.require("sites");
  fields.read_object("sites", [&](JsonFields& own) { found = SitesOfService(world, service).read(own, rng); });
  return found;
}

}  // namespace gpusched
