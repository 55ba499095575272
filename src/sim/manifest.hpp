// SPDX-License-Identifier: Apache-2.0
/// What every manifest says: which program, which files, which cluster. Compiled parts only: it shows a JSON library's
/// type.
#pragma once

#include <string>
#include <vector>

#include "gpusched/data/cluster.hpp"
#include "src/base/strict_json.hpp"
#include "src/calibration/profile/calibrated_runtime.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/world/slurm_site.hpp"
#include "traces/core/trace.hpp"

namespace gpusched {

/// Program, version, commit, compiler, kind of build.
Json build_json();

/// What was read of a trace: path, format, SHA-256, rows kept and left out by reason.
Json trace_json(const TraceReport& report);

/// A cluster's name and size.
Json cluster_json(const Cluster& cluster);

/// The settings of Slurm's files that changed nothing: {"unused": [{"file", "line", "key", "value"}]}.
Json slurm_json(const SlurmSite& site);

/// Those of `names` that are files, each once.
std::vector<std::string> existing_files(const std::vector<std::string>& names);
/// The files that these policies read (PolicyInfo::files).
std::vector<std::string> files_of_policies(const std::vector<PolicySpec>& specs, const PolicyRegistry& registry);

/// {"path", "sha256"} of a file; the hash is null where it cannot be read.
Json file_json(const std::string& path);

/// The profile values that run times were computed from, and those that the power was; with the model of --power, if
/// one is given.
nlohmann::ordered_json rates_json(const CalibratedRuntime& runtime);
nlohmann::ordered_json power_json(const CalibratedRuntime& runtime, const std::string& model);

}  // namespace gpusched
