// SPDX-License-Identifier: Apache-2.0
/// What a replay says of services: a table, JSON, services.csv and requests.csv.
#pragma once

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

/// The services of a run, by name, with their bills where power is known.
nlohmann::ordered_json services_json(const std::vector<ServiceFigures>& services,
                                     const std::optional<PowerAccount>& power);

/// services.csv: a row for each service.
std::string services_csv(const std::vector<ServiceFigures>& services, const std::optional<PowerAccount>& power);

/// requests.csv: a row for each request, by service and arrival. Precondition: engine.has_services().
std::string requests_csv(const Engine& engine);

}  // namespace gpusched
