// SPDX-License-Identifier: Apache-2.0
/// Quasi-shortest-service-first of Helios.
#pragma once

#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// Smallest predicted GPU time (estimate x GPUs, fixed when the job begins to wait) first, within each virtual cluster;
/// the first that does not fit blocks. Helios blends a rolling mean over like jobs of the user with a learned model;
/// the parameter `estimate` chooses the source. The default, history, is a mean over finished jobs that is refined by
/// virtual cluster, size and user where the trace names them, so that it needs no column.
PolicyInfo qssf_info();

}  // namespace gpusched
