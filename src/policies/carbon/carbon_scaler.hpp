// SPDX-License-Identifier: Apache-2.0
/// How many replicas an elastic job has in each slot, by carbon.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/signal.hpp"

namespace gpusched {

/// An elastic job on so many replicas.
struct ReplicaPoint {
  double watts = 0;
  double throughput = 0;  ///< work an hour, in any unit
};

/// A plan.
struct ReplicaPlan {
  std::vector<std::uint32_t> replicas;  ///< by slot
  double work = 0;                      ///< throughput x hours, all slots whole
  bool in_time = false;                 ///< that is as much as was asked for
};

/// CarbonScaler's rule (Hanafy et al., POMACS 7(3), 2023, Algorithm 1): one replica more at a time, in the slot in
/// which it adds most throughput for the watts that it adds times the slot's intensity, until the work is done; slots
/// are used whole, the last too. Measured marginals are no falling sequence: those of a slot are taken in order, each
/// by its own worth: first those that add throughput and no emissions, the most saved (prices may be negative) for
/// their throughput before the others; one that adds no throughput never. Ties go to the earliest slot. `points`: of
/// one replica, two, ...
ReplicaPlan carbon_scaler_plan(std::span<const double> intensities, std::span<const ReplicaPoint> points, double work,
                               Time slot);

/// What the slots from `now` on, the last one ending by `deadline`, are expected to have on the mean.
std::vector<double> expected_slots(const Signal& signal, const Forecast& forecast, Time now, Time deadline, Time slot);

}  // namespace gpusched
