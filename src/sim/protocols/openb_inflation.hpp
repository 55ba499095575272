// SPDX-License-Identifier: Apache-2.0
/// The workload inflation experiment of FGD (Weng et al., "Beware of Fragmentation", USENIX ATC'23): pods arrive one by
/// one and never leave until more than the cluster's GPUs have been asked for; how much of them could be given?
#pragma once

#include <span>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "src/policies/packing/packing.hpp"

namespace gpusched {

/// The pods in a random order, followed by pods drawn from them uniformly with replacement until the next draw would
/// bring the demand above `percent` of `capacity`; as in the authors' simulator that check counts one card of the draw
/// even where it asks for more, and the draw is dropped. Of a list already above it, random pods are lost
/// instead. One pod a second, for ever; times of `pods` are ignored. GPU demands keep their numbers, so that what
/// typical_pods() counted over `pods` holds in the table returned.
JobTable inflate_pods(const JobTable& pods, MilliGpu capacity, double percent, Rng rng);

/// GPU allocation in percent of the cluster's capacity, for each mark (percent of capacity that has arrived): the mean,
/// over the pods at which what has arrived rounds to the mark, of what is allocated after the pod. NaN for a mark that
/// is never reached. A pod that fits nowhere is lost, and counts as arrived.
std::vector<double> allocation_at_marks(const JobTable& pods, const Cluster& cluster, Packing policy,
                                        std::span<const int> marks);

}  // namespace gpusched
