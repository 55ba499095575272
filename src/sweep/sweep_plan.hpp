// SPDX-License-Identifier: Apache-2.0
/// SweepPlan: the runs of a sweep with what makes each of them the run that it is, checked before the first begins.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/sweep/sweep_file.hpp"

namespace gpusched {

/// A file that runs read.
struct SweepInputFile {
  std::string path;
  std::string sha256;  ///< of a folder: of the names and hashes of its files
};

/// A run and what it shares with others. Numbers count from 0 in order of first appearance.
struct PlannedRun {
  std::string key;          ///< SHA-256 of all that the result depends on
  std::uint32_t trace = 0;  ///< runs of one number read the same jobs
  std::uint32_t input = 0;  ///< and those of one number here run the same jobs on the same cluster
};

struct SweepPlan {
  Sweep sweep;
  std::vector<PlannedRun> runs;       ///< by number of the point
  std::vector<SweepInputFile> files;  ///< traces, clusters, device profiles, trained policies
  std::string program;                ///< version and commit
};

/// Works out every run. Errors: a trace that cannot be read, a cluster or policy that does not exist, a policy that
/// cannot be backfilled so, a run that stands for the same as another; with `tries` also what SweepTrial refuses.
Result<SweepPlan> plan_sweep(Sweep sweep, const PolicyRegistry& registry, bool tries = true);

/// "policy srtf, seed 1": what varies, for people.
std::string point_name(const Sweep& sweep, const SweepPoint& point);

}  // namespace gpusched
