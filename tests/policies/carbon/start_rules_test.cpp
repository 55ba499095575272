// SPDX-License-Identifier: Apache-2.0
#include "src/policies/carbon/start_rules.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <ostream>
#include <utility>
#include <vector>

#include "src/base/field_parser.hpp"

namespace gpusched {

void PrintTo(const RunStretch& stretch, std::ostream* out) {
  *out << to_seconds(stretch.begin) << " to " << to_seconds(stretch.end);
}
bool operator==(const RunStretch& a, const RunStretch& b) { return a.begin == b.begin && a.end == b.end; }

namespace {

constexpr Forecast perfect{.kind = Forecast::Kind::perfect};

Time at(std::int64_t seconds) { return whole_seconds(seconds); }

// A value every ten seconds.
Signal tens(const std::vector<double>& values) {
  std::vector<Signal::Step> steps;
  for (std::size_t i = 0; i < values.size(); ++i) {
    steps.push_back({at(10 * static_cast<std::int64_t>(i)), Signal::to_micro(values[i])});
  }
  return Signal(std::move(steps));
}

std::vector<RunStretch> plan(StartRule rule, const Signal& signal, StartQuestion question) {
  return planned_runs(rule, signal, perfect, question);
}

TEST(StartRules, ChooseByHand) {
  const Signal signal = tens({9, 8, 3, 7, 2, 2, 9, 1});
  StartQuestion question{
      .now = at(0), .wait = at(50), .length = at(15), .expected = at(20), .step = at(10), .slot = at(5)};
  EXPECT_EQ(plan(StartRule::no_wait, signal, question), (std::vector<RunStretch>{{at(0), at(15)}}));
  EXPECT_EQ(plan(StartRule::all_wait, signal, question), (std::vector<RunStretch>{{at(50), at(65)}}));
  // 2 at 40 is less than 3 at 20; 1 at 70 is too late. Of equals the first.
  EXPECT_EQ(plan(StartRule::lowest_slot, signal, question), (std::vector<RunStretch>{{at(40), at(55)}}));
  // 20 s from 0, 10, ...: 170, 110, 100, 90, 40, 110.
  EXPECT_EQ(plan(StartRule::lowest_window, signal, question), (std::vector<RunStretch>{{at(40), at(55)}}));
  // Saved per time until the end: 60/30, 70/40, 80/50, 130/60, 60/70: 40 has 2.17, 10 has 2.
  EXPECT_EQ(plan(StartRule::carbon_time, signal, question), (std::vector<RunStretch>{{at(40), at(55)}}));
  question.wait = at(35);
  EXPECT_EQ(plan(StartRule::carbon_time, signal, question), (std::vector<RunStretch>{{at(10), at(25)}}));
  EXPECT_EQ(plan(StartRule::lowest_slot, signal, question), (std::vector<RunStretch>{{at(20), at(35)}}));
}

TEST(StartRules, LookAtValuesWhereSlotsBegin) {
  const Signal signal = tens({9, 1, 8});
  // Slots at 3, 18, 33: no slot begins within 10 to 18 but that at 18 does before 20.
  const StartQuestion question{.now = at(3), .wait = at(40), .length = at(1), .expected = at(1), .slot = at(15)};
  EXPECT_EQ(plan(StartRule::lowest_slot, signal, question)[0].begin, at(18));
  const StartQuestion blind{.now = at(5), .wait = at(40), .length = at(1), .expected = at(1), .slot = at(15)};
  EXPECT_EQ(plan(StartRule::lowest_slot, signal, blind)[0].begin, at(20));  // 9, then 8 at 20 and 35
}

TEST(StartRules, SuspendByHand) {
  const Signal signal = tens({9, 8, 3, 7, 2, 2, 9, 1});
  // 13 s are three slots of 5 s, the last of them cut. Cheapest until 13 + 45 s, in slots 60 s: those from 40 on.
  StartQuestion question{.now = at(0), .wait = at(45), .length = at(13), .expected = at(13), .slot = at(5)};
  EXPECT_EQ(plan(StartRule::wait_awhile, signal, question), (std::vector<RunStretch>{{at(40), at(53)}}));
  question.wait = at(20);  // until 35: two slots of 3, then the first of 7
  EXPECT_EQ(plan(StartRule::wait_awhile, signal, question), (std::vector<RunStretch>{{at(20), at(33)}}));
  question.wait = at(10);  // until 25: one slot of 3, two of 8
  EXPECT_EQ(plan(StartRule::wait_awhile, signal, question), (std::vector<RunStretch>{{at(10), at(23)}}));
  question.wait = at(0);
  EXPECT_EQ(plan(StartRule::wait_awhile, signal, question), (std::vector<RunStretch>{{at(0), at(13)}}));
  const Signal apart = tens({1, 8, 1, 8});
  question.wait = at(20);
  EXPECT_EQ(plan(StartRule::wait_awhile, apart, question),
            (std::vector<RunStretch>{{at(0), at(10)}, {at(20), at(23)}}));
}

TEST(StartRules, EcovisorWaitsForTheThreshold) {
  // A day of hours in slots of an hour: 0 to 9, then 100. The quantile of 24 values is at place 6.9: 6.9.
  std::vector<Signal::Step> steps;
  for (int h = 0; h < 48; ++h) steps.push_back({at(3600 * h), Signal::to_micro(h % 24 < 10 ? 9 - h % 24 : 100)});
  const Signal signal{steps};
  const Time hour = at(3600);
  EXPECT_DOUBLE_EQ(ecovisor_threshold(signal, perfect, at(0), hour), 6.9e6);
  // Hours of 9, 8, 7 are waited for; 6 and below are run in.
  StartQuestion question{.now = at(0), .wait = at(10 * 3600), .length = at(9000), .expected = at(9000), .slot = hour};
  EXPECT_EQ(plan(StartRule::ecovisor, signal, question),
            (std::vector<RunStretch>{{at(3 * 3600), at(3 * 3600 + 9000)}}));
  question.wait = at(2 * 3600);  // no more waiting from hour 2 on
  EXPECT_EQ(plan(StartRule::ecovisor, signal, question),
            (std::vector<RunStretch>{{at(2 * 3600), at(2 * 3600 + 9000)}}));
  question.length = at(10 * 3600);  // 6 to 0 in hours 3 to 9, then hours 10 to 12 are waited for with what is left
  question.wait = at(6 * 3600);
  EXPECT_EQ(plan(StartRule::ecovisor, signal, question),
            (std::vector<RunStretch>{{at(3 * 3600), at(10 * 3600)}, {at(13 * 3600), at(16 * 3600)}}));
}

TEST(StartRules, ForecastsMayMislead) {
  // Yesterday the second hour was good, today it is not.
  const Time day = at(86'400), hour = at(3600);
  std::vector<Signal::Step> steps{
      {at(0), 5'000'000}, {hour, 1'000'000}, {hour + hour, 9'000'000}, {day + hour, 20'000'000}};
  const Signal signal{steps};
  const StartQuestion question{.now = day, .wait = hour, .length = hour, .expected = hour};
  EXPECT_EQ(planned_runs(StartRule::lowest_window, signal, perfect, question)[0].begin, day);
  EXPECT_EQ(planned_runs(StartRule::lowest_window, signal, {.kind = Forecast::Kind::persistence}, question)[0].begin,
            day + hour);
}

TEST(StartRules, NextWorkdayDeadlines) {
  const auto deadline = [](const char* end) { return next_workday_deadline(*parse_calendar(end)); };
  const auto date = [](const char* text) { return *parse_calendar(text); };
  EXPECT_EQ(deadline("2020-01-04 12:00:00"), date("2020-01-06 09:00:00"));  // a Saturday
  EXPECT_EQ(deadline("2020-01-05 00:00:00"), date("2020-01-06 09:00:00"));  // a Sunday
  EXPECT_EQ(deadline("2020-01-03 17:30:00"), date("2020-01-04 09:00:00"));  // a Friday evening
  EXPECT_EQ(deadline("2020-01-03 17:00:00"), date("2020-01-03 17:00:00"));
  EXPECT_EQ(deadline("2020-01-06 08:30:00"), date("2020-01-06 09:00:00"));
  EXPECT_EQ(deadline("2020-01-06 09:00:00"), date("2020-01-06 09:00:00"));
  EXPECT_EQ(deadline("1969-12-31 23:00:00"), date("1970-01-01 09:00:00"));  // before the clock's zero
}

Signal random_signal() {
  std::vector<Signal::Step> steps;
  Time t = at(*rc::gen::inRange(-50, 50));
  const auto count = *rc::gen::inRange(1, 40);
  for (int i = 0; i < count; ++i) {
    steps.push_back({t, Signal::to_micro(*rc::gen::inRange(-3, 8))});
    t += at(*rc::gen::inRange(1, 15));
  }
  return Signal(std::move(steps));
}

StartQuestion random_question() {
  return {.now = at(*rc::gen::inRange(-20, 100)),
          .wait = at(*rc::gen::inRange(0, 120)),
          .length = at(*rc::gen::inRange(1, 60)),
          .expected = at(*rc::gen::inRange(1, 60)),
          .step = at(*rc::gen::inRange(1, 12)),
          .slot = at(*rc::gen::inRange(1, 7))};
}

// Second by second and slot by slot.
std::vector<RunStretch> slowly(StartRule rule, const Signal& signal, const StartQuestion& q) {
  const auto value = [&](Time t) { return signal.micro_at(t); };
  const auto window = [&](Time begin) {
    std::int64_t sum = 0;
    for (Time t = begin; t < begin + q.expected; t += at(1)) sum += value(t);
    return sum;
  };
  const auto slots = static_cast<std::size_t>((q.length.us + q.slot.us - 1) / q.slot.us);
  const auto most = slots + static_cast<std::size_t>(q.wait.us / q.slot.us);
  std::vector<Time> begins;
  for (std::size_t i = 0; i < most + 1; ++i) begins.push_back(q.now + Time{static_cast<std::int64_t>(i) * q.slot.us});
  Time start = q.now;
  if (rule == StartRule::lowest_slot) {
    for (std::size_t i = 0; i <= most - slots; ++i) {
      if (value(begins[i]) < value(start)) start = begins[i];
    }
  } else if (rule == StartRule::lowest_window || rule == StartRule::carbon_time) {
    double best = rule == StartRule::carbon_time ? 0 : static_cast<double>(window(q.now));
    for (Time after = q.step; after <= q.wait; after += q.step) {
      const auto sum = static_cast<double>(window(q.now + after));
      const double saved = (static_cast<double>(window(q.now)) - sum) / to_seconds(after + q.expected);
      const bool better = rule == StartRule::carbon_time ? saved > best + 1e-9 : sum < best;
      if (!better) continue;
      best = rule == StartRule::carbon_time ? saved : sum;
      start = q.now + after;
    }
  }
  if (!suspends(rule)) return {{start, start + q.length}};
  std::vector<bool> runs(most);
  if (rule == StartRule::wait_awhile) {
    std::vector<std::size_t> order(most);
    for (std::size_t i = 0; i < most; ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return value(begins[a]) < value(begins[b]); });
    for (std::size_t i = 0; i < slots; ++i) runs[order[i]] = true;
  } else {
    std::vector<double> day;
    for (Time t = q.now; t < q.now + at(86'400); t += q.slot) day.push_back(static_cast<double>(value(t)));
    std::sort(day.begin(), day.end());
    const double place = 0.3 * static_cast<double>(day.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const double above = day[std::min(below + 1, day.size() - 1)];
    const double threshold = day[below] + (above - day[below]) * (place - static_cast<double>(below));
    std::size_t left = slots, budget = most - slots;
    for (std::size_t i = 0; i < most && left > 0; ++i) {
      if (static_cast<double>(value(begins[i])) < threshold || budget == 0) {
        runs[i] = true;
        --left;
      } else {
        --budget;
      }
    }
  }
  std::vector<RunStretch> stretches;
  Time left = q.length;
  for (std::size_t i = 0; i < most; ++i) {
    if (!runs[i]) continue;
    const Time end = begins[i] + std::min(left, q.slot);
    left -= std::min(left, q.slot);
    if (!stretches.empty() && stretches.back().end == begins[i]) {
      stretches.back().end = end;
    } else {
      stretches.push_back({begins[i], end});
    }
  }
  return stretches;
}

RC_GTEST_PROP(StartRules, AreThoseOfEverySlot, ()) {
  const Signal signal = random_signal();
  const StartQuestion question = random_question();
  for (const auto& [name, rule] : start_rule_names) {
    if (rule == StartRule::no_wait || rule == StartRule::all_wait) continue;
    RC_ASSERT(planned_runs(rule, signal, perfect, question) == slowly(rule, signal, question));
  }
}

// Forecast::at() is the definition; the plans under any forecast are those under a perfect one of what it tells.
RC_GTEST_PROP(StartRules, ExpectWhatTheForecastTells, ()) {
  std::vector<Signal::Step> steps;
  Time t = at(*rc::gen::inRange(-300'000, 0));
  for (int i = *rc::gen::inRange(1, 60); i > 0; --i) {
    steps.push_back({t, Signal::to_micro(*rc::gen::inRange(0, 500))});
    t += Time{*rc::gen::inRange<std::int64_t>(1, 20'000'000'000)};
  }
  const Signal signal{steps};
  const Forecast forecast{
      .kind = *rc::gen::element(Forecast::Kind::perfect, Forecast::Kind::persistence, Forecast::Kind::noisy),
      .sigma = 0.2,
      .seed = 7};
  const Time now = at(*rc::gen::inRange(-100'000, 400'000)), until = now + at(*rc::gen::inRange(0, 300'000));
  const Signal expected = expected_signal(signal, forecast, now, until);
  std::vector<Time> instants{now, until, std::min(until, now + at(86'400)),
                             std::min(until, now + at(86'400) + Time{1})};
  for (int i = 0; i < 30; ++i) {
    instants.push_back(now + Time{*rc::gen::inRange<std::int64_t>(0, (until - now).us + 1)});
  }
  for (const Time instant : instants) {
    RC_ASSERT(expected.micro_at(instant) == Signal::to_micro(forecast.at(signal, now, instant)));
  }
  const StartQuestion question{
      .now = now, .wait = at(50'000), .length = at(9000), .expected = at(7000), .slot = at(600)};
  const Signal all = expected_signal(signal, forecast, now, now + at(100'000));
  for (const StartRule rule :
       {StartRule::lowest_slot, StartRule::lowest_window, StartRule::carbon_time, StartRule::wait_awhile}) {
    RC_ASSERT(planned_runs(rule, signal, forecast, question) == planned_runs(rule, all, perfect, question));
  }
}

// The clock's zero does not matter, nor the unit of the signal.
RC_GTEST_PROP(StartRules, AreTheSameLaterAndInAnotherUnit, ()) {
  const Signal signal = random_signal();
  const StartQuestion question = random_question();
  const Time by = at(*rc::gen::inRange(-100'000, 100'000));
  const std::int64_t unit = *rc::gen::inRange(1, 1000);
  std::vector<Signal::Step> steps(signal.steps().begin(), signal.steps().end());
  for (Signal::Step& step : steps) step = {step.time + by, step.micro * unit};
  StartQuestion later = question;
  later.now += by;
  for (const auto& [name, rule] : start_rule_names) {
    auto runs = planned_runs(rule, signal, perfect, question);
    for (RunStretch& run : runs) run = {run.begin + by, run.end + by};
    RC_ASSERT(planned_runs(rule, Signal(steps), perfect, later) == runs);
  }
}

}  // namespace
}  // namespace gpusched
