// SPDX-License-Identifier: Apache-2.0
/// What tables mark of runs.
#pragma once

#include <optional>

#include "src/base/text_table.hpp"
#include "src/sim/metric_table.hpp"
#include "src/sim/replay.hpp"

namespace gpusched {

/// A figure of `run`; one that knew true run times is never the best.
inline Rated rated(const PolicyRun& run, std::optional<double> figure) {
  return {.value = figure, .may_be_best = !run.clairvoyant};
}

/// Rates a column by a metric, where policies are compared by it. `value` gives the mean of an item (optional),
/// `clairvoyant` whether it knew true run times.
template <class Items, class Value, class Clairvoyant>
void rate_by(TextTable& table, std::size_t column, const MetricInfo& metric, const Items& items, Value value,
             Clairvoyant clairvoyant) {
  if (metric.better == Better::neither) return;
  table.rate(column, metric.better == Better::less ? Best::least : Best::most, items,
             [&](const auto& item) { return Rated{.value = value(item), .may_be_best = !clairvoyant(item)}; });
}

}  // namespace gpusched
