// SPDX-License-Identifier: Apache-2.0
#include "src/policies/carbon/start_rules.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace gpusched {
namespace {

using WideInt = Signal::WideInt;

constexpr Time one_day = whole_seconds(86'400);

std::int64_t quotient_up(Time a, Time b) { return (a.us + b.us - 1) / b.us; }

Time times(std::int64_t count, Time span) { return Time{count * span.us}; }

// Neighbouring slots at whose beginnings the signal has one value.
struct SlotRun {
  std::int64_t first = 0, count = 0;
  std::int64_t micro = 0;
};

// The slots from `now` on, `count` of them.
std::vector<SlotRun> slot_runs(const Signal& signal, Time now, Time slot, std::int64_t count) {
  std::vector<SlotRun> runs;
  for (std::int64_t first = 0; first < count;) {
    const Time begin = now + times(first, slot);
    const Time change = signal.next_change(begin);
    const std::int64_t next = change == Time::max() ? count : std::min(quotient_up(change - now, slot), count);
    runs.push_back({first, next - first, signal.micro_at(begin)});
    first = next;
  }
  return runs;
}

std::int64_t slots_of_length(const StartQuestion& question) { return quotient_up(question.length, question.slot); }

std::int64_t slots_of_wait(const StartQuestion& question) { return question.wait.us / question.slot.us; }

Time lowest_slot(const Signal& expected, const StartQuestion& question) {
  const auto runs = slot_runs(expected, question.now, question.slot, slots_of_wait(question) + 1);
  const auto least =
      std::min_element(runs.begin(), runs.end(), [](const SlotRun& a, const SlotRun& b) { return a.micro < b.micro; });
  return question.now + times(least->first, question.slot);
}

// The first of the starts, of every step, that is better than all before it: `is_better(after, best_after)`.
template <class IsBetter>
Time best_start(const StartQuestion& question, IsBetter is_better) {
  Time best{};
  for (Time after = question.step; after <= question.wait; after += question.step) {
    if (is_better(after, best)) best = after;
  }
  return question.now + best;
}

Time lowest_window(const Signal& expected, const StartQuestion& question) {
  const auto window = [&](Time after) {
    const Time begin = question.now + after;
    return expected.integral(begin, begin + question.expected);
  };
  WideInt least = window(Time{});
  return best_start(question, [&](Time after, Time) {
    const WideInt sum = window(after);
    return sum < least ? (least = sum, true) : false;
  });
}

Time carbon_time(const Signal& expected, const StartQuestion& question) {
  const auto window = [&](Time after) {
    const Time begin = question.now + after;
    return expected.integral(begin, begin + question.expected);
  };
  const WideInt now = window(Time{});
  WideInt best_saved = 0;
  return best_start(question, [&](Time after, Time best) {
    // saved / (after + expected) > best_saved / (best + expected)
    const WideInt saved = now - window(after);
    const bool better = saved * (best + question.expected).us > best_saved * (after + question.expected).us;
    if (better) best_saved = saved;
    return better;
  });
}

// Slots that a job runs in, by time, as stretches that together last for its length.
class Stretches {
 public:
  explicit Stretches(const StartQuestion& question) : question_(question), left_(slots_of_length(question)) {}

  [[nodiscard]] std::int64_t left() const { return left_; }

  /// Precondition: after all slots added before, at most left() of them.
  void add(std::int64_t first, std::int64_t count) {
    if (count == 0) return;
    left_ -= count;
    const Time begin = question_.now + times(first, question_.slot), end = begin + times(count, question_.slot);
    if (!stretches_.empty() && stretches_.back().end == begin) {
      stretches_.back().end = end;
    } else {
      stretches_.push_back({begin, end});
    }
  }

  std::vector<RunStretch> take() {
    const Time over = times(slots_of_length(question_), question_.slot) - question_.length;
    stretches_.back().end -= over;
    return std::move(stretches_);
  }

 private:
  const StartQuestion& question_;
  std::int64_t left_;
  std::vector<RunStretch> stretches_;
};

std::vector<RunStretch> ecovisor(const Signal& signal, const Forecast& forecast, const StartQuestion& question) {
  const double threshold = ecovisor_threshold(signal, forecast, question.now, question.slot);
  std::int64_t budget = slots_of_wait(question);
  Stretches stretches(question);
  for (const SlotRun& run : slot_runs(signal, question.now, question.slot, stretches.left() + budget)) {
    const bool waits = static_cast<double>(run.micro) >= threshold;
    const std::int64_t waited = waits && stretches.left() > 0 ? std::min(budget, run.count) : 0;
    budget -= waited;
    stretches.add(run.first + waited, std::min(stretches.left(), run.count - waited));
  }
  return stretches.take();
}

std::vector<RunStretch> wait_awhile(const Signal& expected, const StartQuestion& question) {
  Stretches stretches(question);
  auto runs = slot_runs(expected, question.now, question.slot, stretches.left() + slots_of_wait(question));
  const auto by_value = [](const SlotRun& a, const SlotRun& b) { return a.micro < b.micro; };
  std::stable_sort(runs.begin(), runs.end(), by_value);
  std::int64_t wanted = stretches.left();
  for (SlotRun& run : runs) {
    run.count = std::min(run.count, wanted);
    wanted -= run.count;
  }
  std::sort(runs.begin(), runs.end(), [](const SlotRun& a, const SlotRun& b) { return a.first < b.first; });
  for (const SlotRun& run : runs) stretches.add(run.first, run.count);
  return stretches.take();
}

// What `signal` has at `from` and its steps within (from, to], moved by `by`.
void append_steps(std::vector<Signal::Step>& steps, const Signal& signal, Time from, Time to, Time by) {
  steps.push_back({from + by, signal.micro_at(from)});
  for (Time t = signal.next_change(from); t <= to && t != Time::max(); t = signal.next_change(t)) {
    steps.push_back({t + by, signal.micro_at(t)});
  }
}

// A noisy future: the signal's own steps with other values.
Signal noisy_signal(const Signal& signal, const Forecast& forecast, Time now, Time until) {
  std::vector<Signal::Step> steps{{now, signal.micro_at(now)}};
  for (Time t = signal.next_change(now); t <= until && t != Time::max(); t = signal.next_change(t)) {
    steps.push_back({t, Signal::to_micro(forecast.at(signal, now, t))});
  }
  return Signal(std::move(steps));
}

}  // namespace

Signal expected_signal(const Signal& signal, const Forecast& forecast, Time now, Time until) {
  if (signal.is_empty()) return signal;
  if (forecast.kind == Forecast::Kind::noisy) return noisy_signal(signal, forecast, now, until);
  std::vector<Signal::Step> steps;
  if (forecast.kind == Forecast::Kind::perfect) {
    append_steps(steps, signal, now, until, Time{});
    return Signal(std::move(steps));
  }
  // The day that ends now, again and again: until a day later, that instant included, as one day before.
  steps.push_back({now, signal.micro_at(now)});
  for (Time by = one_day; now + by < until + one_day; by += one_day) {
    append_steps(steps, signal, now - one_day + Time{1}, now, by);
  }
  return Signal(std::move(steps));
}

double ecovisor_threshold(const Signal& signal, const Forecast& forecast, Time now, Time slot) {
  constexpr double quantile = 0.3;
  auto runs = slot_runs(expected_signal(signal, forecast, now, now + one_day), now, slot, quotient_up(one_day, slot));
  std::sort(runs.begin(), runs.end(), [](const SlotRun& a, const SlotRun& b) { return a.micro < b.micro; });
  std::int64_t count = 0;
  for (SlotRun& run : runs) {
    run.first = count;  // now a place in the order of values
    count += run.count;
  }
  const auto at = [&](std::int64_t place) {
    const auto after = std::upper_bound(runs.begin(), runs.end(), place,
                                        [](std::int64_t p, const SlotRun& run) { return p < run.first; });
    return static_cast<double>((after - 1)->micro);
  };
  const double place = quantile * static_cast<double>(count - 1);
  const auto below = static_cast<std::int64_t>(place);
  const double low = at(below), high = at(std::min(below + 1, count - 1));
  return low + (high - low) * (place - static_cast<double>(below));
}

std::vector<RunStretch> planned_runs(StartRule rule, const Signal& signal, const Forecast& forecast,
                                     const StartQuestion& question) {
  GPUSCHED_ASSERT(question.wait >= Time{} && question.length > Time{} && question.expected > Time{},
                  "a job that starts has a length, and waits for no negative time");
  GPUSCHED_ASSERT(question.step > Time{} && question.slot > Time{}, "starts and slots are some time apart");
  const auto whole = [&](Time begin) { return std::vector<RunStretch>{{begin, begin + question.length}}; };
  if (rule == StartRule::no_wait) return whole(question.now);
  if (rule == StartRule::all_wait) return whole(question.now + question.wait);
  if (rule == StartRule::ecovisor) return ecovisor(signal, forecast, question);
  const Time length = rule == StartRule::wait_awhile ? question.length + question.slot : question.expected;
  const Signal expected = expected_signal(signal, forecast, question.now, question.now + question.wait + length);
  if (rule == StartRule::wait_awhile) return wait_awhile(expected, question);
  if (rule == StartRule::lowest_slot) return whole(lowest_slot(expected, question));
  if (rule == StartRule::lowest_window) return whole(lowest_window(expected, question));
  return whole(carbon_time(expected, question));
}

Time next_workday_deadline(Time end) {
  using std::chrono::days;
  using std::chrono::weekday;
  const std::chrono::sys_time<std::chrono::microseconds> instant{std::chrono::microseconds{end.us}};
  const auto day = std::chrono::floor<days>(instant);
  const auto nine_of = [&](int later) {
    return Time{std::chrono::duration_cast<std::chrono::microseconds>((day + days{later}).time_since_epoch()).count()} +
           whole_seconds(9 * 3600);
  };
  const weekday which{day};
  if (which == std::chrono::Saturday) return nine_of(2);
  const Time midnight = nine_of(0) - whole_seconds(9 * 3600);
  if (which == std::chrono::Sunday || end > midnight + whole_seconds(17 * 3600)) return nine_of(1);
  return std::max(nine_of(0), end);
}

}  // namespace gpusched
