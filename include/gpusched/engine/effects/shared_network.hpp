// SPDX-License-Identifier: Apache-2.0
/// SharedNetwork: transfers that share the link which each of them takes, and a storage behind all links.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/engine/effects/shared_pipe.hpp"

namespace gpusched::detail {

/// Bytes a second.
struct Bandwidths {
  static constexpr double unlimited = std::numeric_limits<double>::infinity();

  double transfer = 0;         ///< of one transfer at most; above 0
  double link = unlimited;     ///< of all transfers of one link
  double storage = unlimited;  ///< of all transfers
};

/// How many links have so many transfers, the most transfers first.
using LinksByTransfers = std::map<std::uint32_t, std::uint32_t, std::greater<>>;

/// The share of the storage that transfers get which nothing else holds back, where all shares are max-min fair: no
/// transfer gets more but at the cost of one that has no more than it. Infinite where the storage holds back none.
/// O(different numbers of transfers), which are fewer than the links and than the square root of twice the transfers.
inline double storage_share(const Bandwidths& widths, const LinksByTransfers& links) {
  double transfers = 0, left = widths.storage;
  for (const auto& [count, with_it] : links) transfers += static_cast<double>(count) * with_it;
  for (const auto& [count, with_it] : links) {
    const double share = left / transfers, own = std::min(widths.transfer, widths.link / count);
    if (own >= share) return share;
    left -= own * count * with_it;
    transfers -= static_cast<double>(count) * with_it;
  }
  return Bandwidths::unlimited;
}

/// A value. The transfers of a link move at one rate, the least of what a single one can take, an equal part of their
/// link and the share of the storage, so each link is a SharedPipe. begin(), cancel() and pop() cost O(log of the
/// transfers and links), and O(links) in addition where the share of the storage changes.
class SharedNetwork {
 public:
  /// A transfer that lasts; when it is over, the number is used again.
  struct Transfer {
    std::uint32_t link = 0;
    std::uint32_t number = 0;  ///< of the link's
    friend bool operator==(const Transfer&, const Transfer&) = default;
  };

  /// Nothing moves.
  SharedNetwork() = default;
  /// Precondition: at least one link, bandwidths above 0.
  SharedNetwork(const Bandwidths& widths, std::uint32_t links)
      : widths_(widths),
        has_shared_storage_(widths.storage < Bandwidths::unlimited),
        links_(links, SharedPipe(widths.transfer, widths.link)),
        firsts_(2 * std::size_t{links}) {
    for (std::uint32_t link = 0; link < links; ++link) firsts_[links + link] = link;
    for (std::uint32_t at = links - 1; at > 0; --at) firsts_[at] = first_below(at);
  }

  /// A transfer begins. Precondition: `now` never goes back.
  Transfer begin(Time now, std::uint32_t link, double bytes) {
    const std::uint32_t number = links_[link].begin(now, bytes);
    count_changed(now, link, links_[link].moving() - 1);
    return {link, number};
  }

  /// Ends a transfer before it is due.
  void cancel(Time now, Transfer transfer) {
    SharedPipe& link = links_[transfer.link];
    link.cancel(now, transfer.number);
    count_changed(now, transfer.link, link.moving() + 1);
  }

  /// When the next transfer ends if none begins; Time::max() = never.
  [[nodiscard]] Time next_time() const { return next_; }

  /// Ends the transfer that is due; of several, that of the first link. Precondition: next_time() is now.
  Transfer pop() {
    const Time now = next_;
    const std::uint32_t link = firsts_[1];
    const std::uint32_t number = links_[link].pop();
    count_changed(now, link, links_[link].moving() + 1);
    return {link, number};
  }

 private:
  void count_changed(Time now, std::uint32_t link, std::uint32_t before) {
    if (has_shared_storage_) share_storage(now, link, before);
    update(link);
    next_ = links_[firsts_[1]].next_time();
  }

  void share_storage(Time now, std::uint32_t changed, std::uint32_t before) {
    if (const auto known = counts_.find(before); known != counts_.end() && --known->second == 0) counts_.erase(known);
    if (links_[changed].moving() > 0) ++counts_[links_[changed].moving()];
    const double each = std::min(widths_.transfer, storage_share(widths_, counts_));
    if (each == each_) return;
    each_ = each;
    for (std::uint32_t link = 0; link < links_.size(); ++link) {
      const Time planned = links_[link].next_time();
      links_[link].limit(now, each);
      if (links_[link].next_time() != planned) update(link);
    }
  }

  // Whichever of two nodes of the tree is due first.
  [[nodiscard]] std::uint32_t first_below(std::size_t at) const {
    const std::uint32_t a = firsts_[2 * at], b = firsts_[2 * at + 1];
    const Time ends_a = links_[a].next_time(), ends_b = links_[b].next_time();
    return ends_a < ends_b || (ends_a == ends_b && a < b) ? a : b;
  }

  void update(std::uint32_t link) {
    for (std::size_t at = (links_.size() + link) / 2; at > 0; at /= 2) firsts_[at] = first_below(at);
  }

  Bandwidths widths_;
  bool has_shared_storage_ = false;
  double each_ = 0;  // the limit of all pipes, where the storage is shared
  Time next_ = Time::max();
  std::vector<SharedPipe> links_;
  std::vector<std::uint32_t> firsts_;  // a tree over the links, which are its last half: the one that is due first
  LinksByTransfers counts_;            // where the storage is shared
};

}  // namespace gpusched::detail
