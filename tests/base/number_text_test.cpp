// SPDX-License-Identifier: Apache-2.0
#include "src/base/number_text.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "gpusched/core/rng.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched {
namespace {

// What is shown as zero has no minus, however it came to be.
TEST(NumberText, ZeroHasNoMinus) {
  EXPECT_EQ(percent_text(-0.0), "0.0 %");
  EXPECT_EQ(percent_text(-0.0004), "0.0 %");
  EXPECT_EQ(percent_text(-0.0006), "-0.1 %");
  EXPECT_EQ(signed_percent_text(-0.0000004), "+0.0%");
  EXPECT_EQ(signed_percent_text(-0.0006), "-0.1%");
  EXPECT_EQ(human_duration(-0.01), "0.0 s");
  // A difference that is none shows on which side of 0 it is.
  EXPECT_EQ(signed_percent_text(-0.0004), "-0.04%");
  EXPECT_EQ(signed_percent_text(0.000001), "+0.0001%");
  EXPECT_EQ(formatted("%.0f", -0.4), "0");
  EXPECT_EQ(formatted("(%.3g)", -0.0), "(0)");
  EXPECT_EQ(formatted("%.1e", -0.0), "0.0e+00");
  EXPECT_EQ(formatted("%.1e", -1e-300), "-1.0e-300");
  EXPECT_EQ(exact_number(-0.0), "0");
  EXPECT_EQ(exact_number(-5e-324), "-5e-324");
}

TEST(NumberText, OtherNumbersKeepTheirSign) {
  EXPECT_EQ(formatted("%.2f", -10.0), "-10.00");
  EXPECT_EQ(formatted("%.1f", -std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(formatted("%+.1f", 0.0), "+0.0");
  Rng rng(1);
  for (std::uint64_t i = 0; i < test::random_runs(2000); ++i) {
    const double value = (rng.uniform() - 0.5) * static_cast<double>(1 + rng.below(20)) / 10;
    const std::string text = formatted("%.1f", value);
    EXPECT_EQ(text.front() == '-', std::stod(text) < 0) << text;
    EXPECT_NEAR(std::stod(text), value, 0.0500001);
  }
}

}  // namespace
}  // namespace gpusched
