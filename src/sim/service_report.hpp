// SPDX-License-Identifier: Apache-2.0
/// What a replay says of services: a table, JSON, services.csv and requests.csv.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gpusched/watch/service_figures.hpp"
#include "src/base/text_style.hpp"
#include "src/sim/power_report.hpp"

namespace gpusched {

struct PolicyRun;

/// A line for each policy and service. Precondition: runs with services.
std::string services_table(const std::vector<PolicyRun>& runs, const TextStyle& style = {});

/// One of them, without bills.
nlohmann::ordered_json service_json(const ServiceFigures& service);

/// The services of a run, by name, with their bills where power is known.
nlohmann::ordered_json services_json(const std::vector<ServiceFigures>& services,
                                     const std::optional<PowerAccount>& power);

/// Behind a row's name in services.csv: the names of `row` (service_json()), or their values, each with a comma before
/// it. \{
std::string names_of_row(const nlohmann::ordered_json& row);
std::string cells_of_row(const nlohmann::ordered_json& row);
/// \}

/// services.csv: a row for each service.
std::string services_csv(const std::vector<ServiceFigures>& services, const std::optional<PowerAccount>& power);

/// requests.csv: a row for each request, by service and arrival. Precondition: engine.has_services().
std::string requests_csv(const Engine& engine);
/// Its first line, and the rows of one service behind `text`, each begun with what `first` says of the request of that
/// number, which ends with the number to write. \{
std::string requests_header();
void append_requests(std::string& text, const RequestLedger& queue,
                     const std::function<std::string(std::uint32_t)>& first);
/// \}

}  // namespace gpusched
