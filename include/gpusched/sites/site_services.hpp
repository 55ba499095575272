// SPDX-License-Identifier: Apache-2.0
/// Services over several sites: where the clients of a service are, which sites serve it, and the rule by which each
/// request finds one. A request goes to its site and its answer comes back over links; what happens there is the
/// engine's (Services).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/serving/service_model.hpp"

namespace gpusched {

/// How a request finds its site, of those that its origin reaches. What is expected of a site is
/// detail::expected_latency().
enum class SiteRule : std::uint8_t {
  nearest,   ///< the shortest way there and back; of equal ones its own site
  shortest,  ///< the least expected latency
  promise,   ///< the nearest whose expected latency is promised; where none is, as shortest
  cheapest,  ///< of those whose expected latency is promised, the cheapest GPU hour; where none is, as shortest
};

/// A service at one of its sites: there it is a service of its own (ServiceSpec::is_told), with replicas and
/// autoscaler.
struct SitePart {
  std::uint32_t service = 0;  ///< its number in ServiceModel::services, whose times are those of its speed
  std::uint32_t site = 0;     ///< the site, and so ServiceSpec::engine
  double speed = 1;           ///< of its replicas: seconds of a request's work in a second; above 0
};

/// A site that serves requests from one origin.
struct SiteWay {
  std::uint32_t part = 0;  ///< of SiteService::parts
  Time there{};            ///< from the client to the site, with the bytes of a request
  Time back{};             ///< for the whole answer
  Time first_back{};       ///< for its first token
};

/// How long something takes at that speed that takes `time` at 1.
inline Time at_speed(Time time, double speed) { return speed == 1 ? time : from_seconds(to_seconds(time) / speed); }

/// One service.
struct SiteService {
  std::string name;                             ///< of the service
  Time begin{};                                 ///< after the first submission of the trace
  SiteRule rule = SiteRule::nearest;            ///< where requests go
  std::vector<ServiceRequest> requests = {};    ///< as clients send them, by time; at least one
  std::vector<std::uint32_t> origins = {};      ///< by request: number in `from`
  std::vector<std::uint32_t> from = {};         ///< sites of clients
  std::vector<std::vector<SiteWay>> ways = {};  ///< by origin, from the nearest on; at least one each
  std::vector<SitePart> parts = {};             ///< at distinct sites
};

}  // namespace gpusched
