// SPDX-License-Identifier: Apache-2.0
/// RunInput: the jobs and the machine of a run. The one loader behind replay, evaluate and train, so that the same
/// words mean the same jobs on the same nodes in all of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/placement.hpp"
#include "src/world/fit_to_cluster.hpp"
#include "src/world/slurm_site.hpp"
#include "traces/core/trace.hpp"

namespace gpusched {

/// The placement "count": no nodes, only GPUs. Not a rule of Placement, but a change of the cluster (Cluster::pooled).
inline constexpr std::string_view count_placement = "count";

/// What --placement takes: "count" and the names of placement_names.
std::vector<std::string> placement_words();

/// What a user names.
struct InputRequest {
  std::string trace;  ///< a file, or "synthetic:NAME"
  ReadOptions reading = {};
  std::string cluster = {};     ///< as parse_cluster() takes it; empty: that of slurm_conf, or what the trace states
  std::string limits = {};      ///< beside those of the cluster, as parse_limits() takes them
  std::string slurm_conf = {};  ///< slurm.conf of the cluster; empty: none
  std::string slurm_qos = {};   ///< the table of its QOS; empty: none
  std::string placement = "consolidate";  ///< one of placement_words()
  Oversize oversize = Oversize::refuse;
  bool has_services = false;  ///< without a trace there are services or trials alone
};

/// The paths of these two in the table of options that they come from.
struct InputFieldNames {
  std::string cluster = "cluster";
  std::string placement = "placement";
};

/// What is run.
struct RunInput {
  Trace trace;      ///< at least one job, unless there are services alone; all fit the empty cluster
  Cluster cluster;  ///< pooled already when the placement is "count"
  Placement placement = Placement::consolidate;
  std::uint32_t jobs_outside_vcs = 0;  ///< whose virtual cluster the machines do not have: they may run anywhere
  SlurmSite slurm = {};                ///< what its files say
};

/// Reads the trace that is asked for, with the priorities of `slurm_qos`.
Result<Trace> read_requested_trace(const InputRequest& request);

/// Reads the trace, then the cluster, and makes every job fit. Errors are the user's: a bad trace or cluster, a trace
/// that does not state its machine when no cluster is given, an unknown placement, a job larger than the cluster, no
/// jobs left.
Result<RunInput> load_input(const InputRequest& request, const InputFieldNames& names = {});

/// The same of a trace that was read already, as read_requested_trace() does.
Result<RunInput> fit_input(const InputRequest& request, Trace trace, const InputFieldNames& names = {});

}  // namespace gpusched
