// SPDX-License-Identifier: Apache-2.0
/// Where the requests of a service come from: a log, or a rate and a process of arrivals.
#pragma once

#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/core/rng.hpp"
#include "gpusched/data/signal.hpp"
#include "src/base/json_fields.hpp"
#include "src/world/service_reader.hpp"

namespace gpusched {

/// How requests follow each other at a rate.
enum class ArrivalProcess : std::uint8_t {
  poisson,  ///< independent of each other
  even,     ///< as far apart as the rate says
};

/// Arrivals from 0 to before `end` at the rate of `per_s` (1/s, from 0), drawn by `rng`.
std::vector<Time> arrivals_at(const Signal& per_s, Time end, ArrivalProcess process, Rng rng);

/// Reads the object "requests" of a service; `log` is what a log says besides. Errors of `fields` stay there; one of
/// another file is returned.
Result<void> read_request_source(JsonFields& fields, const std::string& file, const Rng& rng,
                                 std::vector<ServiceRequest>& requests, RequestLog& log);

/// `named` as `file` names it: from its folder.
std::string path_from(const std::string& file, const std::string& named);

}  // namespace gpusched
