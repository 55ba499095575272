// SPDX-License-Identifier: Apache-2.0
/// Reads where a service over sites is served, and where its clients are. Compiled part.
#pragma once

#include <cstdint>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/sites/site_world.hpp"
#include "src/base/json_fields.hpp"

namespace gpusched {

/// What the object "sites" of a service says: SiteService without its requests.
struct ServiceSites {
  SiteService service;              ///< its parts by site
  std::vector<std::uint32_t> most;  ///< replicas, by part
  std::vector<Time> least_way;      ///< there and back from the nearest origin, likewise
};

/// Reads the object "sites" of a service whose `requests` are as clients send them:
///   {"at": {"edge": 1, "cloud": {"most": 8, "speed": 2}}, "from": {"edge": 0.7, "office": 0.3},
///    "rule": "nearest", "shortest", "promise" or "cheapest", "request_kb": 200, "answer_kb": 1}
/// `from` are parts of the requests, drawn by `rng`, by session where those stick to replicas; needed where `at` has
/// several sites. The way to another site takes
/// half the round trip of the link there, and its bytes as long as over idle links; the answer likewise over the link
/// back. Errors of `fields`: an unknown site, one named twice, an origin or a site of `at` without links to the other
/// and back, a rule that needs the time of a promise.
ServiceSites read_service_sites(JsonFields& fields, const SiteWorld& world, const ServiceSpec& service, Rng rng);

}  // namespace gpusched
