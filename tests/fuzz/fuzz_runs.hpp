// SPDX-License-Identifier: Apache-2.0
/// Short runs for fuzz targets: a few jobs, at usual times and at the ends of what a clock holds.
#pragma once

#include <functional>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/elastic_model.hpp"
#include "gpusched/data/job_changes.hpp"
#include "gpusched/data/node_failures.hpp"
#include "gpusched/data/stage_model.hpp"
#include "gpusched/policy/policy.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched::test {

/// A policy for the jobs and the cluster of a run, or why there is none.
using PolicyMaker = std::function<Result<AnyPolicy>(const PolicyContext& context)>;

/// Runs the policy through 12 jobs on 3 nodes for at most 100 instants.
void run_in_small_world(const PolicyMaker& make);

/// The same with jobs submitted or running close to the end of time, or to its beginning, and with preemption that
/// costs as much.
void run_at_extreme_times(const PolicyMaker& make);

/// Runs fifo on a cluster.
void run_on(const Cluster& cluster);

/// Failures of a cluster's nodes, or why there are none.
using FailuresMaker = std::function<Result<NodeFailures>(const Cluster& cluster)>;
/// Runs fifo on three nodes that fail, with checkpoints.
void run_with_failures(const FailuresMaker& make);

/// What runs of the jobs go through, or why there is nothing.
using StagesMaker = std::function<Result<StageModel>(const JobTable& jobs)>;
/// Runs fifo on three nodes, where runs have these stages and write checkpoints.
void run_with_stages(const StagesMaker& make);

/// What users do to the jobs, or why that is not known.
using ChangesMaker = std::function<Result<JobChanges>(JobTable& jobs, const Cluster& cluster)>;
/// Runs these changes of the usual jobs under policies with queues of many kinds.
void run_with_changes(const ChangesMaker& make);

/// Which of the jobs are elastic, or why none is.
using ElasticMaker = std::function<Result<ElasticModel>(const JobTable& jobs)>;
/// Runs the policies that choose sizes on three nodes, where stopping a job costs time.
void run_with_elastic_jobs(const ElasticMaker& make);

}  // namespace gpusched::test
