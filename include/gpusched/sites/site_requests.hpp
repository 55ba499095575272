// SPDX-License-Identifier: Apache-2.0
/// SiteRequests: the requests of services over sites (SiteService), from their clients to the sites that serve them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "gpusched/serving/event_heap.hpp"
#include "gpusched/sites/site_state.hpp"

namespace gpusched::detail {

/// The latency that somebody expects at a site who knows how many requests it holds, and how long one is served there
/// in the mean: there and back, and that time, once, and again for each round of places that those before it take;
/// where no replica serves yet, one with a cold start. `coming`: requests on their way there. In seconds.
inline double expected_latency(const ServiceSpec& service, const ServiceLoad& load, std::int64_t coming, Time trip) {
  const double slots = service.batches.empty() ? service.at_once : static_cast<double>(service.batches.size());
  const double places = slots * std::max(load.ready, 1);
  const double before = std::max(static_cast<double>(load.held() + coming) + 1 - places, 0.0) / places;
  const double start_s = load.ready == 0 ? to_seconds(service.cold_start) : 0;
  // Not as long as those served so far: one long request at first would keep all others away, and so unseen.
  return to_seconds(trip) + start_s + service.mean_service_s * (1 + before);
}
/// Added where replicas are asked for and none has found room: such a site is taken where no other serves.
inline constexpr double no_room_s = 1e12;

/// A value that borrows the world. At one instant requests reach their sites, in the order in which they were sent;
/// then others are sent, by service. One whose way takes no time reaches its site as it is sent. A rule that looks at
/// sites sees them as they are when all is over that ends at the instant, and before anything else of it: what comes at
/// the instant is on its way still.
class SiteRequests {
 public:
  SiteRequests() = default;
  /// Times are from `origin` on.
  SiteRequests(const SiteWorld& world, Time origin) : world_(&world), origin_(origin) {
    for (const SiteService& service : world.services) {
      const std::vector<std::int64_t> none(service.parts.size());
      runs_.push_back({.numbers = std::vector<std::vector<std::uint32_t>>(service.parts.size()),
                       .left = service.requests.size(),
                       .coming = none,
                       .came = none});
    }
  }

  /// When a request is sent or reaches its site; Time::max(): never again.
  [[nodiscard]] Time next_time() const {
    Time next = travels_.time();
    for (std::uint32_t i = 0; i < runs_.size(); ++i) next = std::min(next, next_of(i));
    return next;
  }
  /// Lets all of the instant `now` happen. Precondition: nothing is due before it, at an engine neither. Calls
  /// touch(site) for each site whose next event may be another one now.
  template <class Touch>
  void move(Time now, SiteEngines& engines, Touch touch) {
    for (std::uint32_t i = 0; i < runs_.size(); ++i) {
      Run& run = runs_[i];
      for (std::int64_t& came : run.came) came = 0;
      if (next_of(i) == now && service(i).rule != SiteRule::nearest) look(service(i), now, engines, touch);
    }
    while (travels_.time() == now) arrive(travels_.take(), now, engines, touch);
    for (std::uint32_t i = 0; i < runs_.size(); ++i) {
      while (next_of(i) == now) send(i, now, engines, touch);
    }
  }

  /// The number in SiteService::requests of one that came to a part, by its number there.
  [[nodiscard]] std::uint32_t number(std::uint32_t service, std::uint32_t part, std::uint32_t request) const {
    return runs_[service].numbers[part][request];
  }

 private:
  struct Run {
    std::vector<std::vector<std::uint32_t>> numbers = {};  // by part, of those that came there
    std::size_t sent = 0;                                  // requests
    std::size_t left = 0;                                  // that have not reached their site
    std::vector<std::int64_t> coming = {};                 // on their way, by part
    std::vector<std::int64_t> came = {};                   // at this instant, likewise
  };
  struct Travel {
    std::uint32_t service = 0;
    std::uint32_t request = 0;
    SiteWay way;
  };

  [[nodiscard]] const SiteService& service(std::uint32_t number) const { return world_->services[number]; }
  [[nodiscard]] Time next_of(std::uint32_t number) const {
    const SiteService& own = service(number);
    const std::size_t next = runs_[number].sent;
    return next == own.requests.size() ? Time::max() : origin_ + own.begin + own.requests[next].arrival;
  }

  template <class Touch>
  static void look(const SiteService& service, Time now, SiteEngines& engines, Touch& touch) {
    for (const SitePart& part : service.parts) {
      engines[part.site].look_at_requests(part.service, now);
      touch(part.site);
    }
  }

  template <class Touch>
  void send(std::uint32_t number, Time now, SiteEngines& engines, Touch& touch) {
    Run& run = runs_[number];
    const auto request = static_cast<std::uint32_t>(run.sent++);
    const SiteWay& way = choose(number, request, engines);
    ++run.coming[way.part];
    const Travel travel{number, request, way};
    if (way.there == Time{}) return arrive(travel, now, engines, touch);
    travels_.push(later_by(now, way.there), travel);
  }

  template <class Touch>
  void arrive(const Travel& travel, Time now, SiteEngines& engines, Touch& touch) {
    const SiteService& own = service(travel.service);
    const SitePart& part = own.parts[travel.way.part];
    ServiceRequest request = own.requests[travel.request];
    request.arrival = now - (origin_ + own.begin);
    request.away = travel.way.there + travel.way.back;
    request.first_away = travel.way.there + travel.way.first_back;
    request.work = at_speed(request.work, part.speed);
    engines[part.site].tell_request(part.service, request);
    touch(part.site);
    Run& run = runs_[travel.service];
    run.numbers[travel.way.part].push_back(travel.request);
    --run.coming[travel.way.part];
    ++run.came[travel.way.part];
    if (--run.left > 0) return;
    for (const SitePart& each : own.parts) {
      engines[each.site].end_requests(each.service, now);
      touch(each.site);
    }
  }

  [[nodiscard]] const SiteWay& choose(std::uint32_t number, std::uint32_t request, const SiteEngines& engines) const {
    const SiteService& own = service(number);
    const std::vector<SiteWay>& ways = own.ways[own.origins[request]];
    if (ways.size() == 1 || own.rule == SiteRule::nearest) return ways.front();
    constexpr double never = std::numeric_limits<double>::infinity();
    const SiteWay* shortest = nullptr;
    const SiteWay* kept = nullptr;
    double least_s = never, least_usd = never;
    for (const SiteWay& way : ways) {
      const SitePart& part = own.parts[way.part];
      const Engine& engine = engines[part.site];
      const ServiceSpec& spec = engine.services().model().services[part.service];
      const auto [ready, starting] = engine.services().replicas(part.service);
      const ServiceLoad load = engine.services().requests(part.service).load(ready, starting);
      const Run& run = runs_[number];
      const double expected =
          expected_latency(spec, load, run.coming[way.part] + run.came[way.part], way.there + way.back) +
          (engine.services().waits_for_room(part.service) ? no_room_s : 0);
      if (expected < least_s) shortest = &way;
      least_s = std::min(least_s, expected);
      if (own.rule == SiteRule::shortest || expected > to_seconds(spec.promise->within)) continue;
      if (own.rule == SiteRule::promise) return way;
      const double usd = world_->sites[part.site].usd_per_gpu_h;
      if (usd < least_usd) kept = &way;
      least_usd = std::min(least_usd, usd);
    }
    return kept != nullptr ? *kept : *shortest;
  }

  const SiteWorld* world_ = nullptr;
  Time origin_{};
  std::vector<Run> runs_;  // by service
  EventHeap<Travel> travels_;
};

}  // namespace gpusched::detail
