// SPDX-License-Identifier: Apache-2.0
#include "src/sim/power_report.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/base/number_text.hpp"
#include "src/base/rounded_parts.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/text_table.hpp"
#include "src/sim/rated_run.hpp"
#include "src/sim/replay.hpp"

namespace gpusched {
namespace {

using detail::WideInt;

constexpr std::int64_t millionth = 1'000'000;
constexpr std::array<const char*, 2 + most_bills> part_names{"jobs", "services", "idle", "asleep", "waking", "losses"};

// An amount of bills, and how many of Bill's units are a millionth of what people use.
struct Amount {
  const char* name;
  WideInt (*of)(const Bill&);
  WideInt per_millionth;
};
constexpr WideInt wide_kwh = 3'600'000'000;  // a millionth of a kWh, in nJ

std::vector<Amount> amounts_of(const PowerAccount& account) {
  std::vector<Amount> amounts{{"energy_kwh", [](const Bill& bill) { return bill.nj; }, wide_kwh}};
  const WideInt wide_rate = wide_kwh * 1'000'000'000;
  if (account.has_carbon) amounts.push_back({"carbon_kg", [](const Bill& bill) { return bill.carbon; }, wide_rate});
  if (!account.has_money) return amounts;
  amounts.push_back({"electricity_usd", [](const Bill& bill) { return bill.electricity; }, wide_rate});
  amounts.push_back({"gpus_usd", [](const Bill& bill) { return bill.rent; }, wide_kwh});
  return amounts;
}

// By part_names: what adds up to the meter.
std::vector<std::int64_t> account_millionths(const Amount& amount, const PowerAccount& account) {
  std::vector<WideInt> parts{amount.of(account.jobs), amount.of(account.services)};
  for (const Bill& bill : account.others) parts.push_back(amount.of(bill));
  return rounded_parts<WideInt>(parts, amount.per_millionth);
}

// Rows that have all of what jobs have, or services, add up to what the account says of those.
std::vector<std::int64_t> row_millionths(const Amount& amount, const PowerAccount& account,
                                         std::span<const Bill> rows) {
  std::vector<WideInt> parts;
  parts.reserve(rows.size());
  Bill all;
  for (const Bill& bill : rows) {
    parts.push_back(amount.of(bill));
    all += bill;
  }
  const bool are_jobs = all == account.jobs;
  if (!are_jobs && !(all == account.services)) return rounded_parts<WideInt>(parts, amount.per_millionth);
  const std::vector<std::int64_t> of_parts = account_millionths(amount, account);
  return rounded_parts<WideInt>(parts, amount.per_millionth, of_parts[are_jobs ? 0 : 1]);
}

Json cap_json(const detail::CapExcess& excess) {
  return {{"exceeded_s", to_seconds(excess.time)},
          {"exceeded_w", static_cast<double>(excess.most_mw) / 1e3},
          {"exceeded_kwh", static_cast<double>(excess.nj) / 3.6e15}};
}

void append_cap_levels(std::string& text, std::span<const detail::CapLevel> caps) {
  for (const detail::CapLevel& cap : caps) {
    for (const std::int64_t mw : {cap.limit_mw, cap.drawn_mw, cap.limit_mw - cap.drawn_mw}) {
      append_decimal(text += ',', mw, 1000);
    }
  }
}

// Columns of power.csv: what the meter emits and costs an hour. None where nodes are at several places, or nothing is
// known.
class RateColumns {
 public:
  explicit RateColumns(const PowerModel& model) {
    if (model.places.size() != 1) return;
    const PowerPlace& place = model.places.front();
    if (!place.carbon_g_per_kwh.is_empty()) rates_.push_back({",carbon_kg_per_h", &place.carbon_g_per_kwh, 1e9});
    if (!place.usd_per_mwh.is_empty()) rates_.push_back({",electricity_usd_per_h", &place.usd_per_mwh, 1e9});
  }

  [[nodiscard]] std::string names() const {
    std::string text;
    for (const Rate& rate : rates_) text += rate.name;
    return text;
  }
  void append(std::string& text, Time at, std::int64_t meter_mw) const {
    for (const Rate& rate : rates_) {
      text += formatted(",%.6f", static_cast<double>(meter_mw) * rate.signal->at(at) / rate.milliwatts);
    }
  }
  [[nodiscard]] Time next_change(Time t) const {
    Time next = Time::max();
    for (const Rate& rate : rates_) next = std::min(next, rate.signal->next_change(t));
    return next;
  }

 private:
  struct Rate {
    const char* name;
    const Signal* signal;
    double milliwatts;  // for which the signal's value is the rate: g/kWh and kg/h, $/MWh and $/h
  };
  std::vector<Rate> rates_;
};

}  // namespace

PowerAccount power_account(const Engine& engine) {
  const detail::Power& power = engine.power();
  PowerAccount account{.meter = power.meter(),
                       .jobs = power.jobs_bill(),
                       .services = power.services_bill(),
                       .has_carbon = power.model().knows_carbon(),
                       .has_money = power.model().knows_money()};
  for (std::size_t i = 0; i < most_bills; ++i) account.others[i] = power.bill(static_cast<BillOf>(i));
  for (std::uint32_t cap = 0; cap < power.caps().size(); ++cap) account.caps.push_back(power.caps().excess(cap));
  return account;
}

Json power_account_json(const PowerAccount& account) {
  Json json = {{"meter", Json::object()}, {"jobs", Json::object()}};
  for (const Amount& amount : amounts_of(account)) {
    const std::vector<std::int64_t> rounded = account_millionths(amount, account);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < rounded.size(); ++i) {
      sum += rounded[i];
      if (i == 1 && !account.has_services()) continue;
      json[part_names[i]][amount.name] = static_cast<double>(rounded[i]) / static_cast<double>(millionth);
    }
    json["meter"][amount.name] = static_cast<double>(sum) / static_cast<double>(millionth);
  }
  if (account.caps.empty()) return json;
  json["caps"] = Json::array();
  for (const detail::CapExcess& excess : account.caps) json["caps"].push_back(cap_json(excess));
  return json;
}

