// SPDX-License-Identifier: Apache-2.0
#include "gpusched/data/signal.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace gpusched {
namespace {

Signal hourly(const std::vector<double>& values) {
  std::vector<Signal::Step> steps;
  for (std::size_t i = 0; i < values.size(); ++i) {
    steps.push_back({whole_seconds(3600 * static_cast<std::int64_t>(i)), Signal::to_micro(values[i])});
  }
  return Signal(std::move(steps));
}

TEST(Signal, HoldsEachValueUntilTheNext) {
  const Signal signal = hourly({100, 50, -3.5});
  EXPECT_EQ(signal.at(whole_seconds(-10)), 100);
  EXPECT_EQ(signal.at(whole_seconds(3599)), 100);
  EXPECT_EQ(signal.at(whole_seconds(3600)), 50);
  EXPECT_EQ(signal.at(whole_seconds(1'000'000)), -3.5);
  EXPECT_EQ(signal.next_change(whole_seconds(0)), whole_seconds(3600));
  EXPECT_EQ(signal.next_change(whole_seconds(-1)), whole_seconds(0));
  EXPECT_EQ(signal.next_change(whole_seconds(7200)), Time::max());
  EXPECT_EQ(Signal().at(whole_seconds(5)), 0);
}

TEST(Signal, IntegratesAcrossStepsAndBeforeTheFirst) {
  const Signal signal = hourly({100, 50, -3.5});
  const auto units = [&](std::int64_t begin_s, std::int64_t end_s) {
    return static_cast<double>(signal.integral(whole_seconds(begin_s), whole_seconds(end_s))) / 1e12;
  };
  EXPECT_EQ(units(0, 3600), 360'000);
  EXPECT_EQ(units(-10, 10), 2000);
  EXPECT_EQ(units(3590, 7210), 1000 + 180'000 - 35);
  EXPECT_EQ(Signal(2.5).integral(whole_seconds(0), whole_seconds(4)), Signal::WideInt{10} * 1'000'000 * 1'000'000);
}

RC_GTEST_PROP(Signal, IntegralsAddUp, ()) {
  std::vector<Signal::Step> steps;
  std::int64_t at = *rc::gen::inRange<std::int64_t>(-100, 100);
  const int count = *rc::gen::inRange(1, 20);
  for (int i = 0; i < count; ++i) {
    steps.push_back({Time{at}, *rc::gen::inRange<std::int64_t>(-1'000'000, 1'000'000)});
    at += *rc::gen::inRange<std::int64_t>(1, 50);
  }
  const Signal signal(steps);
  const auto a = *rc::gen::inRange<std::int64_t>(-200, 500);
  const auto b = a + *rc::gen::inRange<std::int64_t>(0, 300);
  Signal::WideInt sum = 0;
  for (std::int64_t t = a; t < b; ++t) sum += signal.micro_at(Time{t});
  RC_ASSERT(signal.integral(Time{a}, Time{b}) == sum);
  std::size_t step = 0;
  const Signal::WideInt first = signal.integral_to(Time{a}, step);
  for (std::int64_t t = a; t < b; t += *rc::gen::inRange<std::int64_t>(1, 60)) {
    RC_ASSERT(signal.integral_to(Time{t}, step) - first == signal.integral(Time{a}, Time{t}));
  }
}

TEST(Forecast, OfPersistenceKnowsNothingThatIsToCome) {
  std::vector<double> values;
  for (int hour = 0; hour < 72; ++hour) values.push_back(hour);
  const Signal signal = hourly(values);
  const Forecast forecast{.kind = Forecast::Kind::persistence};
  const Time now = whole_seconds(30 * 3600 + 100);
  EXPECT_EQ(forecast.at(signal, now, now), 30);
  EXPECT_EQ(forecast.at(signal, now, whole_seconds(31 * 3600)), 7);
  EXPECT_EQ(forecast.at(signal, now, whole_seconds(54 * 3600)), 30);
  EXPECT_EQ(forecast.at(signal, now, whole_seconds(55 * 3600)), 7);
  EXPECT_EQ(forecast.at(signal, now, whole_seconds(10 * 3600)), 10);
}

TEST(Forecast, OfNoiseErrsAsMuchAsItSaysAndAlikeEachTime) {
  const Signal signal = hourly(std::vector<double>(5000, 200.0));
  const Forecast forecast{.kind = Forecast::Kind::noisy, .sigma = 0.05, .seed = 7};
  double sum = 0, squares = 0;
  for (int hour = 1; hour < 5000; ++hour) {
    const Time t = whole_seconds(3600 * hour);
    const double error = forecast.at(signal, Time{}, t) - 200;
    EXPECT_EQ(forecast.at(signal, Time{}, t), forecast.at(signal, whole_seconds(10), t));
    sum += error;
    squares += error * error;
  }
  EXPECT_NEAR(sum / 4999, 0, 0.5);
  EXPECT_NEAR(std::sqrt(squares / 4999), 10, 0.4);
  EXPECT_EQ(forecast.at(signal, whole_seconds(3600), whole_seconds(3600)), 200);
}

}  // namespace
}  // namespace gpusched
