// SPDX-License-Identifier: Apache-2.0
/// Failures of nodes from a file: laws in JSON, or a csv of what happened.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/node_failures.hpp"

namespace gpusched {

/// Reads what `--failures` names, for the nodes of `cluster`.
///
/// JSON holds laws of what fails, all of them optional, and a csv (its path is relative to the JSON file's folder):
///   {"node": {"per_1000_days": 6.5, "shape": 1, "detect_s": 60, "repair_h": 2, "repair": "lognormal",
///             "repair_sigma": 1, "lemon_share": 0.05, "lemon_factor": 10},
///    "gpu": {"mtbf_h": 50700, "repair_h": 2}, "rack": {"mtbf_h": 20000, "repair_h": 1},
///    "spares": 2, "trace": "outages.csv", "trace_begins": "with_jobs"}
/// `node`, `gpu` and `rack` fail as often as `per_1000_days` (failures of 1,000 of them in a day) or `mtbf_h` says
/// (mean hours between the end of a repair and the next failure); a GPU takes its node with it, a rack (its switch) all
/// of its nodes. `repair` is fixed, exponential or lognormal around the mean `repair_h`. Of the nodes (GPUs, racks),
/// the share `lemon_share`, drawn by `seed`, fails `lemon_factor` times as often. `spares`:
/// NodeFailures::keep_spares().
///
/// A csv has the columns time_s, node and event (down, drain or up), where a node is its name in the cluster or its
/// number from 0; or it is a log of spot machines without a header, "ms,add|remove,name" (Bamboo, NSDI 2023), whose
/// names stand for the nodes of the cluster in order of appearance. A node whose first event is up (or add) is not
/// there before. Times are on the trace's clock, or with `trace_begins` "with_jobs" after `first_submit`.
///
/// Errors: file and line or JSON path, and what was expected there.
Result<NodeFailures> read_failures(const std::string& path, const Cluster& cluster, Time first_submit,
                                   std::uint64_t seed);

/// The JSON form from a text; `file` is its path.
Result<NodeFailures> failures_from_json(std::string_view text, const std::string& file, const Cluster& cluster,
                                        Time first_submit, std::uint64_t seed);

/// The csv forms from a text, with `begin` added to each time; `file` is for messages only.
Result<std::vector<NodeChange>> node_changes_from_csv(std::string_view text, const std::string& file,
                                                      const Cluster& cluster, Time begin);

/// The files that read_failures() reads besides `path`: for manifests. None where it cannot be read.
std::vector<std::string> files_of_failures(const std::string& path);

}  // namespace gpusched