std::vector<std::string> cap_warnings(const std::string& policy, const PowerAccount& account) {
  std::vector<std::string> lines;
  for (std::size_t cap = 0; cap < account.caps.size(); ++cap) {
    const detail::CapExcess& excess = account.caps[cap];
    if (excess.time.us == 0) continue;
    lines.push_back(policy + ": power cap " + std::to_string(cap) + " was exceeded for " +
                    human_duration(to_seconds(excess.time)) + ", by up to " +
                    formatted("%.1f", static_cast<double>(excess.most_mw) / 1e3) + " W");
  }
  return lines;
}

std::string power_table(const std::vector<PolicyRun>& runs, const TextStyle& style) {
  const PowerAccount& first = *runs.front().power;
  std::vector<std::string> header{"policy", "energy kWh", "of jobs"};
  if (first.has_services()) header.emplace_back("services");
  header.insert(header.end(), {"idle", "losses", "peak kW"});
  const std::size_t peak = header.size() - 1;
  if (first.has_carbon) header.emplace_back("carbon kg");
  if (first.has_money) header.emplace_back("cost $");
  const std::size_t columns = header.size();
  TextTable table(std::move(header));
  const auto other = [](const PowerAccount& account, BillOf whose) {
    return account.others[static_cast<std::size_t>(whose)].kwh();
  };
  for (const PolicyRun& run : runs) {
    const PowerAccount& account = *run.power;
    const double idle = other(account, BillOf::idle) + other(account, BillOf::asleep) + other(account, BillOf::waking);
    std::vector<std::string> cells{run.policy, formatted("%.1f", account.meter.kwh()),
                                   formatted("%.1f", account.jobs.kwh())};
    if (first.has_services()) cells.push_back(formatted("%.1f", account.services.kwh()));
    cells.insert(cells.end(), {formatted("%.1f", idle), formatted("%.1f", other(account, BillOf::losses)),
                               formatted("%.2f", run.metrics.peak_kw.value_or(0))});
    if (account.has_carbon) cells.push_back(formatted("%.2f", account.meter.carbon_kg()));
    if (account.has_money) cells.push_back(formatted("%.2f", account.meter.usd()));
    table.add(std::move(cells));
  }
  const auto rate = [&](std::size_t column, auto figure) {
    table.rate(column, Best::least, runs, [&](const PolicyRun& run) { return rated(run, figure(run)); });
  };
  rate(1, [](const PolicyRun& run) { return std::optional(run.power->meter.kwh()); });
  rate(peak, [](const PolicyRun& run) { return run.metrics.peak_kw; });
  if (first.has_carbon)
    rate(peak + 1, [](const PolicyRun& run) { return std::optional(run.power->meter.carbon_kg()); });
  if (first.has_money) rate(columns - 1, [](const PolicyRun& run) { return std::optional(run.power->meter.usd()); });
  std::vector<std::size_t> important{1};
  for (std::size_t column = peak + 1; column < columns; ++column) important.push_back(column);
  table.set_important(std::move(important));
  return "\n" + table.text(style) +
         "energy at the meter; idle: what no job has; losses: before the nodes, and cooling\n";
}

BillColumns bill_columns(const PowerAccount& account, std::span<const Bill> bills) {
  BillColumns columns{.names = {}, .cells = std::vector<std::string>(bills.size())};
  for (const Amount& amount : amounts_of(account)) {
    columns.names += ',';
    columns.names += amount.name;
    const std::vector<std::int64_t> rounded = row_millionths(amount, account, bills);
    for (std::size_t i = 0; i < bills.size(); ++i) append_decimal(columns.cells[i] += ',', rounded[i], millionth);
  }
  return columns;
}

void add_bills(const PowerAccount& account, std::span<const Bill> bills, Json& rows) {
  for (const Amount& amount : amounts_of(account)) {
    const std::vector<std::int64_t> rounded = row_millionths(amount, account, bills);
    std::size_t i = 0;
    for (Json& row : rows) row[amount.name] = static_cast<double>(rounded[i++]) / static_cast<double>(millionth);
  }
}

std::string power_csv(const Engine& engine) {
  const detail::Power& power = engine.power();
  const detail::PowerLevels& log = power.levels();
  const RateColumns rates(power.model());
  std::string text = "time_s,draw_w,meter_w" + rates.names();
  for (std::uint32_t cap = 0; cap < power.caps().size(); ++cap) {
    for (const char* const name : {"cap", "drawn", "headroom"}) text += ',' + (name + std::to_string(cap)) + "_w";
  }
  text += '\n';
  for (std::size_t i = 0; i < log.levels().size(); ++i) {
    const auto& level = log.levels()[i];
    const Time next = i + 1 < log.levels().size() ? log.levels()[i + 1].since : engine.view().now();
    const std::int64_t meter_mw = power.with_losses_mw(level.draw_mw);
    Time at = level.since;
    do {  // a row more where only a rate changes
      append_seconds(text, at);
      append_decimal(text += ',', level.draw_mw, 1000);
      append_decimal(text += ',', meter_mw, 1000);
      rates.append(text, at, meter_mw);
      append_cap_levels(text, log.caps(i));
      text += '\n';
      at = rates.next_change(at);
    } while (at < next);
  }
  return text;
}

}  // namespace gpusched
