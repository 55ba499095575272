// SPDX-License-Identifier: Apache-2.0
#include "gpusched/core/result.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace gpusched {
namespace {

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> good = 7;
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 7);
  const Result<int> bad = unexpected("expected a number");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "expected a number");
}

TEST(Result, MovesValuesThatCannotBeCopied) {
  Result<std::unique_ptr<int>> made = std::make_unique<int>(3);
  const std::unique_ptr<int> taken = *std::move(made);
  EXPECT_EQ(*taken, 3);
}

TEST(Result, OfNothingIsGoodUnlessAnErrorWasGiven) {
  EXPECT_TRUE(Result<void>{});
  const Result<void> bad = unexpected("no");
  EXPECT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "no");
}

TEST(Error, SaysWhereAsFarAsItIsKnown) {
  EXPECT_EQ((Error{.message = "m"}).to_string(), "m");
  EXPECT_EQ((Error{.message = "m", .file = "f.csv"}).to_string(), "f.csv: m");
  EXPECT_EQ((Error{.message = "m", .file = "f.csv", .line = 3}).to_string(), "f.csv:3: m");
  EXPECT_EQ((Error{.message = "m", .line = 3}).to_string(), "line 3: m");
  EXPECT_EQ((Error{.message = "m", .file = "f.csv", .line = 3, .field = "gpus"}).to_string(), "f.csv:3: gpus: m");
}

}  // namespace
}  // namespace gpusched
