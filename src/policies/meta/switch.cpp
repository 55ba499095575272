// SPDX-License-Identifier: Apache-2.0
// switch: which of several policies has the run goes by a rule.
#include <algorithm>
#include <cstdint>
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

double hour_of(Time now) {
  constexpr std::int64_t day_us = std::int64_t{86400} * 1'000'000;
  const std::int64_t in_day = ((now.us % day_us) + day_us) % day_us;
  return static_cast<double>(in_day) / 3.6e9;
}

// The price of the first place that has one, or null.
const Signal* first_price(std::span<const PowerPlace> places) {
  const auto place =
      std::find_if(places.begin(), places.end(), [](const PowerPlace& it) { return !it.usd_per_mwh.is_empty(); });
  return place == places.end() ? nullptr : &place->usd_per_mwh;
}

double price_of(const View& view) {
  const Signal* const price = view.knows_power() ? first_price(view.places()) : nullptr;
  if (price == nullptr) throw PolicyFailure(view.now(), "switch{by=price}: the run knows no price");
  return price->at(view.now());
}

class Switch {
 public:
  Switch(Members members, std::string by, std::vector<double> at, MilliGpu large, Time hold)
      : members_(std::move(members)), by_(std::move(by)), at_(std::move(at)), large_(large), hold_(hold) {}

  [[nodiscard]] std::string_view name() const { return "switch"; }
  [[nodiscard]] bool clairvoyant() const { return members_.clairvoyant(); }

  void decide(const OracleView& view, Decision& decision) {
    members_.observe(view);
    std::size_t member = members_.active();
    if (members_.size() > 1 && (stretches_.empty() || view.now() - stretches_.back().begin >= hold_)) {
      const double value = value_of(view);
      member = static_cast<std::size_t>(std::upper_bound(at_.begin(), at_.end(), value) - at_.begin());
      if (stretches_.empty() || member != members_.active()) stretches_.push_back({view.now(), member, value});
    }
    members_.decide(member, view, decision);
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
  struct Stretch {
    Time begin{};
    std::size_t member = 0;
    double value = 0;  // that decided
  };

  [[nodiscard]] double value_of(const View& view) const {
    if (by_ == "queue") return view.pending_count();
    if (by_ == "load") return load_of(view);
    if (by_ == "hour") return hour_of(view.now());
    if (by_ == "price") return price_of(view);
    const MilliGpu all = asked_by_waiting(view, 0);
    return all == 0 ? 0 : static_cast<double>(asked_by_waiting(view, large_)) / static_cast<double>(all);
  }

  Members members_;
  std::string by_;
  std::vector<double> at_;
  MilliGpu large_;
  Time hold_;
  std::vector<Stretch> stretches_;
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
                          from_seconds(parameters.number("hold_s"))));
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
