// SPDX-License-Identifier: Apache-2.0
#include "gpusched/engine/effects/shared_network.hpp"

#include <gtest/gtest.h>

namespace gpusched::detail {
namespace {

constexpr double none = Bandwidths::unlimited;
using Transfer = SharedNetwork::Transfer;

TEST(SharedNetwork, TransfersOfALinkShareItAndOthersDoNotSlowThem) {
  SharedNetwork network({.transfer = none, .link = 10}, 3);
  for (int i = 0; i < 4; ++i) network.begin(Time{}, 2, 100);
  network.begin(Time{}, 1, 100);
  EXPECT_EQ(network.next_time(), whole_seconds(10));
  EXPECT_EQ(network.pop(), (Transfer{1, 0}));
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(network.next_time(), whole_seconds(40));
    EXPECT_EQ(network.pop(), (Transfer{2, i}));
  }
  EXPECT_EQ(network.next_time(), Time::max());
}

TEST(SharedNetwork, WhatIsCancelledLeavesItsShareToItsLink) {
  SharedNetwork network({.transfer = none, .link = 10}, 2);
  const Transfer first = network.begin(Time{}, 0, 100), second = network.begin(Time{}, 0, 100);
  const Transfer other = network.begin(Time{}, 1, 300);
  network.cancel(whole_seconds(10), first);
  EXPECT_EQ(network.next_time(), whole_seconds(15));
  EXPECT_EQ(network.pop(), second);
  EXPECT_EQ(network.next_time(), whole_seconds(30));
  EXPECT_EQ(network.pop(), other);
}

TEST(SharedNetwork, ATransferGetsWhatOthersCannotTakeFromTheStorage) {
  // The three of link 1 get 10 / 3 each, so link 0 the 5 that are left of the storage.
  SharedNetwork network({.transfer = none, .link = 10, .storage = 15}, 2);
  network.begin(Time{}, 0, 50);
  for (int i = 0; i < 3; ++i) network.begin(Time{}, 1, 50);
  EXPECT_EQ(network.next_time(), whole_seconds(10));
  EXPECT_EQ(network.pop(), (Transfer{0, 0}));
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(network.next_time(), whole_seconds(15));
    EXPECT_EQ(network.pop(), (Transfer{1, i}));
  }
}

TEST(SharedNetwork, AStorageThatIsTheLimitIsSharedByAllTransfers) {
  SharedNetwork network({.transfer = none, .link = 10, .storage = 12}, 2);
  const Transfer alone = network.begin(Time{}, 0, 50);
  for (int i = 0; i < 3; ++i) network.begin(Time{}, 1, 50);
  EXPECT_EQ(network.next_time(), Time{16'666'667});  // 3 each
  network.cancel(whole_seconds(10), alone);
  EXPECT_EQ(network.next_time(), whole_seconds(16));  // 20 are left, at 10 / 3
}

TEST(SharedNetwork, AStorageThatIsFreeAgainSpeedsUpTheOtherLinks) {
  // 6 each; when the first ends at 10 s, 60 of the other are left, at 10.
  SharedNetwork network({.transfer = none, .link = 10, .storage = 12}, 4);
  const Transfer first = network.begin(Time{}, 3, 60), second = network.begin(Time{}, 0, 120);
  EXPECT_EQ(network.next_time(), whole_seconds(10));
  EXPECT_EQ(network.pop(), first);
  EXPECT_EQ(network.next_time(), whole_seconds(16));
  EXPECT_EQ(network.pop(), second);
  network.begin(whole_seconds(20), 1, 30);
  EXPECT_EQ(network.next_time(), whole_seconds(23));
}

TEST(SharedNetwork, OfTransfersThatEndAtOnceThatOfTheFirstLinkIsFirst) {
  SharedNetwork network({.transfer = 10}, 5);
  for (const std::uint32_t link : {4u, 0u, 3u, 1u, 2u}) network.begin(Time{}, link, 10);
  for (std::uint32_t link = 0; link < 5; ++link) EXPECT_EQ(network.pop(), (Transfer{link, 0}));
}

TEST(SharedNetwork, TellsTheShareOfTheStorage) {
  const Bandwidths widths{.transfer = 4, .link = 10, .storage = 20};
  EXPECT_EQ(storage_share(widths, {{5, 4}}), 1);                         // 20 at 1; their links would give them 2
  EXPECT_EQ(storage_share(widths, {{1, 1}, {5, 1}}), none);              // 5 at 2, one at 4
  EXPECT_DOUBLE_EQ(storage_share(widths, {{5, 1}, {2, 2}}), 2.5);        // 5 at 2, and 10 for four
  EXPECT_DOUBLE_EQ(storage_share(widths, {{10, 1}, {1, 6}}), 10 / 6.0);  // 10 at 1, and 10 for six
  EXPECT_EQ(storage_share(widths, {}), none);
}

}  // namespace
}  // namespace gpusched::detail
