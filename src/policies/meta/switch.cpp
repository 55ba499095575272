// SPDX-License-Identifier: Apache-2.0
// switch: which of several policies has the run goes by a rule.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/csv_text.hpp"
#include "src/base/number_text.hpp"
#include "src/policies/meta/members.hpp"
#include "src/policies/meta/notes_log.hpp"
#include "src/policies/seam/policy_failure.hpp"

namespace gpusched {
namespace {

MilliGpu asked_by_waiting(const View& view, MilliGpu at_least) {
  MilliGpu sum = 0;
  for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
    for (const JobId job : view.queue(queue)) {
      const MilliGpu gpus = view.shape(job).gpu_milli();
      if (gpus >= at_least) sum += gpus;
    }
  }
  return sum;
}

// GPUs asked for by all jobs that wait and run, by GPUs in service.
double load_of(const View& view) {
  MilliGpu asked = asked_by_waiting(view, 0);
  for (const JobId job : view.running()) asked += view.held_gpu_milli(job);
  const MilliGpu whole = MilliGpu{view.cluster().up_gpus()} * whole_gpu;
  return whole == 0 ? 0 : static_cast<double>(asked) / static_cast<double>(whole);
}

constexpr Time day_span = whole_seconds(86'400);

Time in_day(Time t) { return Time{((t.us % day_span.us) + day_span.us) % day_span.us}; }

double hours_in(Time span) { return static_cast<double>(span.us) / 3.6e9; }

double hour_of(Time now) { return hours_in(in_day(now)); }

// The first instant of a day at which its hour is not below `hour`.
Time begin_of_hour(double hour) {
  Time begin{static_cast<std::int64_t>(hour * 3.6e9) - 1};
  while (hours_in(begin) < hour) begin += Time{1};
  return begin;
}

// When the hour passes one of these next after `t`, or falls to 0.
Time next_of_hours(Time t, std::span<const double> at) {
  const Time midnight = t - in_day(t);
  for (const double hour : at) {
    if (const Time begin = midnight + begin_of_hour(hour); begin > t) return begin;
  }
  return midnight + day_span;
}

// The price of the first place that has one, or null.
const Signal* first_price(std::span<const PowerPlace> places) {
  const auto place =
      std::find_if(places.begin(), places.end(), [](const PowerPlace& it) { return !it.usd_per_mwh.is_empty(); });
  return place == places.end() ? nullptr : &place->usd_per_mwh;
}

const Signal& price_of(const View& view) {
  const Signal* const price = view.knows_power() ? first_price(view.places()) : nullptr;
  if (price == nullptr) throw PolicyFailure(view.now(), "switch{by=price}: the run knows no price");
  return *price;
}

class Switch {
 public:
  /// `zero`: the time of day at second 0.
  Switch(Members members, std::string by, std::vector<double> at, MilliGpu large, Time hold, Time zero)
      : members_(std::move(members)), by_(std::move(by)), at_(std::move(at)), large_(large), hold_(hold), zero_(zero) {}

  [[nodiscard]] std::string_view name() const { return "switch"; }
  [[nodiscard]] bool clairvoyant() const { return members_.clairvoyant(); }

  void decide(const OracleView& view, Decision& decision) {
    members_.observe(view);
    const bool is_held = !stretches_.empty() && view.now() - stretches_.back().begin < hold_;
    if (members_.size() > 1 && !is_held && !members_.was_over()) choose(view);
    members_.decide(stretches_.empty() ? members_.active() : stretches_.back().member, view, decision);
    if (members_.size() > 1 && goes_by_clock()) ask_to_wake(view, decision);
  }

  [[nodiscard]] std::string notes() const {
    std::string text = "from_s,until_s,policy,value\n";
    for (std::size_t i = 0; i < stretches_.size(); ++i) {
      append_seconds(text, stretches_[i].begin);
      append_seconds(text += ',', i + 1 < stretches_.size() ? stretches_[i + 1].begin : members_.last());
      append_csv_field(text += ',', members_.name(stretches_[i].member));
      text += ',' + exact_number(stretches_[i].value) + '\n';
    }
    return text;
  }

 private:
  static constexpr Time not_found{std::numeric_limits<std::int64_t>::min()};

  struct Stretch {
    Time begin{};
    std::size_t member = 0;
    double value = 0;  // that decided
  };

  [[nodiscard]] std::size_t member_of(double value) const {
    return static_cast<std::size_t>(std::upper_bound(at_.begin(), at_.end(), value) - at_.begin());
  }
  void choose(const View& view) {
    const double value = value_of(view);
    const std::size_t member = member_of(value);
    if (!stretches_.empty() && member == stretches_.back().member) return;
    stretches_.push_back({view.now(), member, value});
    turn_ = not_found;
  }

  // The value changes where no job's event comes.
  [[nodiscard]] bool goes_by_clock() const { return by_ == "hour" || by_ == "price"; }
  [[nodiscard]] std::size_t member_at(const View& view, Time t) const {
    return member_of(by_ == "hour" ? hour_of(t + zero_) : price_of(view).at(t));
  }
  [[nodiscard]] Time next_value(const View& view, Time t) const {
    if (by_ == "price") return price_of(view).next_change(t);
    return next_of_hours(t + zero_, at_) - zero_;
  }
  // When another member takes over next; Time::max(): never. Nobody decides by what comes: it is a time to look.
  [[nodiscard]] Time next_turn(const View& view) const {
    const Time free = later_by(stretches_.back().begin, hold_), begin = std::max(view.now(), free);
    const Time end = by_ == "hour" ? later_by(begin, day_span) : Time::max();  // each day is as the one before
    if (begin > view.now() && member_at(view, begin) != stretches_.back().member) return begin;
    for (Time t = next_value(view, begin); t < end; t = next_value(view, t)) {
      if (member_at(view, t) != stretches_.back().member) return t;
    }
    return Time::max();
  }
  void ask_to_wake(const View& view, Decision& decision) {
    if (turn_ <= view.now()) turn_ = next_turn(view);
    const bool is_needed = !view.running().empty() || view.pending_count() > 0;
    if (!is_needed || turn_ == awake_at_ || turn_ == Time::max()) return;
    if (decision.wake(turn_) == Verdict::ok) awake_at_ = turn_;
  }

  [[nodiscard]] double value_of(const View& view) const {
    if (by_ == "queue") return view.pending_count();
    if (by_ == "load") return load_of(view);
    if (by_ == "hour") return hour_of(view.now() + zero_);
    if (by_ == "price") return price_of(view).at(view.now());
    const MilliGpu all = asked_by_waiting(view, 0);
    return all == 0 ? 0 : static_cast<double>(asked_by_waiting(view, large_)) / static_cast<double>(all);
  }

  Members members_;
  std::string by_;
  std::vector<double> at_;
  MilliGpu large_;
  Time hold_, zero_;
  std::vector<Stretch> stretches_;
  Time turn_ = not_found;        // next_turn() of the last stretch; where it is past: to be found
  Time awake_at_ = Time::max();  // the wake that was asked for last
};

Result<AnyPolicy> make_switch(const PolicyParameters& parameters, const PolicyContext& context) {
  auto members = Members::make("switch", parameters, context);
  if (!members) return Unexpected{members.error()};
  const std::vector<double>& at = parameters.list("at");
  if (at.size() + 1 != members->size() || !std::is_sorted(at.begin(), at.end())) {
    return Unexpected{Error{.message = "expected " + std::to_string(members->size() - 1) +
                                       " ascending numbers, one fewer than there are policies",
                            .field = "policy switch, parameter at"}};
  }
  const bool is_by_price = parameters.word("by") == "price";
  if (is_by_price && context.power != nullptr && first_price(context.power->places) == nullptr) {
    return Unexpected{Error{.message = "expected a price of electricity; give --power a price",
                            .field = "policy switch, parameter by"}};
  }
  const bool is_of_day = at.empty() || (at.front() >= 0 && at.back() < 24);
  if (parameters.word("by") == "hour" && !is_of_day) {
    return Unexpected{
        Error{.message = "expected hours of the day, from 0 to below 24", .field = "policy switch, parameter at"}};
  }
  return AnyPolicy(Switch(*std::move(members), parameters.word("by"), at,
                          static_cast<MilliGpu>(parameters.number("large_gpus") * whole_gpu),
                          from_seconds(parameters.number("hold_s")), context.jobs->midnight_to_zero()));
}

}  // namespace

PolicyInfo switch_info() {
  return {.name = "switch",
          .summary = "gives the run to one of its policies by a rule: load, queue, share of large jobs, hour, price",
          .source = "own rule: the first policy below the first of the numbers `at`, the next from there on, and so on",
          .complexity = "O(1) to O(jobs that wait and run), by the rule; O(jobs) where another one takes over",
          .parameters = {members_parameter({"fifo", "saf"}),
                         {.name = "by",
                          .fallback = std::string("queue"),
                          .meaning = "GPUs that waiting and running jobs ask for by GPUs in service; jobs waiting; of "
                                     "the GPUs that waiting jobs ask for, the part of large jobs; hour of the day of "
                                     "the trace's clock; US$ a MWh now",
                          .words = {"load", "queue", "large", "hour", "price"}},
                         {.name = "at",
                          .fallback = std::vector<double>{10},
                          .meaning = "where the next policy begins; ascending, one fewer than policies",
                          .least = -1e12,
                          .most = 1e12},
                         {.name = "large_gpus",
                          .fallback = 8.0,
                          .meaning = "by=large: jobs of as many GPUs are large",
                          .most = 1e6},
                         {.name = "hold_s",
                          .fallback = 600.0,
                          .meaning = "seconds for which a policy keeps the run at least",
                          .most = 1e9}},
          .make = make_switch,
          .preemptive = true,
          .files = files_of_members,
          .holds_policies = true,
          .asymmetries = {{Symmetry::time_scale, "run times are an hour where nothing is known of them"}},
          .log = [](const PolicyParameters&, const PolicyContext&) -> Result<std::unique_ptr<PolicyLog>> {
            return std::unique_ptr<PolicyLog>(std::make_unique<NotesLog>("switch.csv"));
          }};
}

}  // namespace gpusched
