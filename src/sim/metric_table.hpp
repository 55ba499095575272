// SPDX-License-Identifier: Apache-2.0
/// The metrics of a run by name: the one list behind reports, files and `evaluate --figure`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "gpusched/watch/metrics.hpp"

namespace gpusched {

/// Which way a metric is better.
enum class Better : std::uint8_t {
  less,
  more,
  neither,  ///< it describes the run; policies are not compared by it
};

/// One metric. Its meaning stands in Metrics.
struct MetricInfo {
  std::string name;  ///< key in JSON and csv
  std::variant<std::uint32_t Metrics::*, std::uint64_t Metrics::*, double Metrics::*, std::optional<double> Metrics::*>
      member;
  Better better = Better::less;

  /// Nothing where the run does not know it.
  [[nodiscard]] std::optional<double> value(const Metrics& metrics) const;
};

/// All, in the order of reports.
const std::vector<MetricInfo>& metric_table();

/// The metric of that name, or nullptr.
const MetricInfo* find_metric(const std::string& name);

/// The names of the metrics by which policies can be compared.
std::vector<std::string> figure_names();

}  // namespace gpusched
