// SPDX-License-Identifier: Apache-2.0
/// What a run drew, emitted and cost, as tables, JSON and csv. In files, amounts are whole millionths of their units,
/// of which parts add up to their sum.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "gpusched/engine/engine.hpp"
#include "src/base/text_style.hpp"

namespace gpusched {

struct PolicyRun;

/// Whose the energy of a run was, within the measured span, and how its caps were kept.
struct PowerAccount {
  Bill meter = {}, jobs = {}, services = {};
  std::array<Bill, most_bills> others = {};    ///< by BillOf
  std::vector<detail::CapExcess> caps = {};    ///< by number, of the whole run
  bool has_carbon = false, has_money = false;  ///< known at all

  /// Replicas of services drew or cost something.
  [[nodiscard]] bool has_services() const { return services.nj != 0 || services.rent != 0; }
};

/// Precondition: `engine` has finished and knows power.
PowerAccount power_account(const Engine& engine);

/// {"meter", "jobs", "services", "idle", "asleep", "waking", "losses"}, each with energy_kwh and, where known,
/// carbon_kg, electricity_usd and gpus_usd; and "caps".
nlohmann::ordered_json power_account_json(const PowerAccount& account);

/// A line for each cap that was exceeded: by how much, and how long.
std::vector<std::string> cap_warnings(const std::string& policy, const PowerAccount& account);

/// For people. Precondition: every run has an account.
std::string power_table(const std::vector<PolicyRun>& runs, const TextStyle& style = {});

/// The columns that bills have: their names, and a text of each bill's cells, that begin with a comma.
struct BillColumns {
  std::string names;
  std::vector<std::string> cells;
};
BillColumns bill_columns(const PowerAccount& account, std::span<const Bill> bills);

/// The same amounts of `bills` in each object of `rows`, a list or an object, in their order.
void add_bills(const PowerAccount& account, std::span<const Bill> bills, nlohmann::ordered_json& rows);

/// time_s, draw_w, meter_w; where all nodes are at one place whose signals are known, carbon_kg_per_h and
/// electricity_usd_per_h; for each cap, cap0_w, drawn0_w and headroom0_w. A row for each instant at which one changes.
/// Precondition: the engine kept levels.
std::string power_csv(const Engine& engine);

}  // namespace gpusched
