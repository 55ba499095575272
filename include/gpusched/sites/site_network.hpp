// SPDX-License-Identifier: Apache-2.0
/// SiteNetwork: transfers between sites, which share links, uplinks and downlinks max-min fairly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "gpusched/engine/effects/shared_pipe.hpp"
#include "gpusched/sites/site_world.hpp"

namespace gpusched {

/// A value. All transfers of a link move at one rate, so each link is a SharedPipe; the rates are max-min fair, found
/// by filling progressively (Bertsekas and Gallager, Data Networks, 6.5.2). Where no site bounds its uplink or downlink
/// begin() and pop() cost O(log transfers + sites^2), else O(links^2) beside that.
class SiteNetwork {
 public:
  /// A transfer that lasts; when it is over, the number is used again.
  struct Flow {
    std::uint32_t link = 0;    ///< from * sites + to
    std::uint32_t number = 0;  ///< of the link's
  };

  /// Nothing moves.
  SiteNetwork() = default;
  /// Over the links of `world`, of which nothing is kept.
  explicit SiteNetwork(const SiteWorld& world) : sites_(static_cast<std::uint32_t>(world.sites.size())) {
    for (SiteId from = 0; from < sites_; ++from) {
      for (SiteId to = 0; to < sites_; ++to) {
        const SiteLink* const link = world.link(from, to);
        const double width = link == nullptr ? 1 : link->bytes_per_s;
        widths_.push_back(width);
        pipes_.emplace_back(width, unlimited_width);
      }
    }
    for (const Site& site : world.sites) {
      up_.push_back(site.uplink);
      down_.push_back(site.downlink);
      is_bounded_ = is_bounded_ || site.uplink < unlimited_width || site.downlink < unlimited_width;
    }
  }

  /// A transfer begins. Precondition: `now` never goes back, there is such a link, bytes > 0.
  Flow begin(Time now, SiteId from, SiteId to, std::int64_t bytes) {
    const std::uint32_t link = from * sites_ + to;
    const std::uint32_t number = pipes_[link].begin(now, static_cast<double>(bytes));
    share(now, link);
    return {link, number};
  }

  /// When the next transfer ends if none begins; Time::max(): never.
  [[nodiscard]] Time next_time() const { return next_; }

  /// Ends the transfer that is due; of several, that of the first link. Precondition: next_time() is now.
  Flow pop() {
    const Time now = next_;
    std::uint32_t link = 0;
    while (pipes_[link].next_time() != now) ++link;
    const std::uint32_t number = pipes_[link].pop();
    share(now, link);
    return {link, number};
  }

  /// Transfers on a link.
  [[nodiscard]] std::uint32_t moving(SiteId from, SiteId to) const { return pipes_[from * sites_ + to].moving(); }
  /// Bytes a second that one more transfer would get, were the others to keep their number: its part of link, uplink
  /// and downlink, evenly divided. Precondition: there is such a link.
  [[nodiscard]] double width_for_one_more(SiteId from, SiteId to) const {
    double leaving = 1, coming = 1;
    for (SiteId other = 0; other < sites_ && is_bounded_; ++other) {
      leaving += moving(from, other);
      coming += moving(other, to);
    }
    return std::min({widths_[from * sites_ + to] / (moving(from, to) + 1), up_[from] / leaving, down_[to] / coming});
  }

 private:
  static constexpr double unlimited_width = std::numeric_limits<double>::infinity();

  // New rates, after the number of transfers on `changed` did.
  void share(Time now, std::uint32_t changed) {
    if (!is_bounded_) {
      const std::uint32_t count = pipes_[changed].moving();
      if (count > 0) pipes_[changed].limit(now, widths_[changed] / count);
    } else {
      share_all(now);
    }
    next_ = Time::max();
    for (const detail::SharedPipe& pipe : pipes_) next_ = std::min(next_, pipe.next_time());
  }

  // What is left of a link, an uplink or a downlink, for the links whose rate is not settled.
  struct Room {
    double left = 0, flows = 0;
    [[nodiscard]] double share() const { return flows > 0 ? left / flows : unlimited_width; }
    void take(double rate, double count) {
      left = std::max(0.0, left - rate * count);
      flows -= count;
    }
  };

  // Fills all links at one pace until one, an uplink or a downlink is full; its transfers have their rate then.
  void share_all(Time now) {
    std::vector<Room> up(sites_), down(sites_);
    for (SiteId site = 0; site < sites_; ++site) {
      up[site].left = up_[site];
      down[site].left = down_[site];
    }
    std::vector<std::uint32_t> open;
    for (std::uint32_t link = 0; link < pipes_.size(); ++link) {
      const double count = pipes_[link].moving();
      if (count == 0) continue;
      up[link / sites_].flows += count;
      down[link % sites_].flows += count;
      open.push_back(link);
    }
    while (!open.empty()) {
      const auto share_of = [this, &up, &down](std::uint32_t link) {
        return std::min(
            {widths_[link] / pipes_[link].moving(), up[link / sites_].share(), down[link % sites_].share()});
      };
      double least = unlimited_width;
      for (const std::uint32_t link : open) least = std::min(least, share_of(link));
      // Which are full is asked before any is taken out: of what is left then, rounding would show.
      std::vector<std::uint32_t> full, rest;
      for (const std::uint32_t link : open) (share_of(link) <= least ? full : rest).push_back(link);
      for (const std::uint32_t link : full) {
        const double count = pipes_[link].moving();
        pipes_[link].limit(now, std::max(least, least_width));
        up[link / sites_].take(least, count);
        down[link % sites_].take(least, count);
      }
      open = std::move(rest);
    }
  }

  static constexpr double least_width = 1e-6;  // bytes a second: rounding leaves nobody with nothing

  std::uint32_t sites_ = 0;
  bool is_bounded_ = false;  // some site's uplink or downlink is
  Time next_ = Time::max();
  std::vector<double> widths_, up_, down_;
  std::vector<detail::SharedPipe> pipes_;  // by link
};

}  // namespace gpusched
