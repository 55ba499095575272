// SPDX-License-Identifier: Apache-2.0
/// MeterReading: what a run drew, emitted and cost from one look to the next.
#pragma once

#include <utility>

#include "gpusched/engine/bills.hpp"
#include "gpusched/engine/engine.hpp"

namespace gpusched::detail {

/// Of one run from its begin on. A value.
class MeterReading {
 public:
  /// What passed in the measured span since the last call; nothing without a power model.
  Bill passed(const Engine& engine) {
    if (!engine.knows_power()) return {};
    const Bill shown = engine.power().measured_until(engine.view().now());
    Bill passed = shown;
    passed -= std::exchange(last_, shown);
    return passed;
  }

 private:
  Bill last_;
};

}  // namespace gpusched::detail
